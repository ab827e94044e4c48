//! Ranks and machines that are slower than the others, and why.

use std::collections::BTreeMap;

use mindprof_answers::micros;
use mindprof_model::Nanos;
use serde::Serialize;

use crate::completeness::{Completeness, MISSING, NO_COMMON_CLOCK, NOT_COMPARED};
use crate::excess::{Excess, Limit};
use crate::label::RankLabel;
use crate::lateness::Lateness;
use crate::median::median;
use crate::own_times::{ByCause, Cause, OwnTimes, sum_of};
use crate::roster::usual_limit;
use crate::summary::RankSummary;

/// Waiting matters if the median rank communicates for this share of the steps.
const WAITING_PERCENT: u64 = 5;

const ONE_RANK: &str = "there is only one rank";
const NO_STEPS: &str = "no step was recorded by two ranks: call `prof.step()` in the training loop";
const FEWER_STEPS: &str = "fewer than five steps were recorded by two ranks, and by chance \
    some ranks take longer in a few steps: record more";
const NO_COMMUNICATION: &str = "the recordings show no communication, and thus not which ranks wait: \
    record the devices";
const UNWITNESSED: &str = "a rank does something else while others communicate, and no common clock \
    tells whether they wait for it";
const WAITS_ELSEWHERE: &str = "a rank computes longer than the others, which do something else \
    meanwhile: whether they wait for it was not recorded as communication";

const NOISY: &str = "a rank takes longer than the others by 5 % of a step or more, but steps differ so \
    much that this may be chance: record more steps, and leave a processor to each rank";

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
    /// The cause that covers at least 80 % of the difference, if one does, unless the rank recorded
    /// other operators than most.
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
    /// Why the slow ranks may be slow only because they wait for ranks that are not compared, or
    /// `None`.
    pub doubt: Option<&'static str>,
}

impl Straggler {
    /// Returns whether most of the excess is work that a recording shows, and no time that may be a
    /// wait.
    fn is_work(&self) -> bool {
        let [computing, data, copies, _] = self.by_cause;
        let work = [computing, data, copies]
            .into_iter()
            .fold(0, i64::saturating_add);
        work > 0 && work.unsigned_abs() >= self.excess.0 / 2
    }
}

impl Stragglers {
    /// Finds slow ranks in time linear in the number of steps of all ranks.
    pub(crate) fn build(
        summaries: &[&RankSummary],
        times: &OwnTimes,
        lateness: &Lateness,
        completeness: Completeness,
    ) -> Self {
        let excesses = Excess::of_ranks(summaries.len(), times, sum_of);
        let compared = excesses.iter().flatten().count();
        let unknown = if summaries.len() < 2 {
            Some(ONE_RANK)
        } else if times.steps.is_empty() {
            Some(NO_STEPS)
        } else if !times.has_communication {
            Some(NO_COMMUNICATION)
        } else if compared < 2 {
            Some(FEWER_STEPS)
        } else {
            None
        };
        if unknown.is_some() {
            return Self {
                unknown,
                ..Self::default()
            };
        }
        let limit = Limit::of(&excesses, times);
        let usual = usual_limit(summaries);
        let (mut next, mut is_unwitnessed) = (0, false);
        let mut slow: Vec<(usize, Straggler)> = Vec::new();
        for (rank, excess) in excesses.iter().enumerate() {
            let Some(excess) = excess else { continue };
            if !limit.is_exceeded(excess) {
                next = next.max(excess.middle);
                continue;
            }
            let label = RankLabel::of(summaries[rank]);
            let mut straggler = excess.straggler(label, times, limit.least);
            // Work that was not recorded would be taken for that of Python.
            straggler.cause = straggler.cause.filter(|_| summaries[rank].limit() == usual);
            match lateness.is_waited_for(rank) {
                Some(true) => slow.push((rank, straggler)),
                // It has less to communicate than the others, and nobody waits for it.
                Some(false) => {}
                None if straggler.is_work() => slow.push((rank, straggler)),
                None => is_unwitnessed = true,
            }
        }
        slow.sort_by_key(|(_, straggler)| std::cmp::Reverse(straggler.excess));
        let slowest = slow.first().map(|&(rank, _)| rank);
        let doubt = slowest.and_then(|slowest| doubt(slowest, times, lateness, completeness));
        let ranks: Vec<Straggler> = slow.into_iter().map(|(_, straggler)| straggler).collect();
        let unknown = if !ranks.is_empty() {
            None
        } else if is_unwitnessed {
            Some(UNWITNESSED)
        } else if computes_longer(summaries.len(), times) {
            Some(WAITS_ELSEWHERE)
        } else if completeness.lacks_ranks && waits(times) {
            Some(MISSING)
        } else if compared < summaries.len() {
            Some(NOT_COMPARED)
        } else if excesses
            .iter()
            .flatten()
            .any(|excess| limit.may_be_exceeded(excess))
        {
            Some(NOISY)
        } else {
            None
        };
        Self {
            hosts: slow_hosts(summaries, &ranks),
            ranks,
            next: Nanos(next.unsigned_abs()),
            unknown,
            doubt,
        }
    }
}

/// Returns whether a rank does more work of the kinds that are never a wait, although its own time is
/// not longer.
fn computes_longer(ranks: usize, times: &OwnTimes) -> bool {
    let work = |own: &ByCause| own[0].saturating_add(own[1]).saturating_add(own[2]);
    let excesses = Excess::of_ranks(ranks, times, work);
    let limit = Limit::of(&excesses, times);
    let mut found = excesses.iter().flatten();
    found.any(|excess| limit.is_exceeded(excess))
}

/// Returns why the slowest rank may itself wait for one that is not compared, or `None` if all ranks
/// are compared or it hardly communicates.
fn doubt(
    slowest: usize,
    times: &OwnTimes,
    lateness: &Lateness,
    completeness: Completeness,
) -> Option<&'static str> {
    let is_unwitnessed = completeness.has_ends_apart && lateness.is_waited_for(slowest).is_none();
    let doubt = completeness.doubt();
    let doubt = doubt.or_else(|| is_unwitnessed.then_some(NO_COMMON_CLOCK));
    let ranks = times.steps.iter().flat_map(|step| &step.ranks);
    let own = ranks.filter(|(rank, ..)| *rank == slowest);
    let communication = own.map(|(_, duration, own)| duration.0.saturating_sub(sum_of(own)));
    doubt.filter(|_| matters(communication.collect(), times))
}

/// Returns whether ranks communicate for long enough that waiting may matter.
fn waits(times: &OwnTimes) -> bool {
    let communication = times
        .steps
        .iter()
        .map(|step| step.duration.0.saturating_sub(step.own));
    matters(communication.collect(), times)
}

/// Returns whether the communication of the median step may be a wait that matters.
fn matters(mut communication: Vec<u64>, times: &OwnTimes) -> bool {
    let middle = median(&mut communication).unwrap_or(0);
    u128::from(middle) * 100 >= u128::from(times.step.0) * u128::from(WAITING_PERCENT)
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
