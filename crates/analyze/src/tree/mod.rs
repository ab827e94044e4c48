//! Nesting of events: the event tree, lanes, spans of time, and Python function calls.

pub(crate) mod call_tree;
pub(crate) mod children;
pub(crate) mod event_tree;
pub(crate) mod lanes;
pub(crate) mod process_time;
pub(crate) mod python_calls;
pub(crate) mod short_times;
pub(crate) mod spans;
pub(crate) mod without_calls;
