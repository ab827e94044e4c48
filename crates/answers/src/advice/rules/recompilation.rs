//! Steps compile code.

use mindprof_model::Place;

use crate::advice::facts::Facts;
use crate::advice::rule::{Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "recompilation",
    cause: "steps compile code",
    remedy: "torch.compile(model, dynamic=True), and look at TORCH_LOGS=recompiles; run a step of each shape before",
    price: Price::replay(0.02, (0.7, 1.05)),
    needs: &[EventKind::Cpu, EventKind::PythonCall],
    check,
};

/// The ranges in which a compiler times itself.
const TIMED: &str = "(dynamo_timed)";

/// Functions of the compiler. Others in these files run in every call of compiled code.
const COMPILERS: [(&str, &str); 5] = [
    ("torch/_dynamo/convert_frame.py", "_compile"),
    ("torch/_dynamo/convert_frame.py", "compile_inner"),
    ("torch/_inductor/compile_fx.py", "compile_fx"),
    ("torch/_inductor/compile_fx.py", "fx_codegen_and_compile"),
    ("torch/_inductor/async_compile.py", "wait"),
];

pub(super) fn is_compiler(name: &str) -> bool {
    name.ends_with(TIMED)
        || Place::parse(name).is_some_and(|place| {
            (COMPILERS.iter())
                .any(|(file, function)| place.file.ends_with(file) && place.function == *function)
        })
}

/// The calls of an NPU's runtime that compile an operator.
const COMPILING_CALLS: [&str; 2] = ["AscendCL@opCompile", "AscendCL@aclopCompile"];

/// The change to try if an NPU's runtime compiles.
const PRECOMPILED: &str = "torch_npu.npu.set_compile_mode(jit_compile=False) before the model is built: operators then use the kernels that CANN has compiled";

fn is_compiling_call(name: &str) -> bool {
    COMPILING_CALLS.iter().any(|call| name.starts_with(call))
}

fn check(facts: &Facts<'_>) -> Outcome {
    let mut found = facts.named(&facts.ranges, is_compiler);
    found.extend(facts.named(&facts.calls, is_compiler));
    if !found.is_empty() {
        return Outcome::without(facts, facts.outermost(&found));
    }
    let calls = facts.named(&facts.runtime, is_compiling_call);
    match Outcome::without(facts, facts.outermost(&calls)) {
        Outcome::Found(evidence) => Outcome::Found(Evidence {
            remedy: Some(PRECOMPILED),
            ..evidence
        }),
        outcome @ (Outcome::Clean | Outcome::Unknown(_)) => outcome,
    }
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn compiling(name: &str, micros: u64) -> mindprof_model::Profile {
        training(5, |time, _| {
            time.call("train.py(9): step", |time| {
                time.call(name, |time| time.idle(micros));
                time.op("aten::mm", 1_000);
            });
        })
    }

    #[test]
    fn code_that_is_compiled_in_steps_is_found() {
        let profile = compiling("torch/_dynamo/convert_frame.py(700): _compile", 3_000);
        let finding = found(profile, "recompilation");
        assert_eq!(blamed(&finding), "step");
        assert_saves(&finding, 0.75);
    }

    fn compiling_on_npu(call: &str, micros: u64) -> mindprof_model::Profile {
        training(5, |time, _| {
            time.operator("aten::mm", |time| {
                time.runtime(call, micros);
                time.kernel("MatMulV2", 1_000);
            });
            time.synchronize();
        })
    }

    #[test]
    fn operators_that_an_npu_compiles_are_found() {
        let finding = found(
            compiling_on_npu("AscendCL@opCompile", 3_000),
            "recompilation",
        );
        assert!(
            finding.remedy.contains("jit_compile=False"),
            "{}",
            finding.remedy
        );
    }

    #[test]
    fn operators_that_an_npu_finds_compiled_are_clean() {
        for (call, micros) in [("AscendCL@opCompile", 5), ("AscendCL@aclnnMm", 3_000)] {
            assert_eq!(
                outcome(compiling_on_npu(call, micros), "recompilation"),
                "clean"
            );
        }
    }

    #[test]
    fn a_quick_lookup_is_clean() {
        let profile = compiling("torch/_dynamo/convert_frame.py(700): _compile", 10);
        assert_eq!(outcome(profile, "recompilation"), "clean");
    }

    // Compiled code runs in wrappers of the compiler's, in every step.
    #[test]
    fn running_compiled_code_is_clean() {
        let profile = training(5, |time, _| {
            time.call(
                "torch/_dynamo/eval_frame.py(400): compile_wrapper",
                |time| {
                    time.range("Torch-Compiled Region: 0/0", |time| {
                        time.op("CompiledFunction", 1_000);
                    });
                },
            );
        });
        assert_eq!(outcome(profile, "recompilation"), "clean");
    }
}
