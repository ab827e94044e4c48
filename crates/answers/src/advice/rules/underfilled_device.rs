//! Kernels are too small for the device.

use mindprof_model::{EventId, Nanos};
use rustc_hash::{FxHashMap, FxHashSet};

use super::npu;
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
const PER_CHANNEL: &str = "model.to(memory_format=torch.channels_last) or torch.compile(model): these kernels have one block per channel, however large the batch is";

/// Parts of the names of kernels with one block for each channel, however large the batch is.
const OF_CHANNELS: [&str; 4] = ["batch_norm", "bn_fw", "bn_bw", "instance_norm"];

/// As many kernels are looked at, evenly spread.
const LOOKED_AT: usize = 20_000;

fn check(facts: &Facts<'_>) -> Outcome {
    // Communication leaves most of the device to others on purpose.
    let communicates = |name: &str| name.starts_with("nccl") || name.starts_with("hcom_");
    let computing = facts.named(&facts.kernels, |name| !communicates(name));
    let long: Vec<EventId> = (computing.into_iter())
        .filter(|&id| facts.duration(id) >= LONG)
        .collect();
    if facts.share(&long) < MUCH {
        return Outcome::Clean;
    }
    let every = long.len() / LOOKED_AT + 1;
    let looked_at: Vec<EventId> = long.into_iter().step_by(every).collect();
    let known: Vec<(EventId, f64)> = if npu::is_npu(facts) {
        blocks_per_core(facts, &looked_at)
    } else {
        let blocks = |&id: &EventId| Some((id, facts.argument(id, "blocks per SM")?));
        looked_at.iter().filter_map(blocks).collect()
    };
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

/// So many kinds of kernels have as many blocks as an NPU has cores.
const ENOUGH_KINDS: usize = 3;

/// Returns how many blocks kernels of an NPU have for each core.
///
/// Its profile does not tell how many cores there are. CANN divides large kernels of all kinds into as
/// many blocks as there are cores, so that is the largest number of blocks that several kinds of
/// kernels have: 48 here, because the one with 52 is alone.
///
/// ```text
/// blocks            1   4   12   33   48   52
/// kinds of kernels  9   5    2    1   22    1
/// ```
fn blocks_per_core(facts: &Facts<'_>, kernels: &[EventId]) -> Vec<(EventId, f64)> {
    let known: Vec<(EventId, npu::Cores, u64)> = (kernels.iter())
        .filter_map(|&id| Some((id, npu::cores(facts, id)?, npu::blocks(facts, id)? as u64)))
        .collect();
    let mut kinds: FxHashMap<(npu::Cores, u64), FxHashSet<String>> = FxHashMap::default();
    for &(id, cores, blocks) in &known {
        let kind = facts.argument_text(id, "Type");
        let kind = kind.unwrap_or_else(|| facts.name(id).to_owned());
        kinds.entry((cores, blocks)).or_default().insert(kind);
    }
    let count = |of: npu::Cores| {
        let shared = (kinds.iter()).filter(|(_, kinds)| kinds.len() >= ENOUGH_KINDS);
        let shared = shared.filter(|((cores, _), _)| *cores == of);
        shared.map(|((_, blocks), _)| *blocks).max()
    };
    let counts = [npu::Cores::Cube, npu::Cores::Vector].map(|cores| (cores, count(cores)));
    let per_core = |&(id, cores, blocks): &(EventId, npu::Cores, u64)| {
        let (_, count) = counts.iter().find(|(of, _)| *of == cores)?;
        Some((id, blocks as f64 / (*count)? as f64))
    };
    known.iter().filter_map(per_core).collect()
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

    /// Draws kernels of an NPU: of three kinds with `most` blocks, and of a fourth with `blocks`.
    fn filling_npu(most: u32, blocks: u32) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.on_npu();
            let told = |kind: &str, blocks: u32| {
                format!(
                    "\"Type\": \"{kind}\", \"Accelerator Core\": \"AI_VECTOR_CORE\", \"Block Num\": {blocks}"
                )
            };
            for kind in ["Add", "Mul", "Cast"] {
                let told = told(kind, most);
                time.operator("aten::add", |time| time.kernel_with(kind, 20, &told));
            }
            time.call("model.py(4): forward", |time| {
                for _ in 0..10 {
                    let told = told("SoftmaxV2", blocks);
                    time.operator("aten::softmax", |time| {
                        time.kernel_with("SoftmaxV2", 100, &told);
                    });
                }
            });
        })
    }

    #[test]
    fn kernels_that_leave_cores_of_an_npu_idle_are_a_hint() {
        let finding = found(filling_npu(48, 12), "underfilled-device");
        assert_eq!((blamed(&finding), finding.share), ("forward", 0.0));
        assert_eq!(finding.name.as_deref(), Some("SoftmaxV2"));
    }

    // One kind of kernels with more blocks than all others says nothing about the number of cores.
    #[test]
    fn kernels_that_fill_an_npu_are_clean() {
        for (most, blocks) in [(48, 48), (48, 52)] {
            let profile = filling_npu(most, blocks);
            assert_eq!(outcome(profile, "underfilled-device"), "clean", "{blocks}");
        }
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
