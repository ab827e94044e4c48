//! A few batches take far longer than the others.

use mindprof_model::{Category, EventId, Nanos};

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "slow-fetch",
    cause: "a few batches take far longer than the others",
    remedy: "prefetch more: DataLoader(..., prefetch_factor=4), and look at what the slow samples have in common",
    price: Price::replay(0.02, (0.5, 1.1)),
    needs: &[EventKind::Cpu],
    check,
};

/// So many batches are needed to tell, and at most this part of them may be slow.
const ENOUGH: usize = 5;
const FEW: f64 = 0.25;

/// A slow batch, compared with the median, and its least time.
const SLOW: u64 = 4;
const LEAST: Nanos = Nanos(1_000_000);

/// Slow batches explain the loop's waiting if they are this part of it.
const MOST: f64 = 0.7;

/// Returns the slow batches, and the time of a usual one.
fn slow_fetches(facts: &Facts<'_>) -> (Vec<EventId>, Nanos) {
    let is_fetch = |id: &&EventId| {
        facts.around(**id).is_loading && facts.profile.event(**id).category == Category::Annotation
    };
    let fetches: Vec<EventId> = facts.ranges.iter().filter(is_fetch).copied().collect();
    let fetches = facts.outermost(&fetches);
    if fetches.len() < ENOUGH {
        return (Vec::new(), Nanos::ZERO);
    }
    let mut times: Vec<Nanos> = fetches.iter().map(|&id| facts.duration(id)).collect();
    let middle = times.len() / 2;
    let median = *times.select_nth_unstable(middle).1;
    let all: u64 = fetches.iter().map(|&id| facts.duration(id).0).sum();
    let mut slow = fetches;
    slow.retain(|&id| facts.duration(id) > Nanos(SLOW * median.0).max(LEAST));
    let of_slow: u64 = slow.iter().map(|&id| facts.duration(id).0).sum();
    let is_few = slow.len() as f64 <= FEW * times.len() as f64;
    if !is_few || (of_slow as f64) < MOST * all as f64 {
        slow.clear();
    }
    (slow, median)
}

/// Returns whether a few slow batches are most of what the loop waits for.
pub(super) fn explains_waiting(facts: &Facts<'_>) -> bool {
    !slow_fetches(facts).0.is_empty()
}

fn check(facts: &Facts<'_>) -> Outcome {
    let (slow, median) = slow_fetches(facts);
    if slow.is_empty() {
        return Outcome::Clean;
    }
    let inside = facts.all_inside(&slow);
    let mut mending = Mending::default();
    for &id in &inside {
        let mut around = std::iter::successors(Some(id), |&at| facts.parent(at));
        if let Some(fetch) = around.find(|at| slow.binary_search(at).is_ok()) {
            let factor = median.0 as f32 / facts.duration(fetch).0.max(1) as f32;
            mending.scale(id, factor);
        }
    }
    let tree = facts.analysis.tree();
    let blamed = facts.blamed(inside.iter().map(|&id| (id, tree.self_time(id))));
    Outcome::Found(Evidence {
        events: slow,
        mending,
        blame: blamed.map(Blame::Frame),
        ..Evidence::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    const NEXT: &str = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";

    fn fetching(time_of: impl Fn(u64) -> u64) -> mindprof_model::Profile {
        training(10, |time, step| {
            time.range(NEXT, |time| {
                time.python("data.py(4): decode", time_of(step));
            });
            time.op("aten::mm", 1_000);
        })
    }

    #[test]
    fn one_slow_batch_of_ten_is_found() {
        let profile = fetching(|step| if step == 6 { 10_000 } else { 20 });
        let finding = found(profile, "slow-fetch");
        assert_eq!(blamed(&finding), "decode");
        assert_saves(&finding, 0.5);
    }

    #[test]
    fn small_differences_are_clean() {
        let profile = fetching(|step| if step == 6 { 900 } else { 20 });
        assert_eq!(outcome(profile, "slow-fetch"), "clean");
    }

    // Two workers that finish in turns make every second batch late: all batches are slow.
    #[test]
    fn batches_that_are_late_in_turns_are_another_cause() {
        let turns = |step| if step % 2 == 0 { 5_000 } else { 20 };
        assert_eq!(outcome(fetching(turns), "slow-fetch"), "clean");
        assert_eq!(outcome(fetching(turns), "data-loading"), "found");
    }
}
