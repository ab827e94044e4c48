//! The tracks of an NPU's trace. msprof draws layers of one program as processes; here calls of
//! CANN move to the threads that made them, and tasks to the streams of their device.

use mindprof_model::{DeviceKind, StringTable, ThreadId};

use super::{Label, Tracks};
use crate::ascend::{Layer, device_of_process, process_of};

impl Tracks {
    /// Returns the layer of each track. `None` if no process has a name of msprof's.
    pub(in crate::chrome::collect) fn layers(&self, strings: &StringTable) -> Option<Vec<Layer>> {
        let process_name = |process: Label| {
            let facts = self.process_facts.get(&process);
            facts.and_then(|facts| facts.process_name.as_deref())
        };
        let named = |&process: &Label| process_name(process).and_then(Layer::of_process);
        self.process_facts.keys().find_map(named)?;
        let layer = |&(device, process, thread): &(DeviceKind, Label, Label)| {
            if device != DeviceKind::Cpu {
                return Layer::Program;
            }
            named(&process).unwrap_or_else(|| {
                let thread = self.names.get(&(process, thread));
                let thread = thread.map_or("", |&name| strings.text(name));
                Layer::beside(process_name(process).unwrap_or_default(), thread)
            })
        };
        Some(self.keys.iter().map(layer).collect())
    }

    /// Moves each track to the thread or stream that its layer shows. Returns the new ids by old id.
    pub(in crate::chrome::collect) fn settle_layers(
        &mut self,
        layers: &[Layer],
        strings: &mut StringTable,
    ) -> Vec<ThreadId> {
        let is_named = |process: &Label| {
            let facts = self.process_facts.get(process);
            facts.is_some_and(|facts| facts.process_name.as_deref() == Some("Python"))
        };
        let number = |label: &Label| match label {
            Label::Number(number) => Some(*number),
            Label::Text(_) => None,
        };
        let programs: Vec<i64> = self
            .process_facts
            .keys()
            .filter(|process| is_named(process))
            .filter_map(number)
            .collect();
        let old = std::mem::take(&mut self.keys);
        self.ids.clear();
        self.last = None;
        self.by_prefix.clear();
        let mut moved = Vec::with_capacity(old.len());
        for (&key, layer) in old.iter().zip(layers) {
            let new = self.settled(key, *layer, &programs, strings);
            self.move_facts(key, new);
            let next = ThreadId::from_index(self.keys.len());
            let id = *self.ids.entry(new).or_insert(next);
            if id == next {
                self.keys.push(new);
            }
            moved.push(id);
        }
        moved
    }

    /// Returns the place of a track of a layer.
    fn settled(
        &self,
        key: (DeviceKind, Label, Label),
        layer: Layer,
        programs: &[i64],
        strings: &mut StringTable,
    ) -> (DeviceKind, Label, Label) {
        let (_, Label::Number(process), thread) = key else {
            return key;
        };
        let device = || {
            let facts = self.process_facts.get(&Label::Number(process));
            let sort_index = facts.and_then(|facts| facts.process_sort_index);
            Label::Number(device_of_process(process, sort_index) as i64)
        };
        match layer {
            // Kernels of a trace that was written again.
            Layer::Program if key.0 != DeviceKind::Cpu => (DeviceKind::PrivateUse1, key.1, thread),
            Layer::Program | Layer::Analysis => key,
            Layer::Cann => match process_of(process, programs) {
                Some(program) => (DeviceKind::Cpu, Label::Number(program), thread),
                None => key,
            },
            Layer::Device => (DeviceKind::PrivateUse1, device(), thread),
            // Streams have the numbers, so that collectives need texts.
            Layer::Collectives | Layer::CollectiveParts => {
                let name = self.names.get(&(Label::Number(process), thread)).copied();
                let name = name.unwrap_or_else(|| strings.intern("HCCL"));
                (DeviceKind::PrivateUse1, device(), Label::Text(name))
            }
        }
    }

    /// Keeps what is said about a track where it moves, unless something is said there already.
    fn move_facts(&mut self, old: (DeviceKind, Label, Label), new: (DeviceKind, Label, Label)) {
        let ((_, old_process, old_thread), (_, process, thread)) = (old, new);
        if let Some(&name) = self.names.get(&(old_process, old_thread)) {
            self.names.entry((process, thread)).or_insert(name);
        }
        if let Some(facts) = self.thread_facts.get(&(old_process, old_thread)).cloned() {
            self.thread_facts.entry((process, thread)).or_insert(facts);
        }
        if let Some(facts) = self.process_facts.get(&old_process).cloned() {
            self.process_facts.entry(process).or_insert(facts);
        }
    }
}
