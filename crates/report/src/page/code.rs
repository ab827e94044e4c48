//! The user's functions and lines and the modules of the model, with what they cost.

use mindprof_answers::{Called, Cost, FunctionCost, LineCost, ModuleCost};
use mindprof_model::Nanos;

use super::contents::Contents;
use super::names::place_text;
use super::table::{Cell, Column, Kind, Table, column};

/// Explains the words of the tables of functions, lines and modules.
pub(super) const OWN_AND_TOTAL: &str = "\
<p class=\"quiet\">Own is the time of a function with the operators and libraries that it calls, without other \
functions of yours; Total is with them. The Self time of a single call, in the timeline and in details, is \
without anything inside of it.</p>\n";

/// Returns the columns of costs that follow a name.
fn cost_columns() -> [Column; 7] {
    [
        column(
            "Own",
            Kind::Share,
            "The part of the program's time, without other functions of yours.",
        ),
        column(
            "Own CPU",
            Kind::Time,
            "CPU time of it and of the operators and libraries that it calls.",
        ),
        column(
            "Own device",
            Kind::Time,
            "The time of the kernels that it launches.",
        ),
        column(
            "Total",
            Kind::Share,
            "The part of the program's time, with everything that it calls.",
        ),
        column(
            "Python",
            Kind::Time,
            "The part of the own CPU time that is Python code.",
        ),
        column(
            "Backward",
            Kind::Time,
            "The part of the own CPU time that is backward work.",
        ),
        column(
            "Own memory",
            Kind::Bytes,
            "Bytes allocated minus bytes freed.",
        ),
    ]
}

fn cost_cells(own: &Cost, total: &Cost, whole: Nanos) -> [Cell; 7] {
    [
        Cell::share(own.time(), whole),
        Cell::time(own.cpu),
        Cell::time(own.device),
        Cell::share(total.time(), whole),
        Cell::time(own.python),
        Cell::time(own.backward),
        Cell::bytes(own.memory),
    ]
}

fn mostly(called: Option<&Called>) -> Cell {
    called.map_or(Cell::Empty, |called| Cell::text(&*called.name))
}

/// Returns the table of the user's functions on the main thread, at most `limit` of them.
pub(super) fn functions_table(
    contents: &Contents<'_>,
    id: &'static str,
    limit: Option<usize>,
) -> Table {
    let functions = &contents.explanation.functions;
    table_of_functions(
        id,
        "Your functions",
        &functions.functions,
        functions.total.time(),
        limit,
    )
}

fn table_of_functions(
    id: &'static str,
    caption: &str,
    functions: &[FunctionCost],
    whole: Nanos,
    limit: Option<usize>,
) -> Table {
    let mut columns = vec![column("Function", Kind::Name, "")];
    columns.extend(cost_columns());
    columns.push(column("Calls", Kind::Count, ""));
    columns.push(column(
        "Mostly",
        Kind::Text,
        "The largest part of its own cost.",
    ));
    let rows = functions
        .iter()
        .take(limit.unwrap_or(usize::MAX))
        .map(|one| {
            let (place, key) = function_place(one);
            let mut row = vec![Cell::named("function", &key, &place)];
            row.extend(cost_cells(&one.own, &one.total, whole));
            row.push(one.calls.map_or(Cell::Empty, Cell::count));
            row.push(mostly(one.mostly.as_ref()));
            row
        });
    Table {
        id,
        caption: caption.into(),
        columns,
        rows: rows.collect(),
        sorted_by: Some(1),
    }
    .without_empty_columns()
}

/// Returns the place of a function as text, and as the name of its detail.
pub(super) fn function_place(one: &FunctionCost) -> (String, String) {
    let FunctionCost { file, function, .. } = one;
    let line = one.line.map_or_else(String::new, |line| line.to_string());
    let shown = one.hottest_line.or(one.line);
    let text = match shown {
        Some(shown) => place_text(function, file, shown),
        None => format!("{function} ({file})"),
    };
    (text, format!("{file}:{line}:{function}"))
}

fn lines_table(id: &'static str, caption: &str, lines: &[LineCost], whole: Nanos) -> Table {
    let mut columns = vec![column("Line", Kind::Name, "")];
    columns.extend(cost_columns());
    columns.push(column(
        "Mostly",
        Kind::Text,
        "The largest part of its own cost.",
    ));
    let rows = lines.iter().map(|one| {
        let LineCost {
            file,
            line,
            function,
            ..
        } = one;
        let key = format!("{file}:{line}:{function}");
        let place = place_text(function, file, *line);
        let text = if one.is_definition {
            format!("{place}, somewhere in it")
        } else {
            place
        };
        let mut row = vec![Cell::named("line", &key, &text)];
        row.extend(cost_cells(&one.own, &one.total, whole));
        row.push(mostly(one.mostly.as_ref()));
        row
    });
    Table {
        id,
        caption: caption.into(),
        columns,
        rows: rows.collect(),
        sorted_by: Some(1),
    }
    .without_empty_columns()
}

/// Returns the caption of lines. Calls are recorded with the line of the definition, so that without
/// stacks of operators there are functions in place of lines.
fn lines_caption(lines: &[LineCost]) -> &'static str {
    if lines.iter().all(|one| one.is_definition) {
        "Lines of your code: not recorded, so that these are functions by the line of their definition"
    } else {
        "Lines of your code"
    }
}

fn modules_table(modules: &[ModuleCost], whole: Nanos) -> Table {
    let mut columns = vec![column("Module", Kind::Name, "")];
    columns.extend(cost_columns());
    columns.push(column("Instances", Kind::Count, ""));
    columns.push(column("Calls", Kind::Count, ""));
    columns.push(column("FLOPs", Kind::Amount, ""));
    let rows = modules.iter().map(|one| {
        let mut row = vec![Cell::detail("module", &one.module)];
        row.extend(cost_cells(&one.own, &one.total, whole));
        row.push(Cell::count(one.instances));
        row.push(one.calls.map_or(Cell::Empty, Cell::count));
        row.push(Cell::Number(one.own.flops as f64));
        row
    });
    Table {
        id: "modules",
        caption: "Modules, forward and backward".into(),
        columns,
        rows: rows.collect(),
        sorted_by: Some(1),
    }
    .without_empty_columns()
}

/// Returns the tables of functions, lines and modules that have rows.
pub(super) fn code_tables(contents: &Contents<'_>) -> Vec<Table> {
    let functions = &contents.explanation.functions;
    let whole = functions.total.time();
    let modules = &contents.modules;
    let elsewhere = "Your functions on other threads and in other processes";
    let lines_elsewhere = "Lines on other threads and in other processes";
    let tables = [
        functions_table(contents, "functions", None),
        lines_table(
            "lines",
            lines_caption(&functions.lines),
            &functions.lines,
            whole,
        ),
        modules_table(&modules.modules, modules.total.time()),
        table_of_functions(
            "functions-elsewhere",
            elsewhere,
            &functions.elsewhere,
            whole,
            None,
        ),
        lines_table(
            "lines-elsewhere",
            lines_elsewhere,
            &functions.lines_elsewhere,
            whole,
        ),
    ];
    let tables = tables.into_iter().filter(|table| !table.rows.is_empty());
    tables.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u32, is_definition: bool) -> LineCost {
        LineCost {
            file: "train.py".into(),
            line: number,
            function: "step".into(),
            is_definition,
            own: Cost::default(),
            total: Cost::default(),
            share_error: None,
            mostly: None,
        }
    }

    #[test]
    fn functions_in_place_of_lines_are_called_functions() {
        let whole = [line(7, true), line(20, true)];
        assert!(lines_caption(&whole).contains("not recorded, so that these are functions"));
        let mixed = [line(7, true), line(8, false)];
        assert_eq!(lines_caption(&mixed), "Lines of your code");
        let table = lines_table("lines", "", &mixed, Nanos(1)).json();
        let texts = [0, 1].map(|row| table["rows"][row][0][0].clone());
        assert_eq!(
            texts,
            ["step (train.py:7), somewhere in it", "step (train.py:8)"]
        );
    }
}
