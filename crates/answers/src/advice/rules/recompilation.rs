//! Steps compile code.

use mindprof_model::Place;

use crate::advice::facts::Facts;
use crate::advice::rule::{Outcome, Price, Rule};
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

fn check(facts: &Facts<'_>) -> Outcome {
    let mut found = facts.named(&facts.ranges, is_compiler);
    found.extend(facts.named(&facts.calls, is_compiler));
    Outcome::without(facts, facts.outermost(&found))
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
