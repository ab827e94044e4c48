//! Atomics that threads share: the standard library's, or loom's in a model check.
//!
//! Only values that a loom test can create afresh use this module; process-wide statics use `std`
//! directly.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
