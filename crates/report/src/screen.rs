//! The first screen of `mindprof run` in words: at most 25 lines of 80 columns.

use mindprof_answers::{CodePath, CodePaths, CodePlace, Compiled, Screen};
use mindprof_formats::counted;
use mindprof_model::{Nanos, Place};

use crate::functions::called_text;
use crate::grid::{Align, cut, grid, push_wrapped};
use crate::number::memory_text;
use crate::run::imports_text;
use crate::steps::{percent, short_time, slow_text, split_text};
use crate::visible::visible;

/// The largest number of lines, and their width.
const LINES: usize = 25;
const WIDTH: usize = 80;

/// The largest numbers of rows of functions and of operators.
const FUNCTIONS: usize = 8;
const OPERATORS: usize = 4;

/// The largest number of facts.
const FACTS: usize = 5;

/// The least share of the time, in percent, that a function, an operator or a fact needs to be
/// mentioned, and the share from which on a fact is the verdict.
const LEAST: u64 = 2;
const FACT: u64 = 5;
const VERDICT: u64 = 30;

/// A function that takes more than this share of the time in total, and less than the other by
/// itself, only passes on: it tells nothing.
const PASSED_ON: u64 = 95;
const PASSING: u64 = 5;

/// What the launcher adds at the end of the screen.
#[derive(Clone, Debug, Default)]
pub struct ScreenEnd {
    /// What was written where.
    pub wrote: Vec<String>,
    /// The trace, quoted for a shell, if it was written.
    pub trace: Option<String>,
    /// Whether only some optimizer steps were recorded.
    pub has_schedule: bool,
    /// Whether Python stacks were recorded.
    pub has_stacks: bool,
}

/// Returns the first screen.
pub fn screen_text(screen: &Screen, end: &ScreenEnd) -> String {
    let mut top = String::new();
    push_wrapped(&mut top, &verdict(screen), Some(WIDTH));
    if let Some(line) = code_line(screen) {
        top.push_str(&cut(&line, Some(WIDTH)));
        top.push('\n');
    }
    if let Some(steps) = steps(screen) {
        top.push('\n');
        push_wrapped(&mut top, &steps, Some(WIDTH));
    }
    let mut bottom = String::new();
    let facts = facts(screen);
    for fact in facts.iter().take(FACTS) {
        push_wrapped(&mut bottom, fact, Some(WIDTH));
    }
    for line in &end.wrote {
        push_wrapped(&mut bottom, line, Some(WIDTH));
    }
    push_wrapped(&mut bottom, &next(screen, end), None);
    let operators = operator_rows(screen);
    let taken = lines(&top) + lines(&bottom) + 2;
    let operators_take = if operators.is_empty() { 0 } else { operators.len() + 3 };
    let left = LINES.saturating_sub(taken + operators_take + 2);
    let functions = function_rows(&screen.paths, left.clamp(2, FUNCTIONS));
    let mut text = top;
    if !functions.is_empty() {
        text.push('\n');
        text.push_str(&grid(&FUNCTION_COLUMNS, &functions));
    }
    if !operators.is_empty() {
        text.push('\n');
        text.push_str(&grid(&OPERATOR_COLUMNS, &operators));
    }
    text.push('\n');
    text.push_str(&bottom);
    text
}

const FUNCTION_COLUMNS: [(&str, Align); 4] = [
    ("Total", Align::Right),
    ("Own", Align::Right),
    ("Your code", Align::Left),
    ("Mostly", Align::Left),
];

const OPERATOR_COLUMNS: [(&str, Align); 5] = [
    ("Self", Align::Right),
    ("Calls", Align::Right),
    ("Operator", Align::Left),
    ("Mostly from", Align::Left),
    ("Dtype", Align::Left),
];

fn lines(text: &str) -> usize {
    text.lines().count()
}

/// Returns the one sentence that tells what takes most of the time, and where.
fn verdict(screen: &Screen) -> String {
    let rest = screen.report.rest;
    if let Some(compiled) = screen.facts.compiled.first()
        && is_share(screen.compile_time(), rest, VERDICT)
    {
        let share = percent(screen.compile_time(), rest);
        return format!("{share} of the time is compilation: {}", compiled_text(compiled));
    }
    if let Some(worker) = &screen.elsewhere {
        let share = percent(screen.data_wait(), rest);
        let theirs = percent(worker.own, worker.of);
        return format!(
            "{share} of the time the loop waits for its data loader workers, which spend {theirs} \
             of their time in {} ({}:{})",
            worker.function, worker.file, worker.line
        );
    }
    let Some(index) = screen.paths.hottest() else {
        return match screen.operators.first() {
            Some(operator) => format!(
                "{} is the operator with the most time: {} in {}",
                called_text(&operator.called.name),
                short_time(operator.called.time),
                counted(operator.calls, "call")
            ),
            None => format!("recorded {} without operators or functions of yours", short_time(rest)),
        };
    };
    let path = &screen.paths.paths[index];
    let share = percent(path.own, screen.paths.total);
    let mut text = format!("{share} of the time is spent in {}", place_text(path));
    text += &match &path.mostly {
        Some(called) => format!(", mostly in {}", callee_text(&called.name)),
        None => ", mostly in its own Python code".into(),
    };
    let caller = screen.paths.caller(index).map(|caller| &screen.paths.paths[caller]);
    if let Some(caller) = caller.filter(|caller| !is_passing_on(caller, screen.paths.total)) {
        text += &format!(", called by {}", place_text(caller));
    }
    text
}

/// Returns the source of the line that the verdict names.
fn code_line(screen: &Screen) -> Option<String> {
    let (file, line) = match &screen.elsewhere {
        Some(worker) => (&worker.file, worker.line),
        None => {
            let path = &screen.paths.paths[screen.paths.hottest()?];
            (&path.file, path.line)
        }
    };
    let text = screen.facts.sources.line(file, line)?;
    Some(format!("  {line} | {}", visible(text)))
}

fn steps(screen: &Screen) -> Option<String> {
    let times = &screen.steps;
    if times.steps.is_empty() {
        return None;
    }
    let mut text = format!(
        "{} of {} (p90 {}, p99 {}): {}",
        counted(times.steps.len() as u64, "step"),
        short_time(times.p50),
        short_time(times.p90),
        short_time(times.p99),
        split_text(&times.split, times.has_python)
    );
    if let Some(slow) = times.slow.first() {
        let slow = slow_text(slow, times.has_python);
        let count = counted(times.slow_count as u64, "slow step");
        text += &format!("; {count}, the slowest: {slow}");
    }
    Some(text)
}

/// Returns facts of their own, the most important first.
fn facts(screen: &Screen) -> Vec<String> {
    let (report, rest) = (&screen.report, screen.report.rest);
    let mut facts = Vec::new();
    if screen.lost > 0 {
        facts.push(format!(
            "{} events were lost because the budget was full: times are too low",
            screen.lost
        ));
    }
    let compiling = screen.compile_time();
    if let Some(compiled) = screen.facts.compiled.first()
        && (is_share(compiling, rest, LEAST) || compiled.times > 1)
        && !is_share(compiling, rest, VERDICT)
    {
        facts.push(compilations_text(screen, compiled));
    } else if is_share(compiling, rest, VERDICT) && screen.facts.compiled.len() > 1 {
        facts.push(compilations_text(screen, &screen.facts.compiled[0]));
    }
    if let Some(growth) = &screen.growth {
        let bytes = memory_text(growth.bytes_per_step as i64);
        let place = growth.place.as_ref().map_or_else(String::new, |place| {
            format!(", allocated in {}", named_place(screen, place))
        });
        facts.push(format!(
            "memory grows by {bytes} in each of {}{place}",
            counted(growth.steps as u64, "step")
        ));
    }
    if let Some(wide) = &screen.wide {
        let mut text = format!(
            "float64 beside float32: {} of the time of operators on floats",
            percent(wide.time, wide.of)
        );
        if let Some(place) = &wide.first {
            text += &format!(", first in {}", named_place(screen, place));
        }
        if let Some(place) = wide.most.as_ref().filter(|place| Some(*place) != wide.first.as_ref()) {
            text += &format!(", most in {}", named_place(screen, place));
        }
        facts.push(text);
    }
    let waited = screen.data_wait();
    if screen.elsewhere.is_none() && is_share(waited, rest, FACT) && !report.is_over_budget {
        facts.push(format!(
            "waited {} for data: {} of the time",
            short_time(waited),
            percent(waited, rest)
        ));
    }
    let (collections, collecting) = screen.facts.collections;
    if is_share(collecting, rest, LEAST) {
        facts.push(format!(
            "garbage collection: {}, {} of the time",
            counted(collections, "run"),
            percent(collecting, rest)
        ));
    }
    if !screen.facts.children.is_empty() {
        facts.push(format!("not recorded: {}", screen.facts.children.join(", ")));
    }
    if let Some(samples) = screen.samples.filter(|&samples| samples > 0) {
        // Two standard errors of a share of one half, the least certain one.
        let error = 100.0 / (samples as f64).sqrt();
        facts.push(format!("Python code was sampled {samples} times: shares are within {error:.1} points"));
    }
    if is_share(report.import_time(), report.recorded, FACT) {
        let imports = imports_text(&report.imports);
        facts.push(format!("imports took {imports}, which no share here includes"));
    }
    facts
}

fn compilations_text(screen: &Screen, compiled: &Compiled) -> String {
    let times: u64 = screen.facts.compiled.iter().map(|one| one.times).sum();
    let time = short_time(screen.compile_time());
    let all = counted(times, "time");
    if screen.facts.compiled.len() == 1 && times == 1 {
        return format!("compiled once, {time}: {} ({}:{})", compiled.function, compiled.file, compiled.line);
    }
    format!("compiled {all}, {time}: {}", compiled_text(compiled))
}

fn compiled_text(compiled: &Compiled) -> String {
    let times = match compiled.times {
        1 => String::new(),
        times => format!(" {}", counted(times, "time")),
    };
    let reason = compiled.reason.as_deref();
    let reason = reason.map_or_else(String::new, |reason| format!(", because {reason}"));
    let Compiled { function, file, line, .. } = compiled;
    format!("{function} ({file}:{line}){times}{reason}")
}

/// Returns the command that fits the run best.
fn next(screen: &Screen, end: &ScreenEnd) -> String {
    let Some(trace) = &end.trace else {
        return "next: free space for the trace, and run again".into();
    };
    if screen.lost > 0 && !end.has_schedule {
        return "next: mindprof run --wait 2 --active 5 ... records only five steps".into();
    }
    if screen.growth.is_some() {
        return format!("next: mindprof memory {trace}");
    }
    if screen.steps.slow_count > 0 && is_slow_much(screen) {
        return format!("next: mindprof steps {trace}");
    }
    if end.has_stacks && !screen.paths.paths.is_empty() {
        return format!("next: mindprof lines {trace}");
    }
    format!("next: mindprof table {trace}")
}

/// Returns whether slow steps cost a tenth of the time of all steps or more.
fn is_slow_much(screen: &Screen) -> bool {
    let steps = &screen.steps;
    let slow = steps.steps.iter().filter(|time| time.is_slow);
    let excess: u64 = slow.map(|time| time.step.duration.0.saturating_sub(steps.p50.0)).sum();
    excess * 10 >= steps.split.total().0
}

fn is_share(part: Nanos, whole: Nanos, least: u64) -> bool {
    part > Nanos::ZERO && part.0 * 100 >= whole.0 * least
}

fn is_passing_on(path: &CodePath, total: Nanos) -> bool {
    is_share(path.total, total, PASSED_ON) && !is_share(path.own, total, PASSING)
}

/// Returns the rows of at most `limit` functions. A function is never shown without its callers,
/// except for those that only pass on.
fn function_rows(paths: &CodePaths, limit: usize) -> Vec<Vec<String>> {
    let total = paths.total;
    let is_wanted = |path: &&CodePath| !is_passing_on(path, total);
    let mut totals: Vec<Nanos> = (paths.paths.iter())
        .filter(is_wanted)
        .map(|path| path.total)
        .filter(|&time| is_share(time, total, LEAST))
        .collect();
    totals.sort_unstable_by(|a, b| b.cmp(a));
    // The least total that keeps within the limit.
    let least = match totals.get(limit) {
        Some(&beyond) => Nanos(beyond.0 + 1),
        None => totals.last().copied().unwrap_or(Nanos(u64::MAX)),
    };
    let mut around: Vec<usize> = Vec::new();
    let mut rows = Vec::new();
    for path in &paths.paths {
        while around.last().is_some_and(|&depth| depth >= path.depth) {
            around.pop();
        }
        if path.total < least || is_passing_on(path, total) {
            continue;
        }
        let indent = "  ".repeat(around.len());
        around.push(path.depth);
        let mostly = path.mostly.as_ref().filter(|_| is_share(path.own, total, LEAST));
        let mostly = mostly.map_or_else(String::new, |called| callee_text(&called.name));
        rows.push(vec![
            percent(path.total, total),
            percent(path.own, total),
            cut(&format!("{indent}{}", place_text(path)), Some(42)),
            cut(&mostly, Some(21)),
        ]);
    }
    rows
}

fn operator_rows(screen: &Screen) -> Vec<Vec<String>> {
    let total = screen.paths.total;
    let operators = screen.operators.iter().take(OPERATORS);
    let operators = operators.filter(|one| is_share(one.called.time, total, LEAST));
    operators
        .map(|operator| {
            let place = operator.place.as_ref();
            vec![
                percent(operator.called.time, total),
                operator.calls.to_string(),
                cut(&called_text(&operator.called.name), Some(26)),
                cut(&place.map_or_else(String::new, |place| named_place(screen, place)), Some(26)),
                cut(operator.dtype.unwrap_or(""), Some(8)),
            ]
        })
        .collect()
}

fn place_text(path: &CodePath) -> String {
    format!("{} ({}:{})", path.function, path.file, path.line)
}

/// Returns a place with the name of its function, qualified if the source is known.
fn named_place(screen: &Screen, place: &CodePlace) -> String {
    let found = screen.facts.sources.function(&place.file, place.line);
    let function = found.map_or(place.function.as_str(), |function| function.name.as_str());
    format!("{function} ({}:{})", place.file, place.line)
}

/// Returns the name of an operator, of a library's function or of a module, without its path:
/// `adam.step` for `torch/optim/adam.py(147): step`.
fn callee_text(name: &str) -> String {
    if let Some(module) = name.strip_prefix("nn.Module: ") {
        let base = module.rsplit_once('_').filter(|(_, number)| number.parse::<u32>().is_ok());
        return base.map_or(module, |(base, _)| base).into();
    }
    let Some(place) = Place::parse(name) else {
        return visible(&called_text(name)).into_owned();
    };
    let file = place.file.rsplit('/').next().unwrap_or(place.file);
    let module = file.strip_suffix(".py").unwrap_or(file);
    match module {
        "__init__" => place.function.into(),
        _ => format!("{module}.{}", place.function),
    }
}

#[cfg(test)]
mod tests;
