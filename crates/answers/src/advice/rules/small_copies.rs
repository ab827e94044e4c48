//! Many small tensors are copied to the device.

use mindprof_model::Nanos;

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "small-copies",
    cause: "many small tensors are copied to the device",
    remedy: "copy once: torch.stack(tensors).to(device), or one torch.tensor(list, device=device)",
    price: Price::replay(0.03, (0.6, 1.2)),
    needs: &[EventKind::Device],
    check,
};

/// This many copies in a step are many.
const MANY: f64 = 12.0;

/// A copy that takes longer is not small.
const SMALL: Nanos = Nanos(20_000);

fn check(facts: &Facts<'_>) -> Outcome {
    let mut copies = facts.named(&facts.kernels, |name| name.starts_with("Memcpy HtoD"));
    copies.retain(|&id| facts.duration(id) < SMALL && !facts.around(id).is_optimizer);
    if facts.per_step(copies.len()) < MANY {
        return Outcome::Clean;
    }
    let operators = facts.outermost_operators(&copies);
    // One copy for all is left.
    let rest = (1.0 / facts.per_step(copies.len())) as f32;
    let mut mending = Mending::default();
    for id in facts.all_inside(&operators) {
        mending.scale(id, rest);
        mending.unblock(id);
    }
    let blamed = facts.blamed(operators.iter().map(|&id| (id, facts.duration(id))));
    Outcome::Found(Evidence {
        events: operators,
        mending,
        blame: blamed.map(Blame::Frame),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    const COPY: &str = "Memcpy HtoD (Pinned -> Device)";

    fn copying(copies: usize, micros: u64) -> mindprof_model::Profile {
        training(5, |time, _| {
            time.call("train.py(4): upload", |time| {
                for _ in 0..copies {
                    time.operator("aten::to", |time| {
                        time.idle(40);
                        time.copy("aten::copy_", COPY, micros, 64);
                    });
                }
            });
            time.compute(10, 100);
            time.synchronize();
        })
    }

    #[test]
    fn many_small_copies_are_found() {
        let finding = found(copying(40, 2), "small-copies");
        assert_eq!(blamed(&finding), "upload");
        assert!((0.3..0.7).contains(&finding.share), "{}", finding.share);
    }

    #[test]
    fn a_few_copies_are_clean() {
        assert_eq!(outcome(copying(4, 2), "small-copies"), "clean");
    }

    #[test]
    fn large_copies_are_another_cause() {
        assert_eq!(outcome(copying(40, 100), "small-copies"), "clean");
    }
}
