//! The imports and steps that the table of a `mindprof run` trace omits, summarized on stderr.

use std::collections::BTreeMap;
use std::path::Path;

use mindprof_analyze::{Average, microseconds};
use mindprof_answers::{IMPORT_PREFIX, LeftOut};
use mindprof_report::time_text;

use crate::output::tell;
use crate::units::count;

/// The largest number of imported modules to name.
const NAMED_MODULES: usize = 3;
/// The smallest share of the import time for a module to be named.
const NAMED_SHARE: f64 = 0.1;

/// Prints one line each for the imports and the steps that a table omits, if any.
pub(crate) fn tell_left_out(trace: &Path, left_out: &LeftOut) {
    let trace = trace.display();
    if !left_out.imports.is_empty() {
        let imports = imports_text(&left_out.imports);
        tell(&format!(
            "{trace}: imports: {imports}, not in the table; --all-ranges shows them"
        ));
    }
    let steps = left_out.step_ranges();
    if steps > 0 {
        let ranges = count(steps, "range");
        tell(&format!(
            "{trace}: steps: {ranges}, not in the table; `mindprof info` lists them"
        ));
    }
}

/// Returns the total import time and the slowest modules: `2.769s (torch 1.440s)`.
fn imports_text(imports: &[Average]) -> String {
    let mut modules: BTreeMap<&str, f64> = BTreeMap::new();
    for row in imports {
        let module = row.key.strip_prefix(IMPORT_PREFIX).unwrap_or(&row.key);
        *modules.entry(module).or_default() += microseconds(row.sums.self_cpu_total);
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
