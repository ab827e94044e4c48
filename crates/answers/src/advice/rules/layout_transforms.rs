//! Convolutions convert the layout of their tensors.

use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "layout-transforms",
    cause: "convolutions convert the layout of their tensors",
    remedy: "model.to(memory_format=torch.channels_last), and the same for its inputs",
    price: Price::replay(0.03, (0.5, 1.2)),
    needs: &[EventKind::Device],
    check,
};

/// Kernels that convolutions run before and after themselves to convert between layouts.
const TRANSFORMS: [&str; 2] = ["nchwToNhwc", "nhwcToNchw"];

fn check(facts: &Facts<'_>) -> Outcome {
    let is_transform = |name: &str| TRANSFORMS.iter().any(|known| name.contains(known));
    let kernels = facts.named(&facts.kernels, is_transform);
    if kernels.is_empty() {
        return Outcome::Clean;
    }
    let mut mending = Mending::default();
    mending.remove(kernels.iter().copied());
    Outcome::Found(Evidence {
        events: kernels,
        mending,
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn converting(kernel: &str, micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("model.py(4): forward", |time| {
                time.launch("aten::conv2d", kernel, micros);
            });
            time.compute(10, 100);
        })
    }

    #[test]
    fn conversions_around_convolutions_are_found() {
        let finding = found(
            converting("void cudnn::ops::nchwToNhwcKernel<>", 300),
            "layout-transforms",
        );
        assert_eq!(blamed(&finding), "forward");
        assert_saves(&finding, 0.23);
    }

    #[test]
    fn small_conversions_are_clean() {
        let profile = converting("void cudnn::ops::nhwcToNchwKernel<>", 10);
        assert_eq!(outcome(profile, "layout-transforms"), "clean");
    }

    #[test]
    fn the_convolution_itself_is_clean() {
        let profile = converting("sm80_xmma_fprop_implicit_gemm_bf16_nhwckrsc_nhwc", 300);
        assert_eq!(outcome(profile, "layout-transforms"), "clean");
    }
}
