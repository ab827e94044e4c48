//! Tensors are copied into another layout and back.

use mindprof_model::{EventId, Nanos};

use crate::advice::Confidence;
use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "conversions",
    cause: "tensors are copied into another layout and back",
    remedy: "keep one layout and one type: convert the model and its inputs once, and drop .contiguous()",
    price: Price::replay(0.05, (0.6, 1.5)),
    needs: &[EventKind::Cpu, EventKind::Device],
    check,
};

/// Fewer conversions in a step are no ping-pong.
const MANY: f64 = 4.0;

/// The time of an elementwise kernel on tensors of one layout, compared with different ones.
const MIXED: f32 = 0.3;

fn check(facts: &Facts<'_>) -> Outcome {
    // A clone of its own is a copy that the program asks for.
    let outer = facts.named(&facts.operators, |name| name == "aten::contiguous");
    if facts.per_step(outer.len()) < MANY {
        return Outcome::Clean;
    }
    let is_inside = facts.inside(&outer);
    let mut mending = Mending::default();
    mending.remove(facts.all_inside(&outer));
    let cost = |id: EventId| facts.analysis.device_times().own(id) + facts.duration(id);
    let blamed = facts.blamed(outer.iter().map(|&id| (id, cost(id).max(Nanos(1)))));
    // Operators on tensors of different layouts take the slow way.
    let is_slow = |name: &str| name.contains("native::elementwise_kernel<");
    for id in facts.named(&facts.kernels, is_slow) {
        let frame = facts.frames[id.index()];
        // Sums of gradients have no frame. If the conversions have none, the others are anybody's.
        let is_of_blamed = blamed.is_some() && (frame == blamed || frame.is_none());
        if !is_inside[id.index()] && is_of_blamed {
            mending.scale(id, MIXED);
        }
    }
    let once = facts.is_in_one_step(&outer);
    Outcome::Found(Evidence {
        events: outer,
        mending,
        blame: blamed.map(Blame::Frame),
        confidence: once.then_some(Confidence::Low),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn with_conversions(each_step: usize, micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.compute(10, 200);
            time.call("train.py(30): both_layouts", |time| {
                for _ in 0..each_step {
                    time.launch("aten::contiguous", "copy_kernel", micros);
                    time.compute(1, 200);
                }
            });
        })
    }

    #[test]
    fn conversions_that_the_device_waits_for_are_found() {
        let finding = found(with_conversions(8, 200), "conversions");
        assert_eq!(blamed(&finding), "both_layouts");
        assert_saves(&finding, 1600.0 / 5200.0);
    }

    #[test]
    fn a_few_conversions_are_usual() {
        assert_eq!(outcome(with_conversions(3, 200), "conversions"), "clean");
        assert_eq!(outcome(with_conversions(8, 10), "conversions"), "clean");
    }

    // Without stacks, nobody knows which of the other kernels read mixed layouts.
    #[test]
    fn only_the_copies_count_without_stacks() {
        let profile = training(4, |time, _| {
            for _ in 0..8 {
                time.launch("aten::contiguous", "copy_kernel", 200);
                let kernel = "void at::native::elementwise_kernel<128, 2>";
                time.launch("aten::add", kernel, 600);
            }
        });
        assert_saves(&found(profile, "conversions"), 0.25);
    }

    // The copies run on the CPU while the device has work for much longer.
    #[test]
    fn copies_beside_device_work_cost_nothing() {
        let profile = training(4, |time, _| {
            time.compute(1, 5_000);
            for _ in 0..8 {
                time.op("aten::clone", 100);
            }
            time.synchronize();
        });
        assert_eq!(outcome(profile, "conversions"), "clean");
    }
}
