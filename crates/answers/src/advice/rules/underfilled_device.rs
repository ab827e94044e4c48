//! Kernels are too small for the device.

use mindprof_model::{EventId, Nanos};

use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "underfilled-device",
    cause: "kernels have fewer blocks than the device has processors",
    remedy: "a larger batch: the same kernels compute more samples in nearly the same time",
    price: Price::Unpriced { rank: 0.02 },
    needs: &[EventKind::Device],
    check,
};

/// Shorter kernels cost their launch.
const LONG: Nanos = Nanos(10_000);

/// Such kernels have to be this part of the step.
const MUCH: f64 = 0.3;

/// As many kernels are looked at, evenly spread.
const LOOKED_AT: usize = 20_000;

fn check(facts: &Facts<'_>) -> Outcome {
    // Communication leaves most of the device to others on purpose.
    let computing = facts.named(&facts.kernels, |name| !name.starts_with("nccl"));
    let long: Vec<EventId> = (computing.into_iter())
        .filter(|&id| facts.duration(id) >= LONG)
        .collect();
    if facts.share(&long) < MUCH {
        return Outcome::Clean;
    }
    let every = long.len() / LOOKED_AT + 1;
    let looked_at: Vec<EventId> = long.into_iter().step_by(every).collect();
    let blocks = |&id: &EventId| Some((id, facts.argument(id, "blocks per SM")?));
    let known: Vec<(EventId, f64)> = looked_at.iter().filter_map(blocks).collect();
    if known.is_empty() {
        return Outcome::Unknown("the sizes of kernels are not in this profile");
    }
    let is_small = |&&(_, blocks): &&(EventId, f64)| blocks > 0.0 && blocks < 1.0;
    let small: Vec<EventId> = (known.iter().filter(is_small)).map(|&(id, _)| id).collect();
    if facts.share(&small) * (every as f64) < MUCH {
        return Outcome::Clean;
    }
    Outcome::Found(Evidence {
        events: small,
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn filling(blocks: &str) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("model.py(4): forward", |time| {
                for _ in 0..10 {
                    time.operator("aten::mm", |time| {
                        time.kernel_with("bf16_gemm", 100, &format!("\"blocks per SM\": {blocks}"));
                    });
                }
            });
        })
    }

    #[test]
    fn kernels_that_leave_processors_idle_are_a_hint() {
        let finding = found(filling("0.25"), "underfilled-device");
        assert_eq!((blamed(&finding), finding.share), ("forward", 0.0));
    }

    #[test]
    fn kernels_that_fill_the_device_are_clean() {
        assert_eq!(outcome(filling("1.5"), "underfilled-device"), "clean");
    }

    // Small kernels of a CPU that is late are about launches.
    #[test]
    fn an_idle_device_is_another_cause() {
        let profile = training(4, |time, _| {
            for _ in 0..10 {
                time.operator("aten::mm", |time| {
                    time.idle(100);
                    time.kernel_with("bf16_gemm", 5, "\"blocks per SM\": 0.1");
                });
            }
        });
        assert_eq!(outcome(profile, "underfilled-device"), "clean");
        let unknown = training(4, |time, _| time.compute(10, 100));
        assert_eq!(outcome(unknown, "underfilled-device"), "unknown");
    }
}
