//! What the allocator of a process said was in use on a device, record by record: also blocks that the profile
//! never saw, because they were taken before the window or on threads that nobody recorded.

use mindprof_model::{MemoryRecord, Nanos, Profile};
use rustc_hash::FxHashSet;

use super::{CategoryBytes, MemoryPlace};

/// The allocator's own total over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllocatorTotals {
    before: u64,
    /// The total after each record, in time order.
    steps: Vec<(Nanos, u64)>,
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
            if !uncounted.take(&record) {
                let total = record.total_allocated;
                if counted.is_none() {
                    let before = (total as i64).saturating_sub(record.bytes);
                    totals.begin_with(u64::try_from(before).unwrap_or_default());
                }
                counted = Some(total);
            }
            let total = counted.unwrap_or_default() + uncounted.bytes;
            totals.steps.push((record.time, total));
        }
        is_told.then_some(totals)
    }

    /// Says what was in use before the first record.
    fn begin_with(&mut self, before: u64) {
        self.before = before;
        for (_, total) in &mut self.steps {
            *total += before;
        }
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

/// Blocks that are reported beside the allocator's count, with a total of zero: torch does so with
/// what processes share.
#[derive(Default)]
struct UncountedBlocks {
    addresses: FxHashSet<u64>,
    /// What is in use of them.
    bytes: u64,
}

impl UncountedBlocks {
    /// Takes a record that is about such a block, and returns whether it is.
    fn take(&mut self, record: &MemoryRecord) -> bool {
        let bytes = record.bytes.unsigned_abs();
        if record.bytes > 0 {
            let is_uncounted = record.total_allocated == 0;
            if is_uncounted {
                self.addresses.insert(record.address);
                self.bytes += bytes;
            }
            return is_uncounted;
        }
        let is_uncounted = self.addresses.remove(&record.address);
        if is_uncounted {
            self.bytes = self.bytes.saturating_sub(bytes);
        }
        is_uncounted
    }
}
