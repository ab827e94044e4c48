//! Samples of scopes for the probe: the words of torch's object, and the memory behind those that
//! may point to its inputs. Nothing is interpreted here; `probe` compares.

#![expect(
    unsafe_code,
    reason = "torch's functions are called for a name and a count"
)]

use std::ffi::CStr;

use crate::layout::{ComplexNumbers, RECORD_BYTES};
use crate::symbols::{RecordFunction, Symbols};
use mindprof_frames::read_words;

const RECORD_WORDS: usize = RECORD_BYTES / 8;

/// More arguments than any operator of the probe has.
const MOST_INPUTS: usize = 8;

/// A scope as it began.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) words: [u64; RECORD_WORDS],
    /// The candidates for inputs, by the offset of their address.
    pub(crate) inputs: Vec<(usize, Vec<SampledValue>)>,
}

/// A candidate for a value.
#[derive(Debug)]
pub(crate) struct SampledValue {
    pub(crate) payload: u64,
    pub(crate) tag: u32,
    /// Every list of two values that may lie behind the payload.
    pub(crate) lists: Vec<SampledList>,
    /// The words behind the payload, if it is a readable address.
    pub(crate) words: Option<[u64; ComplexNumbers::WORDS]>,
}

/// How many words of a list are examined.
const LIST_WORDS: usize = 8;

/// A candidate for a list: the offsets of its values and its element type, and both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampledList {
    pub(crate) values_offset: usize,
    pub(crate) type_offset: usize,
    pub(crate) element_type: u64,
    /// The payload and the tag of each value.
    pub(crate) values: [(u64, u32); 2],
}

impl Sample {
    /// Samples a scope that begins.
    ///
    /// # Safety
    /// The record is a live `RecordFunction` of torch's.
    pub(crate) unsafe fn take(record: *const RecordFunction, symbols: &Symbols) -> Option<Self> {
        let words = read_words::<RECORD_WORDS>(record as u64)?;
        // SAFETY: the caller guarantees a live record. The functions do not throw, and a name is a
        // NUL-terminated string.
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

    /// Returns the inputs, if their address lies at `offset`.
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

/// Samples the candidates for lists at an address now, because lists may be freed when the callback
/// returns.
fn sample_lists(address: u64) -> Vec<SampledList> {
    let Some(words) = read_words::<LIST_WORDS>(address) else {
        return Vec::new();
    };
    // Begin, end and capacity end of the values, followed by the element type.
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
