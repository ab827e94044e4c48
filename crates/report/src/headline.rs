//! The first sentence about a profile, which names the place or the cause to look at first. The first
//! screen of a run and the page of its trace begin with it.

use std::fmt::Write as _;

use mindprof_answers::{
    Advice, CodePath, CodePaths, CodePlace, Compiled, Culprit, Finding, Headline, Rule,
    SourceFiles, StepOperators, Subject, WideFloats,
};
use mindprof_formats::counted;
use mindprof_model::Nanos;

use crate::advice;
use crate::screen::is_passing_on;
use crate::steps::{is_share, percent, short_time};
use crate::visible::visible;

/// The share of the time, in percent, that is nearly all.
const NEARLY_ALL: u64 = 98;

/// The number of operators from which on they are many.
const MANY: u64 = 100;

/// Returns the first sentence, without its full stop.
pub(crate) fn headline_text(headline: &Headline, advice: &Advice, sources: &SourceFiles) -> String {
    let (run, total) = (&headline.run, headline.paths.total);
    match headline.subject(advice) {
        Subject::Compilation(compiled) => {
            let share = share_text(run.compile_time(), run.rest);
            let compiled = compiled_text(compiled);
            format!("{share} of the time is compilation: {compiled}")
        }
        Subject::Workers(worker) => {
            let share = percent(run.data_wait, total);
            format!(
                "{share} of the time the loop waits for its data loader workers, which spend most \
                 of theirs in {} ({}:{})",
                worker.function, worker.file, worker.line
            )
        }
        Subject::Threads(function, waited) => {
            let share = percent(waited, total);
            format!(
                "{share} of the time the main thread waits for other threads, which spend most of \
                 theirs in {} ({}:{})",
                function.function, function.file, function.line
            )
        }
        Subject::WideFloats(wide) => {
            let share = percent(wide.time, total);
            let places = wide_places(wide, sources);
            format!("{share} of the time is spent in float64 operators, {places}")
        }
        Subject::Function(culprit) => culprit_text(headline, &culprit),
        Subject::Finding(finding) => cause_text(finding, advice),
        Subject::Operator(operator) => format!(
            "{} is the operator with the most time: {} in {}",
            visible(&operator.called.name),
            short_time(operator.called.time),
            counted(operator.calls, "call")
        ),
        Subject::Nothing => format!(
            "recorded {} without operators or functions of yours",
            short_time(run.rest)
        ),
    }
}

/// Returns what is wrong, and what mending it saves of a step; or if that is no time, how much memory
/// is concerned.
fn cause_text(finding: &Finding, advice: &Advice) -> String {
    let cause = finding.rule.cause;
    if finding.share > 0.0 {
        let (saved, unit) = (advice::saved_text(finding, advice), advice::unit(advice));
        let about = advice::least_or_about(finding);
        return format!("{cause}: mending it saves {about} {saved} of {unit}");
    }
    match finding.bytes {
        Some(bytes) => format!("{cause}: {}", advice::bytes_text(bytes, advice)),
        None => cause.into(),
    }
}

/// Returns a finding in one sentence: what it saves, what is wrong and where, and what to try.
pub(crate) fn finding_text(finding: &Finding, sources: &SourceFiles) -> String {
    let place = finding.place.as_ref().map_or_else(String::new, |place| {
        format!(", in {}", visible(&named_place(place, sources)))
    });
    let saves = if finding.share > 0.0 {
        format!("to save about {}: ", advice::share_text(finding.share))
    } else {
        String::new()
    };
    let Rule { cause, .. } = finding.rule;
    format!("{saves}{cause}{place}; {}", finding.remedy)
}

/// Returns the sentence about the function to change first.
fn culprit_text(headline: &Headline, culprit: &Culprit) -> String {
    let paths = &headline.paths;
    let share = percent(culprit.time, paths.total);
    let path = &paths.paths[culprit.path];
    let whole = if headline.has_device {
        "the CPU and device time"
    } else {
        "the time"
    };
    let mut text = format!(
        "{share} of {whole} is spent in {}",
        place_text(path, culprit_line(path, culprit))
    );
    if let Some(through) = culprit.through.map(|through| &paths.paths[through]) {
        let inside = place_text(through, through.own_line);
        let _ = write!(text, ", mostly in its calls of {inside}");
    } else {
        let _ = write!(
            text,
            ", {}",
            work_text(paths, culprit, headline.step_operators)
        );
        if let Some(callers) = callers_text(paths, culprit) {
            let _ = write!(text, ", called by {callers}");
        }
    }
    if let Some(larger) = culprit.larger.map(|larger| &paths.paths[larger]) {
        let share = percent(larger.own, paths.total);
        let place = place_text(larger, larger.own_line);
        let _ = write!(text, "; {share} is spent in {place}");
        match &larger.mostly {
            Some(called) if called.is_wait() => text.push_str(", mostly waiting"),
            Some(called) => {
                let _ = write!(text, ", mostly in {}", visible(&called.name));
            }
            None => {}
        }
    }
    text
}

/// Returns the line that a sentence about a function names: the one with most of the time that the
/// sentence is about.
pub(crate) const fn culprit_line(path: &CodePath, culprit: &Culprit) -> u32 {
    if culprit.through.is_some() {
        path.line
    } else {
        path.own_line
    }
}

/// Returns what the own time of a function is spent on. `each` counts its operators in each step.
fn work_text(paths: &CodePaths, culprit: &Culprit, each: Option<StepOperators>) -> String {
    let all = || culprit.paths.iter().map(|&path| &paths.paths[path]);
    let is_operators = all().map(|path| path.operators.0).sum::<u64>() * 2 >= culprit.time.0;
    let calls = all().map(|path| path.operator_calls).sum();
    let many = many_text(calls, each);
    match (&paths.paths[culprit.path].mostly, many) {
        (Some(called), _) if called.is_wait() => {
            "mostly waiting: asleep, or for a lock, a file or a process".into()
        }
        (Some(called), Some(many)) if is_operators => {
            format!("mostly in {}: {many}", visible(&called.name))
        }
        (Some(called), _) => format!("mostly in {}", visible(&called.name)),
        (None, Some(many)) if is_operators => format!("in {many}"),
        (None, None) if is_operators => "spread over many operators".into(),
        (None, Some(many)) => format!("in its own Python code and {many}"),
        (None, None) => "mostly in its own Python code".into(),
    }
}

/// Returns the number of operators if a function calls strikingly many: in each step if there are
/// steps.
fn many_text(calls: u64, each: Option<StepOperators>) -> Option<String> {
    match each {
        None if calls >= MANY => Some(format!("{calls} operators")),
        Some(each) if each.median < MANY => None,
        Some(each) if each.least == each.most => {
            Some(format!("{} operators in each step", each.median))
        }
        Some(each) => Some(format!("{} operators in the median step", each.median)),
        None => None,
    }
}

/// Returns the functions that call the culprit, unless they only pass on.
fn callers_text(paths: &CodePaths, culprit: &Culprit) -> Option<String> {
    let mut callers: Vec<String> = Vec::new();
    // An estimated path without any time says nothing about who calls.
    let is_used = |path: &&usize| paths.paths[**path].total > Nanos::ZERO;
    for &path in culprit.paths.iter().filter(is_used) {
        let Some(index) = paths.caller(path) else {
            continue;
        };
        let caller = &paths.paths[index];
        let is_told = Some(index) == culprit.larger;
        if is_told || is_passing_on(caller, paths.total) {
            continue;
        }
        let line = paths.paths[path].called_at.unwrap_or(caller.line);
        let text = place_text(caller, line);
        if !callers.contains(&text) {
            callers.push(text);
        }
    }
    match callers.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        [one, other] => Some(format!("{one} and {other}")),
        [one, others @ ..] => Some(format!("{one} and {} others", others.len())),
    }
}

/// Returns where a program computes in double precision.
pub(crate) fn wide_places(wide: &WideFloats, sources: &SourceFiles) -> String {
    let first = wide.first.as_ref();
    let most = wide.most.as_ref().filter(|place| Some(*place) != first);
    let named =
        |what: &str, place: &CodePlace| format!("{what} in {}", named_place(place, sources));
    let places = [
        first.map(|place| named("first", place)),
        most.map(|place| named("most", place)),
    ];
    places.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns how often a function was compiled, and why.
pub(crate) fn compiled_text(compiled: &Compiled) -> String {
    let times = match compiled.times {
        1 => String::new(),
        times => format!(" {}", counted(times, "time")),
    };
    let reason = compiled.reason.as_deref();
    let reason = reason.map_or_else(String::new, |reason| format!(", because {reason}"));
    let Compiled {
        function,
        file,
        line,
        ..
    } = compiled;
    format!("{function} ({file}:{line}){times}{reason}")
}

/// Returns a share of a time that others measured, which may have begun earlier and ended later.
fn share_text(part: Nanos, whole: Nanos) -> String {
    if is_share(part, whole, NEARLY_ALL) {
        "nearly all".into()
    } else {
        percent(part, whole)
    }
}

fn place_text(path: &CodePath, line: u32) -> String {
    format!("{} ({}:{line})", path.function, path.file)
}

/// Returns a place with the name of its function.
pub(crate) fn named_place(place: &CodePlace, sources: &SourceFiles) -> String {
    format!(
        "{} ({}:{})",
        function_name(place, sources),
        place.file,
        place.line
    )
}

/// Returns the name of the function that a place is in, qualified if the source is known.
pub(crate) fn function_name<'a>(place: &'a CodePlace, sources: &'a SourceFiles) -> &'a str {
    let found = sources.function(&place.file, place.line);
    found.map_or(place.function.as_str(), |function| function.name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn striking_numbers_of_operators_are_those_of_steps() {
        let each = |least, median, most| {
            Some(StepOperators {
                least,
                median,
                most,
            })
        };
        assert_eq!(many_text(99, None), None);
        assert_eq!(many_text(36_326, None).unwrap(), "36326 operators");
        let same = many_text(36_326, each(740, 740, 740)).unwrap();
        assert_eq!(same, "740 operators in each step");
        let different = many_text(36_326, each(12, 740, 900)).unwrap();
        assert_eq!(different, "740 operators in the median step");
        assert_eq!(many_text(36_326, each(0, 0, 9_000)), None);
    }
}
