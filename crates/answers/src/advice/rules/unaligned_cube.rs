//! Matrix products of an NPU have rows that do not fill its blocks of memory.

use mindprof_model::{DType, EventId, Nanos};

use super::npu::{self, Cores};
use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "unaligned-cube",
    cause: "the NPU's cube cores take matrices whose rows do not fill blocks of 32 bytes",
    remedy: "pad the last dimension to a multiple of 16 for 16-bit types: a vocabulary of 50304 instead of 50257",
    price: Price::Unpriced { rank: 0.02 },
    needs: &[EventKind::Device],
    check,
};

/// The bytes that a cube core loads at once.
const BLOCK_BYTES: u64 = 32;

/// Shorter kernels cost their launch.
const LONG: Nanos = Nanos(10_000);

/// Such kernels have to be this part of the step.
const MUCH: f64 = 0.1;

fn check(facts: &Facts<'_>) -> Outcome {
    if !npu::is_npu(facts) {
        return Outcome::Clean;
    }
    let is_long = |id: &&EventId| facts.duration(**id) >= LONG;
    let long: Vec<EventId> = facts.kernels.iter().filter(is_long).copied().collect();
    if facts.share(&long) < MUCH {
        return Outcome::Clean;
    }
    let has_inputs = |id: &EventId| !facts.tensors(*id).is_empty();
    if !long.iter().any(has_inputs) {
        return Outcome::Unknown(
            "the shapes of kernels are not in this profile: read the database, or the whole folder",
        );
    }
    let unaligned = npu::alike(facts, &long, |id| {
        npu::cores(facts, id) == Some(Cores::Cube) && has_unaligned_rows(facts, id)
    });
    if facts.share(&unaligned) < MUCH || !facts.is_usual(&unaligned) {
        return Outcome::Clean;
    }
    Outcome::Found(Evidence {
        events: unaligned,
        ..Evidence::default()
    })
}

/// Returns whether one of the two matrices of a product has rows that end inside of a block. Biases
/// and the like have one dimension.
fn has_unaligned_rows(facts: &Facts<'_>, id: EventId) -> bool {
    let tensors = facts.tensors(id);
    let mut matrices = tensors.iter().filter(|(_, dims)| dims.len() >= 2).take(2);
    matrices.any(|(dtype, dims)| {
        let row = dims.last().copied().unwrap_or(0);
        element_bytes(*dtype).is_some_and(|bytes| row > 1 && (row * bytes) % BLOCK_BYTES != 0)
    })
}

/// Returns the size of an element of the types that cube cores take.
const fn element_bytes(dtype: DType) -> Option<u64> {
    match dtype {
        DType::I8 => Some(1),
        DType::F16 | DType::BF16 => Some(2),
        DType::F32 => Some(4),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::DType;

    use crate::advice::rules::kit::*;

    fn multiplying(core: &str, columns: usize, micros: u64) -> mindprof_model::Profile {
        multiplying_on_npu(|time| {
            let told = format!("\"Accelerator Core\": \"{core}\"");
            let shapes: [&[usize]; 2] = [&[4096, 1024], &[1024, columns]];
            time.kernel_of("MatMulV2", micros, &told, DType::BF16, &shapes);
        })
    }

    #[test]
    fn an_odd_vocabulary_is_found() {
        let finding = found(multiplying("AI_CORE", 50_257, 1_000), "unaligned-cube");
        assert_eq!((blamed(&finding), finding.share), ("forward", 0.0));
        assert_eq!(finding.name.as_deref(), Some("MatMulV2"));
    }

    #[test]
    fn a_small_product_is_clean() {
        let profile = multiplying("AI_CORE", 50_257, 50);
        assert_eq!(outcome(profile, "unaligned-cube"), "clean");
    }

    // A vector core has no such blocks, and rows of 50304 fill theirs.
    #[test]
    fn aligned_rows_and_other_cores_are_clean() {
        for (core, columns) in [("AI_CORE", 50_304), ("AI_VECTOR_CORE", 50_257)] {
            let profile = multiplying(core, columns, 1_000);
            assert_eq!(outcome(profile, "unaligned-cube"), "clean", "{core}");
        }
    }

    #[test]
    fn without_shapes_nothing_can_be_told() {
        let profile = training(4, |time, _| {
            time.on_npu();
            time.compute(10, 100);
        });
        assert_eq!(outcome(profile, "unaligned-cube"), "unknown");
        let gpu = training(4, |time, _| time.compute(10, 100));
        assert_eq!(outcome(gpu, "unaligned-cube"), "clean");
    }
}
