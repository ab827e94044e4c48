//! Files while they are being written, on the `tempfile` crate.
//!
//! On Linux a part is an unnamed file (`O_TMPFILE`) that gets a name when it is complete, so a
//! killed process leaves nothing behind. File systems without unnamed files, and other systems, use
//! a hidden `.NAME.XXXXXX.part` beside the target, which stays if the process is killed: it never
//! has the name of the target, and later writers do not reuse its name.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::path::Path;

use tempfile::{Builder, NamedTempFile, TempPath};

/// An incomplete file that will replace a target.
///
/// It lies in the folder of the target, because a rename works only within a file system. Dropping
/// it without [`PartFile::publish`] removes it.
pub(super) enum PartFile {
    Unnamed(File),
    Named(NamedTempFile),
}

impl PartFile {
    /// Creates an empty file with the permissions of the existing target, or those of a new file.
    ///
    /// # Errors
    /// If no file can be created in the folder of `target`.
    pub(super) fn create(target: &Path) -> io::Result<Self> {
        let part = match unnamed::create(folder(target)) {
            Some(file) => Self::Unnamed(file),
            None => Self::Named(create_named(target)?),
        };
        copy_permissions(target, part.file())?;
        Ok(part)
    }

    /// Returns the file to write to.
    pub(super) fn file(&self) -> &File {
        match self {
            Self::Unnamed(file) => file,
            Self::Named(part) => part.as_file(),
        }
    }

    /// Puts the complete file in the place of `target`.
    ///
    /// # Errors
    /// If the target cannot be replaced. The part is removed then.
    pub(super) fn publish(self, target: &Path) -> io::Result<()> {
        let name = match self {
            // A link needs no name in between, but cannot replace an existing file.
            Self::Unnamed(file) if unnamed::link(&file, target).is_ok() => return Ok(()),
            Self::Unnamed(file) => give_name(file, target)?,
            Self::Named(part) => part.into_temp_path(),
        };
        Ok(name.persist(target)?)
    }
}

/// Links an unnamed file to a temporary name beside `target`, or copies it if links are refused.
fn give_name(mut file: File, target: &Path) -> io::Result<TempPath> {
    if let Ok(part) = make_beside(target, |name| unnamed::link(&file, name)) {
        return Ok(part.into_temp_path());
    }
    let mut part = create_named(target)?;
    copy_permissions(target, part.as_file())?;
    file.seek(SeekFrom::Start(0))?;
    io::copy(&mut file, part.as_file_mut())?;
    Ok(part.into_temp_path())
}

/// Creates a file with the mode that the umask leaves, where `tempfile` would exclude all but the
/// owner.
fn create_named(target: &Path) -> io::Result<NamedTempFile> {
    make_beside(target, |name| {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).open(name)
    })
}

/// The longest name that becomes a part of a temporary name. Names have at most 255 bytes, and the
/// rest takes 13.
const LONGEST_NAME: usize = 240;

/// Calls `make` with names `.NAME.XXXXXX.part` beside `target`, until one is not in use.
fn make_beside<F>(
    target: &Path,
    make: impl FnMut(&Path) -> io::Result<F>,
) -> io::Result<NamedTempFile<F>> {
    let mut prefix = OsString::from(".");
    let name = target.file_name().unwrap_or_default();
    // A longer name would leave no room for the rest.
    if name.len() <= LONGEST_NAME {
        prefix.push(name);
        prefix.push(".");
    }
    let mut builder = Builder::new();
    builder.prefix(&prefix).suffix(".part");
    builder.make_in(folder(target), make)
}

/// Returns the folder of `target`.
fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    }
}

/// Gives `file` the mode and, if the system allows it, the owner of an existing target.
fn copy_permissions(target: &Path, file: &File) -> io::Result<()> {
    let Ok(existing) = fs::metadata(target) else {
        return Ok(());
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (existing.uid(), existing.gid()) {
            // Only administrators may change owners; everyone else owns the new file.
            let _ = fchown(file, Some(existing.uid()), Some(existing.gid()));
        }
    }
    if file.metadata()?.permissions() == existing.permissions() {
        return Ok(());
    }
    file.set_permissions(existing.permissions())
}

/// Unnamed files, which `tempfile` can create but not name.
#[cfg(target_os = "linux")]
mod unnamed {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};

    /// Creates an unnamed file in a folder. `None` if the file system has no such files.
    pub(super) fn create(folder: &Path) -> Option<File> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let file = open(folder, flags, Mode::from_raw_mode(0o666)).ok()?;
        Some(file.into())
    }

    /// Gives a file a name that is not in use.
    pub(super) fn link(file: &File, name: &Path) -> io::Result<()> {
        let open = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(linkat(CWD, open, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
    }
}

/// A system without unnamed files.
#[cfg(not(target_os = "linux"))]
mod unnamed {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(super) fn create(_folder: &Path) -> Option<File> {
        None
    }

    pub(super) fn link(_file: &File, _name: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// Writes a part as on a file system without unnamed files.
    fn write_named(target: &Path) -> PartFile {
        let part = create_named(target).unwrap();
        copy_permissions(target, part.as_file()).unwrap();
        part.as_file().write_all(b"new").unwrap();
        PartFile::Named(part)
    }

    fn names(folder: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_named_part_is_hidden_and_goes_when_it_is_dropped() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("out.json");
        let part = write_named(&target);
        let [name] = &names(place.path())[..] else {
            panic!("one file is there");
        };
        assert!(name.to_str().unwrap().starts_with(".out.json."));
        assert_eq!(Path::new(name).extension(), Some("part".as_ref()));
        drop(part);
        assert!(names(place.path()).is_empty());
    }

    #[test]
    fn a_file_with_the_longest_name_can_be_replaced() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("n".repeat(255));
        for text in [&b"old"[..], b"new"] {
            let part = PartFile::create(&target).unwrap();
            part.file().write_all(text).unwrap();
            part.publish(&target).unwrap();
            assert_eq!(fs::read(&target).unwrap(), text);
        }
        write_named(&target).publish(&target).unwrap();
        assert_eq!(names(place.path()).len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_named_part_has_the_permissions_of_any_new_file() {
        let place = tempfile::tempdir().unwrap();
        let (target, usual) = (place.path().join("out.json"), place.path().join("usual"));
        File::create(&usual).unwrap();
        write_named(&target).publish(&target).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions();
        assert_eq!(mode(&target), mode(&usual));
    }

    #[test]
    fn an_unnamed_file_that_cannot_be_linked_is_copied() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("out.json");
        fs::write(&target, "old").unwrap();
        // A file whose name was removed cannot get another.
        let (mut unlinked, name) = NamedTempFile::new_in(place.path()).unwrap().into_parts();
        name.close().unwrap();
        unlinked.write_all(b"new").unwrap();
        PartFile::Unnamed(unlinked).publish(&target).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert_eq!(names(place.path()).len(), 1);
    }
}
