//! A model runs once for each sample, where it could run once for all.

use mindprof_model::{Category, EventId, StringId};
use rustc_hash::FxHashMap;

use crate::advice::facts::{Facts, MODULE};
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};

pub(super) const RULE: Rule = Rule {
    id: "loop-over-batch",
    cause: "a model runs once for each sample",
    remedy: "call the model once with the whole batch; torch.vmap where the code is written for one sample",
    price: Price::replay(0.05, (0.6, 1.1)),
    check,
};

/// A module that is called at least this often from one function in each step is in a loop.
const MANY: f64 = 12.0;

/// One call for all samples takes longer than one call for one of them.
const WHOLE_BATCH: f64 = 2.0;

fn check(facts: &Facts<'_>) -> Outcome {
    if facts.calls.is_empty() {
        return Outcome::Unknown("calls of modules were not recorded: with_stack=True");
    }
    // The calls of each module from each function of the user's.
    let mut loops: FxHashMap<(StringId, StringId), Vec<EventId>> = FxHashMap::default();
    for id in facts.named(&facts.calls, |name| name.starts_with(MODULE)) {
        let is_outer = facts.parent(id).is_none_or(|caller| {
            facts.is_own_call(caller) || !facts.name(caller).starts_with(MODULE)
        });
        if let Some(frame) = facts.frames[id.index()].filter(|_| is_outer) {
            let name = facts.profile.event(id).name;
            loops.entry((frame, name)).or_default().push(id);
        }
    }
    let total = |calls: &[EventId]| calls.iter().map(|&id| facts.duration(id).0).sum::<u64>();
    let many = loops
        .into_iter()
        .filter(|(_, calls)| facts.per_step(calls.len()) >= MANY)
        .max_by_key(|(key, calls)| (total(calls), *key));
    let Some(((frame, _), calls)) = many else {
        return Outcome::Clean;
    };
    // A loop that loads a batch for each call, such as a validation, runs over batches.
    let is_loading = |id: &&EventId| facts.around(**id).is_loading;
    let batches = facts.ranges.iter().filter(is_loading).count();
    if batches * 2 >= calls.len() {
        return Outcome::Clean;
    }
    if !facts.has_shapes() {
        return Outcome::Unknown("shapes were not recorded: record_shapes=True");
    }
    let is_inside = facts.inside(&calls);
    if !takes_samples(facts, frame, &calls, &is_inside) {
        return Outcome::Clean;
    }
    let factor = (WHOLE_BATCH / facts.per_step(calls.len())) as f32;
    let mut mending = Mending::default();
    for &id in &facts.events {
        // Backward work has the frame of its forward operator.
        let is_of_frame = facts.frames[id.index()] == Some(frame)
            && facts.profile.event(id).category != Category::PythonFunction;
        if is_inside[id.index()] || is_of_frame {
            mending.scale(id, factor);
        }
    }
    Outcome::Found(Evidence {
        events: calls,
        mending,
        blame: Some(Blame::Frame(frame)),
        ..Evidence::default()
    })
}

/// Returns whether the calls take single samples out of a tensor. Modules that are used again, time
/// steps, decoding and gradient accumulation are loops as well, but each of their calls has a batch
/// or depends on the one before.
fn takes_samples(
    facts: &Facts<'_>,
    frame: StringId,
    calls: &[EventId],
    is_inside: &[bool],
) -> bool {
    let is_of_loop = |id: &&EventId| facts.frames[id.index()] == Some(frame);
    let count = |condition: fn(&str) -> bool| {
        let found = facts.named(&facts.operators, condition);
        found.iter().filter(is_of_loop).count()
    };
    let steps = facts.replay.steps().len();
    let is_taken = count(|name| name == "aten::unbind") >= steps
        || count(|name| name == "aten::select") * 2 >= calls.len();
    let mut single = 0;
    let mut all = 0;
    for id in facts.outer_operators() {
        if !is_inside[id.index()] {
            continue;
        }
        if let Some((_, sizes)) = facts.tensors(id).first() {
            all += 1;
            single += usize::from(sizes.len() <= 1 || sizes[0] == 1);
        }
    }
    is_taken && all > 0 && single * 2 > all
}

#[cfg(test)]
mod tests {
    use mindprof_model::DType;

    use crate::advice::rules::kit::*;

    fn looping(samples: u64) -> mindprof_model::Profile {
        looping_over(samples, &[1, 64])
    }

    fn looping_over(samples: u64, sizes: &[usize]) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("train.py(7): one_by_one", |time| {
                time.op("aten::unbind", 1);
                for _ in 0..samples {
                    time.call("nn.Module: Net_0", |time| {
                        time.takes(DType::F32, &[sizes, &[64, 64]]);
                        time.op("aten::mm", 50);
                    });
                }
            });
            time.op("aten::sum", 200);
        })
    }

    #[test]
    fn a_model_in_a_loop_over_samples_is_found() {
        let finding = found(looping(64), "loop-over-batch");
        assert_eq!(blamed(&finding), "one_by_one");
        assert_saves(&finding, 0.9);
        assert_eq!(finding.module.as_deref(), Some("Net_0"));
    }

    #[test]
    fn a_few_calls_are_no_loop() {
        assert_eq!(outcome(looping(8), "loop-over-batch"), "clean");
    }

    // An activation that is used by many layers, or a cell that runs over time.
    #[test]
    fn calls_with_a_batch_are_clean() {
        let profile = looping_over(64, &[32, 64]);
        assert_eq!(outcome(profile, "loop-over-batch"), "clean");
    }

    // A validation calls the model once for each of its batches.
    #[test]
    fn a_loop_over_batches_is_clean() {
        let profile = training(4, |time, _| {
            time.call("train.py(7): evaluate", |time| {
                for _ in 0..64 {
                    time.range("enumerate(DataLoader)#_SingleProcess.__next__", |time| {
                        time.idle(5);
                    });
                    time.call("nn.Module: Net_0", |time| time.op("aten::mm", 50));
                }
            });
        });
        assert_eq!(outcome(profile, "loop-over-batch"), "clean");
    }

    // A model of many layers calls each of them once.
    #[test]
    fn many_layers_are_no_loop() {
        let profile = training(4, |time, _| {
            time.call("model.py(7): forward", |time| {
                for layer in 0..64 {
                    let layer = format!("nn.Module: Linear_{layer}");
                    time.call(&layer, |time| time.op("aten::mm", 50));
                }
            });
        });
        assert_eq!(outcome(profile, "loop-over-batch"), "clean");
    }
}
