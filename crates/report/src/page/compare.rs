//! The comparison with another profile: what grew in an average step, and what became of the findings.

use std::fmt::Write as _;

use mindprof_analyze::{Analysis, Cut, slim};
use mindprof_answers::{
    Advice, Change, Device, Diff, DiffOptions, Doubt, FunctionCost, Functions, Measure, OwnCode,
    StepTime, StepTimes, Work,
};
use mindprof_model::{Category, DeviceKind, Nanos, Profile, ThreadId};
use rustc_hash::FxHashMap;

use super::code::function_place;
use super::compare_findings::findings_table;
use super::contents::Contents;
use super::markup::{escaped, with_units};
use super::table::{Cell, Column, Kind, Table, column, counted, share_text};
use crate::sentence::sentence;
use crate::steps::short_time;
use crate::verdict::doubt_text;

/// The largest number of rows.
const MOST_ROWS: usize = 2_000;

/// The comparison of a report's profile with another one.
#[derive(Debug)]
pub(super) struct Comparison {
    name: String,
    diff: Diff,
    /// The number of steps before and now, by which values are divided; one if there are no steps.
    steps: [u64; 2],
    /// The median step before and now, and where it was measured.
    median: Option<(&'static str, Nanos, Nanos)>,
    /// The functions of the user before and now.
    functions: [Functions; 2],
    advice: Advice,
}

impl Comparison {
    /// Compares a profile with the one before it: their steps, if both have some, otherwise all of
    /// them.
    ///
    /// ```text
    /// recording   |--start--|step|step|step|--stop--|
    /// compared              |----|----|----|              each number divided by three
    /// ```
    pub(super) fn build(before: &Analysis, name: &str, contents: &Contents<'_>) -> Self {
        let own = OwnCode::of(before.profile().metadata(), &[]);
        let steps_before = StepTimes::build(before, &own);
        let (steps, now) = (contents.steps(), contents.analysis);
        let has_steps = !steps.is_empty() && !steps_before.steps.is_empty();
        let cut = |analysis: &Analysis, steps: &[StepTime]| {
            has_steps.then(|| {
                let cut = steps_cut(analysis.profile(), steps);
                Analysis::build(slim(analysis.profile(), &cut).profile)
            })
        };
        let cuts = [cut(before, &steps_before.steps), cut(now, steps)];
        let [left, right] = [
            cuts[0].as_ref().unwrap_or(before),
            cuts[1].as_ref().unwrap_or(now),
        ];
        let options = DiffOptions {
            input_shapes: false,
            ..DiffOptions::default()
        };
        let functions = |analysis, own| Functions::build(analysis, &Work::of(analysis), own);
        Self {
            name: name.into(),
            diff: Diff::build(left, right, options),
            steps: if has_steps {
                [steps_before.steps.len() as u64, steps.len() as u64]
            } else {
                [1, 1]
            },
            median: has_steps.then(|| medians(&steps_before, &Device::build(before), contents)),
            functions: [functions(left, &own), functions(right, &contents.own)],
            advice: Advice::build(before, &own),
        }
    }

    /// Returns the pane as HTML.
    pub(super) fn html(&self, contents: &Contents<'_>) -> String {
        let mut html = format!(
            "<h1>Compared with {}</h1>\n<ul class=\"facts\">\n",
            escaped(&self.name)
        );
        let mut facts: Vec<String> = Vec::new();
        facts.extend(
            self.median
                .map(|(what, before, now)| changed(what, before, now)),
        );
        let (before, now) = (&self.diff.before, &self.diff.after);
        let [cpu, device] = if self.is_by_step() {
            ["CPU time per step", "Device time per step"]
        } else {
            ["CPU time", "Device time"]
        };
        for (what, before, now) in [
            (cpu, before.host, now.host),
            (device, before.device, now.device),
        ] {
            let [before, now] = self.each([before.0, now.0]).map(|time| Nanos(time as u64));
            if before.0 + now.0 > 0 {
                facts.push(changed(what, before, now));
            }
        }
        if self.is_by_step() {
            let [before, now] = self.steps.map(|steps| counted(steps, "step"));
            facts.push(format!(
                "The tables show the values of an average step: {before} before, {now} now. What ran outside \
                 of the steps is left out."
            ));
        }
        for fact in facts {
            let _ = writeln!(html, "<li>{}</li>", escaped(&with_units(&fact)));
        }
        for doubt in Doubt::notes(&self.diff) {
            if self.is_by_step() && matches!(doubt, Doubt::Steps { .. }) {
                continue;
            }
            let text = doubt_text(doubt, [&self.name, "this profile"]);
            let _ = writeln!(
                html,
                "<li class=\"bad\">{}.</li>",
                escaped(&sentence(&text))
            );
        }
        if let Some(text) = other_work(&self.diff) {
            let _ = writeln!(html, "<li class=\"bad\">{}</li>", escaped(&text));
        }
        html.push_str("</ul>\n");
        for table in self.tables(contents) {
            html.push_str(&table.html());
        }
        html
    }

    /// Returns the findings of both profiles, and the functions and rows that changed.
    pub(super) fn tables(&self, contents: &Contents<'_>) -> Vec<Table> {
        let mut tables = vec![findings_table(&self.advice, &contents.explanation.advice)];
        let functions = self.functions_table();
        if !functions.rows.is_empty() {
            tables.push(functions);
        }
        tables.push(self.rows_table());
        tables
    }

    /// Returns whether values are those of an average step.
    fn is_by_step(&self) -> bool {
        self.median.is_some()
    }

    /// Returns a value before and now, divided by the steps.
    fn each(&self, [before, now]: [u64; 2]) -> [f64; 2] {
        let [steps_before, steps_now] = self.steps.map(|steps| steps as f64);
        [before as f64 / steps_before, now as f64 / steps_now]
    }

    /// Returns the columns of times, which follow a name.
    fn columns(&self, meaning: &'static str) -> [Column; 3] {
        let titles = if self.is_by_step() {
            ["Change/step", "Before/step", "Now/step"]
        } else {
            ["Change", "Before", "Now"]
        };
        [
            column(titles[0], Kind::Time, "The value now minus that before."),
            column(titles[1], Kind::Time, meaning),
            column(titles[2], Kind::Time, meaning),
        ]
    }

    /// Returns the cells of a time before and now, and the size of the change.
    fn times(&self, times: [u64; 2]) -> (f64, [Cell; 3]) {
        let [before, now] = self.each(times).map(f64::round);
        let cells = [now - before, before, now].map(Cell::Number);
        ((now - before).abs(), cells)
    }

    fn rows_table(&self) -> Table {
        let is_whole = |row: &Change| {
            let (before, now) = row.values(Measure::Count);
            self.each([before, now])
                .iter()
                .all(|count| count.fract() == 0.0)
        };
        let calls = if self.diff.rows.iter().all(is_whole) {
            Kind::Count
        } else {
            Kind::Amount
        };
        let titles = if self.is_by_step() {
            ["Calls/step before", "Calls/step now"]
        } else {
            ["Calls before", "Calls now"]
        };
        let mut columns = vec![
            column("Name", Kind::Name, ""),
            column("Device", Kind::Text, ""),
        ];
        columns.extend(self.columns(
            "The self time: on the CPU without the operators inside, of all threads, with waits.",
        ));
        columns.extend([
            column(titles[0], calls, ""),
            column(titles[1], calls, ""),
            column("State", Kind::Text, "Whether only one profile has it."),
        ]);
        let rows = self.diff.rows.iter();
        // Ranges on a device span work, and are none.
        let rows = rows.filter(|row| self.is_changed(row) && !row.is_range_on_device());
        let mut rows: Vec<(f64, Vec<Cell>)> = rows.map(|row| self.cells(row)).collect();
        rows.sort_by(|(left, _), (right, _)| right.total_cmp(left));
        Table {
            id: "compare",
            caption:
                "Operators and kernels that changed, by the size of the change of their self time"
                    .into(),
            columns,
            rows: rows
                .into_iter()
                .take(MOST_ROWS)
                .map(|(_, cells)| cells)
                .collect(),
            sorted_by: None,
        }
    }

    /// Returns whether a row is another one in an average step.
    fn is_changed(&self, row: &Change) -> bool {
        let differs = |measure, least: f64| {
            let (before, now) = row.values(measure);
            let [before, now] = self.each([before, now]);
            (before - now).abs() > least
        };
        row.before.is_some() != row.after.is_some()
            || differs(Measure::SelfTime, 0.5)
            || differs(Measure::Count, 1e-9)
    }

    fn cells(&self, row: &Change) -> (f64, Vec<Cell>) {
        let (before, now) = row.values(Measure::SelfTime);
        let (calls_before, calls_now) = row.values(Measure::Count);
        let kind = if row.device == DeviceKind::Cpu {
            "operator"
        } else {
            "kernel"
        };
        let (change, times) = self.times([before, now]);
        // The page has the events of this profile only.
        let name = match row.after {
            Some(_) => Cell::detail(kind, &row.key),
            None => Cell::text(&*row.key),
        };
        let mut cells = vec![name, Cell::text(self.diff.device_name(row.device))];
        cells.extend(times);
        cells.extend(self.each([calls_before, calls_now]).map(Cell::Number));
        cells.push(Cell::text(state(row.before.is_some(), row.after.is_some())));
        (change, cells)
    }

    /// Returns the functions of the user whose own time changed.
    fn functions_table(&self) -> Table {
        type Sides<'a> = [Option<&'a FunctionCost>; 2];
        let mut found: FxHashMap<(&str, &str), Sides<'_>> = FxHashMap::default();
        for (side, functions) in self.functions.iter().enumerate() {
            for one in &functions.functions {
                let key = (one.file.as_str(), one.function.as_str());
                found.entry(key).or_default()[side].get_or_insert(one);
            }
        }
        let mut rows: Vec<(f64, &str, Vec<Cell>)> = Vec::new();
        for ((_, function), sides) in found {
            let own = sides.map(|one| one.map_or(0, |one| one.own.time().0));
            let (change, times) = self.times(own);
            if change == 0.0 {
                continue;
            }
            let [before, now] = sides;
            let Some(one) = now.or(before) else { continue };
            let (place, key) = function_place(one);
            let name = match now {
                Some(_) => Cell::named("function", &key, &place),
                None => Cell::text(place),
            };
            let mut cells = vec![name];
            cells.extend(times);
            cells.push(Cell::text(state(before.is_some(), now.is_some())));
            rows.push((change, function, cells));
        }
        rows.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(right.1)));
        let mut columns = vec![column("Function", Kind::Name, "")];
        columns.extend(self.columns(
            "CPU and device time of it and of the operators and libraries that it calls, without other functions of yours.",
        ));
        columns.push(column(
            "State",
            Kind::Text,
            "Whether only one profile has it.",
        ));
        Table {
            id: "compare-functions",
            caption: "Your functions that changed, by the size of the change of their own time"
                .into(),
            columns,
            rows: rows
                .into_iter()
                .take(MOST_ROWS)
                .map(|(.., cells)| cells)
                .collect(),
            sorted_by: None,
        }
    }
}

const fn state(is_before: bool, is_now: bool) -> &'static str {
    match (is_before, is_now) {
        (false, _) => "new",
        (_, false) => "gone",
        (true, true) => "",
    }
}

/// Returns the cut that keeps what begins in steps, and the device work that this launches. Work that
/// was launched before the steps, and runs during them, is no work of theirs.
fn steps_cut(profile: &Profile, steps: &[StepTime]) -> Cut {
    let threads = profile.threads().iter().enumerate();
    let on_cpu = threads.filter(|(_, thread)| thread.device == DeviceKind::Cpu);
    let on_cpu = on_cpu.map(|(index, _)| ThreadId::from_index(index));
    let events = profile.events().iter();
    let has_launches = events
        .map(|event| event.category)
        .any(|one| one == Category::Runtime);
    let times = steps.iter().map(|time| (time.step.start, time.step.end()));
    let mut times: Vec<(Nanos, Nanos)> = times.collect();
    times.sort_unstable();
    Cut {
        within: Some(times),
        threads: has_launches.then(|| on_cpu.collect()),
        ..Cut::default()
    }
}

/// Returns the median step before and now by one measure: on the device if one of the profiles is
/// bound by it, as the Overview has it, otherwise on the CPU.
fn medians(
    before: &StepTimes,
    device: &Device,
    contents: &Contents<'_>,
) -> (&'static str, Nanos, Nanos) {
    let is_behind = before.device_p50.is_some() || contents.device_median().is_some();
    let on_device = device.median_step().zip(contents.device.median_step());
    match on_device.filter(|_| is_behind) {
        Some((before, now)) => ("The median step on the device", before, now),
        None => (
            "The median step",
            before.p50,
            contents.explanation.steps.p50,
        ),
    }
}

/// The part of the operators that both profiles have, below which they do different work.
const COMMON: f64 = 0.6;

/// Returns a sentence if the profiles have few operators in common.
fn other_work(diff: &Diff) -> Option<String> {
    let rows = diff.rows.iter();
    let operators = rows.filter(|row| row.device == DeviceKind::Cpu && !row.is_annotation);
    let all = operators.clone().count();
    let common = operators.filter(|row| row.before.is_some() && row.after.is_some());
    let common = common.count();
    ((common as f64) < all as f64 * COMMON).then(|| {
        format!(
            "The two recordings do different work: they have {common} of {all} operators and runtime calls in \
             common. The differences say little about what became faster or slower."
        )
    })
}

/// Returns how a time changed: `CPU time grew from 3 ms to 4 ms (+33.3 %).`
fn changed(what: &str, before: Nanos, after: Nanos) -> String {
    let (from, to) = (short_time(before), short_time(after));
    let verb = match after.cmp(&before) {
        std::cmp::Ordering::Greater => "grew",
        std::cmp::Ordering::Less => "fell",
        std::cmp::Ordering::Equal => return format!("{what} is {to}, as before."),
    };
    if before == Nanos::ZERO {
        return format!("{what} is {to}; before there was none.");
    }
    let change = (after.0 as f64 - before.0 as f64) / before.0 as f64;
    let sign = if change > 0.0 { '+' } else { '\u{2212}' };
    format!(
        "{what} {verb} from {from} to {to} ({sign}{}).",
        share_text(change.abs())
    )
}
