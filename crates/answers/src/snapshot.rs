//! Conclusions from a memory snapshot of a caching allocator: the curve of memory, the peak and who
//! held it, fragmentation, and the state at each out-of-memory error.
//!
//! The history is replayed backwards from the blocks that the snapshot lists: an allocation that
//! the history does not begin with is from before it. So the curve is exact within the history,
//! also if older entries were overwritten.

mod curve;
mod free_space;
mod holders;
mod lifetimes;
mod out_of_memory;
mod space;
#[cfg(test)]
mod tests;

use mindprof_model::{AllocatorAction, MemorySnapshot, SnapshotDevice};
use serde::Serialize;

use crate::own_code::OwnCode;

use curve::Replay;
use holders::StackPlaces;
use lifetimes::Lifetimes;

pub use curve::{MemoryCurve, MemoryMoment};
pub use free_space::FreeElsewhere;
pub use holders::{HeldBy, HolderKind, LineHolder, StackHolder};
pub use out_of_memory::{OutOfMemory, Shortage};
pub use space::Space;

/// The conclusions from a memory snapshot, for each device. `mindprof memory` prints them, and
/// `--json` has all of them.
#[derive(Clone, Debug, Serialize)]
pub struct SnapshotMemory {
    /// The devices, the one with the highest peak first.
    pub devices: Vec<DeviceMemory>,
    /// Whether segments grow in place, if the file says so.
    pub expandable_segments: Option<bool>,
    /// Whether the file also has memory of the CPU that is pinned for devices, which is left out.
    pub has_pinned: bool,
}

/// The memory of one device. Allocated bytes are those that the program asked for, before the
/// allocator rounded them up, because the history has no others.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceMemory {
    /// The number of the device.
    pub device: u32,
    /// How much of the past is known.
    pub history: History,
    /// The highest sum of allocations, and when it was reached. `None` without a history.
    pub peak: Option<MemoryMoment>,
    /// The highest sum of segments. `None` without a history.
    pub peak_reserved_bytes: Option<u64>,
    /// The state when the snapshot was taken.
    pub at_end: MemoryMoment,
    /// The holders of memory at the peak, or without a history when the snapshot was taken.
    pub held: HeldBy,
    /// How the memory is divided when the snapshot was taken.
    pub space: Space,
    /// The number of out-of-memory errors.
    pub out_of_memory_count: u64,
    /// The last out-of-memory errors, oldest first.
    pub out_of_memory: Vec<OutOfMemory>,
    /// Allocated and reserved bytes over time, thinned to what a chart can show.
    pub curve: MemoryCurve,
}

/// How much of the past a snapshot knows, and what does not fit together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct History {
    /// The number of entries.
    pub entries: u64,
    /// The time of the first entry in microseconds since 1970, if entries have times.
    pub start_unix_us: Option<u64>,
    /// The time from the first to the last entry.
    pub span_us: u64,
    /// Bytes of allocations from before the history.
    pub before_bytes: u64,
    /// Bytes of segments from before the history. Something was allocated in them then.
    pub before_reserved_bytes: u64,
    /// The part of the allocations from before the history that has stacks: they were recorded, so
    /// that the history once had them.
    pub overwritten_bytes: u64,
    /// Entries that contradict each other or the blocks: the curve is not exact.
    pub contradictions: u64,
    /// Entries of kinds that are not known.
    pub unknown_entries: u64,
}

impl History {
    /// Returns whether there is a history. One entry alone marks the snapshot.
    pub const fn is_there(&self) -> bool {
        self.entries > 1
    }

    /// Returns whether older entries were overwritten, so that an earlier peak would not be seen.
    pub const fn is_truncated(&self) -> bool {
        self.overwritten_bytes > 0
    }

    fn of(device: &SnapshotDevice, lifetimes: &Lifetimes, replay: &Replay) -> Self {
        let entries = &device.entries;
        let times = entries
            .iter()
            .map(|entry| entry.time_us)
            .filter(|&time| time > 0);
        let (first, last) = times.fold((None, 0), |(first, last), time| {
            (
                Some(first.map_or(time, |first: u64| first.min(time))),
                time.max(last),
            )
        });
        let unknown = entries.iter();
        let unknown = unknown.filter(|entry| entry.action == AllocatorAction::Unknown);
        Self {
            entries: entries.len() as u64,
            start_unix_us: first,
            span_us: first.map_or(0, |first| last - first),
            before_bytes: lifetimes.before_bytes(),
            before_reserved_bytes: replay.before_reserved_bytes,
            // Without any history, nothing was overwritten: only blocks were recorded.
            overwritten_bytes: if entries.len() > 1 {
                lifetimes.overwritten_bytes()
            } else {
                0
            },
            contradictions: lifetimes.contradictions,
            unknown_entries: unknown.count() as u64,
        }
    }
}

impl DeviceMemory {
    /// Returns the peak, or without a history the state when the snapshot was taken.
    pub fn most(&self) -> MemoryMoment {
        self.peak.unwrap_or(self.at_end)
    }
}

impl SnapshotMemory {
    /// Replays a snapshot. `own` decides which frames are the user's.
    pub fn build(snapshot: &MemorySnapshot, own: &OwnCode) -> Self {
        let mut places = StackPlaces::new(snapshot, own);
        let devices = snapshot.devices.iter();
        let devices = devices.map(|device| device_memory(snapshot, device, &mut places));
        let mut devices: Vec<DeviceMemory> = devices.collect();
        devices.sort_by_key(|device| std::cmp::Reverse(device.most().allocated_bytes));
        Self {
            devices,
            expandable_segments: snapshot.settings.expandable_segments,
            has_pinned: snapshot.has_pinned,
        }
    }
}

fn device_memory(
    snapshot: &MemorySnapshot,
    device: &SnapshotDevice,
    places: &mut StackPlaces<'_>,
) -> DeviceMemory {
    let lifetimes = Lifetimes::build(device);
    let replay = Replay::build(device, &lifetimes);
    let errors = device.entries.iter();
    let errors = errors.filter(|entry| entry.action == AllocatorAction::OutOfMemory);
    let history = History::of(device, &lifetimes, &replay);
    let has_history = history.is_there();
    DeviceMemory {
        device: device.device,
        history,
        peak: has_history.then_some(replay.peak),
        peak_reserved_bytes: has_history.then_some(replay.peak_reserved_bytes),
        at_end: replay.at_end,
        held: HeldBy::at(&lifetimes, replay.peak_state, snapshot, places),
        space: Space::of(device),
        out_of_memory_count: errors.count() as u64,
        out_of_memory: OutOfMemory::find(snapshot, device, &lifetimes, places),
        curve: replay.curve,
    }
}
