//! The first step takes much longer than the others.

use mindprof_model::EventId;

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "slow-start",
    cause: "the first step takes much longer than the others",
    remedy: "leave it out of the profile: schedule(wait=1, warmup=1, active=3); it compiles, allocates and starts workers",
    price: Price::Unpriced { rank: 0.01 },
    needs: &[EventKind::Cpu],
    check,
};

/// So many steps are needed to tell.
const ENOUGH: usize = 4;

/// The first step, compared with the median of the others.
const SLOW: u64 = 3;

fn check(facts: &Facts<'_>) -> Outcome {
    let steps = facts.replay.steps();
    if steps.len() < ENOUGH {
        return Outcome::Unknown("it takes at least four steps to recognize a slow start");
    }
    let mut others: Vec<u64> = steps[1..].iter().map(|step| step.duration.0).collect();
    let middle = others.len() / 2;
    let median = *others.select_nth_unstable(middle).1;
    if steps[0].duration.0 <= SLOW * median {
        return Outcome::Clean;
    }
    // What the first step did is what its longest function did.
    let tree = facts.analysis.tree();
    let is_of_first = |id: &&EventId| facts.around(**id).step == 1;
    let first: Vec<EventId> = facts.events.iter().filter(is_of_first).copied().collect();
    let blamed = facts.blamed(first.iter().map(|&id| (id, tree.self_time(id))));
    let ranges = facts.ranges.iter().filter(is_of_first).copied();
    Outcome::Found(Evidence {
        events: ranges.take(1).collect(),
        blame: Some(blamed.map_or(Blame::Nobody, Blame::Frame)),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn starting(slow: u64, at: u64) -> mindprof_model::Profile {
        training(4, |time, step| {
            time.call("train.py(4): step", |time| {
                time.op("aten::mm", if step == at { slow } else { 100 });
            });
        })
    }

    #[test]
    fn a_slow_first_step_is_a_hint() {
        let finding = found(starting(1_000, 0), "slow-start");
        assert_eq!((blamed(&finding), finding.share), ("step", 0.0));
    }

    #[test]
    fn a_first_step_of_twice_the_time_is_clean() {
        assert_eq!(outcome(starting(200, 0), "slow-start"), "clean");
    }

    #[test]
    fn a_slow_step_in_the_middle_is_another_cause() {
        assert_eq!(outcome(starting(1_000, 2), "slow-start"), "clean");
    }
}
