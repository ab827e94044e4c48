//! What a trace holds, as JSON: steps, threads, devices, counts, loss, repairs, metadata.

use std::collections::BTreeMap;

use mindprof_analyze::{Analysis, microseconds};
use mindprof_answers::{Summary, Track, Work};
use mindprof_model::{Category, Loss, LossCause, Nanos, PassthroughKind, Profile, activity_name};
use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use mindprof_trace::{ExecutionTraceCheck, PhaseCounts, Repairs, json_value, loss_key};

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
    /// Categories that are not understood, with the number of their events.
    pub unknown_categories: &'a [(String, u64)],
    /// The work of a trace of `mindprof run`; `None` for other traces, which are all work.
    pub work: Option<WorkTotals>,
}

/// What the work of a run comes to, and what its rows leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkTotals {
    /// The self CPU time of all rows.
    pub self_cpu: Nanos,
    /// How long imports took, which are left out.
    pub imports: Nanos,
    /// The number of ranges of steps that are left out.
    pub step_ranges: u64,
}

impl WorkTotals {
    /// Sums up the rows of a run's work; `None` if the profile is not of a run.
    pub fn of(analysis: &Analysis) -> Option<Self> {
        let work = Work::of(analysis);
        work.side_ranges()?;
        let group_by = work.grouping(analysis.profile());
        let view = work.view(analysis, group_by);
        let rows = work.averages(view.as_ref().unwrap_or(analysis), group_by);
        Some(Self {
            self_cpu: rows.averages.self_cpu_total(),
            imports: rows.left_out.import_time(),
            step_ranges: rows.left_out.step_ranges(),
        })
    }
}

impl Info<'_> {
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
                .into_iter()
                .map(|(name, count)| (name, count.into()))
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
            unknown_categories: self
                .unknown_categories
                .iter()
                .map(|(name, count)| (name.clone(), (*count).into()))
                .collect(),
            work: self.work.map(|work| WorkDocument {
                self_cpu_time_total: microseconds(work.self_cpu),
                left_out: LeftOutDocument {
                    imports_us: microseconds(work.imports),
                    step_ranges: work.step_ranges,
                },
            }),
            metadata: profile
                .metadata()
                .iter()
                .map(|(key, value)| (key.to_owned(), raw(value)))
                .collect(),
        };
        serde_json::to_string_pretty(&document).expect("plain data is JSON")
    }

    /// Returns how many events there are of each category, by the names that traces have for them:
    /// copies and fills apart from kernels, calls of a driver apart from those of a runtime.
    pub fn categories(&self) -> Vec<(String, u64)> {
        let device = self.summary.streams.first().map(|track| track.device);
        let passthrough = self.profile.passthrough();
        let mut said = passthrough.walk(PassthroughKind::Category);
        let mut of_names: FxHashMap<_, u64> = FxHashMap::default();
        for (index, event) in self.profile.events().iter().enumerate() {
            // A category that a profile has no place for is kept as the file has it.
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

/// Returns what a check of an execution trace found, as JSON for programs.
///
/// # Panics
/// Never: what was found is plain data.
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
    steps: Vec<StepDocument>,
    lost: Map<String, Value>,
    repairs: Map<String, Value>,
    set_aside: Map<String, Value>,
    left_out: Map<String, Value>,
    unknown_categories: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<WorkDocument>,
    metadata: BTreeMap<String, Box<RawValue>>,
}

#[derive(Serialize)]
struct WorkDocument {
    self_cpu_time_total: f64,
    left_out: LeftOutDocument,
}

#[derive(Serialize)]
struct LeftOutDocument {
    imports_us: f64,
    step_ranges: u64,
}

#[derive(Serialize)]
struct TrackDocument<'a> {
    device: &'static str,
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
            device: track.device.name(),
            process: thread.process,
            // Some traces count threads from below zero.
            thread: thread.native as i64,
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

/// Returns the text of a JSON string, and what is none as it is.
fn text_of(json: &str) -> String {
    serde_json::from_str(json).unwrap_or_else(|_| json.to_owned())
}

/// Returns metadata as it is if it is JSON, else as a JSON string.
fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(json_value(text))
        .or_else(|_| to_raw_value(text))
        .expect("every text is a JSON string")
}
