//! The device has nothing to do for long parts of a step.

use mindprof_model::{Category, EventId, Nanos};

use super::gaps::{gaps, missing_launches};
use crate::advice::facts::{Facts, is_wait_for_thread};
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "starvation",
    cause: "the device has nothing to do for long parts of a step",
    remedy: "do this work in the background, or less often, so that the next step is launched at once",
    price: Price::general(0.1, (0.5, 1.1)),
    needs: &[EventKind::Cpu, EventKind::Device],
    check,
};

/// A gap of at least this length is a part of a step.
const LONG: Nanos = Nanos(1_000_000);

/// At least this part of the steps has to be such gaps.
const MUCH: f64 = 0.1;

/// More gaps in a step are a CPU that is late everywhere.
const FEW: f64 = 3.0;

/// An event of which so much lies in a gap fills it.
const MOSTLY: f64 = 0.9;

fn check(facts: &Facts<'_>) -> Outcome {
    let gaps = gaps(facts, LONG);
    let idle: u64 = gaps.iter().map(|gap| gap.duration().0).sum();
    let steps: u64 = (facts.replay.steps().iter())
        .map(|step| step.duration.0)
        .sum();
    if gaps.is_empty() || idle as f64 <= MUCH * steps as f64 || facts.per_step(gaps.len()) > FEW {
        return Outcome::Clean;
    }
    if let Some(missing) = missing_launches(facts) {
        return Outcome::Unknown(missing);
    }
    let waits = facts.names(is_wait_for_thread);
    let is_filling = |id: &&EventId| {
        let event = facts.profile.event(**id);
        let is_wait = waits[event.name.index()];
        let is_host = !matches!(
            event.category,
            Category::Kernel | Category::DeviceAnnotation | Category::Other
        );
        let after = gaps.partition_point(|gap| gap.end <= event.start);
        let inside = gaps.get(after).map_or(0, |gap| {
            let end = event.end().min(gap.end);
            end.saturating_sub(event.start.max(gap.begin)).0
        });
        is_host
            && !is_wait
            && event.duration.0 > 0
            && inside as f64 >= MOSTLY * event.duration.0 as f64
    };
    let filling: Vec<EventId> = facts.events.iter().filter(is_filling).copied().collect();
    if filling.is_empty() {
        return Outcome::Clean;
    }
    let tree = facts.analysis.tree();
    let blamed = facts.blamed(filling.iter().map(|&id| (id, tree.self_time(id))));
    let mut mending = Mending::default();
    mending.remove(filling.iter().copied());
    Outcome::Found(Evidence {
        events: facts.outermost(&filling),
        mending,
        blame: blamed.map(Blame::Frame),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn pausing(micros: u64, pauses: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            for _ in 0..pauses {
                time.compute(10, 300);
                time.synchronize();
                time.call("train.py(7): evaluate", |time| {
                    time.op("aten::sort", micros);
                });
            }
        })
    }

    #[test]
    fn a_long_pause_of_the_device_is_found() {
        let finding = found(pausing(3_000, 1), "starvation");
        assert_eq!(blamed(&finding), "evaluate");
        assert_saves(&finding, 0.37);
    }

    #[test]
    fn short_pauses_are_clean() {
        assert_eq!(outcome(pausing(800, 1), "starvation"), "clean");
    }

    // A CPU that pauses everywhere is late, and no single part of the step is to blame.
    #[test]
    fn many_pauses_are_another_cause() {
        assert_eq!(outcome(pausing(1_500, 8), "starvation"), "clean");
    }
}
