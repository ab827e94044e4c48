//! Scopes: what the host opens around its work.
//!
//! [`Scope`] closes when it is dropped, also by a panic; [`OpenScope`] is the same as a plain value, for hosts that open and close in
//! separate calls and perhaps on different threads.

use std::marker::PhantomData;

use mindprof_model::InputsEncoder;

use crate::chunk::Record;
use crate::clock::ticks;
use crate::gate::Gate;
use crate::local;
use crate::name::{Name, Site};

/// Opens a scope that closes when the returned value is dropped.
#[inline]
pub fn scope(site: &'static Site) -> Scope {
    scope_with(site, |_| ())
}

/// Opens a scope with inputs; the closure writes them, and runs only if some window wants them.
#[inline]
pub fn scope_with(site: &'static Site, inputs: impl FnOnce(&mut InputsEncoder)) -> Scope {
    let gate = Gate::load();
    let open = if gate.is_open() {
        begin(gate, site.name(), inputs)
    } else {
        None
    };
    Scope {
        open,
        thread_bound: PhantomData,
    }
}

/// Opens a scope under a name made at run time, to be closed by [`OpenScope::close`]. Returns none when nothing records.
#[inline]
pub fn open(name: Name) -> Option<OpenScope> {
    open_with(name, |_| ())
}

/// As [`open`], with inputs.
#[inline]
pub fn open_with(name: Name, inputs: impl FnOnce(&mut InputsEncoder)) -> Option<OpenScope> {
    let gate = Gate::load();
    if gate.is_open() {
        begin(gate, name, inputs)
    } else {
        None
    }
}

/// Returns whether a scope opened now would be recorded.
#[inline]
pub fn is_recording() -> bool {
    Gate::load().is_open()
}

fn begin(gate: Gate, name: Name, inputs: impl FnOnce(&mut InputsEncoder)) -> Option<OpenScope> {
    local::with(|local| local.begin(gate, name, inputs)).flatten()
}

/// An open scope of the calling thread. Closes when dropped.
#[derive(Debug)]
#[must_use = "the scope closes when this is dropped"]
pub struct Scope {
    open: Option<OpenScope>,
    // A guard that moved to another thread would end there.
    thread_bound: PhantomData<*const ()>,
}

impl Scope {
    /// Sets the number that links a forward operator with its backward node.
    pub fn set_sequence(&mut self, sequence: u32) {
        if let Some(open) = &mut self.open {
            open.set_sequence(sequence);
        }
    }
}

impl Drop for Scope {
    #[inline]
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            open.close();
        }
    }
}

/// An open scope as a value. What is never closed is told of as unfinished.
#[derive(Debug)]
#[must_use = "a scope that is not closed counts as unfinished"]
pub struct OpenScope {
    pub(crate) start: u64,
    pub(crate) name: u32,
    pub(crate) inputs: u32,
    pub(crate) sequence: u32,
    pub(crate) epoch: u32,
    pub(crate) place: u32,
    pub(crate) thread: u32,
}

impl OpenScope {
    /// Closes the scope, on whatever thread this is.
    #[inline]
    pub fn close(self) {
        let end = ticks();
        // A thread that is ending has no buffer any more; its open scopes are in the snapshot of the window.
        let _ = local::with(|local| local.end(&self, end));
    }

    /// Sets the number that links a forward operator with its backward node.
    pub fn set_sequence(&mut self, sequence: u32) {
        self.sequence = sequence;
    }

    /// Returns the record of the scope, given its end.
    #[inline]
    pub(crate) fn record(&self, end: u64) -> Record {
        Record {
            start: self.start,
            end,
            name: self.name,
            inputs: self.inputs,
            stack: 0,
            sequence: self.sequence,
        }
    }
}
