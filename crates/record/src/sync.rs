//! The primitives that threads share, from the standard library or, in a model check, from loom.
//!
//! Only what a loom test can build afresh comes through here; process-wide statics use `std`
//! directly.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
