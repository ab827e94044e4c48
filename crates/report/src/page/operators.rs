//! The operators: rows by name as `mindprof table` prints them, and the same rows split by shape,
//! line, module and dtype.

use mindprof_analyze::{Analysis, GroupBy, Metric, Percentiles, nanoseconds};
use mindprof_answers::{Label, Work};
use mindprof_formats::{Row, RowOptions, SortBy};
use mindprof_model::Nanos;

use super::contents::Contents;
use super::names::shown_name;
use super::table::{Cell, Column, Kind, Table, column};
use crate::diff::label_header;

/// The largest number of events for which rows are split by line, module and dtype. Each label costs
/// a further analysis of the profile.
const LABELLED_EVENTS: usize = 400_000;

/// The place of a range of the user that a device recorded.
const DEVICE_RANGE: &str = "device, range";

/// Explains the rows of devices.
const KERNELS_APART: &str = "\
<p class=\"quiet\">A kernel is a row of its own and part of the device time of the operator that launched it, so \
that the shares of operators sum to at most 100 %, and so do those of kernels. A range on a device spans work, and is not \
work itself.</p>\n";

/// The largest number of rows of a table.
const MOST_ROWS: usize = 5_000;

/// Returns the tables of operators: by name, by shape and by each label.
pub(super) fn operator_tables(contents: &Contents<'_>) -> Vec<Table> {
    let (analysis, work) = (contents.analysis, &contents.work);
    let profile = analysis.profile();
    let by_name = work.grouping(profile);
    let mut tables = vec![rows_table(analysis, work, by_name, None, "operators")];
    if !profile.inputs().is_empty() {
        let by_shape = GroupBy {
            input_shapes: true,
            ..by_name
        };
        tables.push(rows_table(
            analysis,
            work,
            by_shape,
            None,
            "operators-shape",
        ));
    }
    if profile.events().len() > LABELLED_EVENTS {
        return tables;
    }
    let has_stacks = contents.explanation.functions.has_stacks;
    let labels = [
        (Label::Line, "operators-line", has_stacks),
        (
            Label::Module,
            "operators-module",
            !contents.modules.modules.is_empty(),
        ),
        (
            Label::Dtype,
            "operators-dtype",
            !profile.inputs().is_empty(),
        ),
    ];
    for (label, id, _) in labels.into_iter().filter(|(.., is_known)| *is_known) {
        let view = label.view(analysis, &contents.own);
        let by_label = GroupBy {
            stack_frames: 1,
            ..by_name
        };
        tables.push(rows_table(&view, work, by_label, Some(label), id));
    }
    tables
}

/// Describes the sum that the shares of operators are parts of.
pub(super) const OF_ALL_THREADS: &str = "\
<p class=\"quiet\">CPU time is summed over all threads, those included that wait for another one. \
Self CPU % is a share of that sum.</p>\n";

/// Returns the sentences about the rows of devices, if there are such rows.
pub(super) const fn kernels_apart(has_device: bool) -> &'static str {
    if has_device { KERNELS_APART } else { "" }
}

/// Returns the reason why there are no tables by line, module and dtype, if that is their number of
/// events.
pub(super) fn not_labelled(contents: &Contents<'_>) -> Option<String> {
    let events = contents.analysis.profile().events().len();
    (events > LABELLED_EVENTS).then(|| {
        format!(
            "Rows by line, module and dtype are left out of pages with more than {LABELLED_EVENTS} \
             events: use mindprof table --group-by line"
        )
    })
}

fn rows_table(
    analysis: &Analysis,
    work: &Work,
    group_by: GroupBy,
    label: Option<Label>,
    id: &'static str,
) -> Table {
    let view = work.view(analysis, group_by);
    let analysis = view.as_ref().unwrap_or(analysis);
    let found = work.averages(analysis, group_by);
    let has_device = analysis.accelerator().is_some();
    let sort = if has_device {
        Metric::SelfDeviceTimeTotal
    } else {
        Metric::SelfCpuTimeTotal
    };
    let options = RowOptions {
        sort_by: Some(SortBy::Metric(sort)),
        row_limit: Some(MOST_ROWS),
        percentiles: label.is_none() && !group_by.input_shapes,
        device_ranges_last: true,
        ..RowOptions::default()
    };
    let rows = options.rows(analysis, &found.averages, group_by);
    let totals = mindprof_formats::self_totals(&rows);
    let mut columns = columns(group_by, label, has_device);
    let shown = options.shown(&rows);
    let caption = match (label, group_by.input_shapes) {
        (Some(label), _) => format!("Operators by {}", label.name()),
        (None, true) => "Operators by the shapes of their inputs".into(),
        (None, false) if group_by.python_functions => "Python functions".into(),
        (None, false) if has_device => "Operators and kernels".into(),
        (None, false) => "Operators".into(),
    };
    let cells = shown
        .into_iter()
        .map(|row| cells(row, group_by, label, has_device, totals));
    let mut cells: Vec<Vec<Cell>> = cells.collect();
    if has_device {
        // The columns that rows are sorted by come first: narrow windows show few.
        let first = columns
            .iter()
            .position(|column| column.title == "Self CPU")
            .expect("every table has it");
        let times = first..first + 6;
        columns[times.clone()].rotate_left(3);
        for row in &mut cells {
            row[times.clone()].rotate_left(3);
        }
    }
    let sorted_by = columns.iter().position(|column| match sort {
        Metric::SelfDeviceTimeTotal => column.title == "Self device",
        _ => column.title == "Self CPU",
    });
    Table {
        id,
        caption,
        columns,
        rows: cells,
        sorted_by,
    }
    .without_empty_columns()
}

fn columns(group_by: GroupBy, label: Option<Label>, has_device: bool) -> Vec<Column> {
    let mut columns = vec![column("Name", Kind::Name, "")];
    if has_device {
        columns.push(column(
            "Runs on",
            Kind::Text,
            "Kernels have rows of their own, beside those of the operators that launched them.",
        ));
    }
    if let Some(label) = label {
        columns.push(column(label_header(label), Kind::Text, ""));
    }
    if group_by.input_shapes {
        columns.push(column("Input shapes", Kind::Text, ""));
    }
    columns.extend([
        column(
            "Self CPU",
            Kind::Time,
            "CPU time without that of the operators inside, summed over all threads.",
        ),
        column(
            "Self CPU %",
            Kind::Share,
            "The share of the self CPU time of all rows, which is that of all threads.",
        ),
        column(
            "CPU total",
            Kind::Time,
            "CPU time with that of the operators inside.",
        ),
        column(
            "Self device",
            Kind::Time,
            "The time of the kernels that it launched itself, or of a kernel.",
        ),
        column(
            "Self device %",
            Kind::Share,
            "The share of the device time of all kernels in the recording. The shares of operators sum to at most 100 %, \
             and so do those of kernels.",
        ),
        column(
            "Device total",
            Kind::Time,
            "The time of all kernels launched inside of it, or the length of a range.",
        ),
        column("Calls", Kind::Count, ""),
        column("CPU mean", Kind::Time, "CPU total by calls."),
        column(
            "CPU p50",
            Kind::Time,
            "Half of the calls take at most this long.",
        ),
        column(
            "CPU longest",
            Kind::Time,
            "The longest call.",
        ),
        column(
            "Self CPU memory",
            Kind::Bytes,
            "Allocated minus freed, without operators inside.",
        ),
        column(
            "Self device memory",
            Kind::Bytes,
            "Allocated minus freed, without operators inside.",
        ),
        column(
            "FLOPs",
            Kind::Amount,
            "Floating-point operations, as far as there are formulas.",
        ),
    ]);
    columns
}

fn cells(
    row: &Row<'_>,
    group_by: GroupBy,
    label: Option<Label>,
    has_device: bool,
    (cpu, device): (f64, f64),
) -> Vec<Cell> {
    let time = |metric: Metric| Cell::time(nanoseconds(row.float(metric)));
    let share = |part: f64, whole: f64| {
        if whole > 0.0 {
            Cell::Number(part / whole)
        } else {
            Cell::Empty
        }
    };
    let kind = if row.is_device_work || row.is_device_range {
        "kernel"
    } else {
        "operator"
    };
    let mut cells = vec![Cell::detail(kind, &row.name)];
    if has_device {
        cells.push(Cell::text(if row.is_device_range {
            DEVICE_RANGE
        } else if row.is_device_work {
            "device"
        } else {
            "CPU"
        }));
    }
    if label.is_some() {
        let frame = row.stack.first().map(AsRef::as_ref);
        let frame = frame.filter(|frame: &&str| !frame.is_empty());
        cells.push(Cell::text(frame.map_or("".into(), shown_name)));
    }
    if group_by.input_shapes {
        // Kernels have no inputs.
        let shapes = row.shapes.as_deref().filter(|shapes| *shapes != "[]");
        cells.push(Cell::text(shapes.unwrap_or("")));
    }
    let spread = |of: fn(Percentiles) -> Nanos| {
        (row.percentiles).map_or(Cell::Empty, |one| Cell::time(of(one)))
    };
    let is_counted = row.is_device_work || row.float(Metric::SelfDeviceTimeTotal) > 0.0;
    let is_on_device = row.is_device_work || row.is_device_range;
    // A device spends no CPU time, and allocates no memory.
    let of_cpu = |cell: Cell| if is_on_device { Cell::Empty } else { cell };
    cells.extend([
        of_cpu(time(Metric::SelfCpuTimeTotal)),
        of_cpu(share(row.float(Metric::SelfCpuTimeTotal), cpu)),
        of_cpu(time(Metric::CpuTimeTotal)),
        // A range spans work, and the gaps between.
        if row.is_device_range {
            Cell::Empty
        } else {
            time(Metric::SelfDeviceTimeTotal)
        },
        if is_counted && !row.is_device_range {
            share(row.float(Metric::SelfDeviceTimeTotal), device)
        } else {
            Cell::Empty
        },
        time(Metric::DeviceTimeTotal),
        Cell::Number(row.float(Metric::Count)),
        of_cpu(time(Metric::CpuTime)),
        of_cpu(spread(|one| one.p50)),
        of_cpu(spread(|one| one.max)),
        of_cpu(Cell::Number(row.float(Metric::SelfCpuMemoryUsage))),
        of_cpu(Cell::Number(row.float(Metric::SelfDeviceMemoryUsage))),
        of_cpu(Cell::Number(row.float(Metric::Flops))),
    ]);
    cells
}
