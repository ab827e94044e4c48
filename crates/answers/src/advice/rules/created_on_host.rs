//! Tensors are created on the CPU and then copied to the device.

use mindprof_model::EventId;

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "created-on-host",
    cause: "tensors are created on the CPU and then copied to the device",
    remedy: "create them where they are used: torch.zeros(..., device=device), or torch.zeros_like(x)",
    price: Price::replay(0.02, (0.6, 1.1)),
    needs: &[EventKind::Cpu, EventKind::Device],
    check,
};

/// Operators that create tensors of known values.
const CREATORS: [&str; 14] = [
    "aten::zeros",
    "aten::ones",
    "aten::full",
    "aten::eye",
    "aten::arange",
    "aten::linspace",
    "aten::rand",
    "aten::randn",
    "aten::randint",
    "aten::randperm",
    "aten::normal",
    "aten::bernoulli",
    "aten::tril",
    "aten::triu",
];

fn check(facts: &Facts<'_>) -> Outcome {
    let copies = facts.named(&facts.kernels, |name| name.starts_with("Memcpy HtoD"));
    if copies.is_empty() {
        return Outcome::Clean;
    }
    let is_copying = marks(facts, &facts.outermost_operators(&copies));
    let is_creator = facts.names(|name| CREATORS.contains(&name));
    let outer = facts.outer_operators();
    let mut found = Vec::new();
    // Of two operators that follow each other in one function, the first creates on the CPU what
    // the second copies.
    for pair in outer.windows(2) {
        let (created, moved) = (pair[0], pair[1]);
        let is_created = is_creator[facts.profile.event(created).name.index()];
        let is_one_function = facts.frames[created.index()] == facts.frames[moved.index()]
            && facts.profile.event(created).thread == facts.profile.event(moved).thread;
        if is_created
            && is_copying[moved.index()]
            && is_one_function
            && !facts.around(created).is_loading
            && facts.analysis.device_times().total(created).0 == 0
        {
            found.extend([created, moved]);
        }
    }
    if found.is_empty() {
        return Outcome::Clean;
    }
    let blamed = facts.blamed(found.iter().map(|&id| (id, facts.duration(id))));
    Outcome::Found(Evidence {
        mending: facts.without(&found),
        events: found,
        blame: blamed.map(Blame::Frame),
        ..Evidence::default()
    })
}

fn marks(facts: &Facts<'_>, events: &[EventId]) -> Vec<bool> {
    let mut marks = vec![false; facts.profile.events().len()];
    for id in events {
        marks[id.index()] = true;
    }
    marks
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    const COPY: &str = "Memcpy HtoD (Pageable -> Device)";

    fn creating(creator: &str, micros: u64) -> mindprof_model::Profile {
        training(5, |time, _| {
            time.call("train.py(4): noise", |time| {
                time.op(creator, micros);
                time.copy("aten::to", COPY, micros / 10 + 1, 64);
            });
            time.compute(10, 100);
            time.synchronize();
        })
    }

    #[test]
    fn noise_from_the_host_is_found() {
        let finding = found(creating("aten::randn", 500), "created-on-host");
        assert_eq!(blamed(&finding), "noise");
        assert_saves(&finding, 0.35);
    }

    #[test]
    fn a_small_tensor_is_clean() {
        assert_eq!(
            outcome(creating("aten::zeros", 2), "created-on-host"),
            "clean"
        );
    }

    // Data that was computed on the CPU has to be copied.
    #[test]
    fn other_tensors_are_clean() {
        assert_eq!(
            outcome(creating("aten::stack", 500), "created-on-host"),
            "clean"
        );
    }
}
