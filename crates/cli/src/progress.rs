//! A bar on stderr for what takes longer than a second, if someone is there to see it.

use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// How long something may take before a bar appears.
const PATIENCE: Duration = Duration::from_secs(1);

/// The progress of reading one file. The bar goes when this is dropped.
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

    /// Takes how many bytes were read, and how many there are (zero when that is not known).
    pub(crate) fn report(&self, done: u64, total: u64) {
        if self.is_shown(self.began.elapsed()) {
            let bar = self.bar.get_or_init(|| bar(&self.path, total));
            bar.set_position(done);
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

fn bar(path: &Path, total: u64) -> ProgressBar {
    let (bar, layout) = if total == 0 {
        (ProgressBar::new_spinner(), "{msg} {bytes} {bytes_per_sec}")
    } else {
        let layout = "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec}";
        (ProgressBar::new(total), layout)
    };
    let style = ProgressStyle::with_template(layout).expect("the layout is a constant");
    bar.set_style(style.progress_chars("=> "));
    bar.set_message(format!("reading {}", path.display()));
    bar
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
}
