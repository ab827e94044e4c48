//! Files to summaries of ranks: which files of a folder are traces, and a summary of each.
//!
//! Several files are summed up at the same time, each thread with one file, so that memory is
//! bounded by the largest files and not by their number.

use std::fs;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, available_parallelism, scope};

use mindprof_analyze::Analysis;
use mindprof_ranks::{RankSummary, Ranks, Source};
use mindprof_trace::{FileError, ReadOptions, Reading, read_trace_file_with, read_trace_with};

use crate::error::{Error, Result};

/// The ends of the names of traces and summaries, without that of a compression.
const ENDINGS: [&str; 4] = [".json", ".db", ".ranks", ".part"];
const COMPRESSIONS: [&str; 3] = [".gz", ".zst", ".zstd"];

/// The first bytes of a summary.
const SUMMARY: &[u8] = b"mindrank";

/// The files of a folder by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankFiles {
    /// Traces and summaries, sorted.
    pub found: Vec<PathBuf>,
    /// Other files, sorted.
    pub others: Vec<PathBuf>,
}

impl RankFiles {
    /// Lists the files of a folder and of the folders in it. Hidden files are left out.
    ///
    /// # Errors
    /// If a folder cannot be read.
    pub fn list(folder: &Path) -> Result<Self> {
        let mut files = Self::default();
        let mut folders = vec![folder.to_path_buf()];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).map_err(|error| Error::from(error).at(&folder))?;
            for entry in entries {
                let entry = entry.map_err(|error| Error::from(error).at(&folder))?;
                let (path, kind) = (entry.path(), entry.file_type());
                let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
                match kind {
                    Ok(_) if is_hidden => {}
                    // Links to folders are not followed, because they may lead back.
                    Ok(kind) if kind.is_dir() => folders.push(path),
                    // A pipe would be waited for, and a socket cannot be read.
                    Ok(_) | Err(_) if is_named_like_a_trace(&path) && is_file_or_gone(&path) => {
                        files.found.push(path);
                    }
                    Ok(_) | Err(_) => files.others.push(path),
                }
            }
        }
        files.found.sort_unstable();
        files.others.sort_unstable();
        Ok(files)
    }
}

/// Returns whether a path leads to a regular file, or to nothing, which reading it reports.
fn is_file_or_gone(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |found| found.is_file())
}

fn is_named_like_a_trace(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    let name = name.to_string_lossy().to_ascii_lowercase();
    let plain = COMPRESSIONS.iter().find_map(|end| name.strip_suffix(end));
    let plain = plain.unwrap_or(&name);
    ENDINGS.iter().any(|end| plain.ends_with(end))
}

/// Sums up a trace, or reads a summary that was written earlier.
///
/// # Errors
/// If the file cannot be read, is neither, or is a trace without events. The error names the file.
pub fn summarize_file(path: &Path) -> Result<Ranks> {
    if begins_like_a_summary(path) {
        return read_ranks(path);
    }
    let reading = read_trace_file_with(path, &ReadOptions::default())?;
    let name = path.file_name().unwrap_or(path.as_os_str());
    summarize(reading, &name.to_string_lossy()).map_err(|error| error.at(path))
}

/// Sums up a trace, or reads a summary, from bytes. `name` is the name of the file that they are of.
///
/// # Errors
/// If the bytes are neither, or a trace without events. The error names the file.
pub fn summarize_bytes(bytes: &[u8], name: &str) -> Result<Ranks> {
    let summarized = || {
        if bytes.starts_with(SUMMARY) {
            return Ok(Ranks::from_bytes(bytes)?);
        }
        let file = name.rsplit('/').next().unwrap_or(name);
        summarize(read_trace_with(bytes, &ReadOptions::default())?, file)
    };
    summarized().map_err(|error: Error| error.at(Path::new(name)))
}

/// Reads summaries that were written to a file.
///
/// # Errors
/// If the file cannot be read or holds no summaries. The error names the file.
pub fn read_ranks(path: &Path) -> Result<Ranks> {
    let read = || Ok(Ranks::from_bytes(&fs::read(path)?)?);
    read().map_err(|error: Error| error.at(path))
}

pub(crate) fn begins_like_a_summary(path: &Path) -> bool {
    use std::io::Read;
    let mut head = [0; SUMMARY.len()];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head == SUMMARY
}

fn summarize(reading: Reading, file: &str) -> Result<Ranks> {
    if reading.profile.events().is_empty() {
        return Err(Error::NoEvents);
    }
    let repairs = reading.repairs.iter();
    let repairs = repairs
        .map(|(repair, count, _)| (repair.key(), count))
        .collect();
    let analysis = Analysis::build(reading.profile);
    let summary = RankSummary::build(&analysis, &Source { file, repairs });
    Ok(Ranks::from(summary))
}

/// Sums up files on so many threads, or as many as there are processors, and returns their results
/// in order. `done` is called after each file with the number of finished ones.
pub fn summarize_files(
    paths: &[PathBuf],
    threads: Option<NonZeroUsize>,
    done: &(dyn Fn(usize) + Sync),
) -> Vec<Result<Ranks>> {
    let (next, finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let mut results = Vec::new();
        loop {
            // Only the numbers themselves are shared, so no other memory has to be ordered.
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(index) else {
                return results;
            };
            results.push((index, summarize_file(path)));
            done(finished.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    let threads = threads.or_else(|| available_parallelism().ok());
    let threads = threads.map_or(1, NonZeroUsize::get).min(paths.len());
    let mut results = scope(|scope| {
        let named = || Builder::new().name("mindprof-ranks".into());
        let others = (1..threads).filter_map(|_| named().spawn_scoped(scope, work).ok());
        let others: Vec<_> = others.collect();
        let mut results = work();
        for thread in others {
            results.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
    results.sort_unstable_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_traces_from_other_files() {
        for (name, is_trace) in [
            ("rank0.json", true),
            ("a.pt.trace.json.gz", true),
            ("B.JSON.ZST", true),
            ("0.ranks", true),
            ("ascend_pytorch_profiler_0.db", true),
            ("notes.txt", false),
            ("report.html", false),
            ("log.gz", false),
        ] {
            assert_eq!(is_named_like_a_trace(Path::new(name)), is_trace, "{name}");
        }
    }

    #[test]
    fn folders_are_searched_and_other_files_are_listed_apart() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("node1");
        fs::create_dir(&inner).unwrap();
        for path in [inner.join("rank1.json"), folder.path().join("rank0.json")] {
            fs::write(path, "{}").unwrap();
        }
        fs::write(folder.path().join("notes.txt"), "").unwrap();
        fs::write(folder.path().join(".hidden.json"), "").unwrap();
        let files = RankFiles::list(folder.path()).unwrap();
        assert_eq!(
            files.found,
            [inner.join("rank1.json"), folder.path().join("rank0.json")]
        );
        assert_eq!(files.others, [folder.path().join("notes.txt")]);
        assert!(RankFiles::list(&folder.path().join("nowhere")).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_socket_that_is_named_like_a_trace_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rank9.json");
        let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let files = RankFiles::list(folder.path()).unwrap();
        assert_eq!((files.found.len(), files.others), (0, vec![path]));
    }

    #[test]
    fn any_number_of_threads_gives_the_same_results_in_order() {
        let trace = |rank: u32| {
            format!(
                "{{\"distributedInfo\": {{\"rank\": {rank}}}, \"traceEvents\": [{{\"ph\": \"X\", \
                 \"cat\": \"cpu_op\", \"name\": \"mm\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 2}}]}}"
            )
        };
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..9)
            .map(|rank| {
                let path = folder.path().join(format!("{rank}.json"));
                fs::write(&path, if rank == 4 { "[".into() } else { trace(rank) }).unwrap();
                path
            })
            .collect();
        let bytes = |threads: usize| {
            let results = summarize_files(&paths, NonZeroUsize::new(threads), &|_| {});
            let results = results
                .into_iter()
                .map(|result| result.ok().map(|ranks| ranks.to_bytes()));
            results.collect::<Vec<_>>()
        };
        assert_eq!(bytes(1), bytes(4));
        assert_eq!(bytes(2).iter().filter(|result| result.is_none()).count(), 1);
        let (first, part) = (bytes(1)[0].clone().unwrap(), folder.path().join("0.ranks"));
        fs::write(&part, &first).unwrap();
        assert_eq!(summarize_file(&part).unwrap().to_bytes(), first);
        assert_eq!(
            summarize_bytes(&first, "s3://bucket/0.ranks")
                .unwrap()
                .to_bytes(),
            first
        );
    }
}
