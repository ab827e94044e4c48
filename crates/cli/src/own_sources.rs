//! The user's source files whose lines a page may show.
//!
//! A trace names the files, and a trace may come from a stranger. So only Python files below the
//! current folder are read, and the command says which.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use mindprof_analyze::Analysis;
use mindprof_answers::{Functions, OwnCode, SourceFile, Sources, Work};
use mindprof_formats::counted;
use mindprof_report::visible;

use crate::output::tell;

/// The largest source file that is read.
const MOST_BYTES: u64 = 4 << 20;

/// Reads the user's source files, and reports which are shown and how many are not.
pub(crate) fn own_sources(analysis: &Analysis, mine: &[String]) -> Vec<SourceFile> {
    let metadata = analysis.profile().metadata();
    let own = OwnCode::of(metadata, mine);
    let functions = Functions::build(analysis, &Work::of(analysis), &own);
    let listed = Sources::read(metadata);
    let Ok(here) = std::env::current_dir().and_then(fs::canonicalize) else {
        return Vec::new();
    };
    let mut sources = Vec::new();
    let (mut outside, mut unfit) = (0, 0);
    for file in functions.files() {
        let path = listed.as_ref().and_then(|sources| sources.path(file));
        let Ok(path) = fs::canonicalize(path.unwrap_or(file)) else {
            continue;
        };
        if !path.starts_with(&here) {
            outside += 1;
            continue;
        }
        let Some(lines) = read_lines(&path) else {
            unfit += 1;
            continue;
        };
        tell(&format!("shows lines of {}", shown(&path, &here).display()));
        sources.push(SourceFile {
            file: file.into(),
            functions: Vec::new(),
            lines,
        });
    }
    tell_left_out(outside, "outside of the current folder");
    tell_left_out(unfit, "that are no Python files of at most 4 MB");
    sources
}

fn tell_left_out(count: u64, why: &str) {
    if count > 0 {
        tell(&format!("left out {} {why}", counted(count, "source file")));
    }
}

/// Returns a path for a message: relative to the current folder, on one line.
fn shown(path: &Path, here: &Path) -> PathBuf {
    let path = path.strip_prefix(here).unwrap_or(path);
    PathBuf::from(visible(&path.to_string_lossy()).into_owned())
}

/// Returns the lines of a Python file, or `None` if the file may not be shown. `path` has no
/// symbolic links left, so that its ending is that of the file itself.
fn read_lines(path: &Path) -> Option<Vec<String>> {
    if path.extension()? != "py" {
        return None;
    }
    // Opening a pipe would wait for somebody to write to it.
    let about = fs::symlink_metadata(path).ok()?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return None;
    }
    let bytes = read_at_most(path, MOST_BYTES).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.lines().map(Into::into).collect())
}

fn read_at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}
