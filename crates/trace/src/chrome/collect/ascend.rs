//! Traces of Ascend NPUs, as msprof and `torch_npu` write them: `trace_view.json`.
//!
//! Their device work has no category, and the names of processes that tell it from CPU work may
//! come last. So events are collected like those of any trace, and settled here when all are known.

use mindprof_model::{Category, DeviceKind, Event, Flags, Metadata, ScopeKind, StringId};
use rustc_hash::FxHashMap;

use self::flows::{FlowKind, FlowSide};
use super::Collector;
use super::facts::entry_of;
use crate::ascend::{Layer, collective_name, is_user_range, is_wait};
use crate::chrome::event::{RawEvent, Rest, Texts};
use crate::chrome::integer::integer_of;
use crate::repairs::Repair;
use crate::scan::inside_quotes;

mod flows;
mod launches;

pub(super) use self::flows::Flows;

impl Collector {
    /// Keeps one end of a flow that `torch_npu` or msprof draws. Returns whether it is one.
    pub(super) fn add_ascend_flow(
        &mut self,
        event: &RawEvent<'_>,
        texts: &Texts,
        rest: &Rest,
    ) -> bool {
        let Some(kind) = FlowKind::of(texts.text(event.category)) else {
            return false;
        };
        let side = match event.phase {
            b's' => FlowSide::Tail,
            b'f' => FlowSide::Head,
            _ => return false,
        };
        let id = entry_of(&rest.fields, "id");
        let Some(id) = integer_of(inside_quotes(&id).unwrap_or(&id)) else {
            return false;
        };
        let Some(time) = self.time(event.start) else {
            return true;
        };
        let strings = &mut self.part.strings;
        let (process, thread) = (event.process, event.thread);
        let thread = self.tracks.track(DeviceKind::Cpu, process, thread, strings);
        self.flows.add(kind, side, id, thread, time);
        true
    }

    /// Gives the events of an NPU's trace their categories and tracks. Other traces are left alone.
    pub(super) fn settle_layers(&mut self) {
        let Some(layers) = self.tracks.layers(&self.part.strings) else {
            return;
        };
        let strings = &self.part.strings;
        let names: Vec<NameClass> = strings.iter().map(NameClass::of).collect();
        let bare = self.collective_names();
        for event in &mut self.events {
            let class = names[event.name.index()];
            let layer = layers[event.thread.index()];
            settle_event(event, layer, class);
            if layer == Layer::Collectives {
                event.name = *bare.get(&event.name).unwrap_or(&event.name);
            }
        }
        let moved = self.tracks.settle_layers(&layers, &mut self.part.strings);
        self.each_thread(|thread| *thread = moved[thread.index()]);
        self.has_device_events = true;
        self.part.metadata.set(Metadata::BACKEND, "\"npu\"");
        self.device = self.device.or(Some(DeviceKind::PrivateUse1));
        // The format has times in quotes, because numbers would lose nanoseconds.
        self.repairs.forget(Repair::StringTimestamp);
    }

    /// Returns the names of collectives without their numbers, by full name.
    fn collective_names(&mut self) -> FxHashMap<StringId, StringId> {
        let strings = &self.part.strings;
        let bare = (0..).map(StringId::from_raw).zip(strings.iter());
        let bare = bare.filter(|(_, name)| collective_name(name) != *name);
        let bare: Vec<(StringId, String)> = bare
            .map(|(id, name)| (id, collective_name(name).to_owned()))
            .collect();
        let strings = &mut self.part.strings;
        bare.into_iter()
            .map(|(id, name)| (id, strings.intern(&name)))
            .collect()
    }
}

/// The meaning of a name in an NPU's trace.
#[derive(Clone, Copy)]
enum NameClass {
    UserRange,
    Wait,
    Any,
}

impl NameClass {
    fn of(name: &str) -> Self {
        match name {
            _ if is_user_range(name) => Self::UserRange,
            _ if is_wait(name) => Self::Wait,
            _ => Self::Any,
        }
    }
}

/// Gives an event the category of its layer, unless the trace states one.
fn settle_event(event: &mut Event, layer: Layer, class: NameClass) {
    let is_uncategorized = event.category == Category::Other;
    match (layer, class) {
        (Layer::Program, NameClass::UserRange) if event.category == Category::Operator => {
            event.category = Category::Annotation;
            event.scope = ScopeKind::User;
        }
        (Layer::Cann, _) if is_uncategorized => event.category = Category::Runtime,
        // The stream waits, as in the events of CUDA's synchronization.
        (Layer::Device | Layer::Collectives, NameClass::Wait) => {}
        (Layer::Device | Layer::Collectives, _) if is_uncategorized => {
            event.category = Category::Kernel;
        }
        (Layer::Analysis | Layer::CollectiveParts, _) => {
            event.flags = event.flags.union(Flags::HIDDEN);
        }
        (Layer::Program | Layer::Cann | Layer::Device | Layer::Collectives, _) => {}
    }
}
