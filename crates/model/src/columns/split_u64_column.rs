//! A column of 64-bit numbers whose upper halves rarely change, such as times and totals.

/// A column that takes 4 bytes per number, plus 8 wherever the upper half changes.
///
/// ```text
/// 0x1_0000_0007, 0x1_0000_0009, 0x2_0000_0001     lows    7, 9, 1
///                                                 highs   1 from 0 on, 2 from 2 on
/// ```
#[derive(Clone, Debug, Default)]
pub(crate) struct SplitU64Column {
    lows: Vec<u32>,
    highs: Vec<High>,
}

/// The upper half of the numbers from one index on.
#[derive(Clone, Copy, Debug)]
struct High {
    from: u32,
    half: u32,
}

impl SplitU64Column {
    pub(crate) fn len(&self) -> usize {
        self.lows.len()
    }

    pub(crate) fn reserve(&mut self, words: usize) {
        self.lows.reserve(words);
    }

    #[inline]
    pub(crate) fn push(&mut self, word: u64) {
        let half = (word >> 32) as u32;
        if self.highs.last().is_none_or(|last| last.half != half) {
            self.change(half);
        }
        self.lows.push(word as u32);
    }

    #[cold]
    fn change(&mut self, half: u32) {
        let from = u32::try_from(self.len()).expect("fewer than 2^32 words");
        self.highs.push(High { from, half });
    }

    /// Returns the word at `index`, which must exist.
    #[inline]
    pub(crate) fn at(&self, index: usize) -> u64 {
        let low = self.lows[index];
        let high = match &self.highs[..] {
            [only] => only,
            highs => &highs[highs.partition_point(|high| high.from as usize <= index) - 1],
        };
        u64::from(high.half) << 32 | u64::from(low)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        (0..self.len()).map(|index| self.at(index))
    }

    /// Returns the words in another order: `order` holds, for each place, the index of the word
    /// that moves there.
    pub(crate) fn reordered(&self, order: &[u32]) -> Self {
        let mut words = Self::default();
        words.reserve(order.len());
        for &index in order {
            words.push(self.at(index as usize));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn words_come_out_as_they_went_in(
            given in prop::collection::vec(prop_oneof![0_u64..9, any::<u64>()], 0..99),
        ) {
            let mut words = SplitU64Column::default();
            for &word in &given {
                words.push(word);
            }
            let found: Vec<u64> = words.iter().collect();
            prop_assert_eq!(&found, &given);
            let order: Vec<u32> = (0..given.len() as u32).rev().collect();
            let reversed: Vec<u64> = words.reordered(&order).iter().collect();
            prop_assert!(reversed.iter().eq(given.iter().rev()));
        }
    }
}
