//! Ranks and machines that are slower than the others, and why.

use std::collections::BTreeMap;

use mindprof_answers::micros;
use mindprof_model::Nanos;
use serde::Serialize;

use crate::label::RankLabel;
use crate::median::{deviation, median};
use crate::own_times::{ByCause, Cause, OwnTimes};
use crate::summary::RankSummary;

/// A rank is slow if its own time exceeds the median rank's by this share of a step, in most steps.
const SLOW_PERCENT: u64 = 5;

/// A rank is slow in a step only if it exceeds the median rank's by at least half of that.
const MOST_STEPS_PERCENT: usize = 75;

/// If there are enough ranks to tell how much they vary, a slow rank exceeds the median by this many
/// median deviations.
const DEVIATIONS: u64 = 5;
const ENOUGH_RANKS: usize = 5;

/// A cause is named only if it covers this share of the difference.
const NAMED_PERCENT: u64 = 80;

/// A machine is slow if at least this share of its ranks are, and other machines have few.
const HOST_PERCENT: usize = 75;

/// A rank that is slower than the others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Straggler {
    /// The rank.
    #[serde(flatten)]
    pub rank: RankLabel,
    /// The median time by which its own work exceeds that of the median rank in a step.
    #[serde(rename = "excess_us", serialize_with = "micros")]
    pub excess: Nanos,
    /// The excess as a share of the median step.
    pub share: f64,
    /// The number of steps in which it is slower by at least half of the limit.
    pub slow_steps: usize,
    /// The number of steps that it was compared in.
    pub steps: usize,
    /// The cause that covers at least 80 % of the difference, if one does.
    pub cause: Option<Cause>,
    /// The time that each cause adds in a median step, negative if it takes less.
    #[serde(serialize_with = "cause_micros")]
    pub by_cause: [i64; Cause::ALL.len()],
}

/// A machine most of whose ranks are slow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SlowHost {
    /// The name of the machine.
    pub host: String,
    /// The number of its ranks.
    pub ranks: usize,
    /// The number of its ranks that are slow.
    pub slow: usize,
    /// The median excess of its slow ranks.
    #[serde(rename = "excess_us", serialize_with = "micros")]
    pub excess: Nanos,
    /// The cause that most of them share.
    pub cause: Option<Cause>,
}

/// The slow ranks and machines of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stragglers {
    /// The slow ranks, the slowest first.
    pub ranks: Vec<Straggler>,
    /// The slow machines, the slowest first.
    pub hosts: Vec<SlowHost>,
    /// The largest excess of a rank that is not slow: what remains when the slow ones are mended.
    #[serde(rename = "next_us", serialize_with = "micros")]
    pub next: Nanos,
    /// Why nothing can be told, or `None`.
    pub unknown: Option<&'static str>,
}

impl Stragglers {
    /// Finds slow ranks in time linear in the number of steps of all ranks.
    pub(crate) fn build(summaries: &[&RankSummary], times: &OwnTimes) -> Self {
        if times.steps.is_empty() {
            return Self {
                unknown: Some(if summaries.len() < 2 {
                    "there is only one rank"
                } else {
                    "no step was recorded by two ranks: call `prof.step()` in the training loop"
                }),
                ..Self::default()
            };
        }
        let excesses = Excess::of_ranks(summaries.len(), times);
        let mut middles: Vec<i64> = excesses
            .iter()
            .flatten()
            .map(|excess| excess.middle)
            .collect();
        let center = median(&mut middles).unwrap_or(0);
        let spread = deviation(&middles, center);
        let is_known = middles.len() >= ENOUGH_RANKS;
        let least = (times.step.0 * SLOW_PERCENT).div_ceil(100);
        let mut next = 0;
        let mut ranks: Vec<Straggler> = Vec::new();
        for (rank, excess) in excesses.iter().enumerate() {
            let Some(excess) = excess else { continue };
            let is_slow = excess.middle > 0
                && excess.middle.unsigned_abs() >= least.max(1)
                && excess.slow_steps(least) * 100 >= excess.per_step.len() * MOST_STEPS_PERCENT
                && (!is_known || excess.middle.abs_diff(center) > DEVIATIONS * spread);
            if is_slow {
                ranks.push(excess.straggler(RankLabel::of(summaries[rank]), times, least));
            } else {
                next = next.max(excess.middle);
            }
        }
        ranks.sort_by_key(|straggler| std::cmp::Reverse(straggler.excess));
        Self {
            hosts: slow_hosts(summaries, &ranks),
            ranks,
            next: Nanos(next.unsigned_abs()),
            unknown: None,
        }
    }
}

/// By how much one rank exceeds the median rank.
#[derive(Debug, Default)]
struct Excess {
    per_step: Vec<i64>,
    by_cause: [Vec<i64>; Cause::ALL.len()],
    middle: i64,
}

impl Excess {
    fn of_ranks(ranks: usize, times: &OwnTimes) -> Vec<Option<Self>> {
        let mut excesses: Vec<Option<Self>> = (0..ranks).map(|_| None).collect();
        for step in &times.steps {
            for (rank, _, by_cause) in &step.ranks {
                let excess = excesses[*rank].get_or_insert_default();
                let own: u64 = by_cause.iter().sum();
                excess.per_step.push(difference(own, step.own));
                for (cause, list) in excess.by_cause.iter_mut().enumerate() {
                    list.push(difference(by_cause[cause], step.by_cause[cause]));
                }
            }
        }
        for excess in excesses.iter_mut().flatten() {
            excess.middle = median(&mut excess.per_step.clone()).unwrap_or(0);
        }
        excesses
    }

    fn slow_steps(&self, least: u64) -> usize {
        let is_slow = |excess: &&i64| **excess > 0 && excess.unsigned_abs() * 2 >= least;
        self.per_step.iter().filter(is_slow).count()
    }

    fn straggler(&self, rank: RankLabel, times: &OwnTimes, least: u64) -> Straggler {
        let by_cause: [i64; Cause::ALL.len()] =
            std::array::from_fn(|cause| median(&mut self.by_cause[cause].clone()).unwrap_or(0));
        let excess = self.middle.unsigned_abs();
        Straggler {
            rank,
            excess: Nanos(excess),
            share: excess as f64 / times.step.0.max(1) as f64,
            slow_steps: self.slow_steps(least),
            steps: self.per_step.len(),
            cause: named_cause(by_cause, excess),
            by_cause,
        }
    }
}

/// Returns the cause that covers most of a difference.
pub(crate) fn named_cause(by_cause: [i64; Cause::ALL.len()], excess: u64) -> Option<Cause> {
    let causes = Cause::ALL.into_iter().zip(by_cause);
    let (cause, most) = causes.max_by_key(|&(_, time)| time)?;
    let covers = most > 0 && most.unsigned_abs() * 100 >= excess * NAMED_PERCENT;
    (covers && excess > 0).then_some(cause)
}

/// Returns the difference between a rank's times by cause and the median rank's.
pub(crate) fn differences(own: &ByCause, middle: &ByCause) -> [i64; Cause::ALL.len()] {
    std::array::from_fn(|cause| difference(own[cause], middle[cause]))
}

pub(crate) fn difference(one: u64, other: u64) -> i64 {
    let difference = i128::from(one) - i128::from(other);
    i64::try_from(difference).unwrap_or(if one > other { i64::MAX } else { i64::MIN })
}

fn slow_hosts(summaries: &[&RankSummary], ranks: &[Straggler]) -> Vec<SlowHost> {
    let mut hosts: BTreeMap<&str, (usize, Vec<&Straggler>)> = BTreeMap::new();
    for host in summaries
        .iter()
        .filter_map(|summary| summary.identity.host.as_deref())
    {
        hosts.entry(host).or_default().0 += 1;
    }
    if hosts.len() < 2 {
        return Vec::new();
    }
    for straggler in ranks {
        if let Some(host) = straggler.rank.host.as_deref()
            && let Some((_, slow)) = hosts.get_mut(host)
        {
            slow.push(straggler);
        }
    }
    let slow = hosts
        .into_iter()
        .filter(|(_, (count, slow))| *count > 1 && slow.len() * 100 >= count * HOST_PERCENT);
    let slow = slow.map(|(host, (count, slow))| {
        let mut excesses: Vec<Nanos> = slow.iter().map(|straggler| straggler.excess).collect();
        let first = slow.first().and_then(|straggler| straggler.cause);
        SlowHost {
            host: host.into(),
            ranks: count,
            slow: slow.len(),
            excess: median(&mut excesses).unwrap_or_default(),
            cause: first.filter(|_| slow.iter().all(|straggler| straggler.cause == first)),
        }
    });
    let mut slow: Vec<SlowHost> = slow.collect();
    slow.sort_by_key(|host| std::cmp::Reverse(host.excess));
    slow
}

fn cause_micros<S: serde::Serializer>(
    times: &[i64; Cause::ALL.len()],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let [computing, data, copies, host] = times.map(|time| time as f64 / 1e3);
    let names = ["computing_us", "data_us", "copies_us", "host_us"];
    serializer.collect_map(names.into_iter().zip([computing, data, copies, host]))
}
