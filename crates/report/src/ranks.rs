//! The answers about a distributed job as text.

mod tables;
#[cfg(test)]
mod tests;
mod verdict;

use mindprof_formats::counted;
use mindprof_model::Nanos;
use mindprof_ranks::{Cause, JobAnswer, JobFinding, RankLabel};

use self::tables::{
    push_collectives, push_devices, push_kernels, push_slow_ranks, push_slow_steps,
};
use self::verdict::verdict;
use crate::grid::{push_line, push_wrapped};
use crate::number::memory_text;
use crate::steps::short_time;
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
fn ranks_words(ranks: &[RankLabel]) -> String {
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
const fn cause_words(cause: Cause) -> &'static str {
    match cause {
        Cause::Computing => "computing",
        Cause::Data => "loading data",
        Cause::Copies => "copies",
        Cause::Host => "CPU work",
    }
}

fn share_words(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// Reports the faults of the set of ranks.
fn push_roster(text: &mut String, answer: &JobAnswer, layout: RanksLayout) {
    let roster = &answer.roster;
    let mut notes = Vec::new();
    if roster.missing_count > 0 {
        let (count, size) = (roster.missing_count, roster.world_size.unwrap_or(0));
        notes.push(format!(
            "{count} of {size} ranks are missing: {}",
            roster.missing
        ));
    }
    let lists = [
        (&roster.repeated, "repeat a rank and are left out"),
        (
            &roster.foreign,
            "are of another job or run and are left out",
        ),
        (&roster.unnumbered, "do not tell their rank"),
    ];
    for (files, what) in lists {
        if !files.is_empty() {
            let names = files.iter().take(NAMED).map(|label| visible(&label.file));
            let names = names.collect::<Vec<_>>().join(", ");
            let more = if files.len() > NAMED { " …" } else { "" };
            let count = counted(files.len() as u64, "file");
            let what = if files.len() == 1 {
                singular(what)
            } else {
                what.into()
            };
            notes.push(format!("{count} {what}: {names}{more}"));
        }
    }
    if !roster.incomplete.is_empty() {
        let ranks = ranks_words(&roster.incomplete);
        notes.push(format!(
            "incomplete recordings: {ranks}. Missing work looks like fast work"
        ));
    }
    if roster.named_by_file > 0 {
        let count = roster.named_by_file;
        notes.push(format!(
            "{count} ranks are known from the names of files only"
        ));
    }
    for note in notes {
        push_wrapped(text, &format!("note: {note}"), layout.width);
    }
}

/// Returns words about several files as words about one.
fn singular(what: &str) -> String {
    let what = what
        .replace("repeat ", "repeats ")
        .replace("do not", "does not");
    what.replace("are ", "is ").replace("their", "its")
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
    if let Some(unknown) = findings.unknown.first() {
        let rules: Vec<&str> = findings
            .unknown
            .iter()
            .map(|unknown| unknown.rule)
            .collect();
        let line = format!("Cannot tell: {} ({})", rules.join(", "), unknown.missing);
        text.push('\n');
        push_wrapped(text, &line, layout.width);
    }
}

fn push_finding(text: &mut String, finding: &JobFinding, layout: RanksLayout) {
    let price = if finding.share > 0.0 {
        format!(
            "{} ({} to {})",
            share_words(finding.share),
            share_words(finding.low),
            share_words(finding.high)
        )
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
    let clocks = &answer.clocks;
    if clocks.ranks.len() > 1 {
        let offsets = || clocks.ranks.iter().map(|clock| clock.offset_ns);
        let (least, most) = (offsets().min().unwrap_or(0), offsets().max().unwrap_or(0));
        let signed = |offset: i64| {
            let sign = if offset < 0 { "-" } else { "+" };
            format!("{sign}{}", short_time(Nanos(offset.unsigned_abs())))
        };
        let line = format!(
            "Clocks: {} aligned on collectives, offsets {} to {}, error {}",
            counted(clocks.ranks.len() as u64, "rank"),
            signed(least),
            signed(most),
            short_time(clocks.error)
        );
        text.push('\n');
        push_wrapped(text, &line, layout.width);
    }
    if !clocks.doubtful.is_empty() {
        let line = format!(
            "Collectives of {} do not end with those of the others: another run, or a clock that jumped?",
            ranks_words(&clocks.doubtful)
        );
        push_wrapped(text, &line, layout.width);
    }
    let communication = &answer.communication;
    if communication.unmatched > 0 {
        let mut line = format!(
            "{} could not be matched between ranks",
            counted(communication.unmatched, "collective")
        );
        if communication.without_group > 0 {
            line = format!(
                "{line}; {} name no process group of known ranks",
                communication.without_group
            );
        }
        push_wrapped(text, &line, layout.width);
    }
    if communication.incomplete > 0 {
        let count = counted(communication.incomplete, "collective");
        let line =
            format!("{count} left out: ranks of their groups have no trace or no common clock");
        push_wrapped(text, &line, layout.width);
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
    let differences = &answer.differences;
    let mut lines = Vec::new();
    for fact in differences.facts.iter().take(layout.rows) {
        let values = fact.values.iter().take(NAMED).map(|(value, count, _)| {
            format!("{} on {}", visible(value), counted(*count as u64, "rank"))
        });
        lines.push(format!(
            "{}: {}",
            fact.fact,
            values.collect::<Vec<_>>().join(", ")
        ));
    }
    for (rank, steps) in differences.steps.iter().take(layout.rows) {
        let steps = counted(*steps as u64, "step");
        lines.push(format!("{} recorded {steps}", visible(&rank.text())));
    }
    for row in differences.rows.iter().take(layout.rows) {
        let name: String = visible(&row.name).chars().take(40).collect();
        let line = match row.counts.first() {
            Some((rank, count)) => {
                let others = counted(row.count_ranks.saturating_sub(1) as u64, "other rank");
                let usual = counted(row.usual_count, "time");
                format!(
                    "{name}: usually {usual}, {count} on {}, {others}",
                    visible(&rank.text())
                )
            }
            None => format!(
                "{name}: other shapes on {}",
                counted(row.shape_ranks as u64, "rank")
            ),
        };
        lines.push(line.replace(", 0 other ranks", ""));
    }
    if !lines.is_empty() {
        push_line(text, "\nDifferences between ranks");
    }
    for line in lines {
        push_wrapped(text, &format!("- {line}"), layout.width);
    }
    let more = differences.row_count.saturating_sub(layout.rows);
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
