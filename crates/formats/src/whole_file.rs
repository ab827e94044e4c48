//! Files that are whole or absent: they take their place when they are complete.
//!
//! Every writer of this crate goes through here, so each makes the folders on the way, keeps links
//! and compresses by name.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::gzip::write_gzip;
use crate::part_file::PartFile;

/// How much is given to the system at once: with less, calls of it are what a long file costs.
const BUFFER_BYTES: usize = 1 << 16;

/// Writes a file with what `write` writes, through gzip if its name ends in `.gz`.
///
/// Directories on the way are made. The file appears under its name when it is complete; if that
/// fails, what was there before stays.
///
/// # Errors
/// When the file cannot be written, or `write` fails; the error names the file.
pub fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    write_whole(path, write).map_err(|error| error.at(path))
}

fn write_whole(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
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
            return write_to(path, file, write);
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error.into()),
        Ok(_) | Err(_) => {}
    }
    let target = followed(path)?;
    let mut part = PartFile::create(&target)?;
    write_to(path, part.file(), write)?;
    Ok(part.publish(&target)?)
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

/// Returns how many bytes [`write_file`] would write, without writing any.
///
/// # Errors
/// When `write` fails; the error names the file.
pub(crate) fn file_size(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<u64> {
    let mut counter = Counter(0);
    write_to(path, &mut counter, write).map_err(|error| error.at(path))?;
    Ok(counter.0)
}

/// Counts the bytes that it is given.
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_to(
    path: &Path,
    out: impl Write,
    write: impl FnOnce(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let mut buffered = BufWriter::with_capacity(BUFFER_BYTES, out);
    if is_compressed(path) {
        return write_gzip(buffered, write);
    }
    write(&mut buffered)?;
    Ok(buffered.flush()?)
}

fn is_compressed(path: &Path) -> bool {
    path.extension()
        .is_some_and(|suffix| suffix.eq_ignore_ascii_case("gz"))
}
