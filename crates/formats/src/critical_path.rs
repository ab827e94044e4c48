//! A Chrome trace with its critical path as a track of its own, and arrows where the path leads from
//! one thread or stream to another.

use std::io::Write;

use mindprof_answers::{CriticalPath, PathPiece};
use mindprof_model::{Nanos, Part, Profile, ThreadId, UnknownEvent};
use mindprof_trace::write_trace;

use crate::error::Result;

/// The category of the track's events and of the arrows, and the name of the track.
const CATEGORY: &str = "critical_path";
const TRACK: &str = "critical path";

/// Writes a profile and its critical path as a Chrome trace named `trace_name`.
///
/// # Errors
/// If `out` cannot be written to.
pub fn write_critical_path(
    profile: Profile,
    path: &CriticalPath,
    trace_name: &str,
    out: impl Write,
) -> Result<()> {
    let annotated = with_critical_path(profile, path);
    Ok(write_trace(&annotated, trace_name, out)?)
}

/// Returns a profile with its critical path. The track consists of asynchronous events inside of one
/// that names it: viewers show these on a track of their own, and readers do not take them for work.
///
/// ```text
/// CPU             |launch|        |synchronize   |
/// stream                 ╰──>|kernel            |╯
///
/// critical path   |-------------------------------|
///                 |launch|   |kernel            ||
/// ```
fn with_critical_path(profile: Profile, path: &CriticalPath) -> Profile {
    let (Some(first), Some(last)) = (path.pieces.first(), path.pieces.last()) else {
        return profile;
    };
    let names: Vec<String> = path
        .pieces
        .iter()
        .map(|piece| name(&profile, piece))
        .collect();
    let mut part = Part::from(profile);
    // All of them lie on one thread, because viewers keep asynchronous events by process.
    let thread = first.thread;
    let end = last.start.saturating_add(last.duration);
    add_record(&mut part, thread, first.start, &slice_end("b", TRACK));
    for (piece, name) in path.pieces.iter().zip(names) {
        add_record(&mut part, thread, piece.start, &slice_end("b", &name));
        let end = piece.start.saturating_add(piece.duration);
        add_record(&mut part, thread, end, &slice_end("e", &name));
    }
    add_record(&mut part, thread, end, &slice_end("e", TRACK));
    add_arrows(&mut part, &path.pieces);
    part.into_profile()
        .expect("a profile stays sound with further records")
}

/// Returns the name of a piece: that of its event, or of what happens between events.
fn name(profile: &Profile, piece: &PathPiece) -> String {
    match piece.event {
        Some(event) => profile.name(profile.event(event)).into(),
        None => piece.kind.name().into(),
    }
}

/// Adds an arrow from each piece inside of an event to the next one on another thread.
fn add_arrows(part: &mut Part, pieces: &[PathPiece]) {
    let mut last: Option<&PathPiece> = None;
    let mut number = 0;
    for piece in pieces.iter().filter(|piece| piece.event.is_some()) {
        if let Some(last) = last.filter(|last| last.thread != piece.thread) {
            number += 1;
            let end = last.start.saturating_add(last.duration);
            let from = Nanos(end.0.saturating_sub(1).max(last.start.0));
            add_record(part, last.thread, from, &arrow_end("s", number));
            let head = arrow_end("f", number) + ",\"bp\":\"e\"";
            add_record(part, piece.thread, piece.start, &head);
        }
        last = Some(piece);
    }
}

/// Returns the beginning or the end of an asynchronous event, without time and track.
fn slice_end(phase: &str, name: &str) -> String {
    let name = serde_json::Value::from(name);
    format!("\"ph\":\"{phase}\",\"id\":1,\"cat\":\"{CATEGORY}\",\"name\":{name}")
}

/// Returns the tail or the head of an arrow, without time and track.
fn arrow_end(phase: &str, number: u32) -> String {
    format!("\"ph\":\"{phase}\",\"id\":{number},\"cat\":\"{CATEGORY}\",\"name\":\"{CATEGORY}\"")
}

fn add_record(part: &mut Part, thread: ThreadId, time: Nanos, text: &str) {
    if let (Some(text), Ok(time_ns)) = (part.passthrough.texts.add(text), time.0.try_into()) {
        part.passthrough.add_unknown_event(UnknownEvent {
            time_ns,
            thread,
            text,
        });
    }
}
