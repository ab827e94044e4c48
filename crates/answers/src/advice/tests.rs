//! Mistakes that other tools made, as made-up profiles with the right answer.

use std::path::Path;

use mindprof_model::Nanos;

use super::rules::kit::{Drawing, advise, found, outcome, program, training};
use super::{Advice, MOST_FINDINGS, Overhead, RULES};

fn ids(advice: &Advice) -> Vec<&'static str> {
    advice.findings.iter().map(|found| found.rule.id).collect()
}

/// Two streams that work at the same time, and a CPU that keeps up with both.
fn two_streams(time: &mut Drawing) {
    for _ in 0..20 {
        time.operator("aten::mm", |time| {
            time.kernel("bf16_gemm", 100);
            time.kernel_on(1, "bf16_gemm", 90);
        });
    }
}

// stream 7     |------||------||------|
// stream 20    |-----| |-----| |-----|     190 % if summed, 100 % as a union
#[test]
fn streams_at_the_same_time_are_not_summed() {
    let advice = advise(training(4, |time, _| two_streams(time)));
    for finding in &advice.findings {
        assert!(finding.share <= 1.0 && finding.high <= 1.0, "{finding:?}");
    }
    assert!(!ids(&advice).contains(&"device-idle"));
}

// stream 7     |----||----||----||----|
// stream 20    |-|                          idle for most of the time, unlike the device
#[test]
fn an_idle_stream_is_no_idle_device() {
    let profile = || {
        training(4, |time, _| {
            time.operator("nccl:all_reduce", |time| {
                time.kernel_on(1, "ncclKernel", 50);
            });
            time.compute(20, 100);
        })
    };
    assert_eq!(outcome(profile(), "device-idle"), "clean");
    assert_eq!(outcome(profile(), "starvation"), "clean");
}

#[test]
fn counts_and_times_are_of_the_same_events() {
    let profile = training(4, |time, _| {
        time.call("model.py(5): forward", |time| {
            time.compute(60, 4);
            time.compute(1, 400);
        });
        time.synchronize();
    });
    let finding = found(profile, "launch-bound");
    // Large kernels show nothing.
    assert_eq!(finding.count, 4 * 60);
    assert!((finding.per_step - 60.0).abs() < 1e-9);
    assert_eq!(finding.recorded.0, 4 * 60 * 4 * 1_000);
}

// stream   |x||x||x|--a--||--b--|     x was launched before the recording
#[test]
fn work_that_was_launched_before_the_first_step_is_in_none() {
    let profile = training(4, |time, step| {
        for _ in 0..if step == 0 { 6 } else { 0 } {
            time.unlaunched_kernel("bf16_gemm", 4);
        }
        time.call("model.py(5): forward", |time| time.compute(60, 4));
        time.synchronize();
    });
    let finding = found(profile, "launch-bound");
    assert_eq!(finding.count, 4 * 60);
}

#[test]
fn the_largest_cause_comes_first_among_few() {
    let advice = advise(training(6, |time, step| {
        let next = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
        time.range(next, |time| time.idle(5_000));
        for line in 0..40 {
            let function = format!("train.py({line}): part_{line}");
            time.call(&function, |time| time.op("aten::sort", 20));
        }
        time.call("train.py(90): log", |time| {
            time.python("<built-in function print>", 300);
        });
        time.note("CUDA_LAUNCH_BLOCKING", "1");
        time.op("aten::mm", 1_000 + step);
    }));
    assert_eq!(ids(&advice)[0], "data-loading");
    assert!(advice.findings.len() <= MOST_FINDINGS);
    let shares: Vec<f64> = advice.findings.iter().map(|found| found.share).collect();
    let priced: Vec<f64> = shares.into_iter().filter(|&share| share > 0.0).collect();
    assert!(priced.is_sorted_by(|a, b| a >= b), "{priced:?}");
}

// Recording takes 1 % of the step, which is nobody's cause.
#[test]
fn the_profilers_own_cost_is_no_finding() {
    let advice = advise(training(4, |time, _| {
        for _ in 0..10 {
            time.op("aten::mm", 60);
            time.op("aten::add", 60);
            time.op("aten::mul", 60);
        }
    }));
    let share = advice.overhead.share();
    assert!((0.005..0.03).contains(&share), "{share}");
    assert_eq!(ids(&advice), Vec::<&str>::new());
}

// step     |---------------|---------------|     on the CPU
// range    |------|                              the same step on the device
#[test]
fn a_range_of_the_device_does_not_end_a_step() {
    let draw = |has_range: bool| {
        advise(training(4, move |time, step| {
            time.compute(10, 100);
            if has_range {
                time.device_range(&format!("ProfilerStep#{step}"), 400);
            }
            time.synchronize();
        }))
    };
    let (with, without) = (draw(true), draw(false));
    assert_eq!(with.steps, without.steps);
    assert_eq!(with.overhead, without.overhead);
}

// Under the profiler, the CPU takes 40 us for each kernel of 35 us; without it, about 28 us.
#[test]
fn a_host_that_only_the_profiler_makes_late_is_clean() {
    let profile = || {
        training(4, |time, _| {
            for _ in 0..100 {
                time.operator("aten::mm", |time| {
                    time.idle(25);
                    time.kernel("bf16_gemm", 35);
                    time.idle(5);
                });
            }
        })
    };
    for rule in ["device-idle", "launch-bound", "starvation"] {
        assert_eq!(outcome(profile(), rule), "clean", "{rule}");
    }
}

// 97 % of the time belongs to one launch of a graph: the profile cannot tell to which operators.
#[test]
fn a_graph_is_not_passed_over_in_silence() {
    let advice = advise(training(4, |time, _| {
        time.compute(1, 30);
        time.graph("triton_fused_kernel", 970);
    }));
    assert!(ids(&advice).contains(&"opaque-graph"), "{:?}", ids(&advice));
}

#[test]
fn a_healthy_run_has_no_finding() {
    let on_device = advise(training(5, |time, _| {
        time.compute(20, 200);
        time.item();
    }));
    let on_host = advise(training(5, |time, _| {
        for _ in 0..20 {
            time.op("aten::mm", 200);
            time.op("aten::add", 100);
        }
    }));
    for advice in [on_device, on_host] {
        assert!(
            advice.findings.iter().all(|found| found.share < 0.05),
            "{:?}",
            ids(&advice)
        );
    }
}

#[test]
fn each_rule_has_an_id_of_its_own_and_one_outcome() {
    let mut ids: Vec<&str> = RULES.iter().map(|rule| rule.id).collect();
    let advice = advise(training(3, |time, _| time.compute(10, 100)));
    let found: Vec<&str> = advice.findings.iter().map(|found| found.rule.id).collect();
    let merged = advice
        .findings
        .iter()
        .flat_map(|found| found.merged.clone());
    let unknown = advice.unknown.iter().map(|unknown| unknown.rule);
    let mut told: Vec<&str> = found.into_iter().chain(advice.clean.clone()).collect();
    told.extend(merged.chain(unknown));
    told.sort_unstable();
    ids.sort_unstable();
    assert_eq!(told, ids);
    ids.dedup();
    assert_eq!(ids.len(), RULES.len());
}

// One profile that triggers the rule, one just below, and one that looks like it and is not.
#[test]
fn each_rule_has_a_test_that_finds_it_and_two_that_do_not() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/advice/rules");
    for rule in RULES {
        let file = folder.join(rule.id.replace('-', "_")).with_extension("rs");
        let source = std::fs::read_to_string(&file).expect("each rule has a file of its name");
        let tests = source.split("#[cfg(test)]").last().unwrap_or_default();
        let tests: Vec<&str> = tests.split("#[test]").skip(1).collect();
        let is_not_found = |test: &&str| {
            let outcomes = ["\"clean\"", "\"unknown\"", "\"merged\""];
            outcomes.iter().any(|outcome| test.contains(outcome))
        };
        let (without, with): (Vec<&str>, Vec<&str>) = tests.into_iter().partition(is_not_found);
        let id = rule.id;
        assert!(!with.is_empty(), "no test of {id} finds it");
        assert!(
            without.len() >= 2,
            "{} of two tests of {id} do not find it",
            without.len()
        );
    }
}

// The profiler starts before the first step, for longer than all steps together.
#[test]
fn the_profilers_start_is_no_part_of_a_step() {
    let start = "torch/profiler/profiler.py(743): start";
    let profile = program(|time| {
        time.python(start, 300_000);
        for step in 0..4 {
            time.range(&format!("ProfilerStep#{step}"), |time| {
                time.call("train.py(4): step", |time| time.op("aten::mm", 1_000));
            });
        }
    });
    let unrecorded = advise(profile).overhead.unrecorded;
    assert!(
        (Nanos(900_000)..Nanos(1_010_000)).contains(&unrecorded),
        "{unrecorded:?}"
    );
}

// Savings are parts of what the program does after its imports, and so are the times beside them.
#[test]
fn imports_are_no_part_of_a_program_without_steps() {
    let profile = program(|time| {
        time.range("import torch", |time| time.idle(30_000));
        time.call("infer.py(4): main", |time| {
            time.op("aten::mm", 4_000);
            time.python("infer.py(9): parse", 6_000);
        });
    });
    let advice = advise(profile);
    assert!(!advice.has_steps && advice.steps == 1);
    let Overhead {
        recorded,
        unrecorded,
        imports,
        ..
    } = advice.overhead;
    assert_eq!(imports, Nanos(30_000_000));
    assert!(
        (Nanos(9_900_000)..Nanos(10_200_000)).contains(&recorded),
        "{recorded:?}"
    );
    let parsing = (advice.findings.iter()).find(|one| one.rule.id == "python-bound");
    let saved = parsing.expect("parse takes most of the time").time;
    assert!(saved < unrecorded && saved > Nanos(5_000_000), "{saved:?}");
}

#[test]
fn steps_leave_no_imports_out() {
    let advice = advise(training(4, |time, _| {
        time.range("import torch", |time| time.idle(500));
        time.op("aten::mm", 500);
    }));
    assert!(advice.has_steps && advice.overhead.imports == Nanos::ZERO);
}

// The device starts inside of an operator that also waits, and code is loaded inside of a launch.
#[test]
fn starting_the_device_is_no_saving() {
    let profile = program(|time| {
        time.operator("aten::to", |time| {
            time.runtime("cudaDeviceGetStreamPriorityRange", 300_000);
            time.synchronize();
        });
        time.operator("aten::add", |time| time.runtime("cudaLaunchKernel", 50_000));
        for _ in 0..40 {
            time.compute(2, 100);
            time.item();
        }
    });
    let advice = advise(profile);
    for finding in &advice.findings {
        let saved = finding.time;
        assert!(saved < Nanos(20_000_000), "{}: {saved:?}", finding.rule.id);
    }
}
