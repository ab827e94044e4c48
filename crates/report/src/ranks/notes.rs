//! Sentences about the ranks of a job that the text and the page have in common.

use mindprof_formats::counted;
use mindprof_model::Nanos;
use mindprof_ranks::{JobAnswer, JobFinding};

use super::{NAMED, ranks_words, share_words};
use crate::grid::cut;
use crate::steps::short_time;
use crate::visible::visible;

/// The length from which on names of operators are cut.
const LONGEST_NAME: usize = 60;

/// Returns the faults of the set of ranks.
pub(crate) fn roster_notes(answer: &JobAnswer) -> Vec<String> {
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
    if let [(first, limit), ..] = roster.limits.as_slice() {
        let labels: Vec<_> = roster
            .limits
            .iter()
            .map(|(label, _)| label.clone())
            .collect();
        let what = if limit.is_empty() {
            "all of them"
        } else {
            limit
        };
        notes.push(format!(
            "{} recorded other operators than most, and these are not compared: {} recorded {}",
            ranks_words(&labels),
            visible(&first.text()),
            visible(what)
        ));
    }
    if roster.named_by_file > 0 {
        let count = roster.named_by_file;
        notes.push(format!(
            "{count} ranks are known from the names of files only"
        ));
    }
    notes
}

/// Returns how clocks were aligned, and which collectives do not fit.
pub(crate) fn clock_notes(answer: &JobAnswer) -> Vec<String> {
    let mut notes = Vec::new();
    let clocks = &answer.clocks;
    if clocks.ranks.len() > 1 {
        let offsets = || clocks.ranks.iter().map(|clock| clock.offset_ns);
        let (least, most) = (offsets().min().unwrap_or(0), offsets().max().unwrap_or(0));
        let signed = |offset: i64| match offset {
            0 => "0".into(),
            offset => {
                let sign = if offset < 0 { "-" } else { "+" };
                format!("{sign}{}", short_time(Nanos(offset.unsigned_abs())))
            }
        };
        let of_machine = clocks
            .ranks
            .iter()
            .filter(|clock| clock.is_of_machine)
            .count();
        let line = if of_machine + 1 == clocks.ranks.len() {
            format!(
                "Clocks: {} on the clock of their machine, error {}",
                counted(clocks.ranks.len() as u64, "rank"),
                short_time(clocks.error)
            )
        } else {
            let kept = match of_machine {
                0 => String::new(),
                count => format!(
                    "; {} on the clock of the machine",
                    counted(count as u64, "rank")
                ),
            };
            format!(
                "Clocks: {} aligned on collectives, offsets {} to {}, error {}{kept}",
                counted((clocks.ranks.len() - of_machine) as u64, "rank"),
                signed(least),
                signed(most),
                short_time(clocks.error)
            )
        };
        notes.push(line);
    }
    if !clocks.doubtful.is_empty() {
        let line = format!(
            "Collectives of {} do not end with those of the others: another run, a clock that jumped, or too few of them",
            ranks_words(&clocks.doubtful)
        );
        notes.push(line);
    }
    let communication = &answer.communication;
    if communication.has_ends_apart && !communication.rows.is_empty() {
        notes.push(
            "Collectives end far apart on different ranks, so times of transfers may include waits for a processor"
                .into(),
        );
    }
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
        notes.push(line);
    }
    if communication.incomplete > 0 {
        let count = counted(communication.incomplete, "collective");
        notes.push(format!(
            "{count} left out: ranks of their groups have no trace or no common clock"
        ));
    }
    notes
}

/// Returns the rules that cannot tell, those with the same reason together, and the reasons.
pub(crate) fn unknown_rules(answer: &JobAnswer) -> Vec<(Vec<&str>, &str)> {
    let mut groups: Vec<(Vec<&str>, &str)> = Vec::new();
    for unknown in &answer.findings.unknown {
        match groups
            .iter_mut()
            .find(|(_, missing)| *missing == unknown.missing)
        {
            Some((rules, _)) => rules.push(unknown.rule),
            None => groups.push((vec![unknown.rule], unknown.missing)),
        }
    }
    groups
}

/// Returns the likely saving of a finding: `10 % to 19 %`, or `6 %` if both ends read the same.
pub(crate) fn range_words(finding: &JobFinding) -> String {
    let (low, high) = (share_words(finding.low), share_words(finding.high));
    if low == high {
        return low;
    }
    format!("{low} to {high}")
}

/// Returns what ranks do differently, at most so many of each kind.
pub(crate) fn difference_notes(answer: &JobAnswer, most: usize) -> Vec<String> {
    let differences = &answer.differences;
    let mut lines = Vec::new();
    for fact in differences.facts.iter().take(most) {
        let values = fact.values.iter().take(NAMED).map(|(value, count, _)| {
            format!("{} on {}", visible(value), counted(*count as u64, "rank"))
        });
        lines.push(format!(
            "{}: {}",
            fact.fact,
            values.collect::<Vec<_>>().join(", ")
        ));
    }
    for (rank, steps) in differences.steps.iter().take(most) {
        let steps = counted(*steps as u64, "step");
        lines.push(format!("{} recorded {steps}", visible(&rank.text())));
    }
    for row in differences.rows.iter().take(most) {
        let name = cut(&visible(&row.name), Some(LONGEST_NAME));
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
    lines
}

/// Returns words about several files as words about one.
pub(super) fn singular(what: &str) -> String {
    let what = what
        .replace("repeat ", "repeats ")
        .replace("do not", "does not");
    what.replace("are ", "is ").replace("their", "its")
}
