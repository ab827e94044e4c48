//! Tests of rows, stacks and the memory timeline on recorded traces.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "tests of other crates use the rest")]
#[path = "../../../trace/tests/it/corpus.rs"]
mod corpus;
mod goldens;
mod memory;
mod stacks;
mod torchs_view;
