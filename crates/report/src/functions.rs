//! The user's own functions, lines and modules as text, from the conclusions of `mindprof_answers`.

use mindprof_analyze::microseconds;
use mindprof_answers::{Called, Cost, FunctionCost, Functions, LineCost, ModuleCost, Modules};
use mindprof_model::Nanos;

use crate::grid::{Align, characters, cut, grid, push_line, push_wrapped};
use crate::number::{memory_text, time_text};

/// The layout of a list of functions, lines or modules.
#[derive(Clone, Copy, Debug)]
pub struct CodeLayout {
    /// The largest number of rows.
    pub rows: usize,
    /// The largest width, or `None` for no limit.
    pub width: Option<usize>,
}

impl Default for CodeLayout {
    fn default() -> Self {
        Self {
            rows: 20,
            width: Some(100),
        }
    }
}

/// Returns the user's functions as text, by decreasing own time.
pub fn functions_text(functions: &Functions, layout: CodeLayout) -> String {
    let row = |row: &FunctionCost| Row {
        own: row.own,
        total: row.total,
        place: match row.hottest_line.or(row.line) {
            Some(line) => format!("{}:{line} {}", row.file, row.function),
            None => format!("{} {}", row.file, row.function),
        },
        mostly: mostly_text(row.mostly.as_ref()),
    };
    let here: Vec<Row> = functions.functions.iter().map(row).collect();
    let elsewhere: Vec<Row> = functions.elsewhere.iter().map(row).collect();
    lists(functions, &here, &elsewhere, "functions", layout)
}

/// Returns the lines of the user's code as text, by decreasing own time.
pub fn lines_text(functions: &Functions, layout: CodeLayout) -> String {
    let row = |row: &LineCost| Row {
        own: row.own,
        total: row.total,
        place: if row.is_definition {
            format!("{}:{} def {}", row.file, row.line, row.function)
        } else {
            format!("{}:{} {}", row.file, row.line, row.function)
        },
        mostly: mostly_text(row.mostly.as_ref()),
    };
    let here: Vec<Row> = functions.lines.iter().map(row).collect();
    let elsewhere: Vec<Row> = functions.lines_elsewhere.iter().map(row).collect();
    let mut text = lists(functions, &here, &elsewhere, "lines", layout);
    if functions.lines.iter().any(|row| row.is_definition) {
        let note = "def: code of that function at lines that were not recorded";
        push_wrapped(&mut text, note, layout.width);
    }
    text
}

/// Returns the modules as text, by decreasing own time.
pub fn modules_text(modules: &Modules, layout: CodeLayout) -> String {
    let mut text = String::new();
    if modules.modules.is_empty() {
        let note = "No modules in the profile: record with stacks (with_stack=True or \
                    with_modules=True)";
        push_wrapped(&mut text, note, layout.width);
        return text;
    }
    let shown = &modules.modules[..modules.modules.len().min(layout.rows)];
    let whole = modules.total.time();
    let own = |of: fn(&Cost) -> Nanos| {
        let cells = shown.iter().map(move |row| time(of(&row.own)));
        cells.collect::<Vec<String>>()
    };
    let name = |row: &ModuleCost| match row.instances {
        0 | 1 => row.module.clone(),
        several => format!("{} ({several})", row.module),
    };
    let backward = |row: &ModuleCost| share(row.own.backward, row.own.cpu);
    let calls = |row: &ModuleCost| row.calls.map_or(String::new(), |calls| calls.to_string());
    let mut columns = vec![
        Column::new("Own CPU", 9, own(|own| own.cpu)),
        Column::new("Own device", 9, own(|own| own.device)),
        Column::new("Own %", 8, cells(shown, |row| share(row.own.time(), whole))),
        Column::new("Total", 7, cells(shown, |row| time(row.total.time()))),
        Column::new("Backward", 5, cells(shown, backward)),
        Column::new(
            "Own memory",
            2,
            cells(shown, |row| memory_text(row.own.memory)),
        ),
        Column::new(
            "Own FLOPs",
            4,
            cells(shown, |row| flops_text(row.own.flops)),
        ),
        Column::new("Calls", 3, cells(shown, calls)),
        Column::left("Module", 10, cells(shown, name)),
    ];
    let has = |of: fn(&Cost) -> bool| modules.modules.iter().any(|row| of(&row.own));
    let is_empty = |header: &str| match header {
        "Own device" => !has(|own| own.device > Nanos::ZERO),
        "Backward" => !has(|own| own.backward > Nanos::ZERO),
        "Own memory" => !has(|own| own.memory != 0),
        "Own FLOPs" => !has(|own| own.flops > 0),
        "Calls" => modules.modules.iter().all(|row| row.calls.is_none()),
        _ => false,
    };
    columns.retain(|column| !is_empty(column.header));
    text.push_str(&fitting(columns, layout.width));
    push_more(&mut text, modules.modules.len() - shown.len(), "modules");
    if modules.outside.time() > Nanos::ZERO {
        let outside = modules.outside.time();
        push_line(
            &mut text,
            &format!(
                "Outside of modules: {} ({})",
                time(outside),
                share(outside, whole)
            ),
        );
    }
    text
}

/// A column that is dropped if there is not enough room for it.
struct Column {
    header: &'static str,
    align: Align,
    importance: u8,
    cells: Vec<String>,
}

impl Column {
    const fn new(header: &'static str, importance: u8, cells: Vec<String>) -> Self {
        Self {
            header,
            align: Align::Right,
            importance,
            cells,
        }
    }

    fn left(header: &'static str, importance: u8, cells: Vec<String>) -> Self {
        Self {
            align: Align::Left,
            ..Self::new(header, importance, cells)
        }
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| characters(cell));
        cells.chain([characters(self.header)]).max().unwrap_or(0) + 2
    }
}

fn cells<T>(rows: &[T], cell: impl Fn(&T) -> String) -> Vec<String> {
    rows.iter().map(cell).collect()
}

/// Lays out columns, without the least important ones if they do not fit.
fn fitting(mut columns: Vec<Column>, width: Option<usize>) -> String {
    let limit = width.unwrap_or(usize::MAX).saturating_add(2);
    while columns.iter().map(Column::width).sum::<usize>() > limit && columns.len() > 2 {
        let least = columns
            .iter()
            .enumerate()
            .min_by_key(|(_, column)| column.importance);
        let (least, _) = least.expect("there are columns");
        columns.remove(least);
    }
    let headers: Vec<(&str, Align)> = columns.iter().map(|it| (it.header, it.align)).collect();
    let count = columns.first().map_or(0, |column| column.cells.len());
    let rows: Vec<Vec<String>> = (0..count)
        .map(|row| {
            columns
                .iter()
                .map(|column| column.cells[row].clone())
                .collect()
        })
        .collect();
    grid(&headers, &rows)
}

struct Row {
    own: Cost,
    total: Cost,
    place: String,
    mostly: String,
}

fn mostly_text(mostly: Option<&Called>) -> String {
    mostly.map_or_else(String::new, |called| called.name.clone())
}

fn lists(
    functions: &Functions,
    here: &[Row],
    elsewhere: &[Row],
    what: &str,
    layout: CodeLayout,
) -> String {
    let mut text = String::new();
    if !functions.has_stacks {
        let note = "No Python stacks in the profile: record with stacks (with_stack=True)";
        push_wrapped(&mut text, note, layout.width);
        return text;
    }
    push_list(&mut text, here, functions.total, what, layout);
    push_notes(&mut text, functions, layout.width);
    if elsewhere.iter().any(|row| row.own.time() > Nanos::ZERO) {
        push_line(&mut text, "\nOn other threads and in other processes:");
        push_list(&mut text, elsewhere, functions.total, what, layout);
    }
    text
}

/// Reports the cost that the rows leave out, and how exact they are.
pub(crate) fn push_notes(text: &mut String, functions: &Functions, width: Option<usize>) {
    let outside = functions.outside.time();
    if outside > Nanos::ZERO {
        let share = share(outside, functions.total.time());
        push_line(
            text,
            &format!("Outside of your code: {} ({share})", time(outside)),
        );
    }
    if let Some((sampling, error)) = functions.sampling.zip(functions.share_error()) {
        let interval = sampling.interval_us as f64 / 1000.0;
        let note = format!(
            "Python time is sampled every {interval:.0} ms: shares are right within ± {:.1} points",
            (100.0 * error).max(0.1)
        );
        push_wrapped(text, &note, width);
    }
}

fn push_list(text: &mut String, rows: &[Row], total: Cost, what: &str, layout: CodeLayout) {
    let shown = &rows[..rows.len().min(layout.rows)];
    let has_device = total.device > Nanos::ZERO;
    let mut columns = vec![Column::new(
        "Own %",
        9,
        cells(shown, |row| share(row.own.time(), total.time())),
    )];
    if has_device {
        columns.extend([
            Column::new("Own CPU", 9, cells(shown, |row| time(row.own.cpu))),
            Column::new("Own device", 9, cells(shown, |row| time(row.own.device))),
        ]);
    } else {
        columns.extend([
            Column::new("Own time", 9, cells(shown, |row| time(row.own.cpu))),
            Column::new("Total", 9, cells(shown, |row| time(row.total.cpu))),
        ]);
    }
    let numbers: usize = columns.iter().map(Column::width).sum();
    let rest = layout
        .width
        .map_or(usize::MAX, |width| width.saturating_sub(numbers).max(24));
    let widest = |of: fn(&Row) -> &String| shown.iter().map(|row| characters(of(row))).max();
    let places = widest(|row| &row.place).unwrap_or(0);
    let mostly = widest(|row| &row.mostly).unwrap_or(0);
    // Places come first: what they call is cut to the rest, but to no less than 12 characters.
    let place = places.min(rest.saturating_sub(mostly.min(12) + 2));
    columns.extend([
        Column::left(
            "Where",
            9,
            cells(shown, |row| short_place(&row.place, place)),
        ),
        Column::left("Mostly", 1, {
            let mostly = rest.saturating_sub(place.max(5) + 2);
            cells(shown, |row| short_name(&row.mostly, mostly))
        }),
    ]);
    text.push_str(&fitting(columns, layout.width));
    push_more(text, rows.len() - shown.len(), what);
}

fn push_more(text: &mut String, more: usize, what: &str) {
    match more {
        0 => (),
        1 => push_line(
            text,
            &format!("1 more of the {what}: use --row-limit to show it"),
        ),
        more => push_line(
            text,
            &format!("{more} more {what}: use --row-limit to show them"),
        ),
    }
}

/// Shortens a place by its folders first, then at its front, so that file and line remain.
pub(crate) fn short_place(place: &str, limit: usize) -> String {
    let mut text = place;
    while characters(text) > limit {
        let file = text.split(' ').next().unwrap_or(text);
        let Some(folder) = file.find('/') else {
            return cut(text, Some(limit));
        };
        text = &text[folder + 1..];
    }
    text.into()
}

/// Shortens a dotted name by its first parts, which say least, then at its end.
pub(crate) fn short_name(name: &str, limit: usize) -> String {
    let mut text = name;
    while characters(text) > limit {
        let Some((_, rest)) = text.split_once('.') else {
            return cut(text, Some(limit));
        };
        text = rest;
    }
    text.into()
}

pub(crate) fn share(part: Nanos, whole: Nanos) -> String {
    format!("{:.1}%", 100.0 * part.0 as f64 / whole.0.max(1) as f64)
}

pub(crate) fn time(time: Nanos) -> String {
    time_text(microseconds(time), None)
}

fn flops_text(flops: u64) -> String {
    const UNITS: [&str; 6] = ["", "K", "M", "G", "T", "P"];
    let mut number = flops as f64;
    let mut unit = 0;
    while number >= 1000.0 && unit + 1 < UNITS.len() {
        number /= 1000.0;
        unit += 1;
    }
    format!("{number:.1}{}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lose_their_folders_before_their_file_and_line() {
        assert_eq!(short_place("a/b/c.py:7 f", 12), "a/b/c.py:7 f");
        assert_eq!(short_place("a/b/c.py:7 f", 10), "b/c.py:7 f");
        assert_eq!(short_place("a/b/c.py:7 function", 10), "c.py:7 ...");
    }

    #[test]
    fn names_lose_their_first_parts() {
        assert_eq!(short_name("nn.functional.relu", 15), "functional.relu");
        assert_eq!(short_name("aten::convolution", 9), "aten::...");
    }

    #[test]
    fn columns_that_do_not_fit_are_dropped_by_importance() {
        let columns = || {
            vec![
                Column::new("A", 9, vec!["1".into()]),
                Column::new("Bbbbbbbb", 1, vec!["2".into()]),
                Column::left("C", 9, vec!["3".into()]),
            ]
        };
        assert_eq!(
            fitting(columns(), Some(14)),
            "A  Bbbbbbbb  C\n-  --------  -\n1         2  3\n"
        );
        assert_eq!(fitting(columns(), Some(13)), "A  C\n-  -\n1  3\n");
    }
}
