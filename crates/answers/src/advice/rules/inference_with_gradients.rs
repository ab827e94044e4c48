//! A program that trains nothing records graphs for backward passes.

use mindprof_model::{EventId, ScopeKind, is_backward_wrapper};

use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "inference-with-gradients",
    cause: "gradients are enabled, but nothing is trained",
    remedy: "with torch.inference_mode(): no graph is recorded and no activation is kept",
    price: Price::Unpriced { rank: 0.02 },
    needs: &[EventKind::Cpu],
    check,
};

/// Fewer operators tell nothing.
const ENOUGH: usize = 10;

/// At least this part of the operators has to be recorded for a backward pass.
const MANY: f64 = 0.2;

fn check(facts: &Facts<'_>) -> Outcome {
    let wrappers = facts.names(is_backward_wrapper);
    let is_backward = |id: &EventId| {
        let event = facts.profile.event(*id);
        event.scope == ScopeKind::Backward || wrappers[event.name.index()]
    };
    // A step that trains has a backward pass or an optimizer.
    let trains = facts.operators.iter().any(is_backward)
        || facts.ranges.iter().any(|&id| facts.around(id).is_optimizer);
    if trains || facts.operators.len() < ENOUGH {
        return Outcome::Clean;
    }
    let is_numbered = |id: &&EventId| facts.profile.event(**id).sequence().is_some();
    let numbered: Vec<EventId> = facts
        .operators
        .iter()
        .filter(is_numbered)
        .copied()
        .collect();
    if (numbered.len() as f64) < MANY * facts.operators.len() as f64 {
        return Outcome::Clean;
    }
    Outcome::Found(Evidence {
        events: facts.outermost(&numbered),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;
    use crate::advice::rules::passes::drawn::{forward, train};

    fn running(has_gradients: impl Fn(u64) -> bool) -> mindprof_model::Profile {
        training(4, |time, step| {
            time.call("serve.py(9): predict", |time| {
                for call in 0..10 {
                    let number = has_gradients(call).then_some((step * 10 + call) as u32);
                    forward(time, "Net_0", number, 50);
                }
            });
        })
    }

    #[test]
    fn inference_that_records_graphs_is_a_hint() {
        let finding = found(running(|_| true), "inference-with-gradients");
        assert_eq!((blamed(&finding), finding.share), ("predict", 0.0));
    }

    #[test]
    fn a_few_graphs_are_clean() {
        let profile = running(|call| call == 0);
        assert_eq!(outcome(profile, "inference-with-gradients"), "clean");
    }

    #[test]
    fn training_is_clean() {
        let profile = training(12, train);
        assert_eq!(outcome(profile, "inference-with-gradients"), "clean");
    }
}
