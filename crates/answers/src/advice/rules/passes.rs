//! The calls of a model in the steps, and whether gradients are computed for them.
//!
//! Operators carry the number of the next backward node while gradients are enabled, and none
//! otherwise. The node itself belongs to the last operator with its number: those of a model without
//! trainable parameters carry the number of a node that a later operator creates. A pass whose
//! numbers no backward node has is never used for gradients. Passes of
//! activation checkpointing are no passes of their own: the first has no gradients, the second runs
//! inside of the backward pass. A pass is judged by the operators beside them.

use mindprof_model::{Category, EventId, ScopeKind, StringId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::advice::facts::{Facts, MODULE};
use crate::advice::rule::Outcome;

/// The purpose of a call of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::advice) enum Pass {
    /// A backward pass follows.
    Trained,
    /// Gradients are enabled, but no backward pass follows.
    Unused,
    /// Gradients are disabled, or nothing in the model needs them.
    WithoutGradients,
}

/// At most this part of the numbers of an unused pass are those of a later one.
const FEW: f64 = 0.2;

/// Returns whether an event of this name is a backward pass or activation checkpointing: modules
/// that run inside of it are run again, or will be.
fn is_recomputing(name: &str) -> bool {
    name.contains("torch/utils/checkpoint.py(")
        || name.starts_with("autograd::engine::evaluate_function")
        || name.contains("run_backward")
}

/// Returns the calls of modules that no other module makes, with what each is for.
fn passes(facts: &Facts<'_>) -> Vec<(EventId, Pass)> {
    let events = facts.profile.events();
    let is_backward = |id: &&EventId| facts.profile.event(**id).scope == ScopeKind::Backward;
    let used: FxHashSet<u32> = (facts.operators.iter().filter(is_backward))
        .filter_map(|&id| facts.profile.event(id).sequence())
        .collect();
    let models = facts.outermost(&facts.named(&facts.calls, |name| name.starts_with(MODULE)));
    let again = facts.inside(&facts.named(&facts.events, is_recomputing));
    let creators = creators(facts, &models, &again);
    // By event, how many operators inside it have numbers of nodes that their model creates, and
    // numbers of backward nodes.
    let mut counts = vec![(0_u32, 0_u32, 0_u32); events.len()];
    for (index, event) in events.iter().enumerate().rev() {
        let id = EventId::from_index(index);
        // What is computed again tells nothing about the pass: it has numbers of nodes that never run.
        if event.category == Category::Operator && !again[index] {
            let is_created = |&number: &u32| creators.creates(id, number);
            let sequence = event.sequence().filter(is_created);
            counts[index].0 += 1;
            counts[index].1 += u32::from(sequence.is_some());
            counts[index].2 += u32::from(sequence.is_some_and(|number| used.contains(&number)));
        }
        if let Some(parent) = facts.parent(id) {
            let (all, with, trained) = counts[index];
            let sums = &mut counts[parent.index()];
            *sums = (sums.0 + all, sums.1 + with, sums.2 + trained);
        }
    }
    let models = models.into_iter().filter(|id| !again[id.index()]);
    let found = models.filter_map(|id| {
        let (all, with, trained) = counts[id.index()];
        let pass = match (all, with) {
            (0, _) => return None,
            (_, 0) => Pass::WithoutGradients,
            _ if f64::from(trained) <= FEW * f64::from(with) => Pass::Unused,
            _ => Pass::Trained,
        };
        Some((id, pass))
    });
    found.collect()
}

/// The calls of models that create backward nodes.
struct Creators {
    /// By event, the outermost call of a model that it is in.
    model: Vec<Option<EventId>>,
    /// By the number of a node, the call of a model that its operator is in, if any.
    by_number: FxHashMap<u32, Option<EventId>>,
}

impl Creators {
    /// Returns whether the model that an operator is in creates the node of this number.
    fn creates(&self, operator: EventId, number: u32) -> bool {
        self.by_number.get(&number) == Some(&self.model[operator.index()])
    }
}

/// Finds the calls of models that create backward nodes. Operators of the backward pass, which have
/// the numbers of their nodes, create none.
///
/// ```text
/// model    |teacher|  |student|  loss
/// number    7   7      7   8      9        the student creates 7 and 8, the teacher none
/// ```
fn creators(facts: &Facts<'_>, models: &[EventId], is_backward: &[bool]) -> Creators {
    let events = facts.profile.events();
    let mut model: Vec<Option<EventId>> = vec![None; events.len()];
    for &id in models {
        model[id.index()] = Some(id);
    }
    let mut by_number = FxHashMap::default();
    // Parents precede their children, and events are in start order.
    for (index, event) in events.iter().enumerate() {
        let id = EventId::from_index(index);
        let around = facts.parent(id).and_then(|parent| model[parent.index()]);
        model[index] = around.or(model[index]);
        let is_forward = event.category == Category::Operator
            && event.scope != ScopeKind::Backward
            && !is_backward[index];
        if let Some(number) = event.sequence().filter(|_| is_forward) {
            by_number.insert(number, model[index]);
        }
    }
    Creators { model, by_number }
}

/// Returns the calls of one purpose of models that are trained as well, or that are not.
pub(super) fn passes_of(facts: &Facts<'_>, purpose: Pass, is_trained: bool) -> Vec<EventId> {
    let passes = facts.passes.get_or_init(|| passes(facts));
    let name = |id: EventId| identity(facts, id);
    let trained: FxHashSet<_> = (passes.iter())
        .filter(|(_, pass)| *pass == Pass::Trained)
        .map(|&(id, _)| name(id))
        .collect();
    // Without any training there is nothing to compare with.
    if trained.is_empty() {
        return Vec::new();
    }
    let found = (passes.iter().enumerate()).filter(|&(index, &(id, pass))| {
        pass == purpose
            && trained.contains(&name(id)) == is_trained
            && !(purpose == Pass::WithoutGradients
                && is_trained
                && feeds_another(facts, &passes[index..]))
    });
    found.map(|(_, &(id, _))| id).collect()
}

/// Returns what tells the model of a call from others: its name, and the sizes of the weights of its
/// first layer if the name has no number. Sampled stacks name classes, not models.
fn identity<'a>(facts: &Facts<'a>, id: EventId) -> (StringId, Option<&'a [u64]>) {
    let name = facts.profile.event(id).name;
    let is_numbered = (facts.name(id).rsplit_once('_'))
        .is_some_and(|(_, number)| number.bytes().all(|byte| byte.is_ascii_digit()));
    if is_numbered {
        return (name, None);
    }
    let end = facts.profile.event(id).end();
    let after = facts.operators.partition_point(|&operator| operator < id);
    let mut inside = (facts.operators[after..].iter().copied())
        .take_while(|&operator| facts.profile.event(operator).start < end);
    let is_layer =
        |&operator: &EventId| ["aten::linear", "aten::convolution"].contains(&facts.name(operator));
    let layer = inside.find(is_layer);
    let weights = layer.and_then(|layer| facts.tensors(layer).get(1).map(|&(_, sizes)| sizes));
    (name, weights)
}

/// Returns whether the first of some passes makes the input of another model, as the generator of a
/// GAN does: in the same step, another model is trained before this one is.
fn feeds_another(facts: &Facts<'_>, passes: &[(EventId, Pass)]) -> bool {
    let [(id, _), later @ ..] = passes else {
        return false;
    };
    let step = facts.around(*id).step;
    let mut trained = (later.iter())
        .take_while(|(later, _)| facts.around(*later).step == step)
        .filter(|(_, pass)| *pass == Pass::Trained);
    let name = |id: EventId| facts.profile.event(id).name;
    trained
        .next()
        .is_some_and(|(later, _)| name(*later) != name(*id))
}

/// Returns the verdict about the calls that [`passes_of`] returns: most steps make them for nothing.
pub(super) fn check_passes(facts: &Facts<'_>, purpose: Pass, is_trained: bool) -> Outcome {
    if facts.calls.is_empty() {
        return Outcome::Unknown("calls of modules were not recorded: with_stack=True");
    }
    let calls = passes_of(facts, purpose, is_trained);
    if !facts.is_usual(&calls) {
        return Outcome::Clean;
    }
    Outcome::without(facts, calls)
}

#[cfg(test)]
pub(super) mod drawn {
    use crate::advice::rules::kit::*;

    /// Draws a step: a forward pass with its backward pass.
    pub(in crate::advice::rules) fn train(time: &mut Drawing, step: u64) {
        let number = step as u32 * 10 + 1;
        time.call("train.py(4): step", |time| {
            forward(time, "Net_0", Some(number), 500);
            time.node("MmBackward0", number, |time| time.idle(500));
        });
    }

    /// Draws a call of a model.
    pub(in crate::advice::rules) fn forward(
        time: &mut Drawing,
        model: &str,
        number: Option<u32>,
        micros: u64,
    ) {
        time.call(&format!("nn.Module: {model}"), |time| {
            if let Some(number) = number {
                time.number(number);
            }
            time.op("aten::mm", micros);
        });
    }
}
