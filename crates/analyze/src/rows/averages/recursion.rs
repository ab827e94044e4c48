//! Recursive calls of Python functions, whose time is already part of the outermost call's.

use mindprof_model::{Category, Event, Nanos, ThreadId};
use rustc_hash::FxHashMap;

/// The outermost calls that are open, while events arrive in start order.
#[derive(Debug, Default)]
pub(super) struct OutermostCalls {
    /// By thread and row, the end of the outermost call.
    ends: FxHashMap<(ThreadId, usize), Nanos>,
}

impl OutermostCalls {
    /// Returns whether an event is a call of a Python function inside another call of its row.
    /// Operators are never treated as such: torch counts each of them in full.
    ///
    /// ```text
    /// f  |---------------|   |---|     outermost
    /// f    |----------|                inside: its time is not counted again
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
