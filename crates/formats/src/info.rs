//! What a trace holds, as text and as JSON: steps, threads, devices, counts, loss, repairs,
//! metadata.

use std::fmt::Write;

use mindprof_analyze::{Summary, Track, microseconds};
use mindprof_model::{Category, DeviceKind, Loss, LossCause, Nanos, Profile};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use crate::chrome::{PhaseCounts, Repairs, category_name};
use crate::chrome::{json_value, loss_key};
use crate::device::device_name;
use crate::grid::{Align, cut, grid};
use crate::number::time_text;

#[cfg(test)]
mod tests;

/// How much of a long text of metadata is shown.
const METADATA_WIDTH: usize = 80;

/// A profile, its numbers, and what had to be put right when it was read.
#[derive(Clone, Copy, Debug)]
pub struct Info<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// Its numbers.
    pub summary: &'a Summary,
    /// What had to be put right.
    pub repairs: &'a Repairs,
    /// What the profile keeps as it is without knowing what it means.
    pub set_aside: &'a PhaseCounts,
    /// What is not in the profile, since it took too large a part of the trace.
    pub left_out: &'a PhaseCounts,
}

impl Info<'_> {
    /// Returns it as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let (profile, summary) = (self.profile, self.summary);
        push_line(&mut text, &format!("Span: {}", time(profile.span())));
        push_line(&mut text, &format!("Events: {}", profile.events().len()));
        for (category, count) in self.categories() {
            push_line(&mut text, &format!("  {category}: {count}"));
        }
        let memory = profile.memory().len();
        if memory > 0 {
            push_line(&mut text, &format!("Memory records: {memory}"));
        }
        self.push_tracks(&mut text, "Threads", &summary.threads);
        self.push_tracks(&mut text, "Streams", &summary.streams);
        self.push_steps(&mut text);
        let metadata: Vec<_> = profile.metadata().iter().collect();
        if !metadata.is_empty() {
            push_line(&mut text, "\nMetadata:");
            for (key, value) in metadata {
                let words: Vec<&str> = value.split_whitespace().collect();
                let value = cut(&words.join(" "), Some(METADATA_WIDTH));
                push_line(&mut text, &format!("  {key}: {value}"));
            }
        }
        let loss = profile.loss();
        push_line(&mut text, &format!("\nEvents lost: {}", loss.total()));
        for cause in LossCause::ALL.into_iter().filter(|&c| loss.count(c) > 0) {
            let line = format!("  {} {}", loss.count(cause), cause.describe());
            push_line(&mut text, &line);
        }
        push_line(&mut text, &format!("Repairs: {}", self.repairs.total()));
        for (_, _, sentence) in self.repairs.iter() {
            push_line(&mut text, &format!("  {sentence}"));
        }
        for (_, count, name) in self.set_aside.iter() {
            push_line(&mut text, &format!("Kept as they are: {count} {name}"));
        }
        for (_, count, name) in self.left_out.iter() {
            push_line(&mut text, &format!("Not in the profile: {count} {name}"));
        }
        text
    }

    /// Returns it as JSON. Times are microseconds.
    ///
    /// # Panics
    /// Never: names are text and numbers are finite.
    pub fn json(&self) -> String {
        let profile = self.profile;
        let track = |track: &Track| TrackDocument::of(profile, track);
        let steps = self.summary.steps.iter();
        let document = Document {
            reference_unix_ns: profile.reference_unix_ns(),
            span_us: microseconds(profile.span()),
            events: profile.events().len(),
            categories: self
                .categories()
                .map(|(name, count)| (name.to_owned(), count.into()))
                .collect(),
            memory_records: profile.memory().len(),
            threads: self.summary.threads.iter().map(track).collect(),
            streams: self.summary.streams.iter().map(track).collect(),
            steps: steps
                .map(|step| StepDocument {
                    number: step.number,
                    start_us: microseconds(step.start),
                    duration_us: microseconds(step.duration),
                })
                .collect(),
            lost: loss_counts(profile.loss()),
            repairs: repair_counts(self.repairs),
            set_aside: phase_numbers(self.set_aside),
            left_out: phase_numbers(self.left_out),
            metadata: profile
                .metadata()
                .iter()
                .map(|(key, value)| (key.to_owned(), raw(value)))
                .collect(),
        };
        serde_json::to_string_pretty(&document).expect("plain data is JSON")
    }

    /// Walks the categories by the names that traces have for them.
    fn categories(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let device = self.summary.streams.first().map(|track| track.device);
        let categories = self.summary.categories.iter();
        categories.map(move |&(category, count)| (name_of(category, device), count))
    }

    fn push_tracks(&self, text: &mut String, title: &str, tracks: &[Track]) {
        if tracks.is_empty() {
            return;
        }
        let is_host = tracks[0].device == DeviceKind::Cpu;
        let (process, number) = if is_host {
            ("Process", "Thread")
        } else {
            ("Device", "Stream")
        };
        let rows: Vec<Vec<String>> = tracks
            .iter()
            .map(|track| {
                let document = TrackDocument::of(self.profile, track);
                let process = if is_host {
                    document.process.to_string()
                } else {
                    format!("{}:{}", document.device, document.process)
                };
                vec![
                    process,
                    document.thread.to_string(),
                    document.name.to_owned(),
                    document.events.to_string(),
                    time(track.busy),
                ]
            })
            .collect();
        let columns = [
            (process, Align::Right),
            (number, Align::Right),
            ("Name", Align::Left),
            ("Events", Align::Right),
            ("Busy", Align::Right),
        ];
        push_line(text, &format!("\n{title}: {}", tracks.len()));
        push_indented(text, &grid(&columns, &rows));
    }

    fn push_steps(&self, text: &mut String) {
        let steps = &self.summary.steps;
        if steps.is_empty() {
            return;
        }
        let rows: Vec<Vec<String>> = steps
            .iter()
            .map(|step| {
                vec![
                    step.number.to_string(),
                    time(step.start),
                    time(step.duration),
                ]
            })
            .collect();
        let columns = ["Step", "Start", "Duration"].map(|header| (header, Align::Right));
        push_line(text, &format!("\nSteps: {}", steps.len()));
        push_indented(text, &grid(&columns, &rows));
    }
}

/// Returns how many events were lost, by cause and in all, as a JSON object.
pub(crate) fn loss_counts(loss: &Loss) -> Map<String, Value> {
    let causes = LossCause::ALL.map(|cause| (loss_key(cause).to_owned(), loss.count(cause).into()));
    let total = [("total".to_owned(), loss.total().into())];
    causes.into_iter().chain(total).collect()
}

/// Returns how often each kind of fault was found, as a JSON object.
pub(crate) fn repair_counts(repairs: &Repairs) -> Map<String, Value> {
    let kinds = repairs.iter();
    kinds
        .map(|(repair, count, _)| (repair.key().to_owned(), count.into()))
        .collect()
}

/// Returns what is wrong with a trace as JSON, or why it cannot be read at all.
///
/// # Panics
/// Never: counts and texts are JSON.
pub fn verify_json(read: Result<(&Profile, &Repairs), &str>) -> String {
    let document = match read {
        Ok((profile, repairs)) => VerifyDocument {
            readable: true,
            clean: repairs.is_empty(),
            error: None,
            events: profile.events().len(),
            repairs: repair_counts(repairs),
            lost: loss_counts(profile.loss()),
        },
        Err(error) => VerifyDocument {
            readable: false,
            clean: false,
            error: Some(error),
            events: 0,
            repairs: Map::new(),
            lost: loss_counts(&Loss::default()),
        },
    };
    serde_json::to_string_pretty(&document).expect("plain data is JSON")
}

#[derive(Serialize)]
struct VerifyDocument<'a> {
    readable: bool,
    clean: bool,
    error: Option<&'a str>,
    events: usize,
    repairs: Map<String, Value>,
    lost: Map<String, Value>,
}

fn phase_numbers(counts: &PhaseCounts) -> Map<String, Value> {
    let counts = counts.iter();
    counts
        .map(|(phase, count, _)| (phase.to_string(), count.into()))
        .collect()
}

#[derive(Serialize)]
struct Document<'a> {
    reference_unix_ns: u64,
    span_us: f64,
    events: usize,
    categories: Map<String, Value>,
    memory_records: usize,
    threads: Vec<TrackDocument<'a>>,
    streams: Vec<TrackDocument<'a>>,
    steps: Vec<StepDocument>,
    lost: Map<String, Value>,
    repairs: Map<String, Value>,
    set_aside: Map<String, Value>,
    left_out: Map<String, Value>,
    metadata: std::collections::BTreeMap<String, Box<RawValue>>,
}

#[derive(Serialize)]
struct TrackDocument<'a> {
    device: &'static str,
    process: u64,
    thread: u64,
    name: &'a str,
    events: u64,
    busy_us: f64,
}

impl<'a> TrackDocument<'a> {
    fn of(profile: &'a Profile, track: &Track) -> Self {
        let thread = &profile.threads()[track.thread.index()];
        Self {
            device: device_name(track.device),
            process: thread.process,
            thread: thread.native,
            name: profile.strings().text(thread.name),
            events: track.events,
            busy_us: microseconds(track.busy),
        }
    }
}

#[derive(Serialize)]
struct StepDocument {
    number: u64,
    start_us: f64,
    duration_us: f64,
}

/// Returns metadata as it is if it is JSON, else as a JSON string.
fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(json_value(text))
        .or_else(|_| to_raw_value(text))
        .expect("every text is a JSON string")
}

/// Copies and fills of a device count as kernels.
fn name_of(category: Category, device: Option<DeviceKind>) -> &'static str {
    category_name(category, "", device)
}

fn push_indented(text: &mut String, block: &str) {
    for line in block.lines() {
        push_line(text, &format!("  {line}"));
    }
}

fn push_line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a String takes every text");
}

fn time(time: Nanos) -> String {
    time_text(microseconds(time), None)
}
