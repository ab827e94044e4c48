//! Memory snapshots of torch's caching allocator, read from pickles without running code.
//!
//! A pickle is a program for a stack machine. `operations` decodes its operations and refuses those
//! that import or call anything; `machine` runs the others; `records` turns each dictionary into a
//! record of the model as soon as it is complete, so that no tree of the whole file exists.

mod fields;
mod machine;
mod objects;
mod operations;
mod read;
mod records;

#[cfg(test)]
mod tests;

pub(crate) use read::{is_pickle, read_snapshot_source, unread_pickle};
