//! Rules about the transfer of data. Waiting for a late rank is not transfer: `slow-rank` prices it.

use std::collections::BTreeMap;

use mindprof_model::Nanos;

use super::{Evidence, Facts, JobRule, Outcome};
use crate::arrivals::Arrival;

/// The share of the steps from which on exposed transfers count.
const HEAVY: f64 = 0.05;

/// Transfers are poorly overlapped if less than this share of them is hidden behind computing.
const OVERLAP: f64 = 0.3;

/// A message below this size is small.
const SMALL_BYTES: u64 = 1 << 20;

/// Small messages count if there are so many of one kind in a step.
const MANY: usize = 4;

/// The share of the steps from which on small messages count.
const SMALL: f64 = 0.01;

pub(super) const COMMUNICATION_HEAVY: JobRule = JobRule {
    id: "communication-heavy",
    cause: "ranks exchange data while they compute nothing",
    remedy: "accumulate gradients over more batches, compress them, or shard the model differently",
    check: communication_heavy,
};

pub(super) const POOR_OVERLAP: JobRule = JobRule {
    id: "poor-overlap",
    cause: "ranks exchange data while they compute nothing, and hide little of it behind computing",
    remedy: "overlap communication with computing: smaller buckets, prefetching, another stream",
    check: poor_overlap,
};

pub(super) const SMALL_MESSAGES: JobRule = JobRule {
    id: "small-messages",
    cause: "many messages are small",
    remedy: "send fewer and larger messages: larger buckets, or coalesced collectives",
    check: small_messages,
};

/// Both rules have one mechanism, so at most one of them finds it.
fn communication_heavy(facts: &Facts<'_>) -> Outcome {
    exposed(facts, |overlap| overlap >= OVERLAP)
}

fn poor_overlap(facts: &Facts<'_>) -> Outcome {
    exposed(facts, |overlap| overlap < OVERLAP)
}

fn exposed(facts: &Facts<'_>, is_meant: impl Fn(f64) -> bool) -> Outcome {
    let arrivals = match facts.in_steps() {
        Ok(arrivals) => arrivals,
        Err(missing) => return Outcome::Unknown(missing),
    };
    let sum = |of: &dyn Fn(&Arrival) -> Nanos| {
        arrivals
            .iter()
            .fold(Nanos::ZERO, |sum, arrival| sum.saturating_add(of(arrival)))
    };
    let least = sum(&|arrival| arrival.exposed_transfer.0);
    let most = sum(&|arrival| arrival.exposed_transfer.1);
    let hidden = sum(&|arrival| arrival.hidden);
    let (low, high) = (facts.share(least), facts.share(most));
    let share = low.midpoint(high);
    let overlap = hidden.0 as f64 / hidden.saturating_add(most).0.max(1) as f64;
    if share < HEAVY || !is_meant(overlap) {
        return Outcome::Clean;
    }
    Outcome::Found(Evidence {
        share,
        low,
        high,
        collectives: arrivals.len() as u64,
        ..Evidence::default()
    })
}

/// Sending the small messages of a step as one leaves the longest of them.
fn small_messages(facts: &Facts<'_>) -> Outcome {
    facts.by_known_size(small_messages_of)
}

fn small_messages_of(facts: &Facts<'_>, arrivals: &[&Arrival]) -> Outcome {
    let mut by_step: BTreeMap<_, Vec<&Arrival>> = BTreeMap::new();
    for &arrival in arrivals {
        if arrival.bytes < SMALL_BYTES {
            let key = (arrival.step, arrival.group, arrival.kind);
            by_step.entry(key).or_default().push(arrival);
        }
    }
    let many = by_step.values().filter(|list| list.len() >= MANY);
    let (mut low, mut high, mut count) = (0.0, 0.0, 0);
    for list in many {
        count += list.len() as u64;
        let without_longest = |of: &dyn Fn(&Arrival) -> Nanos| {
            let times = list.iter().map(|arrival| of(arrival).0);
            let sum = times.fold(0, u64::saturating_add);
            let longest = list.iter().map(|arrival| of(arrival).0).max().unwrap_or(0);
            facts.share(Nanos(sum - longest))
        };
        low += without_longest(&|arrival| arrival.exposed_transfer.0);
        high += without_longest(&|arrival| arrival.exposed_transfer.1);
    }
    let share = low.midpoint(high);
    if share < SMALL {
        return Outcome::Clean;
    }
    Outcome::Found(Evidence {
        share,
        low,
        high,
        collectives: count,
        ..Evidence::default()
    })
}
