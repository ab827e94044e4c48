//! Rows: events grouped by key and summed, and their metrics.

pub(crate) mod averages;
pub(crate) mod estimates;
pub(crate) mod flops;
pub(crate) mod keys;
pub(crate) mod metric;
pub(crate) mod micros;
pub(crate) mod shapes;
pub(crate) mod sum_by_key;
pub(crate) mod sums;
