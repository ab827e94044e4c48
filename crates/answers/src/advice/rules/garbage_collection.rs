//! Python collects garbage in the middle of steps.

use crate::advice::facts::Facts;
use crate::advice::rule::{Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "garbage-collection",
    cause: "Python collects garbage in the middle of steps",
    remedy: "gc.freeze() after the first step and gc.disable(); then gc.collect() between epochs",
    price: Price::replay(0.01, (0.6, 1.1)),
    needs: &[EventKind::Cpu, EventKind::PythonCall],
    check,
};

/// The ranges that recorders name the collector's runs by.
const RANGES: [&str; 3] = ["Python GC", "gc", "garbage collection"];

/// Returns whether a name is that of a call of `gc.collect`.
pub(super) fn is_collect(name: &str) -> bool {
    let called = name.strip_prefix("<built-in ");
    let called = called.and_then(|name| name.split_once(' '));
    called.is_some_and(|(_, name)| name == "collect>" || name.starts_with("collect of module"))
}

fn check(facts: &Facts<'_>) -> Outcome {
    let mut found = facts.named(&facts.calls, is_collect);
    found.extend(facts.named(&facts.ranges, |name| RANGES.contains(&name)));
    Outcome::without(facts, facts.outermost(&found))
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn collecting(name: &str, micros: u64) -> mindprof_model::Profile {
        training(5, |time, _| {
            time.op("aten::mm", 1_000);
            time.call("train.py(9): tidy_up", |time| time.python(name, micros));
        })
    }

    #[test]
    fn a_collection_in_each_step_is_found() {
        let profile = collecting("<built-in method collect of module object at 0x7f>", 500);
        let finding = found(profile, "garbage-collection");
        assert_eq!(blamed(&finding), "tidy_up");
        assert_saves(&finding, 0.33);
        let ranges = training(5, |time, _| {
            time.op("aten::mm", 1_000);
            time.range("Python GC", |time| time.idle(500));
        });
        assert_saves(&found(ranges, "garbage-collection"), 0.33);
    }

    #[test]
    fn a_quick_collection_is_clean() {
        let profile = collecting("<built-in function collect>", 5);
        assert_eq!(outcome(profile, "garbage-collection"), "clean");
    }

    // A method of that name of another object collects something else.
    #[test]
    fn other_functions_of_that_name_are_clean() {
        for name in [
            "<built-in method collect of Stream object at 0x7f>",
            "train.py(40): collect",
        ] {
            assert_eq!(
                outcome(collecting(name, 500), "garbage-collection"),
                "clean"
            );
        }
    }
}
