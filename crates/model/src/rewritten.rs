//! Words that are written again and again and mostly come out the same.

/// A list that tells, as it is written anew in its old place, whether it has changed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rewritten {
    words: Vec<u64>,
    /// How many words are written since it was begun anew; what follows them is old.
    len: usize,
    is_changed: bool,
}

impl Rewritten {
    /// Begins anew.
    #[inline]
    pub(crate) fn restart(&mut self) {
        self.words.truncate(self.len);
        self.len = 0;
        self.is_changed = false;
    }

    #[inline]
    pub(crate) fn put<const N: usize>(&mut self, words: [u64; N]) {
        let begin = self.len;
        self.len += N;
        // As arrays, they are compared word by word in place.
        let old = self.words.get(begin..).and_then(<[u64]>::first_chunk::<N>);
        if !old.is_some_and(|old| is_same(old, &words)) {
            self.change(begin, &words);
        }
    }

    pub(crate) fn extend(&mut self, words: impl IntoIterator<Item = u64>) {
        words.into_iter().for_each(|word| self.put([word]));
    }

    #[cold]
    fn change(&mut self, begin: usize, words: &[u64]) {
        self.is_changed = true;
        self.words.truncate(begin);
        self.words.extend_from_slice(words);
    }

    /// Returns what was written since it was begun anew.
    #[inline]
    pub(crate) fn words(&self) -> &[u64] {
        &self.words[..self.len]
    }

    /// Returns whether that is another list than the one before.
    #[inline]
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed || self.len != self.words.len()
    }
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
            let mut rewritten = Rewritten::default();
            let mut before: &[u64] = &[];
            for list in &lists {
                rewritten.restart();
                rewritten.extend(list.iter().copied());
                prop_assert_eq!(rewritten.words(), list);
                prop_assert_eq!(rewritten.is_changed(), list != before);
                before = list;
            }
        }
    }
}
