//! Predicts how long steps would take if some of their work were faster, or not there at all.
//!
//! The user names work by patterns. Everything inside of it changes too: the operators that a
//! function calls, the kernels that they launch, and their backward work.

mod matching;
mod pattern;

use mindprof_analyze::Analysis;
use mindprof_model::{Category, DeviceKind, EventId, Nanos, Profile};
use serde::Serialize;

use self::matching::Matching;
pub use self::matching::{Matched, MatchedName};
use crate::captured::{GRAPH_LAUNCH, captured};
use crate::own_code::OwnCode;
use crate::questions::{json, micros};
use crate::replay::{Replay, Replayed, WhatIf, is_allocation_call, is_blocking_call, is_copy_call};
use crate::step_split::NameKind;
use crate::verdict::{Refusal, gaps, refusal_ids};

/// The changes that a user asks for.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own, and any may be combined"
)]
pub struct Changes {
    /// Patterns of names, and the factors of the time of what they match.
    pub scales: Vec<(String, f64)>,
    /// Whether the CPU no longer waits for devices.
    pub no_synchronization: bool,
    /// Whether copies between the CPU and devices run beside other work.
    pub overlap_copies: bool,
    /// Whether getting the next batch takes no time.
    pub no_data_loading: bool,
    /// Whether operators and launches take no time on the CPU, as in a captured graph.
    pub cuda_graphs: bool,
}

/// The reason why changes cannot be replayed.
#[derive(Clone, Debug, PartialEq)]
pub enum NotChanged {
    /// Nothing is to change.
    NoChange,
    /// Nothing ran on the CPU.
    NoWork,
    /// Nothing in the profile matches a pattern.
    NoMatch {
        /// The pattern.
        pattern: String,
        /// A pattern that matches something, if one is similar.
        similar: Option<String>,
    },
    /// A factor is not a number from 0 to [`LARGEST_FACTOR`].
    BadFactor {
        /// The pattern.
        pattern: String,
        /// The factor.
        factor: f64,
    },
    /// The profile has no ranges in which a loop gets its next batch.
    NoDataLoading,
    /// The profile has no device work.
    NoDevice,
}

/// The largest factor. Larger ones are mistakes, and times would overflow.
pub const LARGEST_FACTOR: f64 = 1_000.0;

/// The time of the steps in one replay.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReplayedTimes {
    /// The average step, which advice and the critical path are about, too.
    #[serde(rename = "mean_us", serialize_with = "micros")]
    pub mean: Nanos,
    /// The median step.
    #[serde(rename = "median_us", serialize_with = "micros")]
    pub median: Nanos,
    /// All steps together.
    #[serde(rename = "total_us", serialize_with = "micros")]
    pub total: Nanos,
    /// Each step.
    #[serde(rename = "steps_us", serialize_with = "all_micros")]
    pub steps: Vec<Nanos>,
}

/// The steps with some changes, in comparison with those that were recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Prediction {
    /// Whether the profile has steps. Otherwise all of it counts as one.
    pub has_steps: bool,
    /// The numbers of the steps.
    pub numbers: Vec<u64>,
    /// The recorded times.
    pub recorded: ReplayedTimes,
    /// The times of a replay of the recording, which predictions start from.
    pub replayed: ReplayedTimes,
    /// Whether these differ so much that predictions cannot be trusted.
    pub is_doubtful: bool,
    /// The estimated times without the profiler's own cost.
    pub unrecorded: ReplayedTimes,
    /// The same with the changes.
    pub changed: ReplayedTimes,
    /// The time that the changes save of an average step, without the profiler's own cost. Negative
    /// if it takes longer.
    #[serde(rename = "saved_us", serialize_with = "signed_micros")]
    pub saved_ns: i64,
    /// The part of the time that they save, as a fraction.
    pub share: f64,
    /// The names that each pattern matches.
    pub matched: Vec<Matched>,
    /// The reasons for which the profile is incomplete.
    #[serde(serialize_with = "refusal_ids")]
    pub incomplete: Vec<Refusal>,
}

impl Changes {
    /// Reads `NAME=FACTOR`. The factor is from 0 to [`LARGEST_FACTOR`] and may be a percentage.
    ///
    /// ```
    /// use mindprof_answers::Changes;
    ///
    /// assert_eq!(Changes::read_scale("Optimizer.step*=0.5"), Some(("Optimizer.step*".into(), 0.5)));
    /// assert_eq!(Changes::read_scale("aten::mm=25%"), Some(("aten::mm".into(), 0.25)));
    /// assert_eq!(Changes::read_scale("aten::mm"), None);
    /// assert_eq!(Changes::read_scale("aten::mm=-1"), None);
    /// assert_eq!(Changes::read_scale("aten::mm=1e12"), None);
    /// ```
    pub fn read_scale(text: &str) -> Option<(String, f64)> {
        let (pattern, factor) = text.rsplit_once('=')?;
        let factor: f64 = match factor.trim().strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().ok()? / 100.0,
            None => factor.trim().parse().ok()?,
        };
        let is_good = is_factor(factor) && !pattern.trim().is_empty();
        is_good.then(|| (pattern.trim().to_owned(), factor))
    }

    /// Returns whether nothing is to change.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Prediction {
    /// Replays a profile with changes, in time linear in the number of events.
    ///
    /// # Errors
    /// If there is nothing to change, or nothing that a change applies to.
    pub fn build(analysis: &Analysis, changes: &Changes) -> Result<Self, NotChanged> {
        if changes.is_empty() {
            return Err(NotChanged::NoChange);
        }
        let replay = Replay::build(analysis).ok_or(NotChanged::NoWork)?;
        let mut change = WhatIf::none(analysis);
        let mut matched = Vec::new();
        if !changes.scales.is_empty() {
            let matching = Matching::build(analysis);
            for (pattern, factor) in &changes.scales {
                matched.push(scale(&matching, pattern, *factor, &mut change)?);
            }
        }
        let mut shortest = Nanos::ZERO;
        if changes.no_data_loading {
            remove_data_loading(analysis, &mut change)?;
        }
        if changes.no_synchronization {
            unblock(analysis, &mut change, false)?;
        }
        if changes.overlap_copies {
            unblock(analysis, &mut change, true)?;
            shortest = hide_copies(analysis, &mut change);
        }
        if changes.cuda_graphs {
            if analysis.accelerator().is_none() {
                return Err(NotChanged::NoDevice);
            }
            let own = OwnCode::of(analysis.profile().metadata(), &[]);
            for event in captured(analysis, &own) {
                change.limit(event, GRAPH_LAUNCH);
            }
            change.capture_launches();
        }
        let mut predicted = replay.with(&change);
        // Copies that run beside other work still take their time.
        let shortest = Nanos(shortest.0 / predicted.steps.len().max(1) as u64);
        for step in &mut predicted.steps {
            *step = (*step).max(shortest);
        }
        let unrecorded = ReplayedTimes::from(replay.unrecorded());
        let after = ReplayedTimes::from(predicted);
        let saved_ns = unrecorded.mean.0.cast_signed() - after.mean.0.cast_signed();
        Ok(Self {
            has_steps: replay.has_steps(),
            numbers: replay.steps().iter().map(|step| step.number).collect(),
            share: saved_ns as f64 / unrecorded.mean.0.max(1) as f64,
            saved_ns,
            recorded: replay.measured().into(),
            replayed: replay.recorded().into(),
            is_doubtful: !replay.is_faithful(),
            unrecorded,
            changed: after,
            matched,
            incomplete: gaps(analysis.profile()),
        })
    }

    /// Returns the prediction as JSON. Times are microseconds.
    pub fn json(&self) -> String {
        json(self)
    }
}

impl From<Replayed> for ReplayedTimes {
    fn from(replayed: Replayed) -> Self {
        let total = replayed.total();
        Self {
            mean: Nanos(total.0 / replayed.steps.len().max(1) as u64),
            median: replayed.median(),
            total,
            steps: replayed.steps,
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn signed_micros<S: serde::Serializer>(time_ns: &i64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*time_ns as f64 / 1e3)
}

fn all_micros<S: serde::Serializer>(times: &[Nanos], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(
        times
            .iter()
            .map(|time| mindprof_analyze::microseconds(*time)),
    )
}

fn is_factor(factor: f64) -> bool {
    (0.0..=LARGEST_FACTOR).contains(&factor)
}

/// Scales the time of everything that a pattern matches. Several patterns that match one event
/// multiply.
fn scale(
    matching: &Matching<'_>,
    pattern: &str,
    factor: f64,
    change: &mut WhatIf,
) -> Result<Matched, NotChanged> {
    if !is_factor(factor) {
        return Err(NotChanged::BadFactor {
            pattern: pattern.into(),
            factor,
        });
    }
    let (events, mut matched) = matching.events(pattern)?;
    matched.factor = factor;
    for event in events {
        change.scale(event, change.factor(event) * factor as f32);
    }
    Ok(matched)
}

/// Removes everything that happens while the loop gets its next batch.
fn remove_data_loading(analysis: &Analysis, change: &mut WhatIf) -> Result<(), NotChanged> {
    let matching = Matching::build(analysis);
    let events = matching.inside(|name| NameKind::of(name) == NameKind::Batch);
    if events.is_empty() {
        return Err(NotChanged::NoDataLoading);
    }
    for event in events {
        change.scale(event, 0.0);
    }
    Ok(())
}

/// Lets calls of the runtime return without waiting: those that synchronize and copies to the CPU,
/// or all copies.
fn unblock(analysis: &Analysis, change: &mut WhatIf, copies: bool) -> Result<(), NotChanged> {
    if analysis.accelerator().is_none() {
        return Err(NotChanged::NoDevice);
    }
    let profile = analysis.profile();
    let waits = |name: &str| {
        is_copy_call(name) || (!copies && is_blocking_call(name) && !is_allocation_call(name))
    };
    let waits: Vec<bool> = profile.strings().iter().map(waits).collect();
    for (index, event) in profile.events().iter().enumerate() {
        if event.category == Category::Runtime && waits[event.name.index()] {
            change.unblock(EventId::from_index(index));
        }
    }
    Ok(())
}

/// Lets copies between the CPU and devices take no time on their streams. Returns how long they
/// take.
fn hide_copies(analysis: &Analysis, change: &mut WhatIf) -> Nanos {
    let profile = analysis.profile();
    let mut total = Nanos::ZERO;
    for (id, event) in device_work(analysis, profile) {
        let name = profile.name(profile.event(id));
        let is_across = ["HtoD", "DtoH", "Host"]
            .iter()
            .any(|way| name.contains(way));
        if NameKind::of(name) == NameKind::Copy && is_across {
            change.scale(id, 0.0);
            total = total.saturating_add(event);
        }
    }
    total
}

fn device_work<'a>(
    analysis: &'a Analysis,
    profile: &'a Profile,
) -> impl Iterator<Item = (EventId, Nanos)> + 'a {
    let events = profile.events().iter().enumerate();
    events
        .map(|(index, event)| (EventId::from_index(index), event))
        .filter(|(id, event)| {
            event.category == Category::Kernel && analysis.device(*id) != DeviceKind::Cpu
        })
        .map(|(id, event)| (id, event.duration))
}

#[cfg(test)]
mod tests;
