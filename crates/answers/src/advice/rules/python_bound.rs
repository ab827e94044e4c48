//! A function of the user's spends its time in Python code.

use mindprof_model::{Category, EventId, Nanos, Place, StringId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::advice::Confidence;
use crate::advice::facts::{Facts, MODULE, is_import, is_wait_for_thread};
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;
use crate::sampling::Sampling;

pub(super) const RULE: Rule = Rule {
    id: "python-bound",
    cause: "a function spends its time in Python code",
    remedy: "move the Python loop into numpy or torch, or into a data loader worker",
    price: Price::replay(0.05, (0.4, 1.1)),
    needs: &[EventKind::PythonCall],
    check,
};

/// The change to try in a program without operators.
const PLAIN: &str = "a faster algorithm or container, or a library written in C such as numpy";

/// The C function in which a thread waits for backward work that other threads do.
const ENGINE: &str = "run_backward";

/// Calling an operator takes a call less than this much of its own time.
const DISPATCH: Nanos = Nanos(50_000);

fn check(facts: &Facts<'_>) -> Outcome {
    if facts.calls.is_empty() {
        return Outcome::Unknown("Python calls were not recorded: with_stack=True");
    }
    let events = facts.profile.events();
    let mut operators = vec![0_u32; events.len()];
    for index in (0..events.len()).rev() {
        let is_operator = matches!(
            events[index].category,
            Category::Operator | Category::Runtime
        );
        if let Some(parent) = facts.parent(EventId::from_index(index)) {
            operators[parent.index()] += operators[index] + u32::from(is_operator);
        }
    }
    // Calls that lead to no operator are Python code alone. Others are if they take much longer than
    // calling their operators does, such as `torch.tensor` of a list. Of sampled calls all those of a
    // function tell together, because a slice of time between two samples has few operators by
    // chance.
    let sampled =
        Sampling::read(facts.profile.metadata()).map(|_| long_functions(facts, &operators));
    let is_python = |id: EventId| match (operators[id.index()], &sampled) {
        (0, _) => true,
        (_, Some(sampled)) => function_of(facts, id).is_some_and(|it| sampled.contains(&it)),
        (calls, None) => is_long(facts.analysis.tree().self_time(id).0, calls.into()),
    };
    let waits = facts.names(|name| name.contains(ENGINE) || is_wait_for_thread(name));
    // The framework's own calls between a function and the operators are nobody's loop.
    let in_framework = in_framework(facts);
    // Calls of known libraries have rules of their own, and imports are no loop.
    let mut known = facts.named(&facts.calls, super::is_of_another_rule);
    known.extend(facts.named(&facts.events, is_import));
    let is_known = facts.inside(&known);
    let is_pure = |id: &&EventId| {
        let around = facts.around(**id);
        is_python(**id)
            && !in_framework[id.index()]
            && !is_known[id.index()]
            && !waits[facts.profile.event(**id).name.index()]
            && !around.is_loading
            && !around.is_optimizer
            && !around.is_in_operator
    };
    let pure: Vec<EventId> = facts.calls.iter().filter(is_pure).copied().collect();
    // Sampled calls have a frame for each line of a function.
    let function = |frame: StringId| facts.function_of(frame).unwrap_or(frame);
    let mut of_frames: FxHashMap<StringId, u64> = FxHashMap::default();
    let mut of_functions: FxHashMap<StringId, u64> = FxHashMap::default();
    for &id in &pure {
        if let Some(frame) = facts.frames[id.index()] {
            let time = facts.analysis.tree().self_time(id).0;
            *of_frames.entry(frame).or_default() += time;
            *of_functions.entry(function(frame)).or_default() += time;
        }
    }
    let most = |times: &mut dyn Iterator<Item = (&StringId, &u64)>| {
        let most = times.max_by_key(|&(&name, &time)| (time, name));
        most.map(|(&name, _)| name)
    };
    let Some(found) = most(&mut of_functions.iter()) else {
        return Outcome::Clean;
    };
    let is_of_it = |frame: StringId| function(frame) == found;
    let mut lines = (of_frames.iter()).filter(|&(&frame, _)| is_of_it(frame));
    let frame = most(&mut lines);
    let is_its_call = |id: &EventId| facts.frames[id.index()].is_some_and(is_of_it);
    let events: Vec<EventId> = pure.into_iter().filter(is_its_call).collect();
    let mut mending = Mending::default();
    mending.remove(events.iter().copied());
    let once = facts.is_in_one_step(&events);
    // Without any operator, Python code is what the program is for.
    let mut all = facts.profile.events().iter();
    let is_plain = !all.any(|event| event.category == Category::Operator);
    Outcome::Found(Evidence {
        events,
        mending,
        blame: frame.map(Blame::Frame),
        confidence: once.then_some(Confidence::Low),
        remedy: is_plain.then_some(PLAIN),
        is_hint: is_plain,
        ..Evidence::default()
    })
}

/// Returns whether calls take much longer by themselves than calling their operators does.
fn is_long(own_time: u64, operators: u64) -> bool {
    own_time >= operators * DISPATCH.0
}

/// The file and name of a function.
type Function<'a> = (&'a str, &'a str);

fn function_of<'a>(facts: &Facts<'a>, id: EventId) -> Option<Function<'a>> {
    let name = facts.profile.strings().text(facts.profile.event(id).name);
    Place::parse(name).map(|place| (place.file, place.function))
}

/// Returns the functions that take most of their time by themselves, and much more than calling their
/// operators takes.
fn long_functions<'a>(facts: &Facts<'a>, operators: &[u32]) -> FxHashSet<Function<'a>> {
    #[derive(Default)]
    struct Sum {
        own: u64,
        whole: u64,
        operators: u64,
    }
    let mut sums: FxHashMap<Function<'a>, Sum> = FxHashMap::default();
    for &id in &facts.calls {
        if let Some(function) = function_of(facts, id) {
            let sum = sums.entry(function).or_default();
            sum.own += facts.analysis.tree().self_time(id).0;
            sum.whole += facts.profile.event(id).duration.0;
            sum.operators += u64::from(operators[id.index()]);
        }
    }
    let found = (sums.into_iter())
        .filter(|(_, sum)| sum.own * 2 >= sum.whole && is_long(sum.own, sum.operators));
    found.map(|(function, _)| function).collect()
}

/// Returns, by event, whether the framework's own code leads to it, with no function of the user's in
/// between.
pub(super) fn in_framework(facts: &Facts<'_>) -> Vec<bool> {
    let is_own = facts.names(|name| facts.own.place(name).is_some());
    let is_framework = facts.names(is_framework);
    let events = facts.profile.events();
    let mut found = vec![false; events.len()];
    // Parents precede their children.
    for (index, event) in events.iter().enumerate() {
        let parent = facts.parent(EventId::from_index(index));
        let is_inside = parent.is_some_and(|parent| found[parent.index()]);
        let name = event.name.index();
        found[index] = !is_own[name] && (is_inside || is_framework[name]);
    }
    found
}

fn is_framework(name: &str) -> bool {
    let is_file =
        |place: Place<'_>| place.file.starts_with("torch/") || place.file.contains("/torch/");
    name.starts_with(MODULE) || Place::parse(name).is_some_and(is_file)
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn counting(micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("train.py(20): step", |time| time.op("aten::mm", 1_000));
            time.python("train.py(30): count_words", micros);
        })
    }

    #[test]
    fn python_code_is_found() {
        let finding = found(counting(500), "python-bound");
        assert_eq!(blamed(&finding), "count_words");
        assert_saves(&finding, 0.33);
    }

    // Sampled calls are named by the line that ran.
    #[test]
    fn the_lines_of_a_function_count_together() {
        let profile = training(4, |time, _| {
            time.sampled();
            time.call("train.py(20): step", |time| time.op("aten::mm", 1_000));
            for line in 31..36 {
                time.python(&format!("train.py({line}): count_words"), 10 * line);
            }
        });
        let finding = found(profile, "python-bound");
        assert_eq!(blamed(&finding), "count_words");
        assert_eq!(finding.place.as_ref().unwrap().line, 35);
        assert_saves(&finding, 0.62);
    }

    /// Makes a tensor of a list, and computes with operators one by one.
    fn listing(micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("train.py(20): step", |time| {
                for _ in 0..20 {
                    time.idle(20);
                    time.op("aten::mm", 50);
                }
            });
            time.call("train.py(30): tokenize", |time| {
                let list = "<built-in method tensor of type object at 0x7f>";
                time.call(list, |time| {
                    time.idle(micros);
                    time.op("aten::empty", 2);
                });
            });
        })
    }

    // Each element of the list is a Python object.
    #[test]
    fn a_tensor_of_a_list_is_python_code() {
        let finding = found(listing(1_400), "python-bound");
        assert_eq!(blamed(&finding), "tokenize");
        assert_saves(&finding, 0.5);
    }

    // The step calls many operators, and the tensor is made of a number.
    #[test]
    fn calling_operators_is_no_python_code() {
        assert_eq!(outcome(listing(20), "python-bound"), "clean");
    }

    // A slice between two samples has the few operators by which the list becomes a tensor.
    #[test]
    fn a_sampled_function_that_makes_a_tensor_of_a_list_is_found() {
        let draw = |micros: u64| {
            training(4, move |time, _| {
                time.sampled();
                time.call("train.py(20): step", |time| time.op("aten::mm", 1_000));
                time.call("train.py(30): whiten", |time| {
                    time.idle(micros);
                    time.op("aten::empty", 2);
                    time.op("aten::detach", 2);
                });
            })
        };
        let finding = found(draw(1_000), "python-bound");
        assert_eq!(blamed(&finding), "whiten");
        assert_saves(&finding, 0.5);
        assert_eq!(outcome(draw(60), "python-bound"), "clean");
        // Between two large operators, memory is freed.
        let large = training(4, |time, _| {
            time.sampled();
            time.call("train.py(30): nearest", |time| {
                time.op("aten::pow", 2_000);
                time.idle(500);
            });
        });
        assert_eq!(outcome(large, "python-bound"), "clean");
    }

    // Counting words is what the program is for.
    #[test]
    fn python_without_operators_has_no_price() {
        let profile = training(4, |time, _| time.python("train.py(30): count_words", 500));
        let finding = found(profile, "python-bound");
        assert_eq!(blamed(&finding), "count_words");
        assert!(finding.share.abs() < 1e-9, "{}", finding.share);
        assert!(
            finding.remedy.starts_with("a faster algorithm"),
            "{}",
            finding.remedy
        );
    }

    #[test]
    fn a_little_python_is_usual() {
        assert_eq!(outcome(counting(30), "python-bound"), "clean");
    }

    // Without steps, the whole run is one step.
    #[test]
    fn an_import_is_no_python_code() {
        let draw = |name: &'static str| {
            training(4, move |time, _| {
                time.call("train.py(1): <module>", |time| {
                    time.call(name, |time| time.python("somewhere.py(3): load", 500));
                });
                time.call("train.py(20): step", |time| time.op("aten::mm", 1_000));
                time.python("train.py(30): count_words", 200);
            })
        };
        for import in [
            "import torch",
            "<frozen importlib._bootstrap>(1176): _find_and_load",
        ] {
            let finding = found(draw(import), "python-bound");
            assert_eq!(blamed(&finding), "count_words");
        }
        let finding = found(draw("somewhere.py(1): setup"), "python-bound");
        assert_ne!(blamed(&finding), "count_words");
    }

    // The device works on the step while Python counts.
    #[test]
    fn python_beside_device_work_costs_nothing() {
        let profile = training(4, |time, _| {
            time.compute(4, 500);
            time.python("train.py(30): count_words", 1_000);
        });
        assert_eq!(outcome(profile, "python-bound"), "clean");
    }

    // Layers check their arguments; the user's function only calls them.
    #[test]
    fn code_of_the_framework_is_nobodys_loop() {
        let draw = |function: &'static str| {
            training(4, move |time, _| {
                time.call("train.py(20): generate", |time| {
                    time.call("nn.Module: Net_0", |time| {
                        time.call(function, |time| time.python("<built-in function any>", 500));
                        time.op("aten::mm", 1_000);
                    });
                });
            })
        };
        let layer = "torch/nn/modules/activation.py(1100): forward";
        assert_eq!(outcome(draw(layer), "python-bound"), "clean");
        let finding = found(draw("model.py(7): forward"), "python-bound");
        assert_eq!(blamed(&finding), "forward");
    }

    // The work is that of another thread.
    #[test]
    fn waiting_for_a_thread_is_no_python_code() {
        let profile = training(4, |time, _| {
            time.call("train.py(20): step", |time| {
                time.op("aten::mm", 500);
                time.call("threading.py(1115): join", |time| {
                    time.python(
                        "<built-in method acquire of _thread.lock object at 0x7f>",
                        900,
                    );
                });
            });
        });
        assert_eq!(outcome(profile, "python-bound"), "clean");
    }

    #[test]
    fn the_profilers_own_calls_are_no_python_code() {
        let profile = training(4, |time, _| {
            time.call("train.py(20): step", |time| {
                time.op("aten::mm", 500);
                time.python("torch/profiler/profiler.py(1443): step", 900);
            });
        });
        assert_eq!(outcome(profile, "python-bound"), "clean");
    }

    #[test]
    fn without_calls_nothing_can_be_told() {
        let profile = training(4, |time, _| time.op("aten::mm", 1_000));
        assert_eq!(outcome(profile, "python-bound"), "unknown");
    }
}
