//! The category of each version of each block, by the rules of torch's memory profiler and in
//! their order.
//!
//! A category of the block as a whole (from a recorded role or an accumulated gradient) takes
//! precedence over being a temporary, and that over the category of a single version, which follows
//! from the data flow.

use mindprof_model::{EventId, Profile, ScopeKind, TensorRole};

use super::blocks::{Blocks, NO_BLOCK};
use super::change::MemoryCategory;
use super::flow::{Flow, Node};
use crate::analysis::Analysis;

/// The backward node that accumulates the gradient of a leaf, and the operators that it starts with.
const ACCUMULATE: &str = "torch::autograd::AccumulateGrad";
const ACCUMULATORS: [&str; 2] = ["aten::detach", "aten::add_"];

/// The categories of all blocks and their versions.
///
/// The same block may serve several purposes one after the other: an optimizer that writes into a
/// buffer makes a new version of it, which can have another category than the old one.
#[derive(Debug)]
pub(super) struct Categories {
    of_blocks: Vec<Option<MemoryCategory>>,
    are_temporary: Vec<bool>,
    of_versions: Vec<Option<MemoryCategory>>,
}

impl Categories {
    pub(super) fn build(analysis: &Analysis, blocks: &Blocks, flow: &Flow) -> Self {
        let mut categories = Self {
            of_blocks: vec![None; blocks.len()],
            are_temporary: vec![false; blocks.len()],
            of_versions: vec![None; flow.versions()],
        };
        let profile = analysis.profile();
        categories.set_roles(profile, blocks, TensorRole::Gradient);
        categories.set_accumulated(analysis, blocks);
        categories.set_temporaries(flow);
        categories.set_roles(profile, blocks, TensorRole::Parameter);
        // Without a gradient or parameter, nothing can depend on one or contribute to one.
        let is_trained = (0..blocks.len() as u32).any(|b| categories.is_gradient_or_parameter(b));
        if is_trained {
            let dependent = categories.depend_on_gradients(blocks, flow);
            categories.set_inputs(flow, &dependent);
            categories.set_parameters(flow, &dependent);
            categories.set_activations(flow);
        }
        categories.set_roles(profile, blocks, TensorRole::OptimizerState);
        categories.set_autograd_details(flow);
        categories
    }

    /// Returns the category of a version of a block.
    pub(super) fn of(&self, flow: &Flow, block: u32, version: u32) -> MemoryCategory {
        self.get(flow, (block, version))
            .unwrap_or(MemoryCategory::Unknown)
    }

    /// Returns whether the block as a whole has a category.
    pub(super) fn has_category(&self, block: u32) -> bool {
        self.of_blocks[block as usize].is_some()
    }

    fn get(&self, flow: &Flow, (block, version): (u32, u32)) -> Option<MemoryCategory> {
        let temporary = || {
            let is_temporary = self.are_temporary[block as usize];
            is_temporary.then_some(MemoryCategory::Temporary)
        };
        self.of_blocks[block as usize]
            .or_else(temporary)
            .or_else(|| self.of_versions[flow.place(block, version)])
    }

    fn set_default(&mut self, flow: &Flow, (block, version): (u32, u32), to: MemoryCategory) {
        self.of_versions[flow.place(block, version)].get_or_insert(to);
    }

    fn is_gradient(&self, block: u32) -> bool {
        self.of_blocks[block as usize] == Some(MemoryCategory::Gradient)
    }

    fn is_gradient_or_parameter(&self, block: u32) -> bool {
        self.is_gradient(block) || self.of_blocks[block as usize] == Some(MemoryCategory::Parameter)
    }

    /// Sets the categories of tensors that modules and optimizers were seen to hold.
    fn set_roles(&mut self, profile: &Profile, blocks: &Blocks, role: TensorRole) {
        let category = match role {
            TensorRole::Parameter => MemoryCategory::Parameter,
            TensorRole::Gradient => MemoryCategory::Gradient,
            TensorRole::OptimizerState => MemoryCategory::OptimizerState,
        };
        for (index, record) in profile.roles().iter().enumerate() {
            let block = blocks.of_role(index);
            if record.role == role && block != NO_BLOCK {
                self.of_blocks[block as usize] = Some(category);
            }
        }
    }

    /// Finds the gradients that the backward pass accumulates: the first input of the first operator
    /// inside an accumulating node.
    fn set_accumulated(&mut self, analysis: &Analysis, blocks: &Blocks) {
        let profile = analysis.profile();
        let Some(accumulate) = profile.strings().find(ACCUMULATE) else {
            return;
        };
        let mut has_child = vec![false; profile.events().len()];
        for (index, event) in profile.events().iter().enumerate() {
            let Some(parent) = analysis.tree().parent(EventId::from_index(index)) else {
                continue;
            };
            let node = profile.event(parent);
            if node.name != accumulate || node.scope != ScopeKind::Backward {
                continue;
            }
            let is_first = !std::mem::replace(&mut has_child[parent.index()], true);
            if !is_first || !ACCUMULATORS.contains(&profile.name(event)) {
                continue;
            }
            if let Some(gradient) = blocks.inputs(index).first()
                && gradient.place == 0
                && let Some(block) = gradient.block()
            {
                self.of_blocks[block as usize] = Some(MemoryCategory::Gradient);
            }
        }
    }

    fn set_temporaries(&mut self, flow: &Flow) {
        for edge in flow.nodes().flat_map(|node| node.edges) {
            self.are_temporary[edge.block as usize] |= edge.is_intermediate();
        }
    }

    /// Returns which blocks depend on a gradient or parameter in any of their versions.
    ///
    /// All versions of a block count as one here, so dependence can run backwards in time, from an
    /// updated parameter to its first use. The search therefore goes over blocks, not along the
    /// order of operations, and visits each operation once.
    fn depend_on_gradients(&self, blocks: &Blocks, flow: &Flow) -> Vec<bool> {
        let readers = Readers::build(blocks.len(), flow);
        let mut dependent = vec![false; blocks.len()];
        let mut waiting: Vec<u32> = (0..blocks.len() as u32)
            .filter(|&block| self.is_gradient_or_parameter(block))
            .filter(|&block| !readers.of(block).is_empty())
            .collect();
        for &block in &waiting {
            dependent[block as usize] = true;
        }
        let mut is_walked = vec![false; flow.len()];
        while let Some(block) = waiting.pop() {
            for &reader in readers.of(block) {
                if std::mem::replace(&mut is_walked[reader as usize], true) {
                    continue;
                }
                for (output, _) in flow.node(reader as usize).outputs() {
                    if !std::mem::replace(&mut dependent[output as usize], true) {
                        waiting.push(output);
                    }
                }
            }
        }
        dependent
    }

    /// Finds the inputs: blocks that contribute to a gradient or parameter without depending on
    /// one.
    fn set_inputs(&mut self, flow: &Flow, dependent: &[bool]) {
        let mut contributes = vec![false; flow.versions()];
        for node in flow.nodes().rev() {
            let tensors = || node.inputs().chain(node.outputs());
            let is_part = tensors().any(|(block, version)| {
                self.is_gradient_or_parameter(block) || contributes[flow.place(block, version)]
            });
            if is_part {
                for (block, version) in tensors() {
                    contributes[flow.place(block, version)] = true;
                }
            }
        }
        for node in flow.nodes().filter(|node| node.is_backward) {
            for (block, version) in node.outputs() {
                contributes[flow.place(block, version)] = false;
            }
        }
        for block in 0..dependent.len() as u32 {
            for version in 0..=flow.last_version(block) {
                if !dependent[block as usize] && contributes[flow.place(block, version)] {
                    self.set_default(flow, (block, version), MemoryCategory::Input);
                }
            }
        }
    }

    /// Finds parameters that no module or optimizer reported: blocks that the forward pass uses
    /// together with inputs, that contribute to a gradient, and that depend on one.
    fn set_parameters(&mut self, flow: &Flow, dependent: &[bool]) {
        let places = |tensors: &mut dyn Iterator<Item = (u32, u32)>| -> Vec<usize> {
            tensors
                .map(|(block, version)| flow.place(block, version))
                .collect()
        };
        let mut is_forward = vec![false; flow.versions()];
        for block in 0..dependent.len() as u32 {
            for version in 0..=flow.last_version(block) {
                let category = self.get(flow, (block, version));
                is_forward[flow.place(block, version)] = category == Some(MemoryCategory::Input);
            }
        }
        let mut is_candidate = vec![false; flow.versions()];
        for node in flow.nodes().filter(|node| !self.is_after_forward(*node)) {
            let inputs = places(&mut node.inputs());
            if inputs.iter().any(|&place| is_forward[place]) {
                for place in places(&mut node.outputs()) {
                    is_forward[place] = true;
                }
                for place in inputs {
                    is_candidate[place] |= !is_forward[place];
                }
            }
        }
        let mut is_used = vec![false; flow.versions()];
        for node in flow.nodes().rev() {
            let mut outputs = node.outputs();
            let makes_gradient = outputs.any(|(block, version)| {
                self.is_gradient(block) || is_used[flow.place(block, version)]
            });
            if makes_gradient {
                for place in places(&mut node.inputs()) {
                    is_used[place] = true;
                }
            }
        }
        for block in (0..dependent.len() as u32).filter(|&block| dependent[block as usize]) {
            let mut versions = 0..=flow.last_version(block);
            let is_parameter = versions.any(|version| {
                let place = flow.place(block, version);
                is_candidate[place] && is_used[place]
            });
            if is_parameter {
                self.of_blocks[block as usize] = Some(MemoryCategory::Parameter);
            }
        }
    }

    fn is_after_forward(&self, node: Node<'_>) -> bool {
        let mut tensors = node.inputs().chain(node.outputs());
        node.is_backward || tensors.any(|(block, _)| self.is_gradient(block))
    }

    /// Finds the activations: results of forward operations on inputs, activations and parameters.
    fn set_activations(&mut self, flow: &Flow) {
        use MemoryCategory::{Activation, Input, Parameter, Temporary};
        for node in flow.nodes().filter(|node| !node.is_backward) {
            let (mut is_reached, mut is_pure) = (false, true);
            for tensor in node.inputs() {
                match self.get(flow, tensor) {
                    Some(Input | Activation) => is_reached = true,
                    Some(Parameter | Temporary) => {}
                    _ => is_pure = false,
                }
            }
            if is_reached && is_pure {
                for tensor in node.outputs() {
                    self.set_default(flow, tensor, Activation);
                }
            }
        }
    }

    /// Finds the results of backward operations that have no other category.
    fn set_autograd_details(&mut self, flow: &Flow) {
        use MemoryCategory::AutogradDetail;
        for node in flow.nodes().filter(|node| node.is_backward) {
            for (block, version) in node.outputs() {
                let before = version.checked_sub(1).map(|before| (block, before));
                let before = before.and_then(|before| self.get(flow, before));
                if matches!(before, None | Some(AutogradDetail)) {
                    self.set_default(flow, (block, version), AutogradDetail);
                }
            }
        }
    }
}

/// The operations that read each block.
struct Readers {
    begins: Vec<u32>,
    operations: Vec<u32>,
}

impl Readers {
    fn build(blocks: usize, flow: &Flow) -> Self {
        let mut begins = vec![0_u32; blocks + 1];
        let pairs = || {
            let nodes = flow.nodes().enumerate();
            nodes.flat_map(|(index, node)| node.inputs().map(move |(block, _)| (block, index)))
        };
        for (block, _) in pairs() {
            begins[block as usize + 1] += 1;
        }
        for index in 0..blocks {
            begins[index + 1] += begins[index];
        }
        let mut next = begins.clone();
        let mut operations = vec![0; begins[blocks] as usize];
        for (block, operation) in pairs() {
            let place = &mut next[block as usize];
            operations[*place as usize] = operation as u32;
            *place += 1;
        }
        Self { begins, operations }
    }

    fn of(&self, block: u32) -> &[u32] {
        let [begin, end] = [0, 1].map(|next| self.begins[block as usize + next] as usize);
        &self.operations[begin..end]
    }
}
