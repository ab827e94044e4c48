//! Steps start the workers of a data loader.

use mindprof_model::Place;

use crate::advice::facts::Facts;
use crate::advice::rule::{Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "worker-restarts",
    cause: "steps start and stop the workers of a data loader",
    remedy: "keep the workers between epochs: DataLoader(..., persistent_workers=True), and iter(loader) outside of the step",
    price: Price::replay(0.02, (0.6, 1.1)),
    needs: &[EventKind::PythonCall],
    check,
};

pub(super) fn is_start(name: &str) -> bool {
    Place::parse(name).is_some_and(|place| {
        place.file.ends_with("torch/utils/data/dataloader.py")
            && matches!(place.function, "_get_iterator" | "_shutdown_workers")
    })
}

fn check(facts: &Facts<'_>) -> Outcome {
    if facts.calls.is_empty() {
        return Outcome::Unknown("Python calls were not recorded: with_stack=True");
    }
    let calls = facts.outermost(&facts.named(&facts.calls, is_start));
    Outcome::without(facts, calls)
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn iterating(function: &str, micros: u64) -> mindprof_model::Profile {
        let function = format!("torch/utils/data/dataloader.py(480): {function}");
        training(5, |time, _| {
            time.call("train.py(9): validate", |time| {
                time.python(&function, micros);
                time.op("aten::mm", 1_000);
            });
        })
    }

    #[test]
    fn workers_that_start_in_steps_are_found() {
        let finding = found(iterating("_get_iterator", 1_000), "worker-restarts");
        assert_eq!(blamed(&finding), "validate");
        assert_saves(&finding, 0.5);
    }

    #[test]
    fn an_iterator_without_workers_is_clean() {
        assert_eq!(
            outcome(iterating("_get_iterator", 10), "worker-restarts"),
            "clean"
        );
    }

    #[test]
    fn waiting_for_a_batch_is_another_cause() {
        assert_eq!(
            outcome(iterating("__next__", 1_000), "worker-restarts"),
            "clean"
        );
    }
}
