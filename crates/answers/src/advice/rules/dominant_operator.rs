//! One operator or kernel takes most of the step.

use mindprof_model::{EventId, StringId};
use rustc_hash::FxHashMap;

use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "dominant-operator",
    cause: "one operator takes most of the time",
    remedy: "look at this operator first: its shapes, its types, and how often it is called",
    price: Price::Unpriced { rank: 0.01 },
    needs: &[EventKind::Cpu, EventKind::Device],
    check,
};

/// More than this part of the step is most of it.
const MOST: f64 = 0.5;

fn check(facts: &Facts<'_>) -> Outcome {
    let events = if facts.has_device {
        &facts.kernels
    } else {
        &facts.operators
    };
    let tree = facts.analysis.tree();
    let time = |id: EventId| {
        if facts.has_device {
            facts.duration(id)
        } else {
            tree.self_time(id)
        }
    };
    let waits = facts.names(|name| name.ends_with("_wait"));
    let is_work = |id: &&EventId| !waits[facts.profile.event(**id).name.index()];
    let mut times: FxHashMap<StringId, u64> = FxHashMap::default();
    for &id in events.iter().filter(is_work) {
        *times.entry(facts.profile.event(id).name).or_default() += time(id).0;
    }
    let most = times.into_iter().max_by_key(|&(name, time)| (time, name));
    let Some((name, _)) = most.filter(|&(_, time)| time as f64 > MOST * facts.base.0 as f64) else {
        return Outcome::Clean;
    };
    let is_it = |id: &&EventId| facts.profile.event(**id).name == name;
    Outcome::Found(Evidence {
        events: events.iter().filter(is_it).copied().collect(),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn computing(first: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("model.py(4): forward", |time| time.op("aten::mm", first));
            time.op("aten::add", 300);
            time.op("aten::mul", 300);
        })
    }

    #[test]
    fn most_of_the_step_is_a_hint_without_a_price() {
        let finding = found(computing(1_000), "dominant-operator");
        assert_eq!((blamed(&finding), finding.share), ("forward", 0.0));
        assert_eq!(finding.name.as_deref(), Some("aten::mm"));
    }

    #[test]
    fn half_of_the_step_is_clean() {
        assert_eq!(outcome(computing(550), "dominant-operator"), "clean");
    }

    // Most of the kernels' time, but the device is idle most of the time.
    #[test]
    fn most_of_little_is_clean() {
        let profile = training(4, |time, _| {
            time.compute(1, 100);
            time.synchronize();
            time.op("aten::sort", 900);
        });
        assert_eq!(outcome(profile, "dominant-operator"), "clean");
    }
}
