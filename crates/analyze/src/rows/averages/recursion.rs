//! Calls of Python functions inside calls of the same function: their time is part of the outer
//! call's already.

use mindprof_model::{Category, Event, Nanos, ThreadId};
use rustc_hash::FxHashMap;

/// The outermost calls that are going on, while events come by in start order.
#[derive(Debug, Default)]
pub(super) struct OutermostCalls {
    /// By thread and row, when the outermost call ends.
    ends: FxHashMap<(ThreadId, usize), Nanos>,
}

impl OutermostCalls {
    /// Returns whether an event of this row is a call inside another of the row. Operators never
    /// are: torch counts those inside each other, each in full.
    ///
    /// ```text
    /// f  |---------------|   |---|     outermost
    /// f    |----------|                inside: its time counts once
    /// f       |--|                     inside
    /// ```
    pub(super) fn is_inside(&mut self, event: &Event, row: usize) -> bool {
        if event.category != Category::PythonFunction {
            return false;
        }
        let end = self.ends.entry((event.thread, row)).or_default();
        if event.start < *end && event.end() <= *end {
            return true;
        }
        *end = event.end();
        false
    }
}
