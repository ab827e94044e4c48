//! Matrix products in float32 that leave the tensor cores unused.

use super::card::device;
use crate::advice::Confidence;
use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;
use crate::device::DeviceProperties;

pub(super) const RULE: Rule = Rule {
    id: "tensor-cores",
    cause: "matrix products in float32 leave the tensor cores unused",
    remedy: "torch.set_float32_matmul_precision(\"high\"), or torch.autocast(\"cuda\", torch.bfloat16)",
    price: Price::replay(0.05, (0.7, 1.2)),
    needs: &[EventKind::Device],
    check,
};

/// How long a product takes in TF32 or bfloat16, compared with float32 without tensor cores.
const ON_TENSOR_CORES: f32 = 0.18;

/// The change to try on cards whose tensor cores take 16-bit floats only.
const HALF_ONLY: &str = "torch.autocast(\"cuda\", torch.float16) with torch.amp.GradScaler(\"cuda\"): this card's tensor cores have neither TF32 nor bfloat16";

/// The change to try on cards that are not faster in TF32.
const NO_GAIN_IN_TF32: &str =
    "torch.autocast(\"cuda\", torch.bfloat16): this card is not faster in TF32";

/// The change to try on an unknown card.
const UNKNOWN_CARD: &str = "torch.set_float32_matmul_precision(\"high\") if the card has TF32, which needs compute capability 8.0; the recording does not tell";

/// The names of kernels that compute in float32 without tensor cores.
const SCALAR: [&str; 5] = ["sgemm", "ffma", "simt", "f32f32_f32f32_f32", "scudnn"];

/// The marks of kernels that use tensor cores.
const MARKS: [&str; 6] = ["tf32", "bf16", "f16", "hmma", "wgmma", "tensorop"];

/// The marks of kernels that do not compute in float32.
const OTHER_TYPES: [&str; 5] = ["dgemm", "igemm", "f64", "_s8", "double"];

fn is_scalar_product(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let has = |marks: &[&str]| marks.iter().any(|mark| name.contains(mark));
    has(&SCALAR) && !has(&MARKS) && !has(&OTHER_TYPES)
}

/// The marks of kernels that run on cards of compute capability 8.0 and later.
const LATE: [&str; 7] = ["sm80", "sm86", "sm89", "sm90", "sm100", "ampere", "nvjet"];

fn check(facts: &Facts<'_>) -> Outcome {
    let products = facts.named(&facts.kernels, is_scalar_product);
    if products.is_empty() {
        return Outcome::Clean;
    }
    let device = device(facts);
    let card = device.as_ref().and_then(DeviceProperties::card);
    let listed = device.and_then(|device| device.compute_major);
    let is_late = || {
        LATE.iter()
            .any(|mark| facts.name(products[0]).contains(mark))
    };
    let major = match (listed, &card) {
        (Some(major), _) => Some(major),
        (None, Some(card)) => Some(if card.tf32_tflops > 0.0 { 8 } else { 7 }),
        (None, None) => is_late().then_some(8),
    };
    let has_fast_tf32 = card.is_none_or(|card| card.tf32_tflops > card.float32_tflops);
    let (remedy, confidence) = match major {
        Some(0..7) => return Outcome::Clean,
        Some(7) => (Some(HALF_ONLY), None),
        Some(_) if has_fast_tf32 => (None, None),
        Some(_) => (Some(NO_GAIN_IN_TF32), None),
        None => (Some(UNKNOWN_CARD), Some(Confidence::Low)),
    };
    let least = card.map_or(0.0, |card| card.float32_tflops / card.float16_tflops);
    let factor = ON_TENSOR_CORES.max(least as f32);
    let mut mending = Mending::default();
    for &id in &products {
        mending.scale(id, factor);
    }
    Outcome::Found(Evidence {
        events: products,
        mending,
        remedy,
        confidence,
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::Confidence;
    use crate::advice::rules::kit::*;

    const SCALAR: &str = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_ffma";
    const TF32: &str = "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x8";

    fn multiplying(kernel: &str, micros: u64) -> mindprof_model::Profile {
        multiplying_on("[]", kernel, micros)
    }

    fn multiplying_on(card: &str, kernel: &str, micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.note("deviceProperties", card);
            time.call("model.py(8): forward", |time| {
                time.launch("aten::mm", kernel, micros);
            });
            time.compute(10, 100);
        })
    }

    #[test]
    fn products_without_tensor_cores_are_found() {
        let finding = found(multiplying(SCALAR, 1_000), "tensor-cores");
        assert_eq!(blamed(&finding), "forward");
        assert_saves(&finding, 0.41);
    }

    const OLD: &str = "volta_sgemm_128x64_nn";

    #[test]
    fn cards_without_tf32_have_another_remedy() {
        let v100 = r#"[{"id": 0, "name": "Tesla V100-SXM2-16GB", "computeMajor": 7}]"#;
        let finding = found(multiplying_on(v100, OLD, 1_000), "tensor-cores");
        assert!(finding.remedy.contains("float16"), "{}", finding.remedy);
        let unlisted = r#"[{"id": 0, "name": "Tesla T4"}]"#;
        let finding = found(multiplying_on(unlisted, OLD, 1_000), "tensor-cores");
        assert!(finding.remedy.contains("float16"), "{}", finding.remedy);
    }

    #[test]
    fn cards_without_tensor_cores_are_clean() {
        let p100 = r#"[{"id": 0, "name": "Tesla P100", "computeMajor": 6}]"#;
        let profile = multiplying_on(p100, "maxwell_sgemm_128x64_nn", 1_000);
        assert_eq!(outcome(profile, "tensor-cores"), "clean");
    }

    #[test]
    fn an_unknown_card_makes_the_finding_unsure() {
        let finding = found(multiplying(OLD, 1_000), "tensor-cores");
        assert_eq!(finding.confidence, Confidence::Low);
        assert!(finding.remedy.contains("if the card has TF32"));
    }

    // TF32 is as slow as float32 there, and bfloat16 twice as fast.
    #[test]
    fn the_price_is_that_of_the_card() {
        let card = r#"[{"id": 0, "name": "NVIDIA GeForce RTX 3090", "computeMajor": 8}]"#;
        let finding = found(multiplying_on(card, SCALAR, 1_000), "tensor-cores");
        assert!(
            !finding.remedy.contains("set_float32"),
            "{}",
            finding.remedy
        );
        assert_saves(&finding, 0.25);
    }

    #[test]
    fn a_small_product_is_clean() {
        assert_eq!(outcome(multiplying(SCALAR, 20), "tensor-cores"), "clean");
    }

    #[test]
    fn products_on_tensor_cores_are_clean() {
        assert_eq!(outcome(multiplying(TF32, 1_000), "tensor-cores"), "clean");
    }
}
