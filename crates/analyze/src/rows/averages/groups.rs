//! The grouping of events into rows.

use mindprof_model::{Category, DeviceKind, Event, EventId, InputsId, InputsTable};
use rustc_hash::FxHashMap;

use crate::analysis::Analysis;
use crate::analysis::is_annotation;
use crate::rows::keys::Keys;
use crate::rows::shapes::dims;
use crate::stacks::source::Prefixes;

const NO_ROW: u32 = u32::MAX;

/// The options of grouping: what events of one row must share besides their key, and which events
/// get rows.
///
/// They correspond to the arguments `group_by_input_shape` and `group_by_stack_n` of torch's
/// `key_averages()`. The default groups by key alone, without Python functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct GroupBy {
    /// Whether events must have input tensors of the same shapes.
    pub input_shapes: bool,
    /// How many of the innermost frames of their stacks must be the same.
    pub stack_frames: usize,
    /// Whether Python function calls get rows.
    pub python_functions: bool,
}

/// Finds the row of each event. Name ids are dense, so grouping by key alone takes one array access.
pub(super) struct Groups<'a> {
    keys: &'a Keys,
    /// For each thread, the position of its kind of device among those of the profile.
    device_of_thread: Vec<u32>,
    devices: usize,
    /// The row of each slot: a key, a kind of device, and whether it is an annotation.
    by_key: Vec<u32>,
    finer: Option<Finer>,
}

/// Finds the row if shapes or stacks matter besides the key.
struct Finer {
    /// For each list of inputs, the number of its shapes; empty if shapes do not matter.
    shapes: Vec<u32>,
    prefixes: Option<Prefixes>,
    /// The row of each slot, number of shapes and number of frames.
    rows: FxHashMap<(u32, u32, u32), u32>,
    /// The shapes, frames and row of the last event of each slot, which are mostly those of the
    /// next one too.
    last: Vec<(u32, u32, u32)>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(analysis: &'a Analysis, group_by: GroupBy) -> Self {
        let profile = analysis.profile();
        let kinds: Vec<DeviceKind> = profile.threads().iter().map(|t| t.device).collect();
        let mut devices = kinds.clone();
        devices.sort_unstable();
        devices.dedup();
        let number = |kind: &DeviceKind| devices.partition_point(|known| known < kind) as u32;
        let device_of_thread = kinds.iter().map(number).collect();
        let devices = devices.len();
        let is_finer = group_by.input_shapes || group_by.stack_frames > 0;
        let slots = profile.strings().len() * devices * 2;
        let finer = is_finer.then(|| Finer {
            shapes: if group_by.input_shapes {
                shapes_of_inputs(profile.inputs())
            } else {
                Vec::new()
            },
            prefixes: (group_by.stack_frames > 0)
                .then(|| Prefixes::new(profile, group_by.stack_frames)),
            rows: FxHashMap::default(),
            last: vec![(0, 0, NO_ROW); slots],
        });
        Self {
            keys: analysis.keys(),
            device_of_thread,
            devices,
            by_key: vec![NO_ROW; if is_finer { 0 } else { slots }],
            finer,
        }
    }

    /// Returns the position of the event's row, which is `next` if the event opens a new one.
    #[inline]
    pub(super) fn row_of(
        &mut self,
        analysis: &Analysis,
        id: EventId,
        event: &Event,
        next: usize,
    ) -> usize {
        let key = self.keys.key(event.name).index();
        let device = self.device_of_thread[event.thread.index()] as usize;
        let annotation = usize::from(is_annotation(event.category));
        let slot = (key * self.devices + device) * 2 + annotation;
        match &mut self.finer {
            None => *claim(&mut self.by_key[slot], next) as usize,
            Some(finer) => finer.row(analysis, id, event, slot, next),
        }
    }
}

/// Sets the row to `next` if it is not set yet.
fn claim(row: &mut u32, next: usize) -> &mut u32 {
    if *row == NO_ROW {
        *row = next as u32;
    }
    row
}

impl Finer {
    fn row(
        &mut self,
        analysis: &Analysis,
        id: EventId,
        event: &Event,
        slot: usize,
        next: usize,
    ) -> usize {
        let profile = analysis.profile();
        let shapes = self.shapes.get(event.inputs.index()).copied().unwrap_or(0);
        let frames = match &mut self.prefixes {
            Some(prefixes) => prefixes.number(profile, analysis.stack(id)),
            None => 0,
        };
        let last = &mut self.last[slot];
        if (last.0, last.1) == (shapes, frames) && last.2 != NO_ROW {
            return last.2 as usize;
        }
        let key = (slot as u32, shapes, frames);
        let row = *claim(self.rows.entry(key).or_insert(NO_ROW), next);
        *last = (shapes, frames, row);
        row as usize
    }
}

pub(super) fn is_left_out(event: &Event, group_by: GroupBy) -> bool {
    event.category == Category::PythonFunction && !group_by.python_functions
}

/// Numbers the lists of inputs by their shapes. Lists of equal shapes have the same number, whatever
/// their dtypes, strides and values.
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

/// Returns the dimensions of all inputs, those of each input preceded by their number. Inputs other
/// than tensors have none.
fn shapes(inputs: &InputsTable, id: InputsId) -> Vec<u64> {
    let mut words = Vec::new();
    for input in inputs.inputs(id) {
        let dims = dims(&input);
        words.push(dims.len() as u64);
        words.extend_from_slice(dims);
    }
    words
}
