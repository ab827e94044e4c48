//! A session: one window over the recording, from `start` to `stop`.

use mindprof_model::Metadata;

use crate::capture::Capture;
use crate::clock::Anchor;
use crate::recorder::{self, Window};

/// What a window wants.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether scopes keep the shapes and values they were given.
    pub inputs: bool,
    /// How many bytes the recording may hold. The newest events beyond it are dropped and counted. While several
    /// windows are open, the largest of their budgets is in force.
    pub budget_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            inputs: false,
            budget_bytes: 256 << 20,
        }
    }
}

/// An open window. Every event of every thread that begins before [`Session::stop`] belongs to it.
#[derive(Debug)]
pub struct Session {
    window: Option<Window>,
    opened: Anchor,
    options: Options,
}

impl Session {
    /// Opens a window.
    pub fn start(options: Options) -> Self {
        Anchor::first();
        let opened = Anchor::take();
        Self {
            window: Some(recorder::open_window(options)),
            opened,
            options,
        }
    }

    /// Prepares the clock. Called when the library is loaded, so that the rate is known from far apart moments.
    pub fn prepare() {
        Anchor::first();
    }

    /// Closes the window and returns what it holds. Takes time by threads and chunks, not by events.
    pub fn stop(mut self) -> Capture {
        let (window, threads) = match self.window.take() {
            Some(window) => {
                let (stop, threads) = recorder::close_window(window);
                (window.start..stop, threads)
            }
            None => (0..0, Vec::new()),
        };
        let closed = Anchor::take();
        Capture {
            metadata: Metadata::default(),
            window,
            opened: self.opened,
            closed,
            keep_inputs: self.options.inputs,
            threads,
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
