//! The modules of a model, `nn.Module`, with what their forward and backward work costs.
//!
//! Backward work counts for the module whose forward operator it belongs to, so that both passes
//! are together.

use std::collections::hash_map::Entry;

use mindprof_analyze::Analysis;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::called::{MODULE_PREFIX, module_class};
use crate::charges::{AllCharges, Charges, Cost};
use crate::questions::json;
use crate::sampling::Sampling;
use crate::work::Work;

/// Whether modules of one class share a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModuleRows {
    /// One row for each class, such as `Linear`.
    #[default]
    Classes,
    /// One row for each instance, such as `Linear_3`.
    Instances,
}

/// The modules of one class, or one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModuleCost {
    /// The class, or with [`ModuleRows::Instances`] the class and the number of the instance in the
    /// order of first calls.
    pub module: String,
    /// The number of instances that were called.
    pub instances: u64,
    /// The number of calls, if they were recorded. Samples do not tell it.
    pub calls: Option<u64>,
    /// The cost of forward and backward work, without that of the modules inside.
    pub own: Cost,
    /// The cost of forward and backward work with that of the modules inside.
    pub total: Cost,
}

/// The modules of a profile by decreasing own cost.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Modules {
    /// The cost of the program: of the main thread and the backward work that it waits for.
    pub total: Cost,
    /// The part of it that runs in no module.
    pub outside: Cost,
    /// The modules.
    pub modules: Vec<ModuleCost>,
}

impl Modules {
    /// Finds the modules of a profile in time linear in its events and stacks.
    pub fn build(analysis: &Analysis, work: &Work, rows: ModuleRows) -> Self {
        let mut charges = AllCharges::build(analysis, work);
        // The model may run on another thread: then that one is what counts.
        let names: Vec<Option<&str>> = analysis
            .profile()
            .strings()
            .iter()
            .map(|frame| module_of(frame, rows))
            .collect();
        let is_module = |charges: &Charges| {
            let mut nodes = charges.nodes.iter().zip(charges.wholes());
            nodes.any(|(node, whole)| {
                names[node.frame.index()].is_some() && whole != Cost::default()
            })
        };
        if !is_module(&charges.main) && is_module(&charges.others) {
            std::mem::swap(&mut charges.main, &mut charges.others);
        }
        let mut found = Self::of(&charges.main, &names);
        if Sampling::read(analysis.profile().metadata()).is_some() {
            for module in &mut found.modules {
                module.calls = None;
            }
        }
        found
    }

    /// Returns the conclusions as JSON. Times are microseconds.
    pub fn json(&self) -> String {
        json(self)
    }

    fn of(charges: &Charges, names: &[Option<&str>]) -> Self {
        let mut found = Self {
            total: charges.total(),
            ..Self::default()
        };
        let mut known: FxHashMap<&str, usize> = FxHashMap::default();
        let mut instances = FxHashSet::default();
        // By node, the module that it is, and the innermost one that it is or runs in.
        let mut keys: Vec<Option<usize>> = Vec::with_capacity(charges.nodes.len());
        let mut inside: Vec<Option<usize>> = Vec::with_capacity(charges.nodes.len());
        for (index, node) in charges.nodes.iter().enumerate() {
            let name = names[node.frame.index()].filter(|_| index > 0);
            let key = name.map(|name| match known.entry(name) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    found.modules.push(ModuleCost {
                        module: name.into(),
                        instances: 0,
                        calls: None,
                        own: Cost::default(),
                        total: Cost::default(),
                    });
                    *entry.insert(found.modules.len() - 1)
                }
            });
            let innermost = key.or_else(|| inside.get(node.caller).copied().flatten());
            if let Some(key) = key {
                let module = &mut found.modules[key];
                module.instances += u64::from(instances.insert(node.frame));
                if node.calls > 0 {
                    module.calls = Some(module.calls.unwrap_or(0) + node.calls);
                }
            }
            match innermost {
                Some(module) => found.modules[module].own.add(node.own),
                None => found.outside.add(node.own),
            }
            keys.push(key);
            inside.push(innermost);
        }
        let totals = charges.sum_wholes(&keys, found.modules.len());
        for (module, total) in found.modules.iter_mut().zip(totals) {
            module.total = total;
        }
        found
            .modules
            .retain(|module| module.total != Cost::default());
        found.modules.sort_by(|a, b| {
            let times = (b.own.time(), b.total.time()).cmp(&(a.own.time(), a.total.time()));
            times.then_with(|| a.module.cmp(&b.module))
        });
        found
    }
}

fn module_of(frame: &str, rows: ModuleRows) -> Option<&str> {
    match rows {
        ModuleRows::Classes => module_class(frame),
        ModuleRows::Instances => frame.strip_prefix(MODULE_PREFIX),
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::{
        Category, DeviceKind, Event, Nanos, Part, ScopeKind, StringTable, Thread, ThreadId,
    };

    use super::*;

    fn event(part: &mut Part, category: Category, name: &str, stack: &[&str]) -> Event {
        let name = part.strings.intern(name);
        let mut event = Event::new(category, name, ThreadId::from_raw(0), Nanos(0), Nanos(0));
        for frame in stack {
            let frame = part.strings.intern(frame);
            event.stack = part.stacks.push(event.stack, frame);
        }
        event
    }

    // Net_0              |----------------------|                    0..50
    //   Linear_0           |------|                                  5..15
    //     aten::linear       |--|                                    8..12, sequence 3
    //   Linear_1                    |------|                         20..40
    // LinearBackward                                |---------|      60..90, sequence 3
    fn modules(rows: ModuleRows) -> Modules {
        modules_of(Part::new(), rows)
    }

    fn modules_of(mut part: Part, rows: ModuleRows) -> Modules {
        part.add_thread(Thread {
            process: 7,
            native: 7,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        });
        let (step, net) = ("train.py(3): step", "nn.Module: Net_0");
        let linears = ["nn.Module: Linear_0", "nn.Module: Linear_1"];
        let call = Category::PythonFunction;
        let spans = [(0, 50), (5, 15), (8, 12), (20, 40), (60, 90)];
        let mut events = [
            event(&mut part, call, net, &[step]),
            event(&mut part, call, linears[0], &[step, net]),
            event(
                &mut part,
                Category::Operator,
                "aten::linear",
                &[step, net, linears[0]],
            ),
            event(&mut part, call, linears[1], &[step, net]),
            event(&mut part, Category::Operator, "LinearBackward0", &[]),
        ];
        for (event, (start, end)) in events.iter_mut().zip(spans) {
            (event.start, event.duration) = (Nanos(start), Nanos(end - start));
        }
        events[2].set_sequence(Some(3));
        events[4].set_sequence(Some(3));
        events[4].scope = ScopeKind::Backward;
        for event in events {
            part.add_event(event);
        }
        let analysis = Analysis::build(part.into_profile().expect("ids are in range"));
        Modules::build(&analysis, &Work::of(&analysis), rows)
    }

    fn costs(modules: &Modules) -> Vec<(&str, u64, u64, u64)> {
        let rows = modules.modules.iter();
        rows.map(|row| {
            (
                row.module.as_str(),
                row.instances,
                row.own.cpu.0,
                row.total.cpu.0,
            )
        })
        .collect()
    }

    #[test]
    fn forward_and_backward_work_of_a_class_are_together() {
        let found = modules(ModuleRows::Classes);
        assert_eq!(costs(&found), [("Linear", 2, 60, 60), ("Net", 1, 20, 80)]);
        assert_eq!(found.modules[0].calls, Some(2));
        assert_eq!(found.modules[0].own.backward, Nanos(30));
        assert_eq!((found.total.cpu, found.outside.cpu), (Nanos(80), Nanos(0)));
    }

    #[test]
    fn samples_tell_no_number_of_calls() {
        let sampling = mindprof_model::Sampling {
            interval_us: 10_000,
            samples: 3,
            main_samples: 3,
            dropped: 0,
        };
        let mut part = Part::new();
        sampling.write(&mut part.metadata);
        let found = modules_of(part, ModuleRows::Classes);
        assert_eq!(found.modules.len(), 2);
        assert!(found.modules.iter().all(|module| module.calls.is_none()));
    }

    #[test]
    fn instances_have_rows_of_their_own_on_request() {
        let found = modules(ModuleRows::Instances);
        let expected = [
            ("Linear_0", 1, 40, 40),
            ("Net_0", 1, 20, 80),
            ("Linear_1", 1, 20, 20),
        ];
        assert_eq!(costs(&found), expected);
    }
}
