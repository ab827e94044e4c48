//! What the allocator of a process said was in use on a device, record by record: also blocks that the profile
//! never saw, because they were taken before the window or on threads that nobody recorded.

use mindprof_model::{MemoryRecord, Nanos, Profile};
use rustc_hash::FxHashSet;

use super::{CategoryBytes, MemoryPlace};

/// The allocator's own total over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
        let mut totals = Self::default();
        let mut is_told = false;
        let mut counted = None;
        let mut uncounted = UncountedBlocks::default();
        for record in records {
            is_told |= record.total_allocated > 0;
            if !uncounted.take(&record, counted) {
                let total = record.total_allocated as i64;
                if counted.is_none() {
                    totals.raise(total.saturating_sub(record.bytes).max(0));
                }
                counted = Some(record.total_allocated);
            }
            let counted = counted.unwrap_or_default() as i64;
            let total = counted.saturating_add(uncounted.bytes);
            totals.steps.push((record.time, total));
        }
        // What of those was given back had been there from the beginning.
        totals.raise(uncounted.from_before);
        is_told.then_some(totals)
    }

    /// Adds what was in use before the first record, to all that is known until now.
    fn raise(&mut self, bytes: i64) {
        self.before = self.before.saturating_add(bytes);
        for (_, total) in &mut self.steps {
            *total = total.saturating_add(bytes);
        }
    }

    /// Returns how much more than `known` was in use after the records of `time`; before the first
    /// record if that is none.
    pub fn beyond(&self, time: Option<Nanos>, known: &CategoryBytes) -> i64 {
        let total = time.map_or(self.before, |time| self.at(time));
        total.saturating_sub(known.iter().sum()).max(0)
    }

    /// Returns the total after the last record that is not later than `time`.
    fn at(&self, time: Nanos) -> i64 {
        let count = self.steps.partition_point(|(step, _)| *step <= time);
        let last = count.checked_sub(1);
        last.map_or(self.before, |index| self.steps[index].1)
    }
}

/// Blocks that are reported beside the allocator's count, with a total of zero: torch does so with
/// what processes share.
#[derive(Default)]
struct UncountedBlocks {
    addresses: FxHashSet<u64>,
    /// What is in use of them, without what was there before the first record.
    bytes: i64,
    /// What was there before the first record and was given back since.
    from_before: i64,
}

impl UncountedBlocks {
    /// Takes a record that is about such a block, and returns whether it is. `counted` is the
    /// allocator's total before it.
    fn take(&mut self, record: &MemoryRecord, counted: Option<u64>) -> bool {
        let has_total = record.total_allocated > 0;
        let is_uncounted = if record.bytes > 0 {
            if has_total {
                self.addresses.remove(&record.address);
            } else {
                self.addresses.insert(record.address);
            }
            !has_total
        } else if self.addresses.remove(&record.address) {
            true
        } else {
            let bytes = record.bytes.unsigned_abs();
            // Nothing is left where all goes that was counted, and only there.
            let is_from_before = !has_total && counted.is_none_or(|counted| counted > bytes);
            if is_from_before {
                self.from_before = self.from_before.saturating_sub(record.bytes);
            }
            is_from_before
        };
        if is_uncounted {
            self.bytes = self.bytes.saturating_add(record.bytes);
        }
        is_uncounted
    }
}
