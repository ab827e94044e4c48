//! Rows: events grouped by key and summed, their metrics, and the difference of two profiles.

pub(crate) mod averages;
pub(crate) mod diff;
pub(crate) mod flops;
pub(crate) mod keys;
pub(crate) mod metric;
pub(crate) mod shapes;
pub(crate) mod summary;
