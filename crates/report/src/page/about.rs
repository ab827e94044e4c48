//! About a report: the machine, versions and options of the recording, what was lost or repaired,
//! and what the page leaves out.

use std::fmt::Write as _;

use mindprof_answers::Track;
use mindprof_model::{DeviceKind, Profile};

use super::contents::Contents;
use super::events::DrawnEvents;
use super::markup::escaped;
use super::operators::not_labelled;
use super::report::ReportOptions;
use super::table::{Cell, Kind, Table, column, counted};
use crate::advice::overhead_text;
use crate::grid::cut;
use crate::steps::short_time;
use crate::table::loss_texts;

/// The largest width of a value of metadata.
const VALUE_WIDTH: usize = 400;

/// Metadata that lists sources and functions, which the page shows elsewhere or not at all.
const UNLISTED: [&str; 4] = [
    "mindprof_sources",
    "mindprof_functions",
    "mindprof_run",
    "mindprof_steps",
];

/// Returns the pane as HTML.
pub(super) fn about(
    contents: &Contents<'_>,
    drawn: &DrawnEvents,
    options: &ReportOptions<'_>,
) -> String {
    let mut html = String::from("<h1>About this report</h1>\n<ul class=\"facts\">\n");
    for fact in facts(contents, drawn, options) {
        let _ = writeln!(html, "<li>{}.</li>", escaped(&fact));
    }
    html.push_str("</ul>\n");
    for table in about_tables(contents) {
        html.push_str(&table.html());
    }
    html + HELP
}

fn facts(contents: &Contents<'_>, drawn: &DrawnEvents, options: &ReportOptions<'_>) -> Vec<String> {
    let profile = contents.analysis.profile();
    let explanation = &contents.explanation;
    let events = counted(profile.events().len() as u64, "event");
    let mut facts = vec![format!("{events} in {}", short_time(profile.span()))];
    if explanation.advice.steps > 0 {
        facts.push(overhead_text(
            &explanation.advice.overhead,
            explanation.advice.steps,
        ));
    }
    match &loss_texts(profile.loss())[..] {
        [] => facts.push("No event was lost".into()),
        causes => facts.push(format!("Events lost: {}", causes.join(", "))),
    }
    if let Some((kept, of)) = explanation.cut {
        facts.push(format!("A part of a recording: {kept} of {of} events"));
    }
    facts.extend(
        options
            .repairs
            .iter()
            .map(|repair| format!("Repaired: {repair}")),
    );
    if let Some((least, count)) = drawn.left_out {
        facts.push(format!(
            "The timeline leaves out {} shorter than {}, so that the page stays small; every table counts them, except those of a selected range",
            counted(count as u64, "event"),
            short_time(least)
        ));
    }
    facts.extend(not_labelled(contents));
    if options.sources.is_empty() {
        facts.push(
            "The page has no source lines: mindprof report --source adds those of your files"
                .into(),
        );
    } else {
        let files = counted(options.sources.len() as u64, "file");
        facts.push(format!("The page has source lines of {files} of yours"));
    }
    facts.push(format!("Written by mindprof {}", env!("CARGO_PKG_VERSION")));
    facts
}

/// Returns the tables of threads, streams and metadata.
pub(super) fn about_tables(contents: &Contents<'_>) -> Vec<Table> {
    let profile = contents.analysis.profile();
    let summary = &contents.summary;
    let tracks = summary.threads.iter().chain(&summary.streams);
    let tracks = Table {
        id: "tracks",
        caption: "Threads and streams".into(),
        columns: vec![
            column("Name", Kind::Name, ""),
            column("Where", Kind::Text, ""),
            column("Events", Kind::Count, ""),
            column(
                "Busy",
                Kind::Time,
                "The time in which at least one of its events ran.",
            ),
        ],
        rows: tracks.map(|track| track_cells(profile, track)).collect(),
        sorted_by: None,
    };
    let metadata = profile.metadata().iter();
    let metadata = metadata.filter(|(key, _)| !UNLISTED.contains(key));
    let metadata = Table {
        id: "metadata",
        caption: "Metadata of the recording".into(),
        columns: vec![
            column("Key", Kind::Name, ""),
            column("Value", Kind::Text, ""),
        ],
        rows: metadata
            .map(|(key, value)| {
                let words: Vec<&str> = value.split_whitespace().collect();
                let value = cut(&words.join(" "), Some(VALUE_WIDTH));
                vec![Cell::text(key), Cell::text(value)]
            })
            .collect(),
        sorted_by: None,
    };
    let tables = [tracks, metadata].into_iter();
    tables.filter(|table| !table.rows.is_empty()).collect()
}

fn track_cells(profile: &Profile, track: &Track) -> Vec<Cell> {
    let thread = &profile.threads()[track.thread.index()];
    let number = thread.native as i64;
    let name = profile.strings().text(thread.name);
    let place = if track.device == DeviceKind::Cpu {
        format!("process {}, thread {number}", thread.process)
    } else {
        format!(
            "{}:{}, stream {number}",
            profile.device_name(track.device),
            thread.process
        )
    };
    vec![
        Cell::text(name),
        Cell::text(place),
        Cell::count(track.events),
        Cell::time(track.busy),
    ]
}

/// How to get at the data elsewhere, and the keys.
const HELP: &str = "\
<h2>Elsewhere</h2>
<ul class=\"facts\">
<li>Every table here is a command too: <code>mindprof advise</code>, <code>steps</code>, <code>table</code>, <code>functions</code>, <code>lines</code>, <code>modules</code>, <code>device</code>, <code>critical-path</code>, <code>memory</code>, <code>diff</code>.</li>
<li>To open the whole trace in Perfetto: <code>mindprof convert TRACE trace.pftrace</code>, then open <code>trace.pftrace</code> at ui.perfetto.dev. Nothing is uploaded.</li>
<li>The address of the page keeps the view: a copied link shows what you see.</li>
</ul>
<h2>Keys</h2>
<dl class=\"keys\">
<dt><kbd>1</kbd> to <kbd>9</kbd></dt><dd>go to a pane</dd>
<dt><kbd>/</kbd></dt><dd>find a name</dd>
<dt><kbd>W</kbd> <kbd>S</kbd></dt><dd>zoom in and out</dd>
<dt><kbd>A</kbd> <kbd>D</kbd></dt><dd>move left and right</dd>
<dt><kbd>&larr;</kbd> <kbd>&rarr;</kbd> <kbd>&uarr;</kbd> <kbd>&darr;</kbd></dt><dd>go to the event before, after, around and inside</dd>
<dt><kbd>Enter</kbd></dt><dd>open the detail of the selected event</dd>
<dt><kbd>Escape</kbd></dt><dd>clear the selection</dd>
</dl>
";
