//! The arguments of collectives: process group, message and number, as torch's own profiler writes
//! them.
//!
//! A process group opens a scope of a fixed name around each collective and describes it in a slot
//! of the thread. torch's function turns the description into texts; it is there with or without
//! inputs. The recorder keeps the texts of equal collectives once, and their numbers apart.

#![expect(
    unsafe_code,
    reason = "torch returns a C++ object, which is read in place and freed"
)]

use std::ffi::{CStr, c_void};
use std::fmt::Write;
use std::sync::atomic::{AtomicU8, Ordering};

use mindprof_frames::{read_many, read_words};
use mindprof_record::ARGUMENT_NUMBER;

use crate::error::Result;
use crate::kineto_symbols::Text;
use crate::symbols::{LookUp, RecordFunction, function, global};

/// The name of the scope around a collective.
pub(crate) const COLLECTIVE: &str = "record_param_comms";

/// torch's function that describes the collective of the calling thread, and the `delete` that
/// frees the description.
#[derive(Clone, Copy)]
pub(crate) struct CollectiveSymbols {
    /// Writes the map into its first argument and returns that.
    describe: unsafe extern "C" fn(*mut Map, *const RecordFunction, *const Config) -> *mut Map,
    delete: unsafe extern "C" fn(*mut c_void),
}

/// torch's `SaveNcclMetaConfig`: whether long lists are shortened, and whether the collective, its
/// inputs and its outputs are described. torch's own profiler asks for these. Fields of later
/// versions are false.
#[repr(C)]
struct Config([bool; 64]);

impl Config {
    const LIKE_TORCH: Self = {
        let mut fields = [false; 64];
        fields[0] = true;
        fields[1] = true;
        Self(fields)
    };
}

/// A `std::unordered_map<std::string, std::string>` of libstdc++.
#[repr(C)]
struct Map {
    buckets: *mut *mut Node,
    bucket_count: usize,
    first: *mut Node,
    len: usize,
    most_load: f32,
    next_resize: usize,
    single_bucket: *mut Node,
    /// Unused, in case that another version of torch returns something larger.
    spare: [u64; 25],
}

/// An entry of the map.
#[repr(C)]
struct Node {
    next: *mut Node,
    key: Text,
    value: Text,
    hash: usize,
}

const NODE_WORDS: usize = size_of::<Node>() / 8;
const _: () = assert!(NODE_WORDS == 10 && size_of::<Text>() == 32);

/// Whether the map is as declared here: it is examined when the first collective is described, by
/// reads that cannot fault. A map that is not is never read or freed, and torch is not asked again.
#[derive(Debug, Default)]
pub(crate) struct Understanding(AtomicU8);

impl Understanding {
    const UNKNOWN: u8 = 0;
    const UNDERSTOOD: u8 = 1;
    const REFUSED: u8 = 2;

    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(Self::UNKNOWN))
    }

    fn is_refused(&self) -> bool {
        self.is(Self::REFUSED)
    }

    fn is(&self, state: u8) -> bool {
        // Relaxed: the state guards no other memory, and two threads that examine a map each come
        // to the same result.
        self.0.load(Ordering::Relaxed) == state
    }

    /// Returns whether a map that is not empty may be read.
    fn examine(&self, map: &Map) -> bool {
        if self.is(Self::UNKNOWN) {
            let state = if map.is_as_declared() {
                Self::UNDERSTOOD
            } else {
                Self::REFUSED
            };
            // Relaxed: as above.
            self.0.store(state, Ordering::Relaxed);
        }
        self.is(Self::UNDERSTOOD)
    }
}

/// The arguments of a collective, as [`mindprof_record::OpenScope::set_arguments`] takes them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) text: String,
    pub(crate) numbers: Vec<u64>,
}

impl CollectiveSymbols {
    /// # Safety
    /// As for [`crate::Symbols::resolve`].
    pub(crate) unsafe fn resolve(look_up: LookUp<'_>) -> Result<Self> {
        const DESCRIBE: &CStr = c"_ZN5torch8profiler4impl12saveNcclMetaB5cxx11ERKN2at14RecordFunctionERKNS1_18SaveNcclMetaConfigE";
        // SAFETY: the first name contains its types and that the result has strings of the new ABI;
        // the result is examined before it is read. The second name is that of the global
        // `operator delete(void*)`.
        unsafe {
            Ok(Self {
                describe: function(look_up, DESCRIBE)?,
                delete: function(&|name| global(name).or_else(|| look_up(name)), c"_ZdlPv")?,
            })
        }
    }

    /// Returns the arguments of the collective that this thread begins. Returns `None` if torch
    /// does not describe it, or in a way that is not understood.
    ///
    /// # Safety
    /// The record is a live `RecordFunction` of torch's.
    #[cold]
    pub(crate) unsafe fn describe(
        &self,
        record: *const RecordFunction,
        understanding: &Understanding,
    ) -> Option<Arguments> {
        if understanding.is_refused() {
            return None;
        }
        let mut map = Map::EMPTY;
        // SAFETY: the caller guarantees a live record. torch's function constructs the map in
        // place, and throws nothing but what a lack of memory throws.
        unsafe { (self.describe)(&raw mut map, record, &Config::LIKE_TORCH) };
        if map.len == 0 || !understanding.examine(&map) {
            return None;
        }
        // SAFETY: maps of this torch are as declared, and this one was just constructed.
        unsafe {
            let arguments = Arguments::of(&map);
            map.free(self.delete);
            Some(arguments)
        }
    }
}

impl Map {
    const EMPTY: Self = Self {
        buckets: std::ptr::null_mut(),
        bucket_count: 0,
        first: std::ptr::null_mut(),
        len: 0,
        most_load: 0.0,
        next_resize: 0,
        single_bucket: std::ptr::null_mut(),
        spare: [0; 25],
    };

    /// More entries, and longer texts, than torch writes.
    const MOST_ENTRIES: usize = 256;
    const LONGEST_TEXT: u64 = 1 << 16;

    /// Examines the map with reads that cannot fault: its entries are as many as it has, each with
    /// two texts, and among them are those that every collective has.
    fn is_as_declared(&self) -> bool {
        let is_a_map = self.len <= Self::MOST_ENTRIES
            && self.bucket_count >= self.len
            && self.most_load.to_bits() == 1.0_f32.to_bits()
            && self.spare == [0; 25];
        if !is_a_map {
            return false;
        }
        let (mut has_name, mut has_size) = (false, false);
        let mut address = self.first as u64;
        for _ in 0..self.len {
            let Some(words) = read_words::<NODE_WORDS>(address) else {
                return false;
            };
            let text = |word: usize| {
                let words = [words[word], words[word + 1], words[word + 2]];
                examined_text(words, address + 8 * (word as u64 + 2))
            };
            let (Some(key), Some(value)) = (text(1), text(5)) else {
                return false;
            };
            has_name |= key == "Collective name" && quoted(&value).is_some();
            has_size |= key == "Group size" && value.parse::<u32>().is_ok();
            address = words[0];
        }
        address == 0 && has_name && has_size
    }

    /// Iterates over the entries.
    ///
    /// # Safety
    /// The map is as declared.
    unsafe fn entries(&self) -> impl Iterator<Item = &Node> {
        // SAFETY: the caller guarantees that entries form a list that ends in a null pointer.
        let node = |node: *mut Node| unsafe { node.as_ref() };
        std::iter::successors(node(self.first), move |last| node(last.next))
    }

    /// Frees everything that the map owns.
    ///
    /// # Safety
    /// The map is as declared and not used again. `delete` is that of the `new` by which torch
    /// allocates.
    unsafe fn free(&mut self, delete: unsafe extern "C" fn(*mut c_void)) {
        let mut next = self.first;
        while !next.is_null() {
            let node = next;
            // SAFETY: the caller guarantees a live entry, which owns its texts. It is freed once.
            unsafe {
                next = (*node).next;
                (*node).key.free(delete);
                (*node).value.free(delete);
                delete(node.cast());
            }
        }
        let single = &raw mut self.single_bucket;
        if self.buckets != single && !self.buckets.is_null() {
            // SAFETY: a map with more than one bucket allocated them.
            unsafe { delete(self.buckets.cast()) };
        }
        *self = Self::EMPTY;
    }
}

/// Reads a `std::string` whose room for short texts lies at `room`, or returns `None` if it is not one.
/// The words are the address of its bytes, their number, and how many fit if they are elsewhere.
fn examined_text([begin, len, capacity]: [u64; 3], room: u64) -> Option<String> {
    let is_short = begin == room;
    let fits = if is_short {
        len < 16
    } else {
        capacity >= 15 && len <= capacity && len <= Map::LONGEST_TEXT
    };
    let mut words = vec![0; len.div_ceil(8) as usize];
    if !fits || !(words.is_empty() || read_many(begin, &mut words)) {
        return None;
    }
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    String::from_utf8(bytes.take(len as usize).collect()).ok()
}

impl Arguments {
    /// The arguments whose numbers differ from one collective to the next.
    const VARYING: [&str; 6] = [
        "Comms Id",
        "In msg nelems",
        "In split size",
        "Out msg nelems",
        "Out split size",
        "Seq",
    ];

    /// Reads the entries of a map, in the order of their keys.
    ///
    /// # Safety
    /// The map is as declared.
    unsafe fn of(map: &Map) -> Self {
        // SAFETY: the caller guarantees a map as declared.
        let entries = unsafe { map.entries() };
        let entries = entries.map(|node| [&node.key, &node.value].map(lossy));
        let mut entries: Vec<[String; 2]> = entries.collect();
        entries.sort_unstable();
        let mut found = Self::default();
        for [key, value] in &entries {
            found.add(key, value);
        }
        found
    }

    /// Adds an argument, whose value is a quoted text, a number or a truth value. Anything else is
    /// left out.
    fn add(&mut self, key: &str, value: &str) {
        let before = self.text.len();
        if before > 0 {
            self.text.push(',');
        }
        self.add_text(key);
        self.text.push(':');
        let varies = Self::VARYING.contains(&key);
        match quoted(value) {
            Some(list)
                if varies
                    && list
                        .chars()
                        .all(|letter| "[]0123456789,. -".contains(letter)) =>
            {
                self.text.push('"');
                self.add_numbers(list);
                self.text.push('"');
            }
            Some(text) => self.add_text(text),
            None if is_number(value) && varies => self.add_numbers(value),
            None if is_number(value) || value == "true" || value == "false" => {
                self.text.push_str(value);
            }
            None => self.text.truncate(before),
        }
    }

    /// Adds a text as JSON.
    fn add_text(&mut self, text: &str) {
        self.text.push('"');
        for letter in text.chars() {
            match letter {
                '"' | '\\' => self.text.extend(['\\', letter]),
                letter if letter.is_control() => {
                    // Writing to a string does not fail.
                    let _ = write!(self.text, "\\u{:04x}", u32::from(letter));
                }
                letter => self.text.push(letter),
            }
        }
        self.text.push('"');
    }

    /// Adds a text without control characters, and sets its numbers apart.
    fn add_numbers(&mut self, text: &str) {
        let is_digit = |byte: &u8| byte.is_ascii_digit();
        for run in text
            .as_bytes()
            .chunk_by(|one, other| is_digit(one) == is_digit(other))
        {
            let run = str::from_utf8(run).unwrap_or_default();
            // Written as it is read: without zeros in front.
            let number = run.parse::<u64>().ok();
            let number = number.filter(|number| number.to_string() == run);
            if let Some(number) = number {
                self.numbers.push(number);
                self.text.push(ARGUMENT_NUMBER);
            } else {
                self.text.push_str(run);
            }
        }
    }
}

/// Returns the inside of a quoted text.
fn quoted(value: &str) -> Option<&str> {
    value.strip_prefix('"')?.strip_suffix('"')
}

/// Returns whether a text is an integer as JSON has them.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = digits.len() == 1 || !digits.starts_with('0');
    is_plain && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn lossy(text: &Text) -> String {
    String::from_utf8_lossy(text.bytes()).into_owned()
}

#[cfg(test)]
mod tests;
