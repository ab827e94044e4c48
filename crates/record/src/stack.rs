//! Who called a scope.
//!
//! The host says at any moment which stack its thread is in; a stack is a number in a tree that
//! each thread keeps for itself, so that asking takes no lock.

use std::sync::OnceLock;

use mindprof_model::LossCause;

use crate::gate::Gate;
use crate::local;
use crate::name::Name;
use crate::raw::Stack;

impl Stack {
    /// Returns the stack of `frame` called from here, adding it to the thread's tree at first
    /// sight.
    #[inline]
    #[must_use]
    pub fn push(self, frame: Name) -> Self {
        let gate = Gate::load();
        if !gate.wants_calls() {
            return Self::NONE;
        }
        local::push_frame(gate, self, frame)
    }
}

/// Says in which stack the calling thread is.
pub type StackSource = fn() -> Stack;

static SOURCE: OnceLock<StackSource> = OnceLock::new();

/// Says whom to ask for stacks, for as long as the process lives. The first one to say it is heard.
pub fn set_stack_source(source: StackSource) {
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

/// Returns whether some window wants the stacks of scopes, and with them all calls.
#[inline]
pub fn wants_stacks() -> bool {
    Gate::load().wants_stacks()
}

/// Returns whether some window wants calls, be it of modules only.
#[inline]
pub fn wants_calls() -> bool {
    Gate::load().wants_calls()
}

/// Returns the number of the present recording, zero if there is none. Stacks are of one recording.
#[inline]
pub fn recording_number() -> u32 {
    Gate::load().epoch()
}

/// Counts calls of this thread that are nested too deep to be kept.
pub fn count_deep_calls(calls: u64) {
    count(LossCause::Depth, calls);
}

/// Counts calls of this thread that the host could not see.
pub fn count_unseen_calls(calls: u64) {
    count(LossCause::Unseen, calls);
}

fn count(cause: LossCause, calls: u64) {
    let gate = Gate::load();
    if gate.wants_calls() {
        local::count_lost(gate, cause, calls);
    }
}
