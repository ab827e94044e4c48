//! The traces of several ranks as one archive that Perfetto opens on one clock.
//!
//! ```text
//! rank0.pftrace              the trace of each rank, with the times of its own clock
//! rank1.pftrace
//! perfetto_manifest.json     the offsets between the clocks, and a machine for each rank
//! ```
//!
//! The archive is a TAR file, and the manifest has Perfetto's format of version 1. Unlike
//! [`crate::merge_rank_traces`], it needs the events of one rank at a time in memory.

use std::io::Write;
use std::path::Path;

use mindprof_model::Profile;
use mindprof_ranks::Alignment;
use mindprof_trace::{write_file, write_perfetto};
use serde_json::{Value, json};

use crate::error::Result;
use crate::rank_trace::{RankTrace, merge_rank_traces};

/// Perfetto finds the manifest by its content; this is the name that Perfetto gives it.
const MANIFEST: &str = "perfetto_manifest.json";

/// The clock that [`write_perfetto`] counts from the beginning of a recording.
const CLOCK: &str = "BOOTTIME";

/// A TAR file consists of blocks of so many bytes.
const BLOCK: usize = 512;

/// Returns whether the name of a file selects an archive of ranks.
pub fn is_rank_archive(path: &Path) -> bool {
    let ending = path.extension().unwrap_or_default();
    ending.eq_ignore_ascii_case("tar")
}

/// Writes the traces of ranks as an archive, and returns the number of events.
///
/// # Errors
/// If a file cannot be read or is a summary, or `out` does not take the bytes. An error of a trace
/// names its file.
pub fn write_rank_archive(traces: &[RankTrace], out: &mut dyn Write) -> Result<u64> {
    let (mut members, mut events) = (Vec::with_capacity(traces.len()), 0);
    for (place, trace) in traces.iter().enumerate() {
        let own = RankTrace {
            // The manifest has the offset.
            alignment: Alignment::Unknown,
            ..trace.clone()
        };
        let profile = merge_rank_traces(&[own])?;
        let member = Member::of(place, trace, &profile);
        let mut bytes = Vec::new();
        write_perfetto(&profile, &mut bytes)?;
        events += profile.events().len() as u64;
        write_member(&member.path, &bytes, out)?;
        members.push(member);
    }
    let manifest = manifest(&members);
    write_member(MANIFEST, manifest.to_string().as_bytes(), out)?;
    // Two blocks of zeros end the archive.
    out.write_all(&[0; 2 * BLOCK])?;
    Ok(events)
}

/// Writes the traces of ranks to an archive file.
///
/// # Errors
/// If a file cannot be read, is a summary, or cannot be written. The error names the file.
pub fn write_rank_archive_file(traces: &[RankTrace], path: &Path) -> Result<()> {
    write_file(path, |out| write_rank_archive(traces, out).map(drop))
}

/// A trace in the archive.
#[derive(Clone, Debug)]
struct Member {
    path: String,
    /// The name of its machine. Perfetto shows each machine apart from the others.
    machine: String,
    /// The beginning of its recording on the clock of the job, in nanoseconds since the Unix epoch, if
    /// its clock is known.
    start: Option<i128>,
}

impl Member {
    fn of(place: usize, trace: &RankTrace, profile: &Profile) -> Self {
        let offset = match trace.alignment {
            Alignment::Aligned(offset) => Some(offset),
            Alignment::Unknown | Alignment::LeftOut => None,
        };
        let own = i128::from(profile.reference_unix_ns());
        let (path, machine) = match trace.rank {
            Some(rank) => (format!("rank{rank}.pftrace"), format!("rank {rank}")),
            None => (format!("file{place}.pftrace"), format!("file {place}")),
        };
        Self {
            path,
            machine,
            start: offset.map(|offset| own + i128::from(offset)),
        }
    }
}

/// Returns the manifest. The clock of the archive is that of the rank whose recording begins first,
/// because Perfetto drops events before its beginning.
fn manifest(members: &[Member]) -> Value {
    let known = members.iter().filter(|member| member.start.is_some());
    let first = known.min_by_key(|member| member.start);
    let entry = |member: &Member| {
        let mut entry = json!({"path": member.path, "machine": {"name": member.machine}});
        if let (Some(first), Some(start)) = (first, member.start)
            && first.path != member.path
        {
            let offset = start - first.start.unwrap_or(start);
            entry["clocks"] = json!({
                "clock": CLOCK,
                "sync_to": {"file": first.path, "clock": CLOCK},
                "offset_ns": i64::try_from(offset).unwrap_or(i64::MAX),
            });
        }
        entry
    };
    let files: Vec<Value> = members.iter().map(entry).collect();
    let mut content = json!({"version": 1, "files": files});
    if let Some(first) = first {
        content["trace_time"] = json!({"clock": CLOCK, "file": first.path});
    }
    // Perfetto expects this key first, and it is the only one.
    json!({"perfetto_manifest": content})
}

/// Writes a file of the archive: a header of one block, and the bytes, filled up to whole blocks.
fn write_member(name: &str, bytes: &[u8], out: &mut dyn Write) -> Result<()> {
    out.write_all(&header(name, bytes.len()))?;
    out.write_all(bytes)?;
    let rest = bytes.len().next_multiple_of(BLOCK) - bytes.len();
    out.write_all(&[0; BLOCK][..rest])?;
    Ok(())
}

/// Returns the header of a file in the format `ustar`. Numbers are octal text, and the checksum is the
/// sum of all bytes, its own counted as spaces.
fn header(name: &str, size: usize) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |place: usize, text: &[u8]| {
        header[place..place + text.len()].copy_from_slice(text);
    };
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    match u64::try_from(size).unwrap_or(u64::MAX) {
        size if size < 1 << 33 => put(124, format!("{size:011o}\0").as_bytes()),
        // Larger sizes are binary, marked by their first bit.
        size => {
            put(124, &[0x80, 0, 0, 0]);
            put(128, &size.to_be_bytes());
        }
    }
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::summarize_file;

    /// Returns the names and bytes of an archive, and checks its headers.
    fn unpacked(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
        let (mut at, mut found) = (0, Vec::new());
        while archive[at] != 0 {
            let header = &archive[at..at + BLOCK];
            let text = |from: usize, to: usize| {
                let field = &header[from..to];
                let end = field
                    .iter()
                    .position(|&byte| byte == 0)
                    .unwrap_or(to - from);
                String::from_utf8(field[..end].to_vec()).unwrap()
            };
            let size = usize::from_str_radix(&text(124, 136), 8).unwrap();
            let sum: u32 = (0..BLOCK)
                .map(|place| match place {
                    148..156 => u32::from(b' '),
                    place => u32::from(header[place]),
                })
                .sum();
            assert_eq!(u32::from_str_radix(&text(148, 154), 8).unwrap(), sum);
            let begin = at + BLOCK;
            found.push((text(0, 100), archive[begin..begin + size].to_vec()));
            at = begin + size.next_multiple_of(BLOCK);
        }
        assert!(archive[at..].iter().all(|&byte| byte == 0) && archive.len() - at == 2 * BLOCK);
        found
    }

    fn trace(rank: u32, base_ns: u64) -> String {
        let event = "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, \
             \"tid\": 7, \"ts\": 5, \"dur\": 2, \"args\": {}}";
        format!(
            "{{\"baseTimeNanoseconds\": {base_ns}, \"distributedInfo\": {{\"rank\": {rank}}}, \
             \"traceEvents\": [{event}]}}"
        )
    }

    #[test]
    fn the_manifest_puts_all_ranks_on_the_clock_of_the_first_recording() {
        let folder = tempfile::tempdir().unwrap();
        let base = 1_700_000_000_000_000_000;
        let alignments = [
            Alignment::Aligned(0),
            Alignment::Aligned(-700),
            Alignment::Unknown,
        ];
        let traces: Vec<RankTrace> = (0..3)
            .zip(alignments)
            .map(|(rank, alignment)| {
                let path: PathBuf = folder.path().join(format!("{rank}.json"));
                // The second recording begins earlier, although its clock is ahead.
                let begin = base + [1_000, 500, 0][rank as usize];
                std::fs::write(&path, trace(rank, begin)).unwrap();
                summarize_file(&path).unwrap();
                RankTrace {
                    path,
                    rank: Some(rank),
                    alignment,
                }
            })
            .collect();
        let mut archive = Vec::new();
        assert_eq!(write_rank_archive(&traces, &mut archive).unwrap(), 3);
        let files = unpacked(&archive);
        let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            ["rank0.pftrace", "rank1.pftrace", "rank2.pftrace", MANIFEST]
        );
        let manifest = std::str::from_utf8(&files[3].1).unwrap();
        assert!(manifest.starts_with("{\"perfetto_manifest\""));
        let sync = json!({"file": "rank1.pftrace", "clock": "BOOTTIME"});
        assert_eq!(
            serde_json::from_str::<Value>(manifest).unwrap(),
            json!({"perfetto_manifest": {
                "version": 1,
                "trace_time": {"clock": "BOOTTIME", "file": "rank1.pftrace"},
                "files": [
                    {
                        "path": "rank0.pftrace",
                        "machine": {"name": "rank 0"},
                        "clocks": {"clock": "BOOTTIME", "sync_to": sync, "offset_ns": 1_200},
                    },
                    {"path": "rank1.pftrace", "machine": {"name": "rank 1"}},
                    {"path": "rank2.pftrace", "machine": {"name": "rank 2"}},
                ],
            }})
        );
        let path = folder.path().join("job.tar");
        assert!(is_rank_archive(&path) && !is_rank_archive(Path::new("job.pftrace")));
        write_rank_archive_file(&traces, &path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), archive);
    }

    #[test]
    fn sizes_beyond_octal_text_are_binary() {
        let large = header("rank0.pftrace", 1 << 33);
        assert_eq!(large[124..136], [0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0]);
        assert_eq!(&header("rank0.pftrace", 511)[124..136], b"00000000777\0");
    }
}
