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

/// The change to try for kernels with one block for each channel.
const PER_CHANNEL: &str = "these kernels have one block per channel, so that a larger batch does not fill the device: model.to(memory_format=torch.channels_last), or torch.compile(model)";

/// Parts of the names of kernels with one block for each channel, however large the batch is.
const OF_CHANNELS: [&str; 4] = ["batch_norm", "bn_fw", "bn_bw", "instance_norm"];

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
    let of_channels = facts.named(&small, |name| {
        OF_CHANNELS.iter().any(|part| name.contains(part))
    });
    let is_per_channel = facts.share(&of_channels) * 2.0 > facts.share(&small);
    Outcome::Found(Evidence {
        events: small,
        remedy: is_per_channel.then_some(PER_CHANNEL),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn filling(blocks: &str) -> mindprof_model::Profile {
        filling_by("bf16_gemm", blocks)
    }

    fn filling_by(kernel: &str, blocks: &str) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("model.py(4): forward", |time| {
                for _ in 0..10 {
                    time.operator("aten::mm", |time| {
                        time.kernel_with(kernel, 100, &format!("\"blocks per SM\": {blocks}"));
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

    // A batch normalization of 64 channels has 64 blocks for any batch.
    #[test]
    fn a_larger_batch_does_not_help_kernels_with_a_block_per_channel() {
        let remedy = |kernel| found(filling_by(kernel, "0.5"), "underfilled-device").remedy;
        assert!(remedy("bf16_gemm").starts_with("a larger batch"));
        for kernel in [
            "void at::native::batch_norm_collect_statistics_kernel<float>(int)",
            "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1, true>(float)",
        ] {
            assert!(remedy(kernel).contains("one block per channel"), "{kernel}");
        }
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
