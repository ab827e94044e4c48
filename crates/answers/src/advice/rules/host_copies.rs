//! Copies from pageable memory hold up the CPU.

use mindprof_model::EventId;
use rustc_hash::FxHashSet;

use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;
use crate::replay::is_copy_call;

pub(super) const RULE: Rule = Rule {
    id: "host-copies",
    cause: "copies from pageable memory hold up the CPU",
    remedy: "copy from pinned memory: DataLoader(..., pin_memory=True) and x.to(device, non_blocking=True)",
    price: Price::replay(0.02, (0.6, 1.5)),
    needs: &[EventKind::Cpu, EventKind::Device],
    check,
};

/// Copies that take less than this part of the step are small. `synchronization` counts the waits for
/// them.
const SMALL: f64 = 0.01;

/// How long a copy from pinned memory takes, compared with pageable memory.
const PINNED: f32 = 0.35;

/// How long the call of a copy that nobody waits for takes.
const ENQUEUED: f32 = 0.1;

fn check(facts: &Facts<'_>) -> Outcome {
    let is_pageable = |name: &str| name.starts_with("Memcpy HtoD") && name.contains("Pageable");
    let copies = facts.named(&facts.kernels, is_pageable);
    let time: u64 = copies.iter().map(|&id| facts.duration(id).0).sum();
    if (time as f64) < SMALL * facts.base.0 as f64 || copies.is_empty() {
        return Outcome::Clean;
    }
    let correlation = facts.analysis.correlation();
    let owners: FxHashSet<EventId> = (copies.iter())
        .filter_map(|&id| correlation.owner(id))
        .collect();
    let mut mending = Mending::default();
    for &id in &copies {
        mending.scale(id, PINNED);
    }
    for id in facts.named(&facts.runtime, is_copy_call) {
        let owner = correlation.owner(id);
        if owner.is_some_and(|owner| owners.contains(&owner)) {
            mending.unblock(id);
            mending.scale(id, ENQUEUED);
        }
    }
    Outcome::Found(Evidence {
        events: copies,
        mending,
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    const PAGEABLE: &str = "Memcpy HtoD (Pageable -> Device)";
    const PINNED: &str = "Memcpy HtoD (Pinned -> Device)";

    fn fetching(copy: &str, micros: u64) -> mindprof_model::Profile {
        training(5, |time, _| {
            time.call("train.py(4): fetch", |time| {
                time.copy("aten::copy_", copy, micros, 1 << 20);
            });
            time.compute(10, 100);
        })
    }

    #[test]
    fn copies_of_pageable_memory_are_found() {
        let finding = found(fetching(PAGEABLE, 500), "host-copies");
        assert_eq!(blamed(&finding), "fetch");
        assert!((0.15..0.6).contains(&finding.share), "{}", finding.share);
    }

    #[test]
    fn a_small_copy_is_clean() {
        assert_eq!(outcome(fetching(PAGEABLE, 5), "host-copies"), "clean");
    }

    #[test]
    fn copies_of_pinned_memory_are_clean() {
        assert_eq!(outcome(fetching(PINNED, 500), "host-copies"), "clean");
    }
}
