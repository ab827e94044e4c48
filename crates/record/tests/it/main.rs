//! Tests of the recorder's public interface: windows, threads, losses and the invariants of
//! profiles.
//!
//! There is one recorder per process, so these tests must not run at the same time: nextest gives
//! each a process, and `cargo test` needs `--test-threads=1`.

mod attach;
mod handover;
mod last_part;
mod limits;
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

/// Records `action` in a window of its own.
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
