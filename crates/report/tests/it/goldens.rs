//! Compares the tables of torch's own traces with those that torch printed, and draws flame graphs of
//! real traces.

use std::fmt::Write;

use mindprof_analyze::{Amount, Amounts, Analysis, GroupBy, Metric, StackMetric, averages};
use mindprof_formats::{RowOptions, average_rows};
use mindprof_report::{TableFacts, TableOptions, table, table_of_rows, write_flamegraph};

use crate::corpus::Session;
use crate::torchs_view::{as_torch_saw_it, torchs_self_times};

const BY_SHAPE: GroupBy = GroupBy {
    input_shapes: true,
    stack_frames: 0,
    python_functions: false,
};
const BY_STACK: GroupBy = GroupBy {
    input_shapes: false,
    stack_frames: 5,
    python_functions: false,
};

/// The tables that torch printed of a session, with the arguments it was given.
const TABLES: [(&str, GroupBy, Option<&str>, Option<usize>); 7] = [
    ("default", GROUPED_BY_NAME, None, Some(100)),
    (
        "sort:self_cpu_time_total",
        GROUPED_BY_NAME,
        Some("self_cpu_time_total"),
        None,
    ),
    ("sort:count,limit5", GROUPED_BY_NAME, Some("count"), Some(5)),
    (
        "sort:self_cuda_time_total",
        GROUPED_BY_NAME,
        Some("self_cuda_time_total"),
        Some(20),
    ),
    ("by_input_shape", BY_SHAPE, Some("cpu_time_total"), Some(25)),
    (
        "sort:self_cpu_memory_usage",
        GROUPED_BY_NAME,
        Some("self_cpu_memory_usage"),
        Some(10),
    ),
    ("by_stack_5", BY_STACK, Some("self_cpu_time_total"), Some(5)),
];

const GROUPED_BY_NAME: GroupBy = GroupBy {
    input_shapes: false,
    stack_frames: 0,
    python_functions: false,
};

#[test]
fn tables_are_torchs_tables() {
    let mut tables = 0;
    for session in Session::ALL {
        let analysis = Analysis::build(as_torch_saw_it(session));
        let says = session.says();
        for (name, group_by, sort_by, row_limit) in TABLES {
            let Some(expected) = says["tables"][name].as_str() else {
                continue;
            };
            let options = TableOptions {
                rows: RowOptions {
                    sort_by: sort_by.map(|key| key.parse().unwrap()),
                    row_limit,
                    ..RowOptions::default()
                },
                ..TableOptions::default()
            };
            let rows = averages(&analysis, group_by);
            let expected = with_cells_under_their_headers(expected);
            let mut found = table(&analysis, &rows, group_by, &options);
            if session.has_overlaps() {
                assert_ne!(found, expected, "{session:?} {name}");
                let mut rows = average_rows(&analysis, &rows, group_by);
                for (row, own) in rows.iter_mut().zip(torchs_self_times(&analysis, group_by)) {
                    let amounts = Amounts::read(|metric| {
                        Ok::<_, ()>(match metric {
                            Metric::SelfCpuTimeTotal => Amount::Float(own as f64 / 1e3),
                            other => row.amounts[other],
                        })
                    });
                    row.amounts = amounts.unwrap();
                }
                found = table_of_rows(&rows, &TableFacts::of(&analysis), &options).unwrap();
            }
            assert_eq!(found, expected, "{session:?} {name}");
            tables += 1;
        }
    }
    assert_eq!(tables, 33);
}

/// torch writes the cells of FLOPs under "Source Location" and the frames under the FLOPs; this
/// puts them right.
fn with_cells_under_their_headers(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let header = lines[1];
    let (Some(_), Some(_)) = (header.find("Source Location"), header.find("FLOPs")) else {
        return text.into();
    };
    let widths: Vec<usize> = lines[0].split_whitespace().map(str::len).collect();
    let (width, number) = (widths[widths.len() - 2], widths[widths.len() - 1]);
    let begin: usize = widths[..widths.len() - 2]
        .iter()
        .map(|width| width + 2)
        .sum();
    let mut corrected = String::new();
    for (index, line) in lines.iter().enumerate() {
        let is_row = index > 2 && line.len() >= begin && !line.starts_with(['-', 'S']);
        if is_row {
            let flops = line[begin..begin + width].trim();
            let frame = line[begin + width..].trim();
            corrected += &line[..begin];
            write!(corrected, "{frame:<width$}  {flops:>number$}  ").unwrap();
        } else {
            corrected += line;
        }
        corrected.push('\n');
    }
    corrected
}

#[test]
fn every_session_has_a_flame_graph() {
    for session in Session::ALL {
        let analysis = Analysis::build(as_torch_saw_it(session));
        let mut out = Vec::new();
        write_flamegraph(&analysis, StackMetric::SelfCpuTime, &mut out).unwrap();
        let picture = String::from_utf8(out).unwrap();
        assert!(
            picture.contains("aten::") && picture.ends_with("</svg>"),
            "{session:?}"
        );
    }
}
