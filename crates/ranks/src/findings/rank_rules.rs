//! Rules about ranks that others wait for.

use mindprof_answers::Confidence;

use super::{Evidence, Facts, JobRule, Outcome};

/// The share of the steps from which on bubbles count.
const BUBBLE: f64 = 0.05;

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

/// Mending the slow ranks saves the time until the next slowest rank is what others wait for.
fn slow_rank(facts: &Facts<'_>) -> Outcome {
    let stragglers = facts.stragglers;
    if let Some(unknown) = stragglers.unknown {
        return Outcome::Unknown(unknown);
    }
    let Some(slowest) = stragglers.ranks.first() else {
        return Outcome::Clean;
    };
    let next = stragglers.next.0 as f64 / facts.times.step.0.max(1) as f64;
    let share = (slowest.share - next).max(0.0);
    let first = slowest.cause;
    let is_shared = stragglers
        .ranks
        .iter()
        .all(|straggler| straggler.cause == first);
    Outcome::Found(Evidence {
        share,
        low: share / 2.0,
        high: slowest.share,
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
