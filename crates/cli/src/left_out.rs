//! The imports and steps that the table of a `mindprof run` trace omits, summarized on stderr.

use std::path::Path;

use mindprof_answers::LeftOut;
use mindprof_formats::counted;
use mindprof_report::imports_text;

use crate::output::tell;

/// Prints one line each for the imports and the steps that a table omits, if any.
pub(crate) fn tell_left_out(trace: &Path, left_out: &LeftOut) {
    let trace = trace.display();
    if !left_out.imports.is_empty() {
        let imports = imports_text(&left_out.import_times());
        tell(&format!(
            "{trace}: imports: {imports}, not in the table; --all-ranges shows them"
        ));
    }
    let steps = left_out.step_ranges();
    if steps > 0 {
        let ranges = counted(steps, "range");
        tell(&format!(
            "{trace}: steps: {ranges}, not in the table; `mindprof info` lists them"
        ));
    }
}
