//! Tests of the texts and pictures on real traces.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod backward;
#[expect(dead_code, reason = "the tests of `formats` ask it for more")]
#[path = "../../../trace/tests/it/corpus.rs"]
mod corpus;
mod goldens;
mod planted;
mod replay;
#[path = "../../../formats/tests/it/torchs_view.rs"]
mod torchs_view;
