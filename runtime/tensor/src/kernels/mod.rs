//! The compute loops of operators.
//!
//! Each kernel takes elements and layouts and returns new elements. Kernels know nothing of
//! operators, autograd or the recorder.

mod copy;
mod elementwise;
mod extreme;
mod lanes;
mod nn;
mod order;
mod parallel;
mod pieces;
mod places;
mod product;
mod random;
mod reduce;
mod walk;
mod wide;

pub(crate) use copy::{copy_into, fill, fill_range};
pub(crate) use elementwise::{
    choose, duplicate, map, pack, update, update_each, update_two, with_slice, with_slices, zip,
};
pub(crate) use extreme::extreme_places;
pub(crate) use lanes::{running_sums, sorted_places};
pub(crate) use nn::*;
pub(crate) use order::result_layout;
pub use parallel::set_thread_count;
pub(crate) use parallel::{in_parallel, share, share_rows, try_share};
pub use places::Put;
pub(crate) use places::{along, clear_triangle, combine, index_offsets, nonzero, put, take};
pub(crate) use product::{Matrix, Previous, multiply};
pub(crate) use random::{
    fill_bernoulli, fill_integers, fill_normal, fill_permutation, fill_uniform, manual_seed,
};
pub(crate) use reduce::{fold, sum};
pub(crate) use walk::Walk;
pub(crate) use wide::{narrowed, rewrite, widened};

/// The number of elements below which a second thread costs more than it saves.
const PARALLEL_COUNT: usize = 1 << 18;

/// The number of elements that a thread takes at a time.
const PARALLEL_CHUNK: usize = 1 << 15;
