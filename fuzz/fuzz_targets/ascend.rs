//! Damages files of Ascend profilers: a database, tables and a trace. The readers must not panic, and a profile that
//! they accept must be writable as a trace that is read again.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use mindprof_trace::{ReadOptions, read_trace_with, write_trace};

/// Files of each kind, small enough to be damaged everywhere.
const FILES: [&[u8]; 7] = [
    include_bytes!("../seeds/ascend.db"),
    include_bytes!("../seeds/kernel_details.csv"),
    include_bytes!("../seeds/memory_record.csv"),
    include_bytes!("../seeds/npu_module_mem.csv"),
    include_bytes!("../seeds/operator_details.csv"),
    include_bytes!("../seeds/step_trace_time.csv"),
    include_bytes!("../seeds/trace_view.json"),
];

#[derive(Arbitrary, Debug)]
struct Damage {
    file: u8,
    /// Bytes to overwrite, as positions and values.
    bytes: Vec<(u16, u8)>,
    /// Bytes to insert.
    inserted: Option<(u16, Vec<u8>)>,
    /// The length to cut the file to.
    cut: Option<u16>,
}

fuzz_target!(|damage: Damage| {
    let mut file = FILES[usize::from(damage.file) % FILES.len()].to_vec();
    for (place, value) in damage.bytes {
        let place = usize::from(place) % file.len();
        file[place] = value;
    }
    if let Some((place, bytes)) = damage.inserted {
        let place = usize::from(place) % file.len();
        file.splice(place..place, bytes);
    }
    if let Some(cut) = damage.cut {
        file.truncate(usize::from(cut));
    }
    let Ok(reading) = read_trace_with(&file, &ReadOptions::default()) else {
        return;
    };
    let mut text = Vec::new();
    write_trace(&reading.profile, "trace.json", &mut text).expect("memory takes all bytes");
    let again = read_trace_with(&text, &ReadOptions::default()).expect("what we wrote is a trace");
    assert_eq!(again.profile.events().len(), reading.profile.events().len());
});
