//! The one recording of the process: which windows are open, and which threads take part.
//!
//! The gate is open while at least one window is, unless all of them are paused. A recording (an
//! epoch) lasts from the first window's opening to the last one's closing; buffers empty themselves
//! when they meet a new epoch.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mindprof_model::Loss;

use crate::budget;
use crate::buffer::Buffer;
use crate::capture::ThreadCapture;
use crate::clock::ticks;
use crate::gate::{self, Gate, Wanted};
use crate::scope::OpenScope;
use crate::session::Options;

static RECORDER: Mutex<Recorder> = Mutex::new(Recorder {
    epoch: 0,
    windows: Vec::new(),
    buffers: Vec::new(),
    threads_seen: 0,
});

pub(crate) struct Recorder {
    epoch: u32,
    windows: Vec<OpenWindow>,
    buffers: Vec<Arc<Buffer>>,
    threads_seen: u32,
}

struct OpenWindow {
    start: u64,
    options: Options,
    /// What threads had lost when the window opened, and what they lost while it was paused.
    not_lost_here: Losses,
    pauses: Vec<Range<u64>>,
    paused_now: Option<Pause>,
}

/// A pause that has not ended.
struct Pause {
    start: u64,
    lost_before: Losses,
}

/// Numbers of lost events by thread.
#[derive(Default)]
struct Losses(Vec<(u32, Loss)>);

/// An open window: its number and the moment from which on events belong to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) start: u64,
}

/// What a window takes with it when it closes.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// When the window closed, in ticks.
    pub(crate) end: u64,
    /// When scopes were not wanted, in ticks, in order.
    pub(crate) pauses: Vec<Range<u64>>,
    /// What every thread has for it.
    pub(crate) threads: Vec<ThreadCapture>,
}

/// Locks the recorder.
pub(crate) fn recorder() -> MutexGuard<'static, Recorder> {
    RECORDER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the calling thread to those that take part.
pub(crate) fn register_thread() -> Arc<Buffer> {
    let mut recorder = recorder();
    let buffer = Arc::new(Buffer::new(recorder.threads_seen));
    recorder.threads_seen += 1;
    recorder.buffers.push(Arc::clone(&buffer));
    buffer
}

/// Ends a scope of another thread than the calling one, which may have ended.
pub(crate) fn end_elsewhere(scope: &OpenScope, end: u64) {
    let recorder = recorder();
    // Else its windows have closed and told of it as unfinished.
    if Gate::load().epoch() == scope.epoch {
        let mut buffers = recorder.buffers.iter();
        let buffer = buffers.find(|buffer| buffer.index == scope.place.thread());
        if let Some(buffer) = buffer {
            buffer.end_elsewhere(scope.epoch, scope.place.depth(), scope.record(end));
        }
    }
}

/// Opens a window.
pub(crate) fn open_window(options: Options) -> Window {
    let mut recorder = recorder();
    if recorder.windows.is_empty() {
        recorder.epoch += 1;
        recorder.buffers.retain(|buffer| !buffer.is_retired());
        budget::reset();
    }
    let not_lost_here = recorder.losses();
    // Two windows never share a start: the lock is held, and reading the clock takes several ticks.
    let start = ticks();
    recorder.windows.push(OpenWindow {
        start,
        options,
        not_lost_here,
        pauses: Vec::new(),
        paused_now: None,
    });
    gate::set_last_opening(start);
    recorder.set_gate();
    Window { start }
}

/// Keeps the scopes that begin from now on out of a window, until [`resume_window`].
pub(crate) fn pause_window(window: Window) {
    let mut recorder = recorder();
    let lost_before = recorder.losses();
    let Some(open) = recorder.find(window) else {
        return;
    };
    if open.paused_now.is_none() {
        let start = ticks();
        open.paused_now = Some(Pause { start, lost_before });
    }
    recorder.set_gate();
}

/// Ends the pause of a window.
pub(crate) fn resume_window(window: Window) {
    let mut recorder = recorder();
    let lost_now = recorder.losses();
    let Some(open) = recorder.find(window) else {
        return;
    };
    open.end_pause(ticks(), &lost_now);
    recorder.set_gate();
}

/// Closes a window and returns what there is for it.
pub(crate) fn close_window(window: Window) -> Taken {
    let end = ticks();
    let mut recorder = recorder();
    let Some(position) = recorder.position(window) else {
        let nothing = Taken::default();
        return Taken { end, ..nothing };
    };
    let mut closed = recorder.windows.remove(position);
    closed.end_pause(end, &recorder.losses());
    recorder.set_gate();
    let threads = recorder
        .of_this_epoch()
        .map(|buffer| ThreadCapture::take(buffer, &closed.not_lost_here.of(buffer.index)))
        .collect();
    if recorder.windows.is_empty() {
        recorder.release();
    }
    Taken {
        end,
        pauses: closed.pauses,
        threads,
    }
}

impl OpenWindow {
    fn end_pause(&mut self, now: u64, lost_now: &Losses) {
        if let Some(pause) = self.paused_now.take() {
            self.pauses.push(pause.start..now);
            self.not_lost_here.add_between(&pause.lost_before, lost_now);
        }
    }
}

impl Losses {
    fn of(&self, thread: u32) -> Loss {
        let found = self.0.iter().find(|(index, _)| *index == thread);
        found.map_or_else(Loss::default, |(_, lost)| *lost)
    }

    /// Adds what was lost between two moments.
    fn add_between(&mut self, before: &Self, after: &Self) {
        for &(thread, lost) in &after.0 {
            let between = lost.since(&before.of(thread));
            match self.0.iter_mut().find(|(index, _)| *index == thread) {
                Some(entry) => entry.1.merge(&between),
                None => self.0.push((thread, between)),
            }
        }
    }
}

impl Recorder {
    /// Forgets all windows and all threads but the one whose buffer is given: what a forked child
    /// begins with.
    pub(crate) fn start_over(&mut self, own: Option<&Arc<Buffer>>) {
        self.windows.clear();
        self.buffers.clear();
        self.buffers.extend(own.cloned());
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

    fn of_this_epoch(&self) -> impl Iterator<Item = &Arc<Buffer>> {
        self.buffers
            .iter()
            .filter(|buffer| buffer.contents().epoch == self.epoch)
    }

    fn losses(&self) -> Losses {
        let buffers = self.of_this_epoch();
        Losses(
            buffers
                .map(|buffer| (buffer.index, buffer.lost()))
                .collect(),
        )
    }

    fn set_gate(&self) {
        let options = || self.windows.iter().map(|window| window.options);
        let Some(budget) = options().map(|options| options.budget_bytes).max() else {
            Gate::close();
            return;
        };
        budget::set_limit(budget);
        let wanted = Wanted {
            scopes: self
                .windows
                .iter()
                .any(|window| window.paused_now.is_none()),
            inputs: options().any(|options| options.inputs),
            memory: options().any(|options| options.memory),
            calls: options()
                .map(|options| options.calls)
                .max()
                .unwrap_or_default(),
        };
        Gate::set(self.epoch, wanted);
    }

    /// Lets go of what the last window has taken with it. A living thread keeps the chunk that it
    /// writes.
    fn release(&mut self) {
        self.buffers.retain(|buffer| !buffer.is_retired());
        for buffer in &self.buffers {
            buffer.contents().release();
        }
    }
}
