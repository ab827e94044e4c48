//! A file while it is written: without a name where the system knows such files, so that nothing is
//! left of it however the process ends; elsewhere under a hidden name beside its place.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file that is not complete.
pub(crate) struct PartFile {
    file: File,
    /// Its name, if it has one: goes with the part unless that was published.
    name: Option<PathBuf>,
}

impl PartFile {
    /// Makes a file that will take the place of `target`.
    ///
    /// # Errors
    /// When there can be no file beside `target`.
    pub(crate) fn create(target: &Path) -> io::Result<Self> {
        if let Some(file) = nameless::create(target) {
            return Ok(Self { file, name: None });
        }
        let name = part_path(target);
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).open(&name)?;
        let name = Some(name);
        Ok(Self { file, name })
    }

    /// Returns the file, to write to.
    pub(crate) const fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Puts the file in the place of `target`.
    ///
    /// # Errors
    /// When the place cannot be taken; then nothing is left of the part.
    pub(crate) fn publish(mut self, target: &Path) -> io::Result<()> {
        if self.name.is_none() {
            if nameless::link(&self.file, target).is_ok() {
                return Ok(());
            }
            // Something is there already, and only a file with a name can replace it.
            let name = self.name.insert(part_path(target));
            if nameless::link(&self.file, name).is_err() {
                nameless::copy(&mut self.file, name)?;
            }
        }
        let Some(name) = self.name.take() else {
            return Ok(());
        };
        let renamed = fs::rename(&name, target);
        if renamed.is_err() {
            self.name = Some(name);
        }
        renamed
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // There is an error to tell already; a part that stays behind is only litter.
            let _ = fs::remove_file(name);
        }
    }
}

/// Returns a name beside `target` that no other writer uses.
fn part_path(target: &Path) -> PathBuf {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    // Only the values must differ: nothing else is published with them.
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}-{number}.part", std::process::id()));
    target.with_file_name(name)
}

/// Files without a name, which can get one when they are complete.
#[cfg(target_os = "linux")]
mod nameless {
    use std::fs::{File, OpenOptions};
    use std::io::{self, Seek, SeekFrom};
    use std::os::fd::AsRawFd;
    use std::path::{Path, PathBuf};

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};

    /// Makes one in the folder of `target`; none where the file system has no such files.
    pub(super) fn create(target: &Path) -> Option<File> {
        let folder = match target.parent()? {
            folder if folder.as_os_str().is_empty() => Path::new("."),
            folder => folder,
        };
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let file = File::from(open(folder, flags, Mode::from_raw_mode(0o666)).ok()?);
        // It gets its name by way of this one.
        name_of(&file).exists().then_some(file)
    }

    /// Gives a file a name that nothing has yet.
    pub(super) fn link(file: &File, name: &Path) -> io::Result<()> {
        Ok(linkat(
            CWD,
            name_of(file),
            CWD,
            name,
            AtFlags::SYMLINK_FOLLOW,
        )?)
    }

    /// Copies a file that cannot get a name to a file that has one.
    pub(super) fn copy(file: &mut File, name: &Path) -> io::Result<()> {
        file.seek(SeekFrom::Start(0))?;
        let mut named = OpenOptions::new().write(true).create_new(true).open(name)?;
        io::copy(file, &mut named)?;
        Ok(())
    }

    fn name_of(file: &File) -> PathBuf {
        format!("/proc/self/fd/{}", file.as_raw_fd()).into()
    }
}

/// This system has no files without a name.
#[cfg(not(target_os = "linux"))]
mod nameless {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(super) fn create(_target: &Path) -> Option<File> {
        None
    }

    pub(super) fn link(_file: &File, _name: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn copy(_file: &mut File, _name: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
