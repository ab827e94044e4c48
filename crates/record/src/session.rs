//! A session: one window over the recording, from `start` to `stop`.

use mindprof_model::Metadata;

use crate::capture::Capture;
use crate::clock::{self, Anchor};
use crate::fork;
use crate::options::Options;
use crate::recorder::{self, ClosedWindow, Window};

/// An open window. Every event of every thread that begins before [`Session::stop`] belongs to it,
/// unless it is paused.
#[derive(Debug)]
pub struct Session {
    window: Option<Window>,
    opened: Anchor,
    options: Options,
    steps: Vec<(u64, u64)>,
}

impl Session {
    /// Opens a window.
    pub fn start(options: Options) -> Self {
        Self::prepare();
        let opened = Anchor::take();
        Self {
            window: Some(recorder::open_window(options)),
            opened,
            options,
            steps: Vec::new(),
        }
    }

    /// Prepares the clock and the hooks around a fork. Called when the library is loaded, so that
    /// the rate is known from far apart moments; else the first start does it.
    pub fn prepare() {
        fork::watch();
        Anchor::first();
    }

    /// Keeps scopes that begin from now on out of the window. Those that are open stay in it; other
    /// windows go on.
    pub fn pause(&self) {
        if let Some(window) = self.window {
            recorder::pause_window(window);
        }
    }

    /// Takes scopes that begin from now on into the window again.
    pub fn resume(&self) {
        if let Some(window) = self.window {
            recorder::resume_window(window);
        }
    }

    /// Notes that a step of the profiler begins now, which no scope tells of.
    pub fn mark_step(&mut self, number: u64) {
        self.steps.push((clock::ticks(), number));
    }

    /// Closes the window and returns what it holds. Takes time by threads and chunks, not by
    /// events.
    pub fn stop(mut self) -> Capture {
        let (start, taken) = match self.window.take() {
            Some(window) => (window.start, recorder::close_window(window)),
            None => (0, ClosedWindow::default()),
        };
        let closed = Anchor::take();
        Capture {
            metadata: Metadata::default(),
            window: start..taken.end,
            pauses: taken.pauses,
            steps: std::mem::take(&mut self.steps),
            opened: self.opened,
            closed,
            keep_inputs: self.options.inputs,
            keep_memory: self.options.memory,
            keep_results: self.options.results,
            keep_calls: self.options.calls,
            threads: taken.threads,
            _names: taken.names,
            earlier: Vec::new(),
            attached: Vec::new(),
            processes: Vec::new(),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(window) = self.window.take() {
            recorder::close_window(window);
        }
    }
}
