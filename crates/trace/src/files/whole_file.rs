//! Atomic file writes: a file appears under its name once it is complete, or not at all.
//!
//! Every writer in the workspace goes through [`write_file`], which creates missing directories,
//! follows symbolic links and compresses by file name.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::compression::{Compression, Effort, write_compressed};
use super::part_file::PartFile;

/// An error type that can name the file it is about.
///
/// [`write_file`] is generic over it, so that each crate writes files with its own error type.
pub trait FileError: From<io::Error> {
    /// Returns the same error with the path of the file it is about.
    #[must_use]
    fn at(self, path: &Path) -> Self;
}

/// Writes a file atomically, compressed if its name ends in `.gz` or `.zst`.
///
/// `write` produces the uncompressed contents. Missing directories are created. The file appears
/// under its name once it is complete; on failure an existing file stays as it is. Pipes and devices
/// are written to directly.
///
/// # Errors
/// If the file cannot be written or `write` fails. The error names the file.
pub fn write_file<E: FileError>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    write_file_with(path, Effort::Fast, write).map(drop)
}

/// Writes a file as [`write_file`] does, with a chosen compression effort.
///
/// Returns the value that `write` returns and the size of the file in bytes.
///
/// # Errors
/// If the file cannot be written or `write` fails. The error names the file.
pub fn write_file_with<T, E: FileError>(
    path: &Path,
    effort: Effort,
    write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<(T, u64), E> {
    write_whole(path, effort, write).map_err(|error| error.at(path))
}

fn write_whole<T, E: From<io::Error>>(
    path: &Path,
    effort: Effort,
    write: impl FnOnce(&mut dyn Write) -> Result<T, E>,
) -> Result<(T, u64), E> {
    let compression = Compression::of(path);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
        }
        // A pipe or a device cannot be replaced, only written to.
        Ok(found) if !found.is_file() => {
            let file = OpenOptions::new().write(true).open(path)?;
            return write_compressed(file, compression, effort, write);
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        Ok(_) | Err(_) => {}
    }
    let target = followed(path)?;
    let part = PartFile::create(&target)?;
    let written = write_compressed(part.file(), compression, effort, write)?;
    part.publish(&target)?;
    Ok(written)
}

/// Resolves symbolic links, so that the link's target is created or replaced and not the link.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_path_buf();
    // `write_whole` has already refused links that form a cycle.
    while let Ok(next) = fs::read_link(&place) {
        place.pop();
        place.push(next);
    }
    match (place.parent(), place.file_name()) {
        (Some(folder), Some(name)) if !folder.as_os_str().is_empty() => {
            Ok(fs::canonicalize(folder)?.join(name))
        }
        _ => Ok(place),
    }
}
