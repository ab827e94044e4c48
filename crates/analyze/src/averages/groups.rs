//! Which row an event belongs to.

use mindprof_model::{DeviceKind, EventId, Input, InputsId, InputsTable};
use rustc_hash::FxHashMap;

use super::GroupBy;
use crate::source::Prefixes;
use crate::{Analysis, Keys};

const NO_ROW: u32 = u32::MAX;

/// Finds the row of an event. Names are dense, so by name alone this is one look into an array.
pub(super) struct Groups<'a> {
    keys: &'a Keys,
    /// The kinds of devices in the profile; their positions are their numbers here.
    devices: Vec<DeviceKind>,
    /// The row of each key, kind of device and "is an annotation".
    by_key: Vec<u32>,
    finer: Option<Finer>,
}

/// Finds the row where more than the key tells events apart.
struct Finer {
    /// The number of the shapes of each list of inputs; empty if shapes do not matter.
    shapes: Vec<u32>,
    prefixes: Option<Prefixes>,
    /// The rows by position in [`Groups::by_key`], number of shapes and number of frames.
    rows: FxHashMap<(u32, u32, u32), u32>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(analysis: &'a Analysis, group_by: GroupBy) -> Self {
        let profile = analysis.profile();
        let mut devices: Vec<_> = profile.threads().iter().map(|t| t.device).collect();
        devices.sort_unstable();
        devices.dedup();
        let is_finer = group_by.input_shapes || group_by.stack_frames > 0;
        let slots = if is_finer {
            0
        } else {
            profile.strings().len() * devices.len() * 2
        };
        let finer = is_finer.then(|| Finer {
            shapes: if group_by.input_shapes {
                shapes_of_inputs(profile.inputs())
            } else {
                Vec::new()
            },
            prefixes: (group_by.stack_frames > 0)
                .then(|| Prefixes::new(profile, group_by.stack_frames)),
            rows: FxHashMap::default(),
        });
        Self {
            keys: analysis.keys(),
            devices,
            by_key: vec![NO_ROW; slots],
            finer,
        }
    }

    /// Returns the position of the event's row, which is `next` if it is the first of its kind.
    pub(super) fn row_of(&mut self, analysis: &Analysis, id: EventId, next: usize) -> usize {
        let event = analysis.profile().event(id);
        let key = self.keys.key(event.name).index();
        let kind = analysis.device(id);
        let device = self.devices.iter().position(|&known| known == kind);
        let device = device.expect("the devices were taken from the profile's threads");
        let annotation = usize::from(analysis.is_annotation(id));
        let slot = (key * self.devices.len() + device) * 2 + annotation;
        let row = match &mut self.finer {
            None => &mut self.by_key[slot],
            Some(finer) => finer.row(analysis, id, slot as u32),
        };
        if *row == NO_ROW {
            *row = next as u32;
        }
        *row as usize
    }
}

impl Finer {
    fn row(&mut self, analysis: &Analysis, id: EventId, slot: u32) -> &mut u32 {
        let profile = analysis.profile();
        let inputs = profile.event(id).inputs;
        let shapes = self.shapes.get(inputs.index()).copied().unwrap_or(0);
        let frames = match &mut self.prefixes {
            Some(prefixes) => prefixes.number(profile, analysis.stack(id)),
            None => 0,
        };
        self.rows.entry((slot, shapes, frames)).or_insert(NO_ROW)
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
            | Input::FloatList(_)
            | Input::BoolList(_) => words.push(0),
        }
    }
    words
}
