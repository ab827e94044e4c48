//! One process drives several devices.

use mindprof_model::Place;

use crate::advice::facts::Facts;
use crate::advice::rule::{Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "data-parallel",
    cause: "nn.DataParallel copies the model to all devices in every step",
    remedy: "one process per device: torchrun and nn.parallel.DistributedDataParallel(model)",
    price: Price::replay(0.02, (0.7, 1.5)),
    needs: &[EventKind::Cpu, EventKind::PythonCall],
    check,
};

const FILES: [&str; 3] = [
    "torch/nn/parallel/replicate.py",
    "torch/nn/parallel/scatter_gather.py",
    "torch/nn/parallel/comm.py",
];

/// The operators that the parts of `DataParallel` are recorded as.
const OPERATORS: [&str; 3] = ["Broadcast", "Scatter", "Gather"];

fn check(facts: &Facts<'_>) -> Outcome {
    let is_file = |file: &str| FILES.iter().any(|known| file.ends_with(known));
    let is_call = |name: &str| Place::parse(name).is_some_and(|place| is_file(place.file));
    let mut found = facts.named(&facts.calls, is_call);
    found.extend(facts.named(&facts.operators, |name| OPERATORS.contains(&name)));
    Outcome::without(facts, facts.outermost(&found))
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn replicating(file: &str, micros: u64) -> mindprof_model::Profile {
        let replicate = format!("torch/nn/parallel/{file}.py(80): replicate");
        training(5, |time, _| {
            time.call("train.py(9): step", |time| {
                time.call(&replicate, |time| time.op("Broadcast", micros));
                time.op("aten::mm", 1_000);
            });
        })
    }

    #[test]
    fn a_model_that_is_copied_in_each_step_is_found() {
        let finding = found(replicating("replicate", 1_000), "data-parallel");
        assert_eq!(blamed(&finding), "step");
        assert_saves(&finding, 0.5);
    }

    #[test]
    fn a_quick_copy_is_clean() {
        assert_eq!(
            outcome(replicating("replicate", 10), "data-parallel"),
            "clean"
        );
    }

    #[test]
    fn a_model_in_several_processes_is_clean() {
        let profile = training(5, |time, _| {
            time.call("torch/nn/parallel/distributed.py(900): forward", |time| {
                time.op("DistributedDataParallel.forward", 1_000);
            });
        });
        assert_eq!(outcome(profile, "data-parallel"), "clean");
    }
}
