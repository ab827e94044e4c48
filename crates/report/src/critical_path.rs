//! The critical path as text: what bounds the steps, the kinds of time on it, and what would save
//! most.

use mindprof_answers::{Bound, CriticalPath, PathKind, PathRow};
use mindprof_formats::counted;
use mindprof_model::Nanos;

use crate::functions::{CodeLayout, short_place};
use crate::grid::{Align, cut, grid, push_line, push_wrapped};
use crate::steps::{differ, percent, short_time};
use crate::verdict::incomplete_text;

/// The least width of the critical path.
const LEAST_WIDTH: usize = 60;

/// The warning that the path is not that of the recording.
const DOUBT: &str = "Do not trust this path: work waits for something that the recording does not show, so \
     a replay takes far more or far less time than the recording. The path is that of the replay, \
     and savings are left out.";

/// Returns the critical path as text, as `mindprof critical-path` prints it.
pub fn critical_path_text(path: &CriticalPath, layout: CodeLayout) -> String {
    let layout = CodeLayout {
        width: layout.width.map(|width| width.max(LEAST_WIDTH)),
        ..layout
    };
    let mut text = String::new();
    if path.pieces.is_empty() {
        push_line(&mut text, "No critical path: nothing ran on the CPU");
        return text;
    }
    let total = path.split.total();
    let what = if path.has_steps {
        format!("Critical path of {}", counted(path.steps as u64, "step"))
    } else {
        "Critical path of the recording, which has no steps".into()
    };
    let each = if path.steps == 1 { "" } else { " on average" };
    let first = format!(
        "{what}: {}{each}, bound by {} ({})",
        short_time(total),
        bound_name(path.bound_by),
        percent(bound_time(path), total)
    );
    push_wrapped(&mut text, &first, layout.width);
    if let Some(incomplete) = incomplete_text(&path.incomplete) {
        push_wrapped(&mut text, &incomplete, layout.width);
    }
    if path.is_doubtful {
        push_wrapped(&mut text, DOUBT, layout.width);
    }
    push_wrapped(&mut text, &profiler_text(path), layout.width);
    text.push('\n');
    push_kinds(&mut text, path);
    let has_saving = push_lists(&mut text, path, layout);
    if has_saving && !path.is_doubtful {
        text.push('\n');
        let note = "Saves: how much shorter a step would be without it, by a replay of what \
                    depends on what. Work beside the path takes its place, so savings do not add \
                    up.";
        push_wrapped(&mut text, note, layout.width);
    }
    text
}

/// Returns the name of what bounds steps.
pub(crate) const fn bound_name(bound: Bound) -> &'static str {
    match bound {
        Bound::Cpu => "the CPU",
        Bound::Gpu => "the GPU",
        Bound::Communication => "communication",
    }
}

fn bound_time(path: &CriticalPath) -> Nanos {
    let is_bound = |kind: PathKind| kind.bound() == path.bound_by;
    let times = path.split.iter().filter(|(kind, _)| is_bound(*kind));
    Nanos(times.map(|(_, time)| time.0).sum())
}

/// Reports the profiler's own cost.
fn profiler_text(path: &CriticalPath) -> String {
    let (mut recorded, own) = (short_time(path.recorded), path.profiler());
    if path.is_recorded {
        return format!(
            "The profiler's own cost is part of it: about {} ({}) would be gone without a profiler",
            short_time(own),
            percent(own, path.replayed)
        );
    }
    if differ(path.recorded, path.replayed) {
        recorded = format!(
            "{recorded}, and a replay of that takes {}",
            short_time(path.replayed)
        );
    }
    if own == Nanos::ZERO {
        return format!("Recorded were {recorded}; the profiler's own cost is hidden behind it");
    }
    format!(
        "Recorded were {recorded}, of which about {} ({}) are the profiler's own cost and left out",
        short_time(own),
        percent(own, path.replayed)
    )
}

fn push_kinds(text: &mut String, path: &CriticalPath) {
    let mut kinds: Vec<(PathKind, Nanos)> = (path.split.iter())
        .filter(|(_, time)| *time > Nanos::ZERO)
        .collect();
    kinds.sort_by_key(|&(kind, time)| (std::cmp::Reverse(time), kind));
    let rows: Vec<Vec<String>> = kinds
        .into_iter()
        .map(|(kind, time)| {
            vec![
                short_time(time),
                percent(time, path.split.total()),
                kind.name().into(),
            ]
        })
        .collect();
    let columns = [
        ("On path", Align::Right),
        ("Share", Align::Right),
        ("Kind", Align::Left),
    ];
    text.push_str(&grid(&columns, &rows));
}

/// Adds the lists of owners, and returns whether there are any.
fn push_lists(text: &mut String, path: &CriticalPath, layout: CodeLayout) -> bool {
    let lists = [
        ("Your function", &path.functions),
        ("Module", &path.modules),
        ("Operator, with its kernels", &path.operators),
        ("Kernel", &path.kernels),
    ];
    let mut has_any = false;
    for (header, rows) in lists {
        let shown = &rows[..rows.len().min(layout.rows)];
        if shown.is_empty() {
            continue;
        }
        has_any = true;
        text.push('\n');
        let columns = [
            ("On path", Align::Right),
            ("Share", Align::Right),
            ("Saves", Align::Right),
            (header, Align::Left),
        ];
        let saves: Vec<String> = shown.iter().map(saves_text).collect();
        let widest = saves.iter().map(|saves| saves.chars().count()).max();
        let room = layout.width.map(|width| {
            let numbers = 9 + 7 + widest.unwrap_or(0).max(5) + 2;
            width.saturating_sub(numbers).max(20)
        });
        let rows: Vec<Vec<String>> = (shown.iter().zip(saves))
            .map(|(row, saves)| {
                vec![
                    short_time(row.time),
                    format!("{:.0} %", 100.0 * row.share),
                    saves,
                    row_name(row, room),
                ]
            })
            .collect();
        text.push_str(&grid(&columns, &rows));
    }
    has_any
}

fn saves_text(row: &PathRow) -> String {
    let Some(saves) = row.saves.map(short_time) else {
        return "-".into();
    };
    if row.is_replayed {
        saves
    } else {
        format!("<= {saves}")
    }
}

fn row_name(row: &PathRow, room: Option<usize>) -> String {
    match &row.place {
        Some(place) => {
            let name = format!("{}:{} {}", place.file, place.line, place.function);
            short_place(&name, room.unwrap_or(usize::MAX))
        }
        None => cut(&row.name, room),
    }
}
