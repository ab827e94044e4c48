//! The tasks of device streams: a kernel, copy or fill is one task.

use std::collections::BTreeSet;

use mindprof_analyze::Analysis;
use mindprof_model::{Category, DeviceKind, EventId, Flags, Nanos};

use super::stages::LONGEST_START;
use super::tasks::NONE;

/// Device work may seem to end a little later than the call that waited for it, because the clocks
/// differ.
pub(super) const CLOCK_ERROR: Nanos = Nanos(2_000);

/// A kernel that begins within this time after the end of work on another stream waited for it.
const RELEASE: Nanos = Nanos(3_000);

/// One in so many works has to begin on an idle stream, for their latencies to be trusted.
pub(super) const FEW: usize = 50;

/// A kernel, copy or fill. Other work of devices is named by its position in start order.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeviceTask {
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    pub(super) event: u32,
    /// The stream.
    pub(super) thread: u32,
    /// The work before it on its stream, or [`NONE`].
    pub(super) before: u32,
    /// The work after it on its stream, or [`NONE`].
    pub(super) after: u32,
    /// The task of the call that launched it, or [`NONE`].
    pub(super) launch: u32,
    /// The work on another stream without whose end it cannot begin, or [`NONE`].
    pub(super) waits_for: u32,
}

/// The work of all devices.
#[derive(Clone, Debug, Default)]
pub(super) struct DeviceTasks {
    /// The work in start order.
    pub(super) tasks: Vec<DeviceTask>,
    /// By stream, its first work.
    pub(super) streams: Vec<(u32, u32)>,
    /// The usual time between the launch of a kernel and its beginning on an idle stream.
    pub(super) launch_latency: Nanos,
}

impl DeviceTasks {
    /// Collects the work of all devices. `launch` returns the task of the call with a correlation id
    /// and when it begins; `visit` gets each work with the time at which it was launched.
    pub(super) fn collect(
        analysis: &Analysis,
        launch: impl Fn(u32) -> Option<(u32, Nanos)>,
        mut visit: impl FnMut(u32, &DeviceTask, Option<Nanos>),
    ) -> Self {
        let profile = analysis.profile();
        if analysis.accelerator().is_none() {
            return Self::default();
        }
        let is_device: Vec<bool> = (profile.threads().iter())
            .map(|thread| thread.device != DeviceKind::Cpu)
            .collect();
        let mut latest = LatestWork::new(profile.threads().len());
        let mut last_launch: Vec<Option<Nanos>> = vec![None; profile.threads().len()];
        let mut latencies: Vec<Nanos> = Vec::new();
        let mut device = Self::default();
        for (index, event) in profile.events().iter().enumerate() {
            let stream = event.thread.index();
            let is_work = event.category == Category::Kernel
                && is_device[stream]
                && !event.flags.contains(Flags::HIDDEN);
            if !is_work {
                continue;
            }
            let number = device.tasks.len() as u32;
            let before = latest.of_stream[stream];
            let before_end = if let Some(before) = device.tasks.get_mut(before as usize) {
                before.after = number;
                Some(before.end)
            } else {
                device.streams.push((stream as u32, number));
                None
            };
            let links = profile.links(EventId::from_index(index));
            let launched = launch(links.map_or(0, |links| links.correlation));
            let launched_at = launched.map(|(_, at)| at);
            // A kernel that was launched long ago and whose stream was idle waited for another
            // stream, if work ended there just before.
            let is_free = before_end.is_none_or(|end| end.saturating_add(RELEASE) < event.start);
            let other = if is_free && device.streams.len() > 1 {
                latest.just_ended(stream, event.start)
            } else {
                NONE
            };
            let was_idle = |at: &Nanos| other == NONE && before_end.is_none_or(|end| end <= *at);
            if let Some(at) = launched_at.filter(was_idle) {
                latencies.push(event.start.saturating_sub(at));
            }
            let task = DeviceTask {
                begin: event.start,
                end: event.end(),
                event: index as u32,
                thread: stream as u32,
                before,
                after: NONE,
                launch: launched.map_or(NONE, |(launch, _)| launch),
                waits_for: other,
            };
            latest.set(stream, number, before_end, task.end);
            // Work whose launch was not recorded belongs to the launch before it, or to the time
            // before the recording.
            let at = launched_at.or(last_launch[stream]);
            last_launch[stream] = at;
            visit(number, &task, at);
            device.tasks.push(task);
        }
        let middle = latencies.len() / 2;
        if !latencies.is_empty() {
            let median = *latencies.select_nth_unstable(middle).1;
            // A device that lags behind all the time shows few latencies, or none that is one.
            let is_rare = latencies.len() * FEW < device.tasks.len();
            device.launch_latency = if is_rare {
                median.min(LONGEST_START)
            } else {
                median
            };
        }
        device
    }
}

/// The latest work of each stream, by its end, so that the number of streams does not matter.
struct LatestWork {
    /// By stream, its latest work, or [`NONE`].
    of_stream: Vec<u32>,
    /// By stream, its position in the order in which streams begin, or [`NONE`].
    positions: Vec<u32>,
    /// The streams in that order.
    streams: Vec<u32>,
    /// The end of the latest work of each stream, and the position of the stream.
    ends: BTreeSet<(Nanos, u32)>,
}

impl LatestWork {
    fn new(threads: usize) -> Self {
        Self {
            of_stream: vec![NONE; threads],
            positions: vec![NONE; threads],
            streams: Vec::new(),
            ends: BTreeSet::new(),
        }
    }

    /// Sets the latest work of a stream. `before_end` is the end of the one before.
    fn set(&mut self, stream: usize, work: u32, before_end: Option<Nanos>, end: Nanos) {
        self.of_stream[stream] = work;
        if let Some(before_end) = before_end {
            self.ends.remove(&(before_end, self.positions[stream]));
        } else {
            self.positions[stream] = self.streams.len() as u32;
            self.streams.push(stream as u32);
        }
        self.ends.insert((end, self.positions[stream]));
    }

    /// Returns the work of another stream that ended just before a time, or [`NONE`].
    fn just_ended(&self, stream: usize, at: Nanos) -> u32 {
        let latest = (at.saturating_add(CLOCK_ERROR), NONE);
        let own = self.positions[stream];
        let mut ended = self.ends.range(..=latest).rev();
        let found = ended.find(|&&(_, position)| position != own);
        found
            .filter(|(end, _)| at.saturating_sub(*end) < RELEASE)
            .map_or(NONE, |&(_, position)| {
                self.of_stream[self.streams[position as usize] as usize]
            })
    }
}
