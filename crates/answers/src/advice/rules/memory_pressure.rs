//! The device's memory is nearly full.

use mindprof_model::DeviceKind;

use super::card::device;
use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Outcome, Price, Rule};

pub(super) const RULE: Rule = Rule {
    id: "memory-pressure",
    cause: "the device's memory is nearly full",
    remedy: "torch.utils.checkpoint.checkpoint(block, x), a smaller batch, or torch.autocast: larger inputs will fail",
    price: Price::Unpriced { rank: 0.02 },
    needs: &[],
    check,
};

/// The part of the memory from which on the next larger batch fails.
const FULL: f64 = 0.92;

/// The largest amounts of memory in use and held by the allocator of a device.
pub(super) struct Peaks {
    pub(super) allocated: u64,
    pub(super) reserved: u64,
}

impl Peaks {
    /// Returns the peaks with the size of the device's memory, or the data that is missing.
    pub(super) fn with_size(facts: &Facts<'_>) -> Result<(Self, u64), &'static str> {
        let peaks = Self::of(facts).ok_or("memory was not recorded: profile_memory=True")?;
        let size = device(facts).map(|device| device.memory_bytes);
        let size = size.filter(|&size| size > 0);
        let size = size.ok_or("the size of the device's memory is not in this profile")?;
        Ok((peaks, size))
    }

    fn of(facts: &Facts<'_>) -> Option<Self> {
        let records = facts.profile.memory().iter();
        let records = records.filter(|record| record.device != DeviceKind::Cpu);
        records.fold(None, |peaks, record| {
            let (allocated, reserved) =
                peaks.map_or((0, 0), |peaks: Self| (peaks.allocated, peaks.reserved));
            Some(Self {
                allocated: allocated.max(record.total_allocated),
                reserved: reserved.max(record.total_reserved),
            })
        })
    }
}

fn check(facts: &Facts<'_>) -> Outcome {
    if !facts.has_device {
        return Outcome::Clean;
    }
    let (peaks, size) = match Peaks::with_size(facts) {
        Ok(found) => found,
        Err(missing) => return Outcome::Unknown(missing),
    };
    if (peaks.allocated as f64) < FULL * size as f64 {
        return Outcome::Clean;
    }
    Outcome::Found(Evidence {
        bytes: Some(peaks.allocated),
        blame: Some(Blame::Nobody),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn using(allocated: i64, reserved: u64) -> mindprof_model::Profile {
        training(4, |time, step| {
            time.on_h200();
            time.reserve(reserved);
            if step == 0 {
                time.allocate(0x1000, allocated);
            }
            time.compute(10, 100);
        })
    }

    #[test]
    fn memory_that_is_nearly_full_is_a_hint() {
        let finding = found(using(145_000_000_000, 0), "memory-pressure");
        assert_eq!((finding.share, finding.bytes), (0.0, Some(145_000_000_000)));
    }

    #[test]
    fn some_free_memory_is_clean() {
        assert_eq!(
            outcome(using(130_000_000_000, 0), "memory-pressure"),
            "clean"
        );
    }

    // The allocator holds nearly all memory, but most of it is free for tensors.
    #[test]
    fn memory_that_is_only_held_is_clean() {
        let profile = using(80_000_000_000, 145_000_000_000);
        assert_eq!(outcome(profile, "memory-pressure"), "clean");
    }

    #[test]
    fn without_memory_nothing_can_be_told() {
        let profile = training(4, |time, _| time.compute(10, 100));
        assert_eq!(outcome(profile, "memory-pressure"), "unknown");
    }
}
