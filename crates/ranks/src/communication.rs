//! Communication of a job: collectives by group and kind, the worst of them, and skew over time.

use std::collections::BTreeMap;

use mindprof_answers::micros;
use mindprof_model::Nanos;
use serde::Serialize;

use crate::arrivals::Arrival;
use crate::collectives::CollectiveKind;
use crate::histogram::Histogram;
use crate::label::RankLabel;
use crate::matched::{Matches, most_frequent};
use crate::summary::RankSummary;

/// The most single collectives that are listed.
const WORST: usize = 20;

/// The collectives of one kind in one process group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CollectiveRow {
    /// The name of the group.
    pub group: String,
    /// The description of the group.
    pub description: String,
    /// The ranks of the group, as in `0-7`.
    pub ranks: String,
    /// The kind.
    pub kind: CollectiveKind,
    /// The number of collectives.
    pub count: u64,
    /// The bytes of their messages, or `None` if a size is unknown.
    pub bytes: Option<u64>,
    /// The time from the last start to the end, of all of them.
    #[serde(rename = "transfer_us", serialize_with = "micros")]
    pub transfer: Nanos,
    /// The mean time that a rank waited for the last one, of all of them.
    #[serde(rename = "wait_us", serialize_with = "micros")]
    pub wait: Nanos,
    /// The message size divided by the transfer time, or `None` if a size is unknown or collectives end
    /// too far apart to tell transfers from waits.
    pub bytes_per_s: Option<f64>,
    /// The median time between the first and the last start.
    #[serde(rename = "skew_p50_us", serialize_with = "micros")]
    pub skew_p50: Nanos,
    /// The longest.
    #[serde(rename = "skew_max_us", serialize_with = "micros")]
    pub skew_max: Nanos,
    /// The rank that came last most often by more than the error of the clocks, and how often.
    pub last: Option<(RankLabel, u64)>,
}

/// One collective that ranks waited for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorstCollective {
    /// The name of the group.
    pub group: String,
    /// The kind.
    pub kind: CollectiveKind,
    /// The number of the step.
    pub step: Option<u64>,
    /// The sequence number.
    pub sequence: Option<u64>,
    /// The bytes of the message, or `None` if its size is unknown.
    pub bytes: Option<u64>,
    /// The rank that came last.
    pub last: RankLabel,
    /// The time between the first and the last start.
    #[serde(rename = "skew_us", serialize_with = "micros")]
    pub skew: Nanos,
    /// The time from the last start to the end.
    #[serde(rename = "transfer_us", serialize_with = "micros")]
    pub transfer: Nanos,
}

/// How far the ranks were apart in one step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepSkew {
    /// The number of the step.
    pub step: u64,
    /// The median time between the first and the last start of its collectives.
    #[serde(rename = "skew_p50_us", serialize_with = "micros")]
    pub skew_p50: Nanos,
    /// The longest.
    #[serde(rename = "skew_max_us", serialize_with = "micros")]
    pub skew_max: Nanos,
    /// The rank that came last to that one.
    pub last: RankLabel,
}

/// The communication of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Communication {
    /// The collectives by group and kind, by decreasing wait and transfer.
    pub rows: Vec<CollectiveRow>,
    /// The collectives with the largest skew beyond the error of the clocks, at most twenty.
    pub worst: Vec<WorstCollective>,
    /// The skew of each step.
    pub steps: Vec<StepSkew>,
    /// The number of collectives that ranks saw and that could not be matched with those of others.
    pub unmatched: u64,
    /// The number of matched collectives that are left out, because ranks of their group have no trace
    /// or no common clock. The others may have waited for those.
    pub incomplete: u64,
    /// How many of those that could not be matched name no process group of known ranks.
    pub without_group: u64,
    /// Whether collectives are matched by their order within steps, for want of sequence numbers.
    pub is_by_order: bool,
    /// Whether collectives end so far apart on different ranks that transfers cannot be told from waits.
    pub has_ends_apart: bool,
}

impl Communication {
    /// Sums up collectives in nearly linear time. `noise` is a skew that the clocks may feign.
    pub(crate) fn build(
        summaries: &[&RankSummary],
        matches: &Matches<'_>,
        arrivals: &[Arrival],
        noise: Nanos,
        has_ends_apart: bool,
    ) -> Self {
        let mut by_row: BTreeMap<(usize, CollectiveKind), Vec<&Arrival>> = BTreeMap::new();
        let mut by_step: BTreeMap<u64, Vec<&Arrival>> = BTreeMap::new();
        let whole = || arrivals.iter().filter(|arrival| arrival.is_whole);
        for arrival in whole() {
            by_row
                .entry((arrival.group, arrival.kind))
                .or_default()
                .push(arrival);
            if let Some(step) = arrival.step {
                by_step.entry(step).or_default().push(arrival);
            }
        }
        let rows = by_row.into_iter();
        let mut rows: Vec<CollectiveRow> = rows
            .map(|((group, _), list)| row(summaries, matches, group, &list, noise))
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.wait.saturating_add(row.transfer)));
        if has_ends_apart {
            for row in &mut rows {
                row.bytes_per_s = None;
            }
        }
        let steps = by_step.into_iter();
        Self {
            rows,
            worst: worst(summaries, matches, whole().collect(), noise),
            steps: steps
                .filter_map(|(step, list)| step_skew(summaries, step, &list))
                .collect(),
            incomplete: (arrivals.len() - whole().count()) as u64,
            unmatched: matches.unmatched,
            without_group: matches.without_group,
            is_by_order: matches.is_by_order,
            has_ends_apart,
        }
    }
}

fn row(
    summaries: &[&RankSummary],
    matches: &Matches<'_>,
    group: usize,
    list: &[&Arrival],
    noise: Nanos,
) -> CollectiveRow {
    let sum = |of: &dyn Fn(&Arrival) -> Nanos| {
        list.iter()
            .fold(Nanos::ZERO, |sum, arrival| sum.saturating_add(of(arrival)))
    };
    let transfer = sum(&|arrival| arrival.transfer);
    let bytes = list.iter().try_fold(0_u64, |sum, arrival| {
        Some(sum.saturating_add(arrival.known_bytes()?))
    });
    let sized = bytes.filter(|_| transfer > Nanos::ZERO);
    let skews = Histogram::of(list.iter().map(|arrival| arrival.skew).collect());
    let late = || {
        list.iter()
            .filter(|arrival| arrival.skew > noise)
            .map(|arrival| arrival.last)
    };
    let latest = most_frequent(late()).map(|rank| {
        let times = late().filter(|&last| last == rank).count() as u64;
        (RankLabel::of(summaries[rank]), times)
    });
    let of = &matches.groups[group];
    CollectiveRow {
        group: of.name.to_string(),
        description: of.description.to_string(),
        ranks: of.ranks.to_string(),
        kind: list[0].kind,
        count: list.len() as u64,
        bytes,
        transfer,
        wait: sum(&|arrival| Nanos(arrival.wait.0 / arrival.ranks.len().max(1) as u64)),
        bytes_per_s: sized.map(|bytes| bytes as f64 * 1e9 / transfer.0 as f64),
        skew_p50: skews.percentile(50),
        skew_max: skews.largest(),
        last: latest,
    }
}

fn worst(
    summaries: &[&RankSummary],
    matches: &Matches<'_>,
    arrivals: Vec<&Arrival>,
    noise: Nanos,
) -> Vec<WorstCollective> {
    let mut late: Vec<&Arrival> = arrivals
        .into_iter()
        .filter(|arrival| arrival.skew > noise)
        .collect();
    let key = |arrival: &&Arrival| (std::cmp::Reverse(arrival.skew), arrival.group, arrival.step);
    if late.len() > WORST {
        late.select_nth_unstable_by_key(WORST - 1, key);
        late.truncate(WORST);
    }
    late.sort_by_key(key);
    let worst = late.into_iter().map(|arrival| WorstCollective {
        group: matches.groups[arrival.group].name.to_string(),
        kind: arrival.kind,
        step: arrival.step,
        sequence: arrival.sequence,
        bytes: arrival.known_bytes(),
        last: RankLabel::of(summaries[arrival.last]),
        skew: arrival.skew,
        transfer: arrival.transfer,
    });
    worst.collect()
}

fn step_skew(summaries: &[&RankSummary], step: u64, list: &[&Arrival]) -> Option<StepSkew> {
    let most = list
        .iter()
        .max_by_key(|arrival| (arrival.skew, std::cmp::Reverse(arrival.last)))?;
    let skews = Histogram::of(list.iter().map(|arrival| arrival.skew).collect());
    Some(StepSkew {
        step,
        skew_p50: skews.percentile(50),
        skew_max: most.skew,
        last: RankLabel::of(summaries[most.last]),
    })
}
