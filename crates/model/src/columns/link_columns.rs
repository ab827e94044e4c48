//! The links of all events of a profile, each kind in a column of its own.
//!
//! A column that no event uses takes no room, and neither do numbers that increase with the events,
//! as external ids do in nearly every trace.

use crate::{ForwardThread, Links, StringId};

/// The links of events, by index. Events whose links were not set have none.
#[derive(Clone, Debug, Default)]
pub struct LinkColumns {
    external: Numbers,
    correlation: Numbers,
    record_function: Numbers,
    forward: Numbers,
    overload: Numbers,
    hierarchy: Numbers,
}

impl LinkColumns {
    /// Returns whether no event has links.
    pub fn is_empty(&self) -> bool {
        self.columns().iter().all(|column| column.is_empty())
    }

    /// Returns whether the overload of some operator is known.
    pub fn has_overloads(&self) -> bool {
        !self.overload.is_empty()
    }

    /// Returns whether the calls of modules that some operator ran in are known.
    pub fn has_module_hierarchies(&self) -> bool {
        !self.hierarchy.is_empty()
    }

    fn columns(&self) -> [&Numbers; 6] {
        [
            &self.external,
            &self.correlation,
            &self.record_function,
            &self.forward,
            &self.overload,
            &self.hierarchy,
        ]
    }

    /// Returns the links of the event at `index`.
    #[inline]
    pub fn at(&self, index: usize) -> Links {
        Links {
            external: self.external.at(index),
            correlation: self.correlation.at(index),
            record_function: self.record_function.at(index),
            forward: self.forward.at(index),
            overload: self.overload.at(index),
            hierarchy: self.hierarchy.at(index),
        }
    }

    /// Sets the links of the event at `index`. Any order works; ascending order is fastest.
    #[inline]
    pub fn set(&mut self, index: usize, links: Links) {
        self.external.set(index, links.external);
        self.correlation.set(index, links.correlation);
        self.record_function.set(index, links.record_function);
        self.forward.set(index, links.forward);
        self.overload.set(index, links.overload);
        self.hierarchy.set(index, links.hierarchy);
    }

    /// Appends the links of `count` more events, the first of which is the event at `index`.
    pub(crate) fn append(&mut self, index: usize, links: Self, count: usize) {
        if index == 0 {
            *self = links;
            return;
        }
        for (place, links) in links.iter().take(count).enumerate() {
            self.set(index + place, links);
        }
    }

    /// Iterates over the links of all events up to the last one that has any.
    pub fn iter(&self) -> impl Iterator<Item = Links> {
        let len = self
            .columns()
            .map(Numbers::len)
            .into_iter()
            .max()
            .unwrap_or(0);
        (0..len).map(|index| self.at(index))
    }

    /// Replaces the threads of backward nodes' forward operators.
    pub fn map_forward_threads(&mut self, map: impl Fn(ForwardThread) -> ForwardThread) {
        (self.forward).map(|forward| map(ForwardThread::from_raw(forward)).to_raw());
    }

    /// Translates the strings that name overloads and calls of modules.
    pub(crate) fn map_strings(&mut self, map: impl Fn(StringId) -> StringId) {
        for column in [&mut self.overload, &mut self.hierarchy] {
            column.map(|string| map(StringId::from_raw(string)).to_raw());
        }
    }

    /// Replaces all external and correlation ids; zero has to stay zero.
    pub(crate) fn map_numbers(
        &mut self,
        external: impl Fn(u32) -> u32,
        correlation: impl Fn(u32) -> u32,
    ) {
        self.external.map(external);
        self.correlation.map(correlation);
    }

    /// Returns the links in another order: `order` holds, for each place, the index of the event
    /// that moves there.
    #[must_use]
    pub fn reordered(&self, order: &[u32]) -> Self {
        Self {
            external: self.external.reordered(order),
            correlation: self.correlation.reordered(order),
            record_function: self.record_function.reordered(order),
            forward: self.forward.reordered(order),
            overload: self.overload.reordered(order),
            hierarchy: self.hierarchy.reordered(order),
        }
    }
}

/// The number of entries in a block.
const BLOCK: usize = 128;

/// A column of numbers; those that were not set are zero.
#[derive(Clone, Debug)]
struct Numbers {
    closed: Vec<Block>,
    /// The numbers behind the closed blocks, their count, and the index of the first.
    open: [u32; BLOCK],
    open_count: usize,
    open_begin: usize,
}

#[derive(Clone, Debug)]
enum Block {
    /// Each number is `step` more than the one before, modulo 2^32.
    Counted {
        first: u32,
        step: u32,
    },
    Listed(Box<[u32; BLOCK]>),
}

impl Block {
    fn new(numbers: &[u32; BLOCK]) -> Self {
        let step = numbers[1].wrapping_sub(numbers[0]);
        let mut pairs = numbers.iter().zip(&numbers[1..]);
        if pairs.all(|(one, next)| next.wrapping_sub(*one) == step) {
            let first = numbers[0];
            return Self::Counted { first, step };
        }
        Self::Listed(Box::new(*numbers))
    }

    #[inline]
    fn at(&self, place: usize) -> u32 {
        match self {
            Self::Counted { first, step } => first.wrapping_add(step.wrapping_mul(place as u32)),
            Self::Listed(numbers) => numbers[place],
        }
    }

    fn set(&mut self, place: usize, number: u32) {
        if self.at(place) == number {
            return;
        }
        let mut numbers = std::array::from_fn(|place| self.at(place));
        numbers[place] = number;
        *self = Self::new(&numbers);
    }
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            closed: Vec::new(),
            open: [0; BLOCK],
            open_count: 0,
            open_begin: 0,
        }
    }
}

impl Numbers {
    #[inline]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the index behind the last number that was set.
    #[inline]
    fn len(&self) -> usize {
        self.open_begin + self.open_count
    }

    #[inline]
    fn at(&self, index: usize) -> u32 {
        match self.closed.get(index / BLOCK) {
            Some(block) => block.at(index % BLOCK),
            // The numbers behind the last one are zero, inside the open block and beyond it.
            None => (self.open.get(index - self.open_begin))
                .copied()
                .unwrap_or(0),
        }
    }

    #[inline]
    fn set(&mut self, index: usize, number: u32) {
        // A column is zero behind its last number anyway.
        if number == 0 && index >= self.len() {
            return;
        }
        let place = index.wrapping_sub(self.open_begin);
        if place >= BLOCK {
            return self.set_elsewhere(index, number);
        }
        self.open[place] = number;
        if place >= self.open_count {
            self.open_count = place + 1;
            if self.open_count == BLOCK {
                self.close();
            }
        }
    }

    /// Sets a number outside the open block.
    #[cold]
    fn set_elsewhere(&mut self, index: usize, number: u32) {
        if let Some(block) = self.closed.get_mut(index / BLOCK) {
            return block.set(index % BLOCK, number);
        }
        while self.closed.len() < index / BLOCK {
            self.close();
        }
        self.set(index, number);
    }

    fn close(&mut self) {
        self.closed.push(Block::new(&self.open));
        self.open = [0; BLOCK];
        self.open_count = 0;
        self.open_begin += BLOCK;
    }

    /// Replaces each number; zero has to stay zero.
    fn map(&mut self, map: impl Fn(u32) -> u32) {
        for block in &mut self.closed {
            // Most blocks are all zeros.
            if !matches!(block, Block::Counted { first: 0, step: 0 }) {
                *block = Block::new(&std::array::from_fn(|place| map(block.at(place))));
            }
        }
        for number in &mut self.open {
            *number = map(*number);
        }
    }

    fn reordered(&self, order: &[u32]) -> Self {
        let mut reordered = Self::default();
        if !self.is_empty() {
            for (index, &from) in order.iter().enumerate() {
                reordered.set(index, self.at(from as usize));
            }
        }
        reordered
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ThreadId;

    fn numbers(list: &[u32]) -> Numbers {
        let mut numbers = Numbers::default();
        for (index, &number) in list.iter().enumerate() {
            numbers.set(index, number);
        }
        numbers
    }

    #[test]
    fn numbers_that_count_up_take_no_room() {
        let counted: Vec<u32> = (7..10_000).collect();
        let numbers = numbers(&counted);
        let is_counted = |block: &Block| matches!(block, Block::Counted { .. });
        assert!(numbers.closed.iter().all(is_counted));
        assert_eq!(numbers.at(5_000), 5_007);
        assert_eq!(numbers.at(1 << 30), 0);
    }

    #[test]
    fn what_was_never_set_is_not_there() {
        let mut columns = LinkColumns::default();
        columns.set(5, Links::default());
        assert!(columns.is_empty());
        columns.set(300, Links::new(0, 4));
        assert!(!columns.is_empty());
        assert_eq!(columns.at(300), Links::new(0, 4));
        assert_eq!(columns.at(299), Links::default());
        assert!(columns.external.is_empty());
    }

    #[test]
    fn forward_threads_are_replaced() {
        let at = |thread| ForwardThread::At(ThreadId::from_raw(thread));
        let mut links = Links::default();
        links.set_forward_thread(at(2));
        let mut columns = LinkColumns::default();
        columns.set(1, links);
        let next = |thread: ThreadId| at(thread.to_raw() + 1);
        columns.map_forward_threads(|forward| forward.map(next));
        assert_eq!(columns.at(0).forward_thread(), ForwardThread::Unknown);
        assert_eq!(columns.at(1).forward_thread(), at(3));
        columns.map_forward_threads(|_| ForwardThread::Unknown);
        assert_eq!(columns.at(1).forward_thread(), ForwardThread::Unknown);
    }

    proptest! {
        #[test]
        fn any_numbers_come_back(
            runs in prop::collection::vec((any::<u32>(), 0..3_u32, 1..300_u32), 0..6),
            changes in prop::collection::vec((0..2000_usize, any::<u32>()), 0..20),
        ) {
            let run = |(first, step, count): (u32, u32, u32)| {
                (0..count).map(move |place| first.wrapping_add(step * place))
            };
            let mut list: Vec<u32> = runs.into_iter().flat_map(run).collect();
            let mut numbers = numbers(&list);
            for (index, number) in changes {
                list.resize(list.len().max(index + 1), 0);
                list[index] = number;
                numbers.set(index, number);
            }
            for (index, &number) in list.iter().enumerate() {
                prop_assert_eq!(numbers.at(index), number);
            }
            let order: Vec<u32> = (0..list.len() as u32).rev().collect();
            let reordered = numbers.reordered(&order);
            for (index, &number) in list.iter().rev().enumerate() {
                prop_assert_eq!(reordered.at(index), number);
            }
        }
    }
}
