//! Every step writes files or logs.

use mindprof_model::Place;

use crate::advice::facts::Facts;
use crate::advice::rule::{Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "output-bound",
    cause: "every step writes files or logs",
    remedy: "write every 100th step, or in a thread: keep values with .detach() and torch.save them later",
    price: Price::replay(0.02, (0.6, 1.1)),
    needs: &[EventKind::PythonCall],
    check,
};

/// Packages that write logs.
const LOGGERS: [&str; 7] = [
    "torch/utils/tensorboard/",
    "tensorboard/",
    "tensorboardX/",
    "wandb/",
    "mlflow/",
    "neptune/",
    "comet_ml/",
];

/// Functions that write files, by the end of their file's name and their own.
const WRITERS: [(&str, &str); 8] = [
    ("torch/serialization.py", "save"),
    ("safetensors/torch.py", "save_file"),
    ("json/__init__.py", "dump"),
    ("matplotlib/figure.py", "savefig"),
    ("PIL/Image.py", "save"),
    ("pandas/core/generic.py", "to_csv"),
    ("numpy/lib/npyio.py", "save"),
    ("numpy/lib/_npyio_impl.py", "save"),
];

/// Built-in functions that write files.
const BUILT_IN: [&str; 4] = [
    "<built-in method write of _io.",
    "<built-in method flush of _io.",
    "<built-in method dump of ",
    "<built-in method fsync of ",
];

pub(super) fn is_output(name: &str) -> bool {
    if name.starts_with('<') {
        return BUILT_IN.iter().any(|known| name.starts_with(known));
    }
    Place::parse(name).is_some_and(|place| {
        LOGGERS.iter().any(|package| place.file.contains(package))
            || (WRITERS.iter())
                .any(|(file, function)| place.file.ends_with(file) && place.function == *function)
    })
}

fn check(facts: &Facts<'_>) -> Outcome {
    if facts.calls.is_empty() {
        return Outcome::Unknown("Python calls were not recorded: with_stack=True");
    }
    let mut calls = facts.outermost(&facts.named(&facts.calls, is_output));
    calls.retain(|&id| !facts.around(id).is_loading);
    // What a few steps write makes them slow steps.
    if !facts.is_usual(&calls) {
        return Outcome::Clean;
    }
    Outcome::without(facts, calls)
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    const SAVE: &str = "torch/serialization.py(900): save";

    fn writing(micros: u64, every: u64) -> mindprof_model::Profile {
        training(6, |time, step| {
            time.op("aten::mm", 1_000);
            if step % every == 0 {
                time.call("train.py(9): log", |time| time.python(SAVE, micros));
            }
        })
    }

    #[test]
    fn files_in_every_step_are_found() {
        let finding = found(writing(500, 1), "output-bound");
        assert_eq!(blamed(&finding), "log");
        assert_saves(&finding, 0.33);
    }

    #[test]
    fn quick_writes_are_clean() {
        assert_eq!(outcome(writing(10, 1), "output-bound"), "clean");
    }

    // A checkpoint in one of six steps is a slow step.
    #[test]
    fn files_in_a_few_steps_are_another_cause() {
        assert_eq!(outcome(writing(500, 5), "output-bound"), "clean");
    }
}
