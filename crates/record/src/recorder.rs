//! The one recording of the process: the open windows, and what each takes with it when it closes.
//!
//! The gate is open while at least one window is open and not paused. A recording (an epoch) lasts
//! from the opening of the first window to the closing of the last; a buffer empties itself when it
//! meets a new epoch.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mindprof_model::Loss;

use crate::budget;
use crate::capture::ThreadCapture;
use crate::clock::ticks;
use crate::forgotten::Forgotten;
use crate::gate::{self, Gate, Wanted};
use crate::limit::Only;
use crate::lost::{EarlyLoss, LossByKind, LossFilter};
use crate::name::NameLease;
use crate::options::{Calls, Keep, Options};
use crate::registry::registry;
use crate::samples::{self, SampleCapture, samples};

static RECORDER: Mutex<Recorder> = Mutex::new(Recorder {
    epoch: 0,
    names: None,
    windows: Vec::new(),
});

pub(crate) struct Recorder {
    epoch: u32,
    /// Keeps the names of the recording alive while a window is open.
    names: Option<Arc<NameLease>>,
    windows: Vec<OpenWindow>,
}

struct OpenWindow {
    start: u64,
    options: Options,
    /// Losses that are not this window's: those before it opened, and those while it was paused.
    not_lost_here: Losses,
    pauses: Vec<Range<u64>>,
    paused_now: Option<Pause>,
    /// The times in which more operators were recorded than the window wants, and the start of such
    /// a time that has not ended.
    unlimited: Vec<Range<u64>>,
    unlimited_since: Option<u64>,
}

/// A pause that has not ended.
struct Pause {
    start: u64,
    lost_before: Losses,
}

/// Lost events by thread.
#[derive(Default)]
struct Losses(Vec<(u32, LossByKind)>);

/// The handle of an open window. Its start time identifies it, since no two windows start at the
/// same tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) start: u64,
}

/// A closed window and everything it takes with it. `Session::stop` turns it into a `Capture`.
#[derive(Debug, Default)]
pub(crate) struct ClosedWindow {
    /// The time at which the window closed, in ticks.
    pub(crate) end: u64,
    /// The time from which all records are kept, in ticks.
    pub(crate) first_kept: u64,
    /// The pauses of the window, in ticks, in order.
    pub(crate) pauses: Vec<Range<u64>>,
    /// The times in which more operators were recorded than the window wants, in ticks, in order.
    pub(crate) unlimited: Vec<Range<u64>>,
    /// The records of every thread.
    pub(crate) threads: Vec<ThreadCapture>,
    /// The samples of all threads, if the window wants them.
    pub(crate) samples: Option<SampleCapture>,
    /// Keeps the names that the records refer to alive.
    pub(crate) names: Option<Arc<NameLease>>,
}

/// Locks the recorder.
pub(crate) fn recorder() -> MutexGuard<'static, Recorder> {
    RECORDER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens a window.
pub(crate) fn open_window(options: Options) -> Window {
    let mut recorder = recorder();
    if recorder.windows.is_empty() {
        recorder.epoch += 1;
        registry().forget_ended();
        budget::reset();
        recorder.names = Some(NameLease::begin(recorder.epoch));
    }
    let not_lost_here = recorder.losses_until_change();
    // Two windows never share a start: the lock is held, and reading the clock takes several ticks.
    let start = ticks();
    if options.keep == Keep::Last && recorder.first_kept_last().is_none() {
        // An earlier window may have left sums behind, if another one is still open.
        for buffer in registry().of_epoch(recorder.epoch) {
            buffer.contents().forgotten = Forgotten::since(start);
        }
    }
    recorder.windows.push(OpenWindow {
        start,
        options,
        not_lost_here,
        pauses: Vec::new(),
        paused_now: None,
        unlimited: Vec::new(),
        unlimited_since: None,
    });
    gate::set_last_opening(start);
    gate::set_last_change(start);
    recorder.set_gate();
    Window { start }
}

/// Pauses a window until [`resume_window`]: scopes that begin meanwhile are left out.
pub(crate) fn pause_window(window: Window) {
    let mut recorder = recorder();
    let lost_before = recorder.losses_until_change();
    let Some(open) = recorder.find(window) else {
        return;
    };
    if open.paused_now.is_none() {
        let start = ticks();
        gate::set_last_change(start);
        open.paused_now = Some(Pause { start, lost_before });
    }
    recorder.set_gate();
}

/// Resumes a paused window.
pub(crate) fn resume_window(window: Window) {
    let mut recorder = recorder();
    let lost_now = recorder.losses_until_change();
    let Some(open) = recorder.find(window) else {
        return;
    };
    let end = ticks();
    gate::set_last_change(end);
    open.end_pause(end, &lost_now);
    recorder.set_gate();
}

/// Closes a window and returns its recording.
pub(crate) fn close_window(window: Window) -> ClosedWindow {
    let end = ticks();
    let mut recorder = recorder();
    let Some(position) = recorder.position(window) else {
        let nothing = ClosedWindow::default();
        return ClosedWindow { end, ..nothing };
    };
    let mut closed = recorder.windows.remove(position);
    closed.end_pause(end, &recorder.losses());
    closed.set_unlimited(false, end);
    recorder.set_gate();
    let mut registry = registry();
    let threads: Vec<_> = registry
        .of_epoch(recorder.epoch)
        .map(|buffer| {
            ThreadCapture::take(buffer, |counted, early| {
                closed.lost(buffer.index, counted, early)
            })
        })
        .collect();
    let ends = threads.iter().map(|thread| thread.forgotten.until);
    let first_kept = ends.max().map_or(0, |end| end + 1);
    let names = recorder.names.clone();
    let samples = (closed.options.calls == Calls::Sampled)
        .then(|| samples().within(recorder.epoch, &(first_kept.max(window.start)..end)));
    if recorder.windows.is_empty() {
        samples::samples().clear();
        registry.release();
        recorder.names = None;
    }
    ClosedWindow {
        end,
        first_kept,
        pauses: closed.pauses,
        unlimited: closed.unlimited,
        threads,
        samples,
        names,
    }
}

impl OpenWindow {
    /// Returns the losses of a thread that the window has to report, of all that were counted.
    fn lost(&self, thread: u32, counted: &LossByKind, early: &[EarlyLoss]) -> Loss {
        let filter = LossFilter {
            options: self.options,
            start: self.start,
            pauses: &self.pauses,
        };
        filter.sum(&counted.since(&self.not_lost_here.of(thread)), early)
    }

    /// Notes whether more operators are recorded than the window wants, from `now` on.
    fn set_unlimited(&mut self, is_unlimited: bool, now: u64) {
        if is_unlimited {
            self.unlimited_since.get_or_insert(now);
        } else if let Some(start) = self.unlimited_since.take() {
            self.unlimited.push(start..now);
        }
    }

    fn end_pause(&mut self, now: u64, lost_now: &Losses) {
        if let Some(pause) = self.paused_now.take() {
            self.pauses.push(pause.start..now);
            self.not_lost_here.add_between(&pause.lost_before, lost_now);
        }
    }
}

impl Losses {
    fn of(&self, thread: u32) -> LossByKind {
        let found = self.0.iter().find(|(index, _)| *index == thread);
        found.map_or_else(LossByKind::default, |(_, lost)| *lost)
    }

    /// Adds the lost scopes between two moments. Calls and memory are recorded also during pauses.
    fn add_between(&mut self, before: &Self, after: &Self) {
        for &(thread, lost) in &after.0 {
            let between = lost.since(&before.of(thread)).of_scopes();
            match self.0.iter_mut().find(|(index, _)| *index == thread) {
                Some(entry) => entry.1.merge(&between),
                None => self.0.push((thread, between)),
            }
        }
    }
}

impl Recorder {
    /// Forgets all windows, in a forked child.
    pub(crate) fn start_over(&mut self) {
        self.windows.clear();
        self.names = None;
        self.set_gate();
    }

    fn position(&self, window: Window) -> Option<usize> {
        let mut windows = self.windows.iter();
        windows.position(|open| open.start == window.start)
    }

    fn find(&mut self, window: Window) -> Option<&mut OpenWindow> {
        let mut windows = self.windows.iter_mut();
        windows.find(|open| open.start == window.start)
    }

    /// Returns the losses up to now. Records that are lost later and began before are noted with
    /// their start, since they may not belong to a window that changes now.
    fn losses_until_change(&self) -> Losses {
        gate::set_last_change(ticks());
        self.losses()
    }

    fn losses(&self) -> Losses {
        let registry = registry();
        let buffers = registry.of_epoch(self.epoch);
        let losses = buffers.map(|buffer| (buffer.index, buffer.lost.load()));
        Losses(losses.collect())
    }

    /// Returns the start of the first window that keeps its last events, if there is one.
    fn first_kept_last(&self) -> Option<u64> {
        let windows = self.windows.iter();
        let keeping = windows.filter(|window| window.options.keep == Keep::Last);
        keeping.map(|window| window.start).min()
    }

    /// Returns the time from which windows need all records: the start of the first one that keeps
    /// its first events.
    fn first_needed(&self) -> u64 {
        let windows = self.windows.iter();
        let keeping = windows.filter(|window| window.options.keep == Keep::First);
        keeping.map(|window| window.start).min().unwrap_or(u64::MAX)
    }

    /// Puts the limit in force that all windows share; if they differ, everything is recorded, and
    /// each window drops what it does not want when its profile is built. Returns the limit.
    fn set_limit(&mut self) -> Only {
        let first = self
            .windows
            .first()
            .map_or(Only::ALL, |window| window.options.only);
        let is_shared = (self.windows.iter()).all(|window| window.options.only == first);
        let only = if is_shared { first } else { Only::ALL };
        only.put_in_force();
        let now = ticks();
        for window in &mut self.windows {
            window.set_unlimited(window.options.only != only, now);
        }
        only
    }

    fn set_gate(&mut self) {
        let only = self.set_limit();
        let options = || self.windows.iter().map(|window| window.options);
        let Some(budget) = options().map(|options| options.budget_bytes).max() else {
            Gate::close();
            return;
        };
        let keeps_last = options().any(|options| options.keep == Keep::Last);
        budget::set_limit(budget);
        budget::set_shared(keeps_last);
        gate::set_recycle_before(if keeps_last { self.first_needed() } else { 0 });
        let wanted = Wanted {
            scopes: self
                .windows
                .iter()
                .any(|window| window.paused_now.is_none()),
            inputs: options().any(|options| options.inputs),
            memory: options().any(|options| options.memory),
            results: options().any(|options| options.results),
            module_hierarchies: options().any(|options| options.module_hierarchies),
            all_calls: options().any(|options| options.calls == Calls::All),
            modules: options().any(|options| options.calls == Calls::Modules),
            sampled: options().any(|options| options.calls == Calls::Sampled),
            limited: only != Only::ALL,
        };
        Gate::set(self.epoch, wanted);
    }
}
