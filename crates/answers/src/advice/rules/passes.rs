//! The calls of a model in the steps, and whether gradients are computed for them.
//!
//! Operators carry the number of the next backward node while gradients are enabled, and none
//! otherwise. A pass whose numbers no backward node has is never used for gradients. Passes of
//! activation checkpointing are no passes of their own: the first has no gradients, the second runs
//! inside of the backward pass.

use mindprof_model::{Category, EventId, ScopeKind};
use rustc_hash::FxHashSet;

use crate::advice::facts::{Facts, MODULE};
use crate::advice::rule::Outcome;

/// The purpose of a call of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::advice) enum Pass {
    /// A backward pass follows.
    Trained,
    /// Gradients are enabled, but no backward pass follows.
    Unused,
    /// Gradients are disabled.
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
    // By event, how many operators inside it have numbers, and numbers of backward nodes.
    let mut counts = vec![(0_u32, 0_u32, 0_u32); events.len()];
    for (index, event) in events.iter().enumerate().rev() {
        let id = EventId::from_index(index);
        if event.category == Category::Operator {
            let sequence = event.sequence();
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
    let models = facts.outermost(&facts.named(&facts.calls, |name| name.starts_with(MODULE)));
    let again = facts.inside(&facts.named(&facts.events, is_recomputing));
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

/// Returns the calls of one purpose of models that are trained as well, or that are not.
pub(super) fn passes_of(facts: &Facts<'_>, purpose: Pass, is_trained: bool) -> Vec<EventId> {
    let passes = facts.passes.get_or_init(|| passes(facts));
    let name = |id: EventId| facts.profile.event(id).name;
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
