//! Scopes: what the host opens around its work.
//!
//! [`Scope`] closes when it is dropped, also by a panic; [`OpenScope`] is the same as a plain
//! value, for hosts that open and close in separate calls and perhaps on different threads. The
//! check of the gate is inlined into the host; all else is behind a call, so that a scope costs the
//! host nothing while nothing records.

use std::marker::PhantomData;

use crate::clock::ticks;
use crate::gate::Gate;
use crate::inputs::InputsRewriter;
use crate::local::{self, FirstBlock};
use crate::name::{Name, NameKind, Site};
use crate::open::OpenSlot;
use crate::raw::{Record, Stack};
use crate::stack;
use crate::thread_key::ThreadKey;

/// Opens a scope that closes when the returned value is dropped.
#[inline]
pub fn scope(site: &'static Site) -> Scope {
    scope_with(site, |_| ())
}

/// Opens a scope with inputs; the closure writes them, and runs only if some window wants them.
#[inline]
pub fn scope_with(site: &'static Site, inputs: impl FnOnce(&mut InputsRewriter<'_>)) -> Scope {
    let gate = Gate::load();
    let open = if gate.is_open() {
        OpenScope::begin(gate, site.name(), inputs, FirstBlock::AtStart)
    } else {
        OpenScope::NONE
    };
    Scope {
        open,
        thread_bound: PhantomData,
    }
}

/// Opens a scope under a name made at run time, to be closed by [`OpenScope::close`]. Returns none
/// when nothing records.
#[inline]
pub fn open(name: Name) -> Option<OpenScope> {
    open_with(name, |_| ())
}

/// As [`open`], with inputs.
#[inline]
pub fn open_with(name: Name, inputs: impl FnOnce(&mut InputsRewriter<'_>)) -> Option<OpenScope> {
    let gate = Gate::load();
    if !gate.is_open() {
        return None;
    }
    open_range_at(gate, name, inputs)
}

/// As [`open_with`], under a text that is charged to the recording and freed with it: for texts
/// that there may be any number of.
#[inline]
pub fn open_range(
    text: &str,
    kind: NameKind,
    inputs: impl FnOnce(&mut InputsRewriter<'_>),
) -> Option<OpenScope> {
    let gate = Gate::load();
    if !gate.is_open() {
        return None;
    }
    let name = Name::of_recording(text, kind, gate.epoch());
    open_range_at(gate, name, inputs)
}

#[inline]
fn open_range_at(
    gate: Gate,
    name: Name,
    inputs: impl FnOnce(&mut InputsRewriter<'_>),
) -> Option<OpenScope> {
    // A range is open for any time before something in it takes memory.
    let open = OpenScope::begin(gate, name, inputs, FirstBlock::WhenTold);
    open.is_recorded().then_some(open)
}

/// Opens the scope of a call of the host's language, made in `stack`: it goes on while scopes are
/// paused. Returns none if no window wants calls.
#[inline]
pub fn open_call(name: Name, stack: Stack) -> Option<OpenScope> {
    let gate = Gate::load();
    if !gate.wants_calls() {
        return None;
    }
    let open = OpenScope::begin_at(gate, name, 0, stack.of_call(), FirstBlock::WhenTold);
    open.is_recorded().then_some(open)
}

/// Returns whether a scope opened now would be recorded.
#[inline]
pub fn is_recording() -> bool {
    Gate::load().is_open()
}

/// Returns whether the inputs of a scope opened now would be recorded.
#[inline]
pub fn wants_inputs() -> bool {
    let gate = Gate::load();
    gate.is_open() && gate.wants_inputs()
}

/// Returns whether a window is open, be it paused or not.
#[inline]
pub fn is_profiling() -> bool {
    Gate::load().epoch() != 0
}

/// An open scope of the calling thread. Closes when dropped.
#[derive(Debug)]
#[must_use = "the scope closes when this is dropped"]
pub struct Scope {
    open: OpenScope,
    // A guard that moved to another thread would end there.
    thread_bound: PhantomData<*const ()>,
}

impl Scope {
    /// Sets the number that links a forward operator with its backward node.
    #[inline]
    pub fn set_sequence(&mut self, sequence: u32) {
        self.open.set_sequence(sequence);
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        if self.open.is_recorded() {
            self.open.end();
        }
    }
}

/// An open scope as a value. What is never closed is told of as unfinished.
#[derive(Debug)]
#[must_use = "a scope that is not closed counts as unfinished"]
pub struct OpenScope {
    start: u64,
    name: u32,
    inputs: u32,
    stack: u32,
    sequence: u32,
    epoch: u32,
    slot: OpenSlot,
}

impl OpenScope {
    /// Stands for a scope that is not recorded: there is no recording zero.
    const NONE: Self = Self {
        start: 0,
        name: 0,
        inputs: 0,
        stack: 0,
        sequence: 0,
        epoch: 0,
        slot: OpenSlot::NOWHERE,
    };

    /// Returns the thread that it was opened on.
    pub const fn thread(&self) -> ThreadKey {
        ThreadKey::from_raw(self.slot.thread())
    }

    /// Closes the scope, on whatever thread this is.
    #[inline]
    pub fn close(self) {
        self.end();
    }

    /// Says that the scope is not one of those around what its thread does meanwhile, wherever it
    /// ends.
    #[inline]
    pub fn set_async(&mut self) {
        self.name |= Record::ASYNC;
    }

    /// Names the scope anew, by what is known of it when it ends.
    pub fn rename(&mut self, text: &str, kind: NameKind) {
        // One of a recording that is over is dropped at its end.
        if Gate::load().epoch() == self.epoch {
            let name = Name::of_recording(text, kind, self.epoch);
            self.name = name.raw() | (self.name & Record::ASYNC);
        }
    }

    /// Sets the number that links a forward operator with its backward node, at most
    /// [`MAX_SEQUENCE`](crate::MAX_SEQUENCE); of a larger one 31 bits are kept.
    #[inline]
    pub fn set_sequence(&mut self, sequence: u32) {
        self.sequence = sequence & !Record::OF_FORWARD;
    }

    /// Says of a backward node which number its forward operator has, and which thread that ran on.
    /// To be called on the thread that the scope was opened on.
    #[inline]
    pub fn set_forward(&mut self, sequence: u32, thread: ThreadKey) {
        self.sequence = sequence | Record::OF_FORWARD;
        if thread != ThreadKey::current() {
            local::push_side_record(Gate::load(), Record::forward(self.start, thread.to_raw()));
        }
    }

    /// Sets the number by which the work of a device names this scope as the one that asked for it;
    /// zero is none. To be called on the thread that the scope was opened on.
    #[inline]
    pub fn set_external(&self, number: u32) {
        if number != 0 {
            local::push_side_record(Gate::load(), Record::external(self.start, number));
        }
    }

    #[inline]
    fn begin(
        gate: Gate,
        name: Name,
        inputs: impl FnOnce(&mut InputsRewriter<'_>),
        first_block: FirstBlock,
    ) -> Self {
        let inputs = if gate.wants_inputs() {
            local::intern_inputs(gate, name, inputs)
        } else {
            0
        };
        let stack = if gate.wants_stacks() {
            stack::current()
        } else {
            Stack::NONE
        };
        Self::begin_at(gate, name, inputs, stack, first_block)
    }

    /// Begins a scope whose inputs and stack are known.
    #[inline]
    fn begin_at(
        gate: Gate,
        name: Name,
        inputs: u32,
        stack: Stack,
        first_block: FirstBlock,
    ) -> Self {
        let (start, slot) = local::begin(gate, name, inputs, stack, first_block);
        if slot == OpenSlot::NOWHERE {
            return Self::NONE;
        }
        Self {
            start,
            name: name.raw(),
            inputs: if inputs & Record::NEW_STORAGES == 0 {
                inputs
            } else {
                local::push_storages(start, name, inputs)
            },
            stack: stack.raw(),
            sequence: Record::NO_SEQUENCE,
            epoch: gate.epoch(),
            slot,
        }
    }

    #[inline]
    const fn is_recorded(&self) -> bool {
        self.epoch != 0
    }

    #[inline]
    fn end(&self) {
        let record = Record {
            start: self.start,
            end: ticks(),
            name: self.name,
            inputs: self.inputs,
            stack: self.stack,
            sequence: self.sequence,
        };
        local::end(record, self.epoch, self.slot);
    }
}
