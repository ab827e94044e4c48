//! The call paths of a profile, as folded stacks and as JSON: Python callers, then enclosing scopes,
//! then the event.
//!
//! torch's folded stacks contain Python frames only, so they are empty for traces without stacks.
//! These paths exist for every trace.

use std::io::Write;

use mindprof_analyze::{Analysis, Folded, PATH_LEVELS, StackMetric, microseconds};
use mindprof_model::Nanos;
use serde::Serialize;

use crate::error::Result;
use crate::folded::folded_frame;

/// The size of folded stacks that were written.
///
/// Callers use it to reject an empty output and to warn about levels that were cut off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldedLines {
    /// The number of lines.
    pub lines: u64,
    /// The number of levels of the longest path. Levels beyond [`PATH_LEVELS`] are not written.
    pub levels: usize,
}

/// Writes one line per path: its frames, outermost first, and the self time of its last frame in
/// microseconds.
///
/// If there are several processes or threads, their names are the outermost frames. Paths with less
/// than a microsecond are omitted.
///
/// # Errors
/// Fails if `out` cannot be written to.
pub fn write_paths(
    analysis: &Analysis,
    metric: StackMetric,
    out: impl Write,
) -> Result<FoldedLines> {
    write_folded_paths(&Folded::build(analysis, metric), out)
}

/// Writes the same lines as [`write_paths`], but with the Python callers only, without scopes.
///
/// # Errors
/// Fails if `out` cannot be written to.
pub fn write_callers(
    analysis: &Analysis,
    metric: StackMetric,
    out: impl Write,
) -> Result<FoldedLines> {
    write_folded_paths(&Folded::of_callers(analysis, metric), out)
}

/// Writes one line per path, as [`write_paths`] does, of paths that are folded already.
///
/// # Errors
/// Fails if `out` cannot be written to.
pub fn write_folded_paths(folded: &Folded<'_>, mut out: impl Write) -> Result<FoldedLines> {
    let mut written = FoldedLines {
        lines: 0,
        levels: folded.depth(),
    };
    let folded = folded.cut(PATH_LEVELS, Nanos::ZERO);
    for (path, weight) in folded.iter() {
        let microseconds = weight.0 / 1000;
        if microseconds == 0 {
            continue;
        }
        let frames = folded.frames(path);
        let frames = frames
            .iter()
            .map(|&frame| folded_frame(folded.strings().text(frame)));
        let frames: Vec<String> = frames.map(Iterator::collect).collect();
        writeln!(out, "{} {microseconds}", frames.join(";"))?;
        written.lines += 1;
    }
    out.flush()?;
    Ok(written)
}

/// Returns the paths as JSON: their frames, outermost first, and the self time of the last frame in
/// microseconds.
///
/// # Panics
/// Never: names are text and numbers are finite.
pub fn paths_json(analysis: &Analysis, metric: StackMetric) -> String {
    let folded = Folded::build(analysis, metric).cut(PATH_LEVELS, Nanos::ZERO);
    let strings = folded.strings();
    let paths: Vec<PathDocument<'_>> = folded
        .iter()
        .map(|(path, weight)| {
            let frames = folded.frames(path).into_iter();
            PathDocument {
                frames: frames.map(|frame| strings.text(frame)).collect(),
                self_us: microseconds(weight),
            }
        })
        .collect();
    serde_json::to_string_pretty(&paths).expect("plain data is JSON")
}

#[derive(Serialize)]
struct PathDocument<'a> {
    frames: Vec<&'a str>,
    self_us: f64,
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    #[test]
    fn scopes_alone_make_paths() {
        let analysis = Analysis::build(Timeline::draw(|time| {
            for _ in 0..2 {
                time.scope("a step", |time| {
                    time.op("mm", 3_000);
                    time.idle(1_500);
                });
            }
            time.op("blink", 10);
        }));
        let mut text = Vec::new();
        let written = write_paths(&analysis, StackMetric::SelfCpuTime, &mut text).unwrap();
        assert_eq!((written.lines, written.levels), (2, 2));
        assert_eq!(String::from_utf8(text).unwrap(), "a_step 3\na_step;mm 6\n");
        let json = paths_json(&analysis, StackMetric::SelfCpuTime);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json[1]["frames"], serde_json::json!(["a step", "mm"]));
        assert_eq!(json[1]["self_us"], 6.0);
        assert_eq!(json[2]["self_us"], 0.01);
    }

    /// The size of the output grows with the number of levels, not with its square.
    #[test]
    fn levels_that_nobody_looks_at_are_summed() {
        let analysis = Analysis::build(Timeline::draw(|time| nest(time, 3_000)));
        let mut text = Vec::new();
        let written = write_paths(&analysis, StackMetric::SelfCpuTime, &mut text).unwrap();
        assert_eq!((written.lines, written.levels), (500, 3_000));
        let text = String::from_utf8(text).unwrap();
        let last = text.lines().last().unwrap();
        assert!(last.ends_with(" 2501"), "{last}");
        assert_eq!(last.split(';').count(), PATH_LEVELS);
        let json: serde_json::Value =
            serde_json::from_str(&paths_json(&analysis, StackMetric::SelfCpuTime)).unwrap();
        assert_eq!(json.as_array().unwrap().len(), PATH_LEVELS);
    }

    fn nest(time: &mut Timeline, levels: usize) {
        if levels > 0 {
            // A scope inside a scope of the same name would be merged into it.
            time.scope(["f", "g"][levels % 2], |time| {
                time.idle(1_000);
                nest(time, levels - 1);
            });
        }
    }
}
