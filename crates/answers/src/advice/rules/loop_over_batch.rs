//! A model runs once for each sample, where it could run once for all.

use mindprof_model::{Category, EventId, Nanos, StringId};
use rustc_hash::FxHashMap;

use super::module_loops::{MANY, ModuleLoop};
use super::products::Product;
use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Mending, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "loop-over-batch",
    cause: "a model runs once for each sample",
    remedy: "call the model once with the whole batch; torch.vmap where the code is written for one sample",
    // The arithmetic of the samples, which a whole batch does faster too, is not counted as saved.
    price: Price::replay(0.05, (1.0, 1.7)),
    needs: &[EventKind::Cpu, EventKind::PythonCall],
    check,
};

/// Parts of the names of modules that run over time.
const RECURRENT: [&str; 4] = ["Cell", "RNN", "LSTM", "GRU"];

/// One call for all samples takes longer than one call for one of them.
const WHOLE_BATCH: f64 = 2.0;

/// The largest cost of calling an operator that computes on the CPU, of a Python call and of running
/// a kernel. Longer ones do work, and the work of all samples remains.
const OPERATOR_CALL: Nanos = Nanos(10_000);
const PYTHON_CALL: Nanos = Nanos(100_000);
const KERNEL_CALL: Nanos = Nanos(5_000);

/// The operations per byte from which on a product is limited by arithmetic. A product with a single
/// sample has fewer, because it reads all weights; one with a batch has more.
const BALANCE: f64 = 4.0;

fn check(facts: &Facts<'_>) -> Outcome {
    if facts.calls.is_empty() {
        return Outcome::Unknown("calls of modules were not recorded: with_stack=True");
    }
    let Some(found) = ModuleLoop::find(facts, |_| true) else {
        return Outcome::Clean;
    };
    let calls = &found.calls;
    // Cells of recurrent networks need the result of the call before.
    let module = facts.name(calls[0]);
    if RECURRENT.iter().any(|kind| module.contains(kind)) {
        return Outcome::Clean;
    }
    // Gradients are accumulated over calls, because a whole batch needs too much memory.
    let backward = facts.named(&facts.calls, |name| name.contains("run_backward"));
    if backward.len() * 2 >= calls.len() {
        return Outcome::Clean;
    }
    // A loop that loads a batch for each call, such as a validation, runs over batches.
    let is_loading = |id: &&EventId| facts.around(**id).is_loading;
    let batches = facts.ranges.iter().filter(is_loading).count();
    if batches * 2 >= calls.len() {
        return Outcome::Clean;
    }
    if !facts.has_shapes() {
        return Outcome::Unknown("shapes were not recorded: record_shapes=True");
    }
    let is_inside = facts.inside(calls);
    // Samples may be taken in another line than the model is called in.
    let function = facts.function_of(found.frame);
    if !takes_samples(facts, function, calls, &is_inside) {
        return Outcome::Clean;
    }
    let of_loop = found.events(facts, function);
    // The least time of the same calls is the time that nothing else disturbs.
    let key = |id: EventId| {
        let event = facts.profile.event(id);
        (event.name, event.inputs)
    };
    let mut least: FxHashMap<_, Nanos> = FxHashMap::default();
    for &id in &of_loop {
        let own = facts.analysis.tree().self_time(id);
        let least = least.entry(key(id)).or_insert(own);
        *least = own.min(*least);
    }
    let call_factor = WHOLE_BATCH / facts.per_step(calls.len());
    let mut mending = Mending::default();
    for &id in &of_loop {
        mending.scale(id, batched(facts, id, least[&key(id)], call_factor));
    }
    let mut is_of_loop = vec![false; facts.profile.events().len()];
    for id in &of_loop {
        is_of_loop[id.index()] = true;
    }
    // A backward pass goes from node to node, and those of the loop become fewer. On a device's machine
    // another thread does that, and the call only waits.
    for (pass, (nodes, fewer)) in nodes_of_passes(facts, &is_of_loop) {
        let share = f64::from(fewer) / f64::from(nodes);
        mending.scale(pass, (1.0 - share * (1.0 - call_factor)) as f32);
    }
    Outcome::Found(Evidence {
        mending,
        blame: Some(Blame::Frame(found.frame)),
        events: found.calls,
        ..Evidence::default()
    })
}

/// Returns the own time of an event for each sample of a batch, compared with the own time of a call
/// for one sample, `own`. The cost of the calls shrinks by `call_factor`; the work does not, unless a batch uses the device or
/// the weights better.
fn batched(facts: &Facts<'_>, id: EventId, own: Nanos, call_factor: f64) -> f32 {
    let computes_on_cpu = || facts.analysis.device_times().total(id) == Nanos::ZERO;
    let (call, used) = match facts.profile.event(id).category {
        Category::Kernel => {
            let filled = facts.argument(id, "blocks per SM").unwrap_or(1.0);
            (KERNEL_CALL, filled.clamp(0.0, 1.0))
        }
        Category::PythonFunction => (PYTHON_CALL, 1.0),
        // A batch has one gradient for all samples.
        Category::Operator if sums_gradients(facts, id) => return call_factor as f32,
        Category::Operator if computes_on_cpu() => (OPERATOR_CALL, 1.0),
        // These only launch work.
        Category::Operator | Category::Runtime => return call_factor as f32,
        Category::Annotation | Category::DeviceAnnotation | Category::Other => {
            return call_factor as f32;
        }
    };
    let work = own.saturating_sub(call).0 as f64 / own.0.max(1) as f64;
    let operator = if facts.is_kernel(id) {
        facts.outermost_operator(id)
    } else {
        Some(id)
    };
    let intensity = operator.map_or(BALANCE, |operator| intensity(facts, operator));
    let intensity = (intensity / BALANCE).min(1.0);
    (work * used * intensity).max(call_factor) as f32
}

/// Returns whether an operator adds the gradients of two samples.
fn sums_gradients(facts: &Facts<'_>, id: EventId) -> bool {
    let is_engine = |around| {
        let name = facts.name(around);
        name.starts_with("autograd::engine::evaluate_function") || name.contains("AccumulateGrad")
    };
    matches!(facts.name(id), "aten::add" | "aten::add_") && facts.parent(id).is_some_and(is_engine)
}

/// Returns the calls of backward passes, each with the number of its nodes and of those of the loop.
fn nodes_of_passes(facts: &Facts<'_>, is_of_loop: &[bool]) -> FxHashMap<EventId, (u32, u32)> {
    let is_pass = facts.names(|name| name.contains("run_backward"));
    let mut passes: FxHashMap<EventId, (u32, u32)> = FxHashMap::default();
    for &node in &facts.operators {
        let caller = facts.parent(node);
        let pass = caller.filter(|&pass| is_pass[facts.profile.event(pass).name.index()]);
        if let Some(pass) = pass {
            let (nodes, fewer) = passes.entry(pass).or_default();
            *nodes += 1;
            *fewer += u32::from(is_of_loop[node.index()]);
        }
    }
    passes
}

/// Returns the operations per byte of a product, and enough for other operators.
fn intensity(facts: &Facts<'_>, id: EventId) -> f64 {
    if matches!(facts.name(id), "aten::mv" | "aten::addmv" | "aten::addmv_") {
        return 0.5;
    }
    Product::of(facts, id).map_or(BALANCE, |product| {
        product.operations() as f64 / product.bytes().max(1) as f64
    })
}

/// Returns whether the calls take single samples out of a tensor. Modules that are used again, time
/// steps, decoding and gradient accumulation are loops as well, but each of their calls has a batch
/// or depends on the one before.
fn takes_samples(
    facts: &Facts<'_>,
    function: Option<StringId>,
    calls: &[EventId],
    is_inside: &[bool],
) -> bool {
    // A loop over time or tokens takes parts as well, but not of the dimension of samples.
    let is_of_many = |id: EventId| match facts.tensors(id).first() {
        // Times of a batch of one.
        Some((_, [_, 1, _])) | None => false,
        Some((_, sizes)) => sizes.first().is_some_and(|&first| first as f64 >= MANY),
    };
    let count = |condition: fn(&str) -> bool| {
        let found = facts.named(&facts.operators, condition).into_iter();
        let is_of_loop = |id: &EventId| facts.function(*id) == function;
        found.filter(|id| is_of_loop(id) && is_of_many(*id)).count()
    };
    let steps = facts.replay.steps().len();
    let is_taken = count(|name| name == "aten::unbind") >= steps
        || count(|name| matches!(name, "aten::select" | "aten::slice")) * 2 >= calls.len();
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
        working(samples, sizes, 8)
    }

    fn working(samples: u64, sizes: &[usize], micros: u64) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("train.py(7): one_by_one", |time| {
                time.takes(DType::F32, &[&[64, 64]]);
                time.op("aten::unbind", 1);
                for _ in 0..samples {
                    time.call("nn.Module: Net_0", |time| {
                        time.idle(42);
                        time.takes(DType::F32, &[sizes, &[64, 64]]);
                        time.op("aten::convolution", micros);
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

    // Each sample is 500 us of arithmetic, which one call for all of them has to do as well.
    #[test]
    fn the_work_of_the_samples_is_not_saved() {
        let profile = working(64, &[1, 64], 500);
        assert_saves(&found(profile, "loop-over-batch"), 52.0 / 542.0);
        let profile = working(64, &[1, 64], 2_000);
        assert_eq!(outcome(profile, "loop-over-batch"), "clean");
    }

    // The engine calls 64 nodes, and one of another function.
    #[test]
    fn a_backward_pass_has_fewer_nodes_for_a_batch() {
        let profile = training(4, |time, step| {
            let first = 100 * step as u32;
            time.call("train.py(7): one_by_one", |time| {
                time.takes(DType::F32, &[&[64, 64]]);
                time.op("aten::unbind", 1);
                for sample in 0..64 {
                    time.call("nn.Module: Net_0", |time| {
                        time.takes(DType::F32, &[&[1, 64], &[64, 64]]);
                        time.number(first + sample);
                        time.op("aten::mm", 2);
                    });
                }
            });
            time.call("train.py(9): loss", |time| {
                time.number(first + 64);
                time.op("aten::sum", 2);
            });
            let engine = "<built-in method run_backward of torch._C._EngineBase>";
            time.call(engine, |time| {
                for node in 0..65 {
                    time.idle(20);
                    time.node("MmBackward0", first + 64 - node, |time| time.idle(2));
                }
            });
        });
        assert_saves(&found(profile, "loop-over-batch"), 0.93);
    }

    // The backward nodes of a model whose `forward` is the user's own, and the sums of its gradients.
    #[test]
    fn backward_work_of_called_functions_is_saved_too() {
        let profile = training(4, |time, step| {
            let first = 100 * step as u32;
            time.call("train.py(7): one_by_one", |time| {
                time.takes(DType::F32, &[&[64, 64]]);
                time.op("aten::unbind", 1);
                for sample in 0..64 {
                    time.call("nn.Module: Net_0", |time| {
                        time.call("train.py(3): forward", |time| {
                            time.takes(DType::F32, &[&[1, 64], &[64, 64]]);
                            time.number(first + sample);
                            time.op("aten::mm", 2);
                        });
                    });
                }
            });
            for node in 0..64 {
                let name = "autograd::engine::evaluate_function: MmBackward0";
                time.node(name, first + 63 - node, |time| time.op("aten::add_", 50));
            }
        });
        assert_saves(&found(profile, "loop-over-batch"), 0.95);
    }

    // A product with one sample reads all weights, which one with a batch reads once.
    #[test]
    fn weights_that_each_call_reads_are_saved() {
        let profile = training(4, |time, _| {
            time.call("train.py(7): one_by_one", |time| {
                time.takes(DType::F32, &[&[64, 1024]]);
                time.op("aten::unbind", 1);
                for _ in 0..64 {
                    time.call("nn.Module: Net_0", |time| {
                        time.takes(DType::F32, &[&[1, 1024], &[1024, 1024]]);
                        time.op("aten::mm", 400);
                    });
                }
            });
        });
        assert_saves(&found(profile, "loop-over-batch"), 0.87);
    }

    // Sampled stacks have a frame for each line of a function.
    #[test]
    fn samples_that_another_line_takes_are_found() {
        let profile = training(4, |time, _| {
            time.sampled();
            time.call("train.py(7): one_by_one", |time| {
                time.takes(DType::F32, &[&[64, 64]]);
                time.op("aten::unbind", 1);
            });
            time.call("train.py(8): one_by_one", |time| {
                for _ in 0..64 {
                    time.call("nn.Module: Net_0", |time| {
                        time.idle(42);
                        time.takes(DType::F32, &[&[1, 64], &[64, 64]]);
                        time.op("aten::convolution", 8);
                    });
                }
            });
        });
        assert_saves(&found(profile, "loop-over-batch"), 0.95);
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

    /// A loop that takes a part of a tensor for each call.
    fn taking(module: &str, sizes: &[usize], backward: bool) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.call("train.py(7): generate", |time| {
                for _ in 0..64 {
                    time.takes(DType::F32, &[sizes]);
                    time.op("aten::select", 1);
                    time.call(&format!("nn.Module: {module}"), |time| {
                        time.takes(DType::F32, &[&[1, 64], &[64, 64]]);
                        time.op("aten::mm", 8);
                    });
                    if backward {
                        time.python("<built-in method run_backward of torch._C._EngineBase>", 20);
                    }
                }
            });
        })
    }

    // Each token needs the one before; the samples are a batch of one.
    #[test]
    fn generating_tokens_is_clean() {
        let id = "loop-over-batch";
        assert_eq!(outcome(taking("Net_0", &[64, 64], false), id), "found");
        assert_eq!(outcome(taking("Net_0", &[1, 64, 64], false), id), "clean");
        assert_eq!(outcome(taking("GRUCell_0", &[64, 64], false), id), "clean");
        assert_eq!(outcome(taking("Net_0", &[64, 1, 64], false), id), "clean");
    }

    // Each call has a backward pass of its own.
    #[test]
    fn accumulated_gradients_are_clean() {
        let profile = taking("Net_0", &[64, 64], true);
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
