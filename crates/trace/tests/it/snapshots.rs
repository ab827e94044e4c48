//! Memory snapshots: torch's own files of a real device.

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use mindprof_model::{AllocatorAction, BlockState, MemorySnapshot};
use mindprof_trace::{Compression, Error, MemoryInput, ReadOptions, read_memory_file};
use mindprof_trace::{read_snapshot, read_trace};

fn path(name: &str) -> PathBuf {
    let goldens = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/goldens/h200-torch2.11"
    );
    PathBuf::from(goldens).join(format!("{name}.snapshot.pickle.gz"))
}

fn bytes(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path(name)).unwrap();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

fn snapshot(name: &str) -> MemorySnapshot {
    read_snapshot(&bytes(name)).unwrap()
}

fn count(snapshot: &MemorySnapshot, action: AllocatorAction) -> usize {
    let entries = &snapshot.devices[0].entries;
    entries
        .iter()
        .filter(|entry| entry.action == action)
        .count()
}

/// The numbers are those of `torch.cuda.memory_stats()` at the time of the snapshot.
#[test]
fn snapshots_of_a_device_are_read() {
    for name in ["mlp", "ring", "native", "expandable", "late"] {
        let snapshot = snapshot(name);
        assert_eq!(snapshot.devices.len(), 1, "{name}");
        let segments = &snapshot.devices[0].segments;
        let reserved: u64 = segments.iter().map(|segment| segment.bytes).sum();
        let blocks = || segments.iter().flat_map(|segment| &segment.blocks);
        let active = || blocks().filter(|block| block.state == BlockState::Allocated);
        assert_eq!(
            active().map(|block| block.bytes).sum::<u64>(),
            93_355_520,
            "{name}"
        );
        assert_eq!(
            active().map(|block| block.requested).sum::<u64>(),
            93_353_996,
            "{name}"
        );
        let expected = if name == "late" {
            253_755_392
        } else {
            232_783_872
        };
        assert_eq!(reserved, expected, "{name}");
        for segment in segments {
            let end = segment
                .blocks
                .last()
                .map(|block| block.address + block.bytes);
            assert_eq!(end, Some(segment.address + segment.bytes));
            assert_eq!(segment.is_expandable, name == "expandable");
        }
        assert_eq!(
            snapshot.settings.expandable_segments,
            Some(name == "expandable")
        );
    }
}

#[test]
fn the_pickles_of_python_and_of_torchs_native_code_are_alike() {
    for name in ["mlp", "native", "expandable"] {
        let snapshot = snapshot(name);
        assert_eq!(count(&snapshot, AllocatorAction::Alloc), 237, "{name}");
        assert_eq!(
            count(&snapshot, AllocatorAction::FreeCompleted),
            219,
            "{name}"
        );
        assert_eq!(
            count(&snapshot, AllocatorAction::SegmentAlloc),
            11,
            "{name}"
        );
        let entry = snapshot.devices[0].entries[1];
        let frames = snapshot.stacks.frames(entry.stack);
        let frames: Vec<&str> = frames.map(|frame| snapshot.strings.text(frame)).collect();
        assert!(
            frames[0].ends_with("torch/nn/modules/module.py(1097): <lambda>"),
            "{frames:?}"
        );
        assert_eq!(*frames.last().unwrap(), "/home/me/train.py(69): <module>");
    }
    assert_eq!(count(&snapshot("native"), AllocatorAction::Mark), 1);
}

#[test]
fn an_out_of_memory_error_has_what_was_free() {
    let snapshot = snapshot("oom");
    let entries = &snapshot.devices[0].entries;
    let last = entries.last().unwrap();
    assert_eq!(last.action, AllocatorAction::OutOfMemory);
    assert_eq!((last.bytes, last.address), (943_718_400, 148_823_474_176));
}

#[test]
fn a_snapshot_that_is_cut_anywhere_is_refused() {
    let whole = bytes("oom");
    for length in (2..whole.len()).step_by(3) {
        let error = read_snapshot(&whole[..length]).unwrap_err();
        assert!(
            matches!(error, Error::PickleTruncated { .. }),
            "{length}: {error}"
        );
    }
    let packed = fs::read(path("oom")).unwrap();
    let error = read_snapshot(&packed[..packed.len() / 2]).unwrap_err();
    assert!(
        matches!(error, Error::Compressed(Compression::Gzip)),
        "{error}"
    );
}

#[test]
fn damaged_bytes_do_not_panic() {
    const VALUES: [u8; 7] = [0, b'(', b'e', b'u', b'h', 0x94, 0xff];
    let whole = bytes("oom");
    for (place, value) in (0..whole.len()).zip(VALUES.into_iter().cycle()) {
        let mut damaged = whole.clone();
        damaged[place] = value;
        drop(read_snapshot(&damaged));
    }
}

#[test]
fn the_content_decides_whether_a_file_is_a_trace_or_a_snapshot() {
    let read = |path: &PathBuf| read_memory_file(path, &ReadOptions::default()).unwrap();
    assert!(matches!(read(&path("oom")), MemoryInput::Snapshot(_)));
    let trace = path("oom").with_file_name("mlp-plain.trace.json.gz");
    assert!(matches!(read(&trace), MemoryInput::Trace(_)));
    let error = read_trace(&bytes("oom")).unwrap_err().to_string();
    assert!(error.contains("`mindprof memory FILE`"), "{error}");
}
