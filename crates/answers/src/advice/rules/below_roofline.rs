//! Matrix products are far slower than the card allows.

use mindprof_model::Nanos;

use super::card::{device, least_seconds};
use super::products::Product;
use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "below-roofline",
    cause: "matrix products are far slower than the card allows",
    remedy: "larger and better shaped products: fuse projections into one Linear, a larger batch, torch.compile(mode=\"max-autotune\")",
    price: Price::replay(0.05, (0.2, 1.2)),
    needs: &[EventKind::Cpu, EventKind::Device],
    check,
};

/// Shorter kernels are about their launch.
const LONG: Nanos = Nanos(30_000);

/// A product below this part of the limit is slow, and one that is not reaches this part.
const SLOW: f64 = 0.3;
const GOOD: f64 = 0.6;

fn check(facts: &Facts<'_>) -> Outcome {
    if !facts.has_device {
        return Outcome::Clean;
    }
    if !facts.has_shapes() {
        return Outcome::Unknown("shapes were not recorded: record_shapes=True");
    }
    let Some(card) = device(facts).and_then(|device| device.card()) else {
        return Outcome::Unknown("the limits of this card are not known");
    };
    let mut mending = Mending::default();
    let mut events = Vec::new();
    for id in facts.named(&facts.operators, Product::is_name) {
        let kernels = facts.analysis.kernels(id);
        let time: u64 = kernels.iter().map(|&id| facts.duration(id).0).sum();
        let product = Product::of(facts, id);
        let least = product.and_then(|product| least_seconds(&card, &product));
        let Some(least) = least.filter(|_| time >= LONG.0) else {
            continue;
        };
        let reached = least * 1e9 / time as f64;
        if reached < SLOW {
            for &kernel in kernels {
                mending.scale(kernel, (reached / GOOD) as f32);
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

    /// A product of 2.2 TFLOP, which takes 2.2 ms at best.
    fn multiplying(dtype: DType, micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.on_h200();
            time.call("model.py(4): forward", |time| {
                time.takes(dtype, &[&[16_384, 8_192], &[8_192, 8_192]]);
                time.launch("aten::mm", "gemm", micros);
            });
        })
    }

    #[test]
    fn a_product_at_a_tenth_of_the_limit_is_found() {
        let finding = found(multiplying(DType::BF16, 22_000), "below-roofline");
        assert_eq!(blamed(&finding), "forward");
        assert_saves(&finding, 0.83);
    }

    #[test]
    fn a_product_at_half_of_the_limit_is_clean() {
        assert_eq!(
            outcome(multiplying(DType::BF16, 4_400), "below-roofline"),
            "clean"
        );
    }

    // Single precision without tensor cores has a limit of its own.
    #[test]
    fn a_slow_type_at_its_limit_is_clean() {
        assert_eq!(
            outcome(multiplying(DType::F32, 40_000), "below-roofline"),
            "clean"
        );
    }

    #[test]
    fn unknown_cards_cannot_be_told() {
        let profile = training(4, |time, _| {
            time.takes(DType::BF16, &[&[8, 8], &[8, 8]]);
            time.compute(10, 100);
        });
        assert_eq!(outcome(profile, "below-roofline"), "unknown");
    }
}
