//! The answers about a distributed job as text.

mod notes;
mod tables;
#[cfg(test)]
mod tests;
mod verdict;

use mindprof_formats::counted;
use mindprof_ranks::{Cause, JobAnswer, JobFinding, RankLabel};

pub(crate) use self::notes::{
    clock_notes, difference_notes, range_words, roster_notes, unknown_rules,
};
use self::tables::{
    push_collectives, push_devices, push_kernels, push_slow_ranks, push_slow_steps,
};
pub(crate) use self::verdict::verdict;
use crate::grid::{push_line, push_wrapped};
use crate::number::memory_text;
use crate::visible::visible;

/// The layout of the answers about a job.
#[derive(Clone, Copy, Debug)]
pub struct RanksLayout {
    /// The largest number of rows of each list.
    pub rows: usize,
    /// The largest width, or `None` for no limit. The columns of numbers need 80 characters.
    pub width: Option<usize>,
}

/// The least width of the text.
const LEAST_WIDTH: usize = 80;

/// The most ranks that a sentence names.
const NAMED: usize = 4;

/// Returns the answers about a job as text, as `mindprof ranks` prints it. The first sentence is the
/// verdict.
pub fn ranks_text(answer: &JobAnswer, layout: RanksLayout) -> String {
    let layout = RanksLayout {
        width: layout.width.map(|width| width.max(LEAST_WIDTH)),
        ..layout
    };
    let mut text = String::new();
    push_wrapped(&mut text, &verdict(answer), layout.width);
    push_roster(&mut text, answer, layout);
    if answer.roster.files == 0 {
        return text;
    }
    push_findings(&mut text, answer, layout);
    push_slow_ranks(&mut text, answer, layout);
    push_slow_steps(&mut text, answer, layout);
    push_clocks(&mut text, answer, layout);
    push_collectives(&mut text, answer, layout);
    push_devices(&mut text, answer, layout);
    push_kernels(&mut text, answer, layout);
    push_memory(&mut text, answer, layout);
    push_differences(&mut text, answer, layout);
    push_advice(&mut text, answer, layout);
    text
}

/// Returns some ranks in words: `rank 3`, `ranks 3, 5 and 7`, `12 ranks (3, 5, 7, 8 …)`.
pub(crate) fn ranks_words(ranks: &[RankLabel]) -> String {
    if let [only] = ranks {
        return visible(&only.text()).into_owned();
    }
    let names = ranks.iter().take(NAMED).map(|label| match label.rank {
        Some(rank) => rank.to_string(),
        None => visible(&label.file).into_owned(),
    });
    let names: Vec<String> = names.collect();
    if ranks.len() > NAMED {
        return format!("{} ranks ({} …)", ranks.len(), names.join(", "));
    }
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("ranks {} and {last}", others.join(", "))
        }
        Some(_) | None => names.concat(),
    }
}

/// Returns a cause in words that follow "mostly".
pub(crate) const fn cause_words(cause: Cause) -> &'static str {
    match cause {
        Cause::Computing => "computing",
        Cause::Data => "loading data",
        Cause::Copies => "copies",
        Cause::Host => "CPU work or idle time",
    }
}

pub(crate) fn share_words(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Reports the faults of the set of ranks.
fn push_roster(text: &mut String, answer: &JobAnswer, layout: RanksLayout) {
    for note in roster_notes(answer) {
        push_wrapped(text, &format!("note: {note}"), layout.width);
    }
}

fn push_findings(text: &mut String, answer: &JobAnswer, layout: RanksLayout) {
    let findings = &answer.findings;
    if !findings.found.is_empty() {
        push_line(
            text,
            "\nFindings, with the part of the step that mending them is likely to save",
        );
    }
    for finding in findings.found.iter().take(layout.rows) {
        push_finding(text, finding, layout);
    }
    for (rules, missing) in unknown_rules(answer) {
        let line = format!("Cannot tell: {} ({missing})", rules.join(", "));
        text.push('\n');
        push_wrapped(text, &line, layout.width);
    }
}

fn push_finding(text: &mut String, finding: &JobFinding, layout: RanksLayout) {
    let price = if finding.share > 0.0 {
        let (share, range) = (share_words(finding.share), range_words(finding));
        if share == range {
            share
        } else {
            format!("{share} ({range})")
        }
    } else {
        "not priced".into()
    };
    let mut line = format!("- {}, {price}: {}", finding.rule, finding.summary);
    if !finding.ranks.is_empty() {
        line = format!("{line}: {}", ranks_words(&finding.ranks));
    }
    if let Some(group) = &finding.group {
        line = format!("{line}: ranks {}", visible(group));
    }
    if !finding.hosts.is_empty() {
        line = format!("{line}, machines {}", visible(&finding.hosts.join(", ")));
    }
    if let Some(cause) = finding.cause {
        line = format!("{line}, mostly {}", cause_words(cause));
    }
    push_wrapped(text, &line, layout.width);
    push_wrapped(text, &format!("  try: {}", finding.remedy), layout.width);
}

fn push_clocks(text: &mut String, answer: &JobAnswer, layout: RanksLayout) {
    for (index, note) in clock_notes(answer).iter().enumerate() {
        if index == 0 && answer.clocks.ranks.len() > 1 {
            text.push('\n');
        }
        push_wrapped(text, note, layout.width);
    }
}

fn push_memory(text: &mut String, answer: &JobAnswer, layout: RanksLayout) {
    let of_devices = answer.memory.iter().filter(|peak| peak.device != "cpu");
    let mut peaks: Vec<_> = of_devices.collect();
    peaks.sort_by_key(|peak| peak.allocated);
    let (Some(least), Some(most)) = (peaks.first(), peaks.last()) else {
        return;
    };
    let bytes = |bytes: u64| memory_text(i64::try_from(bytes).unwrap_or(i64::MAX));
    let line = format!(
        "Memory: at most {} on {}, {} on {} (allocated by tensors)",
        bytes(most.allocated),
        visible(&most.rank.text()),
        bytes(least.allocated),
        visible(&least.rank.text())
    );
    text.push('\n');
    push_wrapped(text, &line, layout.width);
}

fn push_differences(text: &mut String, answer: &JobAnswer, layout: RanksLayout) {
    let lines = difference_notes(answer, layout.rows);
    if !lines.is_empty() {
        push_line(text, "\nDifferences between ranks");
    }
    for line in lines {
        push_wrapped(text, &format!("- {line}"), layout.width);
    }
    let more = answer.differences.row_count.saturating_sub(layout.rows);
    if more > 0 {
        let line = format!(
            "- {} more; --json lists them",
            counted(more as u64, "operator or kernel")
        );
        push_wrapped(
            text,
            &line.replace("operator or kernels", "operators and kernels"),
            layout.width,
        );
    }
}

fn push_advice(text: &mut String, answer: &JobAnswer, layout: RanksLayout) {
    if answer.advice.is_empty() {
        return;
    }
    push_line(
        text,
        "\nFindings about single ranks (`mindprof advise`), median share of the step",
    );
    for advice in answer.advice.iter().take(layout.rows) {
        let ranks = counted(advice.ranks as u64, "rank");
        let most = visible(&advice.highest.0.text()).into_owned();
        let line = if advice.highest.1 > 0.0 {
            let (share, highest) = (share_words(advice.share), share_words(advice.highest.1));
            format!(
                "- {}, {share}: on {ranks}, most on {most} ({highest})",
                advice.rule
            )
        } else {
            format!("- {}, not priced: on {ranks}, such as {most}", advice.rule)
        };
        push_wrapped(text, &line, layout.width);
    }
}
