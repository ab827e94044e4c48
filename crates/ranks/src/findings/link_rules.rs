//! Rules that compare transfers of the same kind and size with each other.

use std::collections::BTreeMap;

use mindprof_answers::Confidence;
use mindprof_model::Nanos;

use super::{Evidence, Facts, JobRule, Outcome};
use crate::arrivals::Arrival;
use crate::collectives::CollectiveKind;
use crate::histogram::Histogram;
use crate::median::median;

/// A transfer is slow if it takes this many percent of the usual time.
const SLOW_PERCENT: u128 = 125;

/// The fewest transfers and the fewest groups that a comparison rests on.
const FEWEST: usize = 3;

/// Ends of a collective differ if they are so far apart, and by this share of its duration.
const ENDS_APART: Nanos = Nanos(100_000);
const ENDS_SHARE: f64 = 0.2;

pub(super) const SLOW_LINK: JobRule = JobRule {
    id: "slow-link",
    cause: "the ranks of one group exchange the same data more slowly than those of the others",
    remedy: "check the network of these machines: link speed, retransmissions, their place in the topology",
    check: slow_link,
};

pub(super) const SLOWED_BY_COMPUTE: JobRule = JobRule {
    id: "slowed-by-compute",
    cause: "transfers take longer while kernels compute",
    remedy: "leave more multiprocessors or channels to communication, or move it beside kernels that use less memory bandwidth",
    check: slowed_by_compute,
};

pub(super) const ENDS_DIFFER: JobRule = JobRule {
    id: "ends-differ",
    cause: "collectives do not end on all ranks at the same time",
    remedy: "look for a rank that is slow to finish: throttled, or busy with other work. Waits are as uncertain as the ends are apart",
    check: ends_differ,
};

/// Transfers of one kind, size and number of ranks.
type Alike = (CollectiveKind, u64, usize);

fn slow_link(facts: &Facts<'_>) -> Outcome {
    facts.by_known_size(slow_link_of)
}

fn slow_link_of(facts: &Facts<'_>, arrivals: &[&Arrival]) -> Outcome {
    let mut alike: BTreeMap<Alike, BTreeMap<usize, Vec<&Arrival>>> = BTreeMap::new();
    for &arrival in arrivals {
        let key = (arrival.kind, arrival.bytes, arrival.ranks.len());
        let groups = alike.entry(key).or_default();
        groups.entry(arrival.group).or_default().push(arrival);
    }
    let mut excesses: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for groups in alike.values().filter(|groups| groups.len() >= FEWEST) {
        let medians = groups.iter().filter(|(_, list)| list.len() >= FEWEST);
        let medians: Vec<(usize, Nanos)> = medians
            .filter_map(|(&group, list)| Some((group, median_transfer(list.iter().copied())?)))
            .collect();
        let mut values: Vec<Nanos> = medians.iter().map(|&(_, time)| time).collect();
        let Some(usual) = median(&mut values) else {
            continue;
        };
        for (group, time) in medians {
            if u128::from(time.0) * 100 > u128::from(usual.0) * SLOW_PERCENT {
                let list = &groups[&group];
                let times = list.iter().map(|arrival| exposed(arrival).0);
                let exposed = times.fold(0, u64::saturating_add);
                // The part of the transfer that is beyond the usual time, if it is exposed.
                let beyond = u128::from(exposed) * u128::from(time.saturating_sub(usual).0);
                let beyond = beyond / u128::from(time.0.max(1));
                let (sum, count) = excesses.entry(group).or_default();
                *sum = sum.saturating_add(u64::try_from(beyond).unwrap_or(exposed));
                *count += list.len() as u64;
            }
        }
    }
    let Some((group, (time, count))) = excesses.into_iter().max_by_key(|(_, (time, _))| *time)
    else {
        return Outcome::Clean;
    };
    // All ranks wait for the slowest group at the next collective that they share.
    let ranks = facts.arrivals.iter().find(|arrival| arrival.group == group);
    let ranks = ranks.map_or(1, |arrival| arrival.ranks.len());
    let share = time as f64 / ranks as f64 / facts.times.total.0.max(1) as f64;
    Outcome::Found(Evidence {
        share,
        low: 0.0,
        high: share,
        group: Some(facts.matches.groups[group].ranks.to_string()),
        collectives: count,
        confidence: Some(Confidence::Medium),
        ..Evidence::default()
    })
}

/// Returns the exposed transfer of a collective, summed up over its ranks.
fn exposed(arrival: &Arrival) -> Nanos {
    let (least, most) = arrival.exposed_transfer;
    Nanos(least.0.midpoint(most.0))
}

fn median_transfer<'a>(list: impl Iterator<Item = &'a Arrival>) -> Option<Nanos> {
    let mut times: Vec<Nanos> = list.map(|arrival| arrival.transfer).collect();
    median(&mut times)
}

fn slowed_by_compute(facts: &Facts<'_>) -> Outcome {
    facts.by_known_size(slowed_by_compute_of)
}

fn slowed_by_compute_of(facts: &Facts<'_>, arrivals: &[&Arrival]) -> Outcome {
    let mut alike: BTreeMap<(usize, CollectiveKind, u64), [Vec<&Arrival>; 2]> = BTreeMap::new();
    for &arrival in arrivals {
        // Waiting hides nothing and is hidden by nothing, so only the transfer counts.
        let hidden = u128::from(arrival.hidden.0);
        let exposed = u128::from(exposed(arrival).0);
        let side = match hidden * 100 / (hidden + exposed).max(1) {
            0..=20 => 0,
            80.. => 1,
            21..80 => continue,
        };
        let key = (arrival.group, arrival.kind, arrival.bytes);
        alike.entry(key).or_default()[side].push(arrival);
    }
    let (mut time, mut count) = (Nanos::ZERO, 0);
    for [alone, beside] in alike.values() {
        if alone.len().min(beside.len()) < FEWEST {
            continue;
        }
        let alone = median_transfer(alone.iter().copied()).unwrap_or_default();
        let slowed = median_transfer(beside.iter().copied()).unwrap_or_default();
        if u128::from(slowed.0) * 100 > u128::from(alone.0) * SLOW_PERCENT {
            count += beside.len() as u64;
            let beyond = slowed.saturating_sub(alone);
            let exposures = beside.iter().map(|arrival| exposed(arrival));
            let costs = exposures.map(|exposed| exposed.min(beyond));
            time = costs.fold(time, Nanos::saturating_add);
        }
    }
    if count == 0 {
        return Outcome::Clean;
    }
    let share = facts.share(time);
    Outcome::Found(Evidence {
        share,
        low: 0.0,
        high: share,
        collectives: count,
        confidence: Some(Confidence::Medium),
        ..Evidence::default()
    })
}

fn ends_differ(facts: &Facts<'_>) -> Outcome {
    let ending = facts
        .arrivals
        .iter()
        .filter(|arrival| arrival.kind.is_synchronizing());
    let ending: Vec<&Arrival> = ending.collect();
    if ending.is_empty() {
        return Outcome::Unknown(facts.why_no_arrivals());
    }
    let spreads = Histogram::of(ending.iter().map(|arrival| arrival.end_spread).collect());
    let lengths = ending
        .iter()
        .map(|arrival| arrival.transfer.saturating_add(arrival.skew));
    let lengths = Histogram::of(lengths.collect());
    let spread = spreads.percentile(50);
    if spread < ENDS_APART || (spread.0 as f64) < ENDS_SHARE * lengths.percentile(50).0 as f64 {
        return Outcome::Clean;
    }
    Outcome::Found(Evidence {
        is_unpriced: true,
        collectives: ending.len() as u64,
        ..Evidence::default()
    })
}
