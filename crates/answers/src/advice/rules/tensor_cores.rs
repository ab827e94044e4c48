//! Matrix products in float32 that leave the tensor cores unused.

use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Mending, Outcome, Price, Rule};

pub(super) const RULE: Rule = Rule {
    id: "tensor-cores",
    cause: "matrix products in float32 leave the tensor cores unused",
    remedy: "torch.set_float32_matmul_precision(\"high\"), or torch.autocast(\"cuda\", torch.bfloat16)",
    price: Price::replay(0.05, (0.7, 1.2)),
    check,
};

/// How long a product takes in TF32 or bfloat16, compared with float32 without tensor cores.
const ON_TENSOR_CORES: f32 = 0.18;

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

fn check(facts: &Facts<'_>) -> Outcome {
    let products = facts.named(&facts.kernels, is_scalar_product);
    if products.is_empty() {
        return Outcome::Clean;
    }
    let mut mending = Mending::default();
    for &id in &products {
        mending.scale(id, ON_TENSOR_CORES);
    }
    Outcome::Found(Evidence {
        events: products,
        mending,
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    const SCALAR: &str = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_ffma";
    const TF32: &str = "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x8";

    fn multiplying(kernel: &str, micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
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

    #[test]
    fn a_small_product_is_clean() {
        assert_eq!(outcome(multiplying(SCALAR, 20), "tensor-cores"), "clean");
    }

    #[test]
    fn products_on_tensor_cores_are_clean() {
        assert_eq!(outcome(multiplying(TF32, 1_000), "tensor-cores"), "clean");
    }
}
