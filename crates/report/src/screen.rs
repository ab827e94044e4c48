//! The first screen of `mindprof run` in words: at most 25 lines of 80 columns.

mod functions;

use std::fmt::Write as _;

use mindprof_answers::{
    CodePath, CodePaths, CodePlace, Compiled, Culprit, Finding, Screen, StepOperators, TopOperator,
    WideFloats,
};
use mindprof_formats::counted;
use mindprof_model::Nanos;

use self::functions::{fitted, function_rows, is_passing_on};
use crate::advice;
use crate::grid::{Align, characters, cut, dense_grid, push_wrapped};
use crate::number::memory_text;
use crate::run::imports_in;
use crate::steps::{is_share, percent, short_time, slow_text, split_text};
use crate::visible::visible;

/// The largest number of lines, and their width.
const LINES: usize = 25;
const WIDTH: usize = 80;

/// The largest numbers of rows of functions and of operators.
const FUNCTIONS: usize = 8;
const OPERATORS: usize = 4;

/// The number of operators if there are more functions than lines, and the number of functions from
/// which on operators and findings do not make room for further ones.
const FEWER_OPERATORS: usize = 3;
const FEWEST_FUNCTIONS: usize = 3;

/// The largest numbers of operators and of findings, in the order in which they are tried. A second
/// finding tells more than any operator.
const FITS: [(usize, usize); 9] = [
    (OPERATORS, FINDINGS),
    (FEWER_OPERATORS, FINDINGS),
    (2, FINDINGS),
    (2, 2),
    (1, 2),
    (0, 2),
    (2, 1),
    (1, 1),
    (0, 1),
];

/// The largest number of facts.
const FACTS: usize = 5;

/// The largest number of findings, and the least share of a step that one has to save.
const FINDINGS: usize = 3;
const WORTH: f64 = 0.05;

/// The least share of the time, in percent, that a function, an operator or a fact needs to be
/// mentioned, the share from which on a fact is the verdict, and the one that is nearly all.
const LEAST: u64 = 2;
const FACT: u64 = 5;
const VERDICT: u64 = 30;
const NEARLY_ALL: u64 = 98;

/// The number of operators from which on they are many.
const MANY: u64 = 100;

/// The largest width of the name of an operator.
const NAME: usize = 20;

/// The last lines of the screen, which only the launcher knows.
#[derive(Clone, Debug, Default)]
pub struct ScreenEnd {
    /// The written files.
    pub wrote: Vec<String>,
    /// The program and its arguments, quoted for a shell.
    pub program: String,
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
    push_wrapped(
        &mut top,
        &format!("mindprof: {}", verdict(screen)),
        Some(WIDTH),
    );
    if let Some(line) = code_line(screen) {
        top.push_str(&cut(&line, Some(WIDTH)));
        top.push('\n');
    }
    if let Some(steps) = steps(screen) {
        top.push('\n');
        push_wrapped(&mut top, &steps, Some(WIDTH));
    }
    // Operators and findings make room for functions, the least important first.
    let parts = FITS
        .iter()
        .map(|&(operators, findings)| Parts::of(screen, end, operators, findings));
    let taken = lines(&top);
    let mut parts = parts
        .into_iter()
        .find(|parts| parts.is_fitting(screen, taken))
        .unwrap_or_else(|| Parts::of(screen, end, 1, 1));
    let functions = function_rows(&screen.paths, parts.room(taken));
    let operators = std::mem::take(&mut parts.operators);
    let bottom = parts.bottom;
    let mut text = top;
    if !functions.is_empty() {
        text.push('\n');
        text.push_str(&dense_grid(&FUNCTION_COLUMNS, &functions));
    }
    if !operators.is_empty() {
        text.push('\n');
        text.push_str(&dense_grid(&OPERATOR_COLUMNS, &operators));
    }
    text.push('\n');
    text.push_str(&bottom);
    text
}

/// The operators of a screen and the lines below them.
struct Parts {
    operators: Vec<Vec<String>>,
    bottom: String,
}

impl Parts {
    fn of(screen: &Screen, end: &ScreenEnd, most_operators: usize, most_findings: usize) -> Self {
        let mut bottom = String::new();
        for fact in facts(screen).iter().take(FACTS) {
            push_wrapped(&mut bottom, fact, Some(WIDTH));
        }
        for finding in findings(screen).into_iter().take(most_findings) {
            push_wrapped(&mut bottom, &finding_text(screen, finding), Some(WIDTH));
        }
        for line in &end.wrote {
            push_wrapped(&mut bottom, line, Some(WIDTH));
        }
        push_wrapped(&mut bottom, &next(screen, end), None);
        let mut operators = operator_rows(screen);
        operators.truncate(most_operators);
        Self { operators, bottom }
    }

    /// Returns the number of functions that fit below `taken` lines.
    fn room(&self, taken: usize) -> usize {
        let operators = match self.operators.len() {
            0 => 0,
            // Their header and a blank line.
            count => count + 2,
        };
        // The blank lines and the header of the functions count too.
        let others = taken + lines(&self.bottom) + operators + 3;
        LINES.saturating_sub(others).min(FUNCTIONS)
    }

    /// Returns whether as many functions fit as a screen needs.
    fn is_fitting(&self, screen: &Screen, taken: usize) -> bool {
        let wanted = function_rows(&screen.paths, FUNCTIONS).len();
        let least = if self.operators.len() > FEWER_OPERATORS {
            wanted
        } else {
            wanted.min(FEWEST_FUNCTIONS)
        };
        self.room(taken) >= least
    }
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

/// Returns the one sentence that names the place with most of the time.
fn verdict(screen: &Screen) -> String {
    let rest = screen.report.rest;
    if let Some(compiled) = screen
        .facts
        .compiled
        .first()
        .filter(|_| is_compiling(screen))
    {
        let share = share_text(screen.compile_time(), rest);
        return format!(
            "{share} of the time is compilation: {}",
            compiled_text(compiled)
        );
    }
    if let Some(worker) = &screen.elsewhere {
        let share = percent(screen.data_wait(), screen.paths.total);
        return format!(
            "{share} of the time the loop waits for its data loader workers, which spend most of \
             theirs in {} ({}:{})",
            worker.function, worker.file, worker.line
        );
    }
    if let Some(wide) = wide_verdict(screen) {
        let share = percent(wide.time, screen.paths.total);
        return format!(
            "{share} of the time is spent in float64 operators, {}",
            wide_places(screen, wide)
        );
    }
    let Some(culprit) = screen.paths.culprit() else {
        return match screen.operators.first() {
            Some(operator) => format!(
                "{} is the operator with the most time: {} in {}",
                visible(&operator.called.name),
                short_time(operator.called.time),
                counted(operator.calls, "call")
            ),
            None => format!(
                "recorded {} without operators or functions of yours",
                short_time(rest)
            ),
        };
    };
    culprit_text(screen, &culprit)
}

/// Returns the sentence about the function to change first.
fn culprit_text(screen: &Screen, culprit: &Culprit) -> String {
    let paths = &screen.paths;
    let share = percent(culprit.time, paths.total);
    let path = &paths.paths[culprit.path];
    let mut text = format!(
        "{share} of the time is spent in {}",
        place_text(path, culprit_line(path, culprit))
    );
    if let Some(through) = culprit.through.map(|through| &paths.paths[through]) {
        let inside = place_text(through, through.own_line);
        let _ = write!(text, ", mostly in its calls of {inside}");
    } else {
        let _ = write!(
            text,
            ", {}",
            work_text(paths, culprit, screen.step_operators)
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
const fn culprit_line(path: &CodePath, culprit: &Culprit) -> u32 {
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
    for &path in &culprit.paths {
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

/// Returns double precision if so much of the time goes to it that it is the verdict.
fn wide_verdict(screen: &Screen) -> Option<&WideFloats> {
    let wide = screen.wide.as_ref()?;
    let is_much = is_share(wide.time, screen.paths.total, VERDICT);
    (is_much && wide.first.is_some()).then_some(wide)
}

/// Returns where a program computes in double precision.
fn wide_places(screen: &Screen, wide: &WideFloats) -> String {
    let first = wide.first.as_ref();
    let most = wide.most.as_ref().filter(|place| Some(*place) != first);
    let named = |what: &str, place: &CodePlace| format!("{what} in {}", named_place(screen, place));
    let places = [
        first.map(|place| named("first", place)),
        most.map(|place| named("most", place)),
    ];
    places.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns the source of the line that the verdict names.
fn code_line(screen: &Screen) -> Option<String> {
    if is_compiling(screen) {
        return None;
    }
    let (file, line) = if let Some(worker) = &screen.elsewhere {
        (&worker.file, worker.line)
    } else if let Some(first) = wide_verdict(screen).and_then(|wide| wide.first.as_ref()) {
        (&first.file, first.line)
    } else {
        let culprit = screen.paths.culprit()?;
        let path = &screen.paths.paths[culprit.path];
        (&path.file, culprit_line(path, &culprit))
    };
    let text = screen.facts.sources.line(file, line)?;
    Some(format!("  {line} | {}", visible(text)))
}

/// Returns whether compilation takes so much of the time that it is the verdict.
fn is_compiling(screen: &Screen) -> bool {
    is_share(screen.compile_time(), screen.report.rest, VERDICT)
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
    if let Some(slow) = times
        .slow
        .first()
        .filter(|_| is_slow_much(screen) && !is_compiling(screen))
    {
        let slow = slow_text(slow, times.has_python);
        let count = counted(times.slow_count as u64, "slow step");
        let _ = write!(text, "; {count}, the slowest: {slow}");
    }
    Some(text)
}

/// Returns facts of their own, the most important first.
fn facts(screen: &Screen) -> Vec<String> {
    let (report, rest) = (&screen.report, screen.report.rest);
    let mut facts = Vec::new();
    if screen.lost > 0 {
        facts.push(format!(
            "the budget was too small: {} events are in none of these times",
            screen.lost
        ));
    }
    let compiling = screen.compile_time();
    if let Some(compiled) = screen.facts.compiled.first() {
        let is_told = is_compiling(screen) && screen.facts.compiled.len() == 1;
        if !is_told && (is_share(compiling, rest, LEAST) || compiled.times > 1) {
            facts.push(compilations_text(screen, compiled));
        }
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
    if let Some(wide) = screen.wide.as_ref() {
        let mut text = format!(
            "float64 beside float32: {} of the time of operators on floats",
            percent(wide.time, wide.of)
        );
        if wide_verdict(screen).is_none() && wide.first.is_some() {
            let _ = write!(text, ", {}", wide_places(screen, wide));
        }
        facts.push(text);
    }
    let waited = screen.data_wait();
    // The classes of the steps tell the waits in them.
    let is_told = screen.elsewhere.is_some() || !screen.steps.steps.is_empty();
    if !is_told && is_share(waited, rest, FACT) && !report.is_over_budget {
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
        facts.push(format!(
            "not recorded: {}",
            screen.facts.children.join(", ")
        ));
    }
    facts.extend(error_text(screen));
    if is_share(report.import_time(), report.recorded, FACT) {
        let imports = imports_in(&report.imports, short_time);
        facts.push(format!("imports, in none of these shares: {imports}"));
    }
    facts
}

/// Returns how far shares may be off, and which time they leave out.
fn error_text(screen: &Screen) -> Option<String> {
    let samples = screen.samples().filter(|&samples| samples > 0);
    let error = samples.map(|samples| {
        // Two standard errors of a share of one half, the least certain one.
        let error = 100.0 / (samples as f64).sqrt();
        format!("within {error:.1} points ({})", counted(samples, "sample"))
    });
    let recording = screen.paths.recording;
    let recorded = screen.paths.total + recording;
    let cost = is_share(recording, recorded, LEAST).then(|| {
        format!(
            "without the profiler's own {}",
            percent(recording, recorded)
        )
    });
    let both: Vec<String> = [error, cost].into_iter().flatten().collect();
    (!both.is_empty()).then(|| format!("shares are {}", both.join(", ")))
}

/// Returns the findings that save enough to be worth a line. The facts about the same cause have no
/// price.
fn findings(screen: &Screen) -> Vec<&Finding> {
    let findings = screen.advice.findings.iter();
    findings
        .filter(|finding| finding.share >= WORTH)
        .take(FINDINGS)
        .collect()
}

/// Returns a finding in one sentence: what it saves, what is wrong and where, and what to try.
fn finding_text(screen: &Screen, finding: &Finding) -> String {
    let place = finding.place.as_ref().map_or_else(String::new, |place| {
        format!(", in {}", visible(&named_place(screen, place)))
    });
    format!(
        "to save about {}: {}{place}; {}",
        advice::share_text(finding.share),
        finding.rule.cause,
        finding.remedy
    )
}

fn compilations_text(screen: &Screen, compiled: &Compiled) -> String {
    let times: u64 = screen.facts.compiled.iter().map(|one| one.times).sum();
    let time = short_time(screen.compile_time());
    let all = counted(times, "time");
    if screen.facts.compiled.len() == 1 && times == 1 {
        return format!(
            "compiled once, {time}: {} ({}:{})",
            compiled.function, compiled.file, compiled.line
        );
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
    let Compiled {
        function,
        file,
        line,
        ..
    } = compiled;
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
    if is_compiling(screen) {
        return format!("next: TORCH_LOGS=recompiles python {}", end.program);
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
    let excess = slow.map(|time| time.step.duration.saturating_sub(steps.p50));
    let excess = excess.fold(Nanos::ZERO, Nanos::saturating_add);
    is_share(excess, steps.split.total(), 10)
}

/// Returns a share of a time that others measured, which may have begun earlier and ended later.
fn share_text(part: Nanos, whole: Nanos) -> String {
    if is_share(part, whole, NEARLY_ALL) {
        "nearly all".into()
    } else {
        percent(part, whole)
    }
}

fn operator_rows(screen: &Screen) -> Vec<Vec<String>> {
    let total = screen.paths.total;
    let operators = screen.operators.iter().take(OPERATORS);
    let operators: Vec<&TopOperator> = operators
        .filter(|one| is_share(one.called.time, total, LEAST))
        .collect();
    let name = |one: &TopOperator| cut(&visible(&one.called.name), Some(NAME));
    let widest = operators.iter().map(|one| characters(&name(one))).max();
    let room = WIDTH - 28 - widest.unwrap_or(0).max(8);
    let row = |operator: &&TopOperator| {
        let place = operator.place.as_ref().map_or_else(String::new, |place| {
            fitted(function_name(screen, place), &place.file, place.line, room)
        });
        vec![
            percent(operator.called.time, total),
            operator.calls.to_string(),
            name(operator),
            place,
            cut(operator.dtype.unwrap_or(""), Some(8)),
        ]
    };
    operators.iter().map(row).collect()
}

fn place_text(path: &CodePath, line: u32) -> String {
    format!("{} ({}:{line})", path.function, path.file)
}

/// Returns a place with the name of its function.
fn named_place(screen: &Screen, place: &CodePlace) -> String {
    format!(
        "{} ({}:{})",
        function_name(screen, place),
        place.file,
        place.line
    )
}

/// Returns the name of the function that a place is in, qualified if the source is known.
fn function_name<'a>(screen: &'a Screen, place: &'a CodePlace) -> &'a str {
    let found = screen.facts.sources.function(&place.file, place.line);
    found.map_or(place.function.as_str(), |function| function.name.as_str())
}

#[cfg(test)]
mod tests;
