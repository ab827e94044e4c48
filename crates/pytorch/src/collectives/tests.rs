//! Maps as C++ builds them, and what is read of them.

use std::cell::{Cell, RefCell};
use std::ptr;

use super::*;

thread_local! {
    /// The entries of the next map.
    static ENTRIES: RefCell<Vec<(String, String)>> = const { RefCell::new(Vec::new()) };
    /// How often torch's function was called.
    static CALLS: Cell<usize> = const { Cell::new(0) };
    /// A change of the next map.
    static CHANGE: Cell<fn(&mut Map)> = const { Cell::new(|_| ()) };
    /// The addresses that were allocated and are not freed yet, with the words there.
    static LIVE: RefCell<Vec<(*mut c_void, usize)>> = const { RefCell::new(Vec::new()) };
}

fn allocate(words: usize) -> *mut c_void {
    let address = Box::leak(vec![0_u64; words].into_boxed_slice());
    let address = address.as_mut_ptr().cast();
    LIVE.with_borrow_mut(|live| live.push((address, words)));
    address
}

unsafe extern "C" fn delete(address: *mut c_void) {
    let (address, words) = LIVE.with_borrow_mut(|live| {
        let position = live.iter().position(|(known, _)| *known == address);
        live.swap_remove(position.expect("it is allocated and not freed yet"))
    });
    let words = ptr::slice_from_raw_parts_mut(address.cast::<u64>(), words);
    // SAFETY: `allocate` leaked a box of this length, and the address was just forgotten.
    drop(unsafe { Box::from_raw(words) });
}

/// Writes a string as C++ does: up to 15 bytes lie in the string itself, more in memory of its own.
///
/// # Safety
/// The four words of the string can be written.
unsafe fn write_text(string: *mut u64, text: &str) {
    let inside = text.len() < 16;
    // SAFETY: the caller guarantees the string; a longer text has as many bytes as its own memory.
    unsafe {
        let bytes: *mut u8 = if inside {
            string.add(2).cast()
        } else {
            string.add(2).write(text.len() as u64);
            allocate(text.len().div_ceil(8)).cast()
        };
        bytes.copy_from_nonoverlapping(text.as_ptr(), text.len());
        string.write(bytes as u64);
        string.add(1).write(text.len() as u64);
    }
}

unsafe extern "C" fn describe(
    map: *mut Map,
    _record: *const RecordFunction,
    config: *const Config,
) -> *mut Map {
    CALLS.set(CALLS.get() + 1);
    // SAFETY: the caller passes its settings and a map to write to.
    let (map, asked) = unsafe { (&mut *map, &*config) };
    assert_eq!(asked.0[..5], [true, true, false, false, false]);
    let entries = ENTRIES.with_borrow(Vec::clone);
    map.most_load = 1.0;
    map.len = entries.len();
    map.bucket_count = entries.len() + 1;
    map.buckets = if entries.is_empty() {
        &raw mut map.single_bucket
    } else {
        allocate(map.bucket_count).cast()
    };
    for (key, value) in entries {
        let words = allocate(NODE_WORDS).cast::<u64>();
        // SAFETY: an entry has this many words: the next one, two strings and a hash.
        unsafe {
            words.write(map.first as u64);
            write_text(words.add(1), &key);
            write_text(words.add(5), &value);
        }
        map.first = words.cast();
    }
    CHANGE.get()(map);
    map
}

fn told(entries: &[(&str, &str)], understanding: &Understanding) -> Option<Arguments> {
    let owned = entries
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()));
    ENTRIES.set(owned.collect());
    let symbols = CollectiveSymbols { describe, delete };
    // SAFETY: the stand-in does not use the record.
    unsafe { symbols.describe(ptr::null(), understanding) }
}

fn live() -> usize {
    LIVE.with_borrow(Vec::len)
}

const ALLREDUCE: [(&str, &str); 6] = [
    ("Seq", "5"),
    ("Collective name", "\"allreduce\""),
    ("Process Group Description", "\"default_pg\""),
    ("Is asynchronized op", "true"),
    ("In msg nelems", "2049000"),
    ("Group size", "2"),
];

#[test]
fn arguments_are_in_the_order_of_their_names_and_varying_numbers_are_set_apart() {
    let understanding = Understanding::new();
    for _ in 0..2 {
        let found = told(&ALLREDUCE, &understanding).unwrap();
        let text = concat!(
            r#""Collective name":"allreduce","Group size":2,"In msg nelems":"#,
            "\0,",
            r#""Is asynchronized op":true,"Process Group Description":"default_pg","Seq":"#,
            "\0"
        );
        assert_eq!(found.text, text);
        assert_eq!(found.numbers, [2_049_000, 5]);
        assert_eq!(live(), 0, "everything is freed");
    }
}

#[test]
fn a_scope_without_a_description_has_no_arguments_and_tells_nothing_about_the_next() {
    let understanding = Understanding::new();
    assert_eq!(told(&[], &understanding), None);
    assert!(told(&ALLREDUCE, &understanding).is_some());
    assert_eq!(told(&[], &understanding), None);
    assert_eq!(live(), 0);
}

#[test]
fn a_map_that_is_not_as_declared_is_left_alone_and_torch_is_not_asked_again() {
    let changes: [fn(&mut Map); 6] = [
        |map| map.most_load = 0.5,
        |map| map.bucket_count = 1,
        |map| map.len += 1,
        |map| map.len -= 1,
        |map| map.first = ptr::without_provenance_mut(64),
        |map| map.spare[3] = 1,
    ];
    for change in changes {
        let understanding = Understanding::new();
        CHANGE.set(change);
        CALLS.set(0);
        assert_eq!(told(&ALLREDUCE, &understanding), None);
        let allocated = live();
        assert!(allocated > 0, "nothing is freed");
        CHANGE.set(|_| ());
        assert_eq!(told(&ALLREDUCE, &understanding), None);
        assert_eq!((CALLS.get(), live()), (1, allocated));
    }
}

#[test]
fn a_map_without_the_arguments_of_every_collective_is_not_understood() {
    for left_out in ["Collective name", "Group size"] {
        let entries = ALLREDUCE.into_iter().filter(|(key, _)| *key != left_out);
        let entries: Vec<_> = entries.collect();
        assert_eq!(told(&entries, &Understanding::new()), None, "{left_out}");
    }
}

#[test]
fn a_string_is_examined_before_its_bytes_are_read() {
    let long = *b"a text that is long enough......";
    let at = long.as_ptr() as u64;
    let aligned = at.is_multiple_of(8);
    assert_eq!(examined_text([at, 32, 32], 0).is_some(), aligned);
    assert_eq!(examined_text([at, 33, 32], 0), None, "longer than its room");
    assert_eq!(examined_text([64, 20, 32], 0), None, "not readable");
    assert_eq!(
        examined_text([at, 16, 0], at),
        None,
        "too long for the string itself"
    );
    assert_eq!(examined_text([at, 0, 15], 0).as_deref(), Some(""));
}

fn added(key: &str, value: &str) -> (String, Vec<u64>) {
    let mut arguments = Arguments::default();
    arguments.add(key, value);
    (arguments.text, arguments.numbers)
}

#[test]
fn texts_become_json_and_what_is_neither_a_text_nor_a_number_is_left_out() {
    let constant = |value| added("a \"key\"", value).0;
    assert_eq!(
        constant("\"b \"c\" \\ \n\""),
        r#""a \"key\"":"b \"c\" \\ \u000a""#
    );
    assert_eq!(constant("\"\0\""), r#""a \"key\"":"\u0000""#);
    assert_eq!(constant("-12"), r#""a \"key\"":-12"#);
    assert_eq!(constant("false"), r#""a \"key\"":false"#);
    for value in ["", "-", "012", "1.5", "\"", "nan", "[1]", "1,\"b\":2"] {
        assert_eq!(constant(value), "", "{value}");
    }
}

#[test]
fn numbers_of_lists_are_set_apart() {
    assert_eq!(
        added("In split size", "\"[1, 20, ..., 3]\""),
        (
            "\"In split size\":\"[\0, \0, ..., \0]\"".to_owned(),
            vec![1, 20, 3]
        )
    );
    let empty = ("\"Out split size\":\"[]\"".to_owned(), vec![]);
    assert_eq!(added("Out split size", "\"[]\""), empty);
    // A number that is not written as it is read stays as it is.
    let large = ("\"Seq\":18446744073709551616".to_owned(), vec![]);
    assert_eq!(added("Seq", "18446744073709551616"), large);
    assert_eq!(added("Seq", "-1"), ("\"Seq\":-\0".to_owned(), vec![1]));
    let zeros = ("\"In split size\":\"[00]\"".to_owned(), vec![]);
    assert_eq!(added("In split size", "\"[00]\""), zeros);
    assert_eq!(added("In split size", "\"a\"").1, []);
}
