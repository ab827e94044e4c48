//! A profile explained in one page of Markdown, for people and for programs that read text.

use mindprof_answers::{Advice, Explanation, Finding};
use mindprof_formats::counted;
use mindprof_model::Nanos;

use crate::advice::{
    evidence_text, missing_data, nothing_found, overhead_text, price_text, share_text,
};
use crate::grid::{cut, push_line};
use crate::steps::{behind_text, is_share, percent, short_time, slow_text, split_text, tail_text};
use crate::verdict::incomplete_text;
use crate::visible::visible;

/// The largest numbers of functions and operators.
const FUNCTIONS: usize = 8;
const OPERATORS: usize = 8;

/// The largest number of characters of a name.
const LONGEST: usize = 160;

/// Rows below this share of the time, in percent, are left out.
const LEAST: u64 = 1;

/// Returns a profile explained in Markdown, as `mindprof explain` prints it. `title` names it.
pub fn explain_text(explanation: &Explanation, title: &str) -> String {
    let mut text = format!("# {}\n\n", code(title));
    push_summary(&mut text, explanation);
    push_findings(&mut text, explanation);
    push_functions(&mut text, explanation);
    push_operators(&mut text, explanation);
    push_limits(&mut text, explanation);
    text
}

fn push_summary(text: &mut String, explanation: &Explanation) {
    let Explanation {
        span,
        events,
        steps,
        advice,
        ..
    } = explanation;
    let events = counted(*events as u64, "event");
    push_line(
        text,
        &format!("- recorded: {} with {events}", short_time(*span)),
    );
    if steps.steps.is_empty() {
        push_line(text, "- steps: none");
    } else {
        let line = format!(
            "- steps: {}, p50 {}, {}",
            steps.steps.len(),
            short_time(steps.p50),
            tail_text(&steps.tail())
        );
        push_line(text, &line);
        if let Some(behind) = behind_text(steps) {
            push_line(text, &format!("- {behind}"));
        }
        let split = split_text(&steps.split, steps.has_python);
        push_line(text, &format!("- time of a step: {split}"));
    }
    for slow in steps.slow.iter().take(3) {
        let what = slow_text(slow, steps.has_python);
        let time = short_time(slow.step.duration);
        let line = format!("- slow step {} ({time}): {}", slow.step.number, code(&what));
        push_line(text, &line);
    }
    if advice.steps > 0 {
        let cost = overhead_text(advice);
        push_line(text, &format!("- replayed for the findings: {cost}"));
    }
    if let Some(incomplete) = incomplete_text(&advice.incomplete) {
        push_line(text, &format!("- {incomplete}"));
    }
}

fn push_findings(text: &mut String, explanation: &Explanation) {
    push_line(text, "\n## Findings\n");
    let advice = &explanation.advice;
    if advice.findings.is_empty() {
        push_line(text, &format!("{}.", nothing_found(advice)));
    }
    for (number, finding) in advice.findings.iter().enumerate() {
        push_finding(text, number + 1, finding, advice);
    }
}

fn push_finding(text: &mut String, number: usize, finding: &Finding, advice: &Advice) {
    let share = if finding.share > 0.0 {
        let unit = if advice.has_steps { "step" } else { "program" };
        format!("{} of the {unit}", share_text(finding.share))
    } else {
        "no time".into()
    };
    let head = format!(
        "{number}. **{}** ({share}): {}",
        finding.rule.id, finding.rule.cause
    );
    push_line(text, &head);
    if let Some(place) = &finding.place {
        let place = format!("{} ({}:{})", place.function, place.file, place.line);
        push_line(text, &format!("   - where: {}", code(&place)));
    }
    let evidence = evidence_text(finding, advice);
    if !evidence.is_empty() {
        push_line(text, &format!("   - evidence: {}", code(&evidence)));
    }
    if finding.share > 0.0 {
        push_line(
            text,
            &format!("   - price: {}", price_text(finding, advice)),
        );
    }
    push_line(text, &format!("   - try: {}", finding.remedy));
}

fn push_functions(text: &mut String, explanation: &Explanation) {
    let functions = &explanation.functions;
    let total = functions.total.time();
    let is_large = |time: Nanos| is_share(time, total, LEAST);
    let shown = functions.functions.iter();
    let shown = shown.filter(|one| is_large(one.own.time())).take(FUNCTIONS);
    let rows: Vec<Vec<String>> = shown
        .map(|one| {
            let line = one.hottest_line.or(one.line);
            let place = match line {
                Some(line) => format!("{} ({}:{line})", one.function, one.file),
                None => format!("{} ({})", one.function, one.file),
            };
            let mostly = one.mostly.as_ref();
            vec![
                percent(one.own.time(), total),
                percent(one.total.time(), total),
                code(&place),
                mostly.map_or_else(String::new, |called| code(&called.name)),
            ]
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    push_line(text, "\n## Your functions\n");
    push_table(text, &["own", "total", "function", "mostly"], &rows);
    if let Some(error) = functions.share_error() {
        let error = 100.0 * error;
        push_line(
            text,
            &format!("\nStacks were sampled: shares are within {error:.1} points."),
        );
    }
}

fn push_operators(text: &mut String, explanation: &Explanation) {
    let operators = explanation.operators.iter().take(OPERATORS);
    let total = explanation.functions.total.time();
    let rows: Vec<Vec<String>> = operators
        .filter(|one| is_share(one.called.time, total, LEAST))
        .map(|one| {
            let place = one.place.as_ref();
            vec![
                percent(one.called.time, total),
                one.calls.to_string(),
                code(&one.called.name),
                place.map_or_else(String::new, |place| {
                    code(&format!(
                        "{} ({}:{})",
                        place.function, place.file, place.line
                    ))
                }),
                one.dtype.unwrap_or("").into(),
            ]
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    push_line(text, "\n## Operators\n");
    push_table(
        text,
        &["self", "calls", "operator", "mostly from", "dtype"],
        &rows,
    );
}

fn push_limits(text: &mut String, explanation: &Explanation) {
    push_line(text, "\n## What this rests on\n");
    let lost = match explanation.lost {
        0 => "- no event was lost".into(),
        lost => format!("- {} lost", counted(lost, "event")),
    };
    push_line(text, &lost);
    if let Some((kept, of)) = explanation.cut {
        push_line(
            text,
            &format!("- a part of a recording: {kept} of {of} events"),
        );
    }
    let advice = &explanation.advice;
    push_line(
        text,
        &format!("- rules without a finding: {}", advice.clean.len()),
    );
    for (missing, rules) in missing_data(advice) {
        push_line(text, &format!("- cannot tell {rules}: {missing}"));
    }
}

fn push_table(text: &mut String, header: &[&str], rows: &[Vec<String>]) {
    push_line(text, &format!("| {} |", header.join(" | ")));
    push_line(text, &format!("|{}", "---|".repeat(header.len())));
    for row in rows {
        push_line(text, &format!("| {} |", row.join(" | ")));
    }
}

/// Returns a name as Markdown's code, in which nothing is markup. A long one is cut to a line.
fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let shown = cut(&visible(text), Some(LONGEST));
    let shown = shown.replace('`', "'").replace('|', "\\|");
    format!("`{shown}`")
}

#[cfg(test)]
mod tests {
    use mindprof_analyze::Analysis;
    use mindprof_answers::{OwnCode, Work};
    use mindprof_model::{Category, Timeline};

    use super::*;

    #[test]
    fn long_names_are_cut_to_a_line() {
        let name = "n".repeat(1_000_000);
        assert_eq!(code(&name).len(), LONGEST + 2);
        assert_eq!(code("a|b"), "`a\\|b`");
    }

    #[test]
    fn a_profile_fits_into_one_page() {
        let profile = Timeline::draw(|time| {
            for number in 0..3 {
                time.annotation(&format!("ProfilerStep#{number}"), |time| {
                    let call = Category::PythonFunction;
                    time.event(call, "train.py(7): step|x", |time| {
                        time.op("aten::mm", 300_000);
                        time.op("aten::relu", 300_000);
                        time.op("aten::sum", 200_000);
                    });
                });
            }
        });
        let analysis = Analysis::build(profile);
        let work = Work::of(&analysis);
        let explanation = Explanation::build(&analysis, &work, &OwnCode::default());
        let text = explain_text(&explanation, "a_b.json");
        // The rules that lack something are listed by what it is.
        let (page, rest) = text.split_once("- rules without a finding").unwrap();
        assert!(rest.contains("- cannot tell growing-memory"), "{rest}");
        assert_eq!(
            page,
            "\
# `a_b.json`

- recorded: 2.40 ms with 15 events
- steps: 3, p50 800 us, longest 800 us
- time of a step: operators 100 %
- replayed for the findings: 3 steps of 800 us on average

## Findings

No rule found a cause of slowness.

## Operators

| self | calls | operator | mostly from | dtype |
|---|---|---|---|---|
| 38 % | 3 | `aten::mm` |  |  |
| 38 % | 3 | `aten::relu` |  |  |
| 25 % | 3 | `aten::sum` |  |  |

## What this rests on

- no event was lost
"
        );
    }
}
