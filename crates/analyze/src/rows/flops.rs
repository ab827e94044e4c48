//! Floating-point operations of operators, computed from the shapes of their inputs.
//!
//! The formulas are torch's: a few operators are counted, all others count as zero.

use mindprof_model::{Category, EventId, Input, InputsId, InputsTable, Profile, StringTable};
use rustc_hash::FxHashMap;

use crate::tree::event_tree::Tree;

#[cfg(test)]
mod tests;

/// The formula by which the operations of an operator are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Formula {
    /// A product of the matrices at this position and the next, possibly batched.
    Product(usize),
    /// A two-dimensional convolution.
    Convolution,
    /// One per element of the first input.
    Elements,
}

impl Formula {
    fn of(name: &str) -> Option<Self> {
        match name {
            "aten::mm" | "aten::bmm" => Some(Self::Product(0)),
            "aten::addmm" | "aten::baddbmm" => Some(Self::Product(1)),
            "aten::conv2d" => Some(Self::Convolution),
            "aten::mul" | "aten::add" => Some(Self::Elements),
            _ => None,
        }
    }

    fn count(self, inputs: &[Input<'_>]) -> Option<u64> {
        match self {
            Self::Product(first) => product(inputs, first),
            Self::Convolution => convolution(inputs),
            Self::Elements => Some(multiply(dims(inputs, 0)?.iter().copied())),
        }
    }
}

/// Counts the floating-point operations of events.
///
/// A training loop calls the same operators with the same shapes over and over, so the count of
/// each pair of a name and a list of inputs is cached.
#[derive(Clone, Debug)]
pub struct Flops {
    formulas: Vec<Option<Formula>>,
    known: FxHashMap<(u32, u32), u64>,
}

impl Flops {
    /// Looks up the formula of each name.
    pub fn new(strings: &StringTable) -> Self {
        Self {
            formulas: strings.iter().map(Formula::of).collect(),
            known: FxHashMap::default(),
        }
    }

    /// Returns the operations of an event. Zero if there is no formula or the shapes do not fit it.
    pub fn count(&mut self, profile: &Profile, id: EventId) -> u64 {
        let event = profile.event(id);
        let Some(formula) = self.formulas[event.name.index()] else {
            return 0;
        };
        if event.inputs == InputsId::NONE || event.category != Category::Operator {
            return 0;
        }
        let key = (event.name.to_raw(), event.inputs.to_raw());
        *self
            .known
            .entry(key)
            .or_insert_with(|| count(formula, profile.inputs(), event.inputs))
    }

    /// Returns whether an event is an operator with a formula.
    fn has_formula(&self, profile: &Profile, id: EventId) -> bool {
        let event = profile.event(id);
        event.category == Category::Operator && self.formulas[event.name.index()].is_some()
    }
}

/// Returns the operators whose work is missing from the counts: they take tensors, and neither they
/// nor any event around or inside them has a formula.
///
/// ```text
/// linear    |-----------|          counted: addmm inside it has a formula
///   addmm     |-----|              counted: it has a formula
/// relu                   |---|     not counted: returned
/// ```
pub fn uncounted(profile: &Profile, tree: &Tree) -> Vec<EventId> {
    let flops = Flops::new(profile.strings());
    let ids = || (0..profile.events().len()).map(EventId::from_index);
    let mut covered: Vec<bool> = ids().map(|id| flops.has_formula(profile, id)).collect();
    let mut inside = covered.clone();
    for id in ids().rev() {
        if let Some(parent) = tree.parent(id) {
            inside[parent.index()] |= inside[id.index()];
        }
    }
    for id in ids() {
        if let Some(parent) = tree.parent(id) {
            covered[id.index()] |= covered[parent.index()];
        }
    }
    ids()
        .filter(|&id| !covered[id.index()] && !inside[id.index()])
        .filter(|&id| !tree.is_merged(id) && !tree.is_outside(id))
        .filter(|&id| profile.event(id).category == Category::Operator)
        .filter(|&id| {
            let mut inputs = profile.inputs().inputs(profile.event(id).inputs);
            inputs.any(|input| matches!(input, Input::Tensor { .. } | Input::TensorList(_)))
        })
        .collect()
}

fn count(formula: Formula, inputs: &InputsTable, id: InputsId) -> u64 {
    let inputs: Vec<Input<'_>> = inputs.inputs(id).collect();
    formula.count(&inputs).unwrap_or(0)
}

fn dims<'a>(inputs: &[Input<'a>], position: usize) -> Option<&'a [u64]> {
    match inputs.get(position)? {
        Input::Tensor { dims, .. } => Some(dims),
        _ => None,
    }
}

/// Returns twice the number of elements of the left matrices, times the columns of the right ones.
fn product(inputs: &[Input<'_>], first: usize) -> Option<u64> {
    let (left, right) = (dims(inputs, first)?, dims(inputs, first + 1)?);
    let columns = right.last()?;
    let fits = left.len() == right.len() && left.len() >= 2;
    fits.then(|| multiply(left.iter().copied().chain([2, *columns])))
}

/// Counts a convolution, whose inputs are `input, weight, bias, stride, padding, dilation, groups`.
fn convolution(inputs: &[Input<'_>]) -> Option<u64> {
    let [batch, _, height, width] = *dims(inputs, 0)? else {
        return None;
    };
    let [out_channels, in_channels, kernel_height, kernel_width] = *dims(inputs, 1)? else {
        return None;
    };
    let [stride, padding, dilation] = [3, 4, 5].map(|position| pair(inputs.get(position)));
    let (stride, padding, dilation) = (stride?, padding?, dilation?);
    let out = |size: u64, kernel: u64, axis: usize| {
        let padded = i128::from(size) + 2 * i128::from(padding[axis]);
        let reach = i128::from(dilation[axis]) * (i128::from(kernel) - 1) + 1;
        let steps = (padded - reach).checked_div(i128::from(stride[axis]))?;
        u64::try_from(steps + 1).ok()
    };
    let (rows, columns) = (out(height, kernel_height, 0)?, out(width, kernel_width, 1)?);
    let per_position = [kernel_height, kernel_width, in_channels, out_channels];
    // The weight's channels are those of one group, so there is no division by the groups.
    Some(multiply(
        [2, batch, rows, columns].into_iter().chain(per_position),
    ))
}

/// Multiplies, saturating on overflow: sizes come from files and may be anything.
fn multiply(factors: impl IntoIterator<Item = u64>) -> u64 {
    factors.into_iter().fold(1, u64::saturating_mul)
}

fn pair(input: Option<&Input<'_>>) -> Option<[i64; 2]> {
    let Some(Input::IntList(words)) = input else {
        return None;
    };
    match **words {
        [both] => Some([both as i64; 2]),
        [vertical, horizontal] => Some([vertical as i64, horizontal as i64]),
        _ => None,
    }
}
