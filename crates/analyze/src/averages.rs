//! Rows of events that belong together, with their sums.
//!
//! Reads a profile and its tree; tables and the Python rows are made from what comes out.

use mindprof_model::{
    Category, DeviceKind, Event, EventId, Flags, Input, InputsId, InputsTable, Nanos, Profile,
    ScopeKind,
};
use rustc_hash::FxHashMap;

use crate::{Keys, Tree};

#[cfg(test)]
mod tests;

/// What events must share, beside their key, to be in one row, and which events are grouped at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupBy {
    /// Rows are told apart by the shapes of the tensors that the events were given.
    pub input_shapes: bool,
    /// Calls of Python functions get rows too.
    pub python_functions: bool,
}

/// One row: events of one key, kind of device and category, summed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Average {
    /// The key that the events share.
    pub key: String,
    /// How many events there are.
    pub count: u64,
    /// The time they took on the host, children included.
    pub cpu_total: Nanos,
    /// The time they took on the host themselves.
    pub self_cpu_total: Nanos,
    /// The first of them, which speaks for all where they differ; a sum of rows has none.
    pub first: Option<EventId>,
    /// The kind of device they ran on.
    pub device: DeviceKind,
    /// The category of the first event. Annotations never share a row with other categories.
    pub category: Category,
    /// Which part of the program opened the first event.
    pub scope: ScopeKind,
    /// Whether the first event ended on another thread than it began on.
    pub is_async: bool,
    /// Whether the first event has no parent.
    pub is_top_level: bool,
    /// The inputs whose shapes all events share, when rows are told apart by them.
    pub inputs: Option<InputsId>,
}

impl Average {
    /// Makes a row that counts nothing.
    fn zero(key: &str) -> Self {
        Self {
            key: key.into(),
            count: 0,
            cpu_total: Nanos::ZERO,
            self_cpu_total: Nanos::ZERO,
            first: None,
            device: DeviceKind::Cpu,
            category: Category::Operator,
            scope: ScopeKind::Function,
            is_async: false,
            is_top_level: true,
            inputs: None,
        }
    }
}

/// The rows of a profile, in the order in which their first events began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Averages {
    /// The rows.
    pub rows: Vec<Average>,
}

impl Averages {
    /// Returns the sum of all rows' own time on the host.
    pub fn self_cpu_total(&self) -> Nanos {
        Nanos(self.rows.iter().map(|row| row.self_cpu_total.0).sum())
    }

    /// Returns one row with the key `Total` that sums all others; of no rows, a row of zeros.
    pub fn total(&self) -> Average {
        let mut total = Average::zero("Total");
        for row in &self.rows {
            total.count += row.count;
            total.cpu_total = total.cpu_total + row.cpu_total;
            total.self_cpu_total = total.self_cpu_total + row.self_cpu_total;
        }
        total
    }
}

/// Groups the events of a profile: all but hidden ones and duplicates that the tree merged.
pub fn averages(profile: &Profile, tree: &Tree, group_by: GroupBy) -> Averages {
    let mut groups = Groups::new(profile, group_by);
    let mut rows: Vec<Average> = Vec::new();
    for (index, event) in profile.events().iter().enumerate() {
        let id = EventId::from_index(index);
        if is_left_out(event, group_by) || tree.is_merged(id) {
            continue;
        }
        let device = profile.threads()[event.thread.index()].device;
        let row = groups.row_of(event, device, rows.len());
        if row == rows.len() {
            rows.push(first_row(profile, tree, id, group_by));
        }
        let row = &mut rows[row];
        row.count += 1;
        row.self_cpu_total = row.self_cpu_total + tree.self_time(id);
        if device == DeviceKind::Cpu {
            row.cpu_total = row.cpu_total + event.duration;
        }
    }
    Averages { rows }
}

fn is_left_out(event: &Event, group_by: GroupBy) -> bool {
    let python = event.category == Category::PythonFunction && !group_by.python_functions;
    python || event.flags.contains(Flags::HIDDEN)
}

fn is_annotation(category: Category) -> bool {
    matches!(category, Category::Annotation | Category::DeviceAnnotation)
}

/// Makes the row that an event begins, before the event itself is counted.
fn first_row(profile: &Profile, tree: &Tree, first: EventId, group_by: GroupBy) -> Average {
    let event = profile.event(first);
    Average {
        first: Some(first),
        device: profile.threads()[event.thread.index()].device,
        category: event.category,
        scope: event.scope,
        is_async: event.flags.contains(Flags::ASYNC),
        is_top_level: tree.parent(first).is_none(),
        inputs: group_by.input_shapes.then_some(event.inputs),
        ..Average::zero(Keys::text(profile.name(event)))
    }
}

const NO_ROW: u32 = u32::MAX;

/// Finds the row of an event. Names are dense, so by name alone this is one look into an array.
struct Groups {
    keys: Keys,
    /// The row of each key, kind of device and "is an annotation": four entries per key.
    by_key: Vec<u32>,
    by_shapes: Option<ShapeGroups>,
}

/// Finds the row where shapes tell events apart.
struct ShapeGroups {
    /// The number of the shapes of each list of inputs.
    shapes: Vec<u32>,
    /// The rows by position in [`Groups::by_key`] and number of shapes.
    rows: FxHashMap<(u32, u32), u32>,
}

impl Groups {
    fn new(profile: &Profile, group_by: GroupBy) -> Self {
        Self {
            keys: Keys::build(profile.strings()),
            by_key: vec![NO_ROW; profile.strings().len() * 4],
            by_shapes: group_by.input_shapes.then(|| ShapeGroups {
                shapes: shapes_of_inputs(profile.inputs()),
                rows: FxHashMap::default(),
            }),
        }
    }

    /// Returns the position of the event's row, which is `next` if it is the first of its kind.
    fn row_of(&mut self, event: &Event, device: DeviceKind, next: usize) -> usize {
        let key = self.keys.key(event.name).index();
        let annotation = usize::from(is_annotation(event.category));
        let slot = key * 4 + device as usize * 2 + annotation;
        let row = match &mut self.by_shapes {
            None => &mut self.by_key[slot],
            Some(groups) => {
                let shapes = groups.shapes[event.inputs.index()];
                groups.rows.entry((slot as u32, shapes)).or_insert(NO_ROW)
            }
        };
        if *row == NO_ROW {
            *row = next as u32;
        }
        *row as usize
    }
}

/// Gives each list of inputs the number of its shapes: lists of equal shapes share it, whatever
/// their types, strides and values.
fn shapes_of_inputs(inputs: &InputsTable) -> Vec<u32> {
    let mut numbers: FxHashMap<Vec<u64>, u32> = FxHashMap::default();
    (0..inputs.len())
        .map(|index| {
            let shapes = shapes(inputs, InputsId::from_index(index));
            let next = numbers.len() as u32;
            *numbers.entry(shapes).or_insert(next)
        })
        .collect()
}

/// Returns the dims of each input, each led by their number. What is no tensor has no dims.
fn shapes(inputs: &InputsTable, id: InputsId) -> Vec<u64> {
    let mut words = Vec::new();
    for input in inputs.inputs(id) {
        match input {
            Input::Tensor { dims, .. } => {
                words.push(dims.len() as u64);
                words.extend_from_slice(dims);
            }
            Input::Other
            | Input::TensorList(_)
            | Input::Int(_)
            | Input::Float(_)
            | Input::Bool(_)
            | Input::IntList(_)
            | Input::FloatList(_) => words.push(0),
        }
    }
    words
}
