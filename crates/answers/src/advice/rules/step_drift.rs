//! Steps get slower over the run.

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "step-drift",
    cause: "steps get slower over the run",
    remedy: "look for what grows: lists that are searched, graphs that are kept (loss.detach()), caches, a falling clock",
    price: Price::general(0.04, (0.5, 1.5)),
    needs: &[EventKind::Cpu],
    check,
};

/// So many steps are needed to tell a drift from noise.
const ENOUGH: usize = 20;

/// The last quarter of the steps, compared with the first.
const SLOWER: f64 = 1.08;

/// Operators that take this part of the difference longer do not explain it: the machine does.
const SAME_WORK: f64 = 0.5;

fn check(facts: &Facts<'_>) -> Outcome {
    let steps = facts.replay.steps();
    if steps.len() < ENOUGH {
        return Outcome::Unknown("a drift can be told from at least 20 steps");
    }
    let quarters: Vec<u64> = (0..4)
        .map(|quarter| {
            let part = quarter * steps.len() / 4..(quarter + 1) * steps.len() / 4;
            let mut times: Vec<u64> = steps[part].iter().map(|step| step.duration.0).collect();
            let middle = times.len() / 2;
            *times.select_nth_unstable(middle).1
        })
        .collect();
    let is_drift = quarters.is_sorted() && quarters[3] as f64 > SLOWER * quarters[0] as f64;
    if !is_drift {
        return Outcome::Clean;
    }
    // If all operators take longer, the machine got slower.
    let ratio = quarters[3] as f64 / quarters[0].max(1) as f64;
    let quarter = steps.len() as u32 / 4;
    let slowdown = facts.slowdown(
        |step| step > steps.len() as u32 - quarter,
        |step| (1..=quarter).contains(&step),
    );
    if slowdown > SAME_WORK.mul_add(ratio - 1.0, 1.0) {
        return Outcome::Clean;
    }
    // Every step takes as long as those of the first quarter.
    let factor = |step: u32| {
        let step = (step as usize).checked_sub(1)?;
        Some((quarters[0] as f64 / steps[step].duration.0.max(1) as f64) as f32)
    };
    let mut mending = Mending::default();
    for &id in &facts.events {
        if let Some(factor) = factor(facts.around(id).step).filter(|&factor| factor < 1.0) {
            mending.scale(id, factor);
        }
    }
    let last = steps.len() as u32;
    let tree = facts.analysis.tree();
    // The function that grew most between the first step and the last.
    let blamed = facts.grown(1, last, |id| tree.self_time(id));
    let ranges = facts.ranges.iter().copied();
    Outcome::Found(Evidence {
        events: ranges
            .filter(|&id| facts.around(id).step == last)
            .take(1)
            .collect(),
        mending,
        blame: Some(blamed.map_or(Blame::Nobody, Blame::Frame)),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn searching(steps: u64, per_step: u64) -> mindprof_model::Profile {
        training(steps, |time, step| {
            time.op("aten::mm", 1_000);
            time.call("train.py(4): search", |time| {
                time.op("aten::cat", 100 + step * per_step);
            });
        })
    }

    #[test]
    fn steps_that_get_slower_are_found() {
        let finding = found(searching(24, 50), "step-drift");
        assert_eq!(blamed(&finding), "search");
        assert!((0.15..0.35).contains(&finding.share), "{}", finding.share);
    }

    #[test]
    fn little_growth_is_clean() {
        assert_eq!(outcome(searching(24, 2), "step-drift"), "clean");
        assert_eq!(outcome(searching(19, 50), "step-drift"), "unknown");
    }

    // The machine gets slower, for example because another program starts.
    #[test]
    fn steps_of_the_same_work_are_clean() {
        let profile = training(24, |time, step| {
            time.op("aten::mm", 1_000 + step * 50);
            time.call("train.py(4): search", |time| {
                time.op("aten::cat", 100 + step * 5);
            });
        });
        assert_eq!(outcome(profile, "step-drift"), "clean");
    }

    // Steps differ, but do not drift.
    #[test]
    fn steps_that_alternate_are_clean() {
        let profile = training(24, |time, step| {
            time.op("aten::mm", if step % 2 == 0 { 500 } else { 1_000 });
        });
        assert_eq!(outcome(profile, "step-drift"), "clean");
    }
}
