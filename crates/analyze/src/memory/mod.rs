//! Memory: which event allocated what, and the timeline of every block.

pub(crate) mod host_totals;
pub(crate) mod memory_timeline;
pub(crate) mod memory_use;
pub(crate) mod tensor_numbers;
