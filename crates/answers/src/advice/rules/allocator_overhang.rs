//! The allocator holds much more memory than tensors need.

use super::memory_pressure::Peaks;
use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Outcome, Price, Rule};

pub(super) const RULE: Rule = Rule {
    id: "allocator-overhang",
    cause: "the allocator holds much more memory than tensors need",
    remedy: "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, and inputs of few different sizes",
    price: Price::Unpriced { rank: 0.02 },
    needs: &[],
    check,
};

/// The memory that is held, compared with the most that was in use at once.
const MUCH_MORE: f64 = 2.0;

/// Less than this part of the card is in nobody's way.
const MUCH: f64 = 0.3;

fn check(facts: &Facts<'_>) -> Outcome {
    if !facts.has_device {
        return Outcome::Clean;
    }
    let (peaks, size) = match Peaks::with_size(facts) {
        Ok(found) => found,
        Err(missing) => return Outcome::Unknown(missing),
    };
    let held = peaks.reserved as f64;
    if held < MUCH_MORE * peaks.allocated as f64 || held < MUCH * size as f64 {
        return Outcome::Clean;
    }
    Outcome::Found(Evidence {
        bytes: Some(peaks.reserved - peaks.allocated),
        blame: Some(Blame::Nobody),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn holding(allocated: i64, reserved: u64) -> mindprof_model::Profile {
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
    fn memory_that_is_held_for_nothing_is_a_hint() {
        let finding = found(
            holding(20_000_000_000, 60_000_000_000),
            "allocator-overhang",
        );
        assert_eq!((finding.share, finding.bytes), (0.0, Some(40_000_000_000)));
    }

    #[test]
    fn a_little_more_is_clean() {
        let profile = holding(40_000_000_000, 60_000_000_000);
        assert_eq!(outcome(profile, "allocator-overhang"), "clean");
    }

    // Three times as much of a small part of the card.
    #[test]
    fn a_small_part_of_the_card_is_clean() {
        let profile = holding(1_000_000_000, 3_000_000_000);
        assert_eq!(outcome(profile, "allocator-overhang"), "clean");
    }
}
