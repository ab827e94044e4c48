//! The tracks of a trace: which process and thread an event names, and on what kind of device.

use mindprof_model::{DeviceKind, ProfileBuilder, StringId, StringTable, Thread, ThreadId};
use rustc_hash::FxHashMap;

use crate::chrome::event::RawEvent;
use crate::chrome::integer::integer_of;
use crate::scan::{decode, inside_quotes};

/// The tracks so far.
#[derive(Default)]
pub(super) struct Tracks {
    ids: FxHashMap<(DeviceKind, Label, Label), ThreadId>,
    keys: Vec<(DeviceKind, Label, Label)>,
    names: FxHashMap<(Label, Label), StringId>,
    /// The threads that spare tracks belong to, by process and track.
    spare: FxHashMap<(Label, Label), Label>,
    /// Where the last event lay, since the next one mostly lies there too.
    last: Option<Last>,
    /// The tracks that steps say.
    by_step: Vec<Option<(DeviceKind, ThreadId)>>,
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

    /// Returns the number; of a text, the number of the text.
    fn number(self) -> u64 {
        match self {
            Self::Number(number) => number as u64,
            Self::Text(text) => u64::from(text.to_raw()),
        }
    }
}

impl Tracks {
    pub(super) const fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the track that an event lies on.
    #[inline]
    pub(super) fn track_of(
        &mut self,
        device: DeviceKind,
        event: &RawEvent<'_>,
        strings: &mut StringTable,
    ) -> ThreadId {
        let Some(step) = event.track else {
            return self.track(device, event.process, event.thread, strings);
        };
        match self.by_step.get(step.index()) {
            Some(&Some((known, id))) if known == device => id,
            Some(_) | None => {
                let id = self.track(device, event.process, event.thread, strings);
                if self.by_step.len() <= step.index() {
                    self.by_step.resize(step.index() + 1, None);
                }
                self.by_step[step.index()] = Some((device, id));
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
        let label = *self.spare.get(&(key, label)).unwrap_or(&label);
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

    /// Takes what lies on a track for what lies on the thread `of`.
    pub(super) fn add_spare(&mut self, process: i64, track: i64, of: i64) {
        self.last = None;
        self.by_step.clear();
        let [process, track, of] = [process, track, of].map(Label::Number);
        self.spare.insert((process, track), of);
    }

    /// Returns of each track whether all of it stood on one track in the file too.
    pub(super) fn are_whole(&self) -> Vec<bool> {
        let keys = self.keys.iter();
        let has_spare = |process: Label, thread: Label| {
            let mut spare = self.spare.iter();
            spare.any(|((of, _), &own)| *of == process && own == thread)
        };
        keys.map(|&(_, process, thread)| !has_spare(process, thread))
            .collect()
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

    /// Adds the tracks to a profile in their order; `other_device` is what devices are if not
    /// CUDA's.
    pub(super) fn add_to(&self, profile: &mut ProfileBuilder, other_device: Option<DeviceKind>) {
        for &(device, process, thread) in &self.keys {
            let said = self.names.get(&(process, thread)).copied();
            let label = match thread {
                Label::Number(_) => StringTable::EMPTY,
                Label::Text(text) => text,
            };
            let on_host = device == DeviceKind::Cpu;
            profile.add_thread(Thread {
                process: process.number(),
                native: thread.number(),
                name: said.unwrap_or(label),
                device: other_device.filter(|_| !on_host).unwrap_or(device),
            });
        }
    }
}
