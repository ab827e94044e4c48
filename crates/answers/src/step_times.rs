//! How long steps take: percentiles, the classes that their time splits into, and which steps are
//! slow and why.

use mindprof_analyze::{Analysis, Keys, Percentiles};
use mindprof_model::{Category, DeviceKind, Nanos, Profile, StepMark, ThreadId};
use serde::Serialize;

use crate::device::median_device_step;
use crate::own_code::OwnCode;
use crate::questions::{micros, some_micros};
use crate::step_growth::{Growth, growths};
use crate::step_split::{StepClass, StepSplit, split};
use crate::steps::{Step, Steps};

/// The number of steps from which on some of them can be told to be slow.
const ENOUGH_STEPS: usize = 5;

/// A step is slow if it exceeds the median by more than this share of it and by more than this many
/// median absolute deviations.
const SLOW_SHARE: f64 = 0.25;
const SLOW_DEVIATIONS: u64 = 5;

/// Devices are behind if their steps take longer than those of the CPU by more than this part of them.
const BEHIND: u64 = 10;

/// The largest number of slow steps that are explained, the slowest first.
const EXPLAINED: usize = 8;

/// A step and what its time was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StepTime {
    /// The step.
    #[serde(flatten)]
    pub step: Step,
    /// The time of each class. The sum is the duration of the step.
    pub split: StepSplit,
    /// Whether the step is slow.
    pub is_slow: bool,
}

/// A step that took much longer than the median, and what differed in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SlowStep {
    /// The step.
    #[serde(flatten)]
    pub step: Step,
    /// The time by which it exceeds the median step.
    #[serde(rename = "excess_us", serialize_with = "micros")]
    pub excess: Nanos,
    /// The class that grew most in comparison with an average step that is not slow.
    pub class: StepClass,
    /// The time by which the class grew.
    #[serde(rename = "class_excess_us", serialize_with = "micros")]
    pub class_excess: Nanos,
    /// The function and the operator that grew most.
    #[serde(flatten)]
    pub growth: Growth,
}

/// The times of all steps whose beginning is known.
///
/// The first step of a recording with step marks began at an unknown time before, so it is none of
/// them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StepTimes {
    /// The steps, sorted by number.
    pub steps: Vec<StepTime>,
    /// The time of each class in all steps.
    pub split: StepSplit,
    /// The median: half of the steps take at most this long.
    #[serde(rename = "p50_us", serialize_with = "micros")]
    pub p50: Nanos,
    /// 90 % of the steps take at most this long.
    #[serde(rename = "p90_us", serialize_with = "micros")]
    pub p90: Nanos,
    /// 99 % of the steps take at most this long.
    #[serde(rename = "p99_us", serialize_with = "micros")]
    pub p99: Nanos,
    /// The duration of the slowest step.
    #[serde(rename = "max_us", serialize_with = "micros")]
    pub max: Nanos,
    /// The median step on the devices, if they need so much longer than the CPU that its steps say
    /// little about theirs.
    ///
    /// ```text
    /// CPU     |-2-|-3-|-4-|
    /// device      |---2---|---3---|---4---|
    /// ```
    #[serde(rename = "device_p50_us", serialize_with = "some_micros")]
    pub device_p50: Option<Nanos>,
    /// The number of slow steps.
    pub slow_count: usize,
    /// The slowest of the slow steps, in this order.
    pub slow: Vec<SlowStep>,
    /// Whether Python calls were recorded. Otherwise the class `idle` contains Python code too.
    pub has_python: bool,
    /// The step that ended first, if its beginning is unknown.
    pub first: Option<Step>,
}

impl StepTimes {
    /// Splits the steps of a profile in time linear in the number of events and steps.
    pub fn build(analysis: &Analysis, own: &OwnCode) -> Self {
        let profile = analysis.profile();
        let steps = Steps::build(profile);
        let first = steps.first_of_marks();
        let known = &steps.complete()[usize::from(first.is_some())..];
        let has_python =
            (profile.events().iter()).any(|event| event.category == Category::PythonFunction);
        let Some(loop_thread) = loop_thread(profile).filter(|_| !known.is_empty()) else {
            return Self {
                has_python,
                first,
                ..Self::default()
            };
        };
        let splits = split(analysis, known, loop_thread);
        let mut durations: Vec<Nanos> = known.iter().map(|step| step.duration).collect();
        let percentiles = Percentiles::of(&mut durations);
        let least = slow_from(&durations, percentiles.p50);
        let mut all = StepSplit::default();
        let mut times = Vec::with_capacity(known.len());
        for (step, split) in known.iter().zip(&splits) {
            all.add_all(split);
            times.push(StepTime {
                step: *step,
                split: *split,
                is_slow: least.is_some_and(|least| step.duration > least),
            });
        }
        Self {
            slow_count: times.iter().filter(|time| time.is_slow).count(),
            slow: explain(analysis, own, &times, percentiles.p50, loop_thread),
            steps: times,
            split: all,
            p50: percentiles.p50,
            p90: percentiles.p90,
            p99: percentiles.p99,
            max: percentiles.max,
            device_p50: median_device_step(analysis, known)
                .filter(|median| median.0 > percentiles.p50.0 + percentiles.p50.0 / BEHIND),
            has_python,
            first,
        }
    }

    /// Returns the percentiles beyond the median that people are told, and the longest time.
    pub fn tail(&self) -> Vec<(&'static str, Nanos)> {
        let percentiles = Percentiles {
            p50: self.p50,
            p90: self.p90,
            p99: self.p99,
            max: self.max,
        };
        let told = percentiles.told(self.steps.len());
        told.chain([("longest", self.max)]).collect()
    }
}

/// Returns the thread that makes the steps: the one with their ranges, otherwise the main thread,
/// which on Linux has the number of its process.
pub(crate) fn loop_thread(profile: &Profile) -> Option<ThreadId> {
    if StepMark::read(profile.metadata()).is_empty() {
        let is_step: Vec<bool> = (profile.strings().iter())
            .map(|name| Keys::step_number(name).is_some())
            .collect();
        let is_range = |category| category == Category::Annotation;
        let mut events = profile.events().iter();
        let range = events.find(|event| is_step[event.name.index()] && is_range(event.category));
        if let Some(event) = range {
            return Some(event.thread);
        }
    }
    let on_cpu = |id: ThreadId| profile.threads()[id.index()].device == DeviceKind::Cpu;
    let mut events = profile.events().iter().map(|event| event.thread);
    let first = events.find(|&thread| on_cpu(thread))?;
    let process = profile.threads()[first.index()].process;
    let threads = profile.threads().iter();
    let main = threads.enumerate().find(|(_, thread)| {
        thread.device == DeviceKind::Cpu && (thread.process, thread.native) == (process, process)
    });
    Some(main.map_or(first, |(index, _)| ThreadId::from_index(index)))
}

/// Returns the duration beyond which a step is slow, or `None` if there are too few steps.
fn slow_from(durations: &[Nanos], median: Nanos) -> Option<Nanos> {
    if durations.len() < ENOUGH_STEPS {
        return None;
    }
    let mut deviations: Vec<Nanos> = (durations.iter())
        .map(|time| Nanos(time.0.abs_diff(median.0)))
        .collect();
    let deviation = Percentiles::of(&mut deviations).p50;
    let share = (SLOW_SHARE * median.0 as f64) as u64;
    let beyond = share.max(deviation.0.saturating_mul(SLOW_DEVIATIONS));
    Some(Nanos(median.0.saturating_add(beyond)))
}

fn explain(
    analysis: &Analysis,
    own: &OwnCode,
    times: &[StepTime],
    median: Nanos,
    loop_thread: ThreadId,
) -> Vec<SlowStep> {
    let mut slow: Vec<&StepTime> = times.iter().filter(|time| time.is_slow).collect();
    slow.sort_by_key(|time| std::cmp::Reverse(time.step.duration));
    slow.truncate(EXPLAINED);
    if slow.is_empty() {
        return Vec::new();
    }
    let usual: Vec<&StepTime> = times.iter().filter(|time| !time.is_slow).collect();
    let mut average = StepSplit::default();
    for time in &usual {
        average.add_all(&time.split);
    }
    let count = (usual.len() as u64).max(1);
    let slow_steps: Vec<Step> = slow.iter().map(|time| time.step).collect();
    let usual_steps: Vec<Step> = usual.iter().map(|time| time.step).collect();
    let growths = growths(analysis, own, &slow_steps, &usual_steps, loop_thread);
    let explained = slow.into_iter().zip(growths).map(|(time, growth)| {
        let excess = |class: StepClass| {
            let usually = average.time(class).0 / count;
            Nanos(time.split.time(class).0.saturating_sub(usually))
        };
        let mut classes = StepClass::ALL;
        classes.sort_by_key(|&class| std::cmp::Reverse(excess(class)));
        SlowStep {
            step: time.step,
            excess: time.step.duration.saturating_sub(median),
            class: classes[0],
            class_excess: excess(classes[0]),
            growth,
        }
    });
    explained.collect()
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    /// Draws steps of these lengths, in which `save` takes all that exceeds ten.
    fn drawn(lengths: &[u64]) -> StepTimes {
        let profile = Timeline::draw(|time| {
            for (number, &length) in lengths.iter().enumerate() {
                time.annotation(&format!("ProfilerStep#{number}"), |time| {
                    time.op("aten::mm", 10);
                    if length > 10 {
                        let call = Category::PythonFunction;
                        time.event(call, "train.py(7): save", |time| time.idle(length - 10));
                    }
                });
            }
        });
        StepTimes::build(&Analysis::build(profile), &OwnCode::default())
    }

    #[test]
    fn a_slow_step_is_explained_by_what_grew() {
        let times = drawn(&[10, 10, 11, 10, 10, 40, 10]);
        assert_eq!(
            (times.p50, times.p90, times.max),
            (Nanos(10), Nanos(40), Nanos(40))
        );
        assert_eq!(times.slow_count, 1);
        let slow = &times.slow[0];
        assert_eq!((slow.step.number, slow.excess), (5, Nanos(30)));
        assert_eq!(
            (slow.class, slow.class_excess),
            (StepClass::Python, Nanos(30))
        );
        let function = slow.growth.function.as_ref().unwrap();
        assert_eq!(
            (function.file.as_str(), function.function.as_str()),
            ("train.py", "save")
        );
        assert_eq!(function.time, Nanos(30));
    }

    #[test]
    fn few_or_even_steps_have_no_slow_one() {
        assert_eq!(drawn(&[10, 40]).slow_count, 0);
        assert_eq!(drawn(&[10, 11, 12, 11, 10, 12]).slow_count, 0);
        assert!(drawn(&[]).steps.is_empty());
    }
}
