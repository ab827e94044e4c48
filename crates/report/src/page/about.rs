//! About a report: the machine, versions and options of the recording, what was lost or repaired,
//! and what the page leaves out.

use std::fmt::Write as _;

use mindprof_answers::Track;
use mindprof_model::{DeviceKind, Profile};

use super::contents::Contents;
use super::events::DrawnEvents;
use super::markup::escaped;
use super::operators::not_labelled;
use super::report::{ReportOptions, events_text};
use super::table::{Cell, Kind, Table, column, counted};
use crate::advice::overhead_text;
use crate::grid::cut;
use crate::sentence::sentence;
use crate::steps::short_time;
use crate::table::loss_texts;
use crate::verdict::incomplete_text;

/// The largest width of a value of metadata.
const VALUE_WIDTH: usize = 400;

/// Metadata that lists sources and functions, which the page shows elsewhere or not at all.
const UNLISTED: [&str; 5] = [
    "mindprof_sources",
    "mindprof_functions",
    "mindprof_run",
    "mindprof_run_facts",
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
    html
}

/// Returns how to get at the data elsewhere, and the keys. `panes` is the number of panes that keys
/// lead to.
pub(super) fn help(panes: usize) -> String {
    HELP.replace("{panes}", &panes.min(9).to_string())
}

fn facts(contents: &Contents<'_>, drawn: &DrawnEvents, options: &ReportOptions<'_>) -> Vec<String> {
    let profile = contents.analysis.profile();
    let explanation = &contents.explanation;
    let events = events_text(profile.events().len() as u64, profile.span());
    let mut facts = vec![sentence(&events)];
    facts.extend(date_text(profile.reference_unix_ns()).map(|date| format!("Recorded on {date}")));
    if explanation.advice.steps > 0 {
        facts.push(overhead_text(&explanation.advice));
    }
    match &loss_texts(profile.loss())[..] {
        [] => facts.push(
            incomplete_text(&explanation.advice.incomplete)
                .unwrap_or_else(|| "No event was lost".into()),
        ),
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
    facts.push("1 KB is 1,024 bytes and 1 MB is 1,048,576 bytes, as in the tables of torch".into());
    facts.push(format!("Written by mindprof {}", env!("CARGO_PKG_VERSION")));
    facts
}

/// The seconds of a day, and of thirty years after 1970, before which no profiler recorded: times
/// of a trace may count from the start of a machine.
const DAY: u64 = 86_400;
const YEAR_2000: u64 = 946_684_800;

/// Returns a time since the Unix epoch as a date and a time of day; `None` if it is no such time.
fn date_text(unix_ns: u64) -> Option<String> {
    let seconds = unix_ns / 1_000_000_000;
    if seconds < YEAR_2000 {
        return None;
    }
    let (mut day, time) = ((seconds - YEAR_2000) / DAY, seconds % DAY);
    let mut year = 2000;
    while day >= days_of(year).iter().sum() {
        day -= days_of(year).iter().sum::<u64>();
        year += 1;
    }
    let mut month = 0;
    while day >= days_of(year)[month] {
        day -= days_of(year)[month];
        month += 1;
    }
    let (hour, minute) = (time / 3600, time / 60 % 60);
    Some(format!(
        "{year}-{:02}-{:02} at {hour:02}:{minute:02} UTC",
        month + 1,
        day + 1
    ))
}

/// Returns the number of days of each month.
const fn days_of(year: u64) -> [u64; 12] {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let february = if is_leap { 29 } else { 28 };
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
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
    let name = profile.strings().text(thread.name);
    let device = || format!("{}:{}", profile.device_name(track.device), thread.process);
    let place = match thread.number() {
        Some(number) if track.device == DeviceKind::Cpu => {
            format!("process {}, thread {number}", thread.process)
        }
        Some(number) => format!("{}, stream {number}", device()),
        None => device(),
    };
    vec![
        Cell::text(name),
        Cell::text(place),
        Cell::count(track.events),
        Cell::time(track.busy),
    ]
}

const HELP: &str = "\
<h2>Elsewhere</h2>
<ul class=\"facts\">
<li>Every table here is a command too: <code>mindprof advise</code>, <code>steps</code>, <code>table</code>, <code>functions</code>, <code>lines</code>, <code>modules</code>, <code>device</code>, <code>critical-path</code>, <code>memory</code>, <code>diff</code>.</li>
<li>To open the whole trace in Perfetto: <code>mindprof convert TRACE trace.pftrace</code>, then open <code>trace.pftrace</code> at ui.perfetto.dev. Nothing is uploaded.</li>
<li>The address of the page keeps the view: a copied link shows what you see.</li>
</ul>
<h2>Keys</h2>
<dl class=\"keys\">
<dt><kbd>1</kbd> to <kbd>{panes}</kbd></dt><dd>go to a pane</dd>
<dt><kbd>/</kbd></dt><dd>find a name</dd>
<dt><kbd>W</kbd> <kbd>S</kbd></dt><dd>zoom in and out</dd>
<dt><kbd>A</kbd> <kbd>D</kbd></dt><dd>move left and right</dd>
<dt><kbd>&larr;</kbd> <kbd>&rarr;</kbd> <kbd>&uarr;</kbd> <kbd>&darr;</kbd></dt><dd>go to the event before, after, around and inside</dd>
<dt><kbd>Enter</kbd></dt><dd>open all events with the name of the selected one</dd>
<dt><kbd>Escape</kbd></dt><dd>clear the selection</dd>
</dl>
";

#[cfg(test)]
mod tests {
    use super::date_text;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let date = |seconds: u64| date_text(seconds * 1_000_000_000);
        assert_eq!(date(0), None);
        assert_eq!(date(946_684_799), None);
        for (seconds, expected) in [
            (946_684_800, "2000-01-01 at 00:00 UTC"),
            (951_782_400, "2000-02-29 at 00:00 UTC"),
            (1_735_689_599, "2024-12-31 at 23:59 UTC"),
            (4_107_542_400, "2100-03-01 at 00:00 UTC"),
        ] {
            assert_eq!(date(seconds).as_deref(), Some(expected));
        }
        assert!(date_text(u64::MAX).is_some_and(|date| date.starts_with("2554-07-21")));
    }
}
