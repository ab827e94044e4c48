//! Differences between ranks: operators and kernels, their counts and shapes, versions and devices.

use std::collections::BTreeMap;

use mindprof_answers::micros;
use mindprof_model::Nanos;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::label::RankLabel;
use crate::matched::most_frequent;
use crate::roster::usual_limit;
use crate::rows::RowKind;
use crate::summary::RankSummary;

/// The most differences that are listed, and the most ranks of each.
const LISTED: usize = 50;
const RANKS: usize = 8;

/// An operator or kernel that some ranks run more or less often, or on other shapes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowDifference {
    /// The name.
    pub name: String,
    /// The kind.
    pub kind: RowKind,
    /// The number of calls on most ranks.
    pub usual_count: u64,
    /// The ranks with another number of calls, at most eight, each with its number.
    pub counts: Vec<(RankLabel, u64)>,
    /// The number of ranks with another number of calls.
    pub count_ranks: usize,
    /// The number of ranks with the usual number of calls on other shapes than most.
    pub shape_ranks: usize,
    /// The time of all calls of all ranks.
    #[serde(rename = "time_us", serialize_with = "micros")]
    pub time: Nanos,
}

/// A fact about the software or the machine that is not the same on all ranks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FactDifference {
    /// The fact, such as `nccl_version` or `devices`.
    pub fact: String,
    /// The values, each with the number of its ranks and one of them. The most frequent comes first.
    pub values: Vec<(String, usize, RankLabel)>,
}

/// Everything that differs between ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Differences {
    /// Operators and kernels, the most expensive first.
    pub rows: Vec<RowDifference>,
    /// The number of operators and kernels that differ.
    pub row_count: usize,
    /// Facts about software and machines.
    pub facts: Vec<FactDifference>,
    /// The ranks that recorded another number of steps than most, and that number. Their rows are not
    /// compared, and neither are those of ranks that recorded other operators than most.
    pub steps: Vec<(RankLabel, usize)>,
}

impl Differences {
    /// Compares ranks in time nearly linear in the number of their rows.
    pub(crate) fn build(summaries: &[&RankSummary]) -> Self {
        let steps = most_frequent(summaries.iter().map(|summary| summary.steps.len()));
        let is_usual = |summary: &&&RankSummary| Some(summary.steps.len()) == steps;
        let unusual = summaries.iter().filter(|summary| !is_usual(summary));
        let unusual = unusual.map(|summary| (RankLabel::of(summary), summary.steps.len()));
        let limit = usual_limit(summaries);
        let alike = summaries.iter().filter(is_usual);
        let alike = alike.filter(|summary| summary.limit() == limit);
        let alike: Vec<&RankSummary> = alike.copied().collect();
        let mut rows = row_differences(&alike);
        let row_count = rows.len();
        rows.truncate(LISTED);
        Self {
            rows,
            row_count,
            facts: fact_differences(summaries),
            steps: unusual.collect(),
        }
    }
}

/// The calls of one row on one rank.
#[derive(Clone, Copy, Debug, Default)]
struct Calls {
    rank: usize,
    count: u64,
    shapes: u64,
    time: Nanos,
}

fn row_differences(summaries: &[&RankSummary]) -> Vec<RowDifference> {
    let mut rows: FxHashMap<(&str, RowKind), Vec<Calls>> = FxHashMap::default();
    for (rank, summary) in summaries.iter().enumerate() {
        for row in &summary.rows {
            match row.kind {
                RowKind::Operator | RowKind::Kernel | RowKind::Communication => {}
                RowKind::Range | RowKind::Runtime | RowKind::Copy | RowKind::Fill => continue,
            }
            let list = rows.entry((&*row.name, row.kind)).or_default();
            if list.last().is_none_or(|last| last.rank != rank) {
                list.push(Calls {
                    rank,
                    ..Calls::default()
                });
            }
            if let Some(calls) = list.last_mut() {
                calls.count = calls.count.saturating_add(row.times.count());
                calls.shapes = calls.shapes.wrapping_add(row.shapes);
                calls.time = calls.time.saturating_add(row.times.sum());
            }
        }
    }
    let found = rows.into_iter();
    let found = found.filter_map(|((name, kind), calls)| compare(summaries, name, kind, &calls));
    let mut found: Vec<RowDifference> = found.collect();
    found.sort_by(|one, other| {
        let key = |row: &RowDifference| (std::cmp::Reverse(row.time), row.name.clone(), row.kind);
        key(one).cmp(&key(other))
    });
    found
}

fn compare(
    summaries: &[&RankSummary],
    name: &str,
    kind: RowKind,
    calls: &[Calls],
) -> Option<RowDifference> {
    let absent = summaries.len() - calls.len();
    let counts = calls.iter().map(|calls| calls.count);
    let usual_count = most_frequent(counts.chain(std::iter::repeat_n(0, absent)))?;
    let same = || calls.iter().filter(|calls| calls.count == usual_count);
    let usual_shapes = most_frequent(same().map(|calls| calls.shapes));
    let shape_ranks = same()
        .filter(|calls| Some(calls.shapes) != usual_shapes)
        .count();
    let present = calls
        .iter()
        .filter(|calls| calls.count != usual_count)
        .count();
    let count_ranks = present + if usual_count == 0 { 0 } else { absent };
    if count_ranks == 0 && shape_ranks == 0 {
        return None;
    }
    let mut by_rank = calls.iter().peekable();
    let mut listed = Vec::new();
    for (rank, summary) in summaries.iter().enumerate() {
        if listed.len() == RANKS.min(count_ranks) {
            break;
        }
        let count = by_rank
            .next_if(|calls| calls.rank == rank)
            .map_or(0, |calls| calls.count);
        if count != usual_count {
            listed.push((RankLabel::of(summary), count));
        }
    }
    Some(RowDifference {
        name: name.into(),
        kind,
        usual_count,
        counts: listed,
        count_ranks,
        shape_ranks,
        time: calls
            .iter()
            .fold(Nanos::ZERO, |sum, calls| sum.saturating_add(calls.time)),
    })
}

fn fact_differences(summaries: &[&RankSummary]) -> Vec<FactDifference> {
    let mut facts: BTreeMap<String, BTreeMap<String, (usize, usize)>> = BTreeMap::new();
    for (rank, summary) in summaries.iter().enumerate() {
        let identity = &summary.identity;
        let devices: Vec<&str> = identity.devices.iter().map(|name| &**name).collect();
        let versions = identity.versions.iter();
        let versions = versions.map(|(key, value)| (key.to_string(), value.to_string()));
        let backend = identity.backend.as_deref().unwrap_or_default();
        let more = [("devices", devices.join(", ")), ("backend", backend.into())];
        let more = more.map(|(key, value)| (key.to_string(), value));
        for (key, value) in versions.chain(more) {
            let values = facts.entry(key).or_default();
            values.entry(value).or_insert((0, rank)).0 += 1;
        }
    }
    let mut differences = Vec::new();
    for (fact, values) in facts {
        let stated: usize = values.values().map(|(count, _)| count).sum();
        let is_partial = stated < summaries.len();
        if values.len() < 2 && !is_partial {
            continue;
        }
        let values = values.into_iter();
        let mut values: Vec<(String, usize, RankLabel)> = values
            .map(|(value, (count, rank))| (value, count, RankLabel::of(summaries[rank])))
            .collect();
        values.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
        differences.push(FactDifference { fact, values });
    }
    differences
}
