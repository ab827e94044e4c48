//! Conclusions as text, by the names under which Python asks for them.

use mindprof_analyze::Analysis;
use mindprof_answers::{OwnCode, StepTimes};

use crate::steps::{StepsLayout, steps_text};

/// The largest number of steps that a text lists.
const STEPS: usize = 20;

/// Returns the answer to a question of `mindprof_answers` as text, or `None` if there is no text for
/// it.
pub fn told(analysis: &Analysis, question: &str, width: Option<usize>) -> Option<String> {
    let own = || OwnCode::of(analysis.profile().metadata(), &[]);
    match question {
        "step_times" => {
            let layout = StepsLayout { rows: STEPS, width };
            Some(steps_text(&StepTimes::build(analysis, &own()), layout))
        }
        _ => None,
    }
}
