//! The paths of a profile's events, each once, as folded text and as JSON: who called, then the
//! scopes, then the event.
//!
//! Where torch's folded stacks have lines of Python frames alone, these have something to say of
//! every trace.

use std::io::Write;

use mindprof_analyze::{Analysis, Folded, PATH_LEVELS, StackMetric, microseconds};
use mindprof_model::Nanos;
use serde::Serialize;

use crate::error::Result;
use crate::folded::folded_frame;

/// What a text of folded stacks holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldedLines {
    /// How many lines there are.
    pub lines: u64,
    /// How many levels the longest path has: those beyond [`PATH_LEVELS`] are not written.
    pub levels: usize,
}

/// Writes one line per path: the frames, outermost first, and the microseconds that were spent at
/// its end. Where there are several processes or threads, their names come first. What is less than one has no line.
///
/// # Errors
/// When `out` does not take the bytes.
pub fn write_paths(
    analysis: &Analysis,
    metric: StackMetric,
    out: impl Write,
) -> Result<FoldedLines> {
    write_lines(&Folded::build(analysis, metric), out)
}

/// As [`write_paths`], of the callers of events alone, without the scopes that they are in.
///
/// # Errors
/// When `out` does not take the bytes.
pub fn write_callers(
    analysis: &Analysis,
    metric: StackMetric,
    out: impl Write,
) -> Result<FoldedLines> {
    write_lines(&Folded::of_callers(analysis, metric), out)
}

fn write_lines(folded: &Folded<'_>, mut out: impl Write) -> Result<FoldedLines> {
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

/// Returns the paths as JSON: the frames, outermost first, and the microseconds that were spent at
/// their ends.
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
    /// A trace of many levels takes room by their number, not by its square.
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
            // A scope inside of one of its name counts as one.
            time.scope(["f", "g"][levels % 2], |time| {
                time.idle(1_000);
                nest(time, levels - 1);
            });
        }
    }
}
