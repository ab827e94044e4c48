//! A convolution adds a bias that the normalization after it removes.

use mindprof_model::EventId;

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "conv-bias-before-norm",
    cause: "convolutions add a bias that the batch normalization after them removes",
    remedy: "nn.Conv2d(..., bias=False) before nn.BatchNorm2d",
    price: Price::replay(0.005, (0.7, 1.3)),
    needs: &[EventKind::Cpu],
    check,
};

/// A convolution with a bias takes this many tensors.
const WITH_BIAS: usize = 3;

fn check(facts: &Facts<'_>) -> Outcome {
    if !facts.has_shapes() {
        return Outcome::Unknown("shapes were not recorded: record_shapes=True");
    }
    let is_convolution =
        facts.names(|name| matches!(name, "aten::conv1d" | "aten::conv2d" | "aten::conv3d"));
    let is_norm = facts.names(|name| name == "aten::batch_norm");
    let name = |id: EventId| facts.profile.event(id).name.index();
    let convolutions: Vec<EventId> = (facts.outer_operators().windows(2))
        .filter(|pair| is_convolution[name(pair[0])] && is_norm[name(pair[1])])
        .map(|pair| pair[0])
        .filter(|&id| facts.tensors(id).len() >= WITH_BIAS)
        .collect();
    if convolutions.is_empty() {
        return Outcome::Clean;
    }
    // The bias is added by an operator of its own, and its gradient is a sum.
    let is_forward = facts.inside(&convolutions);
    let backward = facts.named(&facts.operators, |name| {
        name == "aten::convolution_backward"
    });
    let is_backward = facts.inside(&backward);
    let adds = facts
        .named(&facts.operators, |name| name == "aten::add_")
        .into_iter();
    let sums = facts
        .named(&facts.operators, |name| name == "aten::sum")
        .into_iter();
    let mut found: Vec<EventId> = adds.filter(|id| is_forward[id.index()]).collect();
    found.extend(sums.filter(|id| is_backward[id.index()]));
    if found.is_empty() {
        return Outcome::Clean;
    }
    let blamed = facts.blamed(convolutions.iter().map(|&id| (id, facts.duration(id))));
    Outcome::Found(Evidence {
        mending: facts.without(&found),
        events: found,
        blame: blamed.map(Blame::Frame),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use mindprof_model::DType;

    use crate::advice::rules::kit::*;

    fn convolving(has_bias: bool, next: &str, micros: u64) -> mindprof_model::Profile {
        let shapes: [&[usize]; 3] = [&[8, 64, 32, 32], &[64, 64, 3, 3], &[64]];
        training(4, |time, _| {
            time.call("model.py(4): forward", |time| {
                time.takes(DType::F32, &shapes[..2 + usize::from(has_bias)]);
                time.operator("aten::conv2d", |time| {
                    time.launch("aten::cudnn_convolution", "conv", 500);
                    if has_bias {
                        time.launch("aten::add_", "elementwise", micros);
                    }
                });
                time.launch(next, "norm", 500);
            });
        })
    }

    #[test]
    fn a_bias_before_a_normalization_is_found() {
        let finding = found(
            convolving(true, "aten::batch_norm", 200),
            "conv-bias-before-norm",
        );
        assert_eq!(blamed(&finding), "forward");
        assert_saves(&finding, 0.17);
    }

    #[test]
    fn a_quick_bias_is_clean() {
        let profile = convolving(true, "aten::batch_norm", 2);
        assert_eq!(outcome(profile, "conv-bias-before-norm"), "clean");
    }

    #[test]
    fn other_convolutions_are_clean() {
        for (has_bias, next) in [(false, "aten::batch_norm"), (true, "aten::relu")] {
            let profile = convolving(has_bias, next, 200);
            assert_eq!(outcome(profile, "conv-bias-before-norm"), "clean");
        }
    }
}
