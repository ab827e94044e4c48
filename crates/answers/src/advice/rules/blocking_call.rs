//! The loop waits in a call: for another thread, a timer, a file or the network.

use mindprof_model::{EventId, Place, StringId, WAITING_FRAME};
use rustc_hash::FxHashMap;

use super::python_bound::in_framework;
use crate::advice::facts::{Facts, is_wait_for_thread};
use crate::advice::rule::{Blame, Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;
use crate::step_times::loop_thread;

pub(super) const RULE: Rule = Rule {
    id: "blocking-call",
    cause: "the loop waits in a call: for another thread, a timer, a file or the network",
    remedy: "do it ahead in the background: a thread with a queue, or a data loader worker",
    price: Price::replay(0.03, (0.4, 1.05)),
    needs: &[EventKind::PythonCall],
    check,
};

/// The kinds of waits. Each has a remedy of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Wait {
    Thread,
    /// For the end of a thread.
    Join,
    Timer,
    Input,
    Process,
    /// A sample shows that its thread waits, but not the cause.
    Something,
}

impl Wait {
    const fn remedy(self) -> &'static str {
        match self {
            Self::Thread => {
                "let the other thread run ahead: a longer queue, more threads, or less work under the lock"
            }
            Self::Join => {
                "shorten what the joined threads do, and above all what they do under a lock"
            }
            Self::Something => RULE.remedy,
            Self::Process => "start the process once before the loop, or wait for it in a thread",
            Self::Timer => {
                "remove time.sleep() from the loop, or wait for an event instead of a time"
            }
            Self::Input => {
                "read ahead: once before the loop, in a thread, or in a data loader worker"
            }
        }
    }

    /// Returns what a call of this name waits for.
    fn of(name: &str) -> Option<Self> {
        if let Some(called) = name.strip_prefix("<built-in ") {
            let known = BUILT_IN.iter().find(|(begin, _)| called.starts_with(begin));
            return known.map(|&(_, wait)| wait);
        }
        if name == WAITING_FRAME {
            return Some(Self::Something);
        }
        if is_wait_for_thread(name) {
            return Some(if is_join(name) {
                Self::Join
            } else {
                Self::Thread
            });
        }
        let place = Place::parse(name)?;
        let known = CALLS.iter().find(|(file, function, _)| {
            place.function == *function
                && (place.file == *file || place.file.ends_with(&format!("/{file}")))
        });
        known.map(|&(_, _, wait)| wait)
    }
}

/// Built-in functions that wait, by the beginnings of their names.
const BUILT_IN: [(&str, Wait); 17] = [
    ("method acquire of _thread.", Wait::Thread),
    ("method acquire of _multiprocessing.", Wait::Thread),
    ("method __enter__ of _thread.", Wait::Thread),
    ("method join of _thread.", Wait::Join),
    ("method get of _queue.", Wait::Thread),
    ("function sleep>", Wait::Timer),
    ("function waitpid>", Wait::Process),
    ("function fork_exec>", Wait::Process),
    ("function open>", Wait::Input),
    ("function select>", Wait::Input),
    ("method poll of select.", Wait::Input),
    ("method read of _io.", Wait::Input),
    ("method readinto of _io.", Wait::Input),
    ("method readline of _io.", Wait::Input),
    ("method recv of _socket.", Wait::Input),
    ("method recv_into of _socket.", Wait::Input),
    ("method read of _ssl.", Wait::Input),
];

/// Python functions that wait: the end of their file's name, their own name.
const CALLS: [(&str, &str, Wait); 8] = [
    ("queue.py", "get", Wait::Thread),
    ("queue.py", "put", Wait::Thread),
    ("queue.py", "join", Wait::Thread),
    ("concurrent/futures/_base.py", "result", Wait::Thread),
    ("multiprocessing/connection.py", "wait", Wait::Thread),
    ("subprocess.py", "run", Wait::Process),
    ("subprocess.py", "communicate", Wait::Process),
    ("subprocess.py", "wait", Wait::Process),
];

/// Returns whether a call of this name waits and does no work.
pub(super) fn is_waiting(name: &str) -> bool {
    Wait::of(name).is_some()
}

/// Returns whether a call that waits for another thread waits for its end.
fn is_join(name: &str) -> bool {
    [": join", ": _wait_for_tstate_lock"]
        .iter()
        .any(|end| name.ends_with(end))
}

fn check(facts: &Facts<'_>) -> Outcome {
    if facts.calls.is_empty() {
        return Outcome::Unknown("Python calls were not recorded: with_stack=True");
    }
    // The framework waits for its own threads and for devices.
    let in_framework = in_framework(facts);
    // Loaders, writers and compilers have rules of their own.
    let is_known = facts.inside(&facts.named(&facts.calls, super::is_of_known_library));
    // Other threads may wait as long as they like.
    let thread = loop_thread(facts.profile);
    let calls = facts.named(&facts.calls, is_waiting).into_iter();
    let calls: Vec<EventId> = calls
        .filter(|&id| {
            let around = facts.around(id);
            let is_other = around.is_loading || around.is_optimizer || around.is_in_operator;
            let is_of_loop = Some(facts.profile.event(id).thread) == thread;
            is_of_loop && !is_other && !is_known[id.index()] && !in_framework[id.index()]
        })
        .collect();
    let calls = facts.outermost(&calls);
    let mut by_place: FxHashMap<(Option<StringId>, Wait), Vec<EventId>> = FxHashMap::default();
    for &id in &calls {
        if let Some(wait) = Wait::of(facts.name(id)) {
            let frame = facts.frames[id.index()];
            by_place.entry((frame, wait)).or_default().push(id);
        }
    }
    let time = |calls: &[EventId]| calls.iter().map(|&id| facts.duration(id).0).sum::<u64>();
    let most = by_place
        .into_iter()
        .max_by_key(|(place, calls)| (time(calls), *place));
    let Some(((frame, wait), calls)) = most else {
        return Outcome::Clean;
    };
    Outcome::Found(Evidence {
        mending: facts.without(&calls),
        events: calls,
        blame: frame.map(Blame::Frame),
        remedy: Some(wait.remedy()),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    const ACQUIRE: &str = "<built-in method acquire of _thread.lock object at 0x7f>";
    const SLEEP: &str = "<built-in function sleep>";
    const READ: &str = "<built-in method read of _io.BufferedReader object at 0x7f>";

    fn waiting(call: &str, micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("train.py(20): step", |time| time.op("aten::mm", 1_000));
            time.call("train.py(30): next_batch", |time| {
                time.call("queue.py(154): get", |time| time.python(call, micros));
            });
        })
    }

    #[test]
    fn a_wait_for_another_thread_is_found() {
        let finding = found(waiting(ACQUIRE, 500), "blocking-call");
        assert_eq!(blamed(&finding), "next_batch");
        assert_saves(&finding, 0.33);
        assert!(finding.remedy.contains("other thread"));
    }

    // No queue lies between a thread and the one that joins it.
    #[test]
    fn joining_a_thread_has_a_remedy_of_its_own() {
        let join = "<built-in method join of _thread._ThreadHandle object at 0x7f>";
        for outer in ["train.py(31): finish", "threading.py(1080): join"] {
            let profile = training(4, |time, _| {
                time.op("aten::mm", 1_000);
                time.call("train.py(30): wait_for_all", |time| {
                    time.call(outer, |time| time.python(join, 500));
                });
            });
            let remedy = found(profile, "blocking-call").remedy;
            assert!(remedy.contains("joined threads"), "{remedy}");
            assert!(!remedy.contains("queue"), "{remedy}");
        }
    }

    #[test]
    fn a_short_wait_is_clean() {
        assert_eq!(outcome(waiting(ACQUIRE, 20), "blocking-call"), "clean");
    }

    #[test]
    fn timers_and_files_have_remedies_of_their_own() {
        for (call, remedy) in [(SLEEP, "time.sleep()"), (READ, "read ahead")] {
            let profile = training(4, |time, _| {
                time.op("aten::mm", 1_000);
                time.call("train.py(30): poll", |time| time.python(call, 500));
            });
            let advice = advise(profile);
            let ids: Vec<&str> = advice.findings.iter().map(|found| found.rule.id).collect();
            assert_eq!(ids[0], "blocking-call");
            assert!(!ids.contains(&"python-bound"), "{ids:?}");
            let found = advice.findings[0].remedy;
            assert!(found.contains(remedy), "{found}");
        }
    }

    // Samples find a thread waiting, but not in which built-in function.
    #[test]
    fn sampled_waits_are_found() {
        let waiting_in = |function: &'static str| {
            training(4, move |time, _| {
                time.op("aten::mm", 1_000);
                time.call("train.py(30): throttle", |time| {
                    time.call(function, |time| time.python("<waiting>", 500));
                });
            })
        };
        let advice = advise(waiting_in("train.py(31): poll"));
        assert_eq!(advice.findings[0].rule.id, "blocking-call");
        assert_eq!(blamed(&advice.findings[0]), "poll");
        // The backward pass runs on a thread of the framework's.
        let profile = waiting_in("torch/autograd/graph.py(820): _engine_run_backward");
        assert_eq!(outcome(profile, "blocking-call"), "clean");
    }

    // The thread that makes the batches sleeps for longer than the loop waits for them.
    #[test]
    fn the_thread_of_the_loop_counts() {
        let profile = training(4, |time, _| {
            time.beside("train.py(50): produce", |time| time.python(SLEEP, 1_400));
            time.op("aten::mm", 1_000);
            time.call("train.py(30): next_batch", |time| time.python(ACQUIRE, 500));
        });
        assert_eq!(blamed(&found(profile, "blocking-call")), "next_batch");
    }

    // A batch that is not there yet has a rule of its own, and so has the device.
    #[test]
    fn waits_of_the_loader_are_another_cause() {
        let profile = training(6, |time, _| {
            time.range(
                "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
                |time| time.python(ACQUIRE, 500),
            );
            time.op("aten::mm", 1_000);
        });
        assert_eq!(outcome(profile, "blocking-call"), "clean");
    }

    // The device works on while the CPU waits for nothing.
    #[test]
    fn waiting_beside_device_work_costs_nothing() {
        let profile = training(4, |time, _| {
            time.compute(4, 500);
            time.python(SLEEP, 1_000);
        });
        assert_eq!(outcome(profile, "blocking-call"), "clean");
    }
}
