//! What the probe takes down of each scope that it sees: the words of torch's object, and what lies
//! behind those that may be its inputs. Nothing is believed here; `probe` compares.

#![expect(
    unsafe_code,
    reason = "torch's functions are asked for a name and a count"
)]

use std::ffi::CStr;

use crate::layout::{ComplexNumbers, RECORD_BYTES};
use crate::self_read::read_words;
use crate::symbols::{RecordFunction, Symbols};

const RECORD_WORDS: usize = RECORD_BYTES / 8;

/// More arguments than any operator of the probe has.
const MOST_INPUTS: usize = 8;

/// A scope as it began.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) words: [u64; RECORD_WORDS],
    /// What may be the inputs, by the offset at which their address lies.
    pub(crate) inputs: Vec<(usize, Vec<SampledValue>)>,
}

/// What may be a value.
#[derive(Debug)]
pub(crate) struct SampledValue {
    pub(crate) payload: u64,
    pub(crate) tag: u32,
    /// Every list of two values that may lie behind the payload.
    pub(crate) lists: Vec<SampledList>,
    /// The words behind the payload, if it may be the address of any.
    pub(crate) words: Option<[u64; ComplexNumbers::WORDS]>,
}

/// So many words of a list are looked at.
const LIST_WORDS: usize = 8;

/// What may be a list: where its values and its type lie, and what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampledList {
    pub(crate) values_offset: usize,
    pub(crate) type_offset: usize,
    pub(crate) element_type: u64,
    /// The payload and the tag of each value.
    pub(crate) values: [(u64, u32); 2],
}

impl Sample {
    /// Takes down a scope that begins.
    ///
    /// # Safety
    /// The record is torch's and lives as long as the call.
    pub(crate) unsafe fn take(record: *const RecordFunction, symbols: &Symbols) -> Option<Self> {
        let words = read_words::<RECORD_WORDS>(record as u64)?;
        // SAFETY: by the caller's word; the functions throw nothing, and a name ends in a zero.
        let (name, count) = unsafe {
            let name = (symbols.name)(record);
            let name = (!name.is_null()).then(|| CStr::from_ptr(name))?;
            (
                name.to_string_lossy().into_owned(),
                symbols.argument_count(record),
            )
        };
        let is_count = |&(_, pair): &(usize, &[u64])| pair[1] == count as u64;
        let inputs = if (1..=MOST_INPUTS).contains(&count) {
            let pairs = words.windows(2).enumerate().filter(is_count);
            pairs
                .filter_map(|(word, pair)| Some((word * 8, sample_values(pair[0], count)?)))
                .collect()
        } else {
            Vec::new()
        };
        Some(Self {
            name,
            words,
            inputs,
        })
    }

    /// Returns the word at an offset.
    pub(crate) fn word(&self, offset: usize) -> u64 {
        self.words[offset / 8]
    }

    /// Returns the byte at an offset.
    pub(crate) fn byte(&self, offset: usize) -> u8 {
        self.words[offset / 8].to_le_bytes()[offset % 8]
    }

    /// Returns what would be the inputs if their address lay at `offset`.
    pub(crate) fn inputs_at(&self, offset: usize) -> Option<&[SampledValue]> {
        let mut inputs = self.inputs.iter();
        let found = inputs.find(|(candidate, _)| *candidate == offset);
        found.map(|(_, values)| values.as_slice())
    }
}

fn sample_values(address: u64, count: usize) -> Option<Vec<SampledValue>> {
    let values = (0..count as u64).map(|index| {
        let [payload, tag] = read_words::<2>(address + 16 * index)?;
        Some(SampledValue {
            payload,
            tag: tag as u32,
            lists: sample_lists(payload),
            words: read_words(payload),
        })
    });
    values.collect()
}

/// Takes down what may be lists at an address: they live no longer than their scope begins.
fn sample_lists(address: u64) -> Vec<SampledList> {
    let Some(words) = read_words::<LIST_WORDS>(address) else {
        return Vec::new();
    };
    // Begin, end and end of the room of the values, and after them the type.
    let runs = words.windows(4).enumerate();
    let found = runs.filter_map(|(word, run)| {
        let (begin, end) = (run[0], run[1]);
        if end.wrapping_sub(begin) != 32 || run[2] < end {
            return None;
        }
        let [one, one_tag, two, two_tag] = read_words::<4>(begin)?;
        Some(SampledList {
            values_offset: word * 8,
            type_offset: (word + 3) * 8,
            element_type: run[3],
            values: [(one, one_tag as u32), (two, two_tag as u32)],
        })
    });
    found.collect()
}
