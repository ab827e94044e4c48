//! Files to summaries of ranks: which files of a folder are traces, and a summary of each.
//!
//! Several files are summed up at the same time, each thread with one file, so that memory is
//! bounded by the largest files and not by their number.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, available_parallelism, scope};

use mindprof_analyze::Analysis;
use mindprof_ranks::{RankSummary, Ranks, Source};
use mindprof_trace::{FileError, Input, ReadOptions, Reading, UnknownArgs, read_trace_file_with};

use crate::error::{Error, Result};

/// The ends of the names of traces and summaries, without that of a compression.
const ENDINGS: [&str; 4] = [".json", ".db", ".ranks", ".part"];
const COMPRESSIONS: [&str; 3] = [".gz", ".zst", ".zstd"];

/// The folder with the results in a folder of an Ascend profiler, which is read as one trace.
const ASCEND_RESULTS: &str = "ASCEND_PROFILER_OUTPUT";

/// The files of `mindprof run` that lie beside its trace, the first two of them always or for each of
/// several ranks. Those of several windows have numbers.
const RESULTS: [&str; 7] = [
    "summary.json",
    "summary.ranks",
    "table.txt",
    "stacks.folded",
    "flamegraph.svg",
    "report.html",
    "memory.html",
];

/// The file in which rank 0 of `mindprof run` leaves the summaries of all ranks, beside their folders.
const JOB: &str = "job.ranks";

/// The files of a folder by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankFiles {
    /// Traces and summaries, sorted. Folders of Ascend profilers are traces.
    pub found: Vec<PathBuf>,
    /// Other files, sorted, without those that `mindprof run` writes beside a trace.
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
            if is_recording(&folder) {
                files.found.push(folder);
                continue;
            }
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
        files.leave_out_results();
        files.found.sort_unstable();
        files.others.sort_unstable();
        Ok(files)
    }

    /// Chooses the traces and summaries among the paths of files below a folder. Nothing of them may be
    /// hidden, and the files need not exist.
    pub fn among(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let is_hidden = |path: &PathBuf| {
            let mut parts = path.iter().map(|part| part.to_string_lossy());
            parts.any(|part| part.starts_with('.'))
        };
        let shown = paths.into_iter().filter(|path| !is_hidden(path));
        let (found, others) = shown.partition(|path| is_named_like_a_trace(path));
        let mut files = Self { found, others };
        files.leave_out_results();
        files.found.sort_unstable();
        files.others.sort_unstable();
        files
    }

    /// Takes the traces alone of the results of `mindprof run`. Its other files describe the same
    /// events, and some of them are named like a trace.
    fn leave_out_results(&mut self) {
        let all = || self.found.iter().chain(&self.others);
        let folders_of = |is_meant: fn(&str) -> bool| -> BTreeSet<PathBuf> {
            let meant = all().filter(|path| is_meant(&name_of(path)));
            meant
                .filter_map(|path| Some(path.parent()?.to_path_buf()))
                .collect()
        };
        let (traces, results) = (folders_of(is_run_trace), folders_of(is_run_summary));
        let runs: BTreeSet<PathBuf> = traces.intersection(&results).cloned().collect();
        let jobs: BTreeSet<PathBuf> = runs
            .iter()
            .filter_map(|run| Some(run.parent()?.to_path_buf()))
            .collect();
        let parent_of = |path: &Path| path.parent().unwrap_or(Path::new("")).to_path_buf();
        let is_in_run = |path: &PathBuf| runs.contains(&parent_of(path));
        let is_result = |path: &PathBuf| {
            let name = name_of(path);
            let is_of_job = name == JOB && jobs.contains(&parent_of(path));
            is_of_job || (is_in_run(path) && RESULTS.contains(&&*without_window(&name)))
        };
        self.found.retain(|path| !is_result(path));
        self.others.retain(|path| !is_result(path));
        let is_foreign = |path: &mut PathBuf| is_in_run(path) && !is_run_trace(&name_of(path));
        self.others.extend(self.found.extract_if(.., is_foreign));
    }
}

/// Returns whether a file is named like a trace of `mindprof run`: `trace.json.gz`, or
/// `trace-2.json.gz` of its second window.
fn is_run_trace(name: &str) -> bool {
    without_window(name) == "trace.json.gz"
}

fn is_run_summary(name: &str) -> bool {
    RESULTS[..2].contains(&&*without_window(name))
}

/// Returns the name of a file of `mindprof run` without the number of its window.
fn without_window(name: &str) -> Cow<'_, str> {
    let Some((stem, rest)) = name.split_once('-') else {
        return name.into();
    };
    let end = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
    if end.len() == rest.len() {
        return name.into();
    }
    format!("{stem}{end}").into()
}

/// Returns whether a folder is a recording of an Ascend profiler, which has several files for one
/// rank.
fn is_recording(folder: &Path) -> bool {
    folder.ends_with(ASCEND_RESULTS) || folder.join(ASCEND_RESULTS).is_dir()
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

/// Sums up a trace, or reads a summary that was written earlier. Either may be compressed.
///
/// # Errors
/// If the file cannot be read, is neither, or is a trace without events. The error names the file.
pub fn summarize_file(path: &Path) -> Result<Ranks> {
    if path.is_dir() {
        return summarize_trace_file(path);
    }
    let mut input = opened(path)?;
    if begins_like_a_summary(&mut input).at(path)? {
        return summaries_of(input, path);
    }
    // Readers of databases open the file once more, which pipes do not allow.
    if path.is_file() {
        return summarize_trace_file(path);
    }
    let reading = input.into_trace().at(path)?;
    summarize(reading, &name_of(path)).map_err(|error| error.at(path))
}

/// Sums up a trace, or reads a summary, from a stream such as stdin. Errors call it `name`.
///
/// # Errors
/// If the stream cannot be read, is neither, or is a trace without events. The error has the name.
pub fn summarize_stream(stream: impl Read, name: &str) -> Result<Ranks> {
    summarize_sized(stream, 0, name)
}

/// Sums up a trace, or reads a summary, from bytes. `name` is the name of the file that they are of.
///
/// # Errors
/// If the bytes are neither, or a trace without events. The error names the file.
pub fn summarize_bytes(bytes: &[u8], name: &str) -> Result<Ranks> {
    summarize_sized(bytes, bytes.len() as u64, name)
}

fn summarize_sized(stream: impl Read, total: u64, name: &str) -> Result<Ranks> {
    let path = Path::new(name);
    let mut input = Input::open(stream, total, &ReadOptions::default()).at(path)?;
    if begins_like_a_summary(&mut input).at(path)? {
        return summaries_of(input, path);
    }
    let file = name.rsplit('/').next().unwrap_or(name);
    summarize(input.into_trace().at(path)?, file).map_err(|error| error.at(path))
}

/// Reads summaries that were written to a file, which may be compressed.
///
/// # Errors
/// If the file cannot be read or holds no summaries. The error names the file.
pub fn read_ranks(path: &Path) -> Result<Ranks> {
    let file = fs::File::open(path).map_err(|error| Error::from(error).at(path))?;
    read_ranks_from(file, path)
}

/// Reads summaries from a stream such as stdin. Errors call it `name`.
///
/// # Errors
/// If the stream cannot be read or holds no summaries. The error has the name.
pub fn read_ranks_from(stream: impl Read, name: &Path) -> Result<Ranks> {
    let foreign = || Error::from(mindprof_ranks::Error::Foreign).at(name);
    let mut input = match Input::open(stream, 0, &ReadOptions::default()) {
        Err(mindprof_trace::Error::Empty) => return Err(foreign()),
        input => input.at(name)?,
    };
    // A large trace is not read to its end.
    if !begins_like_a_summary(&mut input).at(name)? {
        return Err(foreign());
    }
    summaries_of(input, name)
}

/// Returns whether a file is a summary and no trace. Files that cannot be read are not.
pub(crate) fn is_summary(path: &Path) -> bool {
    opened(path).is_ok_and(|mut input| begins_like_a_summary(&mut input).unwrap_or(false))
}

fn begins_like_a_summary(input: &mut Input<'_>) -> mindprof_trace::Result<bool> {
    input.begins_with(Ranks::MAGIC)
}

fn opened(path: &Path) -> Result<Input<'static>> {
    let open = || {
        let file = fs::File::open(path)?;
        let total = file.metadata()?.len();
        Input::open(file, total, &ReadOptions::default())
    };
    open().at(path)
}

fn summaries_of(input: Input<'_>, name: &Path) -> Result<Ranks> {
    let bytes = input.into_bytes().at(name)?;
    Ranks::from_bytes(&bytes).map_err(|error| Error::from(error).at(name))
}

fn summarize_trace_file(path: &Path) -> Result<Ranks> {
    let options = ReadOptions {
        unknown: UnknownArgs::Describe,
        ..ReadOptions::default()
    };
    let reading = read_trace_file_with(path, &options)?;
    summarize(reading, &name_of(path)).map_err(|error| error.at(path))
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Names the file in an error of reading it.
trait At<T> {
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> At<T> for mindprof_trace::Result<T> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|error| error.at(path).into())
    }
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
        let hidden = folder.path().join(".checkpoints");
        fs::create_dir(&hidden).unwrap();
        for path in [hidden.join("rank2.json"), folder.path().join(".rank3.json")] {
            fs::write(path, "{}").unwrap();
        }
        let files = RankFiles::list(folder.path()).unwrap();
        assert_eq!(
            files.found,
            [inner.join("rank1.json"), folder.path().join("rank0.json")]
        );
        assert_eq!(files.others, [folder.path().join("notes.txt")]);
        assert!(RankFiles::list(&folder.path().join("nowhere")).is_err());
        let names = [
            "node1/rank1.json",
            ".checkpoints/rank2.json",
            "node1/.rank3.json",
            "notes.txt",
        ];
        let files = RankFiles::among(names.map(PathBuf::from));
        assert_eq!(files.found, [Path::new("node1/rank1.json")]);
        assert_eq!(files.others, [Path::new("notes.txt")]);
    }

    #[test]
    fn results_of_a_run_are_their_trace_alone() {
        let names = |names: &[&str]| -> Vec<PathBuf> { names.iter().map(PathBuf::from).collect() };
        let results = [
            "out/job.ranks",
            "out/rank0/functions.json",
            "out/rank0/report.html",
            "out/rank0/summary.json",
            "out/rank0/summary.ranks",
            "out/rank0/trace.json.gz",
            "out/rank1/summary-1.json",
            "out/rank1/summary-2.json",
            "out/rank1/summary.ranks",
            "out/rank1/table-1.txt",
            "out/rank1/trace-1.json.gz",
            "out/rank1/trace-2.json.gz",
        ];
        let files = RankFiles::among(names(&results));
        let traces = [
            "out/rank0/trace.json.gz",
            "out/rank1/trace-1.json.gz",
            "out/rank1/trace-2.json.gz",
        ];
        assert_eq!(files.found, names(&traces));
        // Files that somebody put there are told.
        assert_eq!(files.others, names(&["out/rank0/functions.json"]));
        // In a folder of another kind, nothing is left out.
        let others = [
            "a/summary.json",
            "b/report.html.json",
            "b/trace.json.gz",
            "job.ranks",
            "rank0.json",
        ];
        assert_eq!(RankFiles::among(names(&others)).found, names(&others));
        let inside = RankFiles::among(names(&["summary.json", "trace.json.gz"]));
        assert_eq!(inside.found, names(&["trace.json.gz"]));
    }

    #[test]
    fn folders_of_ascend_profilers_are_one_trace_each() {
        let folder = tempfile::tempdir().unwrap();
        let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");
        let recordings = [5, 6].map(|rank| {
            let recording = folder
                .path()
                .join(format!("host_2026010112000{rank}_ascend_pt"));
            let results = recording.join(ASCEND_RESULTS);
            fs::create_dir_all(&results).unwrap();
            for name in [
                "trace_view.json",
                "kernel_details.csv",
                "step_trace_time.csv",
            ] {
                fs::copy(Path::new(seeds).join(name), results.join(name)).unwrap();
            }
            fs::write(results.join("communication.json"), "{}").unwrap();
            fs::write(recording.join(format!("profiler_info_{rank}.json")), "{}").unwrap();
            recording
        });
        let files = RankFiles::list(folder.path()).unwrap();
        assert_eq!(
            (files.found.as_slice(), files.others.len()),
            (&recordings[..], 0)
        );
        let results = recordings[0].join(ASCEND_RESULTS);
        assert_eq!(RankFiles::list(&results).unwrap().found, [results]);
        let ranks = recordings
            .each_ref()
            .map(|path| summarize_file(path).unwrap());
        let identities = ranks
            .iter()
            .flat_map(Ranks::summaries)
            .map(|summary| &summary.identity);
        let known: Vec<_> = identities
            .map(|identity| (identity.rank, identity.source))
            .collect();
        let by_trace = |rank| (Some(rank), mindprof_ranks::RankSource::Trace);
        assert_eq!(known, [by_trace(5), by_trace(6)]);
    }

    fn gzipped(bytes: &[u8]) -> Vec<u8> {
        use std::io::Write;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn compressed_summaries_are_read_like_plain_ones() {
        let trace = b"{\"distributedInfo\": {\"rank\": 3}, \"traceEvents\": [{\"ph\": \"X\", \
            \"cat\": \"cpu_op\", \"name\": \"mm\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 2}]}";
        let plain = summarize_bytes(trace, "rank3.json").unwrap();
        let packed = gzipped(&plain.to_bytes());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("3.ranks.gz");
        fs::write(&path, &packed).unwrap();
        assert_eq!(summarize_file(&path).unwrap(), plain);
        assert_eq!(read_ranks(&path).unwrap(), plain);
        assert!(is_summary(&path));
        assert_eq!(summarize_bytes(&packed, "3.ranks.gz").unwrap(), plain);
        assert_eq!(summarize_stream(&packed[..], "stdin").unwrap(), plain);
        assert_eq!(
            read_ranks_from(&packed[..], Path::new("stdin")).unwrap(),
            plain
        );
        fs::write(&path, &packed[..packed.len() - 9]).unwrap();
        for error in [summarize_file(&path), read_ranks(&path)].map(Result::unwrap_err) {
            let text = error.to_string();
            assert!(
                text.ends_with("the gzip data is damaged or cut off"),
                "{text}"
            );
        }
    }

    #[test]
    fn only_summaries_are_read_as_summaries() {
        for bytes in [&b""[..], b"{\"traceEvents\": []}", b"mind"] {
            let error = read_ranks_from(bytes, Path::new("stdin")).unwrap_err();
            let text = error.to_string();
            assert!(text.starts_with("stdin: not a summary of ranks"), "{text}");
        }
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
