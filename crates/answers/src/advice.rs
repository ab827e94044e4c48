//! Why a training run is slow, what mending it would save, and what to try.
//!
//! Each rule looks for one cause ([`rules`]). A replay of the profile without that cause prices it, so
//! that work which overlaps with other work costs nothing ([`prices`]).

mod doubt;
mod facts;
mod incomplete;
mod prices;
mod rule;
mod rules;

use mindprof_analyze::Analysis;
use mindprof_model::Nanos;
use serde::Serialize;

use doubt::doubt;
use facts::Facts;
use incomplete::Missing;
pub use rule::Rule;
use rule::{Outcome, Price};
pub use rules::RULES;

use crate::beside::{beside, each};
use crate::completeness::Completeness;
use crate::own_code::OwnCode;
use crate::questions::{json, micros};
use crate::replay::Replay;
use crate::top_operators::CodePlace;
use crate::verdict::{Refusal, refusal_ids};

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// There is only one step, or the condition is one that other causes meet too.
    Low,
    /// The condition is clear, but there are few steps.
    Medium,
    /// The condition is clear and there are enough steps.
    High,
}

/// A cause of slowness, and what mending it would save.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The rule that found it.
    #[serde(serialize_with = "rule_id")]
    pub rule: &'static Rule,
    /// The part of the step time that mending it is likely to save, as a fraction.
    pub share: f64,
    /// The least part that it is likely to save.
    pub low: f64,
    /// The largest part that it could save.
    pub high: f64,
    /// The time that it is likely to save in all steps together.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub time: Nanos,
    /// How sure the finding is.
    pub confidence: Confidence,
    /// The line of the user's that leads to it.
    #[serde(flatten, serialize_with = "place_fields")]
    pub place: Option<CodePlace>,
    /// The module that most of it happens in.
    pub module: Option<String>,
    /// The positions in the profile of the events that show it, the longest first.
    pub events: Vec<u32>,
    /// The number of all events that show it.
    pub count: usize,
    /// The number of these events in an average step.
    pub per_step: f64,
    /// The recorded time of these events.
    #[serde(rename = "recorded_us", serialize_with = "micros")]
    pub recorded: Nanos,
    /// The bytes that are concerned, in each step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The operator, kernel or call that stands out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The change to try.
    #[serde(rename = "try")]
    pub remedy: &'static str,
    /// The ids of other rules that found the same work.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<&'static str>,
}

impl Finding {
    /// Returns whether the price is the least that mending saves, rather than the likely saving.
    pub fn is_least(&self) -> bool {
        self.share > 0.0 && self.low >= self.share
    }
}

/// A rule that could not be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Unknown {
    /// The id of the rule.
    pub rule: &'static str,
    /// The data that the recording lacks, and how to record it.
    pub missing: &'static str,
}

/// The advice for a profile.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Advice {
    /// The findings, the most valuable first.
    pub findings: Vec<Finding>,
    /// The ids of the rules that found nothing worth mending.
    pub clean: Vec<&'static str>,
    /// The rules that could not be applied.
    pub unknown: Vec<Unknown>,
    /// The reasons for which the profile is incomplete. Rules that depend on the missing events cannot
    /// tell.
    #[serde(serialize_with = "refusal_ids")]
    pub incomplete: Vec<Refusal>,
    /// The profiler's own cost.
    pub overhead: Overhead,
    /// Whether a replay of the recording takes another time than the recording, so that nothing is
    /// priced.
    pub is_doubtful: bool,
    /// The number of steps that the advice rests on. A program without steps counts as one.
    pub steps: usize,
    /// Whether the program has steps.
    pub has_steps: bool,
}

/// The profiler's own cost in the steps of a recording, or in all of a program without steps but its
/// imports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Overhead {
    /// The recorded time of an average step.
    #[serde(rename = "recorded_us", serialize_with = "micros")]
    pub recorded: Nanos,
    /// The time of an average step in a replay of the recording, which prices come from. It differs
    /// from the recorded time if work waited for something that the recording does not tell.
    #[serde(rename = "replayed_us", serialize_with = "micros")]
    pub replayed: Nanos,
    /// The time that an average step is estimated to take without a profiler.
    #[serde(rename = "unrecorded_us", serialize_with = "micros")]
    pub unrecorded: Nanos,
    /// The time of the imports that the other times of a program without steps leave out.
    #[serde(rename = "imports_us", serialize_with = "micros")]
    pub imports: Nanos,
}

impl Overhead {
    /// Returns the part of the time that the profiler took, by the replay.
    pub fn share(&self) -> f64 {
        let cost = self.replayed.saturating_sub(self.unrecorded);
        cost.0 as f64 / self.replayed.0.max(1) as f64
    }
}

/// The largest number of findings.
const MOST_FINDINGS: usize = 10;

impl Advice {
    /// Applies all rules to a profile.
    pub fn build(analysis: &Analysis, own: &OwnCode) -> Self {
        let (replay, frames) = beside(|| Replay::build(analysis), || facts::frames(analysis, own));
        let Some(replay) = replay else {
            return Self {
                incomplete: Missing::of(&Completeness::of_one(analysis.profile())).what,
                ..Self::default()
            };
        };
        let facts = Facts::build(analysis, own, &replay, frames);
        let missing = Missing::of(&facts.completeness);
        let steps = replay.steps().len();
        let imports = facts.base.saturating_sub(facts.whole);
        let average = |all: Nanos| Nanos(all.saturating_sub(imports).0 / steps as u64);
        let mut advice = Self {
            steps,
            has_steps: replay.has_steps(),
            overhead: Overhead {
                recorded: average(replay.measured().total()),
                replayed: average(replay.recorded().total()),
                unrecorded: average(facts.base),
                imports,
            },
            ..Self::default()
        };
        let mut found = Vec::new();
        let outcomes = each(RULES, |rule| (rule.check)(&facts));
        for (&rule, outcome) in RULES.iter().zip(outcomes) {
            match missing.limit(rule, outcome) {
                Outcome::Found(evidence) => found.push((rule, evidence)),
                Outcome::Clean => advice.clean.push(rule.id),
                Outcome::Unknown(missing) => advice.unknown.push(Unknown {
                    rule: rule.id,
                    missing,
                }),
            }
        }
        let (findings, cheap) = prices::price(&facts, found);
        advice.findings = findings;
        for &rule in RULES.iter().filter(|rule| cheap.contains(&rule.id)) {
            // The missing events may be the dear ones.
            match missing.limit(rule, Outcome::Clean) {
                Outcome::Unknown(missing) => advice.unknown.push(Unknown {
                    rule: rule.id,
                    missing,
                }),
                Outcome::Clean | Outcome::Found(_) => advice.clean.push(rule.id),
            }
        }
        if let Some(reason) = doubt(analysis.profile(), &replay) {
            advice.forget_prices(reason);
        }
        advice.clean.sort_unstable();
        advice.findings.truncate(MOST_FINDINGS);
        advice.incomplete = missing.what;
        advice
    }

    /// Takes back the findings whose prices the replay made up, and its time of a step without a
    /// profiler.
    fn forget_prices(&mut self, reason: &'static str) {
        self.overhead.unrecorded = self.overhead.recorded;
        self.is_doubtful = true;
        let is_priced =
            |finding: &mut Finding| !matches!(finding.rule.price, Price::Unpriced { .. });
        let priced: Vec<Finding> = self.findings.extract_if(.., is_priced).collect();
        self.unknown.extend(priced.iter().map(|finding| Unknown {
            rule: finding.rule.id,
            missing: reason,
        }));
    }

    /// Returns the advice as JSON.
    pub fn json(&self) -> String {
        json(self)
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn seconds<S: serde::Serializer>(time: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.0 as f64 / 1e9)
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn rule_id<S: serde::Serializer>(rule: &&'static Rule, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(rule.id)
}

/// Writes the fields of a place, which are null if there is none.
#[expect(clippy::ref_option, reason = "serde passes fields by reference")]
fn place_fields<S: serde::Serializer>(
    place: &Option<CodePlace>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Fields<'a> {
        function: Option<&'a str>,
        file: Option<&'a str>,
        line: Option<u32>,
    }
    let place = place.as_ref();
    let fields = Fields {
        function: place.map(|place| place.function.as_str()),
        file: place.map(|place| place.file.as_str()),
        line: place.map(|place| place.line),
    };
    fields.serialize(serializer)
}

#[cfg(test)]
mod tests;
