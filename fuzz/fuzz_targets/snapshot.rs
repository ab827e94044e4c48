//! Damages memory snapshots, and runs pickles that are made of operations. The reader must not panic, and a snapshot
//! that it accepts must have sums that can be computed.

#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use mindprof_answers::{OwnCode, SnapshotMemory};
use mindprof_trace::read_snapshot;

/// Snapshots of Python's and of torch's native pickler.
const FILES: [&[u8]; 2] = [
    include_bytes!("../seeds/snapshot.pickle"),
    include_bytes!("../seeds/native_snapshot.pickle"),
];

/// Operations without data, which are worth more than random bytes.
const OPERATIONS: &[u8] = b"(.N\x88\x89}])\x85\x86\x87tldaseu\x90\x94012\x8f\x91";

#[derive(Arbitrary, Debug)]
struct Damage {
    file: u8,
    /// Bytes to overwrite, as positions and values.
    bytes: Vec<(u16, u8)>,
    /// Operations to insert at positions.
    operations: Vec<(u16, u8)>,
    /// Bytes to insert.
    inserted: Option<(u16, Vec<u8>)>,
    /// The length to cut the file to.
    cut: Option<u16>,
    /// A file of its own instead of a damaged one.
    whole: Option<Vec<u8>>,
}

fuzz_target!(|damage: Damage| {
    let mut file = FILES[usize::from(damage.file) % FILES.len()].to_vec();
    for (place, value) in damage.bytes {
        let place = usize::from(place) % file.len();
        file[place] = value;
    }
    for (place, operation) in damage.operations {
        let place = usize::from(place) % file.len();
        file.insert(place, OPERATIONS[usize::from(operation) % OPERATIONS.len()]);
    }
    if let Some((place, bytes)) = damage.inserted {
        let place = usize::from(place) % file.len();
        file.splice(place..place, bytes);
    }
    if let Some(cut) = damage.cut {
        file.truncate(usize::from(cut));
    }
    if let Some(whole) = damage.whole {
        file = whole;
    }
    if let Ok(snapshot) = read_snapshot(&file) {
        let memory = SnapshotMemory::build(&snapshot, &OwnCode::default());
        assert_eq!(memory.devices.len(), snapshot.devices.len());
    }
});
