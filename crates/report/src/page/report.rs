//! Puts a report together: draws the conclusions, and writes its panes and its data.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use mindprof_analyze::Analysis;
use mindprof_answers::SourceFile;
use mindprof_model::Nanos;
use mindprof_trace::write_file;
use serde_json::Value;

use super::about::{about, about_tables, help};
use super::code::{OWN_AND_TOTAL, code_tables};
use super::columns::LARGEST;
use super::compare::Comparison;
use super::contents::Contents;
use super::critical::path_tables;
use super::data::{Rest, data_block};
use super::engine::{Page, Pane};
use super::events::DrawnEvents;
use super::findings::memory_findings;
use super::kernels::{COUNTED, device_facts, kernel_tables};
use super::modules::REPORT;
use super::operators::{OF_ALL_THREADS, kernels_apart, operator_tables};
use super::overview::{overview, top_functions};
use super::steps::{step_pane, steps_table};
use super::table::{Table, counted};
use crate::error::{Error, Result};
use crate::memory::memory_pane;
use crate::steps::short_time;

/// Another profile that a report is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// The profile, which is the earlier one.
    pub analysis: &'a Analysis,
    /// Its name.
    pub name: &'a str,
}

/// The options of a report.
#[derive(Clone, Debug, Default)]
pub struct ReportOptions<'a> {
    /// The name of the profile, for the title.
    pub title: String,
    /// The profile to compare with.
    pub compare: Option<Compared<'a>>,
    /// The user's source files whose lines may be in the page.
    pub sources: Vec<SourceFile>,
    /// Parts of paths that make a file the user's own, instead of all that are not in a library.
    pub mine: Vec<String>,
    /// The repairs of the reader of the trace, a sentence each.
    pub repairs: Vec<String>,
}

/// Writes the report of a profile: one HTML page that needs no other file and no network.
///
/// # Errors
/// Fails if the profile spans more than 104 days, or if `out` cannot be written to.
pub fn write_report(
    analysis: &Analysis,
    options: &ReportOptions<'_>,
    out: &mut dyn Write,
) -> Result<()> {
    check_times(analysis)?;
    let contents = Contents::build(analysis, &options.mine);
    let drawn = DrawnEvents::build(analysis);
    let mut parts = Parts::build(&contents, options);
    let panes = parts.panes(&contents, &drawn, options);
    let memory = std::mem::take(&mut parts.memory_data);
    let tables = parts.into_tables(&contents);
    let rest = Rest {
        memory: &memory,
        sources: &options.sources,
    };
    let page = Page {
        title: options.title.clone(),
        subtitle: subtitle(&contents),
        panes,
        data: data_block(&contents, &drawn, &tables, &rest)?,
        modules: REPORT,
    };
    page.write(out)
}

/// Refuses times that scripts cannot count to the nanosecond.
fn check_times(analysis: &Analysis) -> Result<()> {
    let Nanos(span) = analysis.profile().span();
    if span > LARGEST {
        const DAY_NS: u64 = 86_400_000_000_000;
        return Err(Error::TooLong {
            days: span / DAY_NS,
        });
    }
    Ok(())
}

/// The tables and the HTML that several panes or the data block need.
struct Parts {
    comparison: Option<Comparison>,
    operators: Vec<Table>,
    code: Vec<Table>,
    kernels: Vec<Table>,
    memory: String,
    memory_data: Vec<Value>,
}

impl Parts {
    fn build(contents: &Contents<'_>, options: &ReportOptions<'_>) -> Self {
        let compare = options.compare;
        let comparison =
            compare.map(|other| Comparison::build(other.analysis, other.name, contents));
        let (memory, memory_data) = memory_pane(
            contents.analysis,
            contents.growth.as_ref(),
            &memory_findings(contents),
        );
        Self {
            comparison,
            operators: operator_tables(contents),
            code: code_tables(contents),
            kernels: kernel_tables(contents),
            memory,
            memory_data,
        }
    }

    /// Returns the panes that have something to show, in the order of the navigation.
    fn panes(
        &self,
        contents: &Contents<'_>,
        drawn: &DrawnEvents,
        options: &ReportOptions<'_>,
    ) -> Vec<Pane> {
        let code = format!(
            "<h1>Your code and the modules of the model</h1>\n{OWN_AND_TOTAL}{}",
            tables_html(&self.code)
        );
        let devices = format!(
            "<h1>Devices</h1>\n{}{COUNTED}{}",
            device_facts(contents),
            tables_html(&self.kernels)
        );
        let comparison = self.comparison.as_ref();
        let comparison = comparison.map(|comparison| comparison.html(contents));
        let panes = [
            ("overview", "Overview", Some(overview(contents))),
            ("step", "Timeline", Some(step_pane(contents))),
            (
                "operators",
                "Operators",
                Some(grouped(contents, &self.operators)),
            ),
            ("flames", "Flame graph", Some(FLAMES.into())),
            ("code", "Code", (!self.code.is_empty()).then_some(code)),
            (
                "memory",
                "Memory",
                (!self.memory.is_empty()).then(|| self.memory.clone()),
            ),
            (
                "kernels",
                "Devices",
                (!self.kernels.is_empty()).then_some(devices),
            ),
            ("compare", "Compare", comparison),
            ("about", "About", Some(about(contents, drawn, options))),
            ("detail", "Detail", Some(DETAIL.into())),
        ];
        let panes = panes.into_iter().filter_map(|(id, title, html)| {
            Some(Pane {
                id,
                title,
                html: html?,
                // Names lead to details.
                is_listed: id != "detail",
            })
        });
        let mut panes: Vec<Pane> = panes.collect();
        let listed = panes.iter().filter(|pane| pane.is_listed).count();
        for pane in panes.iter_mut().filter(|pane| pane.id == "about") {
            pane.html.push_str(&help(listed));
        }
        panes
    }

    /// Returns all tables of the page, for the scripts.
    fn into_tables(self, contents: &Contents<'_>) -> Vec<Table> {
        let mut tables = self.operators;
        tables.extend(self.code);
        tables.extend(self.kernels);
        let comparison = self.comparison.as_ref();
        tables.extend(comparison.into_iter().flat_map(|one| one.tables(contents)));
        tables.push(top_functions(contents));
        tables.extend(path_tables(contents));
        tables.extend(about_tables(contents));
        tables.push(steps_table(contents));
        tables
    }
}

/// Writes a report to a file, as [`write_report`] does.
///
/// # Errors
/// Fails if the file cannot be written. The error names the file.
pub fn write_report_file(
    analysis: &Analysis,
    options: &ReportOptions<'_>,
    path: &Path,
) -> Result<()> {
    write_file(path, |out| write_report(analysis, options, out))
}

/// Returns the overview of a report as a frame for notebooks: a page of its own, without scripts,
/// so that its style stays inside.
pub fn overview_frame(analysis: &Analysis) -> String {
    let contents = Contents::build(analysis, &[]);
    let page = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\">\
         <style>{}\n.notebook a {{ color: inherit; pointer-events: none; }}</style>\
         <main class=\"notebook\">{}</main>",
        super::modules::STYLE,
        overview(&contents)
    );
    format!(
        "<iframe sandbox title=\"Overview of the profile\" width=\"100%\" height=\"620\" \
         frameborder=\"0\" srcdoc=\"{}\"></iframe>",
        super::markup::escaped_lines(&page)
    )
}

fn subtitle(contents: &Contents<'_>) -> String {
    let explanation = &contents.explanation;
    events_text(explanation.events as u64, explanation.span)
}

/// Returns a number of events and their time.
pub(super) fn events_text(events: u64, span: Nanos) -> String {
    match events {
        0 => "no events".into(),
        events => format!("{} in {}", counted(events, "event"), short_time(span)),
    }
}

fn tables_html(tables: &[Table]) -> String {
    tables.iter().map(Table::html).collect()
}

/// The names of the ways to group operators, by the id of the table.
const GROUPS: [(&str, &str); 5] = [
    ("operators", "name"),
    ("operators-shape", "shape"),
    ("operators-line", "line"),
    ("operators-module", "module"),
    ("operators-dtype", "dtype"),
];

/// Returns the tables of operators, of which scripts show one at a time, with a choice above them.
fn grouped(contents: &Contents<'_>, tables: &[Table]) -> String {
    let mut html = String::from(
        "<h1>Operators</h1>\n<div class=\"tools scripted\" role=\"group\" aria-label=\"Group by\" hidden>\n\
         <span>Group by</span>\n",
    );
    for (table, name) in GROUPS {
        if tables.iter().any(|known| known.id == table) {
            let _ = writeln!(
                html,
                "<button type=\"button\" data-shows=\"{table}\">{name}</button>"
            );
        }
    }
    html.push_str(
        "<span class=\"gap\"></span><span id=\"operators-range\" class=\"quiet\"></span>\n</div>\n",
    );
    html.push_str(OF_ALL_THREADS);
    html.push_str(kernels_apart(contents.analysis.accelerator().is_some()));
    for table in tables {
        let _ = writeln!(
            html,
            "<div data-member=\"{}\">{}</div>",
            table.id,
            table.html()
        );
    }
    html
}

/// The flame graph, which scripts draw.
const FLAMES: &str = "\
<h1>Flame graph</h1>
<div class=\"scripted\" hidden>
<div class=\"tools\" role=\"toolbar\" aria-label=\"Flame graph\">
<label>Width <select id=\"flame-choice\"></select></label>
<label class=\"check\"><input id=\"flame-inverted\" type=\"checkbox\"> Inverted</label>
<label>Find <input id=\"flame-find\" type=\"search\" placeholder=\"a name\" autocomplete=\"off\"></label>
<span id=\"flame-found\" class=\"quiet\" role=\"status\"></span>
<span class=\"gap\"></span>
<button type=\"button\" id=\"flame-all\">Whole graph</button>
</div>
<div id=\"flame-graph\" class=\"stage\" tabindex=\"0\" role=\"application\" aria-label=\"Flame graph\" aria-describedby=\"flame-help\"></div>
<p id=\"flame-help\" class=\"quiet\">The width of a frame is what was spent in it and in what it calls. Click a frame to zoom in; arrow keys go from frame to frame, Enter zooms, Escape shows all.</p>
<p class=\"quiet\">Shares are of the whole graph. CPU time is that of all threads, with waits of the main thread but without those of the others; a frame with the words \u{201c}waiting for the backward thread\u{201d} is such a wait, and the work is in the frames of the backward thread.</p>
<div id=\"flame-table\"></div>
</div>
<p class=\"scriptless\">The flame graph needs scripts: mindprof stacks --out flames.svg draws one that does not.</p>
";

/// The detail of one thing, which scripts fill in.
const DETAIL: &str = "<p id=\"detail-origin\" class=\"scripted\" hidden></p>\n<div id=\"detail-body\"></div>\n<p class=\"scriptless\">Details need scripts.</p>\n";
