//! What torch calls when a scope begins and when it ends: the hot path.
//!
//! Both run on the thread of the scope, mostly without Python's lock, and may come at any time:
//! before a window opens, after the observer was removed, in a forked child. They look at the
//! recorder's gate, which says whether there is anything to do. A panic never reaches torch.

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
    open_with,
};

use crate::context::Context;
use crate::inputs;
use crate::ivalue::{Value, slice};
use crate::layout::record_scope;
use crate::observer::Observer;
use crate::symbols::RecordFunction;
use crate::threads::{ThreadState, count_end_elsewhere, key_of, with_state};

/// Is called when a scope begins; the context that it hands out comes back when it ends.
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
            // SAFETY: torch calls with a scope that begins.
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
    // SAFETY: torch says where the context is to be written, and takes the place back.
    unsafe { context.write(handed_out.unwrap_or(ptr::null_mut())) };
    context
}

/// Is called when a scope ends, on whichever thread.
pub(crate) unsafe extern "C" fn end(_record: *const RecordFunction, context: *mut c_void) {
    let end = || {
        if Observer::may_hear_twice() {
            let _ = with_state(ThreadState::forget_last);
        }
        // SAFETY: torch gives back what `start` handed out, before it destroys it.
        if let Some(scope) = unsafe { Context::take(context) } {
            if Observer::may_hear_twice() && scope.thread() != ThreadKey::current() {
                count_end_elsewhere();
            }
            scope.close();
        }
    };
    // A scope that could not be closed is told of as unfinished.
    let _ = catch_unwind(AssertUnwindSafe(end));
}

/// How the engine of autograd names its work around a backward node.
const EVALUATION: &str = "autograd::engine::evaluate_function: ";

/// What a scope of torch's is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Operator,
    Range,
    Backward,
    /// The engine's work around a backward node.
    Evaluation,
}

/// A scope of torch's that begins.
struct Started {
    record: *const RecordFunction,
    observer: &'static Observer,
}

impl Started {
    /// Opens the recorder's scope for it.
    ///
    /// # Safety
    /// The record is torch's and lives as long as the call, as do its inputs.
    #[inline]
    unsafe fn open(&self, state: &ThreadState) -> Option<(OpenScope, Kind)> {
        let (symbols, layout) = (&self.observer.symbols, &self.observer.layout);
        state.enter(symbols);
        // SAFETY: by the caller's word, here and below; torch's function throws nothing.
        let text = unsafe { (symbols.name)(self.record) };
        if text.is_null() {
            return None;
        }
        // SAFETY: as above.
        let (mut open, kind) = unsafe {
            match self.read::<u8>(layout.scope) {
                record_scope::USER_SCOPE => self.open_text(Kind::Range, text, state),
                record_scope::BACKWARD_FUNCTION => self.open_text(Kind::Backward, text, state),
                _ => self.open_operator(text, state),
            }
        }?;
        // SAFETY: as above.
        unsafe { self.link(kind, state, &mut open) };
        Some((open, kind))
    }

    /// # Safety
    /// As of [`Started::open`], and `text` is the record's name.
    #[inline]
    unsafe fn open_operator(
        &self,
        text: *const c_char,
        state: &ThreadState,
    ) -> Option<(OpenScope, Kind)> {
        // SAFETY: torch's texts end in a zero, and the record is torch's.
        unsafe {
            let name = match state.names.find(text) {
                Some(name) => name,
                // What has no arguments by its schema may have no schema: its text is of the moment.
                None if self.observer.symbols.argument_count(self.record) == 0 => {
                    return self.open_text(Kind::Operator, text, state);
                }
                None => state.names.add(text),
            };
            open_with(name, |inputs| self.write_inputs(inputs)).map(|open| (open, Kind::Operator))
        }
    }

    /// # Safety
    /// As of [`Started::open_operator`].
    unsafe fn open_text(
        &self,
        kind: Kind,
        text: *const c_char,
        state: &ThreadState,
    ) -> Option<(OpenScope, Kind)> {
        state.texts.set(state.texts.get() + 1);
        // SAFETY: torch's texts end in a zero.
        let text = unsafe { CStr::from_ptr(text) };
        // Asking first is several times faster than looking for what to replace.
        let text = text
            .to_str()
            .map_or_else(|_| text.to_string_lossy(), Cow::Borrowed);
        let is_evaluation = kind == Kind::Operator && text.starts_with(EVALUATION);
        let name_kind = match kind {
            Kind::Operator | Kind::Evaluation => NameKind::Operator,
            Kind::Range => NameKind::Annotation,
            Kind::Backward => NameKind::Backward,
        };
        // SAFETY: by the caller's word.
        let mut open = open_range(&text, name_kind, |inputs| unsafe {
            self.write_inputs(inputs);
        })?;
        // What has a schema never is, nor a backward node. SAFETY: as above.
        if kind != Kind::Backward && unsafe { (self.observer.symbols.is_async)(self.record) } {
            open.set_async();
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

    /// Tells the number that ties a backward node to its forward operator. The engine's work around
    /// the node has the node's.
    ///
    /// # Safety
    /// As of [`Started::open`].
    #[inline]
    unsafe fn link(&self, kind: Kind, state: &ThreadState, open: &mut OpenScope) {
        let layout = &self.observer.layout;
        // SAFETY: by the caller's word.
        let (sequence, forward) = unsafe {
            let sequence = self.read::<i64>(layout.sequence);
            (sequence, self.read::<u64>(layout.forward_thread))
        };
        // Of none it is below zero; one that is too large for a record is left out.
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
        // SAFETY: the context is forgotten when torch destroys it.
        unsafe { Context::change(evaluation, |open| open.set_forward(sequence, thread)) };
    }

    /// Writes the inputs, which torch has there if the observer asked for them.
    ///
    /// # Safety
    /// As of [`Started::open`].
    #[inline]
    unsafe fn write_inputs(&self, inputs: &mut InputsRewriter<'_>) {
        let layout = &self.observer.layout;
        // SAFETY: by the caller's word.
        unsafe {
            let begin = self.read::<*const Value>(layout.inputs);
            let values = slice(begin, self.read::<usize>(layout.inputs + 8));
            inputs::write(values, &self.observer.tensors, layout, inputs);
        }
    }

    /// # Safety
    /// A `T` lies at the offset, by the layout.
    #[inline]
    unsafe fn read<T: Copy>(&self, offset: usize) -> T {
        // SAFETY: by the caller's word.
        unsafe { self.record.byte_add(offset).cast::<T>().read() }
    }
}
