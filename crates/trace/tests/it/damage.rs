//! The reader accepts any bytes without a panic, and returns a profile or an error.

use std::sync::LazyLock;

use mindprof_trace::read_trace;
use proptest::prelude::*;

use crate::corpus::Session;

/// The first events of a recorded trace, with every kind of argument.
static TRACE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let text = Session::ALL[2].trace();
    let end = text.len().min(12_000);
    let cut = text[..end]
        .windows(4)
        .rposition(|window| window == b"\n  }")
        .unwrap();
    let mut trace = text[..cut].to_vec();
    trace.extend_from_slice(b"\n  }]}");
    trace
});

#[test]
fn the_trace_to_damage_is_whole() {
    assert!(read_trace(&TRACE).unwrap().events().len() > 10);
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_trace(&bytes);
        let mut compressed = vec![0x1f, 0x8b];
        compressed.extend(bytes);
        let _ = read_trace(&compressed);
    }

    #[test]
    fn a_damaged_trace_is_answered(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
        is_cut: bool,
    ) {
        let mut bytes = TRACE.clone();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        let _ = read_trace(&bytes);
    }

    #[test]
    fn any_value_in_any_place_is_answered(
        key in prop::sample::select(vec![
            "ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "Input Dims", "Sequence number",
        ]),
        value in prop::sample::select(vec![
            "null", "true", "-1", "1e308", "1e-308", "\"\"", "\"x\"", "[]", "[[[1]]]", "{}",
            "99999999999999999999999", "-9223372036854775808", "\"\\ud800\"",
        ]),
    ) {
        let mut event = serde_json::Map::new();
        for (known, text) in [("ph", "\"X\""), ("cat", "\"cpu_op\""), ("ts", "1"), ("dur", "1")] {
            event.insert(known.into(), serde_json::from_str(text).unwrap());
        }
        let event = serde_json::to_string(&event).unwrap();
        let inside = &event[..event.len() - 1];
        let _ = read_trace(format!("[{inside},\"{key}\":{value}}}]").as_bytes());
        let _ = read_trace(format!("[{inside},\"args\":{{\"{key}\":{value}}}}}]").as_bytes());
        let _ = read_trace(format!("{{\"{key}\":{value},\"traceEvents\":[{event}]}}").as_bytes());
    }
}
