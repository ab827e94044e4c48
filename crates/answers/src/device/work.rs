//! The work of each device, with the runtime calls that launched it.
//!
//! Work is a kernel, a copy or a fill ([`Category::Kernel`]). Ranges that are drawn on a stream
//! (`gpu_user_annotation`) and waits of the CPU (`cuda_sync`) are no work.

use mindprof_analyze::Analysis;
use mindprof_model::{Category, DeviceKind, Event, EventId, Flags, Nanos, Profile, ThreadId};
use rustc_hash::FxHashMap;

use super::arguments::{ArgumentsWalk, WorkArguments};
use super::by_correlation::ByCorrelation;
use crate::replay::{is_pageable_copy, waited_for_copy};
use crate::step_split::StepClass;
use crate::work_classes::WorkClasses;

/// One kernel, copy or fill.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkItem {
    pub(crate) id: EventId,
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    /// Kernel, copy, memset or communication.
    pub(crate) class: StepClass,
    pub(crate) stream: ThreadId,
    pub(crate) arguments: WorkArguments,
    /// The call that launched it, if it was recorded.
    pub(crate) launch: Option<Launch>,
}

impl WorkItem {
    pub(crate) fn duration(&self) -> Nanos {
        self.end.saturating_sub(self.start)
    }
}

/// The runtime call that launched some work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    /// The time that the CPU spent in synchronizing calls since the launch before.
    pub(crate) held_up: Nanos,
    /// Whether the thread made the stream wait for an event since its last launch on it.
    pub(crate) is_after_wait: bool,
}

/// A device of a profile: its source, its kind and its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DeviceKey {
    pub(crate) origin: usize,
    pub(crate) kind: DeviceKind,
    pub(crate) index: u64,
}

/// The work of one device in start order.
#[derive(Clone, Debug)]
pub(crate) struct DeviceWork {
    pub(crate) key: DeviceKey,
    pub(crate) rank: Option<u32>,
    pub(crate) items: Vec<WorkItem>,
}

impl DeviceWork {
    /// Collects the work of all devices in time linear in the number of events. Devices are sorted
    /// by source, kind and index.
    pub(crate) fn collect(analysis: &Analysis) -> Vec<Self> {
        let profile = analysis.profile();
        let is_work = |id: EventId, event: &Event| {
            event.category == Category::Kernel
                && analysis.device(id) != DeviceKind::Cpu
                && !event.flags.contains(Flags::HIDDEN)
        };
        let mut works = Works::new(profile);
        let mut arguments = ArgumentsWalk::new(profile);
        for (id, event) in (0..).map(EventId::from_index).zip(profile.events()) {
            if is_work(id, event) {
                works.counts[event.thread.index()] += 1;
            }
        }
        for (id, event) in (0..).map(EventId::from_index).zip(profile.events()) {
            if is_work(id, event) {
                works.add(profile, id, event, arguments.at(id.index()));
            }
        }
        if !works.devices.is_empty() {
            works.find_launches(profile);
        }
        let mut devices = works.devices;
        devices.sort_by_key(|device| device.key);
        devices
    }
}

/// Devices in the making.
struct Works {
    classes: WorkClasses,
    devices: Vec<DeviceWork>,
    /// By device, its position.
    places: FxHashMap<DeviceKey, usize>,
    /// By stream, the number of its works. Lists that grow would take up to twice the room.
    counts: Vec<usize>,
    /// By stream, the position of its device or [`NONE`].
    positions: Vec<usize>,
    /// The works with a correlation id, and the ids.
    launched: Vec<Launched>,
    correlations: Vec<u32>,
}

/// The position of no device.
const NONE: usize = usize::MAX;

/// A work that a call launched.
#[derive(Clone, Copy, Debug)]
struct Launched {
    device: u32,
    item: u32,
}

impl Works {
    fn new(profile: &Profile) -> Self {
        Self {
            classes: WorkClasses::build(profile),
            devices: Vec::new(),
            places: FxHashMap::default(),
            counts: vec![0; profile.threads().len()],
            positions: vec![NONE; profile.threads().len()],
            launched: Vec::new(),
            correlations: Vec::new(),
        }
    }

    fn add(&mut self, profile: &Profile, id: EventId, event: &Event, arguments: WorkArguments) {
        if self.positions[event.thread.index()] == NONE {
            self.positions[event.thread.index()] = self.device_of(profile, event.thread);
        }
        let device = self.positions[event.thread.index()];
        let items = &mut self.devices[device].items;
        let correlation = profile.links(id).map_or(0, |links| links.correlation);
        if correlation != 0 {
            self.correlations.push(correlation);
            self.launched.push(Launched {
                device: device as u32,
                item: items.len() as u32,
            });
        }
        items.push(WorkItem {
            id,
            start: event.start,
            end: event.end(),
            class: self.classes.of(id, event),
            stream: event.thread,
            arguments,
            launch: None,
        });
    }

    /// Returns the position of a stream's device, which is added if it is new.
    fn device_of(&mut self, profile: &Profile, stream: ThreadId) -> usize {
        let key = |stream: ThreadId| {
            let thread = profile.threads()[stream.index()];
            DeviceKey {
                origin: profile.origin(stream),
                kind: thread.device,
                index: thread.process,
            }
        };
        let (counts, device) = (self.counts.iter().enumerate(), key(stream));
        *self.places.entry(device).or_insert_with(|| {
            let streams = counts.map(|(stream, count)| (ThreadId::from_index(stream), count));
            let of_device = streams.filter(|&(stream, _)| key(stream) == device);
            self.devices.push(DeviceWork {
                key: device,
                rank: profile.rank(stream),
                items: Vec::with_capacity(of_device.map(|(_, count)| count).sum()),
            });
            self.devices.len() - 1
        })
    }

    fn find_launches(&mut self, profile: &Profile) {
        let kinds: Vec<CallKind> = profile.strings().iter().map(CallKind::of).collect();
        let mut calls = Calls::new(profile.threads().len());
        let table = ByCorrelation::build(&self.correlations);
        for (index, event) in profile.events().iter().enumerate() {
            let is_call = event.category == Category::Runtime;
            if !is_call || profile.threads()[event.thread.index()].device != DeviceKind::Cpu {
                continue;
            }
            let origin = profile.origin(event.thread);
            let links = profile.links(EventId::from_index(index));
            let correlation = links.map_or(0, |links| links.correlation);
            match table.get(correlation) {
                None => calls.note(kinds[event.name.index()], origin, event),
                Some(first) => {
                    let item = self.item(first);
                    if item.launch.is_none() {
                        item.launch = Some(calls.launch(profile, event, item));
                    }
                }
            }
        }
        // All works of a call have its launch, such as those of a graph.
        for position in 0..self.launched.len() {
            let first = table.get(self.correlations[position]);
            let launch = first.and_then(|first| self.item(first).launch);
            self.item(position).launch = launch;
        }
    }

    /// Returns the work at a position among those with a correlation id.
    fn item(&mut self, position: usize) -> &mut WorkItem {
        let Launched { device, item } = self.launched[position];
        &mut self.devices[device as usize].items[item as usize]
    }
}

/// The effect of a runtime call that launches nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallKind {
    /// The CPU waits for a stream, an event or a device.
    Synchronize,
    /// A stream is told to wait for an event.
    StreamWait,
    Other,
}

impl CallKind {
    fn of(name: &str) -> Self {
        if name.contains("ynchronize") {
            Self::Synchronize
        } else if name.contains("StreamWaitEvent") {
            Self::StreamWait
        } else {
            Self::Other
        }
    }
}

/// The calls of all CPU threads, followed in start order.
#[derive(Debug)]
struct Calls {
    /// By source, the synchronizing calls since the last launch.
    synchronizing: FxHashMap<usize, Vec<(Nanos, Nanos)>>,
    /// By CPU thread, whether it has launched work.
    is_launching: Vec<bool>,
    /// By CPU thread, the start of the last wait of a stream.
    waits: Vec<Option<Nanos>>,
    /// By stream, the start of the last launch on it.
    launches: Vec<Option<Nanos>>,
}

impl Calls {
    fn new(threads: usize) -> Self {
        Self {
            synchronizing: FxHashMap::default(),
            is_launching: vec![false; threads],
            waits: vec![None; threads],
            launches: vec![None; threads],
        }
    }

    fn note(&mut self, kind: CallKind, origin: usize, call: &Event) {
        match kind {
            // A thread that launches nothing, such as one that watches collectives, holds nothing up.
            CallKind::Synchronize if self.is_launching[call.thread.index()] => {
                let synchronizing = self.synchronizing.entry(origin).or_default();
                synchronizing.push((call.start, call.end()));
            }
            CallKind::StreamWait => {
                self.waits[call.thread.index()] = Some(call.start);
            }
            CallKind::Synchronize | CallKind::Other => {}
        }
    }

    /// Returns the launch of some work by a call.
    ///
    /// ```text
    /// CPU      |-launch-|  |--synchronize--|     |-launch-|
    ///                      '---------------'               held up for so long
    /// stream        |----work----|                   |----work----|
    /// ```
    fn launch(&mut self, profile: &Profile, call: &Event, work: &WorkItem) -> Launch {
        let origin = profile.origin(call.thread);
        let synchronizing = self.synchronizing.entry(origin).or_default();
        let (mut held_up, mut until) = (Nanos::ZERO, Nanos::ZERO);
        for &(begin, end) in synchronizing.iter() {
            let (begin, end) = (begin.max(until), end.min(call.start));
            held_up = held_up + end.saturating_sub(begin);
            until = until.max(end);
        }
        synchronizing.retain(|&(_, end)| end > call.start);
        let is_awaited = || {
            let is_pageable = is_pageable_copy(profile.name(profile.event(work.id)));
            waited_for_copy(call.end(), (work.start, work.end), is_pageable)
        };
        if work.class == StepClass::Copy && is_awaited() {
            synchronizing.push((call.start, call.end()));
        }
        self.is_launching[call.thread.index()] = true;
        let before = self.launches[work.stream.index()].replace(call.start);
        let wait = self.waits[call.thread.index()];
        Launch {
            start: call.start,
            end: call.end(),
            held_up,
            is_after_wait: wait.is_some_and(|wait| before.is_none_or(|before| wait >= before)),
        }
    }
}
