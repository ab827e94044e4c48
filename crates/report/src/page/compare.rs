//! The comparison with another profile: what grew, and what became of the findings.

use std::fmt::Write as _;

use mindprof_analyze::Analysis;
use mindprof_answers::{Advice, Change, Diff, DiffOptions, Doubt, Measure, OwnCode, StepTimes};
use mindprof_model::{DeviceKind, Nanos};

use super::compare_findings::findings_table;
use super::contents::Contents;
use super::markup::escaped;
use super::table::{Cell, Kind, Table, column, share_text};
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
    steps: StepTimes,
    advice: Advice,
}

impl Comparison {
    /// Compares a profile with the one before it.
    pub(super) fn build(before: &Analysis, name: &str, contents: &Contents<'_>) -> Self {
        let own = OwnCode::of(before.profile().metadata(), &[]);
        let options = DiffOptions {
            input_shapes: false,
            ..DiffOptions::default()
        };
        Self {
            name: name.into(),
            diff: Diff::build(before, contents.analysis, options),
            steps: StepTimes::build(before, &own),
            advice: Advice::build(before, &own),
        }
    }

    /// Returns the pane as HTML.
    pub(super) fn html(&self, contents: &Contents<'_>) -> String {
        let mut html = format!(
            "<h1>Compared with {}</h1>\n<ul class=\"facts\">\n",
            escaped(&self.name)
        );
        let wholes = [
            (
                "The median step",
                self.steps.p50,
                contents.explanation.steps.p50,
            ),
            ("CPU time", self.diff.before.host, self.diff.after.host),
            (
                "Device time",
                self.diff.before.device,
                self.diff.after.device,
            ),
        ];
        for (what, before, after) in wholes
            .into_iter()
            .filter(|(_, before, after)| before.0 + after.0 > 0)
        {
            let _ = writeln!(html, "<li>{}</li>", escaped(&changed(what, before, after)));
        }
        for doubt in Doubt::notes(&self.diff) {
            let text = doubt_text(doubt, [&self.name, "this profile"]);
            let _ = writeln!(
                html,
                "<li class=\"bad\">{}.</li>",
                escaped(&sentence(&text))
            );
        }
        html.push_str("</ul>\n");
        for table in self.tables(contents) {
            html.push_str(&table.html());
        }
        html
    }

    /// Returns the findings of both profiles, and the rows that changed.
    pub(super) fn tables(&self, contents: &Contents<'_>) -> [Table; 2] {
        let findings = findings_table(&self.advice, &contents.explanation.advice);
        [findings, self.rows_table()]
    }

    fn rows_table(&self) -> Table {
        let rows = self
            .diff
            .rows
            .iter()
            .filter(|row| self.diff.is_changed(row));
        Table {
            id: "compare",
            caption: "Rows that changed, by the size of the change of their self time".into(),
            columns: vec![
                column("Name", Kind::Name, ""),
                column("Device", Kind::Text, ""),
                column(
                    "Change",
                    Kind::Time,
                    "The self time now minus the self time before.",
                ),
                column("Before", Kind::Time, "The self time before."),
                column("Now", Kind::Time, "The self time now."),
                column("Calls before", Kind::Count, ""),
                column("Calls now", Kind::Count, ""),
                column("State", Kind::Text, "Whether only one profile has it."),
            ],
            rows: rows
                .take(MOST_ROWS)
                .map(|row| cells(&self.diff, row))
                .collect(),
            sorted_by: None,
        }
    }
}

fn cells(diff: &Diff, row: &Change) -> Vec<Cell> {
    let (before, after) = row.values(Measure::SelfTime);
    let (calls_before, calls_after) = row.values(Measure::Count);
    let state = match (&row.before, &row.after) {
        (None, _) => "new",
        (_, None) => "gone",
        (Some(_), Some(_)) => "",
    };
    let kind = if row.device == DeviceKind::Cpu {
        "operator"
    } else {
        "kernel"
    };
    vec![
        Cell::detail(kind, &row.key),
        Cell::text(diff.device_name(row.device)),
        Cell::Number(after as f64 - before as f64),
        Cell::time(Nanos(before)),
        Cell::time(Nanos(after)),
        Cell::count(calls_before),
        Cell::count(calls_after),
        Cell::text(state),
    ]
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
    let sign = if change > 0.0 { "+" } else { "" };
    format!(
        "{what} {verb} from {from} to {to} ({sign}{}).",
        share_text(change)
    )
}
