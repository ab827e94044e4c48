//! The first screen of `mindprof run` in words: at most 25 lines of 80 columns.

mod functions;

use std::fmt::Write as _;

use mindprof_answers::{Compiled, Screen, Subject, TopOperator, screen_findings};
use mindprof_formats::counted;
use mindprof_model::Nanos;

pub(crate) use self::functions::is_passing_on;
use self::functions::{fitted, function_rows};
use crate::grid::{Align, characters, cut, dense_grid, push_wrapped};
use crate::headline::{
    compiled_text, culprit_line, finding_text, function_name, headline_text, named_place,
    wide_places,
};
use crate::number::memory_text;
use crate::run::imports_in;
use crate::steps::{is_share, percent, short_time, slow_text, split_text, tail_text};
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

/// The largest number of findings.
const FINDINGS: usize = 3;

/// The least share of the time, in percent, that a function, an operator or a fact needs to be
/// mentioned.
const LEAST: u64 = 2;
const FACT: u64 = 5;

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
        &format!("mindprof: {}", headline(screen)),
        Some(WIDTH),
    );
    if let Some(line) = code_line(screen) {
        top.push_str(&cut(&visible(&line), Some(WIDTH)));
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
    let functions = function_rows(screen, parts.room(taken));
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
        for finding in screen_findings(&screen.advice).take(most_findings) {
            let text = finding_text(finding, &screen.facts.sources);
            push_wrapped(&mut bottom, &text, Some(WIDTH));
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
        let wanted = function_rows(screen, FUNCTIONS).len();
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

/// Returns the first sentence.
fn headline(screen: &Screen) -> String {
    headline_text(&screen.headline, &screen.advice, &screen.facts.sources)
}

/// Returns the source of the line that the first sentence names.
fn code_line(screen: &Screen) -> Option<String> {
    let (file, line) = match screen.headline.subject(&screen.advice) {
        Subject::Workers(worker) | Subject::Threads(worker, _) => (&worker.file, worker.line),
        Subject::WideFloats(wide) => {
            let first = wide.first.as_ref()?;
            (&first.file, first.line)
        }
        Subject::Function(culprit) => {
            let path = &screen.headline.paths.paths[culprit.path];
            (&path.file, culprit_line(path, &culprit))
        }
        Subject::Compilation(_) | Subject::Finding(_) | Subject::Operator(_) | Subject::Nothing => {
            return None;
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
    let on_device = times.device_p50.map_or_else(String::new, |median| {
        format!("{} on the device; on the CPU ", short_time(median))
    });
    let mut text = format!(
        "{}, median {on_device}{} ({}): {}",
        counted(times.steps.len() as u64, "step"),
        short_time(times.p50),
        tail_text(&times.tail()),
        split_text(&times.split, times.has_python)
    );
    if let Some(slow) = times
        .slow
        .first()
        .filter(|_| is_slow_much(screen) && !screen.headline.run.is_compiling())
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
    let compiling = screen.headline.run.compile_time();
    if let Some(compiled) = screen.headline.run.compiled.first() {
        let is_told = screen.headline.run.is_compiling() && screen.headline.run.compiled.len() == 1;
        if !is_told && (is_share(compiling, rest, LEAST) || compiled.times > 1) {
            facts.push(compilations_text(screen, compiled));
        }
    }
    if let Some(growth) = &screen.growth {
        let bytes = memory_text(growth.bytes_per_step as i64);
        let place = growth.place.as_ref().map_or_else(String::new, |place| {
            format!(
                ", allocated in {}",
                named_place(place, &screen.facts.sources)
            )
        });
        facts.push(format!(
            "memory grows by {bytes} in each of {}{place}",
            counted(growth.steps as u64, "step")
        ));
    }
    if let Some(wide) = screen.headline.wide.as_ref() {
        let mut text = format!(
            "float64 beside float32: {} of the time of operators on floats",
            percent(wide.time, wide.of)
        );
        let subject = screen.headline.subject(&screen.advice);
        if !matches!(subject, Subject::WideFloats(_)) && wide.first.is_some() {
            let _ = write!(text, ", {}", wide_places(wide, &screen.facts.sources));
        }
        facts.push(text);
    }
    let waited = screen.headline.run.data_wait;
    // The classes of the steps tell the waits in them.
    let is_told = screen.headline.elsewhere.is_some() || !screen.steps.steps.is_empty();
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
    let recording = screen.headline.paths.recording;
    let recorded = screen.headline.paths.total + recording;
    let cost = is_share(recording, recorded, LEAST).then(|| {
        format!(
            "without an estimated {} for the profiler itself",
            percent(recording, recorded)
        )
    });
    let both: Vec<String> = [error, cost].into_iter().flatten().collect();
    (!both.is_empty()).then(|| format!("shares are {}", both.join(", ")))
}

fn compilations_text(screen: &Screen, compiled: &Compiled) -> String {
    let times: u64 = screen
        .headline
        .run
        .compiled
        .iter()
        .map(|one| one.times)
        .sum();
    let time = short_time(screen.headline.run.compile_time());
    let all = counted(times, "time");
    if screen.headline.run.compiled.len() == 1 && times == 1 {
        return format!(
            "compiled once, {time}: {} ({}:{})",
            compiled.function, compiled.file, compiled.line
        );
    }
    format!("compiled {all}, {time}: {}", compiled_text(compiled))
}

/// Returns the command that fits the run best.
fn next(screen: &Screen, end: &ScreenEnd) -> String {
    let Some(trace) = &end.trace else {
        return "next: free space for the trace, and run again".into();
    };
    if screen.lost > 0 && !end.has_schedule {
        return "next: mindprof run --wait 2 --active 5 ... records only five steps".into();
    }
    if screen.headline.run.is_compiling() {
        return format!("next: TORCH_LOGS=recompiles python {}", end.program);
    }
    if screen.growth.is_some() {
        return format!("next: mindprof memory {trace}");
    }
    if screen.steps.slow_count > 0 && is_slow_much(screen) {
        return format!("next: mindprof steps {trace}");
    }
    if end.has_stacks && !screen.headline.paths.paths.is_empty() {
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

fn operator_rows(screen: &Screen) -> Vec<Vec<String>> {
    let total = screen.headline.paths.total;
    let operators = screen.headline.operators.iter().take(OPERATORS);
    let operators: Vec<&TopOperator> = operators
        .filter(|one| is_share(one.called.time, total, LEAST))
        .collect();
    let name = |one: &TopOperator| cut(&visible(&one.called.name), Some(NAME));
    let widest = operators.iter().map(|one| characters(&name(one))).max();
    let room = WIDTH - 28 - widest.unwrap_or(0).max(8);
    let row = |operator: &&TopOperator| {
        let place = operator.place.as_ref().map_or_else(String::new, |place| {
            fitted(
                function_name(place, &screen.facts.sources),
                &place.file,
                place.line,
                room,
            )
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

#[cfg(test)]
mod tests;
