//! The first sentence about a job.

use mindprof_formats::counted;
use mindprof_ranks::{Blame, JobAnswer};

use super::{cause_words, ranks_words, share_words};
use crate::sentence::sentence;
use crate::steps::short_time;
use crate::visible::visible;

/// Returns the verdict about a job as one sentence.
pub(crate) fn verdict(answer: &JobAnswer) -> String {
    let roster = &answer.roster;
    let left_out = roster.repeated.len() + roster.foreign.len();
    let ranks = roster.files.saturating_sub(left_out);
    if ranks == 0 {
        return "There is no rank to tell anything about.".into();
    }
    let mut job = counted(ranks as u64, "rank");
    if roster.hosts > 1 {
        job = format!("{job} on {}", counted(roster.hosts as u64, "machine"));
    }
    if answer.steps.count > 0 {
        let steps = counted(answer.steps.count as u64, "step");
        job = format!("{job}, {steps} of {}", short_time(answer.steps.p50));
    }
    format!("{job}: {}.", finding(answer, ranks))
}

fn finding(answer: &JobAnswer, ranks: usize) -> String {
    let Some(first) = answer.findings.found.first() else {
        return without_findings(answer, ranks);
    };
    let share = share_words(first.share);
    match first.rule {
        "slow-rank" => {
            let ranks = ranks_words(&first.ranks);
            let (is, them) = if first.ranks.len() == 1 {
                ("is", "it")
            } else {
                ("are", "them")
            };
            let why = first.cause.map_or_else(String::new, |cause| {
                format!(", mostly because of {}", cause_words(cause))
            });
            let Some(doubt) = answer.stragglers.doubt else {
                return format!(
                    "{ranks} {is} slow{why}; the others wait for {them}, {share} of each step"
                );
            };
            let most = share_words(first.high);
            format!(
                "{ranks} {is} slow{why}; the others wait for {them}, at most {most} of each step. {}",
                sentence(doubt)
            )
        }
        _ if first.share > 0.0 => format!("{}, which costs {share} of each step", first.summary),
        _ => first.summary.into(),
    }
}

fn without_findings(answer: &JobAnswer, ranks: usize) -> String {
    if let Some(step) = answer.slow_steps.first() {
        let who = match &step.blame {
            Blame::Rank(rank) => format!("because of {}", visible(&rank.text())),
            Blame::Ranks(ranks) => format!("because of {}", ranks_words(ranks)),
            Blame::AllRanks => "on all ranks".into(),
            Blame::Nobody => "while ranks communicated".into(),
        };
        let excess = short_time(step.excess);
        return format!("step {} took {excess} longer, {who}", step.number);
    }
    let mut unknown = answer.findings.unknown.iter();
    let Some(unknown) = unknown.find(|unknown| unknown.rule == "slow-rank") else {
        return "no rank is slower than the others".into();
    };
    let missing = unknown.missing;
    if ranks == 1 {
        return format!("ranks cannot be compared, because {missing}");
    }
    format!("it cannot be told which rank is slow, because {missing}")
}
