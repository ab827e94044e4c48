//! The report of a run in words: facts about the recording, and hints on what to change.

use mindprof_analyze::microseconds;
use mindprof_answers::{ImportTime, LateData, RunReport, WaitFinding};
use mindprof_formats::counted;
use mindprof_model::Nanos;

use crate::number::time_text;

/// The number of optimizer steps that a hint proposes to skip and to record.
const WAIT: usize = 2;
const ACTIVE: usize = 5;

/// The smallest share of the time that is worth mentioning.
const MUCH: f64 = 0.1;

/// The largest number of imported modules to name.
const NAMED_MODULES: usize = 3;

/// The options of `mindprof run` that hints depend on.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunOptions {
    /// Whether only some optimizer steps are recorded (`--active`).
    pub has_schedule: bool,
    /// Whether Python calls are recorded.
    pub has_stacks: bool,
}

/// Returns the facts about a run, a line each.
pub fn run_facts(report: &RunReport) -> Vec<String> {
    let mut facts = vec![format!("recorded {}", time(report.recorded))];
    if !report.imports.is_empty() {
        let imports = imports_text(&report.imports);
        facts.push(format!("imports: {imports}, not in the table"));
    }
    if report.other_imports > Nanos::ZERO {
        let others = time(report.other_imports);
        facts.push(format!("imports on other threads: {others} of these"));
    }
    push_steps(&mut facts, report);
    // Waits are events too, and some of them may be lost.
    if !report.is_over_budget {
        push_waits(&mut facts, report);
    }
    if report.is_over_budget {
        facts.push(
            "the budget was full and later events are in no row: times and counts are too low"
                .into(),
        );
    }
    if let Some(outside) = report.outside {
        let outside = time(outside);
        facts.push(format!(
            "{outside} passed outside all rows, in Python code or waiting"
        ));
    }
    if report.workers > 0 {
        let workers = counted(report.workers as u64, "worker");
        let processes = report.workers + 1;
        facts.push(format!(
            "the table sums {processes} processes: the program and {workers}"
        ));
    }
    facts
}

/// Returns hints on what to change, the most important first.
pub fn run_hints(report: &RunReport, options: RunOptions) -> Vec<String> {
    let mut hints = Vec::new();
    if report.is_over_budget {
        let less = if options.has_schedule {
            ""
        } else {
            ", or record only N optimizer steps with --active N"
        };
        hints.push(format!(
            "the budget was full: raise it with --budget SIZE{less}"
        ));
    }
    if report.outside.is_some() {
        let place = if options.has_stacks {
            "the flame graph shows where"
        } else {
            "record Python calls, without --no-stacks, to see where"
        };
        hints.push(format!(
            "most of the time passed in Python code or waiting: {place}"
        ));
    }
    let findings = report.wait_findings.iter();
    hints.extend(findings.map(|finding| wait_hint(finding, report.waits.has_workers)));
    let imported = report.recorded.saturating_sub(report.rest);
    let is_much = imported.0 as f64 > MUCH * report.recorded.0 as f64;
    let has_steps = report.steps.count() > 0;
    if options.has_schedule && !has_steps {
        hints.push("no optimizer step was recorded: record the whole run without --active".into());
    } else if options.has_schedule && is_much {
        hints.push(
            "the first step begins with the program: skip it and the imports with --wait 1".into(),
        );
    } else if is_much && report.steps.count() >= WAIT + ACTIVE {
        hints.push(format!(
            "record only {ACTIVE} optimizer steps, without the startup, with --wait {WAIT} --active \
             {ACTIVE}"
        ));
    }
    hints
}

/// Returns the total time of imports, and in parentheses the modules that took longest:
/// `2.769s (torch 1.440s)`.
pub fn imports_text(imports: &[ImportTime]) -> String {
    imports_in(imports, time)
}

/// As [`imports_text`], with times in another form.
pub(crate) fn imports_in(imports: &[ImportTime], time: impl Fn(Nanos) -> String) -> String {
    let total = Nanos(imports.iter().map(|import| import.time.0).sum());
    let named: Vec<String> = imports
        .iter()
        .take(NAMED_MODULES)
        .filter(|import| import.time.0 as f64 >= MUCH * total.0 as f64)
        .map(|import| format!("{} {}", import.module, time(import.time)))
        .collect();
    let total = time(total);
    if named.is_empty() {
        return total;
    }
    format!("{total} ({})", named.join(", "))
}

fn push_steps(facts: &mut Vec<String>, report: &RunReport) {
    let steps = &report.steps;
    let mut text = counted(steps.count() as u64, "optimizer step");
    if let Some(first) = steps.until_first {
        let first = time(first);
        facts.push(format!(
            "until the end of the first optimizer step: {first}, including imports and startup"
        ));
        text += "; those after the first";
    }
    if !steps.times.is_empty() {
        let middle = time(median(&steps.times));
        let spread = match (steps.times.iter().min(), steps.times.iter().max()) {
            (Some(least), Some(most)) if steps.times.len() > 1 => {
                format!(" (median; {} to {})", time(*least), time(*most))
            }
            _ => String::new(),
        };
        facts.push(format!("{text}: {middle}{spread}"));
    }
    if let Some(after) = steps.after_last {
        facts.push(format!("after the last optimizer step: {}", time(after)));
    }
    for (key, total) in &steps.beside {
        facts.push(format!("{key}: {}", time(*total)));
    }
}

fn push_waits(facts: &mut Vec<String>, report: &RunReport) {
    let (waits, rest) = (&report.waits, report.rest);
    if rest == Nanos::ZERO {
        return;
    }
    if waits.ending() > Nanos::ZERO {
        let ending = time(waits.ending());
        facts.push(format!("stopping data loader workers: {ending}"));
    }
    let times = waits.times();
    // Imports for a first batch are waited for too, and are no part of the rest.
    let total = Nanos(times.iter().map(|time| time.0).sum::<u64>()).min(rest);
    let Some(longest) = times.iter().max().filter(|_| total > Nanos::ZERO) else {
        return;
    };
    let share = 100.0 * total.0 as f64 / rest.0 as f64;
    let batches = if times.len() > 1 {
        let middle = time(median(&times));
        format!("; {middle} per batch (median), {} at most", time(*longest))
    } else {
        String::new()
    };
    let total = time(total);
    facts.push(format!(
        "waited {total} for data: {share:.0}% of the time without imports{batches}"
    ));
}

fn wait_hint(finding: &WaitFinding, has_workers: bool) -> String {
    let more = if has_workers {
        "use more workers"
    } else {
        "load it in workers"
    };
    let cure = format!("{more} (DataLoader num_workers), or do less per item");
    match finding {
        WaitFinding::Late(data) => format!("the data is late{}: {cure}", mostly(data)),
        WaitFinding::LateInSteps {
            data,
            per_step,
            step,
        } => {
            let (wait, step) = (time(*per_step), time(*step));
            let few = mostly(data);
            format!("the data is late, by {wait} of the {step} of an average step{few}: {cure}")
        }
        WaitFinding::LateOutsideSteps(data) => {
            let wait = time(data.time);
            format!(
                "{wait} of the wait for data lies outside the optimizer steps, as for a first batch \
                 or in an evaluation: {cure}"
            )
        }
        WaitFinding::Workers(wait) => {
            let wait = time(*wait);
            format!(
                "{wait} went to starting and stopping data loader workers; if every epoch pays it, \
                 keep them with DataLoader persistent_workers=True"
            )
        }
    }
}

fn mostly(data: &LateData) -> String {
    match data.mostly {
        Some((few, all)) => format!(", mostly for {few} of {all} batches"),
        None => String::new(),
    }
}

fn median(times: &[Nanos]) -> Nanos {
    let mut times = times.to_vec();
    times.sort_unstable();
    let middle = times.len() / 2;
    if times.len() % 2 == 1 {
        times[middle]
    } else {
        Nanos(u64::midpoint(times[middle - 1].0, times[middle].0))
    }
}

fn time(time: Nanos) -> String {
    time_text(microseconds(time), None)
}

#[cfg(test)]
mod tests {
    use mindprof_answers::{DataWaits, ImportTime, RunSteps, Span};

    use super::*;

    fn span(begin: u64, end: u64) -> Span {
        Span {
            begin: Nanos(begin),
            end: Nanos(end),
        }
    }

    fn report() -> RunReport {
        RunReport {
            recorded: Nanos(500_000_000),
            rest: Nanos(100_000_000),
            imports: vec![
                ImportTime {
                    module: "torch".into(),
                    time: Nanos(390_000_000),
                },
                ImportTime {
                    module: "json".into(),
                    time: Nanos(10_000_000),
                },
            ],
            other_imports: Nanos::ZERO,
            steps: RunSteps {
                until_first: Some(Nanos(420_000_000)),
                times: [3, 1, 2].map(|time| Nanos(time * 1_000_000)).to_vec(),
                after_last: Some(Nanos(5_000)),
                beside: Vec::new(),
            },
            is_over_budget: false,
            waits: DataWaits::new(
                &[span(0, 60_000_000), span(70_000_000, 70_010_000)],
                &[],
                &[],
                false,
            ),
            wait_findings: Vec::new(),
            outside: None,
            workers: 2,
        }
    }

    #[test]
    fn facts_are_lines() {
        assert_eq!(
            run_facts(&report()),
            [
                "recorded 500.000ms",
                "imports: 400.000ms (torch 390.000ms), not in the table",
                "until the end of the first optimizer step: 420.000ms, including imports and startup",
                "4 optimizer steps; those after the first: 2.000ms (median; 1.000ms to 3.000ms)",
                "after the last optimizer step: 5.000us",
                "waited 60.010ms for data: 60% of the time without imports; 30.005ms per batch \
                 (median), 60.000ms at most",
                "the table sums 3 processes: the program and 2 workers",
            ]
        );
    }

    #[test]
    fn a_full_budget_is_told_in_place_of_waits() {
        let mut report = report();
        report.is_over_budget = true;
        let facts = run_facts(&report).join("\n");
        assert!(facts.contains("the budget was full") && !facts.contains("waited"));
        let options = RunOptions::default();
        assert!(run_hints(&report, options)[0].ends_with("with --active N"));
    }

    #[test]
    fn hints_name_the_option_to_change() {
        let mut report = report();
        report.wait_findings = vec![WaitFinding::LateInSteps {
            data: LateData {
                time: Nanos(60_000_000),
                mostly: Some((1, 40)),
            },
            per_step: Nanos(1_500_000),
            step: Nanos(1_600_000),
        }];
        let options = RunOptions {
            has_schedule: true,
            has_stacks: true,
        };
        assert_eq!(
            run_hints(&report, options),
            [
                "the data is late, by 1.500ms of the 1.600ms of an average step, mostly for 1 of 40 \
                 batches: load it in workers (DataLoader num_workers), or do less per item",
                "the first step begins with the program: skip it and the imports with --wait 1",
            ]
        );
    }

    #[test]
    fn a_loop_waits_no_longer_than_there_is_time() {
        let mut report = report();
        report.rest = Nanos(10_000_000);
        let facts = run_facts(&report);
        assert!(
            facts
                .iter()
                .any(|fact| fact.starts_with("waited 10.000ms for data: 100% of"))
        );
    }
}
