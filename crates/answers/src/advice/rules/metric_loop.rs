//! A loop reads numbers out of tensors one by one.

use super::loops::{found, loops, of_one_function};
use crate::advice::facts::Facts;
use crate::advice::rule::{Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "metric-loop",
    cause: "a loop reads numbers out of tensors one by one",
    remedy: "compute with whole tensors, and read them once: (predicted == labels).sum().item(), or .tolist()",
    price: Price::replay(0.03, (0.5, 2.0)),
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
    let reading = loops(facts).iter().filter(|found| found.is_reading(facts));
    match of_one_function(reading, |found| found.reads(facts)) {
        Some((reads, loops)) if facts.per_step(reads) >= MANY => found(facts, &loops),
        _ => Outcome::Clean,
    }
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
