//! Steps print or log.

use mindprof_model::Place;

use crate::advice::facts::Facts;
use crate::advice::rule::{Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "debug-printing",
    cause: "steps print or log tensors",
    remedy: "print every 100th step, and numbers instead of tensors: total += loss.detach(), then one .item()",
    price: Price::replay(0.02, (0.6, 1.1)),
    needs: &[EventKind::PythonCall],
    check,
};

/// The parts of `tqdm` that write its bar; the others contain the loop.
const BAR: [&str; 4] = ["refresh", "display", "set_postfix", "set_postfix_str"];

pub(super) fn is_printing(name: &str) -> bool {
    if name.starts_with('<') {
        return name.starts_with("<built-in function print")
            || name.starts_with("<built-in method print of ");
    }
    Place::parse(name).is_some_and(|place| {
        place.file.ends_with("torch/_tensor_str.py")
            || place.file.ends_with("logging/__init__.py")
            || place.file.ends_with("pprint.py")
            || place.file.ends_with("torch/_tensor.py")
                && matches!(place.function, "__repr__" | "__format__")
            || place.file.contains("tqdm/") && BAR.contains(&place.function)
    })
}

fn check(facts: &Facts<'_>) -> Outcome {
    if facts.calls.is_empty() {
        return Outcome::Unknown("Python calls were not recorded: with_stack=True");
    }
    let mut calls = facts.outermost(&facts.named(&facts.calls, is_printing));
    calls.retain(|&id| !facts.around(id).is_loading);
    Outcome::without(facts, calls)
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn printing(inside: &str, micros: u64) -> mindprof_model::Profile {
        training(5, |time, _| {
            time.op("aten::mm", 1_000);
            time.call("train.py(9): report", |time| {
                time.call(inside, |time| time.op("aten::item", micros));
            });
        })
    }

    #[test]
    fn tensors_that_are_printed_are_found() {
        let finding = found(
            printing("torch/_tensor_str.py(600): _str", 500),
            "debug-printing",
        );
        assert_eq!(blamed(&finding), "report");
        assert_saves(&finding, 0.33);
    }

    #[test]
    fn a_short_line_is_clean() {
        let profile = printing("<built-in function print>", 10);
        assert_eq!(outcome(profile, "debug-printing"), "clean");
    }

    // The generator of a progress bar contains the whole loop.
    #[test]
    fn a_loop_in_a_progress_bar_is_clean() {
        let profile = printing("tqdm/std.py(1160): __iter__", 500);
        assert_eq!(outcome(profile, "debug-printing"), "clean");
    }
}
