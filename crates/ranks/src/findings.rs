//! Causes of slowness that only several ranks together show, with what mending them would save.

mod link_rules;
mod rank_rules;
mod transfer_rules;

use mindprof_answers::Confidence;
use mindprof_model::Nanos;
use serde::Serialize;

use crate::arrivals::Arrival;
use crate::collectives::{Collective, CollectiveKind};
use crate::completeness::{Completeness, ENDS_APART, NO_COMMON_CLOCK};
use crate::exposed::Exposed;
use crate::label::RankLabel;
use crate::matched::Matches;
use crate::own_times::{Cause, OwnTimes};
use crate::pipeline::Bubble;
use crate::slow_steps::SlowJobStep;
use crate::stragglers::Stragglers;
use crate::summary::RankSummary;

/// Findings below this share of the step time are left out.
const LEAST: f64 = 0.005;

/// A rule about a job.
#[derive(Debug)]
pub struct JobRule {
    /// The name of the cause.
    pub id: &'static str,
    /// The cause, as a sentence without its full stop.
    pub cause: &'static str,
    /// The change to try.
    pub remedy: &'static str,
    check: fn(&Facts<'_>) -> Outcome,
}

/// Every rule.
pub const JOB_RULES: [JobRule; 9] = [
    rank_rules::SLOW_RANK,
    rank_rules::UNEVEN_WORK,
    rank_rules::PIPELINE_BUBBLE,
    transfer_rules::COMMUNICATION_HEAVY,
    transfer_rules::POOR_OVERLAP,
    transfer_rules::SMALL_MESSAGES,
    link_rules::SLOW_LINK,
    link_rules::SLOWED_BY_COMPUTE,
    link_rules::ENDS_DIFFER,
];

/// A cause of slowness of a job, and what mending it would save.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobFinding {
    /// The id of the rule.
    pub rule: &'static str,
    /// The cause, as a sentence without its full stop.
    pub summary: &'static str,
    /// The part of the step time that mending it is likely to save. Zero if the rule has no price.
    pub share: f64,
    /// The least part that it is likely to save.
    pub low: f64,
    /// The largest part that it could save.
    pub high: f64,
    /// How sure the finding is.
    pub confidence: Confidence,
    /// The ranks to blame.
    pub ranks: Vec<RankLabel>,
    /// The machines to blame.
    pub hosts: Vec<String>,
    /// The ranks of the process group that it is about, as in `0-7`.
    pub group: Option<String>,
    /// The cause of the difference between ranks, if one covers most of it.
    pub cause: Option<Cause>,
    /// The number of collectives that show it.
    pub collectives: u64,
    /// The change to try.
    #[serde(rename = "try")]
    pub remedy: &'static str,
}

/// A rule that could not be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UnknownJobRule {
    /// The id of the rule.
    pub rule: &'static str,
    /// The data that the recordings lack, and how to record it.
    pub missing: &'static str,
}

/// The findings about a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobFindings {
    /// The findings, the most valuable first.
    pub found: Vec<JobFinding>,
    /// The ids of the rules that found nothing worth mending.
    pub clean: Vec<&'static str>,
    /// The rules that could not be applied.
    pub unknown: Vec<UnknownJobRule>,
}

/// The data that rules look at.
pub(crate) struct Facts<'a> {
    pub(crate) summaries: &'a [&'a RankSummary],
    pub(crate) times: &'a OwnTimes,
    pub(crate) stragglers: &'a Stragglers,
    pub(crate) matches: &'a Matches<'a>,
    pub(crate) arrivals: &'a [Arrival],
    pub(crate) bubbles: &'a [Bubble],
    pub(crate) slow_steps: &'a [SlowJobStep],
    pub(crate) completeness: Completeness,
}

/// The verdict of a rule.
pub(crate) enum Outcome {
    Found(Evidence),
    Clean,
    Unknown(&'static str),
}

/// The basis of a finding. Shares are of the step time.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    pub(crate) share: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// Whether the finding costs something other than time.
    pub(crate) is_unpriced: bool,
    pub(crate) ranks: Vec<RankLabel>,
    pub(crate) hosts: Vec<String>,
    pub(crate) group: Option<String>,
    pub(crate) cause: Option<Cause>,
    pub(crate) collectives: u64,
    /// The most that the finding is sure.
    pub(crate) confidence: Option<Confidence>,
}

/// The reason for which rules about transfers cannot tell.
const NO_COLLECTIVES: &str =
    "no collective was recognized on two ranks: record the device and call `prof.step()`";

/// The reason for which rules about transfers cannot tell, although clocks are known.
const NO_STEPS: &str = "no step was recorded: call `prof.step()` in the training loop";

/// The reason if all ranks are there and compared, but not in all collectives.
const NOT_WHOLE: &str = "collectives lack ranks of their groups, which recorded other steps or have no clock, and the others may wait for them: record the same steps on all ranks";

/// The reason for which rules about messages of one size cannot tell.
const NO_SIZES: &str = "the sizes of messages were not recorded: record with `record_shapes=True`";

/// Transfers are priced if so much of the exposed time is in collectives with all ranks.
const WHOLE_PERCENT: u128 = 80;

impl Facts<'_> {
    /// Returns a time that is summed up over all ranks as a share of all of their steps.
    pub(crate) fn share(&self, time: Nanos) -> f64 {
        let ranks = self.summaries.len().max(1) as f64;
        time.0 as f64 / ranks / self.times.total.0.max(1) as f64
    }

    /// Returns why no collective is on the common clock, if none is.
    pub(crate) fn why_no_arrivals(&self) -> &'static str {
        if self.arrivals.is_empty() && !self.matches.list.is_empty() {
            NO_COMMON_CLOCK
        } else {
            NO_COLLECTIVES
        }
    }

    /// Returns whether a step is one of those that findings are priced over.
    fn is_compared(&self, step: Option<u64>) -> bool {
        let steps = self.times.priced();
        let place = |step| steps.binary_search_by_key(&step, |known| known.number);
        step.is_some_and(|step| place(step).is_ok())
    }

    /// Returns the collectives in steps with all ranks of their groups, or why waits and transfers
    /// cannot be told apart. A rank that is missing looks like a transfer to those that wait for it.
    pub(crate) fn in_steps(&self) -> Result<Vec<&Arrival>, &'static str> {
        if self.times.steps.is_empty() && !self.arrivals.is_empty() {
            return Err(NO_STEPS);
        }
        if self.completeness.has_ends_apart {
            return Err(ENDS_APART);
        }
        let not_whole = self.completeness.doubt().unwrap_or(NOT_WHOLE);
        let arrivals = self.arrivals.iter();
        let arrivals = arrivals.filter(|arrival| self.is_compared(arrival.step));
        let whole: Vec<&Arrival> = arrivals
            .clone()
            .filter(|arrival| arrival.is_whole)
            .collect();
        if whole.is_empty() {
            let is_any = arrivals.count() > 0;
            return Err(if is_any {
                not_whole
            } else {
                self.why_no_arrivals()
            });
        }
        let known = whole
            .iter()
            .fold(0_u128, |sum, arrival| sum + u128::from(arrival.exposed.0));
        let all = self.exposed();
        if known * 100 < all * WHOLE_PERCENT {
            return Err(not_whole);
        }
        Ok(whole)
    }

    /// Applies a rule that depends on the sizes of messages. Messages of unknown sizes make no finding,
    /// but they may hide one.
    pub(crate) fn by_known_size(&self, check: fn(&Self, &[&Arrival]) -> Outcome) -> Outcome {
        let arrivals = match self.in_steps() {
            Ok(arrivals) => arrivals,
            Err(missing) => return Outcome::Unknown(missing),
        };
        let (known, unknown): (Vec<&Arrival>, Vec<&Arrival>) = arrivals
            .into_iter()
            .partition(|arrival| arrival.known_bytes().is_some());
        match (check(self, &known), check(self, &unknown)) {
            (Outcome::Clean, Outcome::Found(hidden)) if hidden.share >= LEAST => {
                Outcome::Unknown(NO_SIZES)
            }
            (outcome, _) => outcome,
        }
    }

    /// Returns the exposed time of the collectives of all ranks in steps.
    fn exposed(&self) -> u128 {
        let is_counted = |found: &&Collective| {
            let is_pair = matches!(found.kind, CollectiveKind::Send | CollectiveKind::Receive);
            !is_pair && self.is_compared(found.step)
        };
        let exposed = Exposed::build(self.summaries);
        let of_rank = |(rank, summary): (usize, &&RankSummary)| {
            let found = summary.collectives.iter().filter(is_counted);
            let times = found.map(|found| exposed.own(rank, found, found.exposed).0);
            times.fold(0_u128, |sum, time| sum + u128::from(time))
        };
        self.summaries.iter().enumerate().map(of_rank).sum()
    }
}

impl JobFindings {
    /// Applies all rules.
    pub(crate) fn build(facts: &Facts<'_>) -> Self {
        let mut findings = Self::default();
        let sure = match facts.times.steps.len() {
            0..5 => Confidence::Low,
            5..20 => Confidence::Medium,
            20.. => Confidence::High,
        };
        for rule in &JOB_RULES {
            match (rule.check)(facts) {
                Outcome::Found(evidence) if evidence.is_unpriced || evidence.share >= LEAST => {
                    findings.found.push(JobFinding {
                        rule: rule.id,
                        summary: rule.cause,
                        share: evidence.share.min(1.0),
                        low: evidence.low.min(1.0),
                        high: evidence.high.min(1.0),
                        confidence: evidence.confidence.map_or(sure, |most| most.min(sure)),
                        ranks: evidence.ranks,
                        hosts: evidence.hosts,
                        group: evidence.group,
                        cause: evidence.cause,
                        collectives: evidence.collectives,
                        remedy: rule.remedy,
                    });
                }
                Outcome::Found(_) | Outcome::Clean => findings.clean.push(rule.id),
                Outcome::Unknown(missing) => findings.unknown.push(UnknownJobRule {
                    rule: rule.id,
                    missing,
                }),
            }
        }
        let found = &mut findings.found;
        found.sort_by(|one, other| other.share.total_cmp(&one.share));
        findings
    }
}
