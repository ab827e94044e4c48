//! Writes words that come again and again and are mostly the same: the inputs of scopes, for
//! `inputs`, which looks a list up only where it differs from the last one.

#![expect(
    clippy::inline_always,
    reason = "what is known of a list while it is written is in registers, which a call would spill"
)]

use mindprof_model::WordSink;

/// A list that is written anew in its old place, and tells whether it has changed.
///
/// Where it has not, it is only read.
#[derive(Debug)]
pub struct DiffingWriter<'a> {
    words: &'a mut Vec<u64>,
    /// How many words are written since it was begun anew; what follows them is old.
    len: usize,
    is_changed: bool,
}

impl<'a> DiffingWriter<'a> {
    /// Begins the list anew.
    #[inline]
    pub(crate) fn new(words: &'a mut Vec<u64>) -> Self {
        Self {
            words,
            len: 0,
            is_changed: false,
        }
    }

    /// Ends the list. Returns whether it is another one than before.
    #[inline]
    pub(crate) fn finish(self) -> bool {
        if self.len == self.words.len() {
            return self.is_changed;
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
        if !is_there(self.words, begin, &words) {
            self.is_changed = true;
            // Of a copy, so that the words themselves need not lie in memory.
            let copy = words;
            change(self.words, begin, &copy);
        }
    }

    #[inline(always)]
    fn extend(&mut self, words: impl Iterator<Item = u64>) {
        let (len, is_changed) = rewrite(self.words, self.len, words);
        self.len = len;
        self.is_changed |= is_changed;
    }

    #[inline(always)]
    fn copy(&mut self, words: &[u64]) {
        let begin = self.len;
        self.len += words.len();
        if self.words.get(begin..self.len) != Some(words) {
            self.is_changed = true;
            change(self.words, begin, words);
        }
    }
}

/// Writes any number of words from `len` on. Returns the new length and whether they are others
/// than were there.
#[inline(never)]
fn rewrite(list: &mut Vec<u64>, mut len: usize, words: impl Iterator<Item = u64>) -> (usize, bool) {
    let mut is_changed = false;
    for word in words {
        if !is_there(list, len, &[word]) {
            is_changed = true;
            change(list, len, &[word]);
        }
        len += 1;
    }
    (len, is_changed)
}

#[cold]
#[inline(never)]
fn change(list: &mut Vec<u64>, begin: usize, words: &[u64]) {
    list.truncate(begin);
    list.extend_from_slice(words);
}

#[inline(always)]
fn is_there<const N: usize>(list: &[u64], begin: usize, words: &[u64; N]) -> bool {
    // As arrays, they are compared word by word in place.
    let old = list.get(begin..).and_then(<[u64]>::first_chunk::<N>);
    old.is_some_and(|old| is_same(old, words))
}

#[inline]
fn is_same<const N: usize>(old: &[u64; N], new: &[u64; N]) -> bool {
    let pairs = old.iter().zip(new);
    pairs.fold(0, |difference, (old, new)| difference | (old ^ new)) == 0
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
