//! The critical path: what determines the time of a step, and what would save most.

use std::fmt::Write as _;

use mindprof_answers::{CodePlace, CriticalPath, PathKind, PathRow, StepClass};
use mindprof_model::Nanos;
use serde_json::{Value, json};

use super::code::function_place;
use super::columns::Columns;
use super::contents::Contents;
use super::events::DrawnEvents;
use super::markup::{escaped, with_units};
use super::names::place_text;
use super::table::{Cell, Kind, Table, column};
use crate::steps::{is_share, percent, short_time};

/// The largest number of pieces that are drawn; the shortest ones of more are left out.
const MOST_PIECES: usize = 40_000;

/// Returns the section of the critical path as HTML; empty if there is no path.
pub(super) fn path_section(contents: &Contents<'_>) -> String {
    let path = &contents.path;
    if path.steps == 0 {
        return String::new();
    }
    let total = path.split.total();
    let kinds = path
        .split
        .iter()
        .filter(|&(_, time)| is_share(time, total, 1));
    let kinds = kinds.map(|(kind, time)| format!("{} {}", kind.name(), percent(time, total)));
    let mut html = String::from("<h2>Critical path</h2>\n");
    let _ = writeln!(
        html,
        "<p>{}: {}. The shares of the Overview differ, because they split the recorded time, which \
         includes the profiler's own cost. Savings come from a replay of what depends on what, and do not \
         add up.</p>",
        escaped(&with_units(&length_text(contents))),
        escaped(&with_units(&kinds.collect::<Vec<_>>().join(", ")))
    );
    for table in path_tables(contents) {
        html.push_str(&table.html());
    }
    html
}

/// Returns what the path is a path of. Its length is told if it differs from that of the median step,
/// which the Overview has.
fn length_text(contents: &Contents<'_>) -> String {
    let Nanos(length) = contents.path.unrecorded;
    let Nanos(median) = (contents.device_median()).unwrap_or(contents.explanation.steps.p50);
    let of = if contents.path.has_steps {
        "an average step"
    } else {
        "the recording"
    };
    if contents.path.has_steps && length.abs_diff(median) * 100 <= median {
        return format!("The critical path of {of} consists of");
    }
    format!(
        "Without the profiler's own cost, {of} takes {}. Its critical path consists of",
        short_time(Nanos(length))
    )
}

/// Returns the tables of the path.
pub(super) fn path_tables(contents: &Contents<'_>) -> Vec<Table> {
    let path = &contents.path;
    let lists = [
        (
            "path-functions",
            "Your functions on the critical path",
            "function",
            &path.functions,
        ),
        (
            "path-operators",
            "Operators on the critical path, with their kernels",
            "operator",
            &path.operators,
        ),
        (
            "path-modules",
            "Modules on the critical path",
            "module",
            &path.modules,
        ),
        (
            "path-kernels",
            "Kernels on the critical path",
            "kernel",
            &path.kernels,
        ),
    ];
    let lists = lists.into_iter().filter(|(.., rows)| !rows.is_empty());
    lists
        .map(|(id, caption, kind, rows)| path_table(contents, id, caption, kind, rows))
        .collect()
}

/// Returns the place of a function as text, and the name of its detail, as the table of functions has
/// them: the text has the hottest line, not that of the definition.
fn shown_place(contents: &Contents<'_>, place: &CodePlace) -> (String, String) {
    let functions = &contents.explanation.functions.functions;
    let known = functions.iter().find(|one| {
        let is_here = one.line.is_none_or(|line| line == place.line);
        one.file == place.file && one.function == place.function && is_here
    });
    known.map_or_else(
        || {
            let CodePlace {
                file,
                line,
                function,
            } = place;
            let text = place_text(function, file, *line);
            (text, format!("{file}:{line}:{function}"))
        },
        function_place,
    )
}

fn path_table(
    contents: &Contents<'_>,
    id: &'static str,
    caption: &str,
    kind: &str,
    rows: &[PathRow],
) -> Table {
    let columns = vec![
        column("Name", Kind::Name, ""),
        column(
            "On the path",
            Kind::Time,
            "Its time on the critical path of an average step.",
        ),
        column("Share", Kind::Share, "Its part of the path."),
        column(
            "Saves",
            Kind::Time,
            "How much shorter a step would be without it, at most.",
        ),
    ];
    let rows = rows.iter().map(|row| {
        let name = match &row.place {
            Some(place) => {
                let (text, key) = shown_place(contents, place);
                Cell::named(kind, &key, &text)
            }
            None => Cell::detail(kind, &row.name),
        };
        vec![
            name,
            Cell::time(row.time),
            Cell::Number(row.share),
            row.saves.map_or(Cell::Empty, Cell::time),
        ]
    });
    Table {
        id,
        caption: caption.into(),
        columns,
        rows: rows.collect(),
        sorted_by: Some(1),
    }
}

/// Returns the number of the colour of a kind, `.class-…` in `colours.css`: that of the class of step
/// time with the same meaning, or a further one.
const fn path_class(kind: PathKind) -> usize {
    const FURTHER: usize = StepClass::ALL.len();
    match kind {
        PathKind::Python => StepClass::Python as usize,
        PathKind::DataLoading => StepClass::DataLoading as usize,
        PathKind::Operators => StepClass::Operators as usize,
        PathKind::Runtime => StepClass::Runtime as usize,
        PathKind::Kernel => StepClass::Kernel as usize,
        PathKind::Copy => StepClass::Copy as usize,
        PathKind::Communication => StepClass::Communication as usize,
        PathKind::Wait => StepClass::Idle as usize,
        PathKind::Launch => FURTHER,
        PathKind::Gap => FURTHER + 1,
        PathKind::Profiler => FURTHER + 2,
    }
}

/// A stretch of the path of one kind, and the event that took most of it.
struct Stretch {
    start: Nanos,
    end: Nanos,
    kind: u64,
    event: Option<(Nanos, u32)>,
}

/// Writes the pieces of the path, those of one kind that follow each other as one, and returns the
/// names of the kinds.
pub(super) fn write_path(path: &CriticalPath, drawn: &DrawnEvents, columns: &mut Columns) -> Value {
    let mut stretches: Vec<Stretch> = Vec::new();
    for piece in &path.pieces {
        let (kind, end) = (piece.kind as u64, piece.start + piece.duration);
        let event = piece.event.and_then(|event| drawn.position(event));
        let event = event.map(|position| (piece.duration, position));
        match stretches.last_mut() {
            Some(last) if last.kind == kind && last.end == piece.start => {
                last.end = end;
                last.event = last.event.max(event);
            }
            Some(_) | None => stretches.push(Stretch {
                start: piece.start,
                end,
                kind,
                event,
            }),
        }
    }
    if stretches.len() > MOST_PIECES {
        let mut lengths: Vec<u64> = stretches
            .iter()
            .map(|one| one.end.0 - one.start.0)
            .collect();
        let short = lengths.len() - MOST_PIECES;
        let (_, least, _) = lengths.select_nth_unstable(short);
        let least = *least;
        stretches.retain(|one| one.end.0 - one.start.0 > least);
    }
    let collect = |value: &dyn Fn(&Stretch) -> u64| stretches.iter().map(value).collect::<Vec<_>>();
    columns.push_differences("path_start", &collect(&|one| one.start.0));
    columns.push("path_duration", &collect(&|one| one.end.0 - one.start.0));
    columns.push("path_kind", &collect(&|one| one.kind));
    columns.push_differences(
        "path_event",
        &collect(&|one| one.event.map_or(0, |(_, position)| u64::from(position) + 1)),
    );
    json!(PathKind::ALL.map(|kind| json!({"name": kind.name(), "class": path_class(kind)})))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::modules::STYLE;

    #[test]
    fn kinds_of_the_path_have_different_colours_in_both_themes() {
        let mut classes = PathKind::ALL.map(path_class);
        classes.sort_unstable();
        assert!(classes.windows(2).all(|pair| pair[0] < pair[1]));
        for class in classes {
            assert_eq!(STYLE.matches(&format!("--class-{class}: #")).count(), 2);
            assert!(STYLE.contains(&format!(".class-{class} {{")));
        }
    }
}
