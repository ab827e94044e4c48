//! Files that are whole or absent: they take their place when they are complete.
//!
//! Every writer of this crate goes through here, so each makes the folders on the way, keeps links
//! and compresses by name.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::compression::{Compression, Effort, write_compressed};
use super::part_file::PartFile;

/// An error type that can say which file it is about.
///
/// [`write_file`] is generic over it, so that each crate writes files with its own error type.
pub trait FileError: From<io::Error> {
    /// Returns an error that names the file which this error is about.
    #[must_use]
    fn at(self, path: &Path) -> Self;
}

/// Writes a file with what `write` writes, through gzip or zstd if its name ends in `.gz` or `.zst`.
///
/// Directories on the way are made. The file appears under its name when it is complete; if that
/// fails, what was there before stays.
///
/// # Errors
/// When the file cannot be written, or `write` fails; the error names the file.
pub fn write_file<E: FileError>(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    write_file_with(path, Effort::Fast, write).map(drop)
}

/// As [`write_file`], with as much work as is asked for. Returns what `write` returns, and how large
/// the file is.
///
/// # Errors
/// When the file cannot be written, or `write` fails; the error names the file.
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
    let mut part = PartFile::create(&target)?;
    let written = write_compressed(part.file(), compression, effort, write)?;
    part.publish(&target)?;
    Ok(written)
}

/// Returns the place that a path leads to: of a link, what it leads to is made or replaced and not
/// the link.
fn followed(path: &Path) -> io::Result<PathBuf> {
    let mut place = path.to_path_buf();
    // Links that lead in a circle were refused when the place was asked for.
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
