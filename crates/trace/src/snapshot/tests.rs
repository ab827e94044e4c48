//! Pickles that are refused, and how.

use super::*;
use crate::read_options::ReadOptions;
use crate::scan::Source;

/// Reads a pickle that has these operations after its protocol.
fn refusal(operations: &[u8]) -> String {
    let pickle = [b"\x80\x04", operations].concat();
    let options = ReadOptions::default();
    let source = Source::open(&pickle[..], pickle.len() as u64, &options).unwrap();
    read_snapshot_source(source).unwrap_err().to_string()
}

/// A snapshot without segments whose history has this in it.
fn with_entries(entries: &[u8]) -> Vec<u8> {
    [
        &b"}(\x8c\x08segments]\x8c\x0ddevice_traces]]"[..],
        entries,
        b"aau.",
    ]
    .concat()
}

#[test]
fn operations_that_run_code_are_refused() {
    for (operations, name) in [
        (&b"cos\nsystem\n"[..], "GLOBAL of `os.system`"),
        (
            b"\x8c\x02os\x8c\x06system\x93",
            "STACK_GLOBAL of `os.system`",
        ),
        (b"NNR", "REDUCE"),
        (b"NNb", "BUILD"),
        (b"(ios\nsystem\n", "INST of `os.system`"),
        (b"(No", "OBJ"),
        (b"NN\x81", "NEWOBJ"),
        (b"NNN\x92", "NEWOBJ_EX"),
        (b"\x82\x01", "EXT1"),
        (b"\x83\x01\x00", "EXT2"),
        (b"\x84\x01\x00\x00\x00", "EXT4"),
        (b"Pid\n", "PERSID"),
        (b"NQ", "BINPERSID"),
    ] {
        let text = refusal(operations);
        assert!(text.contains("would run code"), "{text}");
        assert!(text.contains(&format!("{name} at byte")), "{text}");
    }
}

#[test]
fn nests_are_refused() {
    let marked = b"(".repeat(100_000);
    assert!(refusal(&marked).contains("nest more than 64 deep"));
    let lists = [b"]".repeat(1000), b"a".repeat(999)].concat();
    assert!(refusal(&lists).contains("nest more than 64 deep"));
    let tuples = [b")".to_vec(), b"\x85".repeat(100_000)].concat();
    assert!(refusal(&tuples).contains("nest more than 64 deep"));
}

#[test]
fn lengths_that_lie_are_cuts() {
    for operations in [
        &b"X\xff\xff\xff\xffabc"[..],
        b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7fabc",
        b"\x8c\xff",
        b"\x8b\xff\xff\xff\x7f",
        b"B\xff\xff\xff\xff",
        b"\x96\xff\xff\xff\xff\xff\xff\xff\xff",
        b"K",
        b"",
    ] {
        let text = refusal(operations);
        assert!(text.contains("cut off"), "{text}");
    }
}

#[test]
fn a_small_pickle_does_not_take_much_memory() {
    // Each list takes a byte of the file and 32 of memory.
    let lists = refusal(&b"]".repeat(20 << 20));
    assert!(lists.contains("of memory after"), "{lists}");
    let gaps = refusal(b"]r\xff\xff\xff\xff");
    assert!(gaps.contains("gaps in the memo"), "{gaps}");
}

/// 5,000 frames of different lines have the same name of 60,000 bytes.
#[test]
fn texts_that_many_frames_share_are_cut() {
    let mut pickle = b"\x80\x04".to_vec();
    for key in [&b"\x08filename"[..], b"\x04line", b"\x04name"] {
        pickle.push(0x8c);
        pickle.extend(key);
        pickle.extend(b"\x940");
    }
    pickle.extend(b"X\x60\xea\x00\x00");
    pickle.extend(b"n".repeat(60_000));
    // The memo has the keys as 0 to 2, and the long text as 3.
    pickle.extend(b"\x940]");
    for line in 0..5_000_u16 {
        pickle.extend(b"}(h\x00h\x03h\x01M");
        pickle.extend(line.to_le_bytes());
        pickle.extend(b"h\x02h\x03ua");
    }
    pickle.extend(b"0}(\x8c\x08segments]\x8c\x0ddevice_traces]u.");
    let options = ReadOptions::default();
    let source = Source::open(&pickle[..], pickle.len() as u64, &options).unwrap();
    let snapshot = read_snapshot_source(source).unwrap();
    let frames = snapshot.strings.iter().filter(|text| text.contains('('));
    let lengths: Vec<usize> = frames.map(str::len).collect();
    assert_eq!(lengths.len(), 5_000);
    assert!(lengths.iter().all(|&length| length < 1_000));
}

/// Two devices have the same list of entries: such lists could multiply a small file.
#[test]
fn entries_belong_to_one_device() {
    let entry = b"]}(\x8c\x06actionX\x08\x00\x00\x00snapshotua\x94h\x00";
    let pickle = [
        &b"}(\x8c\x08segments]\x8c\x0ddevice_traces]("[..],
        entry,
        b"eu.",
    ]
    .concat();
    let text = refusal(&pickle);
    assert!(text.contains("an entry of another device"), "{text}");
}

#[test]
fn other_pickles_are_not_snapshots() {
    for (operations, part) in [
        (&b"K\x01."[..], "found a number"),
        (b"}.", "found a dictionary"),
        (b"].", "found a list"),
        (b"(K\x01K\x02t.", "found a tuple"),
    ] {
        let text = refusal(operations);
        assert!(text.contains(part), "{text}");
    }
    for (operations, part) in [
        (&b"a"[..], "lacks"),
        (b"(K\x01e", "lacks"),
        (b"u", "lacks its mark"),
        (b"h\x05", "not memoized"),
        (b"\x94", "not there"),
        (b"I1\n", "older"),
        (b"\xfe", "unknown operation 0xfe"),
        (b"}(K\x01u", "without a value"),
        (b"K\x01K\x02.", "belong to nothing"),
        (b"\x80\x09", "found 9"),
        (b"\x97", "buffer"),
    ] {
        let text = refusal(operations);
        assert!(text.contains(part), "{operations:?}: {text}");
    }
}

#[test]
fn entries_have_sizes_and_addresses() {
    let entry = |rest: &[u8]| [&b"}(\x8c\x06action\x8c\x05alloc"[..], rest, b"u"].concat();
    let text = refusal(&with_entries(&entry(b"")));
    assert!(text.contains("in `addr`"), "{text}");
    let text = refusal(&with_entries(&entry(
        b"\x8c\x04addrK\x01\x8c\x04sizeJ\xff\xff\xff\xff",
    )));
    assert!(text.contains("a size of -1"), "{text}");
    let text = refusal(&with_entries(b"K\x01"));
    assert!(text.contains("found a number in `device_traces`"), "{text}");
}
