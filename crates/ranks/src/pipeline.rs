//! Pipeline bubbles: the time in which a stage waits for data of another one.

use mindprof_answers::micros;
use mindprof_model::Nanos;
use serde::Serialize;

use crate::collectives::CollectiveKind;
use crate::label::RankLabel;
use crate::summary::RankSummary;

/// The bubble of one rank of a pipeline, over all of its steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bubble {
    /// The rank.
    #[serde(flatten)]
    pub rank: RankLabel,
    /// The time in steps in which it receives and computes nothing.
    #[serde(rename = "bubble_us", serialize_with = "micros")]
    pub bubble: Nanos,
    /// The rest of its steps.
    #[serde(rename = "stage_us", serialize_with = "micros")]
    pub stage: Nanos,
    /// The bubble as a share of the steps.
    pub share: f64,
}

/// Returns the bubbles of the ranks that receive from others, in the order of the ranks.
pub(crate) fn bubbles(summaries: &[&RankSummary]) -> Vec<Bubble> {
    summaries
        .iter()
        .filter_map(|summary| bubble(summary))
        .collect()
}

fn bubble(summary: &RankSummary) -> Option<Bubble> {
    let received = summary.collectives.iter().filter(|collective| {
        collective.kind == CollectiveKind::Receive && collective.step.is_some()
    });
    let mut times = received.map(|collective| collective.exposed).peekable();
    times.peek()?;
    let bubble = times.fold(Nanos::ZERO, Nanos::saturating_add);
    let steps = summary.steps.iter().map(crate::RankStep::duration);
    let total = steps.fold(Nanos::ZERO, Nanos::saturating_add);
    if total == Nanos::ZERO {
        return None;
    }
    Some(Bubble {
        rank: RankLabel::of(summary),
        bubble,
        stage: total.saturating_sub(bubble),
        share: bubble.0.min(total.0) as f64 / total.0 as f64,
    })
}
