//! Attention is computed step by step.

use mindprof_model::{EventId, wrapped_node};
use rustc_hash::FxHashSet;

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "unfused-attention",
    cause: "attention is computed by two products with a softmax between them",
    remedy: "torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)",
    price: Price::replay(0.03, (0.5, 1.4)),
    needs: &[EventKind::Cpu],
    check,
};

/// A product and the softmax are at most this far apart: in one call of a function, or if calls
/// were not recorded.
const NEAR: usize = 8;
const NEAR_WITHOUT_CALLS: usize = 3;

/// A fused kernel takes this part of the time of the operators between the products.
const FUSED: f32 = 0.1;

const PRODUCTS: [&str; 4] = ["aten::matmul", "aten::bmm", "aten::baddbmm", "aten::einsum"];

/// The backward nodes of the operators between the products.
const NODES: [&str; 4] = [
    "SoftmaxBackward0",
    "NativeDropoutBackward0",
    "MaskedFillBackward0",
    "DivBackward0",
];

fn check(facts: &Facts<'_>) -> Outcome {
    let is_softmax = facts.names(|name| matches!(name, "aten::softmax" | "aten::_softmax"));
    let is_product = facts.names(|name| PRODUCTS.contains(&name));
    let name = |id: EventId| facts.profile.event(id).name.index();
    let outer = facts.outer_operators();
    let near = if facts.calls.is_empty() {
        NEAR_WITHOUT_CALLS
    } else {
        NEAR
    };
    let mut between: Vec<EventId> = Vec::new();
    let mut frames = FxHashSet::default();
    for (place, &softmax) in outer.iter().enumerate() {
        if !is_softmax[name(softmax)] {
            continue;
        }
        let call = own_call(facts, softmax);
        let step = facts.around(softmax).step;
        let is_near = |at: &usize| {
            let id = outer[*at];
            is_product[name(id)] && facts.around(id).step == step && own_call(facts, id) == call
        };
        let before = (place.saturating_sub(near)..place).rev().find(is_near);
        let after = (place + 1..outer.len().min(place + 1 + near)).find(is_near);
        if let (Some(before), Some(after)) = (before, after) {
            between.extend(&outer[before + 1..after]);
            frames.insert(facts.frames[softmax.index()]);
        }
    }
    if between.is_empty() {
        return Outcome::Clean;
    }
    let is_node = |name: &str| wrapped_node(name).is_some_and(|node| NODES.contains(&node));
    let nodes = facts.named(&facts.operators, is_node).into_iter();
    let nodes = nodes.filter(|id| frames.contains(&facts.frames[id.index()]));
    let mut events = between;
    events.extend(nodes);
    let mut mending = Mending::default();
    for id in facts.all_inside(&events) {
        mending.scale(id, FUSED);
    }
    let blamed = facts.blamed(events.iter().map(|&id| (id, facts.duration(id))));
    Outcome::Found(Evidence {
        events,
        mending,
        blame: blamed.map(Blame::Frame),
        ..Evidence::default()
    })
}

/// Returns the call of a function of the user's that an event is in.
fn own_call(facts: &Facts<'_>, id: EventId) -> Option<EventId> {
    let mut around = std::iter::successors(facts.parent(id), |&at| facts.parent(at));
    around.find(|&at| facts.is_own_call(at))
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn attending(last: &str, micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("model.py(4): forward", |time| {
                for _ in 0..4 {
                    time.launch("aten::matmul", "bf16_gemm", 100);
                    time.launch("aten::div", "elementwise", micros);
                    time.launch("aten::softmax", "softmax", micros);
                    time.launch(last, "bf16_gemm", 100);
                }
            });
        })
    }

    #[test]
    fn attention_by_hand_is_found() {
        let finding = found(attending("aten::matmul", 100), "unfused-attention");
        assert_eq!(blamed(&finding), "forward");
        assert!((0.35..0.5).contains(&finding.share), "{}", finding.share);
    }

    #[test]
    fn short_attention_is_clean() {
        let profile = attending("aten::matmul", 1);
        assert_eq!(outcome(profile, "unfused-attention"), "clean");
    }

    // A classifier ends in a softmax, and a gate has no second product.
    #[test]
    fn a_softmax_alone_is_clean() {
        let profile = training(4, |time, _| {
            time.call("model.py(4): forward", |time| {
                time.launch("aten::matmul", "bf16_gemm", 100);
                time.launch("aten::softmax", "softmax", 100);
                time.launch("aten::topk", "sort", 100);
            });
            time.call("model.py(9): experts", |time| {
                time.launch("aten::matmul", "bf16_gemm", 100);
            });
        });
        assert_eq!(outcome(profile, "unfused-attention"), "clean");
    }
}
