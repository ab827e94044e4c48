//! Measures how fast traces are written, in bytes of JSON per second, on a recorded training step
//! that is repeated to about 80 MB.

#![expect(clippy::print_stdout, reason = "sizes are told beside the times")]

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use divan::Bencher;
use divan::counter::BytesCount;
use flate2::Compression;
use flate2::write::GzEncoder;
use mindprof_model::{EventId, Nanos, Part, Profile};
use mindprof_trace::{
    read_trace_file, write_file, write_perfetto, write_perfetto_file, write_trace, write_trace_file,
};

fn main() {
    divan::main();
}

/// Returns a profile with a recorded session repeated 20 times.
fn repeated() -> Profile {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/goldens/h200-torch2.11/gpt-full.trace.json.gz");
    let golden = read_trace_file(&path).expect("the golden trace is there");
    let mut builder = Part::new();
    builder.reference_unix_ns = golden.reference_unix_ns();
    builder.strings = golden.strings().clone();
    builder.inputs = golden.inputs().clone();
    builder.stacks = golden.stacks().clone();
    for thread in golden.threads() {
        builder.add_thread(*thread);
    }
    for round in 0..20 {
        let shift = Nanos(golden.span().0 * round);
        for (index, event) in golden.events().iter().enumerate() {
            let mut event = *event;
            event.start = event.start + shift;
            let links = golden.links(EventId::from_index(index));
            builder.add_linked_event(event, links.unwrap_or_default());
        }
        for mut record in golden.memory() {
            record.time = record.time + shift;
            builder.add_memory(record);
        }
    }
    builder
        .into_profile()
        .expect("the parts are those of a profile")
}

fn json(profile: &Profile) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_trace(profile, "trace.json", &mut bytes).expect("memory takes all bytes");
    bytes
}

/// Writes into existing memory.
struct Reused<'a>(&'a mut [u8], usize);

impl Write for Reused<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0[self.1..self.1 + bytes.len()].copy_from_slice(bytes);
        self.1 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[divan::bench(sample_count = 10)]
fn json_to_memory(bencher: Bencher<'_, '_>) {
    let profile = repeated();
    let mut bytes = json(&profile);
    bencher
        .counter(BytesCount::new(bytes.len()))
        .bench_local(|| write_trace(&profile, "trace.json", Reused(&mut bytes, 0)));
}

#[divan::bench(sample_count = 10)]
fn json_to_a_file(bencher: Bencher<'_, '_>) {
    to_a_file(bencher, "trace.json", write_trace_file);
}

#[divan::bench(sample_count = 5)]
fn compressed_json_to_a_file(bencher: Bencher<'_, '_>) {
    to_a_file(bencher, "trace.json.gz", write_trace_file);
}

/// Writes the same file with flate2's own encoder at the level of `Effort::Fast`: the simple
/// version that `files/gzip.rs` is compared with.
#[divan::bench(sample_count = 5)]
fn compressed_json_to_a_file_by_one_thread(bencher: Bencher<'_, '_>) {
    to_a_file(bencher, "trace.json.gz", |profile, path| {
        write_file(path.with_extension("one").as_path(), |out| {
            let mut encoder = GzEncoder::new(out, Compression::new(2));
            write_trace(profile, "trace.json", &mut encoder)?;
            encoder.finish()?;
            Ok(())
        })
    });
}

#[divan::bench(sample_count = 5)]
fn packets_to_a_file(bencher: Bencher<'_, '_>) {
    to_a_file(bencher, "trace.pftrace", write_perfetto_file);
}

fn to_a_file(
    bencher: Bencher<'_, '_>,
    name: &str,
    write: fn(&Profile, &Path) -> mindprof_trace::Result<()>,
) {
    let profile = repeated();
    let folder = tempfile::tempdir().expect("there is room for files");
    let path = folder.path().join(name);
    bencher
        .counter(BytesCount::new(json(&profile).len()))
        .bench_local(|| write(&profile, &path));
}

/// Compresses finished JSON.
#[divan::bench(args = [1, 2, 3, 4, 5, 6], sample_count = 3)]
fn gzip_at_level(bencher: Bencher<'_, '_>, level: u32) {
    let bytes = json(&repeated());
    let mut size = 0;
    bencher
        .counter(BytesCount::new(bytes.len()))
        .bench_local(|| {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
            encoder.write_all(&bytes).expect("memory takes all bytes");
            size = encoder.finish().expect("memory takes all bytes").len();
        });
    println!(
        "level {level}: {:.1} times smaller",
        bytes.len() as f64 / size as f64
    );
}

/// Writes finished bytes to a file: the upper limit.
#[divan::bench(sample_count = 10)]
fn ready_bytes_to_a_file(bencher: Bencher<'_, '_>) {
    let bytes = json(&repeated());
    let folder = tempfile::tempdir().expect("there is room for files");
    let path = folder.path().join("bytes");
    bencher
        .counter(BytesCount::new(bytes.len()))
        .bench_local(|| File::create(&path).and_then(|mut file| file.write_all(&bytes)));
}

#[divan::bench(sample_count = 5)]
fn packets_to_memory(bencher: Bencher<'_, '_>) {
    let profile = repeated();
    let json = json(&profile);
    let mut size = 0;
    bencher
        .counter(BytesCount::new(json.len()))
        .bench_local(|| {
            let mut packets = Vec::new();
            write_perfetto(&profile, &mut packets).expect("memory takes all bytes");
            size = packets.len();
        });
    println!(
        "packets: {:.1} times smaller",
        json.len() as f64 / size as f64
    );
}
