//! Rules, and their verdicts about a profile.

use mindprof_model::{EventId, StringId};

use super::Confidence;
use super::facts::Facts;
use crate::completeness::EventKind;
use crate::replay::WhatIf;
use crate::top_operators::CodePlace;

/// A rule: a cause of slowness, how to find it and what to do about it.
#[derive(Debug)]
pub struct Rule {
    /// The name of the cause.
    pub id: &'static str,
    /// The cause, as a sentence without its full stop.
    pub cause: &'static str,
    /// The change to try.
    pub remedy: &'static str,
    /// How findings of this rule are priced.
    pub(crate) price: Price,
    /// The kinds of events that the rule looks at. If some of them are missing, it cannot tell.
    pub(crate) needs: &'static [EventKind],
    pub(crate) check: fn(&Facts<'_>) -> Outcome,
}

/// How the findings of a rule are priced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Price {
    /// By a replay without the cause.
    Replay {
        /// The share of the step time below which nothing is claimed.
        least: f64,
        /// The least and the largest saving, as factors of the likely one.
        range: (f64, f64),
        /// Whether the rule describes a symptom that other causes have too, so that it counts only
        /// what they leave.
        is_general: bool,
    },
    /// By nothing: the cause costs something other than time. Such a finding ranks beside those
    /// that save this share.
    Unpriced { rank: f64 },
}

impl Price {
    /// Returns the price of a cause of its own.
    pub(crate) const fn replay(least: f64, range: (f64, f64)) -> Self {
        Self::Replay {
            least,
            range,
            is_general: false,
        }
    }

    /// Returns the price of a symptom that other causes have too.
    pub(crate) const fn general(least: f64, range: (f64, f64)) -> Self {
        Self::Replay {
            least,
            range,
            is_general: true,
        }
    }
}

/// The verdict of a rule about a profile.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The condition holds. It becomes a finding if its price is high enough.
    Found(Evidence),
    /// The condition does not hold.
    Clean,
    /// The recording lacks what the rule needs: what that is, and how to record it.
    Unknown(&'static str),
}

impl Outcome {
    /// Returns the outcome of a rule about events that a program can do without: found, unless there
    /// are none.
    pub(crate) fn without(facts: &Facts<'_>, events: Vec<EventId>) -> Self {
        if events.is_empty() {
            return Self::Clean;
        }
        Self::Found(Evidence {
            mending: facts.without(&events),
            events,
            ..Evidence::default()
        })
    }
}

/// The basis of a finding.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    /// The events that show the cause.
    pub(crate) events: Vec<EventId>,
    /// The difference that mending the cause makes.
    pub(crate) mending: Mending,
    /// The code to blame, if it is not the function that most of the events' time belongs to.
    pub(crate) blame: Option<Blame>,
    /// The bytes that are concerned in each step.
    pub(crate) bytes: Option<u64>,
    /// The operator, kernel or call that stands out. By default the name that most of the events'
    /// time belongs to.
    pub(crate) name: Option<String>,
    /// The change to try, if it differs from the rule's.
    pub(crate) remedy: Option<&'static str>,
    /// The most that the finding is sure.
    pub(crate) confidence: Option<Confidence>,
    /// The least and the largest saving as factors of the likely one, if they differ from the rule's.
    pub(crate) range: Option<(f64, f64)>,
    /// Whether the finding is only a hint: what it saves depends on what the program is for.
    pub(crate) is_hint: bool,
}

/// The code to blame for a finding.
#[derive(Clone, Debug)]
pub(crate) enum Blame {
    /// A frame of the user's.
    Frame(StringId),
    /// A place that another conclusion has found.
    Place(CodePlace),
    /// No code of the user's.
    Nobody,
}

/// The effect of mending a cause: the events that take less time and those that no longer wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mending {
    scales: Vec<(EventId, f32)>,
    unblocked: Vec<EventId>,
}

impl Mending {
    /// Scales the own time of an event, without that of the events inside it.
    pub(crate) fn scale(&mut self, event: EventId, factor: f32) {
        self.scales.push((event, factor));
    }

    /// Removes events.
    pub(crate) fn remove(&mut self, events: impl IntoIterator<Item = EventId>) {
        self.scales
            .extend(events.into_iter().map(|event| (event, 0.0)));
    }

    /// Lets a call of a device's runtime return without waiting.
    pub(crate) fn unblock(&mut self, event: EventId) {
        self.unblocked.push(event);
    }

    /// Returns whether it changes a certain kind of event, or what a call waits for.
    pub(crate) fn concerns(&self, is_meant: impl Fn(EventId) -> bool) -> bool {
        !self.unblocked.is_empty() || self.scales.iter().any(|&(id, _)| is_meant(id))
    }

    /// Applies the change to a replay: each event takes the shorter of its times.
    pub(crate) fn apply(&self, to: &mut WhatIf) {
        for &(event, factor) in &self.scales {
            to.limit(event, factor);
        }
        for &event in &self.unblocked {
            to.unblock(event);
        }
    }
}
