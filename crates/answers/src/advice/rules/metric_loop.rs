//! A loop reads numbers out of tensors one by one.

use mindprof_model::{EventId, StringId};
use rustc_hash::FxHashMap;

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "metric-loop",
    cause: "a loop reads numbers out of tensors one by one",
    remedy: "compute with whole tensors, and read them once: (predicted == labels).sum().item(), or .tolist()",
    price: Price::replay(0.03, (0.8, 2.0)),
    needs: &[EventKind::Cpu],
    check,
};

/// This many reads from one function in each step are a loop.
const MANY: f64 = 50.0;

fn check(facts: &Facts<'_>) -> Outcome {
    // On a device, such a loop waits for it.
    if facts.has_device {
        return Outcome::Clean;
    }
    let is_read = |name: &str| matches!(name, "aten::item" | "aten::_local_scalar_dense");
    let mut by_frame: FxHashMap<Option<StringId>, Vec<EventId>> = FxHashMap::default();
    for id in facts.named(&facts.operators, is_read) {
        let around = facts.around(id);
        if !around.is_loading && !around.is_optimizer && !around.is_in_operator {
            let frame = facts.frames[id.index()];
            by_frame.entry(frame).or_default().push(id);
        }
    }
    let most = by_frame
        .into_iter()
        .max_by_key(|(frame, reads)| (reads.len(), *frame));
    let Some((frame, mut reads)) = most.filter(|(_, reads)| facts.per_step(reads.len()) >= MANY)
    else {
        return Outcome::Clean;
    };
    // Taking the elements apart is part of the loop.
    let is_part = |name: &str| matches!(name, "aten::select" | "aten::unbind");
    let parts = facts.named(&facts.operators, is_part).into_iter();
    reads.extend(parts.filter(|id| facts.frames[id.index()] == frame));
    Outcome::Found(Evidence {
        mending: facts.without(&reads),
        events: reads,
        blame: frame.map(Blame::Frame),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn reading(items: usize) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.op("aten::mm", 1_000);
            time.call("train.py(9): accuracy", |time| {
                for _ in 0..items {
                    time.op("aten::select", 5);
                    time.op("aten::item", 5);
                }
            });
        })
    }

    #[test]
    fn a_loop_over_elements_is_found() {
        let finding = found(reading(100), "metric-loop");
        assert_eq!(blamed(&finding), "accuracy");
        assert!((0.3..0.5).contains(&finding.share), "{}", finding.share);
    }

    #[test]
    fn a_few_elements_are_clean() {
        assert_eq!(outcome(reading(20), "metric-loop"), "clean");
    }

    // Many functions read one number each.
    #[test]
    fn reads_in_many_places_are_no_loop() {
        let profile = training(4, |time, _| {
            time.op("aten::mm", 1_000);
            for line in 0..60 {
                let function = format!("train.py({line}): metric_{line}");
                time.call(&function, |time| time.op("aten::item", 5));
            }
        });
        assert_eq!(outcome(profile, "metric-loop"), "clean");
    }
}
