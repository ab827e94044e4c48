//! The free pieces of the reserved memory in an earlier state, from segments and allocations.

use std::collections::BTreeMap;

use mindprof_model::{AllocatorAction, AllocatorEntry, SnapshotDevice, SnapshotSegment};
use serde::Serialize;

use super::lifetimes::Lifetimes;

/// The allocator rounds sizes up to a multiple of this.
pub(super) const ROUNDED_TO: u64 = 512;

/// Requests of more than this have segments of their own kind, in which the allocator does not
/// split off remainders of this size or less.
const LARGE_BYTES: u64 = 1 << 20;

/// The size of segments for requests that are not large. Those for large ones are larger.
const SMALL_SEGMENT: u64 = 2 << 20;

/// Free memory between allocations, as a request sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FreeSpace {
    /// The sum of the pieces that the request could have used.
    pub(super) bytes: u64,
    /// The largest of them.
    pub(super) largest: u64,
    /// The pieces that it could not use.
    pub(super) elsewhere: FreeElsewhere,
}

/// Free memory that a request could not use, because of where it lies. Each piece counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FreeElsewhere {
    /// Pieces in private pools, such as those of CUDA graphs.
    pub private_pool_bytes: u64,
    /// Pieces that belong to other streams.
    pub other_stream_bytes: u64,
    /// Pieces in segments for requests of the other size: at most 1 MiB, or more.
    pub other_size_bytes: u64,
}

impl FreeElsewhere {
    /// Returns the sum of all pieces.
    pub const fn bytes(&self) -> u64 {
        self.private_pool_bytes
            .saturating_add(self.other_stream_bytes)
            .saturating_add(self.other_size_bytes)
    }
}

/// The properties of a request that decide which pieces can serve it. The history does not tell the
/// pool of a request, which is taken to be the default one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    stream: u64,
    is_large: bool,
}

impl Request {
    pub(super) const fn of(entry: &AllocatorEntry) -> Self {
        Self {
            stream: entry.stream,
            is_large: entry.bytes.next_multiple_of(ROUNDED_TO) > LARGE_BYTES,
        }
    }
}

/// Which requests a segment serves, and whether it grows in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kind {
    stream: u64,
    pool: (u64, u64),
    is_large: bool,
    is_expandable: bool,
}

impl Kind {
    const fn of(segment: &SnapshotSegment) -> Self {
        Self {
            stream: segment.stream,
            pool: segment.pool,
            is_large: segment.is_large,
            is_expandable: segment.is_expandable,
        }
    }
}

/// The addresses that the allocator had of a device, as ranges that do not overlap, by their start.
#[derive(Default)]
struct Ranges {
    ends: BTreeMap<u64, (u64, Kind)>,
}

impl FreeSpace {
    /// Finds the free memory of a state. Pieces that are too small to be split off do not count:
    /// the allocator leaves them at the end of a block that is in use.
    pub(super) fn at(
        device: &SnapshotDevice,
        lifetimes: &Lifetimes,
        state: u32,
        request: Request,
    ) -> Self {
        let mut ranges = Ranges::default();
        for segment in &device.segments {
            ranges.add(segment.address, segment.bytes, Kind::of(segment));
        }
        // What came after the state is undone.
        for entry in device.entries[state as usize..].iter().rev() {
            match entry.action {
                AllocatorAction::SegmentAlloc => ranges.remove(entry.address, entry.bytes),
                AllocatorAction::SegmentFree => {
                    ranges.add(entry.address, entry.bytes, ranges.kind_of(entry));
                }
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
        ranges.free(&held, request)
    }

    fn add(&mut self, bytes: u64, kind: Kind, request: Request) {
        let least = if kind.is_large {
            LARGE_BYTES + 1
        } else {
            ROUNDED_TO
        };
        if bytes < least {
            return;
        }
        let sum = if kind.pool != (0, 0) {
            &mut self.elsewhere.private_pool_bytes
        } else if kind.stream != request.stream {
            &mut self.elsewhere.other_stream_bytes
        } else if kind.is_large != request.is_large {
            &mut self.elsewhere.other_size_bytes
        } else {
            self.largest = self.largest.max(bytes);
            &mut self.bytes
        };
        *sum = sum.saturating_add(bytes);
    }
}

impl Ranges {
    /// Adds a range. It becomes one with neighbours of its kind if these grow in place.
    fn add(&mut self, start: u64, bytes: u64, kind: Kind) {
        self.remove(start, bytes);
        let (mut start, mut end) = (start, start.saturating_add(bytes));
        if kind.is_expandable {
            if let Some((&before, _)) = self.ends.range(..start).next_back()
                && self.ends[&before] == (start, kind)
            {
                self.ends.remove(&before);
                start = before;
            }
            if let Some(&(its_end, its_kind)) = self.ends.get(&end)
                && its_kind == kind
            {
                self.ends.remove(&end);
                end = its_end;
            }
        }
        self.ends.insert(start, (end, kind));
    }

    /// Removes a range, which may be a part of one or of several.
    fn remove(&mut self, start: u64, bytes: u64) {
        let end = start.saturating_add(bytes);
        if let Some((&before, &(its_end, kind))) = self.ends.range(..start).next_back()
            && its_end > start
        {
            self.ends.insert(before, (start, kind));
            if its_end > end {
                self.ends.insert(end, (its_end, kind));
            }
        }
        while let Some((&next, &(its_end, kind))) = self.ends.range(start..end).next() {
            self.ends.remove(&next);
            if its_end > end {
                self.ends.insert(end, (its_end, kind));
            }
        }
    }

    /// Returns the kind of a segment that was returned. Its entry has the stream only.
    ///
    /// A part of a segment that grows in place is of the kind of its neighbours. Others are taken
    /// to be of the default pool, and of the size that segments for small requests have.
    fn kind_of(&self, entry: &AllocatorEntry) -> Kind {
        let end = entry.address.saturating_add(entry.bytes);
        let before = self.ends.range(..entry.address).next_back();
        let before = before.filter(|(_, (its_end, _))| *its_end == entry.address);
        let around = before.map(|(_, (_, kind))| *kind).into_iter();
        let mut around = around.chain(self.ends.get(&end).map(|(_, kind)| *kind));
        let neighbour = around.find(|kind| kind.is_expandable && kind.stream == entry.stream);
        neighbour.unwrap_or(Kind {
            stream: entry.stream,
            pool: (0, 0),
            is_large: entry.bytes > SMALL_SEGMENT,
            is_expandable: false,
        })
    }

    /// Returns what allocations, sorted by address, leave of the ranges.
    fn free(&self, held: &[(u64, u64)], request: Request) -> FreeSpace {
        let mut free = FreeSpace::default();
        let mut next = 0;
        for (&start, &(end, kind)) in &self.ends {
            let mut at = start;
            next += held[next..].partition_point(|&(address, _)| address < start);
            while let Some(&(address, bytes)) = held.get(next).filter(|one| one.0 < end) {
                free.add(address.saturating_sub(at), kind, request);
                at = at.max(address.saturating_add(bytes));
                next += 1;
            }
            free.add(end.saturating_sub(at), kind, request);
        }
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    const GROWING: Kind = Kind {
        stream: 0,
        pool: (0, 0),
        is_large: true,
        is_expandable: true,
    };

    const FIXED: Kind = Kind {
        is_expandable: false,
        ..GROWING
    };

    fn ranges(parts: &[(u64, u64)], kind: Kind) -> Ranges {
        let mut ranges = Ranges::default();
        for &(start, bytes) in parts {
            ranges.add(start, bytes, kind);
        }
        ranges
    }

    fn ends(ranges: &Ranges) -> Vec<(u64, u64)> {
        let ends = ranges.ends.iter();
        ends.map(|(&start, &(end, _))| (start, end)).collect()
    }

    #[test]
    fn ranges_that_touch_are_one_if_they_grow_in_place() {
        let growing = |parts: &[(u64, u64)]| ends(&ranges(parts, GROWING));
        assert_eq!(growing(&[(0, 10), (20, 10)]), [(0, 10), (20, 30)]);
        assert_eq!(growing(&[(0, 10), (20, 10), (10, 10)]), [(0, 30)]);
        assert_eq!(growing(&[(10, 5), (0, 30)]), [(0, 30)]);
        let fixed = ranges(&[(0, 10), (10, 10)], FIXED);
        assert_eq!(ends(&fixed), [(0, 10), (10, 20)]);
    }

    #[test]
    fn parts_of_ranges_are_removed() {
        let mut all = ranges(&[(0, 100)], FIXED);
        all.remove(40, 20);
        assert_eq!(ends(&all), [(0, 40), (60, 100)]);
        all.remove(30, 40);
        assert_eq!(ends(&all), [(0, 30), (70, 100)]);
        all.remove(0, 1000);
        assert_eq!(ends(&all), []);
    }

    /// ```text
    /// MiB, range 0..100     held 10..30, 50..60     gaps 10, 20, 40
    /// MiB, range 200..210   held 201..210           a gap of 1 cannot be split off
    /// ```
    #[test]
    fn gaps_are_what_allocations_leave() {
        let all = ranges(&[(0, 100 * MIB), (200 * MIB, 10 * MIB)], FIXED);
        let held = [(10, 20), (50, 10), (201, 9)].map(|(at, bytes)| (at * MIB, bytes * MIB));
        let request = |stream, is_large| Request { stream, is_large };
        let found = all.free(&held, request(0, true));
        assert_eq!((found.bytes, found.largest), (70 * MIB, 40 * MIB));
        assert_eq!(found.elsewhere.bytes(), 0);
        let found = all.free(&held, request(3, true));
        assert_eq!((found.bytes, found.largest), (0, 0));
        assert_eq!(found.elsewhere.other_stream_bytes, 70 * MIB);
        let found = all.free(&held, request(0, false));
        assert_eq!(found.elsewhere.other_size_bytes, 70 * MIB);
    }
}
