//! Rules about ranks that others wait for.

use std::collections::{BTreeMap, BTreeSet};

use mindprof_answers::Confidence;
use mindprof_model::Nanos;

use super::{Evidence, Facts, JobRule, Outcome};
use crate::label::RankLabel;
use crate::own_times::sum_of;

/// The share of the steps from which on bubbles count.
const BUBBLE: f64 = 0.05;

/// The share of the steps from which on waits count that no slow rank explains.
const UNEVEN: f64 = 0.05;

/// Waits are priced only over so many steps.
const ENOUGH_STEPS: usize = 5;
const FEW_STEPS: &str = "fewer than five steps were recorded by two ranks: record more";

/// The ranks that come late are named until they explain this share of the waits.
const MOST_PERCENT: u128 = 80;

const PIPELINE: &str =
    "stages of a pipeline begin and end at different times, so that some wait in any case";

const NOT_USUALLY: &str =
    "no rank is slow in most steps, and yet ranks wait for each other: see `uneven-work`";

pub(super) const SLOW_RANK: JobRule = JobRule {
    id: "slow-rank",
    cause: "some ranks are slower than the others, which wait for them",
    remedy: "compare a slow rank with a usual one (`mindprof diff`): its data, its machine, its share of the work",
    check: slow_rank,
};

pub(super) const PIPELINE_BUBBLE: JobRule = JobRule {
    id: "pipeline-bubble",
    cause: "stages of the pipeline wait for data of others",
    remedy: "use more micro-batches, or an interleaved schedule, which halves the bubbles with two parts per stage",
    check: pipeline_bubble,
};

pub(super) const UNEVEN_WORK: JobRule = JobRule {
    id: "uneven-work",
    cause: "ranks wait for others that come late in some steps, or for reasons that steps do not show",
    remedy: "balance the work of the ranks in each step: lengths of sequences, experts, garbage collection, checkpoints",
    check: uneven_work,
};

/// Mending the slow ranks saves the time until the next slowest rank is what others wait for, and
/// not more than the others wait.
fn slow_rank(facts: &Facts<'_>) -> Outcome {
    let stragglers = facts.stragglers;
    if let Some(unknown) = stragglers.unknown {
        return Outcome::Unknown(unknown);
    }
    let Some(slowest) = stragglers.ranks.first() else {
        return match uneven_work(facts) {
            Outcome::Found(_) => Outcome::Unknown(NOT_USUALLY),
            Outcome::Clean | Outcome::Unknown(_) => Outcome::Clean,
        };
    };
    let share = price(facts);
    let first = slowest.cause;
    let is_shared = stragglers
        .ranks
        .iter()
        .all(|straggler| straggler.cause == first);
    let is_doubted = stragglers.doubt.is_some();
    Outcome::Found(Evidence {
        share,
        low: if is_doubted { 0.0 } else { share / 2.0 },
        high: slowest.share.max(share),
        ranks: stragglers
            .ranks
            .iter()
            .map(|straggler| straggler.rank.clone())
            .collect(),
        hosts: stragglers
            .hosts
            .iter()
            .map(|host| host.host.clone())
            .collect(),
        cause: first.filter(|_| is_shared),
        confidence: is_doubted.then_some(Confidence::Low),
        ..Evidence::default()
    })
}

/// Returns the share of the steps that mending all slow ranks saves.
fn price(facts: &Facts<'_>) -> f64 {
    let stragglers = facts.stragglers;
    let step = facts.times.step.0.max(1) as f64;
    let slowest = stragglers
        .ranks
        .first()
        .map_or(0, |slowest| slowest.excess.0);
    let excess = slowest.saturating_sub(stragglers.next.0) as f64 / step;
    let arrivals = facts.arrivals.iter();
    let arrivals = arrivals.filter(|arrival| facts.is_compared(arrival.step));
    // Waits for a rank without a clock are not measured.
    let aligned: BTreeSet<usize> = arrivals
        .clone()
        .flat_map(|arrival| arrival.ranks.iter().map(|&(rank, _)| rank))
        .collect();
    if aligned.len() < facts.summaries.len() {
        return excess.min(longest_wait(facts));
    }
    let waits = arrivals.map(|arrival| arrival.exposed_wait);
    let waited = facts.share(waits.fold(Nanos::ZERO, Nanos::saturating_add));
    let ranks = facts.summaries.len();
    let waiting = ranks.saturating_sub(stragglers.ranks.len()).max(1);
    excess.min(waited * ranks as f64 / waiting as f64)
}

/// Returns the share of the steps that the ranks which communicate longest can have waited.
fn longest_wait(facts: &Facts<'_>) -> f64 {
    let longest = facts.times.priced().iter().map(|step| {
        let ranks = step.ranks.iter();
        let times = ranks.map(|(_, duration, own)| duration.0.saturating_sub(sum_of(own)));
        times.max().unwrap_or(0)
    });
    let sum = longest.fold(0, u64::saturating_add);
    sum as f64 / facts.times.total.0.max(1) as f64
}

/// Waits that slow ranks and slow steps do not explain.
fn uneven_work(facts: &Facts<'_>) -> Outcome {
    if !facts.bubbles.is_empty() {
        return Outcome::Unknown(PIPELINE);
    }
    if facts.times.steps.len() < ENOUGH_STEPS && !facts.times.steps.is_empty() {
        return Outcome::Unknown(FEW_STEPS);
    }
    let arrivals = match facts.in_steps() {
        Ok(arrivals) => arrivals,
        Err(missing) => return Outcome::Unknown(missing),
    };
    let is_slow = |step: Option<u64>| {
        facts
            .slow_steps
            .iter()
            .any(|slow| Some(slow.number) == step)
    };
    let mut waited = Nanos::ZERO;
    let mut by_rank: BTreeMap<usize, Nanos> = BTreeMap::new();
    let mut count = 0;
    for arrival in arrivals
        .into_iter()
        .filter(|arrival| !is_slow(arrival.step))
    {
        waited = waited.saturating_add(arrival.exposed_wait);
        count += 1;
        for &rank in &arrival.late {
            let time = by_rank.entry(rank).or_default();
            *time = time.saturating_add(Nanos(arrival.exposed_wait.0 / arrival.late.len() as u64));
        }
    }
    let explained = price(facts);
    let share = facts.share(waited) - explained;
    if share < UNEVEN || (explained > 0.0 && share < explained) {
        return Outcome::Clean;
    }
    let mut late: Vec<(Nanos, usize)> = by_rank
        .into_iter()
        .map(|(rank, time)| (time, rank))
        .collect();
    late.sort_unstable_by_key(|&(time, rank)| (std::cmp::Reverse(time), rank));
    let mut seen = Nanos::ZERO;
    let most = late.into_iter().take_while(|&(time, _)| {
        let is_needed = u128::from(seen.0) * 100 < u128::from(waited.0) * MOST_PERCENT;
        seen = seen.saturating_add(time);
        is_needed
    });
    let most: Vec<usize> = most.map(|(_, rank)| rank).collect();
    // If half of the ranks come late in turn, none of them is to blame.
    let few = most.len() * 2 < facts.summaries.len();
    let ranks = most.iter().filter(|_| few);
    Outcome::Found(Evidence {
        share,
        low: 0.0,
        high: share,
        ranks: ranks
            .map(|&rank| RankLabel::of(facts.summaries[rank]))
            .collect(),
        collectives: count,
        confidence: Some(Confidence::Medium),
        ..Evidence::default()
    })
}

/// An interleaved schedule with two parts per stage halves the bubbles.
fn pipeline_bubble(facts: &Facts<'_>) -> Outcome {
    if facts.bubbles.is_empty() {
        return Outcome::Clean;
    }
    let sum: f64 = facts.bubbles.iter().map(|bubble| bubble.share).sum();
    let mean = sum / facts.bubbles.len() as f64;
    if mean < BUBBLE {
        return Outcome::Clean;
    }
    Outcome::Found(Evidence {
        share: mean / 2.0,
        low: 0.0,
        high: mean,
        ranks: facts
            .bubbles
            .iter()
            .map(|bubble| bubble.rank.clone())
            .collect(),
        confidence: Some(Confidence::Medium),
        ..Evidence::default()
    })
}
