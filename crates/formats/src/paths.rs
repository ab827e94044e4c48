//! The paths of a profile's events, each once, as folded text and as JSON: who called, then the
//! scopes, then the event.
//!
//! Where torch's folded stacks have lines of Python frames alone, these have something to say of
//! every trace.

use std::io::Write;

use mindprof_analyze::{Analysis, Folded, StackMetric, microseconds};
use serde::Serialize;

use crate::error::Result;
use crate::folded::folded_frame;

/// Writes one line per path: the frames, outermost first, and the microseconds that were spent at
/// its end.
///
/// # Errors
/// When `out` does not take the bytes.
pub fn write_paths(analysis: &Analysis, metric: StackMetric, mut out: impl Write) -> Result<()> {
    let folded = Folded::build(analysis, metric);
    let strings = analysis.profile().strings();
    for (path, weight) in folded.iter() {
        let microseconds = weight.0 / 1000;
        if microseconds == 0 {
            continue;
        }
        let frames = folded.frames(path);
        let frames = frames
            .iter()
            .map(|&frame| folded_frame(strings.text(frame)));
        let frames: Vec<String> = frames.map(Iterator::collect).collect();
        writeln!(out, "{} {microseconds}", frames.join(";"))?;
    }
    Ok(out.flush()?)
}

/// Returns the paths as JSON: the frames, outermost first, and the microseconds that were spent at
/// their ends.
///
/// # Panics
/// Never: names are text and numbers are finite.
pub fn paths_json(analysis: &Analysis, metric: StackMetric) -> String {
    let folded = Folded::build(analysis, metric);
    let strings = analysis.profile().strings();
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
        write_paths(&analysis, StackMetric::SelfCpuTime, &mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "a_step 3\na_step;mm 6\n");
        let json = paths_json(&analysis, StackMetric::SelfCpuTime);
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json[1]["frames"], serde_json::json!(["a step", "mm"]));
        assert_eq!(json[1]["self_us"], 6.0);
        assert_eq!(json[2]["self_us"], 0.01);
    }
}
