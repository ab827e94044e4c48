//! How the devices of a rank were used, as sums that merge.

use std::sync::Arc;

use mindprof_analyze::Analysis;
use mindprof_answers::{Device, DeviceUse, DeviceWindow, IdleCause, StepClass};
use mindprof_model::{Category, DeviceKind, EventId, Nanos};
use rustc_hash::FxHashMap;

use crate::codec::encode_fields;
use crate::histogram::Histogram;

/// The use of the devices of one rank, or of several ranks together.
///
/// A rank mostly has one device. The times of several are added up, each with its own window.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceTotals {
    /// The time from the first to the last work.
    pub span: Nanos,
    /// The time in which any work ran.
    pub busy: Nanos,
    /// The time in which compute kernels ran.
    pub compute: Nanos,
    /// The time in which communication kernels ran.
    pub communication: Nanos,
    /// The part of it in which no compute kernel ran.
    pub exposed: Nanos,
    /// The time in which copies ran.
    pub copies: Nanos,
    /// The time in which fills ran.
    pub fills: Nanos,
    /// The idle time of the recording by cause, in the order of [`IdleCause::ALL`].
    pub idle: [Nanos; IdleCause::ALL.len()],
    /// The delays between the ends of launching calls and the starts of their work.
    pub delays: Histogram,
    /// The number of delays beyond 50 microseconds.
    pub over_50_us: u64,
    /// The number of delays beyond 100 microseconds.
    pub over_100_us: u64,
    /// The number of works whose launch was not recorded.
    pub unknown_launches: u64,
    /// The durations of the launching calls.
    pub calls: Histogram,
}
encode_fields!(DeviceTotals {
    span,
    busy,
    compute,
    communication,
    exposed,
    copies,
    fills,
    idle,
    delays,
    over_50_us,
    over_100_us,
    unknown_launches,
    calls,
});

impl DeviceTotals {
    /// Sums up the devices of a profile, or returns `None` if it has no device work.
    pub(crate) fn build(analysis: &Analysis, device: &Device) -> Option<Self> {
        if device.devices.is_empty() {
            return None;
        }
        let mut totals = Self::default();
        for device in &device.devices {
            totals.add_device(device);
        }
        let (delays, calls) = launches(analysis);
        totals.delays = Histogram::of(delays);
        totals.calls = Histogram::of(calls);
        Some(totals)
    }

    fn add_device(&mut self, device: &DeviceUse) {
        let whole: &DeviceWindow = &device.whole;
        let launches = &whole.launches;
        let mut idle = [Nanos::ZERO; IdleCause::ALL.len()];
        for (cause, time) in whole.idle.iter() {
            idle[cause as usize] = time;
        }
        self.add(&Self {
            span: device.last_end.saturating_sub(device.first_start),
            busy: whole.busy,
            compute: whole.classes.of(StepClass::Kernel),
            communication: whole.classes.of(StepClass::Communication),
            exposed: whole.classes.exposed(StepClass::Communication),
            copies: whole.classes.of(StepClass::Copy),
            fills: whole.classes.of(StepClass::Memset),
            idle,
            over_50_us: launches.over_50_us,
            over_100_us: launches.over_100_us,
            unknown_launches: launches.unknown,
            ..Self::default()
        });
    }

    /// Adds the use of other devices.
    pub(crate) fn add(&mut self, other: &Self) {
        let times = [
            (&mut self.span, other.span),
            (&mut self.busy, other.busy),
            (&mut self.compute, other.compute),
            (&mut self.communication, other.communication),
            (&mut self.exposed, other.exposed),
            (&mut self.copies, other.copies),
            (&mut self.fills, other.fills),
        ];
        for (sum, time) in times
            .into_iter()
            .chain(self.idle.iter_mut().zip(other.idle))
        {
            *sum = sum.saturating_add(time);
        }
        self.delays.add(&other.delays);
        self.calls.add(&other.calls);
        let counts = [
            (&mut self.over_50_us, other.over_50_us),
            (&mut self.over_100_us, other.over_100_us),
            (&mut self.unknown_launches, other.unknown_launches),
        ];
        for (sum, count) in counts {
            *sum = sum.saturating_add(count);
        }
    }

    /// Returns the time between the first and the last work in which nothing ran.
    pub fn idle_in_span(&self) -> Nanos {
        self.span.saturating_sub(self.busy)
    }

    /// Returns the time in which work ran and no compute kernel did.
    pub fn not_compute(&self) -> Nanos {
        self.busy.saturating_sub(self.compute)
    }

    /// Returns the time in which communication and compute ran together.
    pub fn overlap(&self) -> Nanos {
        self.communication.saturating_sub(self.exposed)
    }
}

/// Returns the delay of each work behind its launching call, and the durations of these calls.
fn launches(analysis: &Analysis) -> (Vec<Nanos>, Vec<Nanos>) {
    let profile = analysis.profile();
    let is_cpu = |thread: usize| profile.threads()[thread].device == DeviceKind::Cpu;
    let mut calls: FxHashMap<(usize, u32), (Nanos, Nanos)> = FxHashMap::default();
    let events = || profile.events().iter().enumerate();
    let key = |index: usize, event: &mindprof_model::Event| {
        let correlation = profile.links(EventId::from_index(index))?.correlation;
        (correlation != 0).then(|| (profile.origin(event.thread), correlation))
    };
    for (index, event) in events() {
        if event.category == Category::Runtime
            && is_cpu(event.thread.index())
            && let Some(key) = key(index, event)
        {
            calls.entry(key).or_insert((event.end(), event.duration));
        }
    }
    let (mut delays, mut durations) = (Vec::new(), Vec::new());
    for (index, event) in events() {
        let is_work = event.category == Category::Kernel && !is_cpu(event.thread.index());
        let id = EventId::from_index(index);
        let key = key(index, event).filter(|_| is_work && analysis.is_shown(id));
        if let Some((end, duration)) = key.and_then(|key| calls.get(&key)) {
            delays.push(event.start.saturating_sub(*end));
            durations.push(*duration);
        }
    }
    (delays, durations)
}

/// The gaps of one stream of a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamTotals {
    /// The device as torch names it, such as `cuda:0`.
    pub device: Arc<str>,
    /// The number of the stream.
    pub stream: u64,
    /// The number of its works.
    pub works: u64,
    /// The sum of their durations.
    pub work: Nanos,
    /// The gaps before work that was launched after the work before it had ended.
    pub cpu_wait: Nanos,
    /// The gaps shorter than 30 microseconds before work that was launched in time.
    pub kernel_wait: Nanos,
    /// All other gaps.
    pub other_wait: Nanos,
}
encode_fields!(StreamTotals {
    device,
    stream,
    works,
    work,
    cpu_wait,
    kernel_wait,
    other_wait
});

impl StreamTotals {
    pub(crate) fn build(device: &Device) -> Vec<Self> {
        let streams = device.devices.iter().flat_map(|device| {
            device.streams.iter().map(|stream| Self {
                device: device.device.as_str().into(),
                stream: stream.stream,
                works: stream.works,
                work: stream.work,
                cpu_wait: stream.gaps.cpu_wait,
                kernel_wait: stream.gaps.kernel_wait,
                other_wait: stream.gaps.other,
            })
        });
        let mut streams: Vec<Self> = streams.collect();
        streams.sort_unstable();
        streams
    }
}
