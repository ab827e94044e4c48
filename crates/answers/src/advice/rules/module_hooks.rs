//! Hooks run the user's code at every call of a module.

use mindprof_model::{EventId, StringId};
use rustc_hash::FxHashMap;

use crate::advice::facts::Facts;
use crate::advice::rule::{Blame, Evidence, Outcome, Price, Rule};
use crate::completeness::EventKind;

pub(super) const RULE: Rule = Rule {
    id: "module-hooks",
    cause: "hooks run code of yours at every call of a module",
    remedy: "if they only watch, let them return at once in most steps, or remove them: handle.remove()",
    price: Price::replay(0.03, (0.5, 1.1)),
    needs: &[EventKind::Cpu],
    check,
};

/// This many calls in each step are of hooks on several modules.
const MANY: f64 = 4.0;

/// The file whose functions call the hooks of modules, and those functions.
const CALLER: &str = "torch/nn/modules/module.py(";
const CALLERS: [&str; 2] = [": _call_impl", ": inner"];

fn check(facts: &Facts<'_>) -> Outcome {
    let hooks = Hooks::find(facts);
    let mut by_hook: FxHashMap<StringId, Vec<EventId>> = FxHashMap::default();
    for &id in &facts.events {
        if let Some(hook) = hooks.of(facts, id) {
            by_hook.entry(hook).or_default().push(id);
        }
    }
    let outermost = by_hook
        .into_iter()
        .map(|(hook, events)| (hook, facts.outermost(&events)));
    let most = outermost
        .filter(|(_, events)| facts.per_step(events.len()) >= MANY)
        .max_by_key(|(hook, events)| {
            let time: u64 = events.iter().map(|&id| facts.duration(id).0).sum();
            (time, *hook)
        });
    let Some((hook, events)) = most else {
        return Outcome::Clean;
    };
    Outcome::Found(Evidence {
        mending: facts.without(&events),
        events,
        blame: Some(Blame::Frame(hook)),
        ..Evidence::default()
    })
}

/// The functions that modules call as hooks.
struct Hooks {
    /// By stack, the function of the hook that it leads through.
    by_stack: Vec<Option<StringId>>,
}

impl Hooks {
    fn find(facts: &Facts<'_>) -> Self {
        let strings = facts.profile.strings();
        let calls_hooks = facts.names(|name| {
            name.contains(CALLER) && CALLERS.iter().any(|caller| name.ends_with(caller))
        });
        // Modules call their own method `forward` from the same place.
        let may_be_hook: Vec<bool> = strings
            .iter()
            .map(|name| {
                facts
                    .own
                    .place(name)
                    .is_some_and(|place| place.function != "forward")
            })
            .collect();
        let mut frames: Vec<Option<StringId>> = vec![None];
        let mut by_stack: Vec<Option<StringId>> = vec![None];
        for (caller, frame) in facts.profile.stacks().nodes() {
            let is_called =
                frames[caller.index()].is_some_and(|caller| calls_hooks[caller.index()]);
            let hook = (is_called && may_be_hook[frame.index()]).then(|| facts.function_of(frame));
            by_stack.push(by_stack[caller.index()].or(hook.flatten()));
            frames.push(Some(frame));
        }
        Self { by_stack }
    }

    /// Returns the hook that an event happens in. Its call itself is outside of it.
    fn of(&self, facts: &Facts<'_>, id: EventId) -> Option<StringId> {
        self.by_stack[facts.analysis.charged_stack(id).index()]
    }
}

#[cfg(test)]
mod tests {
    use crate::advice::rules::kit::*;

    fn watching(function: &str, calls: usize) -> mindprof_model::Profile {
        training(4, |time, _| {
            time.op("aten::mm", 1_000);
            for layer in 0..calls {
                time.call(&format!("nn.Module: Linear_{layer}"), |time| {
                    time.call("torch/nn/modules/module.py(1780): _call_impl", |time| {
                        time.op("aten::linear", 50);
                        time.call(function, |time| time.op("aten::std", 100));
                    });
                });
            }
        })
    }

    #[test]
    fn hooks_on_many_modules_are_found() {
        let finding = found(watching("train.py(9): watch", 10), "module-hooks");
        assert_eq!(blamed(&finding), "watch");
        assert_saves(&finding, 0.4);
    }

    #[test]
    fn a_hook_on_one_module_is_clean() {
        assert_eq!(
            outcome(watching("train.py(9): watch", 1), "module-hooks"),
            "clean"
        );
    }

    // A module calls its own method from the same place.
    #[test]
    fn the_forward_pass_is_no_hook() {
        let profile = watching("train.py(9): forward", 10);
        assert_eq!(outcome(profile, "module-hooks"), "clean");
    }

    // Libraries use hooks for their own work.
    #[test]
    fn hooks_of_libraries_are_clean() {
        let profile = watching("torch/distributed/fsdp/_hooks.py(9): pre_forward", 10);
        assert_eq!(outcome(profile, "module-hooks"), "clean");
    }
}
