//! The free pieces of the reserved memory in an earlier state, from segments and allocations.

use std::collections::BTreeMap;

use mindprof_model::{AllocatorAction, SnapshotDevice};

use super::lifetimes::Lifetimes;

/// The allocator rounds sizes up to a multiple of this.
pub(super) const ROUNDED_TO: u64 = 512;

/// Free memory between allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FreeSpace {
    /// The sum of the pieces that are large enough to count.
    pub(super) bytes: u64,
    /// The largest piece.
    pub(super) largest: u64,
}

/// The addresses that the allocator had of a device, as ranges that do not overlap.
#[derive(Default)]
struct Ranges {
    ends: BTreeMap<u64, u64>,
}

impl FreeSpace {
    /// Finds the free memory of a state. Pieces smaller than `least` do not count: the allocator
    /// leaves them at the end of a block that is in use.
    pub(super) fn at(
        device: &SnapshotDevice,
        lifetimes: &Lifetimes,
        state: u32,
        least: u64,
    ) -> Self {
        let mut ranges = Ranges::default();
        for segment in &device.segments {
            ranges.add(segment.address, segment.bytes);
        }
        // What came after the state is undone.
        for entry in device.entries[state as usize..].iter().rev() {
            match entry.action {
                AllocatorAction::SegmentAlloc => ranges.remove(entry.address, entry.bytes),
                AllocatorAction::SegmentFree => ranges.add(entry.address, entry.bytes),
                AllocatorAction::Alloc
                | AllocatorAction::FreeRequested
                | AllocatorAction::FreeCompleted
                | AllocatorAction::OutOfMemory
                | AllocatorAction::Mark
                | AllocatorAction::Unknown => {}
            }
        }
        let held = lifetimes.all.iter().filter(|one| one.is_in(state));
        let mut held: Vec<(u64, u64)> = held
            .map(|one| (one.address, one.bytes.next_multiple_of(ROUNDED_TO)))
            .collect();
        held.sort_unstable();
        ranges.free(&held, least)
    }
}

impl Ranges {
    /// Adds a range, which touches others if segments grow in place.
    fn add(&mut self, start: u64, bytes: u64) {
        let (mut start, mut end) = (start, start.saturating_add(bytes));
        if let Some((&before, &its_end)) = self.ends.range(..=start).next_back()
            && its_end >= start
        {
            start = before;
            end = end.max(its_end);
        }
        while let Some((&next, &its_end)) = self
            .ends
            .range(start..)
            .next()
            .filter(|(next, _)| **next <= end)
        {
            end = end.max(its_end);
            self.ends.remove(&next);
        }
        self.ends.insert(start, end);
    }

    /// Removes a range, which may be a part of one or of several.
    fn remove(&mut self, start: u64, bytes: u64) {
        let end = start.saturating_add(bytes);
        if let Some((&before, &its_end)) = self.ends.range(..start).next_back()
            && its_end > start
        {
            self.ends.insert(before, start);
            if its_end > end {
                self.ends.insert(end, its_end);
            }
        }
        while let Some((&next, &its_end)) = self.ends.range(start..end).next() {
            self.ends.remove(&next);
            if its_end > end {
                self.ends.insert(end, its_end);
            }
        }
    }

    /// Returns what allocations, sorted by address, leave of the ranges.
    fn free(&self, held: &[(u64, u64)], least: u64) -> FreeSpace {
        let mut free = FreeSpace::default();
        let mut gap = |bytes: u64| {
            if bytes >= least.max(1) {
                free.bytes = free.bytes.saturating_add(bytes);
                free.largest = free.largest.max(bytes);
            }
        };
        let mut next = 0;
        for (&start, &end) in &self.ends {
            let mut at = start;
            next += held[next..].partition_point(|&(address, _)| address < start);
            while let Some(&(address, bytes)) = held.get(next).filter(|one| one.0 < end) {
                gap(address.saturating_sub(at));
                at = at.max(address.saturating_add(bytes));
                next += 1;
            }
            gap(end.saturating_sub(at));
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(parts: &[(u64, u64)]) -> Ranges {
        let mut ranges = Ranges::default();
        for &(start, bytes) in parts {
            ranges.add(start, bytes);
        }
        ranges
    }

    fn ends(ranges: &Ranges) -> Vec<(u64, u64)> {
        ranges
            .ends
            .iter()
            .map(|(&start, &end)| (start, end))
            .collect()
    }

    #[test]
    fn ranges_that_touch_are_one() {
        assert_eq!(ends(&ranges(&[(0, 10), (20, 10)])), [(0, 10), (20, 30)]);
        assert_eq!(ends(&ranges(&[(0, 10), (20, 10), (10, 10)])), [(0, 30)]);
        assert_eq!(ends(&ranges(&[(10, 5), (0, 30)])), [(0, 30)]);
    }

    #[test]
    fn parts_of_ranges_are_removed() {
        let mut all = ranges(&[(0, 100)]);
        all.remove(40, 20);
        assert_eq!(ends(&all), [(0, 40), (60, 100)]);
        all.remove(30, 40);
        assert_eq!(ends(&all), [(0, 30), (70, 100)]);
        all.remove(0, 1000);
        assert_eq!(ends(&all), []);
    }

    /// ```text
    /// range 0..100     held 10..30, 50..60     gaps 10, 20, 40
    /// range 200..210   held 200..210           no gap
    /// ```
    #[test]
    fn gaps_are_what_allocations_leave() {
        let all = ranges(&[(0, 100), (200, 10)]);
        let held = [(10, 20), (50, 10), (200, 10)];
        let found = all.free(&held, 0);
        assert_eq!(
            found,
            FreeSpace {
                bytes: 70,
                largest: 40
            }
        );
        assert_eq!(
            all.free(&held, 15),
            FreeSpace {
                bytes: 60,
                largest: 40
            }
        );
    }
}
