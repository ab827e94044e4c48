//! What the allocator of a device said was in use, record by record: also blocks that the profile
//! never saw, because they were taken before the window or on threads that nobody recorded.

use mindprof_model::{Nanos, Profile};
use rustc_hash::FxHashMap;

use super::{CategoryBytes, MemoryDevice};

/// The allocator's own total over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocatorTotals {
    before: u64,
    /// The total after each record, in time order.
    steps: Vec<(Nanos, u64)>,
}

impl AllocatorTotals {
    /// Collects what the memory records of a device say; nothing if they tell no totals.
    ///
    /// ```text
    /// records    +8 (total 108)    -8 (total 100)
    /// total      100 before        108               100
    /// ```
    ///
    /// Each process has an allocator of its own; the totals of several add up.
    pub fn build(profile: &Profile, device: MemoryDevice) -> Option<Self> {
        let records = profile.memory().iter();
        let records = records
            .filter(|record| (record.device, record.device_index) == (device.kind, device.index));
        let mut of_processes: FxHashMap<u64, u64> = FxHashMap::default();
        let mut totals = Self::default();
        let mut is_told = false;
        let mut change = 0_i64;
        for record in records {
            is_told |= record.total_allocated > 0;
            let process = profile.threads()[record.thread.index()].process;
            let last = of_processes.entry(process).or_insert_with(|| {
                let before = (record.total_allocated as i64).saturating_sub(record.bytes);
                let before = u64::try_from(before).unwrap_or_default();
                totals.before = totals.before.saturating_add(before);
                before
            });
            change = change
                .saturating_add(record.total_allocated as i64)
                .saturating_sub(*last as i64);
            *last = record.total_allocated;
            totals.steps.push((record.time, change as u64));
        }
        // What processes had before is known in full only now: changes become totals.
        for (_, total) in &mut totals.steps {
            *total = totals.before.saturating_add_signed(*total as i64);
        }
        is_told.then_some(totals)
    }

    /// Returns how much more than `known` was in use after the records of `time`; before the first
    /// record if that is none.
    pub fn beyond(&self, time: Option<Nanos>, known: &CategoryBytes) -> i64 {
        let total = time.map_or(self.before, |time| self.at(time));
        (total as i64).saturating_sub(known.iter().sum()).max(0)
    }

    /// Returns the total after the last record that is not later than `time`.
    fn at(&self, time: Nanos) -> u64 {
        let count = self.steps.partition_point(|(step, _)| *step <= time);
        let last = count.checked_sub(1);
        last.map_or(self.before, |index| self.steps[index].1)
    }
}
