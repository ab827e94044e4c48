//! One of several equal layers is much slower than the others.

use mindprof_model::{Category, EventId, StringId, module_number};
use rustc_hash::FxHashMap;

use crate::advice::Confidence;
use crate::advice::facts::{Facts, MODULE};
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "layer-outlier",
    cause: "one of several equal layers is much slower than the others",
    remedy: "compare it with the others: its memory format, the device that its parameters are on, hooks",
    price: Price::replay(0.02, (0.5, 1.1)),
    needs: &[EventKind::Cpu, EventKind::Device, EventKind::PythonCall],
    check,
};

/// So many equal layers are needed to tell.
const ENOUGH: usize = 4;

/// A layer that exceeds the median by this factor stands out.
const SLOW: u64 = 2;

fn check(facts: &Facts<'_>) -> Outcome {
    if facts.calls.is_empty() || !facts.has_shapes() {
        return Outcome::Unknown(
            "calls of modules or shapes were not recorded: with_stack=True, record_shapes=True",
        );
    }
    let calls = facts.named(&facts.calls, |name| module_number(name).is_some());
    let work = WorkInside::of(facts);
    // Layers are equal if they are of one class and call the same operators with the same shapes.
    let mut layers: FxHashMap<(&str, u64), FxHashMap<StringId, Vec<EventId>>> =
        FxHashMap::default();
    for id in calls {
        let name = facts.name(id);
        let class = name.rsplit_once('_').map_or(name, |(class, _)| class);
        let key = (class, work.signatures[id.index()]);
        let layer = facts.profile.event(id).name;
        layers
            .entry(key)
            .or_default()
            .entry(layer)
            .or_default()
            .push(id);
    }
    let mut worst: Option<(u64, f64, Vec<EventId>)> = None;
    for group in layers.into_values().filter(|group| group.len() >= ENOUGH) {
        let mut times: Vec<(u64, Vec<EventId>)> = (group.into_values())
            .map(|calls| {
                // A slow layer is slow in nearly every call: the lower quartile tells.
                let mut times: Vec<u64> = calls.iter().map(|id| work.times[id.index()]).collect();
                let quarter = times.len() / 4;
                (*times.select_nth_unstable(quarter).1, calls)
            })
            .collect();
        times.sort_unstable();
        let median = times[times.len() / 2].0;
        let Some((slowest, calls)) = times.pop() else {
            continue;
        };
        let excess = slowest.saturating_sub(median) * calls.len() as u64;
        let is_worse = worst.as_ref().is_none_or(|&(worst, ..)| excess > worst);
        if slowest > SLOW * median.max(1) && is_worse {
            worst = Some((excess, median as f64 / slowest as f64, calls));
        }
    }
    let Some((_, factor, calls)) = worst else {
        return Outcome::Clean;
    };
    let mut mending = Mending::default();
    for id in facts.all_inside(&calls) {
        mending.scale(id, factor as f32);
    }
    let blamed = facts.blamed(calls.iter().map(|&id| (id, facts.duration(id))));
    let name = calls
        .first()
        .map(|&id| facts.name(id)[MODULE.len()..].to_owned());
    let once = facts.is_in_one_step(&calls);
    Outcome::Found(Evidence {
        events: calls,
        mending,
        blame: blamed.map(Blame::Frame),
        name,
        confidence: once.then_some(Confidence::Low),
        ..Evidence::default()
    })
}

/// The operators inside each event.
struct WorkInside {
    /// By event, a number that two events share if the operators inside them do the same.
    signatures: Vec<u64>,
    /// By event, the time of the operators inside it.
    times: Vec<u64>,
}

impl WorkInside {
    fn of(facts: &Facts<'_>) -> Self {
        /// A large odd number, by which signatures depend on the order of operators.
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let events = facts.profile.events();
        let (mut signatures, mut times) = (vec![0_u64; events.len()], vec![0_u64; events.len()]);
        // Parents precede their children, so that an event is complete when its turn comes.
        for (index, event) in events.iter().enumerate().rev() {
            let id = EventId::from_index(index);
            let is_operator = event.category == Category::Operator;
            if is_operator {
                let own = u64::from(event.name.to_raw()) << 32 | u64::from(event.inputs.to_raw());
                signatures[index] = (signatures[index] ^ own).wrapping_mul(FACTOR);
                // An operator counts as a whole.
                times[index] = facts.work(id).0;
            }
            if let Some(parent) = facts.parent(id) {
                let parent = parent.index();
                signatures[parent] =
                    (signatures[parent].wrapping_mul(FACTOR)).wrapping_add(signatures[index]);
                times[parent] += times[index];
            }
        }
        Self { signatures, times }
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::DType;

    use crate::advice::rules::kit::*;

    fn layers(slow: u64, columns: usize) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("model.py(4): forward", |time| {
                for layer in 0..8 {
                    let is_slow = layer == 5;
                    let columns = if is_slow { columns } else { 64 };
                    time.call(&format!("nn.Module: Block_{layer}"), |time| {
                        time.takes(DType::F32, &[&[64, 64], &[64, columns]]);
                        time.op("aten::mm", if is_slow { slow } else { 100 });
                    });
                }
            });
        })
    }

    #[test]
    fn one_slow_layer_of_eight_is_found() {
        let finding = found(layers(900, 64), "layer-outlier");
        assert_eq!(finding.name.as_deref(), Some("Block_5"));
        assert_eq!(blamed(&finding), "forward");
        assert_saves(&finding, 0.5);
    }

    #[test]
    fn small_differences_are_clean() {
        assert_eq!(outcome(layers(180, 64), "layer-outlier"), "clean");
    }

    // The machine was busy in some steps, while this layer ran.
    #[test]
    fn a_layer_that_is_slow_at_times_is_clean() {
        let profile = training(8, |time, step| {
            for layer in 0..8 {
                let is_slow = layer == 5 && step > 4;
                time.call(&format!("nn.Module: Block_{layer}"), |time| {
                    time.takes(DType::F32, &[&[64, 64], &[64, 64]]);
                    time.op("aten::mm", if is_slow { 900 } else { 100 });
                });
            }
        });
        assert_eq!(outcome(profile, "layer-outlier"), "clean");
    }

    #[test]
    fn a_larger_layer_is_clean() {
        assert_eq!(outcome(layers(900, 4096), "layer-outlier"), "clean");
    }
}
