//! The events of every rank as Parquet, in folders that query engines take for a column `rank`.
//!
//! ```text
//! FOLDER/rank=0/part.parquet
//! FOLDER/rank=1/part.parquet
//! ```

use std::fs;
use std::path::{Path, PathBuf};

use mindprof_analyze::Analysis;
use mindprof_trace::{FileError, ReadOptions, read_trace_file_with};

use crate::error::{Error, Result};
use crate::parquet::write_parquet_file;
use crate::rank_files::is_summary;
use crate::rank_trace::RankTrace;

/// Writes the events of each rank to a file in a folder of its own, and returns the files. Only the
/// events of one rank are in memory at a time.
///
/// # Errors
/// If a rank is not known, a file cannot be read or is a summary, or a file cannot be written. The
/// error names the file.
pub fn write_ranks_parquet(traces: &[RankTrace], folder: &Path) -> Result<Vec<PathBuf>> {
    let written = traces.iter().map(|trace| {
        let rank = trace.rank.ok_or_else(|| Error::NoRank.at(&trace.path))?;
        if is_summary(&trace.path) {
            return Err(Error::NoEvents.at(&trace.path));
        }
        let reading = read_trace_file_with(&trace.path, &ReadOptions::default())?;
        let inner = folder.join(format!("rank={rank}"));
        fs::create_dir_all(&inner).map_err(|error| Error::from(error).at(&inner))?;
        let path = inner.join("part.parquet");
        write_parquet_file(&Analysis::build(reading.profile), &path)?;
        Ok(path)
    });
    written.collect()
}
