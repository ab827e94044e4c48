//! Matrix products have sizes that tensor cores are slow with.

use mindprof_model::DType;

use super::npu;
use super::products::Product;
use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "misaligned-matmul",
    cause: "16-bit matrix products have sizes that are no multiples of 8",
    remedy: "pad them: a vocabulary of 50304 instead of 50257, hidden sizes that are multiples of 64",
    price: Price::replay(0.03, (0.3, 1.5)),
    needs: &[EventKind::Cpu, EventKind::Device],
    check,
};

/// The size that tensor cores work with.
const UNIT: u64 = 8;

/// How long an aligned product takes, compared with one that is not.
const ALIGNED: f32 = 0.6;

fn check(facts: &Facts<'_>) -> Outcome {
    // The cube cores of an NPU have a rule of their own.
    if !facts.has_device || npu::is_npu(facts) {
        return Outcome::Clean;
    }
    if !facts.has_shapes() {
        return Outcome::Unknown("shapes were not recorded: record_shapes=True");
    }
    let mut mending = Mending::default();
    let mut events = Vec::new();
    for id in facts.named(&facts.operators, Product::is_name) {
        let Some(product) = Product::of(facts, id) else {
            continue;
        };
        let is_half = matches!(product.dtype, DType::F16 | DType::BF16);
        let is_aligned = product.inner % UNIT == 0 && product.columns % UNIT == 0;
        if is_half && !is_aligned {
            for &kernel in facts.analysis.kernels(id) {
                mending.scale(kernel, ALIGNED);
                events.push(kernel);
            }
        }
    }
    if events.is_empty() {
        return Outcome::Clean;
    }
    Outcome::Found(Evidence {
        events,
        mending,
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use mindprof_model::DType;

    use crate::advice::rules::kit::*;

    fn multiplying(dtype: DType, columns: usize, micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.compute(10, 100);
            time.call("model.py(4): forward", |time| {
                time.takes(dtype, &[&[4096, 1024], &[1024, columns]]);
                time.launch("aten::mm", "bf16_gemm", micros);
            });
        })
    }

    #[test]
    fn an_odd_vocabulary_is_found() {
        let finding = found(multiplying(DType::BF16, 50_257, 1_000), "misaligned-matmul");
        assert_eq!(blamed(&finding), "forward");
        assert_saves(&finding, 0.2);
    }

    #[test]
    fn a_small_product_is_clean() {
        let profile = multiplying(DType::BF16, 50_257, 20);
        assert_eq!(outcome(profile, "misaligned-matmul"), "clean");
    }

    #[test]
    fn aligned_and_wider_products_are_clean() {
        for (dtype, columns) in [(DType::BF16, 50_304), (DType::F32, 50_257)] {
            let profile = multiplying(dtype, columns, 1_000);
            assert_eq!(outcome(profile, "misaligned-matmul"), "clean");
        }
    }

    #[test]
    fn without_shapes_nothing_can_be_told() {
        let profile = training(4, |time, _| time.compute(10, 100));
        assert_eq!(outcome(profile, "misaligned-matmul"), "unknown");
    }
}
