//! Steps spend their time on moving elements around.

use mindprof_model::EventId;

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "shuffle-bound",
    cause: "steps sort, gather or scatter elements",
    remedy: "use masks and slices instead of indices, sort indices before index_add_, or precompute them outside of the step",
    // Whether a better form exists depends on the program, so that no saving is claimed.
    price: Price::Unpriced { rank: 0.02 },
    needs: &[EventKind::Cpu, EventKind::Device],
    check,
};

/// Operators that move single elements.
const SHUFFLES: [&str; 18] = [
    "aten::sort",
    "aten::argsort",
    "aten::topk",
    "aten::gather",
    "aten::scatter",
    "aten::scatter_",
    "aten::scatter_add",
    "aten::scatter_add_",
    "aten::index",
    "aten::index_put_",
    "aten::index_add",
    "aten::index_add_",
    "aten::index_select",
    "aten::masked_select",
    "aten::nonzero",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::take_along_dim",
];

/// The remedy if most of the time is spent in sorting.
const SORTED: &str =
    "torch.topk if only the first elements are used; or sort once outside of the step";

/// Operators that sort.
const SORTS: [&str; 2] = ["aten::sort", "aten::argsort"];

/// Such operators have to be this part of the step.
const MUCH: f64 = 0.15;

fn check(facts: &Facts<'_>) -> Outcome {
    let mut found = facts.named(&facts.operators, |name| SHUFFLES.contains(&name));
    found.retain(|&id| !facts.around(id).is_loading);
    let found = facts.outermost(&found);
    let total = |of: &[EventId]| of.iter().map(|&id| facts.work(id).0).sum::<u64>();
    let time = total(&found);
    if (time as f64) < MUCH * facts.base.0 as f64 {
        return Outcome::Clean;
    }
    let is_sort = |id: &EventId| SORTS.contains(&facts.name(*id));
    let sorts: Vec<EventId> = found.iter().copied().filter(is_sort).collect();
    let blamed = facts.blamed(found.iter().map(|&id| (id, facts.work(id))));
    Outcome::Found(Evidence {
        remedy: (total(&sorts) * 2 > time).then_some(SORTED),
        events: found,
        blame: blamed.map(Blame::Frame),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn shuffling(operator: &str, micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.op("aten::mm", 1_000);
            time.call("model.py(4): route", |time| time.op(operator, micros));
        })
    }

    #[test]
    fn much_sorting_is_found() {
        let finding = found(shuffling("aten::sort", 1_000), "shuffle-bound");
        assert_eq!(blamed(&finding), "route");
        assert_eq!(finding.count, 4);
        assert!(finding.remedy.contains("torch.topk"));
        let finding = found(shuffling("aten::gather", 1_000), "shuffle-bound");
        assert!(!finding.remedy.contains("torch.topk"));
    }

    #[test]
    fn a_little_sorting_is_clean() {
        assert_eq!(
            outcome(shuffling("aten::sort", 100), "shuffle-bound"),
            "clean"
        );
    }

    #[test]
    fn an_embedding_is_clean() {
        assert_eq!(
            outcome(shuffling("aten::embedding", 1_000), "shuffle-bound"),
            "clean"
        );
    }
}
