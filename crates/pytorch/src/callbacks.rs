//! The callbacks that torch calls when a scope begins and ends: the hot path.
//!
//! They usually run without Python's lock, and may be called at any time: before a window opens,
//! after the observer was removed, in a forked child. The recorder's gate tells whether there is
//! anything to do. A panic never reaches torch.

#![expect(
    unsafe_code,
    reason = "torch calls with raw pointers, and its objects are read by the probed layout"
)]

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use mindprof_record::{
    InputsRewriter, MAX_SEQUENCE, NameKind, OpenScope, ThreadKey, is_recording, open_range,
    open_with, wants_module_hierarchies,
};

use crate::collectives::{COLLECTIVE, Understanding};
use crate::context::Context;
use crate::inputs;
use crate::ivalue::{Value, slice};
use crate::layout::record_scope;
use crate::observer::Observer;
use crate::symbols::RecordFunction;
use crate::threads::{ThreadState, count_end_elsewhere, key_of, with_state};

/// Called when a scope begins. torch passes the returned context to `end`.
pub(crate) unsafe extern "C" fn start(
    context: *mut *mut c_void,
    record: *const RecordFunction,
) -> *mut *mut c_void {
    let begin = || {
        let observer = Observer::present().filter(|_| is_recording())?;
        with_state(|state| {
            if Observer::may_hear_twice() && state.hears_again(record) {
                return None;
            }
            let started = Started { record, observer };
            // SAFETY: torch calls with the record of a beginning scope, which it keeps alive, with
            // its inputs, until the callback returns.
            let (open, kind) = unsafe { started.open(state) }?;
            let context = Context::hold(open, &state.contexts);
            if kind == Kind::Evaluation {
                state.evaluation.set(context);
            }
            Some(context)
        })
        .flatten()
    };
    let handed_out = catch_unwind(AssertUnwindSafe(begin)).ok().flatten();
    // SAFETY: `context` is the return slot of torch's caller, valid for one pointer.
    unsafe { context.write(handed_out.unwrap_or(ptr::null_mut())) };
    context
}

/// Called when a scope ends, on any thread.
pub(crate) unsafe extern "C" fn end(_record: *const RecordFunction, context: *mut c_void) {
    let end = || {
        if Observer::may_hear_twice() {
            let _ = with_state(ThreadState::forget_last);
        }
        // SAFETY: torch passes what `start` returned, once, before it destroys the context.
        if let Some(scope) = unsafe { Context::take(context) } {
            if Observer::may_hear_twice() && scope.thread() != ThreadKey::current() {
                count_end_elsewhere();
            }
            scope.close();
        }
    };
    // A scope that could not be closed is reported as unfinished.
    let _ = catch_unwind(AssertUnwindSafe(end));
}

/// The prefix of the scope that autograd's engine opens around a backward node.
const EVALUATION: &str = "autograd::engine::evaluate_function: ";

/// The kinds of scopes that torch reports.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Operator,
    Range,
    Backward,
    /// The scope of autograd's engine around a backward node.
    Evaluation,
}

/// A scope that torch reports as beginning.
struct Started {
    record: *const RecordFunction,
    observer: &'static Observer,
}

impl Started {
    /// Opens the recorder's scope for it. Returns `None` if it has no name or is not recorded.
    ///
    /// # Safety
    /// The record is a live `RecordFunction` of torch's, and its inputs stay alive until this
    /// returns.
    #[inline]
    unsafe fn open(&self, state: &ThreadState) -> Option<(OpenScope, Kind)> {
        let (symbols, layout) = (&self.observer.symbols, &self.observer.layout);
        state.enter(symbols);
        // SAFETY: the caller guarantees a live record, here and below. torch's function does not
        // throw.
        let text = unsafe { (symbols.name)(self.record) };
        if text.is_null() {
            return None;
        }
        // SAFETY: the record is live, and `text` is its name.
        let (mut open, kind) = unsafe {
            match self.read::<u8>(layout.scope) {
                record_scope::USER_SCOPE => self.open_text(Kind::Range, text, state),
                record_scope::BACKWARD_FUNCTION => self.open_text(Kind::Backward, text, state),
                _ => self.open_operator(text, state),
            }
        }?;
        if open.is_left_out() {
            return Some((open, kind));
        }
        // SAFETY: the record is live.
        unsafe { self.link(kind, state, &mut open) };
        if kind != Kind::Backward && wants_module_hierarchies() {
            let modules = symbols.hierarchy.and_then(|symbols| symbols.current());
            open.set_module_hierarchy(&modules.unwrap_or_default());
        }
        if let Some(handle) = layout.handle {
            // It is zero unless someone needs it, such as torch's observer of execution traces. One
            // that is too large is left out. SAFETY: the record is live.
            let handle = unsafe { self.read::<u64>(handle) };
            open.set_record_function(u32::try_from(handle).unwrap_or(0));
        }
        Some((open, kind))
    }

    /// # Safety
    /// As for [`Started::open`], and `text` is the record's name.
    #[inline]
    unsafe fn open_operator(
        &self,
        text: *const c_char,
        state: &ThreadState,
    ) -> Option<(OpenScope, Kind)> {
        // SAFETY: the record is live, and its name is a NUL-terminated string.
        unsafe {
            let found = match state.names.find(text) {
                Some(found) => found,
                // A record whose schema has no arguments may have no schema, and then its name is
                // temporary.
                None if self.observer.symbols.argument_count(self.record) == 0 => {
                    return self.open_text(Kind::Operator, text, state);
                }
                None => state.names.add(text, self.overload()),
            };
            let open = open_with(found.name, |inputs| self.write_inputs(inputs))?;
            if found.is_collective {
                self.describe_collective(&open);
            }
            Some((open, Kind::Operator))
        }
    }

    /// Returns the overload of an operator, or null if this torch does not tell.
    ///
    /// # Safety
    /// As for [`Started::open`].
    #[cold]
    unsafe fn overload(&self) -> *const c_char {
        match self.observer.symbols.overload_name {
            // SAFETY: the caller guarantees a live record, and the function does not throw.
            Some(overload_name) => unsafe { overload_name(self.record) },
            None => ptr::null(),
        }
    }

    /// # Safety
    /// As for [`Started::open_operator`].
    unsafe fn open_text(
        &self,
        kind: Kind,
        text: *const c_char,
        state: &ThreadState,
    ) -> Option<(OpenScope, Kind)> {
        state.texts.set(state.texts.get() + 1);
        if state.skips_texts.get() {
            return None;
        }
        // SAFETY: the name of a live record is a NUL-terminated string.
        let text = unsafe { CStr::from_ptr(text) };
        // Checking first is several times faster than searching for what to replace.
        let text = text
            .to_str()
            .map_or_else(|_| text.to_string_lossy(), Cow::Borrowed);
        let is_evaluation = kind == Kind::Operator && text.starts_with(EVALUATION);
        let name_kind = match kind {
            Kind::Operator | Kind::Evaluation => NameKind::Operator,
            Kind::Range => NameKind::Annotation,
            Kind::Backward => NameKind::Backward,
        };
        // SAFETY: the caller guarantees a live record with live inputs.
        let mut open = open_range(&text, name_kind, |inputs| unsafe {
            self.write_inputs(inputs);
        })?;
        // Scopes with a schema are never asynchronous, nor are backward nodes. SAFETY: the record
        // is live.
        if kind != Kind::Backward && unsafe { (self.observer.symbols.is_async)(self.record) } {
            open.set_async();
        }
        if kind == Kind::Operator && text == COLLECTIVE {
            // SAFETY: the record is live.
            unsafe { self.describe_collective(&open) };
        }
        Some((
            open,
            if is_evaluation {
                Kind::Evaluation
            } else {
                kind
            },
        ))
    }

    /// Sets the arguments of a collective, if torch describes it.
    ///
    /// # Safety
    /// As for [`Started::open`].
    #[cold]
    unsafe fn describe_collective(&self, open: &OpenScope) {
        static UNDERSTANDING: Understanding = Understanding::new();
        let Some(symbols) = self.observer.symbols.collectives else {
            return;
        };
        if open.is_left_out() {
            return;
        }
        // SAFETY: the caller guarantees a live record.
        if let Some(told) = unsafe { symbols.describe(self.record, &UNDERSTANDING) } {
            open.set_arguments(&told.text, &told.numbers);
        }
    }

    /// Sets the sequence number that links a backward node to its forward operator. The engine's
    /// scope around the node gets the same number.
    ///
    /// # Safety
    /// As for [`Started::open`].
    #[inline]
    unsafe fn link(&self, kind: Kind, state: &ThreadState, open: &mut OpenScope) {
        let layout = &self.observer.layout;
        // SAFETY: the caller guarantees a live record, and the probe found the offsets in it.
        let (sequence, forward) = unsafe {
            let sequence = self.read::<i64>(layout.sequence);
            (sequence, self.read::<u64>(layout.forward_thread))
        };
        // It is negative if there is none. A number that is too large for a record is left out.
        let sequence = u32::try_from(sequence).ok();
        let Some(sequence) = sequence.filter(|&sequence| sequence <= MAX_SEQUENCE) else {
            return;
        };
        if kind != Kind::Backward || forward == 0 {
            open.set_sequence(sequence);
            return;
        }
        let thread = key_of(forward);
        open.set_forward(sequence, thread);
        let evaluation = state.evaluation.replace(ptr::null_mut());
        // SAFETY: `give_back` resets `evaluation` when torch destroys that context, so it is live.
        unsafe { Context::change(evaluation, |open| open.set_forward(sequence, thread)) };
    }

    /// Writes the inputs, which torch provides if the observer asked for them.
    ///
    /// # Safety
    /// As for [`Started::open`].
    #[inline]
    unsafe fn write_inputs(&self, inputs: &mut InputsRewriter<'_>) {
        let layout = &self.observer.layout;
        // SAFETY: the caller guarantees a live record with live inputs, whose address and count lie
        // at the probed offset.
        unsafe {
            let begin = self.read::<*const Value>(layout.inputs);
            let values = slice(begin, self.read::<usize>(layout.inputs + 8));
            inputs::write(values, &self.observer.tensors, layout, inputs);
        }
    }

    /// # Safety
    /// A `T` lies at the offset of a live record.
    #[inline]
    unsafe fn read<T: Copy>(&self, offset: usize) -> T {
        // SAFETY: the caller guarantees that a `T` lies at this offset of a live record.
        unsafe { self.record.byte_add(offset).cast::<T>().read() }
    }
}
