//! Tests of whole jobs.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

mod doubts;
mod goldens;
mod hta;
mod job;
mod made_up;
mod merging;
mod preparation;
mod rules;
mod runs;
