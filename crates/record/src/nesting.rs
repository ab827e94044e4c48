//! Computes the start order of scopes from their end order.
//!
//! The records of a thread lie in end order, the events of a profile in start order. `assemble`
//! passes the starts as it reads the records, and gets back the indices of the records in start
//! order.

/// The nesting of records that arrive one by one in end order. It yields the start order in linear
/// time, which a general sort of a large recording would not.
#[derive(Debug, Default)]
pub(crate) struct Nesting {
    /// The number of scopes inside each scope, itself included.
    sizes: Vec<u32>,
    /// The gaps of skipped records: the number of scopes before each, and of records in it.
    gaps: Vec<(u32, u32)>,
    /// Starts and sizes of the scopes that no other scope encloses so far, by ascending start.
    standing: Vec<(u64, u32)>,
}

impl Nesting {
    /// Allocates room for so many scopes.
    pub(crate) fn with_capacity(scopes: usize) -> Self {
        Self {
            sizes: Vec::with_capacity(scopes),
            ..Self::default()
        }
    }

    /// Returns whether there are no scopes.
    pub(crate) fn is_empty(&self) -> bool {
        self.sizes.is_empty()
    }

    /// Adds the next record, of a scope that began at `start`. It encloses the earlier ones that
    /// began no earlier.
    #[inline]
    pub(crate) fn push(&mut self, start: u64) {
        let mut size = 1;
        while let Some((_, inner)) = self.standing.pop_if(|(inner, _)| *inner >= start) {
            size += inner;
        }
        self.standing.push((start, size));
        self.sizes.push(size);
    }

    /// Skips the next record.
    #[inline]
    pub(crate) fn pass_by(&mut self) {
        let scopes = self.sizes.len() as u32;
        match self.gaps.last_mut() {
            Some((before, records)) if *before == scopes => *records += 1,
            Some(_) | None => self.gaps.push((scopes, 1)),
        }
    }

    /// Returns the indices of the scopes' records in start order, the longer of two with equal
    /// starts first. It only compares neighbours.
    ///
    /// ```text
    /// end order     b  c  a  d         a |-------------|
    /// size          1  1  3  1         b   |--| c |--|     d |---|
    /// depth         1  1  0  0
    /// place = index - (size - 1) + depth:   b 1  c 2  a 0  d 3
    /// ```
    ///
    /// Scopes that overlap without nesting, which only out-of-order calls produce, are left to the
    /// builder's sort; everything else reaches it already sorted.
    pub(crate) fn start_order(&self) -> Vec<u32> {
        let mut order = vec![0; self.sizes.len()];
        // The first places of the scopes that enclose the next one, outermost first.
        let mut enclosing: Vec<usize> = Vec::new();
        let mut gaps = self.gaps.iter().rev().peekable();
        let mut passed: u32 = self.gaps.iter().map(|(_, records)| records).sum();
        for (index, &size) in self.sizes.iter().enumerate().rev() {
            while let Some((_, records)) = gaps.next_if(|(before, _)| *before as usize > index) {
                passed -= records;
            }
            let first_inside = index + 1 - size as usize;
            while enclosing.pop_if(|begin| *begin > index).is_some() {}
            order[first_inside + enclosing.len()] = index as u32 + passed;
            enclosing.push(first_inside);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use proptest::prelude::*;

    use super::*;

    /// A start and an end; `None` is a skipped record.
    type Interval = Option<(u64, u64)>;

    fn in_start_order(intervals: &[Interval]) -> Vec<(u64, u64)> {
        let mut nesting = Nesting::default();
        for interval in intervals {
            match interval {
                Some((start, _)) => nesting.push(*start),
                None => nesting.pass_by(),
            }
        }
        let order = nesting.start_order();
        order
            .into_iter()
            .filter_map(|record| intervals[record as usize])
            .collect()
    }

    #[test]
    fn nested_scopes_come_out_in_start_order() {
        // a |-------------|
        // b   |--| c |--|     d |---|
        let (a, b, c, d) = ((0, 14), (2, 5), (7, 10), (20, 24));
        let order = in_start_order(&[Some(b), None, Some(c), Some(a), None, Some(d)]);
        assert_eq!(order, [a, b, c, d]);
    }

    #[test]
    fn of_equal_starts_the_one_that_ended_last_is_the_outer() {
        let (inner, outer) = ((3, 8), (3, 9));
        assert_eq!(in_start_order(&[Some(inner), Some(outer)]), [outer, inner]);
    }

    proptest! {
        #[test]
        fn nested_scopes_need_no_sort(
            cuts in prop::collection::vec((0_usize..100, 0_usize..100), 0..60),
        ) {
            let intervals = nested(&cuts);
            let mut sorted: Vec<_> = intervals.iter().flatten().copied().collect();
            sorted.sort_by_key(|&(start, end)| (start, Reverse(end)));
            prop_assert_eq!(in_start_order(&intervals), sorted);
        }

        #[test]
        fn no_scope_is_lost_or_doubled(
            intervals in prop::collection::vec(
                prop::option::of((0_u64..50, 0_u64..20)
                    .prop_map(|(start, length)| (start, start + length))),
                0..60,
            ),
        ) {
            let mut intervals = intervals;
            intervals.sort_by_key(|interval| interval.map(|(_, end)| end));
            let mut ordered = in_start_order(&intervals);
            ordered.sort_unstable();
            let mut told: Vec<_> = intervals.into_iter().flatten().collect();
            told.sort_unstable();
            prop_assert_eq!(ordered, told);
        }
    }

    /// Returns distinct, properly nested intervals in end order with some skipped records in
    /// between: a walk that opens and closes by the given choices.
    fn nested(choices: &[(usize, usize)]) -> Vec<Interval> {
        let (mut open, mut closed, mut now) = (Vec::new(), Vec::new(), 0);
        for &(opens, closes) in choices {
            for _ in 0..opens % 3 {
                open.push(now);
                now += 1;
            }
            for _ in 0..closes % 3 {
                closed.push(open.pop().map(|start| (start, now)));
                now += 1;
            }
        }
        closed
    }
}
