//! Everything that is told about a job.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use mindprof_answers::{Confidence, micros};
use mindprof_model::Nanos;
use serde::Serialize;

use crate::arrivals::{arrivals, do_ends_hide_transfers};
use crate::clocks::Clocks;
use crate::communication::Communication;
use crate::completeness::Completeness;
use crate::differences::Differences;
use crate::findings::{Facts, JobFindings};
use crate::label::RankLabel;
use crate::lateness::Lateness;
use crate::matched::Matches;
use crate::median::median;
use crate::own_times::{OwnTimes, sum_of};
use crate::pipeline::{Bubble, bubbles};
use crate::ranks::Ranks;
use crate::roster::Roster;
use crate::slow_steps::{SlowJobStep, slow_steps};
use crate::stragglers::Stragglers;
use crate::summary::{RankSummary, Sureness};
use crate::usage::{JobDevices, JobKernel, RankMemory, kernels, memory};

/// The least skew that is taken for a late rank, beyond the error of the clocks.
const LEAST_NOISE: Nanos = Nanos(10_000);

/// The answers about a job, from the merged summaries of its ranks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobAnswer {
    /// Which ranks there are, and what is wrong with the set.
    pub roster: Roster,
    /// The steps of the job.
    pub steps: JobSteps,
    /// The findings that only several ranks together show.
    pub findings: JobFindings,
    /// The slow ranks and machines.
    pub stragglers: Stragglers,
    /// The steps that took longer than usual, the slowest first.
    pub slow_steps: Vec<SlowJobStep>,
    /// The clocks of the ranks.
    pub clocks: JobClocks,
    /// Collectives, waits and skew.
    pub communication: Communication,
    /// The bubbles of the ranks of a pipeline.
    pub bubbles: Vec<Bubble>,
    /// The use of devices: temporal breakdown, overlap, idle time and launches.
    pub devices: JobDevices,
    /// The kernels of all ranks, by decreasing time, at most fifty.
    pub kernels: Vec<JobKernel>,
    /// The peak memory of each rank.
    pub memory: Vec<RankMemory>,
    /// The differences between ranks.
    pub differences: Differences,
    /// The findings of `mindprof advise` about single ranks, by rule.
    pub advice: Vec<RankAdvice>,
}

/// The steps of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobSteps {
    /// The number of steps that at least two ranks recorded.
    pub count: usize,
    /// The median over all steps of the median duration over all ranks.
    #[serde(rename = "p50_us", serialize_with = "micros")]
    pub p50: Nanos,
    /// Each step with its median duration and the rank with the most work of its own.
    pub each: Vec<JobStep>,
}

/// One step of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobStep {
    /// The number of the step.
    pub number: u64,
    /// Its median duration over all ranks.
    #[serde(rename = "duration_us", serialize_with = "micros")]
    pub duration: Nanos,
    /// The median time over all ranks that is not communication.
    #[serde(rename = "own_us", serialize_with = "micros")]
    pub own: Nanos,
    /// The largest such time.
    #[serde(rename = "own_max_us", serialize_with = "micros")]
    pub own_max: Nanos,
    /// The rank with the largest such time, the first of equal ones.
    pub busiest: RankLabel,
}

/// The clocks of the ranks of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobClocks {
    /// Each rank whose clock is aligned with that of the first.
    pub ranks: Vec<RankClock>,
    /// The ranks whose clock is not known, because they share no collectives with the others.
    pub unknown: Vec<RankLabel>,
    /// The ranks whose collectives do not end together with those of the others: their trace is of
    /// another run, or the collectives were matched wrongly.
    pub doubtful: Vec<RankLabel>,
    /// The largest error of an offset.
    #[serde(rename = "error_us", serialize_with = "micros")]
    pub error: Nanos,
}

/// The clock of one rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankClock {
    /// The rank.
    #[serde(flatten)]
    pub rank: RankLabel,
    /// The time to add to its clock, in nanoseconds.
    pub offset_ns: i64,
    /// The true offset is within this time of the offset, in 999 of 1,000 cases.
    #[serde(rename = "error_us", serialize_with = "micros")]
    pub error: Nanos,
    /// The number of collectives that the offset rests on. Zero for the first rank, and for ranks that
    /// keep the clock of their machine.
    pub collectives: u64,
    /// Whether it keeps the clock of its machine, which is that of the first rank: its collectives end
    /// too far apart to tell more.
    pub is_of_machine: bool,
}

/// A finding of `mindprof advise` on several ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankAdvice {
    /// The id of the rule.
    pub rule: String,
    /// The number of ranks that it was found on.
    pub ranks: usize,
    /// The median part of the step time that mending it would save on these ranks.
    pub share: f64,
    /// The largest such part, and its rank.
    pub highest: (RankLabel, f64),
    /// How sure the surest of these findings is.
    pub confidence: Confidence,
}

impl JobAnswer {
    /// Answers everything in time nearly linear in the size of the summaries.
    pub fn build(ranks: &Ranks) -> Self {
        let (roster, kept) = Roster::build(ranks.summaries());
        let kept: Vec<&RankSummary> = kept
            .iter()
            .map(|&place| &ranks.summaries()[place])
            .collect();
        let matches = Matches::build(&kept);
        let step = OwnTimes::build(&kept, &[]).step;
        let (clocks, doubtful) = Clocks::align(&kept, &matches, step);
        // A few ranks that disagree with the others are of another run. If many do, collectives end
        // apart, so that clocks are not known, but own work needs none.
        let foreign: &[usize] = if doubtful.len() * 2 < kept.len() {
            &doubtful
        } else {
            &[]
        };
        let times = OwnTimes::build(&kept, foreign);
        let job_clocks = JobClocks::of(&kept, &clocks, &doubtful);
        let noise = Nanos(job_clocks.error.0.saturating_mul(2)).saturating_add(LEAST_NOISE);
        let arrivals = arrivals(&kept, &matches, &clocks, noise);
        let lateness = Lateness::build(kept.len(), &arrivals, noise, times.step);
        let has_larger_group = matches
            .groups
            .iter()
            .any(|group| group.size > kept.len() as u64);
        let completeness = Completeness {
            lacks_ranks: roster.missing_count > 0 || has_larger_group,
            has_foreign: !foreign.is_empty(),
            has_ends_apart: doubtful.len() > foreign.len()
                || (clocks.have_ends_apart() && do_ends_hide_transfers(&arrivals)),
        };
        let stragglers = Stragglers::build(&kept, &times, &lateness, completeness);
        let slow_steps = slow_steps(&kept, &times);
        let bubbles = bubbles(&kept);
        let findings = JobFindings::build(&Facts {
            summaries: &kept,
            times: &times,
            stragglers: &stragglers,
            matches: &matches,
            arrivals: &arrivals,
            bubbles: &bubbles,
            slow_steps: &slow_steps,
            completeness,
        });
        Self {
            roster,
            steps: JobSteps::of(&kept, &times),
            findings,
            slow_steps,
            stragglers,
            clocks: job_clocks,
            communication: Communication::build(
                &kept,
                &matches,
                &arrivals,
                noise,
                completeness.has_ends_apart,
            ),
            bubbles,
            devices: JobDevices::build(&kept),
            kernels: kernels(&kept),
            memory: memory(&kept),
            differences: Differences::build(&kept),
            advice: advice(&kept),
        }
    }

    /// Returns the answers as JSON. Times are microseconds.
    ///
    /// # Panics
    /// Never: all keys are strings.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("answers have string keys")
    }
}

impl JobSteps {
    fn of(summaries: &[&RankSummary], times: &OwnTimes) -> Self {
        let each = times.steps.iter().filter_map(|step| {
            let own = step.ranks.iter().map(|(rank, _, own)| (sum_of(own), *rank));
            let (own_max, busiest) = own.max_by_key(|&(own, rank)| (own, Reverse(rank)))?;
            Some(JobStep {
                number: step.number,
                duration: step.duration,
                own: Nanos(step.own),
                own_max: Nanos(own_max),
                busiest: RankLabel::of(summaries[busiest]),
            })
        });
        Self {
            count: times.steps.len(),
            p50: times.step,
            each: each.collect(),
        }
    }
}

impl JobClocks {
    fn of(summaries: &[&RankSummary], clocks: &Clocks, doubtful: &[usize]) -> Self {
        let mut job = Self {
            doubtful: doubtful
                .iter()
                .map(|&rank| RankLabel::of(summaries[rank]))
                .collect(),
            ..Self::default()
        };
        let mut is_doubtful = vec![false; summaries.len()];
        for &rank in doubtful {
            is_doubtful[rank] = true;
        }
        for (rank, clock) in clocks.ranks.iter().enumerate() {
            let label = RankLabel::of(summaries[rank]);
            match clock {
                Some(clock) => {
                    job.error = job.error.max(clock.error);
                    job.ranks.push(RankClock {
                        rank: label,
                        offset_ns: clock.offset_ns,
                        error: clock.error,
                        collectives: clock.collectives,
                        is_of_machine: clock.is_of_machine,
                    });
                }
                None if !is_doubtful[rank] => job.unknown.push(label),
                None => {}
            }
        }
        job
    }
}

fn advice(summaries: &[&RankSummary]) -> Vec<RankAdvice> {
    let mut rules: BTreeMap<&str, Vec<(u32, usize, Sureness)>> = BTreeMap::new();
    for (rank, summary) in summaries.iter().enumerate() {
        for finding in &summary.findings {
            let found = rules.entry(&finding.rule).or_default();
            found.push((finding.share_ppm, rank, finding.sureness));
        }
    }
    let share = |ppm: u32| f64::from(ppm) / 1e6;
    let advice = rules.into_iter().filter_map(|(rule, found)| {
        let mut shares: Vec<u32> = found.iter().map(|(ppm, ..)| *ppm).collect();
        let (highest, rank, _) = found
            .iter()
            .max_by_key(|(ppm, rank, _)| (*ppm, Reverse(*rank)))?;
        Some(RankAdvice {
            rule: rule.into(),
            ranks: found.len(),
            share: share(median(&mut shares)?),
            highest: (RankLabel::of(summaries[*rank]), share(*highest)),
            confidence: found
                .iter()
                .map(|(.., sureness)| *sureness)
                .max()?
                .confidence(),
        })
    });
    let mut advice: Vec<RankAdvice> = advice.collect();
    advice.sort_by(|one, other| other.share.total_cmp(&one.share));
    advice
}
