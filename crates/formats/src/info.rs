//! The contents of a trace as JSON: steps, threads, devices, counts, loss, repairs and metadata.
//!
//! Behind `mindprof info` and `mindprof verify`. The text of `info` is in `mindprof_report`.

use std::collections::BTreeMap;

use mindprof_analyze::microseconds;
use mindprof_answers::{Step, Summary, Track, WorkTotals};
use mindprof_model::{Category, Loss, LossCause, PassthroughKind, Profile, activity_name};
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use mindprof_trace::{ExecutionTraceCheck, PhaseCounts, Repairs, json_value, loss_key};

/// Everything that `mindprof info` reports about a trace.
///
/// It joins the profile with the findings of the reader, which are not part of the profile. The text
/// and the JSON of the command are both made from it.
#[derive(Clone, Copy, Debug)]
pub struct Info<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// The steps and tracks of the profile.
    pub summary: &'a Summary,
    /// The faults that the reader repaired.
    pub repairs: &'a Repairs,
    /// The events that the profile keeps as raw JSON, because it has no representation for them.
    pub set_aside: &'a PhaseCounts,
    /// The events that were dropped because they took up too much of the trace.
    pub left_out: &'a PhaseCounts,
    /// The unknown categories, with the number of their events.
    pub unknown_categories: &'a [(String, u64)],
    /// The totals of a trace of `mindprof run`; `None` for other traces.
    pub work: Option<WorkTotals>,
}

impl Info<'_> {
    /// Returns the report as JSON. Times are microseconds.
    ///
    /// # Panics
    /// Never: names are text and numbers are finite.
    pub fn json(&self) -> String {
        let profile = self.profile;
        let track = |track: &Track| TrackDocument::of(profile, track);
        let document = Document {
            reference_unix_ns: profile.reference_unix_ns(),
            span_us: microseconds(profile.span()),
            events: profile.events().len(),
            categories: self
                .categories()
                .into_iter()
                .map(|(name, count)| (name, count.into()))
                .collect(),
            memory_records: profile.memory().len(),
            threads: self.summary.threads.iter().map(track).collect(),
            streams: self.summary.streams.iter().map(track).collect(),
            steps: &self.summary.steps,
            lost: loss_counts(profile.loss()),
            repairs: repair_counts(self.repairs),
            set_aside: phase_numbers(self.set_aside),
            left_out: phase_numbers(self.left_out),
            unknown_categories: self
                .unknown_categories
                .iter()
                .map(|(name, count)| (name.clone(), (*count).into()))
                .collect(),
            work: self.work,
            metadata: profile
                .metadata()
                .iter()
                .map(|(key, value)| (key.to_owned(), raw(value)))
                .collect(),
        };
        serde_json::to_string_pretty(&document).expect("plain data is JSON")
    }

    /// Returns the number of events in each category, under the names that traces use. These are
    /// finer than the categories of a profile: memory copies are separate from kernels, for example,
    /// and driver calls from runtime calls.
    pub fn categories(&self) -> Vec<(String, u64)> {
        let device = self.summary.streams.first().map(|track| track.device);
        let passthrough = self.profile.passthrough();
        let mut said = passthrough.walk(PassthroughKind::Category);
        let mut of_names: FxHashMap<_, u64> = FxHashMap::default();
        for (index, event) in self.profile.events().iter().enumerate() {
            // A category that a profile cannot represent is kept as raw JSON.
            let said = said.at(index);
            let name = said.map_or(Some(event.name), |_| None);
            *of_names.entry((event.category, name, said)).or_default() += 1;
        }
        let strings = self.profile.strings();
        let mut counts: BTreeMap<(Category, String), u64> = BTreeMap::new();
        for ((category, name, said), count) in of_names {
            let shown = match (name, said) {
                (_, Some(said)) => text_of(&passthrough.texts.text(said)),
                (Some(name), None) => activity_name(category, strings.text(name), device).into(),
                (None, None) => continue,
            };
            *counts.entry((category, shown)).or_default() += count;
        }
        let counts = counts.into_iter();
        counts.map(|((_, name), count)| (name, count)).collect()
    }
}

/// Returns the number of lost events by cause, and the total, as a JSON object.
pub(crate) fn loss_counts(loss: &Loss) -> Map<String, Value> {
    let causes = LossCause::ALL.map(|cause| (loss_key(cause).to_owned(), loss.count(cause).into()));
    let total = [("total".to_owned(), loss.total().into())];
    causes.into_iter().chain(total).collect()
}

/// Returns the number of repairs of each kind as a JSON object.
pub(crate) fn repair_counts(repairs: &Repairs) -> Map<String, Value> {
    let kinds = repairs.iter();
    kinds
        .map(|(repair, count, _)| (repair.key().to_owned(), count.into()))
        .collect()
}

/// Returns the faults of a trace as JSON, or the reason why it cannot be read.
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

/// Returns the result of checking an execution trace as JSON.
///
/// # Panics
/// Never: the result is plain data.
pub fn verify_execution_trace_json(check: &ExecutionTraceCheck) -> String {
    let document = json!({
        "readable": true,
        "clean": check.faults.is_empty(),
        "execution_trace": {
            "nodes": check.nodes,
            "threads": check.threads,
            "tensors": check.tensors,
            "lost": check.lost,
        },
        "faults": check.faults,
    });
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
    steps: &'a [Step],
    lost: Map<String, Value>,
    repairs: Map<String, Value>,
    set_aside: Map<String, Value>,
    left_out: Map<String, Value>,
    unknown_categories: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<WorkTotals>,
    metadata: BTreeMap<String, Box<RawValue>>,
}

#[derive(Serialize)]
struct TrackDocument<'a> {
    device: &'a str,
    process: u64,
    thread: i64,
    name: &'a str,
    events: u64,
    busy_us: f64,
}

impl<'a> TrackDocument<'a> {
    fn of(profile: &'a Profile, track: &Track) -> Self {
        let thread = &profile.threads()[track.thread.index()];
        Self {
            device: profile.device_name(track.device),
            process: thread.process,
            // Some traces have negative thread ids.
            thread: thread.native as i64,
            name: profile.strings().text(thread.name),
            events: track.events,
            busy_us: microseconds(track.busy),
        }
    }
}

/// Returns the text of a JSON string. Other JSON is returned unchanged.
fn text_of(json: &str) -> String {
    serde_json::from_str(json).unwrap_or_else(|_| json.to_owned())
}

/// Returns metadata unchanged if it is JSON, and as a JSON string otherwise.
fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(json_value(text))
        .or_else(|_| to_raw_value(text))
        .expect("every text is a JSON string")
}
