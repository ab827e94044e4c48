//! Memory grows with every step.

use mindprof_model::EventId;
use rustc_hash::FxHashMap;

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Outcome, Price, Rule};
use crate::memory_growth::MemoryGrowth;

pub(super) const RULE: Rule = Rule {
    id: "growing-memory",
    cause: "memory grows with every step",
    remedy: "keep numbers, not tensors with their graph: total += loss.item(), or loss.detach()",
    price: Price::Unpriced { rank: 0.3 },
    needs: &[],
    check,
};

/// The least number of steps from which growth can be told.
const ENOUGH_STEPS: usize = 6;

fn check(facts: &Facts<'_>) -> Outcome {
    if !facts.analysis.has_memory() {
        return Outcome::Unknown("memory was not recorded: profile_memory=True");
    }
    let steps = facts.replay.steps();
    if steps.len() < ENOUGH_STEPS {
        return Outcome::Unknown("growth needs at least six steps");
    }
    growth(facts).map_or(Outcome::Clean, Outcome::Found)
}

/// Returns the growth of memory with the code that keeps it, or `None` if memory does not grow or too
/// little was recorded.
pub(super) fn growth(facts: &Facts<'_>) -> Option<Evidence> {
    let steps = facts.replay.steps();
    if !facts.analysis.has_memory() || steps.len() < ENOUGH_STEPS {
        return None;
    }
    let growth = MemoryGrowth::find(facts.analysis, facts.own, steps, None)?;
    let kept = keeping_calls(facts);
    let frame = kept.first().and_then(|id| facts.frames[id.index()]);
    let blame = match frame {
        Some(frame) => Some(Blame::Frame(frame)),
        None => growth.place.map(Blame::Place),
    };
    Some(Evidence {
        events: kept,
        blame: Some(blame.unwrap_or(Blame::Nobody)),
        bytes: Some(growth.bytes_per_step),
        name: growth.operator,
        ..Evidence::default()
    })
}

/// Returns the calls that put something into a container of the user's once in every step. The
/// allocations themselves happen elsewhere, in the forward pass that the kept tensor came from.
fn keeping_calls(facts: &Facts<'_>) -> Vec<EventId> {
    const CONTAINERS: [&str; 4] = ["list", "collections.deque", "dict", "set"];
    const KEEPS: [&str; 5] = ["append", "appendleft", "extend", "add", "setdefault"];
    let keeps = |name: &str| {
        let called = name.strip_prefix("<built-in method ");
        called
            .and_then(|rest| rest.split_once(" of "))
            .is_some_and(|(method, of)| {
                KEEPS.contains(&method)
                    && CONTAINERS.iter().any(|container| of.starts_with(container))
            })
    };
    let steps = facts.replay.steps().len();
    let mut by_frame: FxHashMap<_, Vec<EventId>> = FxHashMap::default();
    for id in facts.named(&facts.calls, keeps) {
        let is_own = facts
            .parent(id)
            .is_some_and(|parent| facts.is_own_call(parent));
        let around = facts.around(id);
        if is_own && !around.is_loading && !around.is_optimizer {
            by_frame
                .entry(facts.frames[id.index()])
                .or_default()
                .push(id);
        }
    }
    let mut candidates: Vec<Vec<EventId>> = (by_frame.into_values())
        .filter(|calls| calls.len().abs_diff(steps) <= 1)
        .collect();
    // If several places keep something, which of them keeps tensors is not known.
    match candidates.len() {
        1 => candidates.remove(0),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    const APPEND: &str = "<built-in method append of list object at 0x7f>";

    fn keeping(bytes: i64, steps: u64) -> mindprof_model::Profile {
        training(steps, |time, step| {
            time.call("train.py(3): forward", |time| {
                time.operator("aten::mm", |time| {
                    time.allocate(0x1000 * (step + 1), bytes);
                    time.idle(500);
                });
            });
            time.call("train.py(9): remember", |time| time.python(APPEND, 2));
        })
    }

    #[test]
    fn tensors_that_are_kept_are_found_with_the_function_that_keeps_them() {
        let finding = found(keeping(1 << 20, 8), "growing-memory");
        assert_eq!(blamed(&finding), "remember");
        assert_eq!((finding.bytes, finding.share), (Some(1 << 20), 0.0));
    }

    #[test]
    fn a_few_bytes_are_no_growth() {
        assert_eq!(outcome(keeping(1 << 10, 8), "growing-memory"), "clean");
        assert_eq!(outcome(keeping(1 << 20, 5), "growing-memory"), "unknown");
    }

    // Each step allocates and frees the same memory.
    #[test]
    fn memory_that_is_freed_again_is_clean() {
        let profile = training(8, |time, _| {
            time.operator("aten::mm", |time| {
                time.allocate(0x1000, 1 << 20);
                time.idle(500);
                time.allocate(0x1000, -(1 << 20));
            });
        });
        assert_eq!(outcome(profile, "growing-memory"), "clean");
    }

    /// Draws steps that keep memory, and the steps in which all of it is freed again.
    fn freeing(steps: u64, frees: impl Fn(u64) -> Vec<u64>) -> mindprof_model::Profile {
        training(steps, |time, step| {
            time.operator("aten::mm", |time| {
                for kept in frees(step) {
                    time.allocate(0x1000 * (kept + 1), -(1 << 20));
                }
                time.idle(200);
                time.allocate(0x1000 * (step + 1), 1 << 20);
                time.idle(300);
            });
        })
    }

    // The list of losses is a variable of the function that trains, and dies with it.
    #[test]
    fn memory_that_is_freed_when_training_ends_is_found() {
        let at_the_end = |step| if step == 9 { (0..9).collect() } else { vec![] };
        let finding = found(freeing(10, at_the_end), "growing-memory");
        assert_eq!(finding.bytes, Some(1 << 20));
        let before_the_end = |step| if step == 8 { (0..8).collect() } else { vec![] };
        assert_eq!(
            outcome(freeing(10, before_the_end), "growing-memory"),
            "clean"
        );
    }

    // Each step frees the memory of the step before, or of two steps before.
    #[test]
    fn memory_that_a_later_step_frees_is_clean() {
        for later in [1, 2] {
            let frees = |step: u64| step.checked_sub(later).into_iter().collect();
            assert_eq!(outcome(freeing(8, frees), "growing-memory"), "clean");
        }
    }

    // A cache is filled in the first steps.
    #[test]
    fn a_warm_up_is_clean() {
        let profile = training(20, |time, step| {
            time.operator("aten::mm", |time| {
                if step < 8 {
                    time.allocate(0x1000 * (step + 1), 1 << 20);
                }
                time.idle(500);
            });
        });
        assert_eq!(outcome(profile, "growing-memory"), "clean");
    }
}
