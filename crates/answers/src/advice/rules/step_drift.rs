//! Steps get slower over the run, because something in them grows.
//!
//! A machine with other work slows down everything alike. Only what grows more than the rest is the
//! program's, and only that has a price.

use mindprof_model::{Category, EventId, StringId};
use rustc_hash::FxHashMap;

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "step-drift",
    cause: "steps get slower over the run",
    remedy: "look for what grows: lists that are searched, graphs that are kept (loss.detach()), caches",
    price: Price::general(0.04, (0.5, 1.5)),
    needs: &[EventKind::Cpu],
    check,
};

/// So many steps are needed to tell a drift from noise.
const ENOUGH: usize = 20;

/// The last quarter of the steps, compared with the first.
const SLOWER: f64 = 1.08;

/// The least growth from one quarter to the next, as a part of the drift. Another program that starts
/// makes the later quarters slower at once.
const STEADY: f64 = 0.1;

/// Work that takes this much longer than it would if it had grown as the rest did has grown by itself.
const GROWN: f64 = 1.25;

/// At least this part of the drift is work that has grown by itself. Otherwise nobody knows whether the
/// program or the machine is the cause.
const EXPLAINED: f64 = 0.5;

const ALL_ALIKE: &str = "everything in the steps got slower alike, as on a machine with other work or a falling clock: record again while nothing else runs";

/// Work that grew by less than this part of the drift is noise.
const LEAST_PART: f64 = 0.05;

/// Work that takes this part of the first steps tells how fast the machine is.
const TELLING: f64 = 0.01;

/// The time of one kind of work in some steps, in nanoseconds, and the number of its events.
#[derive(Clone, Copy, Default)]
struct Sum {
    time: u64,
    count: u64,
}

/// One kind of work in the first and in the last quarter of the steps.
#[derive(Clone, Copy, Default)]
struct Growth {
    first: Sum,
    last: Sum,
}

fn check(facts: &Facts<'_>) -> Outcome {
    let steps = facts.replay.steps();
    if steps.len() < ENOUGH {
        return Outcome::Unknown("it takes at least 20 steps to recognize a drift");
    }
    let quarters: Vec<u64> = (0..4)
        .map(|quarter| {
            let part = quarter * steps.len() / 4..(quarter + 1) * steps.len() / 4;
            let mut times: Vec<u64> = steps[part].iter().map(|step| step.duration.0).collect();
            let middle = times.len() / 2;
            *times.select_nth_unstable(middle).1
        })
        .collect();
    let whole = quarters[3].saturating_sub(quarters[0]) as f64;
    let is_steady = quarters.windows(2).all(|pair| {
        let growth = pair[1].checked_sub(pair[0]);
        growth.is_some_and(|growth| growth as f64 >= STEADY * whole)
    });
    let is_drift = is_steady && quarters[3] as f64 > SLOWER * quarters[0] as f64;
    if !is_drift {
        return Outcome::Clean;
    }
    let quarter = steps.len() as u32 / 4;
    let last = steps.len() as u32 - quarter;
    let growths = growths(facts, quarter, last);
    let slowdown = slowdown(&growths);
    let drift = (quarters[3] - quarters[0]) as f64 * f64::from(quarter);
    let alike = |growth: &Growth| growth.first.time as f64 * slowdown;
    let excess = |growth: &Growth| growth.last.time as f64 - alike(growth);
    let is_grown = |growth: &Growth| {
        growth.last.time as f64 > GROWN * alike(growth) && excess(growth) > LEAST_PART * drift
    };
    let grown: FxHashMap<Kind, Growth> = (growths.into_iter())
        .filter(|(_, growth)| is_grown(growth))
        .collect();
    let explained: f64 = grown.values().map(excess).sum();
    if explained < EXPLAINED * drift {
        return Outcome::Unknown(ALL_ALIKE);
    }
    // What has grown takes as long as in the first quarter.
    let mut times: FxHashMap<(Kind, u32), u64> = FxHashMap::default();
    for (id, kind, step) in kinds(facts).filter(|(_, kind, _)| grown.contains_key(kind)) {
        *times.entry((kind, step)).or_default() += facts.analysis.tree().self_time(id).0;
    }
    let mut mending = Mending::default();
    let mut shown: Vec<EventId> = Vec::new();
    for (id, kind, step) in kinds(facts) {
        let Some(growth) = grown.get(&kind) else {
            continue;
        };
        let usual = growth.first.time as f64 / f64::from(quarter);
        let factor = usual / times[&(kind, step)].max(1) as f64;
        if factor < 1.0 {
            mending.scale(id, factor as f32);
        }
        if step == steps.len() as u32 {
            shown.push(id);
        }
    }
    let most = (grown.iter())
        .max_by(|(a, left), (b, right)| excess(left).total_cmp(&excess(right)).then(a.cmp(b)));
    let blamed = most.and_then(|(&(frame, _), _)| frame);
    Outcome::Found(Evidence {
        events: shown,
        mending,
        blame: Some(blamed.map_or(Blame::Nobody, Blame::Frame)),
        ..Evidence::default()
    })
}

/// Work that is compared over the run: the name of its events, and the function that leads to them.
type Kind = (Option<StringId>, StringId);

/// Iterates over the work in steps: each event with its kind and its step.
fn kinds<'a>(facts: &'a Facts<'_>) -> impl Iterator<Item = (EventId, Kind, u32)> + 'a {
    let events = facts.events.iter().copied();
    events.filter_map(|id| {
        let event = facts.profile.event(id);
        let is_work = match event.category {
            Category::Operator
            | Category::PythonFunction
            | Category::Runtime
            | Category::Kernel => true,
            // A step is no work of its own.
            Category::Annotation | Category::DeviceAnnotation | Category::Other => false,
        };
        is_work.then(|| {
            (
                id,
                (facts.frames[id.index()], event.name),
                facts.around(id).step,
            )
        })
    })
}

/// Returns the time of each kind of work in the first quarter of the steps, and after `last`.
fn growths(facts: &Facts<'_>, quarter: u32, last: u32) -> FxHashMap<Kind, Growth> {
    let mut growths: FxHashMap<Kind, Growth> = FxHashMap::default();
    for (id, kind, step) in kinds(facts) {
        let time = facts.analysis.tree().self_time(id).0;
        let growth = growths.entry(kind).or_default();
        let sum = if step <= quarter {
            &mut growth.first
        } else if step > last {
            &mut growth.last
        } else {
            continue;
        };
        sum.time += time;
        sum.count += 1;
    }
    growths
}

/// Returns by which factor one event of the same work took longer at the end: the median over kinds of
/// work, the lower one of two. More events are the program's doing, slower ones may be the machine's.
fn slowdown(growths: &FxHashMap<Kind, Growth>) -> f64 {
    let all: u64 = growths.values().map(|growth| growth.first.time).sum();
    let mean = |sum: Sum| sum.time as f64 / sum.count as f64;
    let mut ratios: Vec<f64> = (growths.values())
        .filter(|growth| growth.first.time as f64 >= TELLING * all as f64 && growth.last.count > 0)
        .map(|growth| mean(growth.last) / mean(growth.first))
        .collect();
    ratios.sort_by(f64::total_cmp);
    let middle = ratios.len().saturating_sub(1) / 2;
    ratios.get(middle).map_or(1.0, |&ratio| ratio.max(1.0))
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn searching(steps: u64, per_step: u64) -> mindprof_model::Profile {
        training(steps, |time, step| {
            time.op("aten::mm", 1_000);
            time.call("train.py(4): search", |time| {
                time.op("aten::cat", 100 + step * per_step);
            });
        })
    }

    #[test]
    fn steps_that_get_slower_are_found() {
        let finding = found(searching(24, 50), "step-drift");
        assert_eq!(blamed(&finding), "search");
        assert!((0.15..0.35).contains(&finding.share), "{}", finding.share);
    }

    #[test]
    fn little_growth_is_clean() {
        assert_eq!(outcome(searching(24, 2), "step-drift"), "clean");
        assert_eq!(outcome(searching(19, 50), "step-drift"), "unknown");
    }

    // The machine gets slower, for example because another program starts.
    #[test]
    fn steps_in_which_everything_gets_slower_cannot_tell() {
        let draw = |alike: bool| {
            training(24, move |time, step| {
                let factor = 20 + step;
                for operator in ["aten::mm", "aten::relu", "aten::sum", "aten::add"] {
                    time.op(operator, 15 * factor);
                }
                time.call("train.py(4): search", |time| {
                    time.python("train.py(9): compare", if alike { 5 * factor } else { 100 });
                });
            })
        };
        assert_eq!(outcome(draw(true), "step-drift"), "unknown");
        assert_eq!(outcome(draw(false), "step-drift"), "unknown");
    }

    // Beside a machine that gets slower, one list grows. Only that is the program's.
    #[test]
    fn what_grows_more_than_the_rest_has_a_price() {
        let profile = training(24, |time, step| {
            for operator in ["aten::mm", "aten::relu", "aten::sum", "aten::add"] {
                time.op(operator, 5 * (50 + step));
            }
            time.call("train.py(4): search", |time| {
                time.op("aten::cat", 100 + step * 50);
            });
        });
        let finding = found(profile, "step-drift");
        assert_eq!(blamed(&finding), "search");
        // 460 us of 1,900 us: the steps of the first quarter, with 225 us for the search, are usual.
        assert!((0.2..0.35).contains(&finding.share), "{}", finding.share);
    }

    // Each step keeps another graph, and the backward pass goes through all of them.
    #[test]
    fn more_events_of_the_same_time_are_the_programs() {
        let profile = training(24, |time, step| {
            time.op("aten::mm", 300);
            time.call("train.py(4): remember", |time| {
                for _ in 0..=step {
                    time.op("aten::cat", 50);
                }
            });
        });
        let finding = found(profile, "step-drift");
        assert_eq!(blamed(&finding), "remember");
    }

    // Steps differ, but do not drift.
    #[test]
    fn steps_that_alternate_are_clean() {
        let profile = training(24, |time, step| {
            time.op("aten::mm", if step % 2 == 0 { 500 } else { 1_000 });
        });
        assert_eq!(outcome(profile, "step-drift"), "clean");
    }
}
