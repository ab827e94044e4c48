//! Which existing files a report may replace: an earlier report, and nothing else.

use std::fs;
use std::io::Read;
use std::path::Path;

use mindprof_report::{PAGE_HEAD_BYTES, is_page};
use mindprof_trace::Compression;

use crate::failure::advised;
use crate::output::Output;

/// The state of the place that a page is to be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Nothing is lost: there is no file, an empty one, a pipe or a device.
    Free,
    /// An earlier page of mindprof.
    Page,
}

/// Returns the state of the place of a page, or an error if another file would be replaced.
pub(crate) fn page_place(out: &Output) -> anyhow::Result<Place> {
    let Output::File(path) = out else {
        return Ok(Place::Free);
    };
    // Writing reports folders and what cannot be accessed.
    let Ok(about) = fs::metadata(path) else {
        return Ok(Place::Free);
    };
    if !about.is_file() || about.len() == 0 {
        return Ok(Place::Free);
    }
    if is_page_file(path) {
        return Ok(Place::Page);
    }
    let message = format!("{}: is not a page of mindprof", path.display());
    Err(advised(message, "remove it, or write to another file"))
}

/// Returns an error if a trace beside a page would replace a file that no earlier report wrote.
pub(crate) fn refuse_other_trace(path: &Path, page: Place) -> anyhow::Result<()> {
    match page {
        Place::Free if fs::metadata(path).is_ok_and(|found| found.len() > 0) => {
            let message = format!("{}: exists, without a page beside it", path.display());
            Err(advised(message, "remove it, or name the page otherwise"))
        }
        Place::Free | Place::Page => Ok(()),
    }
}

/// Returns whether a file is a page of mindprof. A compressed one is known by its name.
fn is_page_file(path: &Path) -> bool {
    if Compression::of(path).is_some() {
        let stem = path.file_stem().map(Path::new);
        return stem
            .and_then(Path::extension)
            .is_some_and(|end| end == "html");
    }
    let mut head = Vec::new();
    let file = fs::File::open(path);
    let read = file.and_then(|file| file.take(PAGE_HEAD_BYTES).read_to_end(&mut head));
    read.is_ok() && is_page(&head)
}
