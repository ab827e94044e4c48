//! Files on disk: written atomically, and compressed according to their names.
//!
//! Every writer in the workspace goes through [`write_file`], so each one creates missing
//! directories, follows symbolic links, compresses by file name, and never leaves a half-written
//! file under the final name.

mod compression;
mod gzip;
mod part_file;
mod whole_file;
mod zstd;

pub use compression::{Compression, Effort, write_compressed};
pub use whole_file::{FileError, write_file, write_file_with};
