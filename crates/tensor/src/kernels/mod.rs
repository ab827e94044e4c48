//! The loops: each takes elements and layouts, returns new elements, and knows nothing of operators or the recorder.

mod copy;
mod elementwise;
mod order;
mod product;
mod random;
mod reduce;
mod walk;

pub(crate) use copy::{copy_into, fill};
pub(crate) use elementwise::{map, update, zip};
pub(crate) use order::result_layout;
pub(crate) use product::{Matrix, multiply};
pub(crate) use random::{fill_normal, manual_seed};
pub(crate) use reduce::sum;
pub(crate) use walk::Walk;

/// Below this many elements a second thread costs more than it saves.
const PARALLEL_COUNT: usize = 1 << 18;

/// The piece of work that one thread takes at a time.
const PARALLEL_CHUNK: usize = 1 << 15;
