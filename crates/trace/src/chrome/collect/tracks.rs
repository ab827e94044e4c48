//! The tracks of a trace: which process and thread an event names, and on what kind of device.

use mindprof_model::{DeviceKind, Part, PassthroughKind, StringId, StringTable, Thread, ThreadId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::chrome::event::RawEvent;
use crate::chrome::integer::integer_of;
use crate::chrome::track_facts::{FoundFacts, TrackFacts};
use crate::scan::{decode, inside_quotes};

/// The tracks so far.
#[derive(Default)]
pub(super) struct Tracks {
    ids: FxHashMap<(DeviceKind, Label, Label), ThreadId>,
    keys: Vec<(DeviceKind, Label, Label)>,
    names: FxHashMap<(Label, Label), StringId>,
    /// What is said of processes, and of threads.
    process_facts: FxHashMap<Label, TrackFacts>,
    thread_facts: FxHashMap<(Label, Label), TrackFacts>,
    /// The threads that overflow tracks belong to, by process and track.
    overflow: FxHashMap<(Label, Label), Label>,
    /// Where the last event lay, since the next one mostly lies there too.
    last: Option<Last>,
    /// The tracks that prefixes say.
    by_prefix: Vec<Option<(DeviceKind, ThreadId)>>,
}

/// A track as the last event named it.
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

/// A process or thread as a trace names it: mostly a number, sometimes a text.
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

/// Returns numbers for labels: texts such as `stream 7`, as Kineto's first year called the tracks of
/// devices, say theirs; other texts get the ones that are free, in the order of the texts, so that
/// they do not depend on the order of the events.
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

/// Returns the number that the name of a stream says.
fn stream_number(text: &str) -> Option<u64> {
    text.trim_end().strip_prefix("stream ")?.parse().ok()
}

impl Tracks {
    /// Returns the track that an event lies on.
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

    /// Returns the track that an event with these texts for process and thread lies on.
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

    /// Takes what lies on a track for what lies on the thread `of`; each is JSON.
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

    /// Returns of each track whether all of it stood on one track in the file too.
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

    /// Puts the tracks into an order, but those of the host first; what is not in it is gone.
    /// Returns by their old ids which they are now, unless all stay as they are.
    pub(super) fn arrange(&mut self, mut order: Vec<ThreadId>) -> Option<Vec<ThreadId>> {
        order.sort_by_key(|track| self.keys[track.index()].0 != DeviceKind::Cpu);
        if order.len() == self.keys.len() && order.is_sorted() {
            return None;
        }
        // Of one that is gone nobody asks.
        let mut moved = vec![ThreadId::from_raw(0); self.keys.len()];
        for (place, track) in order.iter().enumerate() {
            moved[track.index()] = ThreadId::from_index(place);
        }
        self.keys = order.iter().map(|track| self.keys[track.index()]).collect();
        let ids = (0..).map(ThreadId::from_raw);
        self.ids = self.keys.iter().copied().zip(ids).collect();
        Some(moved)
    }

    /// Returns of each track whether it is one of the host's.
    pub(super) fn are_of_host(&self) -> Vec<bool> {
        let devices = self.keys.iter().map(|key| key.0);
        devices.map(|device| device == DeviceKind::Cpu).collect()
    }

    /// Notes how a thread is called.
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

    /// Returns what is said of a process so far, to be added to.
    pub(super) fn process_facts(
        &mut self,
        process: &[u8],
        strings: &mut StringTable,
    ) -> &mut TrackFacts {
        let process = Label::read(process, strings);
        self.process_facts.entry(process).or_default()
    }

    /// Returns what is said of a thread so far, to be added to.
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

    /// Adds the tracks to a part in their order; `other_device` is what devices are if not
    /// CUDA's.
    pub(super) fn add_to(&self, part: &mut Part, other_device: Option<DeviceKind>) {
        let strings = &mut part.strings;
        let processes = numbers_of(self.keys.iter().map(|key| key.1), strings);
        let natives = numbers_of(self.keys.iter().map(|key| key.2), strings);
        // A stream may have the numbers of a thread: then it has the name of that.
        let is_of_host =
            |process, thread| self.ids.contains_key(&(DeviceKind::Cpu, process, thread));
        for &(device, process, thread) in &self.keys {
            let said = self.names.get(&(process, thread)).copied();
            let on_host = device == DeviceKind::Cpu;
            let label = match thread {
                Label::Number(_) if is_of_host(process, thread) => StringTable::EMPTY,
                Label::Number(number) => part.strings.intern(&format!("stream {number} ")),
                Label::Text(text) => text,
            };
            part.add_thread(Thread {
                process: processes[&process],
                native: natives[&thread],
                name: said.unwrap_or(label),
                device: other_device.filter(|_| !on_host).unwrap_or(device),
            });
        }
        self.keep_facts(part);
    }

    /// Keeps what is said of the tracks of a profile and would not be said anew.
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
