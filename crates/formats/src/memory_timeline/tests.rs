//! Tests of the files and texts of the memory timeline.

use mindprof_analyze::{Analysis, MemoryDevice, MemoryPlace};
use mindprof_model::{
    DeviceKind, MemoryRecord, Nanos, Part, StackId, StringTable, Thread, ThreadId,
};

use super::*;

const HOST: MemoryPlace = MemoryPlace {
    process: 1,
    device: MemoryDevice::HOST,
};

fn analysis(records: &[(u64, u64, i64)]) -> Analysis {
    let mut builder = Part::new();
    builder.reference_unix_ns = 5_000_000;
    let thread = builder.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    assert_eq!(thread, ThreadId::from_raw(0));
    let name = builder.strings.intern("</script><b>frame");
    let stack = builder.stacks.push(StackId::NONE, name);
    for &(time, address, bytes) in records {
        builder.add_memory(MemoryRecord {
            time: Nanos(time),
            address,
            bytes,
            total_allocated: 0,
            total_reserved: 0,
            thread,
            stack,
            device: DeviceKind::Cpu,
            device_index: -1,
        });
    }
    Analysis::build(builder.into_profile().unwrap())
}

fn text(
    write: impl FnOnce(&Analysis, MemoryPlace, &mut dyn std::io::Write) -> crate::Result<()>,
    records: &[(u64, u64, i64)],
) -> String {
    let mut bytes = Vec::new();
    write(&analysis(records), HOST, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Two blocks in one microsecond, one release in a later one, and a block of before that is given
/// back.
const RECORDS: &[(u64, u64, i64)] = &[
    (1_000, 1, 8),
    (1_999, 2, 4),
    (2_000, 1, -8),
    (7_500, 3, -16),
];

#[test]
fn points_are_one_for_each_microsecond_with_changes() {
    assert_eq!(
        text(write_memory_timeline, RECORDS),
        "[[5001, 5001, 5002, 5007], [[0, 0, 0, 0, 0, 0, 0, 0, 16], [0, 0, 0, 0, 0, 0, 0, 0, 28], \
         [0, 0, 0, 0, 0, 0, 0, 0, 20], [0, 0, 0, 0, 0, 0, 0, 0, 4]]]"
    );
}

#[test]
fn raw_rows_are_one_for_each_change() {
    assert_eq!(
        text(write_memory_timeline_raw, RECORDS),
        "[[-1, 1, 16, 7], [5001000, 2, 8, 7], [5001999, 2, 4, 7], [5002000, 4, -8, 7], \
         [5007500, 4, -16, 7]]"
    );
}

#[test]
fn without_memory_there_are_no_points() {
    assert_eq!(text(write_memory_timeline, &[]), "[[], []]");
    assert_eq!(text(write_memory_timeline_raw, &[]), "[]");
}

#[test]
fn the_summary_says_peak_end_and_holders() {
    let json = memory_summary_json(&analysis(RECORDS), HOST);
    assert_eq!(json["peak_bytes"], 28);
    assert_eq!(json["peak"]["UNKNOWN"], 28);
    assert_eq!(json["categories_known"], false);
    assert_eq!(json["end"]["PARAMETER"], serde_json::Value::Null);
    assert_eq!(json["holders"][0]["preexisting"], true);
    assert_eq!(json["holders"][1]["stack"][0], "</script><b>frame");
}
