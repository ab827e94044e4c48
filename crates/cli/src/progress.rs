//! Progress on stderr: a bar while a trace is read, and a spinner during other long work.
//!
//! Both appear after a second, only if stderr is a terminal, and vanish when the work is done.

use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{BinaryBytes, ProgressBar, ProgressStyle};

/// The time before a bar or a spinner appears.
const PATIENCE: Duration = Duration::from_secs(1);

/// The number of characters shown of a file name.
const NAME_WIDTH: usize = 20;

/// The number of characters shown of a spinner's text.
const BUSY_WIDTH: usize = 60;

/// The time between two frames of a spinner.
const TICK: Duration = Duration::from_millis(250);

/// The progress of reading one file.
///
/// The reader reports its position. Dropping the value removes the bar.
pub(crate) struct Progress {
    path: PathBuf,
    is_watched: bool,
    began: Instant,
    bar: OnceLock<ProgressBar>,
}

impl Progress {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.into(),
            is_watched: stderr().is_terminal(),
            began: Instant::now(),
            bar: OnceLock::new(),
        }
    }

    /// Updates the bar: `done` bytes of `total` are read, where zero means an unknown total.
    pub(crate) fn report(&self, done: u64, total: u64) {
        if self.is_shown(self.began.elapsed()) {
            let bar = self.bar.get_or_init(|| bar(&self.path, total));
            bar.set_position(done);
            bar.set_prefix(rate(done, self.began.elapsed()));
        }
    }

    fn is_shown(&self, elapsed: Duration) -> bool {
        self.is_watched && elapsed > PATIENCE
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

/// The progress over several files, which threads report.
///
/// Dropping the value removes the bar.
pub(crate) struct FilesProgress {
    files: usize,
    is_watched: bool,
    began: Instant,
    bar: OnceLock<ProgressBar>,
}

impl FilesProgress {
    pub(crate) fn new(files: usize) -> Self {
        Self {
            files,
            is_watched: stderr().is_terminal(),
            began: Instant::now(),
            bar: OnceLock::new(),
        }
    }

    /// Updates the bar: so many files are done.
    pub(crate) fn report(&self, done: usize) {
        if self.is_watched && self.began.elapsed() > PATIENCE {
            let bar = self.bar.get_or_init(|| files_bar(self.files));
            bar.set_position(done as u64);
        }
    }
}

impl Drop for FilesProgress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

fn files_bar(files: usize) -> ProgressBar {
    let bar = ProgressBar::new(files as u64);
    let style = ProgressStyle::with_template("reading ranks [{bar:24}] {pos}/{len} {per_sec}");
    let style = style.expect("the layout is a constant");
    bar.set_style(style.progress_chars("=> "));
    bar
}

/// A spinner with the elapsed time, for work of unknown length.
///
/// A thread draws it, so that the work need not report anything. Dropping the value removes it.
pub(crate) struct Busy {
    watcher: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Busy {
    pub(crate) fn new(what: String) -> Self {
        let watcher = stderr().is_terminal().then(|| {
            let (done, waiting) = channel();
            let watch = thread::Builder::new().name("mindprof-progress".into());
            let watch = watch.spawn(move || {
                if waiting.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
                let line = busy_line(&what);
                // Returns with an error when `done` is dropped, which is the signal to stop.
                let _ = waiting.recv();
                line.finish_and_clear();
            });
            Some((done, watch.ok()?))
        });
        Self {
            watcher: watcher.flatten(),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some((done, watch)) = self.watcher.take() {
            drop(done);
            // A panic while drawing must not fail the command.
            let _ = watch.join();
        }
    }
}

fn busy_line(what: &str) -> ProgressBar {
    let line = ProgressBar::new_spinner().with_elapsed(PATIENCE);
    let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
    line.set_style(style.expect("the layout is a constant"));
    line.set_message(short_end(what, BUSY_WIDTH));
    line.enable_steady_tick(TICK);
    line
}

fn bar(path: &Path, total: u64) -> ProgressBar {
    let (bar, layout) = if total == 0 {
        let layout = "{msg} {binary_bytes} {prefix}";
        (ProgressBar::new_spinner(), layout)
    } else {
        // At most 80 columns: 28 for the name, 14 for the bar, the rest for numbers and spaces.
        let layout = "{msg} [{bar:12}] {binary_bytes}/{binary_total_bytes} {prefix}";
        (ProgressBar::new(total), layout)
    };
    let style = ProgressStyle::with_template(layout).expect("the layout is a constant");
    bar.set_style(style.progress_chars("=> "));
    bar.set_message(format!("reading {}", short_name(path)));
    bar
}

/// Returns the average rate since the start of reading.
///
/// The bar's own rate starts when the bar appears, a second late, and counts everything read before
/// as the work of one moment.
fn rate(done: u64, elapsed: Duration) -> String {
    let per_second = done as f64 / elapsed.as_secs_f64().max(f64::EPSILON);
    format!("{}/s", BinaryBytes(per_second as u64))
}

/// Returns the file name of a path, shortened at its beginning.
fn short_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    short_end(&name.to_string_lossy(), NAME_WIDTH)
}

fn short_end(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.into();
    }
    let end: String = text.chars().skip(count - width + 1).collect();
    format!("\u{2026}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_for_slow_work_that_someone_watches() {
        let mut progress = Progress::new("trace.json".as_ref());
        progress.is_watched = true;
        assert!(progress.is_shown(Duration::from_secs(2)));
        assert!(!progress.is_shown(Duration::from_millis(900)));
        progress.is_watched = false;
        assert!(!progress.is_shown(Duration::from_secs(2)));
        progress.report(1, 2);
        assert!(progress.bar.get().is_none());
    }

    #[test]
    fn the_rate_is_that_of_all_the_time() {
        assert_eq!(rate(30 << 20, Duration::from_secs(3)), "10.00 MiB/s");
    }

    #[test]
    fn of_a_long_name_the_end_is_shown() {
        let long = format!("/traces/{}-rank0.json.gz", "x".repeat(90));
        assert_eq!(short_name(long.as_ref()), "…xxxxx-rank0.json.gz");
        assert_eq!(short_name("a/b.json".as_ref()), "b.json");
    }
}
