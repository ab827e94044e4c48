//! Writes lists of words that mostly repeat: the inputs of scopes. The module `inputs` looks a list
//! up only if it differs from the previous one.

#![expect(
    clippy::inline_always,
    reason = "the state of a list stays in registers while it is written, and a call would spill it"
)]

use mindprof_model::WordSink;

/// Overwrites a list in place and detects whether it has changed. It exists because consecutive
/// calls of an operator mostly have equal inputs: comparing while writing avoids a hash per scope.
#[derive(Debug)]
pub struct DiffingWriter<'a> {
    words: &'a mut Vec<u64>,
    /// How many words have been written; those behind them are old.
    len: usize,
    /// The bits in which any word differs from its predecessor in the same place.
    difference: u64,
}

impl<'a> DiffingWriter<'a> {
    /// Starts to overwrite the list.
    #[inline]
    pub(crate) fn new(words: &'a mut Vec<u64>) -> Self {
        Self {
            words,
            len: 0,
            difference: 0,
        }
    }

    /// Ends the list. Returns whether it differs from the previous one.
    #[inline]
    pub(crate) fn finish(self) -> bool {
        if self.len == self.words.len() {
            return self.difference != 0;
        }
        self.words.truncate(self.len);
        true
    }
}

impl WordSink for DiffingWriter<'_> {
    #[inline(always)]
    fn put<const N: usize>(&mut self, words: [u64; N]) {
        let begin = self.len;
        self.len += N;
        let old = self.words.get_mut(begin..);
        if let Some(old) = old.and_then(<[u64]>::first_chunk_mut::<N>) {
            // Written even if equal: the processor could not predict the branch.
            self.difference |= difference(old, &words);
            *old = words;
        } else {
            self.difference = u64::MAX;
            // From a copy, so that `words` itself can stay in registers.
            let copy = words;
            append(self.words, begin, &copy);
        }
    }

    #[inline(always)]
    fn extend(&mut self, words: impl Iterator<Item = u64>) {
        for word in words {
            self.put([word]);
        }
    }

    #[inline(always)]
    fn copy(&mut self, words: &[u64]) {
        let begin = self.len;
        self.len += words.len();
        if let Some(old) = self.words.get_mut(begin..self.len) {
            self.difference |= difference(old, words);
            old.copy_from_slice(words);
        } else {
            self.difference = u64::MAX;
            append(self.words, begin, words);
        }
    }
}

/// Writes words that extend beyond the end of the list.
#[cold]
#[inline(never)]
fn append(list: &mut Vec<u64>, begin: usize, words: &[u64]) {
    list.truncate(begin);
    list.extend_from_slice(words);
}

/// Returns the bits in which the two runs of words differ.
#[inline(always)]
fn difference(old: &[u64], new: &[u64]) -> u64 {
    let pairs = old.iter().zip(new);
    pairs.fold(0, |difference, (old, new)| difference | (old ^ new))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_list_is_changed_if_it_is_another_than_before(
            lists in prop::collection::vec(prop::collection::vec(0_u64..2, 0..5), 1..9),
        ) {
            let mut words = Vec::new();
            let mut before: &[u64] = &[];
            for list in &lists {
                let mut writer = DiffingWriter::new(&mut words);
                writer.extend(list.iter().copied());
                prop_assert_eq!(writer.finish(), list != before);
                prop_assert_eq!(&words, list);
                before = list;
            }
        }

        #[test]
        fn words_side_by_side_are_written_as_one_after_the_other(
            lists in prop::collection::vec(prop::collection::vec(0_u64..2, 0..5), 1..9),
            split in 0_usize..5,
        ) {
            let mut words = Vec::new();
            let mut before: &[u64] = &[];
            for list in &lists {
                let (first, rest) = list.split_at(split.min(list.len()));
                let mut writer = DiffingWriter::new(&mut words);
                writer.extend(first.iter().copied());
                writer.copy(rest);
                prop_assert_eq!(writer.finish(), list != before);
                prop_assert_eq!(&words, list);
                before = list;
            }
        }
    }
}
