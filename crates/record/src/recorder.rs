//! The one recording of the process: which windows are open, and which threads take part.
//!
//! The gate is open while at least one window is. A recording (an epoch) lasts from the first window's opening to the last
//! one's closing; buffers empty themselves when they meet a new epoch.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::budget;
use crate::buffer::Buffer;
use crate::capture::ThreadCapture;
use crate::clock::ticks;
use crate::gate::Gate;
use crate::session::Options;

static RECORDER: Mutex<Recorder> = Mutex::new(Recorder {
    epoch: 0,
    windows: Vec::new(),
    buffers: Vec::new(),
    threads_seen: 0,
});

struct Recorder {
    epoch: u32,
    windows: Vec<OpenWindow>,
    buffers: Vec<Arc<Buffer>>,
    threads_seen: u32,
}

struct OpenWindow {
    start: u64,
    options: Options,
    /// By thread: what it had lost when the window opened.
    lost_before: Vec<(u32, u64)>,
}

/// An open window: its number and the moment from which on events belong to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) start: u64,
}

fn recorder() -> MutexGuard<'static, Recorder> {
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

/// Marks a scope of another thread as closed.
pub(crate) fn close_on_thread(thread: u32, place: u32) {
    let recorder = recorder();
    if let Some(buffer) = recorder
        .buffers
        .iter()
        .find(|buffer| buffer.index == thread)
    {
        buffer.open.close_out_of_turn(place);
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
    let epoch = recorder.epoch;
    let lost_before = recorder
        .of_this_epoch()
        .map(|buffer| (buffer.index, buffer.lost()))
        .collect();
    // Two windows never share a start: the lock is held, and reading the clock takes several ticks.
    let start = ticks();
    recorder.windows.push(OpenWindow {
        start,
        options,
        lost_before,
    });
    recorder.set_gate(epoch);
    Window { start }
}

/// Closes a window and returns what every thread has for it. The window's end is given in ticks.
pub(crate) fn close_window(window: Window) -> (u64, Vec<ThreadCapture>) {
    let stop = ticks();
    let mut recorder = recorder();
    let Some(position) = recorder
        .windows
        .iter()
        .position(|open| open.start == window.start)
    else {
        return (stop, Vec::new());
    };
    let closed = recorder.windows.remove(position);
    let epoch = recorder.epoch;
    recorder.set_gate(epoch);
    let lost_before = |thread: u32| {
        closed
            .lost_before
            .iter()
            .find(|(index, _)| *index == thread)
            .map_or(0, |(_, lost)| *lost)
    };
    let threads = recorder
        .of_this_epoch()
        .map(|buffer| ThreadCapture::take(buffer, lost_before(buffer.index)))
        .collect();
    if recorder.windows.is_empty() {
        recorder.release();
    }
    (stop, threads)
}

impl Recorder {
    fn of_this_epoch(&self) -> impl Iterator<Item = &Arc<Buffer>> {
        self.buffers
            .iter()
            .filter(|buffer| buffer.contents().epoch == self.epoch)
    }

    fn set_gate(&self, epoch: u32) {
        let Some(budget) = self
            .windows
            .iter()
            .map(|window| window.options.budget_bytes)
            .max()
        else {
            Gate::close();
            return;
        };
        budget::set_limit(budget);
        Gate::open(
            epoch,
            self.windows.iter().any(|window| window.options.inputs),
        );
    }

    /// Lets go of what the last window has taken with it. The last chunk of a living thread is the one it writes.
    fn release(&mut self) {
        self.buffers.retain(|buffer| !buffer.is_retired());
        for buffer in &self.buffers {
            let mut contents = buffer.contents();
            let settled = contents.chunks.len().saturating_sub(1);
            contents.chunks.drain(..settled);
        }
    }
}
