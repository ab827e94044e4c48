//! The curve of allocated and reserved bytes over a history, and its peak.

use mindprof_model::{AllocatorAction, SnapshotDevice};
use serde::Serialize;

use super::lifetimes::Lifetimes;

/// The approximate number of points of a curve. The highest and the last one of each interval are
/// kept, so that the peak is one of them.
const MOST_POINTS: usize = 4000;

/// The memory of a device at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryMoment {
    /// The time since the first entry of the history, or `None` if it was before it or entries have
    /// no times.
    pub time_us: Option<u64>,
    /// The number of the entry, counted from zero, that led to it, or `None` if none did.
    pub entry: Option<u64>,
    /// The bytes that the program had asked for.
    pub allocated_bytes: u64,
    /// The bytes that the allocator had of the device.
    pub reserved_bytes: u64,
}

/// Allocated and reserved bytes over time. All lists have the same length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryCurve {
    /// Times since the first entry, or numbers of entries if they have no times.
    pub times_us: Vec<u64>,
    /// Bytes that the program had asked for.
    pub allocated_bytes: Vec<u64>,
    /// Bytes that the allocator had of the device.
    pub reserved_bytes: Vec<u64>,
}

/// The states of a device, one after the other.
pub(super) struct Replay {
    pub(super) curve: MemoryCurve,
    pub(super) peak: MemoryMoment,
    /// The state of the peak: the number of entries before it.
    pub(super) peak_state: u32,
    pub(super) peak_reserved_bytes: u64,
    /// The segments in the state before the first entry.
    pub(super) before_reserved_bytes: u64,
    pub(super) at_end: MemoryMoment,
}

impl Replay {
    /// Replays the entries from the state before the first one.
    pub(super) fn build(device: &SnapshotDevice, lifetimes: &Lifetimes) -> Self {
        let mut changes = Changes::of(device, lifetimes);
        let clock = Clock::of(device);
        let mut thinner = Thinner::new(clock.span());
        let mut now = MemoryMoment {
            allocated_bytes: changes.allocated,
            reserved_bytes: changes.reserved,
            ..MemoryMoment::default()
        };
        let (mut peak, mut peak_state, mut peak_reserved_bytes) = (now, 0, now.reserved_bytes);
        let before_reserved_bytes = now.reserved_bytes;
        thinner.add(0, now);
        for state in 1..=device.entries.len() {
            changes.apply(state, device);
            let time = clock.time(state - 1);
            now = MemoryMoment {
                time_us: clock.has_times.then_some(time),
                entry: Some(state as u64 - 1),
                allocated_bytes: changes.allocated,
                reserved_bytes: changes.reserved,
            };
            if now.allocated_bytes > peak.allocated_bytes {
                (peak, peak_state) = (now, state as u32);
            }
            peak_reserved_bytes = peak_reserved_bytes.max(now.reserved_bytes);
            thinner.add(time, now);
        }
        Self {
            curve: thinner.finish(),
            peak,
            peak_state,
            peak_reserved_bytes,
            before_reserved_bytes,
            at_end: now,
        }
    }
}

/// The sums of allocated and reserved bytes, and how entries change them.
struct Changes {
    allocated: u64,
    reserved: u64,
    /// By state, the change of the allocated bytes.
    allocations: Vec<i64>,
}

impl Changes {
    fn of(device: &SnapshotDevice, lifetimes: &Lifetimes) -> Self {
        let mut allocations = vec![0_i64; device.entries.len() + 1];
        for one in &lifetimes.all {
            let bytes = one.bytes as i64;
            let begun = &mut allocations[one.begin as usize];
            *begun = begun.saturating_add(bytes);
            if let Some(ended) = allocations.get_mut(one.end as usize) {
                *ended = ended.saturating_sub(bytes);
            }
        }
        // The segments are what the changes of the history led to.
        let segments = device.segments.iter();
        let mut reserved = segments.fold(0_u64, |sum, segment| sum.saturating_add(segment.bytes));
        for entry in device.entries.iter().rev() {
            match entry.action {
                AllocatorAction::SegmentAlloc => reserved = reserved.saturating_sub(entry.bytes),
                AllocatorAction::SegmentFree => reserved = reserved.saturating_add(entry.bytes),
                AllocatorAction::Alloc
                | AllocatorAction::FreeRequested
                | AllocatorAction::FreeCompleted
                | AllocatorAction::OutOfMemory
                | AllocatorAction::Mark
                | AllocatorAction::Unknown => {}
            }
        }
        Self {
            allocated: allocations[0].max(0) as u64,
            reserved,
            allocations,
        }
    }

    fn apply(&mut self, state: usize, device: &SnapshotDevice) {
        self.allocated = self
            .allocated
            .saturating_add_signed(self.allocations[state]);
        let entry = device.entries[state - 1];
        match entry.action {
            AllocatorAction::SegmentAlloc => {
                self.reserved = self.reserved.saturating_add(entry.bytes);
            }
            AllocatorAction::SegmentFree => {
                self.reserved = self.reserved.saturating_sub(entry.bytes);
            }
            AllocatorAction::Alloc
            | AllocatorAction::FreeRequested
            | AllocatorAction::FreeCompleted
            | AllocatorAction::OutOfMemory
            | AllocatorAction::Mark
            | AllocatorAction::Unknown => {}
        }
    }
}

/// The times of entries since the first one, or their numbers if they have no times.
pub(super) struct Clock<'a> {
    device: &'a SnapshotDevice,
    first: u64,
    pub(super) has_times: bool,
}

impl<'a> Clock<'a> {
    pub(super) fn of(device: &'a SnapshotDevice) -> Self {
        let times = device.entries.iter().map(|entry| entry.time_us);
        let first = times.filter(|&time| time > 0).min();
        Self {
            device,
            first: first.unwrap_or_default(),
            has_times: first.is_some(),
        }
    }

    pub(super) fn time(&self, index: usize) -> u64 {
        if self.has_times {
            self.device.entries[index]
                .time_us
                .saturating_sub(self.first)
        } else {
            index as u64
        }
    }

    fn span(&self) -> u64 {
        let indices = 0..self.device.entries.len();
        indices
            .map(|index| self.time(index))
            .max()
            .unwrap_or_default()
    }
}

/// Keeps the highest and the last point of each interval of time.
struct Thinner {
    interval_us: u64,
    interval: u64,
    highest: Option<(u64, MemoryMoment)>,
    last: Option<(u64, MemoryMoment)>,
    curve: MemoryCurve,
}

impl Thinner {
    const fn new(span_us: u64) -> Self {
        Self {
            interval_us: span_us / (MOST_POINTS as u64 / 2) + 1,
            interval: 0,
            highest: None,
            last: None,
            curve: MemoryCurve {
                times_us: Vec::new(),
                allocated_bytes: Vec::new(),
                reserved_bytes: Vec::new(),
            },
        }
    }

    /// Adds a point. Entries of several threads may be out of order by a little; a curve goes on.
    fn add(&mut self, time_us: u64, moment: MemoryMoment) {
        let time_us = self.last.map_or(time_us, |(last, _)| time_us.max(last));
        let interval = time_us / self.interval_us;
        if interval != self.interval {
            self.flush();
            self.interval = interval;
        }
        let is_higher = |(_, highest): &(u64, MemoryMoment)| {
            (moment.allocated_bytes, moment.reserved_bytes)
                > (highest.allocated_bytes, highest.reserved_bytes)
        };
        if self.highest.as_ref().is_none_or(is_higher) {
            self.highest = Some((time_us, moment));
        }
        self.last = Some((time_us, moment));
    }

    fn flush(&mut self) {
        let Some(highest) = self.highest.take() else {
            return;
        };
        self.push(highest);
        if let Some(last) = self.last.filter(|last| *last != highest) {
            self.push(last);
        }
    }

    fn push(&mut self, (time_us, moment): (u64, MemoryMoment)) {
        self.curve.times_us.push(time_us);
        self.curve.allocated_bytes.push(moment.allocated_bytes);
        self.curve.reserved_bytes.push(moment.reserved_bytes);
    }

    fn finish(mut self) -> MemoryCurve {
        self.flush();
        self.curve
    }
}
