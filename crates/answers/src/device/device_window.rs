//! The activity of a device in a window of time.

use mindprof_analyze::microseconds;
use mindprof_model::Nanos;
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::copies::{CopyKind, CopySums, CopyUse};
use super::idle::{IdleCause, IdleTimes};
use super::launches::LaunchDelays;
use super::timeline::ClassSet;
use super::work::WorkItem;
use crate::questions::micros;
use crate::step_split::StepClass;
use crate::steps::Step;

/// The activity of a device in a window of time: the whole recording, all steps together, or one step.
///
/// Times are unions over the streams of the device: a moment counts once, however many works run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceWindow {
    /// The number of the step, if the window is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub number: Option<u64>,
    /// The begin of the window.
    #[serde(rename = "start_us", serialize_with = "micros")]
    pub start: Nanos,
    /// The length of the window, or the sum of several.
    #[serde(rename = "duration_us", serialize_with = "micros")]
    pub duration: Nanos,
    /// The time in which any work ran.
    #[serde(rename = "busy_us", serialize_with = "micros")]
    pub busy: Nanos,
    /// The time in which kernels ran, those of collectives included, as a share of the window. It
    /// never exceeds 1.
    pub utilization: f64,
    /// The time in which each class of work ran, and the times in which they ran together.
    pub classes: ClassTimes,
    /// The idle time by cause. Together with `busy` and `unrecorded` it is the window.
    pub idle: IdleTimes,
    /// The time before the first work, if the launch of that work was not recorded: the device may
    /// have run earlier work. Shares are of the rest of the window.
    #[serde(rename = "unrecorded_us", serialize_with = "micros")]
    pub unrecorded: Nanos,
    /// The estimated share of multiprocessors that had work, over the window, or `None` if no
    /// kernel tells its blocks.
    pub sm_efficiency: Option<f64>,
    /// The estimated share of the resident threads of a multiprocessor that kernels used, weighted
    /// by their durations, or `None` if no kernel tells it.
    pub occupancy: Option<f64>,
    /// The sum of the durations of compute kernels. It exceeds their union if some run together.
    #[serde(rename = "kernels_us", serialize_with = "micros")]
    pub kernels: Nanos,
    /// The part of it whose kernels do not tell their blocks and their occupancy.
    #[serde(rename = "silent_kernels_us", serialize_with = "micros")]
    pub silent_kernels: Nanos,
    /// The part of it whose kernels use tensor cores, by their names.
    #[serde(rename = "tensor_cores_us", serialize_with = "micros")]
    pub tensor_cores: Nanos,
    /// The part of it whose operations were counted.
    #[serde(rename = "counted_us", serialize_with = "micros")]
    pub counted: Nanos,
    /// The floating-point operations of that part.
    pub flops: u64,
    /// The delays between launches and the starts of works.
    pub launches: LaunchDelays,
    /// The greatest number of works in the queue of a stream.
    pub longest_queue: u64,
    /// Copies and fills by direction.
    pub copies: Vec<CopyUse>,
}

impl DeviceWindow {
    /// Returns the part of the window in which the device's work is known.
    pub fn recorded(&self) -> Nanos {
        self.duration.saturating_sub(self.unrecorded)
    }
}

/// The time in which each class of device work ran: compute, communication, copies and fills.
///
/// It keeps one time for each combination of classes, so that every overlap can be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassTimes {
    together: [Nanos; ClassSet::COUNT],
}

impl ClassTimes {
    /// Returns the time in which work of a class ran.
    pub fn of(&self, class: StepClass) -> Nanos {
        self.sum(|set| set.has(class))
    }

    /// Returns the time in which work of both classes ran.
    pub fn overlap(&self, one: StepClass, other: StepClass) -> Nanos {
        self.sum(|set| set.has(one) && set.has(other))
    }

    /// Returns the time in which work of a class ran and no compute kernel did.
    pub fn exposed(&self, class: StepClass) -> Nanos {
        self.sum(|set| set.has(class) && !set.has(StepClass::Kernel))
    }

    /// Returns the time in which kernels ran, those of collectives included.
    pub fn kernels(&self) -> Nanos {
        self.sum(|set| set.has(StepClass::Kernel) || set.has(StepClass::Communication))
    }

    pub(crate) fn add(&mut self, set: ClassSet, time: Nanos) {
        let sum = &mut self.together[set.index()];
        *sum = *sum + time;
    }

    fn sum(&self, is_part: impl Fn(ClassSet) -> bool) -> Nanos {
        let times = self.together.iter().enumerate();
        let parts = times.filter(|(index, _)| is_part(ClassSet::from_index(*index)));
        Nanos(parts.map(|(_, time)| time.0).sum())
    }
}

impl Serialize for ClassTimes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        const KERNEL: StepClass = StepClass::Kernel;
        const COMMUNICATION: StepClass = StepClass::Communication;
        const COPY: StepClass = StepClass::Copy;
        let times = [
            ("compute_us", self.of(KERNEL)),
            ("communication_us", self.of(COMMUNICATION)),
            ("copy_us", self.of(COPY)),
            ("memset_us", self.of(StepClass::Memset)),
            ("exposed_communication_us", self.exposed(COMMUNICATION)),
            ("exposed_copy_us", self.exposed(COPY)),
            (
                "compute_and_communication_us",
                self.overlap(KERNEL, COMMUNICATION),
            ),
            ("compute_and_copy_us", self.overlap(KERNEL, COPY)),
            (
                "communication_and_copy_us",
                self.overlap(COMMUNICATION, COPY),
            ),
        ];
        let mut map = serializer.serialize_map(Some(times.len() + 1))?;
        for (key, time) in times {
            map.serialize_entry(key, &microseconds(time))?;
        }
        map.serialize_entry("together_us", &Together(self))?;
        map.end()
    }
}

/// The times of the combinations of classes that occur: `{"compute": 5.0, "compute+copy": 1.0}`.
struct Together<'a>(&'a ClassTimes);

impl Serialize for Together<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (index, time) in self.0.together.iter().enumerate() {
            if *time > Nanos::ZERO {
                let set = ClassSet::from_index(index);
                let classes = ClassSet::CLASSES
                    .into_iter()
                    .filter(|class| set.has(*class));
                let names: Vec<_> = classes.map(class_name).collect();
                map.serialize_entry(&names.join("+"), &microseconds(*time))?;
            }
        }
        map.end()
    }
}

const fn class_name(class: StepClass) -> &'static str {
    match class {
        StepClass::Kernel => "compute",
        class => class.name(),
    }
}

/// A window in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct WindowSums {
    classes: ClassTimes,
    idle: IdleTimes,
    unrecorded: Nanos,
    /// The time times the share of multiprocessors that had work, and the time that is known of.
    efficiency: f64,
    is_efficiency_known: bool,
    /// The duration of kernels times their occupancy, and their duration.
    occupancy: f64,
    with_occupancy: Nanos,
    kernels: Nanos,
    silent_kernels: Nanos,
    tensor_cores: Nanos,
    counted: Nanos,
    flops: u64,
    delays: Vec<Nanos>,
    unknown_launches: u64,
    longest_queue: u64,
    copies: CopySums,
}

/// Facts about a kernel besides its item.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KernelFacts {
    pub(crate) uses_tensor_cores: bool,
    pub(crate) is_counted: bool,
}

impl WindowSums {
    pub(crate) fn add_busy(&mut self, classes: ClassSet, blocks_per_sm: Option<f64>, time: Nanos) {
        self.classes.add(classes, time);
        if let Some(blocks) = blocks_per_sm {
            self.is_efficiency_known = true;
            self.efficiency += blocks.clamp(0.0, 1.0) * time.0 as f64;
        }
    }

    pub(crate) fn add_idle(&mut self, cause: IdleCause, time: Nanos) {
        self.idle.add(cause, time);
    }

    pub(crate) fn add_unrecorded(&mut self, time: Nanos) {
        self.unrecorded = self.unrecorded + time;
    }

    /// Adds the part of a kernel that lies in the window.
    pub(crate) fn add_kernel(&mut self, item: &WorkItem, facts: KernelFacts, time: Nanos) {
        if let Some(occupancy) = item.arguments.occupancy {
            self.occupancy += occupancy / 100.0 * time.0 as f64;
            self.with_occupancy = self.with_occupancy + time;
        }
        if item.class != StepClass::Kernel {
            return;
        }
        self.kernels = self.kernels + time;
        if item.arguments.blocks_per_sm.is_none() {
            self.silent_kernels = self.silent_kernels + time;
        }
        if facts.uses_tensor_cores {
            self.tensor_cores = self.tensor_cores + time;
        }
        if facts.is_counted {
            self.counted = self.counted + time;
        }
    }

    pub(crate) fn add_flops(&mut self, flops: u64) {
        self.flops = self.flops.saturating_add(flops);
    }

    /// Adds work that begins in the window.
    pub(crate) fn add_start(&mut self, item: &WorkItem, copy: Option<CopyKind>) {
        match item.launch {
            Some(launch) => self.delays.push(item.start.saturating_sub(launch.end)),
            None => self.unknown_launches += 1,
        }
        if let Some(kind) = copy {
            self.copies.add(item, kind);
        }
    }

    pub(crate) fn add_queue(&mut self, length: u64) {
        self.longest_queue = self.longest_queue.max(length);
    }

    pub(crate) fn finish(mut self, window: Step, number: Option<u64>) -> DeviceWindow {
        let recorded = window.duration.saturating_sub(self.unrecorded);
        let recorded = recorded.0.max(1) as f64;
        let busy = self.classes.sum(|_| true);
        DeviceWindow {
            number,
            start: window.start,
            duration: window.duration,
            busy,
            utilization: self.classes.kernels().0 as f64 / recorded,
            classes: self.classes,
            idle: self.idle,
            unrecorded: self.unrecorded,
            sm_efficiency: self
                .is_efficiency_known
                .then_some(self.efficiency / recorded),
            occupancy: (self.with_occupancy > Nanos::ZERO)
                .then(|| self.occupancy / self.with_occupancy.0 as f64),
            kernels: self.kernels,
            silent_kernels: self.silent_kernels,
            tensor_cores: self.tensor_cores,
            counted: self.counted,
            flops: self.flops,
            launches: LaunchDelays::of(&mut self.delays, self.unknown_launches),
            longest_queue: self.longest_queue,
            copies: self.copies.finish(),
        }
    }
}
