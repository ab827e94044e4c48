//! The call stacks of scopes.
//!
//! A stack provider, registered once per process, returns the stack that the calling thread is in.
//! A stack is a number in a tree that each thread keeps for itself, so that asking for it takes no
//! lock.

use std::sync::OnceLock;

use mindprof_model::LossCause;

use crate::gate::Gate;
use crate::local;
use crate::name::Name;
use crate::raw::Stack;

impl Stack {
    /// Returns the stack of `frame` called from this one, adding it to the thread's tree if it is
    /// new.
    #[inline]
    #[must_use]
    pub fn push(self, frame: Name) -> Self {
        let gate = Gate::load();
        if !gate.wants_calls() && !gate.wants_stacks() {
            return Self::NONE;
        }
        local::push_frame(gate, self, frame)
    }
}

static SOURCE: OnceLock<fn() -> Stack> = OnceLock::new();

/// Registers the process-wide stack provider, which returns the stack that the calling thread is
/// in. Later calls are ignored.
pub fn set_stack_source(source: fn() -> Stack) {
    let _ = SOURCE.set(source);
}

/// Returns the stack that the calling thread is in.
#[inline]
pub(crate) fn current() -> Stack {
    match SOURCE.get() {
        Some(source) => source(),
        None => Stack::NONE,
    }
}

/// Returns whether some window wants all calls, and with them the stacks of scopes.
#[inline]
pub fn wants_all_calls() -> bool {
    Gate::load().wants_all_calls()
}

/// Returns whether some window wants the stacks of scopes.
#[inline]
pub fn wants_stacks() -> bool {
    Gate::load().wants_stacks()
}

/// Returns whether some window wants calls, either all of them or only those of modules.
#[inline]
pub fn wants_calls() -> bool {
    Gate::load().wants_calls()
}

/// Returns the number of the current recording, or zero if there is none. A [`Stack`] is only valid
/// in the recording that it was made in.
#[inline]
pub fn recording_number() -> u32 {
    Gate::load().epoch()
}

/// Counts calls of this thread that were nested too deeply to be kept.
pub fn count_deep_calls(calls: u64) {
    count(LossCause::Depth, calls);
}

/// Counts calls of this thread that the provider could not observe.
pub fn count_unseen_calls(calls: u64) {
    count(LossCause::Unseen, calls);
}

fn count(cause: LossCause, calls: u64) {
    let gate = Gate::load();
    if gate.wants_calls() || gate.wants_stacks() {
        local::count_lost_calls(gate, cause, calls);
    }
}
