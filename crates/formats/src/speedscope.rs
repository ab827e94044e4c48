//! Writes profiles in the format of speedscope: for each thread, the begin and end of every event.
//!
//! Events in a speedscope profile must nest. A thread whose events overlap without nesting becomes
//! several profiles, one for each lane.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use mindprof_analyze::{Analysis, Lanes};
use mindprof_model::{Category, DeviceKind, EventId, Nanos, Place, Profile, ThreadId};
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use crate::error::Result;
use mindprof_trace::write_file;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Writes a profile as JSON for speedscope, under the given name.
///
/// # Errors
/// Fails if `out` cannot be written to.
pub fn write_speedscope(analysis: &Analysis, name: &str, out: impl Write) -> Result<()> {
    let profile = analysis.profile();
    let frames = Frames::of(profile);
    let lanes = lanes(profile);
    let file = File {
        schema: SCHEMA,
        exporter: concat!("mindprof@", env!("CARGO_PKG_VERSION")),
        name,
        active_profile_index: main_lane(profile, &lanes),
        shared: Shared {
            frames: &frames.frames,
        },
        profiles: lanes
            .iter()
            .map(|lane| Evented::new(profile, &frames, lane))
            .collect(),
    };
    serde_json::to_writer(out, &file).map_err(std::io::Error::from)?;
    Ok(())
}

/// Returns the index of the profile that speedscope opens first: a main thread if one has events,
/// else the CPU thread with the most events.
fn main_lane(profile: &Profile, lanes: &[Lane]) -> usize {
    let rank = |lane: &Lane| {
        let thread = &profile.threads()[lane.thread.index()];
        let is_on_cpu = thread.device == DeviceKind::Cpu;
        let is_main = is_on_cpu && thread.native == thread.process;
        (is_main, is_on_cpu, lane.events.len())
    };
    let ranked = lanes.iter().enumerate().rev();
    let found = ranked.max_by_key(|(_, lane)| rank(lane));
    found.map_or(0, |(index, _)| index)
}

/// Writes a profile to a file for speedscope.
///
/// # Errors
/// Fails if the file cannot be written. The error names the file.
pub fn write_speedscope_file(analysis: &Analysis, path: &Path) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    write_file(path, |out| write_speedscope(analysis, &name, out))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    name: &'a str,
    active_profile_index: usize,
    shared: Shared<'a>,
    profiles: Vec<Evented<'a>>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: &'a [Frame<'a>],
}

/// The name of an event and, for a Python function, its file and line.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

impl<'a> Frame<'a> {
    fn of(name: &'a str, category: Category) -> Self {
        let parts = (category == Category::PythonFunction).then(|| python_frame(name));
        parts.flatten().unwrap_or(Self {
            name,
            file: None,
            line: None,
        })
    }
}

/// Splits `file.py(12): function` into its parts.
fn python_frame(text: &str) -> Option<Frame<'_>> {
    let place = Place::parse(text)?;
    Some(Frame {
        name: place.function,
        file: Some(place.file),
        line: Some(place.line),
    })
}

/// The distinct frames of a profile. A Python function and another event of the same name are
/// different frames.
struct Frames<'a> {
    frames: Vec<Frame<'a>>,
    numbers: FxHashMap<(u32, bool), u32>,
}

impl<'a> Frames<'a> {
    fn of(profile: &'a Profile) -> Self {
        let mut found = Self {
            frames: Vec::new(),
            numbers: FxHashMap::default(),
        };
        for event in profile.events() {
            let next = found.frames.len() as u32;
            let key = (
                event.name.to_raw(),
                event.category == Category::PythonFunction,
            );
            if *found.numbers.entry(key).or_insert(next) == next {
                let frame = Frame::of(profile.name(event), event.category);
                found.frames.push(frame);
            }
        }
        found
    }

    fn number(&self, profile: &Profile, id: EventId) -> u32 {
        let event = profile.event(id);
        self.numbers[&(
            event.name.to_raw(),
            event.category == Category::PythonFunction,
        )]
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Evented<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: Cow<'a, str>,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    events: Moments<'a>,
}

impl<'a> Evented<'a> {
    fn new(profile: &'a Profile, frames: &'a Frames<'a>, lane: &'a Lane) -> Self {
        Self {
            kind: "evented",
            name: lane_name(profile, lane),
            unit: "nanoseconds",
            start_value: 0,
            end_value: profile.span().0,
            events: Moments {
                profile,
                frames,
                lane,
            },
        }
    }
}

fn lane_name<'a>(profile: &'a Profile, lane: &Lane) -> Cow<'a, str> {
    let thread = &profile.threads()[lane.thread.index()];
    let said = profile.strings().text(thread.name);
    let name = match (said, thread.device) {
        ("", DeviceKind::Cpu) => Cow::Owned(format!("thread {}", thread.native)),
        ("", device) => {
            let device = device.name();
            Cow::Owned(format!(
                "{device}:{} stream {}",
                thread.process, thread.native
            ))
        }
        (said, _) => Cow::Borrowed(said),
    };
    match lane.number {
        0 => name,
        number => Cow::Owned(format!("{name} ({})", number + 1)),
    }
}

/// Events of one thread that nest: any two are disjoint, or one contains the other.
struct Lane {
    thread: ThreadId,
    /// The number of lanes of the thread before this one.
    number: usize,
    events: Vec<EventId>,
}

/// Returns the lanes that have events: first those of the threads themselves, then the overflow
/// tracks.
fn lanes(profile: &Profile) -> Vec<Lane> {
    let places = Lanes::build(profile);
    let own = (0..profile.threads().len()).map(|index| (ThreadId::from_index(index), 0));
    let overflow = places
        .overflow()
        .iter()
        .map(|lane| (lane.thread, lane.number));
    let mut lanes: Vec<Lane> = own
        .chain(overflow)
        .map(|(thread, number)| Lane {
            thread,
            number,
            events: Vec::new(),
        })
        .collect();
    let threads = profile.threads().len();
    for (index, event) in profile.events().iter().enumerate() {
        let id = EventId::from_index(index);
        let overflow = places.moved_to(id).map(|lane| threads + lane);
        lanes[overflow.unwrap_or(event.thread.index())]
            .events
            .push(id);
    }
    lanes.retain(|lane| !lane.events.is_empty());
    lanes
}

/// The begins and ends of the events of a lane, in time order. The innermost open event ends first.
struct Moments<'a> {
    profile: &'a Profile,
    frames: &'a Frames<'a>,
    lane: &'a Lane,
}

#[derive(Serialize)]
struct Moment {
    #[serde(rename = "type")]
    kind: &'static str,
    frame: u32,
    at: u64,
}

impl Serialize for Moments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(2 * self.lane.events.len()))?;
        let mut open: Vec<(Nanos, u32)> = Vec::new();
        let close = |(end, frame): (Nanos, u32)| Moment {
            kind: "C",
            frame,
            at: end.0,
        };
        for &id in &self.lane.events {
            let event = self.profile.event(id);
            while let Some(ended) = open.pop_if(|(end, _)| *end <= event.start) {
                sequence.serialize_element(&close(ended))?;
            }
            let frame = self.frames.number(self.profile, id);
            let at = event.start.0;
            sequence.serialize_element(&Moment {
                kind: "O",
                frame,
                at,
            })?;
            open.push((event.end(), frame));
        }
        while let Some(ended) = open.pop() {
            sequence.serialize_element(&close(ended))?;
        }
        sequence.end()
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;
    use serde_json::{Value, json};

    use super::*;

    fn written(profile: Profile) -> Value {
        let mut out = Vec::new();
        write_speedscope(&Analysis::build(profile), "run", &mut out).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    // step |----------|   0..30
    // mm      |--|       10..20
    #[test]
    fn events_open_and_close_in_the_order_of_time() {
        let found = written(Timeline::draw(|time| {
            time.annotation("step", |time| {
                time.idle(10);
                time.op("mm", 10);
                time.idle(10);
            });
        }));
        assert_eq!(found["$schema"], SCHEMA);
        assert_eq!(
            found["shared"]["frames"],
            json!([{"name": "step"}, {"name": "mm"}])
        );
        let thread = &found["profiles"][0];
        assert_eq!(
            (&thread["type"], &thread["unit"], &thread["endValue"]),
            (&json!("evented"), &json!("nanoseconds"), &json!(30))
        );
        let moments = [("O", 0, 0), ("O", 1, 10), ("C", 1, 20), ("C", 0, 30)];
        let expected =
            moments.map(|(kind, frame, at)| json!({"type": kind, "frame": frame, "at": at}));
        assert_eq!(thread["events"], json!(expected));
    }

    #[test]
    fn calls_of_python_functions_say_where_they_stand() {
        let found = written(Timeline::draw(|time| {
            time.event(Category::PythonFunction, "a b.py(12): <lambda>", |time| {
                time.idle(1);
            });
            time.event(Category::PythonFunction, "<built-in method x>", |time| {
                time.idle(1);
            });
        }));
        let expected = json!([
            {"name": "<lambda>", "file": "a b.py", "line": 12},
            {"name": "<built-in method x>"},
        ]);
        assert_eq!(found["shared"]["frames"], expected);
    }
}
