//! Pipeline bubbles: the time in which a stage waits for data of another one.

use mindprof_answers::micros;
use mindprof_model::Nanos;
use serde::Serialize;

use crate::collectives::{Collective, CollectiveKind};
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
    let mut received = received.peekable();
    received.peek()?;
    let steps = summary.steps.iter().map(crate::RankStep::duration);
    let total = steps.fold(Nanos::ZERO, Nanos::saturating_add);
    if total == Nanos::ZERO {
        return None;
    }
    let bubble = alone(received).min(total);
    Some(Bubble {
        rank: RankLabel::of(summary),
        bubble,
        stage: total.saturating_sub(bubble),
        share: bubble.0 as f64 / total.0 as f64,
    })
}

/// Returns the time in which a rank receives and computes nothing, counting each moment once.
/// Collectives come in the order of their starts.
///
/// ```text
/// receives      |----|   |------|
///                 |----|     |-----|
/// at most       '------' '---------'
/// ```
fn alone<'a>(received: impl Iterator<Item = &'a Collective>) -> Nanos {
    let mut sum = Nanos::ZERO;
    let mut last: Option<(Nanos, Nanos, Nanos)> = None;
    let close =
        |(begin, end, exposed): (Nanos, Nanos, Nanos)| exposed.min(end.saturating_sub(begin));
    for found in received {
        match &mut last {
            Some((_, end, exposed)) if found.start < *end => {
                *end = (*end).max(found.end);
                *exposed = exposed.saturating_add(found.exposed);
            }
            _ => {
                sum = sum.saturating_add(last.take().map_or(Nanos::ZERO, close));
                last = Some((found.start, found.end, found.exposed));
            }
        }
    }
    sum.saturating_add(last.map_or(Nanos::ZERO, close))
}
