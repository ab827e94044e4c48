//! The calls of suspended greenlets, which share one thread and its profile hook.
//!
//! A greenlet that starts or resumes brings its own chain of frames, which are unknown to the
//! shadow stack. The shadow then parks its calls here, and continues with the parked calls of the
//! greenlet that runs, found by their frames.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use super::interned::CallNames;
use super::shadow::Call;

/// Whether greenlets were seen in this process.
// Relaxed: it is set before the first calls are parked, and only the thread that parked calls
// depends on it.
static ARE_SEEN: AtomicBool = AtomicBool::new(false);

/// Returns whether greenlets were seen in this process.
#[inline]
pub(super) fn greenlets_were_seen() -> bool {
    ARE_SEEN.load(Ordering::Relaxed)
}

/// Returns whether this process can have greenlets: whether their module is loaded.
fn can_have_greenlets(py: Python<'_>) -> bool {
    if greenlets_were_seen() {
        return true;
    }
    let names = CallNames::get(py);
    let is_loaded = py
        .import(names.sys.bind(py))
        .and_then(|sys| sys.getattr(names.modules.bind(py)))
        .and_then(|modules| modules.contains(names.greenlet.bind(py)))
        .unwrap_or(false);
    if is_loaded {
        ARE_SEEN.store(true, Ordering::Relaxed);
    }
    is_loaded
}

/// The parked calls of a thread. Those that were parked first are searched first, because
/// greenlets usually take turns.
#[derive(Default)]
pub(super) struct Parked {
    stacks: VecDeque<Vec<Call>>,
}

impl Parked {
    /// Returns whether no calls are parked.
    pub(super) fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// Parks calls if they can belong to a greenlet. Otherwise their returns were missed, and they
    /// are dropped.
    pub(super) fn park(&mut self, py: Python<'_>, calls: Vec<Call>) {
        if !calls.is_empty() && can_have_greenlets(py) {
            self.add(calls);
        }
    }

    /// Parks the calls of a greenlet.
    pub(super) fn add(&mut self, calls: Vec<Call>) {
        if !calls.is_empty() {
            self.stacks.push_back(calls);
        }
    }

    /// Takes the calls of the greenlet that is in a call for which `is_it` holds, and returns them
    /// with the position of that call.
    pub(super) fn take(&mut self, is_it: impl Fn(&Call) -> bool) -> Option<(Vec<Call>, usize)> {
        let find = |calls: &Vec<Call>| calls.iter().rposition(&is_it);
        let mut stacks = self.stacks.iter().enumerate();
        let (index, position) = stacks.find_map(|(index, calls)| Some((index, find(calls)?)))?;
        let calls = self.stacks.remove(index)?;
        Some((calls, position))
    }

    /// Drops all parked calls.
    pub(super) fn clear(&mut self) {
        self.stacks.clear();
    }
}
