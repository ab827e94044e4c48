//! Writes words that come again and again and are mostly the same: the inputs of scopes, for
//! `inputs`, which looks a list up only where it differs from the last one.

#![expect(
    clippy::inline_always,
    reason = "what is known of a list while it is written is in registers, which a call would spill"
)]

use mindprof_model::WordSink;

/// A list that is written anew in its old place, and tells whether it has changed.
#[derive(Debug)]
pub struct DiffingWriter<'a> {
    words: &'a mut Vec<u64>,
    /// How many words are written since it was begun anew; what follows them is old.
    len: usize,
    /// The bits in which any word differs from what was in its place.
    difference: u64,
}

impl<'a> DiffingWriter<'a> {
    /// Begins the list anew.
    #[inline]
    pub(crate) fn new(words: &'a mut Vec<u64>) -> Self {
        Self {
            words,
            len: 0,
            difference: 0,
        }
    }

    /// Ends the list. Returns whether it is another one than before.
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
            // Written also where it is the same: whether it is cannot be foretold.
            self.difference |= difference(old, &words);
            *old = words;
        } else {
            self.difference = u64::MAX;
            // Of a copy, so that the words themselves need not lie in memory.
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

/// Writes words of which the last lie beyond the end of the list.
#[cold]
#[inline(never)]
fn append(list: &mut Vec<u64>, begin: usize, words: &[u64]) {
    list.truncate(begin);
    list.extend_from_slice(words);
}

/// Returns the bits in which some words differ from as many others.
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
