//! Feeds arbitrary bytes to the reader, which must not panic. A trace that it accepts must round-trip: written
//! and read again it has the same events, with no repairs other than crossing events.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mindprof_trace::{ReadOptions, Repair, read_trace_with, write_trace};

fuzz_target!(|bytes: &[u8]| {
    let Ok(reading) = read_trace_with(bytes, &ReadOptions::default()) else {
        return;
    };
    let mut text = Vec::new();
    write_trace(&reading.profile, "trace.json", &mut text).expect("memory takes all bytes");
    let again = read_trace_with(&text, &ReadOptions::default()).expect("what we wrote is a trace");
    for (repair, count, sentence) in again.repairs.iter() {
        assert_eq!(repair, Repair::Crossing, "{count}: {sentence}");
    }
    assert_eq!(
        again.profile.events().len(),
        reading.profile.events().len()
    );
    assert_eq!(
        again.profile.memory().len(),
        reading.profile.memory().len()
    );
    assert_eq!(
        again.profile.passthrough().unknown_events().len(),
        reading.profile.passthrough().unknown_events().len()
    );
    serde_json::from_slice::<serde::de::IgnoredAny>(&text).expect("what we wrote is JSON");
});
