//! The tracks of a trace: the process, thread and kind of device of each event.

use mindprof_model::{DeviceKind, Part, PassthroughKind, StringId, StringTable, Thread, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::chrome::event::RawEvent;
use crate::chrome::integer::integer_of;
use crate::chrome::track_facts::{FoundFacts, TrackFacts};
use crate::scan::{decode, inside_quotes};

mod ascend;

/// The tracks so far, with the names and other facts that metadata events give them.
#[derive(Default)]
pub(super) struct Tracks {
    ids: FxHashMap<(DeviceKind, Label, Label), ThreadId>,
    keys: Vec<(DeviceKind, Label, Label)>,
    names: FxHashMap<(Label, Label), StringId>,
    /// Facts about processes and about threads.
    process_facts: FxHashMap<Label, TrackFacts>,
    thread_facts: FxHashMap<(Label, Label), TrackFacts>,
    /// The threads that overflow tracks belong to, by process and track.
    overflow: FxHashMap<(Label, Label), Label>,
    /// The track of the last event, because the next one is usually on it too.
    last: Option<Last>,
    /// The tracks that prefixes of events imply.
    by_prefix: Vec<Option<(DeviceKind, ThreadId)>>,
}

/// The track of the last event and the texts that named it.
struct Last {
    device: DeviceKind,
    process: Box<[u8]>,
    thread: Box<[u8]>,
    id: ThreadId,
}

impl Last {
    fn is(&self, device: DeviceKind, process: &[u8], thread: &[u8]) -> bool {
        self.device == device && *self.thread == *thread && *self.process == *process
    }
}

/// A process or thread as the trace names it: usually a number, sometimes a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Label {
    Number(i64),
    Text(StringId),
}

impl Label {
    fn read(raw: &[u8], strings: &mut StringTable) -> Self {
        if raw.is_empty() {
            return Self::Number(0);
        }
        if let Some(number) = integer_of(raw) {
            return Self::Number(number);
        }
        let (text, _) = decode(inside_quotes(raw).unwrap_or(raw));
        match text.parse() {
            Ok(number) => Self::Number(number),
            Err(_) => Self::Text(strings.intern(&text)),
        }
    }

    /// Returns the text, if it is one.
    fn text(self, strings: &StringTable) -> Option<&str> {
        match self {
            Self::Number(_) => None,
            Self::Text(text) => Some(strings.text(text)),
        }
    }
}

/// Assigns numbers to labels. Texts such as `stream 7`, which Kineto used for device tracks in
/// 2021, contain theirs; other texts get free numbers in alphabetical order, so that the numbers do
/// not depend on the order of events.
fn numbers_of(labels: impl Iterator<Item = Label>, strings: &StringTable) -> FxHashMap<Label, u64> {
    let labels: FxHashSet<Label> = labels.collect();
    let mut numbers = FxHashMap::default();
    let mut texts = Vec::new();
    for &label in &labels {
        match label {
            Label::Number(number) => drop(numbers.insert(label, number as u64)),
            Label::Text(text) => texts.push((strings.text(text), label)),
        }
    }
    texts.sort_unstable_by_key(|(text, _)| *text);
    let mut taken: FxHashSet<u64> = numbers.values().copied().collect();
    let said = texts.extract_if(.., |(text, label)| match stream_number(text) {
        Some(number) if taken.insert(number) => {
            numbers.insert(*label, number);
            true
        }
        Some(_) | None => false,
    });
    said.for_each(drop);
    let free = (1..).filter(|number| !taken.contains(number));
    numbers.extend(texts.into_iter().map(|(_, label)| label).zip(free));
    numbers
}

/// Returns the number in the name of a stream.
fn stream_number(text: &str) -> Option<u64> {
    text.trim_end().strip_prefix("stream ")?.parse().ok()
}

impl Tracks {
    /// Returns the track of an event.
    #[inline]
    pub(super) fn track_of(
        &mut self,
        device: DeviceKind,
        event: &RawEvent<'_>,
        strings: &mut StringTable,
    ) -> ThreadId {
        let Some(prefix) = event.track else {
            return self.track(device, event.process, event.thread, strings);
        };
        match self.by_prefix.get(prefix.index()) {
            Some(&Some((known, id))) if known == device => id,
            Some(_) | None => {
                let id = self.track(device, event.process, event.thread, strings);
                if self.by_prefix.len() <= prefix.index() {
                    self.by_prefix.resize(prefix.index() + 1, None);
                }
                self.by_prefix[prefix.index()] = Some((device, id));
                id
            }
        }
    }

    /// Returns the track of an event with these texts for process and thread.
    pub(super) fn track(
        &mut self,
        device: DeviceKind,
        process: &[u8],
        thread: &[u8],
        strings: &mut StringTable,
    ) -> ThreadId {
        match &self.last {
            Some(last) if last.is(device, process, thread) => last.id,
            Some(_) | None => self.look_up(device, process, thread, strings),
        }
    }

    fn look_up(
        &mut self,
        device: DeviceKind,
        process: &[u8],
        thread: &[u8],
        strings: &mut StringTable,
    ) -> ThreadId {
        let label = Label::read(thread, strings);
        let key = Label::read(process, strings);
        let label = *self.overflow.get(&(key, label)).unwrap_or(&label);
        let key = (device, key, label);
        let next = ThreadId::from_index(self.keys.len());
        let id = *self.ids.entry(key).or_insert(next);
        if id == next {
            self.keys.push(key);
        }
        self.last = Some(Last {
            device,
            process: process.into(),
            thread: thread.into(),
            id,
        });
        id
    }

    /// Assigns the events on a track to the thread `of`. All three are JSON.
    pub(super) fn add_overflow(
        &mut self,
        [process, track, of]: [&str; 3],
        strings: &mut StringTable,
    ) {
        self.last = None;
        self.by_prefix.clear();
        let [process, track, of] =
            [process, track, of].map(|raw| Label::read(raw.as_bytes(), strings));
        self.overflow.insert((process, track), of);
    }

    /// Returns, for each track, whether all of its events were on one track of the file.
    pub(super) fn are_whole(&self) -> Vec<bool> {
        let keys = self.keys.iter();
        let has_overflow = |process: Label, thread: Label| {
            let mut overflow = self.overflow.iter();
            overflow.any(|((of, _), &own)| *of == process && own == thread)
        };
        keys.map(|&(_, process, thread)| !has_overflow(process, thread))
            .collect()
    }

    pub(super) const fn len(&self) -> usize {
        self.keys.len()
    }

    /// Reorders the tracks, CPU threads first, and drops those not in `order`. Returns the new ids
    /// by old id, unless nothing changes.
    pub(super) fn arrange(&mut self, mut order: Vec<ThreadId>) -> Option<Vec<ThreadId>> {
        order.sort_by_key(|track| self.keys[track.index()].0 != DeviceKind::Cpu);
        if order.len() == self.keys.len() && order.is_sorted() {
            return None;
        }
        // Nothing refers to a dropped track.
        let mut moved = vec![ThreadId::from_raw(0); self.keys.len()];
        for (place, track) in order.iter().enumerate() {
            moved[track.index()] = ThreadId::from_index(place);
        }
        self.keys = order.iter().map(|track| self.keys[track.index()]).collect();
        let ids = (0..).map(ThreadId::from_raw);
        self.ids = self.keys.iter().copied().zip(ids).collect();
        Some(moved)
    }

    /// Returns, for each track, whether it is a CPU thread.
    pub(super) fn are_of_cpu(&self) -> Vec<bool> {
        let devices = self.keys.iter().map(|key| key.0);
        devices.map(|device| device == DeviceKind::Cpu).collect()
    }

    /// Sets the name of a thread.
    pub(super) fn name(
        &mut self,
        process: &[u8],
        thread: &[u8],
        name: StringId,
        strings: &mut StringTable,
    ) {
        let process = Label::read(process, strings);
        let thread = Label::read(thread, strings);
        self.names.insert((process, thread), name);
    }

    /// Returns the facts about a process, for modification.
    pub(super) fn process_facts(
        &mut self,
        process: &[u8],
        strings: &mut StringTable,
    ) -> &mut TrackFacts {
        let process = Label::read(process, strings);
        self.process_facts.entry(process).or_default()
    }

    /// Returns the facts about a thread, for modification.
    pub(super) fn thread_facts(
        &mut self,
        process: &[u8],
        thread: &[u8],
        strings: &mut StringTable,
    ) -> &mut TrackFacts {
        let process = Label::read(process, strings);
        let thread = Label::read(thread, strings);
        self.thread_facts.entry((process, thread)).or_default()
    }

    /// Adds the tracks to a part in order. `other_device` is the kind of the devices if it is not
    /// CUDA.
    pub(super) fn add_to(&self, part: &mut Part, other_device: Option<DeviceKind>) {
        let strings = &mut part.strings;
        let processes = numbers_of(self.keys.iter().map(|key| key.1), strings);
        let natives = numbers_of(self.keys.iter().map(|key| key.2), strings);
        // A stream may have the same numbers as a thread, and then has its name.
        let is_of_cpu =
            |process, thread| self.ids.contains_key(&(DeviceKind::Cpu, process, thread));
        for &(device, process, thread) in &self.keys {
            let said = self.names.get(&(process, thread)).copied();
            let on_cpu = device == DeviceKind::Cpu;
            let label = match thread {
                Label::Number(_) if is_of_cpu(process, thread) => StringTable::EMPTY,
                Label::Number(number) => part.strings.intern(&format!("stream {number} ")),
                Label::Text(text) => text,
            };
            part.add_thread(Thread {
                process: processes[&process],
                native: natives[&thread],
                name: said.unwrap_or(label),
                device: other_device.filter(|_| !on_cpu).unwrap_or(device),
            });
        }
        self.keep_facts(part);
    }

    /// Keeps the facts about tracks that a writer would not produce by itself.
    fn keep_facts(&self, part: &mut Part) {
        let (strings, threads) = (&part.strings, part.threads());
        let found = FoundFacts::new(strings, threads);
        let mut kept = Vec::new();
        for (index, &(_, process, thread)) in self.keys.iter().enumerate() {
            let of_thread = self.thread_facts.get(&(process, thread)).cloned();
            let of_process = self.process_facts.get(&process).cloned();
            let mut facts = of_thread
                .unwrap_or_default()
                .or(of_process.unwrap_or_default());
            facts.forget_found(&found.of(index, thread.text(strings)));
            facts.pid = process.text(strings).map(str::to_owned);
            facts.tid = thread.text(strings).map(str::to_owned);
            if facts != TrackFacts::default() {
                kept.push((index, facts));
            }
        }
        for (index, facts) in kept {
            if let Some(text) = part.passthrough.texts.add(&facts.to_text()) {
                part.passthrough.set(PassthroughKind::Track, index, text);
            }
        }
    }
}
