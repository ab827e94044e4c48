//! Runs the program as a user does.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod failures;
mod program;
mod table;
