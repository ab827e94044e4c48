//! An operator takes far longer at some times than at others.

use mindprof_model::{EventId, InputsId, StringId};
use rustc_hash::FxHashMap;

use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "unstable-operator",
    cause: "an operator with the same shapes takes far longer at some times than at others",
    remedy: "look at what runs beside it: other processes on the machine, more threads than cores (torch.set_num_threads), clocks",
    // Other programs on the machine are the usual reason, so that no saving is claimed.
    price: Price::Unpriced { rank: 0.01 },
    needs: &[EventKind::Cpu, EventKind::Device],
    check,
};

/// More samples than this are needed, and this part of the step.
const ENOUGH: usize = 10;
const MUCH: f64 = 0.05;

/// The standard deviation of unstable times, compared with their mean.
const UNSTABLE: f64 = 1.0;

/// A sample that exceeds the median by this factor is slow.
const SLOW: u64 = 2;

fn check(facts: &Facts<'_>) -> Outcome {
    if !facts.has_shapes() {
        return Outcome::Unknown("shapes were not recorded: record_shapes=True");
    }
    // The times of operators that launch kernels depend on how busy the device is.
    let events = if facts.has_device {
        &facts.kernels
    } else {
        &facts.operators
    };
    let tree = facts.analysis.tree();
    let time = |id: EventId| {
        if facts.has_device {
            facts.duration(id).0
        } else {
            tree.self_time(id).0
        }
    };
    // Communication waits for other ranks, and copies have sizes that inputs do not tell.
    let is_other = facts.names(|name| name.starts_with("nccl") || name.starts_with("Mem"));
    let mut groups: FxHashMap<(StringId, InputsId), Vec<EventId>> = FxHashMap::default();
    for &id in events {
        let event = facts.profile.event(id);
        let owner = facts.analysis.correlation().owner(id).unwrap_or(id);
        let inputs = facts.profile.event(owner).inputs;
        let around = facts.around(id);
        if inputs != InputsId::NONE && !is_other[event.name.index()] && !around.is_loading {
            groups.entry((event.name, inputs)).or_default().push(id);
        }
    }
    let total = |group: &[EventId]| group.iter().map(|&id| time(id)).sum::<u64>();
    let is_unstable = |group: &[EventId]| {
        let (count, sum) = (group.len() as f64, total(group) as f64);
        let mean = sum / count;
        let square = |id: &EventId| (time(*id) as f64 - mean).powi(2);
        let deviation = (group.iter().map(square).sum::<f64>() / count).sqrt();
        group.len() > ENOUGH && sum >= MUCH * facts.base.0 as f64 && deviation > UNSTABLE * mean
    };
    let most = groups
        .into_iter()
        .filter(|(_, group)| is_unstable(group))
        .max_by_key(|(key, group)| (total(group), *key));
    let Some((_, group)) = most else {
        return Outcome::Clean;
    };
    let mut times: Vec<u64> = group.iter().map(|&id| time(id)).collect();
    let middle = times.len() / 2;
    let median = *times.select_nth_unstable(middle).1;
    let slow = group.into_iter().filter(|&id| time(id) > SLOW * median);
    let slow: Vec<EventId> = slow.collect();
    // A few interruptions are usual.
    let excess: u64 = slow.iter().map(|&id| time(id) - median).sum();
    if (excess as f64) < MUCH * facts.base.0 as f64 {
        return Outcome::Clean;
    }
    Outcome::Found(Evidence {
        events: slow,
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use mindprof_model::DType;

    use crate::advice::rules::kit::*;

    fn computing(slow: u64, columns: usize) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("model.py(4): forward", |time| {
                for call in 0..8 {
                    let is_slow = call == 7;
                    let columns = if is_slow { columns } else { 64 };
                    time.takes(DType::F32, &[&[64, 64], &[64, columns]]);
                    time.op("aten::mm", if is_slow { slow } else { 100 });
                }
            });
        })
    }

    #[test]
    fn one_slow_call_of_eight_is_found() {
        let finding = found(computing(2_000, 64), "unstable-operator");
        assert_eq!(blamed(&finding), "forward");
        assert_eq!(finding.count, 4);
    }

    #[test]
    fn small_differences_are_clean() {
        assert_eq!(outcome(computing(250, 64), "unstable-operator"), "clean");
    }

    // A larger product takes longer every time.
    #[test]
    fn other_shapes_are_clean() {
        assert_eq!(
            outcome(computing(2_000, 4096), "unstable-operator"),
            "clean"
        );
    }
}
