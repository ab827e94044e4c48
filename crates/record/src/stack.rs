//! Who called a scope, and the calls of the host's language themselves.
//!
//! The host says at any moment which stack its thread is in; a stack is a number in a tree that
//! each thread keeps for itself, so that asking takes no lock. Calls are scopes that say their
//! stack themselves and go on while scopes are paused.

use std::sync::OnceLock;

use mindprof_model::LossCause;

use crate::gate::Gate;
use crate::local;
use crate::name::Name;
use crate::scope::OpenScope;

/// Which calls of the host's language a window wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Calls {
    /// None.
    #[default]
    None,
    /// Calls of modules.
    Modules,
    /// All calls, and by whom scopes are called.
    All,
}

/// Marks, in a record's stack, a call. A tree of so many stacks is beyond every budget.
pub(crate) const CALL_BIT: u32 = 1 << 31;

/// A stack of the calling thread, in the present recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stack(u32);

impl Stack {
    /// No stack.
    pub const NONE: Self = Self(0);

    /// Stands for a stack that the budget has no room for. A scope that has it is counted as lost.
    pub(crate) const NO_ROOM: Self = Self(CALL_BIT - 1);

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

    /// Returns the number of the stack that was added last to a tree that now holds `len`.
    pub(crate) const fn from_len(len: usize) -> Self {
        Self(len as u32)
    }

    /// Returns the stack that a record names.
    pub(crate) const fn from_record(stack: u32) -> Self {
        Self(stack & !CALL_BIT)
    }

    /// Returns the number that a record holds.
    pub(crate) const fn raw(self) -> u32 {
        self.0
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

/// Opens the scope of a call that was made in `stack`. Returns none if no window wants calls.
#[inline]
pub fn open_call(name: Name, stack: Stack) -> Option<OpenScope> {
    let gate = Gate::load();
    if !gate.wants_calls() {
        return None;
    }
    // One that there is no room for keeps its number, which is how its loss is noticed.
    let marked = if stack == Stack::NO_ROOM {
        stack
    } else {
        Stack(stack.0 | CALL_BIT)
    };
    let open = OpenScope::begin_at(gate, name, 0, marked);
    if gate.wants_memory() {
        local::take_no_memory_at_once();
    }
    open.is_recorded().then_some(open)
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
