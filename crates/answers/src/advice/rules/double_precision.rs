//! Some operators compute in double precision.

use mindprof_model::{DType, EventId};

use super::card::device;
use super::products::Product;
use crate::advice::Confidence;
use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;
use crate::input_dtypes::first_dtype;

pub(super) const RULE: Rule = Rule {
    id: "double-precision",
    cause: "some operators compute in double precision",
    remedy: "convert where numbers come in: torch.from_numpy(a).float(), torch.tensor(a, dtype=torch.float32)",
    price: Price::replay(0.02, (0.6, 1.5)),
    needs: &[EventKind::Cpu],
    check,
};

/// The remedy for a program that computes in double precision everywhere.
const IF_NOT_MEANT: &str = "convert where numbers come in if double precision is not meant: \
                            torch.from_numpy(a).float(), model.float()";

/// How long operators take in single precision, compared with double precision.
const SINGLE: f64 = 0.5;

fn check(facts: &Facts<'_>) -> Outcome {
    if !facts.has_shapes() {
        return Outcome::Unknown("the types of inputs were not recorded: record_shapes=True");
    }
    let (mut doubles, mut others): (Vec<EventId>, usize) = (Vec::new(), 0);
    for &id in &facts.operators {
        let event = facts.profile.event(id);
        match first_dtype(facts.profile.inputs().inputs(event.inputs)) {
            Some(DType::F64) if !facts.around(id).is_loading => doubles.push(id),
            Some(DType::F32 | DType::F16 | DType::BF16) => others += 1,
            _ => {}
        }
    }
    if doubles.is_empty() {
        return Outcome::Clean;
    }
    // A program that computes in double precision everywhere may mean it, so that no saving is claimed.
    let is_everywhere = others < doubles.len();
    let card = device(facts).and_then(|device| device.card());
    let arithmetic = card.map_or(SINGLE, |card| {
        (card.float64_tflops / card.float32_tflops).min(SINGLE)
    });
    // All other operators are as fast as the memory.
    let is_arithmetic = facts.names(|name| Product::is_name(name) || name.contains("convolution"));
    let mut mending = Mending::default();
    for &id in &doubles {
        let is_arithmetic = is_arithmetic[facts.profile.event(id).name.index()];
        let factor = if is_arithmetic { arithmetic } else { SINGLE };
        for &kernel in facts.analysis.kernels(id) {
            mending.scale(kernel, factor as f32);
        }
        if facts.analysis.kernels(id).is_empty() {
            mending.scale(id, SINGLE as f32);
        }
    }
    let time = |id: EventId| facts.analysis.device_times().own(id) + facts.duration(id);
    let blamed = facts.blamed(doubles.iter().map(|&id| (id, time(id))));
    Outcome::Found(Evidence {
        events: doubles,
        mending,
        blame: blamed.map(Blame::Frame),
        remedy: is_everywhere.then_some(IF_NOT_MEANT),
        confidence: is_everywhere.then_some(Confidence::Low),
        is_hint: is_everywhere,
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use mindprof_model::DType;

    use crate::advice::rules::kit::*;

    fn computing(dtype: DType, wide: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            for _ in 0..5 {
                time.takes(DType::F32, &[&[64, 64], &[64, 64]]);
                time.op("aten::mm", 100);
            }
            time.call("train.py(4): weights", |time| {
                time.takes(dtype, &[&[64, 64], &[64, 64]]);
                time.op("aten::mul", wide);
            });
        })
    }

    #[test]
    fn double_precision_beside_single_is_found() {
        let finding = found(computing(DType::F64, 500), "double-precision");
        assert_eq!(blamed(&finding), "weights");
        assert_saves(&finding, 0.25);
    }

    // A T4 has few units for double precision, but sorting is as fast as the memory.
    #[test]
    fn only_products_gain_from_the_units_for_single_precision() {
        let computing = |operator: &'static str| {
            training(4, move |time, _| {
                let card = r#"[{"id": 0, "name": "Tesla T4", "totalGlobalMem": 15000000000}]"#;
                time.note("deviceProperties", card);
                for _ in 0..5 {
                    time.takes(DType::F32, &[&[64, 64]]);
                    time.launch("aten::softmax", "softmax_kernel", 100);
                }
                time.takes(DType::F64, &[&[2048, 2048], &[2048, 2048]]);
                time.launch(operator, "double_kernel", 500);
            })
        };
        assert_saves(&found(computing("aten::cumsum"), "double-precision"), 0.24);
        assert_saves(&found(computing("aten::mm"), "double-precision"), 0.47);
    }

    #[test]
    fn a_little_double_precision_is_clean() {
        assert_eq!(
            outcome(computing(DType::F64, 10), "double-precision"),
            "clean"
        );
    }

    #[test]
    fn programs_in_single_precision_are_clean() {
        assert_eq!(
            outcome(computing(DType::F32, 500), "double-precision"),
            "clean"
        );
    }

    // A model follows the type of its input, but a simulation means it.
    #[test]
    fn programs_in_double_precision_get_a_hint() {
        let all = training(4, |time, _| {
            time.takes(DType::F64, &[&[64, 64], &[64, 64]]);
            time.op("aten::mm", 100);
        });
        let finding = found(all, "double-precision");
        assert!(finding.share.abs() < 1e-9, "{}", finding.share);
        assert!(finding.remedy.contains("if double precision is not meant"));
    }

    #[test]
    fn without_types_nothing_can_be_told() {
        let profile = training(4, |time, _| time.op("aten::mm", 100));
        assert_eq!(outcome(profile, "double-precision"), "unknown");
    }
}
