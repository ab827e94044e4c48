//! Elementwise operators follow each other, each with a pass over memory.

use mindprof_model::EventId;

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "fusible-chain",
    cause: "elementwise operators follow each other, each with a pass over memory",
    remedy: "fuse them: @torch.compile on the function, or an operator of torch such as F.gelu or F.silu",
    price: Price::general(0.05, (0.4, 1.3)),
    needs: &[EventKind::Cpu, EventKind::Device],
    check,
};

/// A chain has at least this many operators, and there are this many chains.
const LONG: usize = 4;
const MANY: usize = 4;

/// A fused kernel reads and writes its tensors once, which is about as much as this many operators.
const FUSED: f32 = 1.5;

const ELEMENTWISE: [&str; 40] = [
    "abs",
    "add",
    "add_",
    "addcdiv",
    "addcmul",
    "clamp",
    "cos",
    "div",
    "div_",
    "erf",
    "exp",
    "gelu",
    "ge",
    "gt",
    "le",
    "lerp",
    "log",
    "log1p",
    "lt",
    "masked_fill",
    "maximum",
    "minimum",
    "mul",
    "mul_",
    "neg",
    "pow",
    "reciprocal",
    "relu",
    "rsqrt",
    "rsub",
    "sigmoid",
    "sigmoid_",
    "silu",
    "sin",
    "sqrt",
    "square",
    "sub",
    "sub_",
    "tanh",
    "where",
];

fn check(facts: &Facts<'_>) -> Outcome {
    let is_elementwise = facts.names(|name| {
        let name = name.strip_prefix("aten::");
        name.is_some_and(|name| ELEMENTWISE.contains(&name))
    });
    let is_part = |id: EventId| {
        let around = facts.around(id);
        is_elementwise[facts.profile.event(id).name.index()]
            && !around.is_optimizer
            && !around.is_loading
    };
    let place = |id: EventId| (facts.profile.event(id).thread, facts.frames[id.index()]);
    let outer = facts.outer_operators();
    let chains = outer.chunk_by(|&a, &b| is_part(a) && is_part(b) && place(a) == place(b));
    let chains: Vec<&[EventId]> = chains.filter(|chain| chain.len() >= LONG).collect();
    if chains.len() < MANY {
        return Outcome::Clean;
    }
    let mut mending = Mending::default();
    let mut factors = vec![1.0; facts.profile.events().len()];
    for chain in &chains {
        for id in *chain {
            factors[id.index()] = FUSED / chain.len() as f32;
        }
    }
    let events: Vec<EventId> = chains.concat();
    for id in facts.all_inside(&events) {
        let operator = facts.outermost_operator(id).unwrap_or(id);
        mending.scale(id, factors[operator.index()]);
    }
    let blamed = facts.blamed(events.iter().map(|&id| (id, facts.work(id))));
    Outcome::Found(Evidence {
        events,
        mending,
        blame: blamed.map(Blame::Frame),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn chains(operators: &[&str]) -> mindprof_model::Profile {
        training(4, |time, _| {
            for _ in 0..4 {
                time.compute(1, 100);
                time.call("model.py(4): activation", |time| {
                    for operator in operators {
                        time.launch(operator, "vectorized_elementwise_kernel", 50);
                    }
                });
            }
        })
    }

    const GELU: [&str; 6] = [
        "aten::mul",
        "aten::pow",
        "aten::add",
        "aten::mul",
        "aten::tanh",
        "aten::mul",
    ];

    #[test]
    fn an_activation_by_hand_is_found() {
        let finding = found(chains(&GELU), "fusible-chain");
        assert_eq!(blamed(&finding), "activation");
        assert_saves(&finding, 0.56);
    }

    #[test]
    fn short_chains_are_clean() {
        assert_eq!(outcome(chains(&GELU[..3]), "fusible-chain"), "clean");
    }

    // The same operators with products between them are no chain.
    #[test]
    fn operators_apart_are_clean() {
        let mixed = [
            "aten::mul",
            "aten::mm",
            "aten::add",
            "aten::mm",
            "aten::tanh",
            "aten::mm",
        ];
        assert_eq!(outcome(chains(&mixed), "fusible-chain"), "clean");
    }
}
