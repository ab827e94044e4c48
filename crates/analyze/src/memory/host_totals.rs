//! The total of the CPU allocator over time, from the totals that memory records carry.

use mindprof_model::{MemoryRecord, Nanos, Profile};

use crate::memory::memory_use::Bytes;

/// The bytes that the CPU allocator had handed out at each moment.
///
/// Each memory record carries the allocator's total after it, which includes blocks that were never
/// recorded. Python's events read from here how much memory was in use before and after them.
#[derive(Clone, Debug, Default)]
pub struct HostTotals {
    /// The time of each record and the total after it, in time order.
    totals: Vec<(Nanos, u64)>,
    /// The total before the first record.
    before: u64,
}

impl HostTotals {
    /// Collects the totals of a profile.
    pub fn build(profile: &Profile) -> Self {
        let is_cpu = |record: &MemoryRecord| Bytes::of(record).host != 0;
        let mut records = profile.memory().iter().filter(is_cpu).peekable();
        let before = records.peek().map_or(0, |first| {
            first.total_allocated.saturating_add_signed(-first.bytes)
        });
        Self {
            totals: records
                .map(|record| (record.time, record.total_allocated))
                .collect(),
            before,
        }
    }

    /// Returns the total just before a time.
    pub fn before(&self, moment: Nanos) -> u64 {
        self.at(self.totals.partition_point(|&(time, _)| time < moment))
    }

    /// Returns the total just after a time.
    pub fn after(&self, moment: Nanos) -> u64 {
        self.at(self.totals.partition_point(|&(time, _)| time <= moment))
    }

    fn at(&self, next: usize) -> u64 {
        match next.checked_sub(1) {
            Some(last) => self.totals[last].1,
            None => self.before,
        }
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::{DeviceKind, Part, StackId, Thread};

    use super::*;

    // cpu      +64      -64           100 before, 164 from 10 on, 100 from 30 on
    // cuda          +8
    //          10   20   30
    #[test]
    fn totals_are_those_of_the_cpu_allocator() {
        let mut part = Part::new();
        let name = part.strings.intern("main");
        let thread = part.add_thread(Thread {
            process: 1,
            native: 1,
            name,
            device: DeviceKind::Cpu,
        });
        let drawn = [
            (10, 64, 164, DeviceKind::Cpu),
            (20, 8, 8, DeviceKind::Cuda),
            (30, -64, 100, DeviceKind::Cpu),
        ];
        part.add_memory_records(
            drawn
                .into_iter()
                .map(|(time, bytes, total_allocated, device)| MemoryRecord {
                    time: Nanos(time),
                    address: 0,
                    bytes,
                    total_allocated,
                    total_reserved: 0,
                    thread,
                    stack: StackId::NONE,
                    device,
                    device_index: -1,
                }),
        );
        let totals = HostTotals::build(&part.into_profile().expect("the thread was added"));
        assert_eq!([0, 10].map(|at| totals.before(Nanos(at))), [100, 100]);
        assert_eq!([0, 10].map(|at| totals.after(Nanos(at))), [100, 164]);
        assert_eq!([20, 30].map(|at| totals.before(Nanos(at))), [164, 164]);
        assert_eq!([20, 30].map(|at| totals.after(Nanos(at))), [164, 100]);
    }

    #[test]
    fn without_records_nothing_was_handed_out() {
        let profile = Part::new().into_profile().expect("nothing was added");
        assert_eq!(HostTotals::build(&profile).after(Nanos(5)), 0);
    }
}
