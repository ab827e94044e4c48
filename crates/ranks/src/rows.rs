//! Rows of a summary: the events of one name, kind, device and stream with their times.

use std::sync::Arc;

use mindprof_analyze::{Analysis, dims};
use mindprof_answers::{StepClass, WorkClasses};
use mindprof_model::{
    Category, DeviceKind, Event, EventId, Flags, InputsId, Nanos, StringId, ThreadId,
};
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::codec::{checksum, encode_choice, encode_fields};
use crate::histogram::Histogram;

/// The kind of the events of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RowKind {
    /// Operators and backward nodes.
    Operator,
    /// Ranges that the user or a library named.
    Range,
    /// Calls into the runtime or driver of a device.
    Runtime,
    /// Kernels that compute.
    Kernel,
    /// Kernels that exchange data with other ranks.
    Communication,
    /// Copies of memory by a device.
    Copy,
    /// Fills of memory by a device.
    Fill,
}
encode_choice!(RowKind);

impl RowKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Operator,
        Self::Range,
        Self::Runtime,
        Self::Kernel,
        Self::Communication,
        Self::Copy,
        Self::Fill,
    ];

    /// Returns the kind of an event, or `None` if a summary has no row for it: Python calls, whose
    /// names are many, ranges that are drawn on a stream again, and instants.
    fn of(id: EventId, event: &Event, works: &WorkClasses) -> Option<Self> {
        if event.flags.contains(Flags::INSTANT) {
            return None;
        }
        match event.category {
            Category::Operator => Some(Self::Operator),
            Category::Annotation => Some(Self::Range),
            Category::Runtime => Some(Self::Runtime),
            Category::Kernel => Some(match works.of(id, event) {
                StepClass::Communication => Self::Communication,
                StepClass::Copy => Self::Copy,
                StepClass::Memset => Self::Fill,
                StepClass::Kernel
                | StepClass::Runtime
                | StepClass::DataLoading
                | StepClass::Operators
                | StepClass::Python
                | StepClass::Idle => Self::Kernel,
            }),
            Category::PythonFunction | Category::DeviceAnnotation | Category::Other => None,
        }
    }
}

/// The events of one name, kind, device and stream.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// The name of the events.
    pub name: Arc<str>,
    /// The kind of the events.
    pub kind: RowKind,
    /// The device as torch names it, such as `cuda:0`; `cpu` for the CPU.
    pub device: Arc<str>,
    /// The number of the stream, or `None` on the CPU.
    pub stream: Option<u64>,
    /// The durations of the events.
    pub times: Histogram,
    /// A number that depends on the shapes of all inputs and not on the order of the events. It is
    /// zero if no shapes were recorded.
    pub shapes: u64,
}
encode_fields!(Row {
    name,
    kind,
    device,
    stream,
    times,
    shapes
});

/// The name, the kind and the stream of a row.
type RowKey = (StringId, RowKind, Option<ThreadId>);

/// Builds the rows of a profile in time linear in the number of events, sorted by their keys.
pub(crate) fn build(analysis: &Analysis, works: &WorkClasses) -> Vec<Row> {
    let profile = analysis.profile();
    let mut shapes = Shapes::default();
    let mut rows: FxHashMap<RowKey, (Vec<Nanos>, u64)> = FxHashMap::default();
    for (index, event) in profile.events().iter().enumerate() {
        let id = EventId::from_index(index);
        let Some(kind) = RowKind::of(id, event, works) else {
            continue;
        };
        if !analysis.is_shown(id) {
            continue;
        }
        let is_device = profile.threads()[event.thread.index()].device != DeviceKind::Cpu;
        let stream = is_device.then_some(event.thread);
        let (times, sum) = rows.entry((event.name, kind, stream)).or_default();
        times.push(event.duration);
        *sum = sum.wrapping_add(shapes.of(analysis, event));
    }
    let rows = rows
        .into_iter()
        .map(|((name, kind, stream), (times, shapes))| {
            let thread = stream.map(|stream| profile.threads()[stream.index()]);
            Row {
                name: profile.strings().text(name).into(),
                kind,
                device: thread.map_or_else(
                    || "cpu".into(),
                    |thread| {
                        format!("{}:{}", profile.device_name(thread.device), thread.process).into()
                    },
                ),
                stream: thread.map(|thread| thread.native),
                times: Histogram::of(times),
                shapes,
            }
        });
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_unstable();
    rows
}

/// Numbers that depend on the shapes of inputs. Each list of inputs is looked at once.
#[derive(Debug, Default)]
struct Shapes {
    known: FxHashMap<InputsId, u64>,
}

impl Shapes {
    fn of(&mut self, analysis: &Analysis, event: &Event) -> u64 {
        if event.inputs == InputsId::NONE {
            return 0;
        }
        let inputs = analysis.profile().inputs();
        *self.known.entry(event.inputs).or_insert_with(|| {
            let mut bytes = Vec::new();
            for input in inputs.inputs(event.inputs) {
                bytes.push(b';');
                bytes.extend(dims(&input).iter().flat_map(|dim| dim.to_le_bytes()));
            }
            checksum(&bytes)
        })
    }
}
