//! A file while it is written: without a name where the system knows such files, so that nothing is
//! left of it however the process ends; elsewhere under a hidden name beside its place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::part_name::{part_path, remove_left_parts};

/// How many names are tried for a file: each is as good as unique, so a second is needed at most.
const TRIED_NAMES: usize = 16;

/// A file that is not complete.
pub(crate) struct PartFile {
    file: File,
    /// Its name, if it has one: goes with the part unless that was published.
    name: Option<PathBuf>,
}

impl PartFile {
    /// Makes a file that will take the place of `target`, for the same eyes as what is there.
    ///
    /// # Errors
    /// When there can be no file beside `target`.
    pub(crate) fn create(target: &Path) -> io::Result<Self> {
        let part = match nameless::create(target) {
            Some(file) => Self { file, name: None },
            None => Self::create_named(target)?,
        };
        part.take_mode(target)?;
        Ok(part)
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
            self = self.with_name(target)?;
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

    fn create_named(target: &Path) -> io::Result<Self> {
        remove_left_parts(target);
        for _ in 0..TRIED_NAMES {
            let name = part_path(target);
            let mut options = OpenOptions::new();
            let file = match options.write(true).create_new(true).open(&name) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                opened => opened?,
            };
            lock(&file);
            let name = Some(name);
            let part = Self { file, name };
            // Before it was locked, another writer may have taken it for one that was left.
            if part.name.as_ref().is_some_and(|name| name.exists()) {
                return Ok(part);
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Gives the file a name beside `target`: its own, or if it can get none that of a copy.
    fn with_name(mut self, target: &Path) -> io::Result<Self> {
        remove_left_parts(target);
        lock(&self.file);
        let name = part_path(target);
        if nameless::link(&self.file, &name).is_ok() {
            self.name = Some(name);
            return Ok(self);
        }
        let mut named = Self::create_named(target)?;
        named.take_mode(target)?;
        self.file.seek(SeekFrom::Start(0))?;
        io::copy(&mut self.file, &mut named.file)?;
        Ok(named)
    }

    /// Gives the file the mode and, where that is allowed, the owner of what it is to replace.
    fn take_mode(&self, target: &Path) -> io::Result<()> {
        let Ok(before) = fs::metadata(target) else {
            return Ok(());
        };
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, fchown};
            let own = self.file.metadata()?;
            if (own.uid(), own.gid()) != (before.uid(), before.gid()) {
                // Only an administrator may give files away; all others keep the new file.
                let _ = fchown(&self.file, Some(before.uid()), Some(before.gid()));
            }
        }
        if self.file.metadata()?.permissions() == before.permissions() {
            return Ok(());
        }
        self.file.set_permissions(before.permissions())
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

/// Says that the writer lives. Where files cannot be locked, none is found to be left either.
fn lock(file: &File) {
    let _ = file.try_lock();
}

/// Files without a name, which can get one when they are complete.
#[cfg(target_os = "linux")]
mod nameless {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::{Path, PathBuf};

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};

    use crate::files::part_name::folder;

    /// Makes one in the folder of `target`; none where the file system has no such files.
    pub(super) fn create(target: &Path) -> Option<File> {
        let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
        let file = File::from(open(folder(target), flags, Mode::from_raw_mode(0o666)).ok()?);
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
}
