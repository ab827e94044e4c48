//! How devices were used: busy and idle time with its causes, overlap, copies, launches, and rates
//! against the limits of the device.
//!
//! The work is that of the profile's device streams, the launches are the runtime calls with the
//! same correlation ids. `mindprof_report` puts the answer into words.

mod arguments;
mod by_correlation;
mod cards;
mod copies;
mod counts;
mod device_window;
#[cfg(test)]
mod drawing;
mod idle;
mod launches;
mod properties;
mod rates;
mod streams;
mod tensor_cores;
mod timeline;
mod windows;
mod work;

use mindprof_analyze::Analysis;
use mindprof_model::{DeviceKind, Nanos};
use serde::Serialize;

use crate::beside::{beside, each};
use crate::questions::micros;
use crate::step_split::{StepSplit, split};
use crate::step_times::loop_thread;
use crate::steps::{Step, Steps};

pub(crate) use arguments::{is_in_number, value_of};
pub(crate) use by_correlation::ByCorrelation;
pub use cards::{Card, MathUnits};
pub use copies::{CopyDirection, CopyUse, CpuMemory};
pub use device_window::{ClassTimes, DeviceWindow};
pub use idle::{IdleCause, IdleTimes};
pub use launches::LaunchDelays;
pub use rates::{KernelUse, MatmulDtype, NotCounted, OperatorRate, Rate};
pub use streams::{QueueLength, StreamGaps, StreamUse};

use copies::CopyKinds;
use device_window::WindowSums;
use idle::visit_causes;
pub(crate) use properties::DeviceProperties;
use rates::Rates;
use timeline::{State, visit_stretches};
use windows::{Windows, device_steps};
use work::DeviceWork;

/// The use of all devices of a profile. It has no devices if the profile has no device work.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Device {
    /// The devices, sorted by source, kind and index.
    pub devices: Vec<DeviceUse>,
    /// Whether the profile is one of an NPU, if there is no device.
    #[serde(skip)]
    pub is_of_npu: bool,
    /// The steps as the devices see them, in time order.
    pub steps: Vec<DeviceStep>,
    /// The time of each class in all of these steps.
    pub split: StepSplit,
}

/// A step as the devices see it: until the last work that was launched in it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DeviceStep {
    /// The step, with the times of the devices.
    #[serde(flatten)]
    pub step: Step,
    /// The time of each class, of devices and of the CPU. The sum is the duration of the step.
    pub split: StepSplit,
}

/// The use of one device.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceUse {
    /// The device as torch names it, such as `cuda:0`.
    pub device: String,
    /// The rank of its process, if the profile has several.
    pub rank: Option<u32>,
    /// The name of its model, if the profile tells.
    pub name: Option<String>,
    /// The limits of the model, if they are known.
    pub card: Option<Card>,
    /// The start of its first work.
    #[serde(rename = "first_start_us", serialize_with = "micros")]
    pub first_start: Nanos,
    /// The end of its last work.
    #[serde(rename = "last_end_us", serialize_with = "micros")]
    pub last_end: Nanos,
    /// Its activity in the whole recording.
    pub whole: DeviceWindow,
    /// Its activity in all steps together, if there are any.
    pub in_steps: Option<DeviceWindow>,
    /// Its activity in each step.
    pub each_step: Vec<DeviceWindow>,
    /// Its streams.
    pub streams: Vec<StreamUse>,
    /// Its compute kernels by name, by decreasing time.
    pub kernels: Vec<KernelUse>,
    /// Matrix products, convolutions and attention by the dtype of their inputs.
    pub matmul: Vec<MatmulDtype>,
    /// Operators whose operations are counted, by decreasing time.
    pub operators: Vec<OperatorRate>,
    /// Operators whose operations are not counted, by decreasing time.
    pub not_counted: Vec<NotCounted>,
}

impl Device {
    /// Returns the median duration of a step on the devices; `None` if they worked in no step.
    pub fn median_step(&self) -> Option<Nanos> {
        median_duration(self.steps.iter().map(|device| device.step.duration))
    }

    /// Describes the devices of a profile in time nearly linear in the number of events.
    pub fn build(analysis: &Analysis) -> Self {
        let profile = analysis.profile();
        let works = DeviceWork::collect(analysis);
        if works.is_empty() {
            return Self {
                is_of_npu: profile.device_name(DeviceKind::PrivateUse1) == "npu",
                ..Self::default()
            };
        }
        let steps = Steps::build(profile);
        let known = &steps.complete()[usize::from(steps.first_of_marks().is_some())..];
        let steps = device_steps(known, &works);
        let properties = DeviceProperties::read(profile.metadata());
        let (devices, splits) = beside(
            || {
                each(&works, |work| {
                    DeviceUse::build(analysis, work, &steps, &properties)
                })
            },
            || {
                let thread = loop_thread(profile).filter(|_| !steps.is_empty());
                let splits = thread.map(|thread| split(analysis, &steps, thread));
                splits.unwrap_or_default()
            },
        );
        let mut all = StepSplit::default();
        for split in &splits {
            all.add_all(split);
        }
        Self {
            devices,
            is_of_npu: false,
            steps: steps
                .into_iter()
                .zip(splits)
                .map(|(step, split)| DeviceStep { step, split })
                .collect(),
            split: all,
        }
    }
}

/// Returns the median duration of these steps on the devices, without describing them otherwise;
/// `None` if no device did any work.
pub(crate) fn median_device_step(analysis: &Analysis, steps: &[Step]) -> Option<Nanos> {
    analysis.accelerator()?;
    let works = DeviceWork::collect(analysis);
    if works.is_empty() {
        return None;
    }
    let steps = device_steps(steps, &works);
    median_duration(steps.iter().map(|step| step.duration))
}

fn median_duration(durations: impl Iterator<Item = Nanos>) -> Option<Nanos> {
    let mut durations: Vec<Nanos> = durations.collect();
    durations.sort_unstable();
    durations.get(durations.len().checked_sub(1)? / 2).copied()
}

impl DeviceUse {
    fn build(
        analysis: &Analysis,
        work: &DeviceWork,
        steps: &[Step],
        properties: &[DeviceProperties],
    ) -> Self {
        let profile = analysis.profile();
        let items = &work.items;
        let known = properties.iter().find(|known| known.id == work.key.index);
        let card = known.and_then(DeviceProperties::card);
        let mut sums = UseSums::new(profile.span(), steps);
        sums.add_stretches(items);
        let mut kinds = CopyKinds::default();
        for item in items {
            let copy = kinds.of(profile, item);
            sums.at_start(item.start, |window| window.add_start(item, copy));
        }
        sums.rewind();
        let rates = Rates::build(analysis, items, card.as_ref(), |item, facts, flops| {
            sums.during(item.start, item.end, |window, time| {
                window.add_kernel(item, facts, time);
            });
            if flops > 0 {
                sums.at_start(item.start, |window| window.add_flops(flops));
            }
        });
        let streams = StreamUse::build(profile, items, |begin, end, length| {
            sums.anywhere(begin, end, |window| window.add_queue(length));
        });
        let (whole, in_steps, each_step) = sums.finish();
        Self {
            device: format!("{}:{}", profile.device_name(work.key.kind), work.key.index),
            rank: work.rank,
            name: known.map(|known| known.name.clone()),
            card,
            first_start: items.first().map_or(Nanos::ZERO, |item| item.start),
            last_end: items.iter().map(|item| item.end).max().unwrap_or_default(),
            whole,
            in_steps,
            each_step,
            streams,
            kernels: rates.kernels,
            matmul: rates.matmul,
            operators: rates.operators,
            not_counted: rates.not_counted,
        }
    }
}

/// The windows of a device in the making: the whole recording, all steps, and each step.
struct UseSums {
    whole: WindowSums,
    span: Nanos,
    in_steps: WindowSums,
    each_step: Windows<WindowSums>,
}

impl UseSums {
    fn new(span: Nanos, steps: &[Step]) -> Self {
        Self {
            whole: WindowSums::default(),
            span,
            in_steps: WindowSums::default(),
            each_step: Windows::new(steps),
        }
    }

    fn add_stretches(&mut self, items: &[work::WorkItem]) {
        let span = self.span;
        visit_stretches(items, span, |stretch| match stretch.state {
            State::Busy {
                classes,
                blocks_per_sm,
            } => self.during(stretch.begin, stretch.end, |window, time| {
                window.add_busy(classes, blocks_per_sm, time);
            }),
            // Work that was launched before the recording has begun runs after such work: the device
            // was not idle before it, but its work was not recorded.
            State::Idle { next: Some(next) }
                if stretch.begin == Nanos::ZERO && next.launch.is_none() =>
            {
                self.during(stretch.begin, stretch.end, WindowSums::add_unrecorded);
            }
            State::Idle { next } => {
                visit_causes(stretch.begin, stretch.end, next, |begin, end, cause| {
                    self.during(begin, end, |window, time| window.add_idle(cause, time));
                });
            }
        });
    }

    /// Adds a time to every window that it overlaps. Times come in the order of their beginnings.
    fn during(&mut self, begin: Nanos, end: Nanos, mut add: impl FnMut(&mut WindowSums, Nanos)) {
        add(&mut self.whole, end.saturating_sub(begin));
        let in_steps = &mut self.in_steps;
        self.each_step.visit(begin, end, |window, from, to| {
            add(window, to - from);
            add(in_steps, to - from);
        });
    }

    /// Adds what happens at a moment to every window that it lies in.
    fn at_start(&mut self, moment: Nanos, mut add: impl FnMut(&mut WindowSums)) {
        add(&mut self.whole);
        if let Some(window) = self.each_step.at(moment) {
            add(window);
            add(&mut self.in_steps);
        }
    }

    /// Adds something to every window that a time overlaps, or touches if it is empty. Times may
    /// come in any order.
    fn anywhere(&mut self, begin: Nanos, end: Nanos, mut add: impl FnMut(&mut WindowSums)) {
        add(&mut self.whole);
        let windows = &mut self.each_step.windows;
        let first = windows.partition_point(|(window, _)| window.end() <= begin);
        let inside = windows[first..]
            .iter_mut()
            .take_while(|(window, _)| window.start < end);
        for (_, window) in inside {
            add(window);
            add(&mut self.in_steps);
        }
    }

    fn rewind(&mut self) {
        self.each_step.rewind();
    }

    fn finish(self) -> (DeviceWindow, Option<DeviceWindow>, Vec<DeviceWindow>) {
        let window = |start, duration| Step {
            number: 0,
            start,
            duration,
        };
        let steps = self.each_step.windows;
        let whole = self.whole.finish(window(Nanos::ZERO, self.span), None);
        let start = steps.first().map(|(step, _)| step.start);
        let all = Nanos(steps.iter().map(|(step, _)| step.duration.0).sum());
        let in_steps = start.map(|start| self.in_steps.finish(window(start, all), None));
        let each = steps
            .into_iter()
            .map(|(step, sums)| sums.finish(step, Some(step.number)))
            .collect();
        (whole, in_steps, each)
    }
}

#[cfg(test)]
mod tests;
