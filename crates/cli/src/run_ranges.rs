//! Rows of traces that `mindprof run` left: imports and steps are no rows of the table, and a line
//! each tells of them instead.

use std::collections::BTreeMap;
use std::path::Path;

use mindprof_analyze::{
    Analysis, GroupBy, Metric, stacks_without_calls, time_inside, without_calls,
};
use mindprof_formats::{Row, RunRanges};
use mindprof_report::time_text;

use crate::output::tell;
use crate::units::count;

/// How the ranges of imports begin.
const IMPORT: &str = "import ";

/// How many of the imported modules are named, and from which share of their time on.
const NAMED_MODULES: usize = 3;
const NAMED_SHARE: f64 = 0.1;

/// Returns what the rows of a run are made of: without calls of Python functions, so that ranges
/// have the time of those in them as their own, unless these have rows too.
pub(crate) fn without_unneeded_calls(analysis: Analysis, group_by: GroupBy) -> Analysis {
    if group_by.python_functions {
        return analysis;
    }
    Analysis::build(if group_by.stack_frames > 0 {
        stacks_without_calls(&analysis)
    } else {
        without_calls(analysis.profile())
    })
}

/// Takes the ranges of a run out of the rows, and says so on stderr.
pub(crate) fn take_ranges<'a>(
    ranges: &RunRanges,
    (analysis, group_by): (&Analysis, GroupBy),
    rows: &mut Vec<Row<'a>>,
    trace: &Path,
) -> Vec<Row<'a>> {
    let imports: Vec<&str> = ranges.imports.iter().map(String::as_str).collect();
    let taken = ranges.take_from(rows, &time_inside(analysis, group_by, &imports));
    let (imports, steps): (Vec<_>, Vec<_>) = taken
        .iter()
        .partition(|row| ranges.imports.iter().any(|name| *name == row.name));
    let trace = trace.display();
    let shows = "--all-ranges has them as rows";
    if !imports.is_empty() {
        let said = imports_text(&imports);
        tell(&format!(
            "{trace}: imports: {said}, not in the table; {shows}"
        ));
    }
    let steps = steps.iter().map(|row| row.amounts[Metric::Count].whole());
    let steps = steps.sum::<i64>() as u64;
    if steps > 0 {
        let ranges = count(steps, "range");
        tell(&format!(
            "{trace}: steps: {ranges}, not in the table; `mindprof info` tells of them, {shows}"
        ));
    }
    taken
}

/// Returns how long imports took, and which modules the longest.
fn imports_text(imports: &[&Row<'_>]) -> String {
    let mut modules: BTreeMap<&str, f64> = BTreeMap::new();
    for row in imports {
        let module = row.name.strip_prefix(IMPORT).unwrap_or(&row.name);
        *modules.entry(module).or_default() += row.float(Metric::SelfCpuTimeTotal);
    }
    let total: f64 = modules.values().sum();
    let mut slowest: Vec<_> = modules.into_iter().collect();
    slowest.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let named: Vec<_> = slowest
        .iter()
        .take(NAMED_MODULES)
        .filter(|(_, time)| *time >= NAMED_SHARE * total)
        .map(|(module, time)| format!("{module} {}", time_text(*time, None)))
        .collect();
    let total = time_text(total, None);
    if named.is_empty() {
        return total;
    }
    format!("{total} ({})", named.join(", "))
}
