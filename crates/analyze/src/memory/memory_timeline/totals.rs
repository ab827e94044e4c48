//! What the allocator of a process said was in use on a device, record by record: also blocks that the profile
//! never saw, because they were taken before the window or on threads that nobody recorded.

use mindprof_model::{Nanos, Profile};

use super::change::{CategoryBytes, MemoryPlace};

/// The allocator's own total over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocatorTotals {
    before: i64,
    /// The total after each record, in time order.
    steps: Vec<(Nanos, i64)>,
}

impl AllocatorTotals {
    /// Collects what the memory records of a place say; nothing if they tell no totals.
    ///
    /// ```text
    /// records    +8 (total 108)    -8 (total 100)
    /// total      100 before        108               100
    /// ```
    pub fn build(profile: &Profile, place: MemoryPlace) -> Option<Self> {
        let records = profile.memory().iter();
        let records = records.filter(|record| MemoryPlace::of(profile, record) == place);
        let mut totals: Option<Self> = None;
        let mut is_told = false;
        for record in records {
            is_told |= record.total_allocated > 0;
            let total = record.total_allocated as i64;
            let before = total.saturating_sub(record.bytes).max(0);
            let totals = totals.get_or_insert(Self {
                before,
                steps: Vec::new(),
            });
            totals.steps.push((record.time, total));
        }
        totals.filter(|_| is_told)
    }

    /// Returns how much more than `known` was in use after the records of `time`; before the first
    /// record if that is none. Less than zero where something was given back that nobody told of.
    pub fn beyond(&self, time: Option<Nanos>, known: &CategoryBytes) -> i64 {
        let total = time.map_or(self.before, |time| self.at(time));
        total.saturating_sub(known.iter().sum())
    }

    /// Returns the total after the last record that is not later than `time`.
    fn at(&self, time: Nanos) -> i64 {
        let count = self.steps.partition_point(|(step, _)| *step <= time);
        let last = count.checked_sub(1);
        last.map_or(self.before, |index| self.steps[index].1)
    }
}
