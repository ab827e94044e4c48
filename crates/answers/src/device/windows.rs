//! Windows of time that a device is described over: the whole recording and each step.
//!
//! A device runs behind the CPU, so a step of the CPU is not the time that its work takes. The
//! device's step ends with the last work that was launched in the step, and begins where the step
//! before it ends.

use mindprof_model::Nanos;

use super::work::{DeviceWork, Launch};
use crate::steps::Step;

/// Returns the steps of the devices.
///
/// ```text
/// step of the CPU       |------3------|------4------|
/// stream                     |---3---|  |-3-|  |---4---|  |-4-|
/// step of the devices   |---------3---------|------4----------|
/// ```
pub(crate) fn device_steps(steps: &[Step], devices: &[DeviceWork]) -> Vec<Step> {
    let mut order: Vec<Step> = steps.to_vec();
    order.sort_by_key(|step| (step.start, step.end()));
    let mut ends: Vec<Nanos> = order.iter().map(Step::end).collect();
    let step_of = |launch: Launch| {
        let next = order.partition_point(|step| step.start <= launch.start);
        let step = next.checked_sub(1)?;
        (launch.start < order[step].end()).then_some(step)
    };
    // The start of the first work of the first step, and the ends of works outside of all steps.
    let mut first: Option<Nanos> = None;
    let mut outside = Vec::new();
    for work in devices.iter().flat_map(|device| &device.items) {
        let Some(step) = work.launch.and_then(step_of) else {
            outside.push(work.end);
            continue;
        };
        ends[step] = ends[step].max(work.end);
        if step == 0 {
            first = Some(first.map_or(work.start, |first| first.min(work.start)));
        }
    }
    // Work from before the steps delays the first one.
    let earlier = outside
        .into_iter()
        .filter(|end| first.is_some_and(|first| *end <= first));
    let mut before = earlier.max().unwrap_or_default();
    for (step, end) in order.iter_mut().zip(ends) {
        let start = step.start.max(before);
        before = end.max(start);
        (step.start, step.duration) = (start, before - start);
    }
    order
}

/// Windows that do not overlap, sorted by time, each with a value of `T`.
#[derive(Clone, Debug)]
pub(crate) struct Windows<T> {
    pub(crate) windows: Vec<(Step, T)>,
    /// The first window that has not ended before the last time that was asked for.
    next: usize,
}

impl<T: Default> Windows<T> {
    pub(crate) fn new(steps: &[Step]) -> Self {
        Self {
            windows: steps.iter().map(|step| (*step, T::default())).collect(),
            next: 0,
        }
    }

    /// Starts over, for times before the last one.
    pub(crate) fn rewind(&mut self) {
        self.next = 0;
    }

    /// Visits the windows that a time overlaps, with the part of the time that lies in each. Times
    /// come in the order of their beginnings, else [`Self::rewind`] is called before.
    pub(crate) fn visit(
        &mut self,
        begin: Nanos,
        end: Nanos,
        mut visit: impl FnMut(&mut T, Nanos, Nanos),
    ) {
        while (self.windows.get(self.next)).is_some_and(|(window, _)| window.end() <= begin) {
            self.next += 1;
        }
        for (window, value) in &mut self.windows[self.next..] {
            let (from, to) = (begin.max(window.start), end.min(window.end()));
            if from >= to {
                if window.start >= end {
                    break;
                }
                continue;
            }
            visit(value, from, to);
        }
    }

    /// Returns the value of the window that a moment lies in.
    pub(crate) fn at(&mut self, moment: Nanos) -> Option<&mut T> {
        let next = (self.windows).partition_point(|(window, _)| window.start <= moment);
        let (window, value) = self.windows.get_mut(next.checked_sub(1)?)?;
        (moment < window.end()).then_some(value)
    }
}
