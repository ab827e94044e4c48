//! A session: one window over the recording of the process, from `start` to `stop`.

use mindprof_model::Metadata;

use crate::capture::Capture;
use crate::clock::{self, Anchor};
use crate::fork;
use crate::options::Options;
use crate::recorder::{self, ClosedWindow, Window};

/// An open window over the recording of the process. It contains every event of every thread that
/// begins between [`Session::start`] and [`Session::stop`], except while it is paused. Several
/// sessions may be open at the same time and share the recorded events.
#[derive(Debug)]
pub struct Session {
    window: Option<Window>,
    opened: Anchor,
    options: Options,
    steps: Vec<(u64, u64)>,
}

impl Session {
    /// Opens a window with the given options.
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

    /// Takes the first clock reading and installs the fork hooks. Call it when the library is
    /// loaded: the tick rate is measured between this moment and the end of a window, so an early
    /// start makes it more accurate. Otherwise the first [`Session::start`] does it.
    pub fn prepare() {
        fork::watch();
        Anchor::first();
    }

    /// Pauses the window: scopes that begin from now on are left out. Scopes that are open stay in
    /// it, and other windows are not affected.
    pub fn pause(&self) {
        if let Some(window) = self.window {
            recorder::pause_window(window);
        }
    }

    /// Resumes the window after [`Session::pause`].
    pub fn resume(&self) {
        if let Some(window) = self.window {
            recorder::resume_window(window);
        }
    }

    /// Records that a profiler step begins now, for steps that have no scope of their own.
    pub fn mark_step(&mut self, number: u64) {
        self.steps.push((clock::ticks(), number));
    }

    /// Records that the window begins within a profiler step, for steps that have no scope of their
    /// own.
    pub fn begin_in_step(&mut self, number: u64) {
        let start = self.window.as_ref().map(|window| window.start);
        self.steps.extend(start.map(|start| (start, number)));
    }

    /// Closes the window and returns its recording. The cost grows with the number of threads and
    /// chunks, not with the number of events.
    pub fn stop(mut self) -> Capture {
        let (start, taken) = match self.window.take() {
            Some(window) => (window.start, recorder::close_window(window)),
            None => (0, ClosedWindow::default()),
        };
        let closed = Anchor::take();
        Capture {
            metadata: Metadata::default(),
            window: taken.first_kept.max(start)..taken.end,
            opened_at: start,
            pauses: taken.pauses,
            only: self.options.only,
            unlimited: taken.unlimited,
            steps: std::mem::take(&mut self.steps),
            opened: self.opened,
            closed,
            keep_inputs: self.options.inputs,
            keep_memory: self.options.memory,
            keep_results: self.options.results,
            keep_overloads: self.options.overloads,
            keep_hierarchies: self.options.module_hierarchies,
            keep_calls: self.options.calls,
            threads: taken.threads,
            samples: taken.samples,
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
