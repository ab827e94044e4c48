//! Questions that can be asked of a profile by name, and their answers as JSON.
//!
//! `_core.Profile.ask` exposes this table, so a new conclusion needs no binding of its own: it
//! implements `Serialize` and gets an entry here.

use mindprof_analyze::{Analysis, microseconds};
use mindprof_model::Nanos;
use serde::{Serialize, Serializer};

use crate::advice::Advice;
use crate::device::Device;
use crate::own_code::OwnCode;
use crate::step_times::StepTimes;
use crate::steps::Steps;
use crate::work::{Work, WorkTotals};

/// A question about a profile.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The name that it is asked by.
    pub name: &'static str,
    answer: fn(&Analysis, &Work) -> String,
}

/// Every question.
pub const QUESTIONS: [Question; 5] = [
    Question {
        name: "advice",
        answer: |analysis, _| {
            let own = OwnCode::of(analysis.profile().metadata(), &[]);
            Advice::build(analysis, &own).json()
        },
    },
    Question {
        name: "device",
        answer: |analysis, _| json(&Device::build(analysis)),
    },
    Question {
        name: "steps",
        answer: |analysis, _| json(&Steps::build(analysis.profile())),
    },
    Question {
        name: "step_times",
        answer: |analysis, _| {
            let own = OwnCode::of(analysis.profile().metadata(), &[]);
            json(&StepTimes::build(analysis, &own))
        },
    },
    Question {
        name: "work",
        answer: |analysis, work| json(&WorkTotals::build(analysis, work)),
    },
];

/// Answers the question with this name as JSON, or returns `None` if there is no such question.
///
/// `work` decides which ranges of the profile count. Times are microseconds.
pub fn ask(analysis: &Analysis, work: &Work, name: &str) -> Option<String> {
    let question = QUESTIONS.iter().find(|question| question.name == name)?;
    Some((question.answer)(analysis, work))
}

/// Serializes a time as microseconds.
///
/// # Errors
/// If the serializer fails.
pub fn micros<S: Serializer>(time: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(microseconds(*time))
}

/// Writes a time like [`micros`], or null.
#[expect(clippy::ref_option, reason = "serde passes fields by reference")]
pub(crate) fn some_micros<S: Serializer>(
    time: &Option<Nanos>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => micros(time, serializer),
        None => serializer.serialize_none(),
    }
}

pub(crate) fn json(answer: &impl Serialize) -> String {
    serde_json::to_string(answer).expect("conclusions have string keys and finite numbers")
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    fn answer(name: &str) -> Option<String> {
        let profile = Timeline::draw(|time| {
            time.annotation("ProfilerStep#3", |time| time.op("mm", 2_000));
        });
        let analysis = Analysis::build(profile);
        ask(&analysis, &Work::of(&analysis), name)
    }

    #[test]
    fn answers_are_json() {
        assert_eq!(
            answer("steps").as_deref(),
            Some(r#"{"complete":[{"number":3,"start_us":0.0,"duration_us":2.0}],"open":null}"#)
        );
        assert_eq!(
            answer("work").as_deref(),
            Some(r#"{"self_cpu_time_total":2.0,"left_out":{"imports_us":0.0,"step_ranges":0}}"#)
        );
        assert_eq!(answer("nothing"), None);
    }
}
