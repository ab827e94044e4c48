//! Runs the program as a user does.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod advise;
mod ascend;
mod completions;
mod convert;
mod critical_path;
mod device;
mod devices;
mod diff;
mod failures;
mod functions;
mod info;
#[cfg(unix)]
mod interruptions;
mod man;
mod memory;
mod names;
mod pipes;
mod program;
mod ranks;
mod report;
mod slim;
mod snapshots;
mod stacks;
mod steps;
mod table;
mod traces;
mod verify;
mod what_if;
