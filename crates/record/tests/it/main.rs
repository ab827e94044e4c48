//! The recorder from outside: windows, threads, loss and the invariants of what comes out.
//!
//! The recorder is one per process, so these tests run one at a time: nextest gives each a process,
//! `cargo test` is told so.

mod handover;
mod loss;
mod memory;
mod names;
mod overlap;
mod scopes;
mod stacks;
mod storages;
mod windows;

use mindprof_model::Profile;
use mindprof_record::{Options, Session};

/// Records what `action` does in a window of its own.
fn record(options: Options, action: impl FnOnce()) -> Profile {
    let session = Session::start(options);
    action();
    session.stop().assemble()
}

/// Returns the names of a profile's events in order.
fn names(profile: &Profile) -> Vec<&str> {
    profile
        .events()
        .iter()
        .map(|event| profile.name(event))
        .collect()
}
