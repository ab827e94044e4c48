//! Prices what the rules have found, so that no time is promised twice.

use std::cmp::Reverse;

use mindprof_model::{EventId, Nanos};

use super::facts::Facts;
use super::rule::{Blame, Evidence, Price, Rule};
use super::{Confidence, Finding};
use crate::beside::each;

/// Findings below this part of the step time are not worth anybody's attention.
const LEAST_SHARE: f64 = 0.005;

/// A finding whose price shrinks below this part of it once the others are mended is about the same
/// work as they are.
const SAME_WORK: f64 = 0.35;

/// Hints rank beside findings that save this share.
const HINT_RANK: f64 = 0.01;

/// The number of steps from which on a finding is sure.
const SURE_STEPS: usize = 20;

/// The largest number of events that a finding lists.
const MOST_EVENTS: usize = 20;

/// A cause with its price.
struct Priced {
    rule: &'static Rule,
    evidence: Evidence,
    /// The part of the step time that mending it alone saves.
    share: f64,
    /// The time of all steps after it alone is mended.
    mended: Nanos,
    merged: Vec<&'static str>,
}

/// Prices causes by replays. Returns the findings, the most valuable first, and the ids of the rules
/// whose causes are not worth mending.
pub(super) fn price(
    facts: &Facts<'_>,
    found: Vec<(&'static Rule, Evidence)>,
) -> (Vec<Finding>, Vec<&'static str>) {
    let mut cheap = Vec::new();
    let mut specific: Vec<Priced> = Vec::new();
    let mut general: Vec<Priced> = Vec::new();
    let mut findings: Vec<(f64, Finding)> = Vec::new();
    let times = each(&found, |(rule, evidence)| match price_of(rule, evidence) {
        Price::Unpriced { .. } => facts.base,
        Price::Replay { .. } => facts.mended(&[evidence]),
    });
    let most = facts.saving(facts.base, facts.busy);
    for ((rule, evidence), mended) in found.into_iter().zip(times) {
        let mut priced = Priced {
            rule,
            evidence,
            share: facts.saving(facts.base, mended),
            mended,
            merged: Vec::new(),
        };
        // Less work on the CPU makes no device work shorter, whatever the replay says.
        if !priced.evidence.mending.concerns(|id| facts.is_kernel(id)) {
            priced.share = priced.share.min(most);
        }
        match price_of(rule, &priced.evidence) {
            Price::Unpriced { rank } => findings.push((rank, finding(facts, &priced))),
            Price::Replay {
                least, is_general, ..
            } => {
                if priced.share < least.max(LEAST_SHARE) {
                    cheap.push(rule.id);
                } else if is_general {
                    general.push(priced);
                } else {
                    specific.push(priced);
                }
            }
        }
    }
    let by_share = |a: &Priced, b: &Priced| b.share.total_cmp(&a.share);
    specific.sort_by(by_share);
    general.sort_by(by_share);
    let mut accepted: Vec<Priced> = Vec::new();
    let mut mended = facts.what_if();
    let mut mended_time = facts.base;
    for mut priced in specific.into_iter().chain(general) {
        let Price::Replay {
            least, is_general, ..
        } = priced.rule.price
        else {
            continue;
        };
        let mut further = mended.clone();
        priced.evidence.mending.apply(&mut further);
        let further_time = facts.replay.with(&further).total();
        let left = facts.saving(mended_time, further_time);
        let is_same = left < SAME_WORK * priced.share || left < least.max(LEAST_SHARE);
        if is_same && !accepted.is_empty() {
            let id = priced.rule.id;
            match same_work(facts, &mut accepted, &priced) {
                Some(other) => other.merged.push(id),
                None => cheap.push(id),
            }
            continue;
        }
        if is_general {
            priced.share = left.min(priced.share);
        }
        (mended, mended_time) = (further, further_time);
        accepted.push(priced);
    }
    findings.extend(
        accepted
            .iter()
            .map(|priced| (priced.share, finding(facts, priced))),
    );
    findings.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    (
        findings.into_iter().map(|(_, finding)| finding).collect(),
        cheap,
    )
}

/// Returns how a finding is priced.
const fn price_of(rule: &Rule, evidence: &Evidence) -> Price {
    if evidence.is_hint {
        Price::Unpriced { rank: HINT_RANK }
    } else {
        rule.price
    }
}

/// Returns the accepted cause that explains most of another one.
fn same_work<'a>(
    facts: &Facts<'_>,
    accepted: &'a mut [Priced],
    other: &Priced,
) -> Option<&'a mut Priced> {
    let left = |cause: &Priced| {
        let both = facts.mended(&[&cause.evidence, &other.evidence]);
        facts.saving(cause.mended, both)
    };
    let least = each(accepted, left).into_iter().enumerate();
    let least = least.min_by(|(_, a), (_, b)| a.total_cmp(b));
    least.map(|(index, _)| &mut accepted[index])
}

/// Returns the largest saving that is likely if `share` is saved by the replay: half of what is left may
/// be saved too. A change never saves a whole step.
const fn most_likely(share: f64) -> f64 {
    f64::midpoint(1.0, share)
}

fn finding(facts: &Facts<'_>, priced: &Priced) -> Finding {
    let Priced {
        rule,
        evidence,
        share,
        merged,
        mended: _,
    } = priced;
    let (range, is_general) = match price_of(rule, evidence) {
        Price::Replay {
            range, is_general, ..
        } => (evidence.range.unwrap_or(range), is_general),
        Price::Unpriced { .. } => ((0.0, 0.0), false),
    };
    let duration = |id: EventId| facts.profile.event(id).duration;
    let mut events = evidence.events.clone();
    events.sort_by_key(|&id| (Reverse(duration(id)), id));
    let recorded = events.iter().map(|&id| duration(id).0).sum();
    let place = match &evidence.blame {
        None => facts.place(facts.blamed(events.iter().map(|&id| (id, duration(id))))),
        Some(Blame::Frame(frame)) => facts.place(Some(*frame)),
        Some(Blame::Place(place)) => Some(place.clone()),
        Some(Blame::Nobody) => None,
    };
    let steps = facts.replay.steps().len();
    let confidence = match steps {
        0..2 => Confidence::Low,
        SURE_STEPS.. if !is_general => Confidence::High,
        _ => Confidence::Medium,
    };
    Finding {
        rule,
        share: *share,
        low: share * range.0,
        high: (share * range.1).min(most_likely(*share)),
        time: Nanos((facts.whole.0 as f64 * share) as u64),
        confidence: confidence.min(evidence.confidence.unwrap_or(Confidence::High)),
        place,
        module: facts.module(&events),
        count: events.len(),
        per_step: facts.per_step(events.len()),
        recorded: Nanos(recorded),
        bytes: evidence.bytes,
        name: (evidence.name.clone()).or_else(|| facts.common_name(&events)),
        remedy: evidence.remedy.unwrap_or(rule.remedy),
        merged: merged.clone(),
        events: (events.iter().take(MOST_EVENTS))
            .map(|id| id.to_raw())
            .collect(),
    }
}
