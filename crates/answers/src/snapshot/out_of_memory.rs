//! Out-of-memory errors: the request, the state of the memory, and the reason for the failure.

use mindprof_model::{AllocatorAction, MemorySnapshot, SnapshotDevice};
use serde::Serialize;

use super::curve::Clock;
use super::free_space::{FreeElsewhere, FreeSpace, ROUNDED_TO, Request};
use super::holders::{HeldBy, HolderKind, StackPlaces, frames};
use super::lifetimes::{Lifetimes, sum};

/// The most errors that are described. A program that catches them may have thousands.
const MOST_ERRORS: usize = 10;

/// An out-of-memory error, with the state of the device's memory just before it.
#[derive(Clone, Debug, Serialize)]
pub struct OutOfMemory {
    /// The time since the first entry of the history, if entries have times.
    pub time_us: Option<u64>,
    /// The bytes that were asked for, rounded up.
    pub requested_bytes: u64,
    /// The origin of the request.
    #[serde(flatten)]
    pub kind: HolderKind,
    /// The frames of the stack that asked, innermost first.
    pub frames: Vec<String>,
    /// The number of outer frames that are not listed.
    pub frames_left_out: u64,
    /// The bytes that were free on the device, outside of the allocator.
    pub device_free_bytes: u64,
    /// The bytes that the program had asked for.
    pub allocated_bytes: u64,
    /// The bytes that the allocator had of the device.
    pub reserved_bytes: u64,
    /// The bytes of free pieces between allocations that the request could have used: of its stream
    /// and size, in no private pool, and not too small.
    pub free_bytes: u64,
    /// The largest of these pieces.
    pub largest_free_bytes: u64,
    /// The free memory that it could not use.
    pub free_elsewhere: FreeElsewhere,
    /// The reason for the failure.
    pub shortage: Shortage,
    /// The holders of memory.
    pub held: HeldBy,
}

/// Why a request could not be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum Shortage {
    /// There was enough memory in pieces: in one piece, it would have sufficed.
    Fragmented,
    /// The device had enough memory, but the process may not use more of it, and free pieces would
    /// not have sufficed.
    Limited,
    /// With the free memory that the request could not use, it would have sufficed.
    Elsewhere,
    /// One free piece would have sufficed, and yet the request was refused. It may be of a private
    /// pool, which the history does not tell, or too small for the piece to be split for it.
    Unused,
    /// Even in one piece, memory would not have sufficed.
    Short {
        /// The bytes that were missing.
        missing_bytes: u64,
    },
}

impl OutOfMemory {
    /// Finds the last out-of-memory errors of a device, oldest first.
    pub(super) fn find(
        snapshot: &MemorySnapshot,
        device: &SnapshotDevice,
        lifetimes: &Lifetimes,
        places: &mut StackPlaces<'_>,
    ) -> Vec<Self> {
        let is_error =
            |&index: &usize| device.entries[index].action == AllocatorAction::OutOfMemory;
        let last = (0..device.entries.len()).rev().filter(is_error);
        let last = last.take(MOST_ERRORS);
        let found = last.map(|index| Self::at(index, snapshot, device, lifetimes, places));
        let mut found: Vec<Self> = found.collect();
        found.reverse();
        found
    }

    fn at(
        index: usize,
        snapshot: &MemorySnapshot,
        device: &SnapshotDevice,
        lifetimes: &Lifetimes,
        places: &mut StackPlaces<'_>,
    ) -> Self {
        let entry = device.entries[index];
        let state = index as u32;
        let requested = entry.bytes.next_multiple_of(ROUNDED_TO);
        let free = FreeSpace::at(device, lifetimes, state, Request::of(&entry));
        let (frames, frames_left_out) = frames(snapshot, entry.stack);
        let clock = Clock::of(device);
        Self {
            time_us: clock.has_times.then(|| clock.time(index)),
            requested_bytes: entry.bytes,
            kind: places.kind(entry.stack, false),
            frames,
            frames_left_out,
            device_free_bytes: entry.address,
            allocated_bytes: sum(lifetimes.all.iter().filter(|one| one.is_in(state))),
            reserved_bytes: reserved_at(device, index),
            free_bytes: free.bytes,
            largest_free_bytes: free.largest,
            free_elsewhere: free.elsewhere,
            shortage: shortage(requested, entry.address, &free),
            held: HeldBy::at(lifetimes, state, snapshot, places).shortened(),
        }
    }
}

/// Returns why a request could not be served, with this much free on the device and in pieces.
///
/// If the device had enough, the process has a limit of its own. It is not in the file, so that only
/// the pieces are known to be below it.
const fn shortage(requested: u64, device_free: u64, free: &FreeSpace) -> Shortage {
    if free.largest >= requested {
        return Shortage::Unused;
    }
    if free.bytes >= requested {
        return Shortage::Fragmented;
    }
    if device_free >= requested {
        return Shortage::Limited;
    }
    let usable = device_free.saturating_add(free.bytes);
    if usable >= requested {
        return Shortage::Fragmented;
    }
    if usable.saturating_add(free.elsewhere.bytes()) >= requested {
        return Shortage::Elsewhere;
    }
    Shortage::Short {
        missing_bytes: requested - usable,
    }
}

fn reserved_at(device: &SnapshotDevice, index: usize) -> u64 {
    let segments = device.segments.iter();
    let reserved = segments.fold(0_u64, |sum, segment| sum.saturating_add(segment.bytes));
    let later = device.entries[index..].iter().rev();
    later.fold(reserved, |reserved, entry| match entry.action {
        AllocatorAction::SegmentAlloc => reserved.saturating_sub(entry.bytes),
        AllocatorAction::SegmentFree => reserved.saturating_add(entry.bytes),
        AllocatorAction::Alloc
        | AllocatorAction::FreeRequested
        | AllocatorAction::FreeCompleted
        | AllocatorAction::OutOfMemory
        | AllocatorAction::Mark
        | AllocatorAction::Unknown => reserved,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_in_pieces_is_told_from_too_little_memory() {
        let in_pieces = |bytes, elsewhere| FreeSpace {
            bytes,
            largest: bytes / 2,
            elsewhere: FreeElsewhere {
                other_stream_bytes: elsewhere,
                ..FreeElsewhere::default()
            },
        };
        let of = |device_free, free| shortage(100, device_free, &free);
        assert_eq!(of(0, in_pieces(100, 0)), Shortage::Fragmented);
        assert_eq!(of(40, in_pieces(60, 0)), Shortage::Fragmented);
        let missing_bytes = 1;
        assert_eq!(of(40, in_pieces(59, 0)), Shortage::Short { missing_bytes });
        assert_eq!(of(100, in_pieces(99, 0)), Shortage::Limited);
        assert_eq!(of(500, in_pieces(100, 0)), Shortage::Fragmented);
        assert_eq!(of(40, in_pieces(59, 1)), Shortage::Elsewhere);
        assert_eq!(of(0, in_pieces(200, 0)), Shortage::Unused);
    }
}
