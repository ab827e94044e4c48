//! The user's own functions and lines as text.

use mindprof_analyze::microseconds;
use mindprof_answers::{Called, Cost, FunctionCost, Functions, LineCost};
use mindprof_model::Nanos;

use crate::grid::{Align, characters, cut, grid, push_line};
use crate::number::time_text;

/// The names of ranges that the autograd engine opens begin with this.
const ENGINE_PREFIX: &str = "autograd::engine::evaluate_function: ";

/// The layout of a list of functions or lines.
#[derive(Clone, Copy, Debug)]
pub struct CodeLayout {
    /// The largest number of rows.
    pub rows: usize,
    /// The largest width, or `None` for no limit.
    pub width: Option<usize>,
}

/// Returns the user's functions as text, by decreasing own time.
pub fn functions_text(functions: &Functions, layout: CodeLayout) -> String {
    let row = |row: &FunctionCost| {
        let line = row.hottest_line.or(row.line);
        let place = match line {
            Some(line) => format!("{}:{line} {}", row.file, row.function),
            None => format!("{} {}", row.file, row.function),
        };
        Row::new(functions, row.own, row.total, place, row.mostly.as_ref())
    };
    let here: Vec<Row> = functions.functions.iter().map(row).collect();
    let elsewhere: Vec<Row> = functions.elsewhere.iter().map(row).collect();
    lists(functions, &here, &elsewhere, "functions", layout)
}

/// Returns the lines of the user's code as text, by decreasing own time.
pub fn lines_text(functions: &Functions, layout: CodeLayout) -> String {
    let row = |row: &LineCost| {
        let place = if row.is_definition {
            format!(
                "{}:{} {} (Python code in it)",
                row.file, row.line, row.function
            )
        } else {
            format!("{}:{} {}", row.file, row.line, row.function)
        };
        Row::new(functions, row.own, row.total, place, row.mostly.as_ref())
    };
    let here: Vec<Row> = functions.lines.iter().map(row).collect();
    let elsewhere: Vec<Row> = functions.lines_elsewhere.iter().map(row).collect();
    lists(functions, &here, &elsewhere, "lines", layout)
}

/// Returns the name of something that is called, without addresses and prefixes that say nothing.
pub fn called_text(name: &str) -> String {
    if let Some(rest) = name.strip_prefix("<built-in ") {
        let words: Vec<&str> = rest.trim_end_matches('>').split(' ').collect();
        return match words.as_slice() {
            ["method", name, "of", "type", "object", ..] => (*name).into(),
            ["method", name, "of", class, ..] => format!("{class}.{name}"),
            ["method" | "function", name, ..] => (*name).into(),
            _ => name.into(),
        };
    }
    if let Some(node) = name.strip_prefix(ENGINE_PREFIX) {
        return node.into();
    }
    name.into()
}

struct Row {
    own: Nanos,
    share: f64,
    total: Nanos,
    place: String,
    mostly: String,
}

impl Row {
    fn new(
        functions: &Functions,
        own: Cost,
        total: Cost,
        place: String,
        mostly: Option<&Called>,
    ) -> Self {
        let whole = functions.total.time().0.max(1);
        Self {
            own: own.time(),
            share: 100.0 * own.time().0 as f64 / whole as f64,
            total: total.time(),
            place,
            mostly: mostly.map_or_else(String::new, |called| called_text(&called.name)),
        }
    }
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
        push_line(
            &mut text,
            "No Python stacks in the profile: record with stacks (with_stack=True)",
        );
        return text;
    }
    push_list(&mut text, here, what, layout);
    let outside = functions.outside.time();
    if outside > Nanos::ZERO {
        let share = 100.0 * outside.0 as f64 / functions.total.time().0.max(1) as f64;
        push_line(
            &mut text,
            &format!("Outside of your code: {} ({share:.1}%)", time(outside)),
        );
    }
    if elsewhere.iter().any(|row| row.own > Nanos::ZERO) {
        push_line(&mut text, "\nOn other threads and in other processes:");
        push_list(&mut text, elsewhere, what, layout);
    }
    text
}

fn push_list(text: &mut String, rows: &[Row], what: &str, layout: CodeLayout) {
    let shown = &rows[..rows.len().min(layout.rows)];
    let cells = |place: usize, mostly: usize| -> Vec<Vec<String>> {
        let cells = shown.iter().map(|row| {
            vec![
                time(row.own),
                format!("{:.1}%", row.share),
                time(row.total),
                cut_front(&row.place, place),
                cut(&row.mostly, Some(mostly)),
            ]
        });
        cells.collect()
    };
    let columns = [
        ("Own time", Align::Right),
        ("Own %", Align::Right),
        ("Total", Align::Right),
        ("Where", Align::Left),
        ("Mostly", Align::Left),
    ];
    // The numbers take about 32 characters; the rest is for the place and what it calls.
    let rest = layout
        .width
        .map_or(200, |width| width.saturating_sub(32).max(20));
    let mostly = shown.iter().map(|row| characters(&row.mostly)).max();
    let mostly = mostly.unwrap_or(0).min(rest * 2 / 5).max(6);
    text.push_str(&grid(
        &columns,
        &cells(rest.saturating_sub(mostly + 2), mostly),
    ));
    let more = rows.len() - shown.len();
    if more > 0 {
        push_line(text, &format!("{more} more {what}"));
    }
}

/// Cuts a text that is too long at its front, where paths say least.
fn cut_front(text: &str, limit: usize) -> String {
    let length = characters(text);
    if length <= limit {
        return text.into();
    }
    let kept = text.chars().skip(length - limit.saturating_sub(3));
    "...".chars().chain(kept).collect()
}

fn time(time: Nanos) -> String {
    time_text(microseconds(time), None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_addresses() {
        for (name, text) in [
            (
                "<built-in method sleep of module object at 0x7f>",
                "module.sleep",
            ),
            (
                "<built-in method item of Tensor object at 0x7f>",
                "Tensor.item",
            ),
            ("<built-in function len>", "len"),
            ("<built-in method addmm of type object at 0x7f>", "addmm"),
            (
                "autograd::engine::evaluate_function: MmBackward0",
                "MmBackward0",
            ),
            ("aten::mm", "aten::mm"),
        ] {
            assert_eq!(called_text(name), text);
        }
    }

    #[test]
    fn long_paths_are_cut_at_the_front() {
        assert_eq!(cut_front("a/b/c.py:7 f", 12), "a/b/c.py:7 f");
        assert_eq!(cut_front("a/b/c.py:7 f", 9), "...py:7 f");
    }
}
