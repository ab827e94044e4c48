//! The difference of two profiles as JSON. The text is in `mindprof_report`.

use mindprof_analyze::{Sums, microseconds};
use mindprof_answers::{Change, Diff, Doubt, EventKind, Extra, Measure, Refusal, Whole};
use mindprof_model::DeviceKind;
use serde::Serialize;
use serde_json::{Value, json};

/// Returns the difference as JSON: every row with its values before and after and their difference,
/// and the facts that make the comparison unfair. Times are microseconds.
///
/// # Panics
/// Never: names are text and numbers are finite.
pub fn diff_json(diff: &Diff) -> String {
    let document = Document {
        measure: measure_name(diff.measure),
        by_shapes: diff.by_shapes,
        growth: finite(diff.growth()),
        before: WholeDocument::of(&diff.before),
        after: WholeDocument::of(&diff.after),
        rows: diff
            .rows
            .iter()
            .map(|row| RowDocument::of(diff, row))
            .collect(),
        notes: Doubt::notes(diff).into_iter().map(note).collect(),
    };
    serde_json::to_string_pretty(&document).expect("plain data is JSON")
}

/// Returns the name of a measure on the command line, in Python and in JSON.
pub const fn measure_name(measure: Measure) -> &'static str {
    match measure {
        Measure::SelfTime => "self",
        Measure::TotalTime => "total",
        Measure::Count => "count",
    }
}

/// Returns the state of a row: `new`, `gone`, `changed` or `same`.
pub fn change_state(diff: &Diff, row: &Change) -> &'static str {
    match (&row.before, &row.after) {
        (None, _) => "new",
        (_, None) => "gone",
        (Some(_), Some(_)) if !diff.is_changed(row) => "same",
        (Some(_), Some(_)) => "changed",
    }
}

/// Returns a fact that makes the comparison unfair: its kind, the side that it is about, and its
/// numbers.
fn note(doubt: Doubt) -> Value {
    let side = |is_second: bool| if is_second { "after" } else { "before" };
    match doubt {
        Doubt::Refusable(refusal) => refusal_note(refusal, side(refusal.is_second())),
        Doubt::Lost { is_second, events } => {
            json!({ "kind": "lost", "side": side(is_second), "events": events })
        }
        Doubt::Steps { before, after } => {
            json!({ "kind": "steps", "side": "after", "before": before, "after": after })
        }
        Doubt::Processes { before, after } => {
            json!({ "kind": "processes", "side": "after", "before": before, "after": after })
        }
        Doubt::OnlyOneHas { what, is_second } => {
            let what = match what {
                Extra::Shapes => "shapes",
                Extra::Stacks => "stacks",
                Extra::Memory => "memory",
            };
            json!({ "kind": "only_one_has", "side": side(is_second), "what": what })
        }
    }
}

fn refusal_note(refusal: Refusal, side: &str) -> Value {
    let mut note = json!({ "kind": refusal.id(), "side": side });
    let mut add = |key: &str, value: Value| note[key] = value;
    match refusal {
        Refusal::Lost {
            kind,
            events,
            share,
            ..
        } => {
            add("events", events.into());
            add("share", share.into());
            add("what", kind_name(kind).into());
        }
        Refusal::Cut { kept, events, .. } => {
            add("kept", kept.into());
            add("events", events.into());
        }
        Refusal::LacksDeviceWork {
            missing, launches, ..
        } => {
            add("missing", missing.into());
            add("launches", launches.into());
        }
        Refusal::FewerSteps { before, after } | Refusal::FewerRanks { before, after } => {
            add("before", before.into());
            add("after", after.into());
        }
        Refusal::FewerDevices {
            kind,
            before,
            after,
        } => {
            add("what", kind.name().into());
            add("before", before.into());
            add("after", after.into());
        }
        Refusal::NoWorkOf(kind) => add("what", kind.name().into()),
        Refusal::Damaged { .. }
        | Refusal::LacksRecordings { .. }
        | Refusal::Unreadable { .. }
        | Refusal::Limited { .. }
        | Refusal::Empty { .. }
        | Refusal::NothingToCompare { .. }
        | Refusal::NoTime { .. }
        | Refusal::NoCpuTime
        | Refusal::NoDeviceWork
        | Refusal::NoPythonCalls
        | Refusal::NothingInCommon => {}
    }
    note
}

const fn kind_name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Cpu => "cpu_events",
        EventKind::Device => "device_events",
        EventKind::PythonCall => "python_calls",
    }
}

/// Returns `None` for growth from zero, which is infinite and has no representation in JSON.
fn finite(growth: f64) -> Option<f64> {
    growth.is_finite().then_some(growth)
}

#[derive(Serialize)]
struct Document<'a> {
    measure: &'static str,
    by_shapes: bool,
    growth: Option<f64>,
    before: WholeDocument,
    after: WholeDocument,
    rows: Vec<RowDocument<'a>>,
    notes: Vec<Value>,
}

#[derive(Serialize)]
struct WholeDocument {
    count: u64,
    self_cpu_us: f64,
    self_device_us: f64,
    span_us: f64,
    /// The time of imports, which are not compared.
    imports_us: f64,
}

impl WholeDocument {
    fn of(whole: &Whole) -> Self {
        Self {
            count: whole.count,
            self_cpu_us: microseconds(whole.host),
            self_device_us: microseconds(whole.device),
            span_us: microseconds(whole.span),
            imports_us: microseconds(whole.imports),
        }
    }
}

#[derive(Serialize)]
struct RowDocument<'a> {
    key: &'a str,
    input_shapes: Option<&'a [Vec<i64>]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<&'a str>,
    device: &'a str,
    is_user_annotation: bool,
    state: &'static str,
    before: Option<SideDocument>,
    after: Option<SideDocument>,
    change: SideDocument,
    growth: Option<f64>,
}

/// The count and times of one side, or the difference of both sides.
#[derive(Serialize)]
struct SideDocument {
    count: i64,
    self_us: f64,
    total_us: f64,
    /// The time of its kernels, if the profiles are of accelerators whose kernels cannot be compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    device_total_us: Option<f64>,
}

impl<'a> RowDocument<'a> {
    fn of(diff: &'a Diff, row: &'a Change) -> Self {
        let is_aligned = diff.different_accelerators().is_some() && row.device == DeviceKind::Cpu;
        let side = |sums: &Option<Sums>| {
            sums.map(|sums| SideDocument {
                device_total_us: is_aligned.then(|| microseconds(sums.device_total)),
                ..SideDocument::of(&sums, row.device)
            })
        };
        let [before, after] = row.device_times().map(|time| time.0 as f64);
        Self {
            key: &row.key,
            input_shapes: row.shapes.as_deref(),
            label: row.label.as_deref(),
            device: diff.device_name(row.device),
            is_user_annotation: row.is_annotation,
            state: change_state(diff, row),
            before: side(&row.before),
            after: side(&row.after),
            change: SideDocument {
                count: row.difference(Measure::Count),
                self_us: row.difference(Measure::SelfTime) as f64 / 1e3,
                total_us: row.difference(Measure::TotalTime) as f64 / 1e3,
                device_total_us: is_aligned.then_some((after - before) / 1e3),
            },
            growth: finite(diff.row_growth(row)),
        }
    }
}

impl SideDocument {
    fn of(sums: &Sums, device: DeviceKind) -> Self {
        let is_on_cpu = device == DeviceKind::Cpu;
        let (own, total) = if is_on_cpu {
            (sums.self_cpu_total, sums.cpu_total)
        } else {
            (sums.self_device_total, sums.device_total)
        };
        Self {
            count: sums.count as i64,
            self_us: microseconds(own),
            total_us: microseconds(total),
            device_total_us: None,
        }
    }
}
