//! Scopes: guards that a framework opens around its operators, and the program around its ranges.
//!
//! A [`Scope`] closes when it is dropped, also during a panic. An [`OpenScope`] is the same as a
//! plain value, for callers that open and close in separate calls and perhaps on different threads.
//! The check of the gate is inlined into the caller and everything else is behind a call, so that a
//! scope costs one load while nothing records.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

use mindprof_model::LossCause;

use crate::arguments;
use crate::clock::ticks;
use crate::gate::Gate;
use crate::inputs::InputsRewriter;
use crate::limit::Admission;
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

/// Opens a scope with inputs. The closure writes the inputs, and runs only if some window wants
/// them.
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

/// Opens a scope under a name made at run time; [`OpenScope::close`] closes it. Returns `None` if
/// nothing records.
#[inline]
pub fn open(name: Name) -> Option<OpenScope> {
    open_with(name, |_| ())
}

/// Opens a scope as [`open`] does, with inputs that the closure writes.
#[inline]
pub fn open_with(name: Name, inputs: impl FnOnce(&mut InputsRewriter<'_>)) -> Option<OpenScope> {
    let gate = Gate::load();
    if !gate.is_open() {
        return None;
    }
    open_range_at(gate, name, inputs)
}

/// Opens a scope under a text that is charged to the recording and freed with it. Use this instead
/// of [`open_with`] for texts that the user makes up, of which there may be any number.
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
    // A range may be open for long before anything in it allocates, so its first block keeps its
    // own time.
    let open = OpenScope::begin(gate, name, inputs, FirstBlock::WhenReported);
    open.is_recorded().then_some(open)
}

/// Opens the scope of a call of the program's language (a Python function), made in `stack`. Calls
/// are recorded also while scopes are paused. Returns `None` if no window wants calls.
#[inline]
pub fn open_call(name: Name, stack: Stack) -> Option<OpenScope> {
    let gate = Gate::load();
    if !gate.wants_calls() {
        return None;
    }
    let Some(stack) = stack.of_call() else {
        let cause = if name.is_refused() {
            LossCause::Names
        } else {
            LossCause::Budget
        };
        local::count_lost_calls(gate, cause, 1);
        return None;
    };
    let open = OpenScope::begin_at(gate, name, 0, stack, FirstBlock::WhenReported);
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

/// Returns whether a scope opened now is asked for the calls of `TorchScript` modules it runs in.
#[inline]
pub fn wants_module_hierarchies() -> bool {
    Gate::load().wants_module_hierarchies()
}

/// Returns whether a window is open, paused or not.
#[inline]
pub fn is_profiling() -> bool {
    Gate::load().epoch() != 0
}

/// An open scope of the calling thread, which closes when dropped. [`scope`] and [`scope_with`]
/// return it; it cannot move to another thread, so it always ends where it began.
#[derive(Debug)]
#[must_use = "the scope closes when this is dropped"]
pub struct Scope {
    open: OpenScope,
    // Keeps the guard on its thread: it would end on the other one.
    thread_bound: PhantomData<*const ()>,
}

impl Scope {
    /// Sets the sequence number, which links a forward operator with its backward node.
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

/// An open scope as a plain value, for callers that open and close in separate calls. It may be
/// closed on another thread; one that is never closed appears in the profile as unfinished.
#[derive(Debug)]
#[must_use = "a scope that is not closed counts as unfinished"]
pub struct OpenScope {
    start: u64,
    name: u32,
    inputs: u32,
    stack: u32,
    sequence: u32,
    epoch: u32,
    /// Whether it is counted among the open operators of its thread, see [`crate::limit`].
    is_counted: bool,
    slot: OpenSlot,
}

impl OpenScope {
    /// Stands for a scope that is not recorded; no recording has the number zero.
    const NONE: Self = Self {
        start: 0,
        name: 0,
        inputs: 0,
        stack: 0,
        sequence: 0,
        epoch: 0,
        is_counted: false,
        slot: OpenSlot::NOWHERE,
    };

    /// The recording of operators that a limit leaves out, which no recording reaches.
    const LEFT_OUT: u32 = u32::MAX;

    /// Returns the key of the thread that the scope was opened on.
    pub const fn thread(&self) -> ThreadKey {
        ThreadKey::from_raw(self.slot.thread())
    }

    /// Returns whether the scope only stands for an operator that no window wants. It is closed like
    /// others, and what is set on it has no effect.
    #[inline]
    pub const fn is_left_out(&self) -> bool {
        self.epoch == Self::LEFT_OUT
    }

    /// Closes the scope, on the calling thread.
    #[inline]
    pub fn close(self) {
        self.end();
    }

    /// Marks the scope as asynchronous: it does not enclose the work that its thread does
    /// meanwhile, wherever it ends.
    #[inline]
    pub fn set_async(&mut self) {
        self.name |= Record::ASYNC;
        if self.is_counted {
            self.is_counted = false;
            local::leave(self.slot.thread());
        }
    }

    /// Renames the scope, for names that are only known when it ends.
    pub fn rename(&mut self, text: &str, kind: NameKind) {
        // A scope of an earlier recording is dropped when it ends, so its name does not matter.
        if Gate::load().epoch() == self.epoch {
            let name = Name::of_recording(text, kind, self.epoch);
            self.name = name.raw() | (self.name & Record::ASYNC);
        }
    }

    /// Sets the sequence number, which links a forward operator with its backward node. It should
    /// be at most [`MAX_SEQUENCE`](crate::MAX_SEQUENCE); only the low 31 bits of a larger one are
    /// kept.
    #[inline]
    pub fn set_sequence(&mut self, sequence: u32) {
        self.sequence = sequence & !Record::OF_FORWARD;
    }

    /// Links a backward node to its forward operator by the operator's sequence number and the
    /// thread it ran on. Call this on the thread that the scope was opened on.
    #[inline]
    pub fn set_forward(&mut self, sequence: u32, thread: ThreadKey) {
        self.sequence = sequence | Record::OF_FORWARD;
        if thread != ThreadKey::current() && !self.is_left_out() {
            local::push_side_record(Gate::load(), Record::forward(self.start, thread.to_raw()));
        }
    }

    /// Sets the external id by which device work names this scope as its launcher; zero means none.
    /// Call this on the thread that the scope was opened on.
    #[inline]
    pub fn set_external(&self, number: u32) {
        if number != 0 && !self.is_left_out() {
            local::push_side_record(Gate::load(), Record::external(self.start, number));
        }
    }

    /// Sets the id by which an execution trace refers to this scope, in place of the recorder's own;
    /// zero means none. Call this on the thread that the scope was opened on.
    #[inline]
    pub fn set_record_function(&self, number: u32) {
        if number != 0 && !self.is_left_out() {
            local::push_side_record(Gate::load(), Record::function(self.start, number));
        }
    }

    /// Sets the calls of `TorchScript` modules that this scope runs in; an empty text means none.
    /// Call this on the thread that the scope was opened on.
    #[cold]
    pub fn set_module_hierarchy(&self, text: &str) {
        let gate = Gate::load();
        if text.is_empty() || gate.epoch() != self.epoch {
            return;
        }
        let name = Name::of_recording(text, NameKind::Annotation, self.epoch);
        if !name.is_refused() {
            local::push_side_record(gate, Record::hierarchy(self.start, name.raw()));
        }
    }

    /// Sets arguments of this scope beside its inputs, as the members of a JSON object, without its
    /// braces. Each [`ARGUMENT_NUMBER`](crate::ARGUMENT_NUMBER) in the text stands for the next of the numbers, so that
    /// scopes whose arguments differ only in numbers share a text. Call this on the thread that the
    /// scope was opened on.
    #[cold]
    pub fn set_arguments(&self, text: &str, numbers: &[u64]) {
        let gate = Gate::load();
        if text.is_empty() || gate.epoch() != self.epoch {
            return;
        }
        arguments::set(gate, self.start, text, numbers);
    }

    #[inline]
    fn begin(
        gate: Gate,
        name: Name,
        inputs: impl FnOnce(&mut InputsRewriter<'_>),
        first_block: FirstBlock,
    ) -> Self {
        if gate.is_limited() {
            return Self::begin_limited(gate, name, inputs, first_block);
        }
        Self::begin_admitted(gate, name, inputs, first_block)
    }

    /// Begins a scope under a limit on operators.
    #[cold]
    fn begin_limited(
        gate: Gate,
        name: Name,
        inputs: impl FnOnce(&mut InputsRewriter<'_>),
        first_block: FirstBlock,
    ) -> Self {
        let (admission, thread) = local::enter(gate, name);
        let mut open = match admission {
            Admission::Uncounted | Admission::Recorded => {
                Self::begin_admitted(gate, name, inputs, first_block)
            }
            Admission::LeftOut => Self::NONE,
        };
        if admission != Admission::Uncounted {
            open.is_counted = true;
            // It may also have been lost.
            if open.epoch == 0 {
                open.epoch = Self::LEFT_OUT;
                open.slot = OpenSlot::new(thread, 0);
            }
        }
        open
    }

    #[inline]
    fn begin_admitted(
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
        let open = Self::begin_at(gate, name, inputs, stack, first_block);
        if gate.wants_results() && open.is_recorded() {
            open.set_record_function(next_record_function());
        }
        open
    }

    /// Begins a scope whose inputs and stack are already known.
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
            is_counted: false,
            slot,
        }
    }

    #[inline]
    const fn is_recorded(&self) -> bool {
        self.epoch != 0
    }

    #[inline]
    fn end(&self) {
        if self.is_counted {
            local::leave(self.slot.thread());
            if self.is_left_out() {
                return;
            }
        }
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

/// Returns a new record function id. Only scopes of a recording with results have one, so that its
/// execution trace and the other profiles of the same time agree.
#[cold]
fn next_record_function() -> u32 {
    // Relaxed: only uniqueness matters.
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
