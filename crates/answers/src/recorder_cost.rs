//! The profiler's own cost: the time that recording an event takes from the program.
//!
//! The costs are medians of training runs that were timed with and without a profiler. They depend
//! on who recorded and on what was recorded, which the metadata of a profile tells, and on the speed
//! of the machine, which the pace of this engine's recorder tells, else the launches of kernels.

use mindprof_analyze::Analysis;
use mindprof_model::{Category, Metadata, Nanos, Profile, RecordedStacks, Recorder};

use crate::charges::switches_profiler;

/// The time that recording takes per event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecorderCost {
    operator: Nanos,
    call: Nanos,
    /// A call of a function that is not written in Python.
    built_in: Nanos,
    range: Nanos,
    runtime: Nanos,
    /// The largest part of a function's time that recording may have taken. Small operators in a
    /// loop cost less than others, because everything is in the processor's caches.
    most: Most,
}

/// The largest part of a time that recording takes, in hundredths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Most(u8);

impl Default for Most {
    fn default() -> Self {
        Self(90)
    }
}

/// The names of events whose cost differs from that of others of their category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CostName {
    BuiltIn,
    /// A call by which the program starts, stops or steps a profiler. All of its time is the
    /// profiler's.
    Profiler,
    Other,
}

impl CostName {
    pub(crate) fn of(name: &str) -> Self {
        if name.starts_with("<built-in ") {
            Self::BuiltIn
        } else if switches_profiler(name) {
            Self::Profiler
        } else {
            Self::Other
        }
    }
}

/// The keys of torch's traces for the options of a recording.
const STACKS: &str = "with_stack";
const SHAPES: &str = "record_shapes";
const MEMORY: &str = "profile_memory";

/// The time that a call of the runtime takes longer while devices are recorded beside operators:
/// between 1.3 us in a loop of additions and 2.5 us in a training step on an H200. A recording of
/// operators by torch's collector costs more.
const LAUNCH_BESIDE: Nanos = Nanos(1_600);

/// The cost of recording an operator in a training step on a device, in percent of the cost in a loop
/// of small operators. Between launches, the processor's caches are cold: six training runs on an
/// H200 with shapes, memory and sampled stacks took 0.7 to 3.9 us longer per operator.
const COLD: u64 = 180;

/// The median time of a launch under torch's profiler on the machine whose costs were measured.
const MEASURED_LAUNCH: Nanos = Nanos(7_800);

/// So many launches tell how fast a machine is.
const ENOUGH_LAUNCHES: usize = 20;

/// A recording costs at least this part of what was measured, however fast the machine is.
const LEAST_COST: f64 = 0.25;

/// The pace of the recorder on the machine and in the build whose costs were measured.
const MEASURED_PACE: Nanos = Nanos(36);

/// A recording costs at most so many times what was measured. The pace was measured in a moment,
/// which may have been an unlucky one.
const MOST_COST: f64 = 8.0;

impl RecorderCost {
    /// Returns the cost of the recording that a profile came from, on the machine that made it.
    ///
    /// A machine that launches kernels twice as fast also records twice as fast, under torch's
    /// profiler.
    pub(crate) fn of_profile(profile: &Profile, has_device: bool) -> Self {
        let cost = Self::of(profile.metadata(), has_device);
        if has_device && Recorder::read(profile.metadata()).is_none() {
            cost.scaled(machine_factor(profile))
        } else {
            cost
        }
    }

    /// Returns the cost of a recording. For other collectors, it is the cost on the machine where it
    /// was measured.
    fn of(metadata: &Metadata, has_device: bool) -> Self {
        let is_third_party = metadata.get(Metadata::BACKEND).is_some();
        match Recorder::read(metadata) {
            Some(recorder) if !has_device => {
                return Self::of_observer(recorder).scaled(pace_factor(recorder));
            }
            Some(recorder) if !is_third_party => {
                // The costs beside a device are those of another machine, whose pace is not known.
                let cost = Self::of_observer(recorder).beside_devices();
                return cost.scaled(pace_factor(recorder).max(1.0));
            }
            // No cost of the profilers of third-party devices was measured.
            Some(_) | None if is_third_party => return Self::default(),
            Some(_) | None => {}
        }
        let has = |key: &str| matches!(metadata.get(key), Some("1" | "true"));
        let nanos = |base: u64, shapes: u64, memory: u64, stacks: u64| {
            let part = |key, cost| if has(key) { cost } else { 0 };
            Nanos(base + part(SHAPES, shapes) + part(MEMORY, memory) + part(STACKS, stacks))
        };
        let calls = Self {
            call: Nanos(1_000),
            built_in: Nanos(550),
            ..Self::default()
        };
        // On a device, the driver's callbacks slow down each call of the runtime.
        if has_device {
            Self {
                operator: nanos(1_100, 400, 250, 150),
                range: Nanos(3_000),
                runtime: Nanos(10_000),
                ..calls
            }
        } else {
            Self {
                operator: nanos(450, 200, 150, 100),
                range: Nanos(1_000),
                ..calls
            }
        }
    }

    /// Returns the cost of a recording that this engine started, and nothing for those of others.
    pub(crate) fn of_own(analysis: &Analysis) -> Self {
        let profile = analysis.profile();
        match Recorder::read(profile.metadata()) {
            Some(_) => Self::of_profile(profile, analysis.accelerator().is_some()),
            None => Self::default(),
        }
    }

    fn scaled(self, factor: f64) -> Self {
        let scaled = |cost: Nanos| Nanos((cost.0 as f64 * factor) as u64);
        Self {
            operator: scaled(self.operator),
            call: scaled(self.call),
            built_in: scaled(self.built_in),
            range: scaled(self.range),
            runtime: scaled(self.runtime),
            most: self.most,
        }
    }

    /// Returns the cost of this engine's own recorder: differences between the least times of small
    /// operators with and without it.
    fn of_observer(recorder: Recorder) -> Self {
        let inputs = if recorder.inputs { 200 } else { 0 };
        let memory = if recorder.memory { 120 } else { 0 };
        // The sampler does not stop the program, so estimated calls cost nothing. The parts are those
        // of a loop that reads the numbers of a tensor one by one.
        let (stack, call, most) = match recorder.stacks {
            RecordedStacks::None => (0, Nanos::ZERO, Most(40)),
            RecordedStacks::Sampled => (350, Nanos::ZERO, Most(75)),
            RecordedStacks::Traced => (200, Nanos(370), Most(80)),
        };
        Self {
            operator: Nanos(300 + inputs + memory + stack),
            call,
            built_in: call,
            range: Nanos(600),
            most,
            ..Self::default()
        }
    }

    /// Returns the cost with torch's collector beside the recorder, which records devices alone: it
    /// hears of launches, but of no operator.
    const fn beside_devices(self) -> Self {
        Self {
            operator: Nanos(self.operator.0 * COLD / 100),
            runtime: LAUNCH_BESIDE,
            ..self
        }
    }

    /// Returns the largest part of a function's time that recording may have taken.
    pub(crate) fn most(&self) -> f64 {
        f64::from(self.most.0) / 100.0
    }

    /// Returns the cost of recording an event.
    pub(crate) const fn per_event(&self, category: Category, name: CostName) -> Nanos {
        match (category, name) {
            (Category::Operator, _) => self.operator,
            (Category::PythonFunction, CostName::BuiltIn) => self.built_in,
            (Category::PythonFunction, _) => self.call,
            (Category::Annotation, _) => self.range,
            (Category::Runtime, _) => self.runtime,
            (Category::Kernel | Category::DeviceAnnotation | Category::Other, _) => Nanos::ZERO,
        }
    }
}

/// Returns how many times longer recording took than on the machine whose costs were measured: one
/// if the profile does not tell.
fn pace_factor(recorder: Recorder) -> f64 {
    recorder.pace.map_or(1.0, |pace| {
        (pace.0 as f64 / MEASURED_PACE.0 as f64).clamp(LEAST_COST, MOST_COST)
    })
}

/// Returns the time of a launch in a profile, compared with [`MEASURED_LAUNCH`]. A launch that takes
/// longer may have waited for room in the queue, so it does not tell that a machine is slow.
fn machine_factor(profile: &Profile) -> f64 {
    let strings = profile.strings().iter();
    let is_launch: Vec<bool> = strings.map(|name| name.contains("LaunchKernel")).collect();
    let launches = profile
        .events()
        .iter()
        .filter(|event| event.category == Category::Runtime && is_launch[event.name.index()]);
    let mut times: Vec<u64> = launches.map(|launch| launch.duration.0).collect();
    if times.len() < ENOUGH_LAUNCHES {
        return 1.0;
    }
    let middle = times.len() / 2;
    let (_, &mut median, _) = times.select_nth_unstable(middle);
    (median as f64 / MEASURED_LAUNCH.0 as f64).clamp(LEAST_COST, 1.0)
}

#[cfg(test)]
mod tests {
    use mindprof_model::{DeviceKind, Event, Part, StringTable, Thread};

    use super::*;

    /// Returns the cost of a runtime call in a profile of launches that take so many microseconds.
    fn runtime_cost(launches: usize, micros: u64) -> Nanos {
        let mut part = Part::new();
        let thread = part.add_thread(Thread {
            process: 1,
            native: 1,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        });
        let name = part.strings.intern("cudaLaunchKernel");
        for at in 0..launches as u64 {
            let (start, duration) = (Nanos(at * 100_000), Nanos(micros * 1_000));
            part.add_event(Event::new(Category::Runtime, name, thread, start, duration));
        }
        let profile = part.into_profile().expect("launches follow each other");
        RecorderCost::of_profile(&profile, true).runtime
    }

    #[test]
    fn a_machine_that_launches_faster_records_faster() {
        assert_eq!(runtime_cost(50, 39), Nanos(10_000));
        assert_eq!(runtime_cost(50, 4), Nanos(5_128));
        assert_eq!(runtime_cost(50, 1), Nanos(2_500));
    }

    #[test]
    fn a_few_launches_do_not_tell_the_speed_of_a_machine() {
        assert_eq!(runtime_cost(19, 4), Nanos(10_000));
    }

    #[test]
    fn a_recorder_with_a_slower_pace_costs_more() {
        let operator = |pace| {
            let mut metadata = Metadata::default();
            let recorder = Recorder {
                pace,
                ..Recorder::default()
            };
            recorder.write(&mut metadata);
            RecorderCost::of(&metadata, false).per_event(Category::Operator, CostName::Other)
        };
        assert_eq!(operator(None), Nanos(300));
        assert_eq!(operator(Some(MEASURED_PACE)), Nanos(300));
        assert_eq!(operator(Some(Nanos(4 * MEASURED_PACE.0))), Nanos(1_200));
        assert_eq!(operator(Some(Nanos(1))), Nanos(75));
        assert_eq!(operator(Some(Nanos(1_000_000))), Nanos(2_400));
    }

    #[test]
    fn the_cost_depends_on_what_was_recorded() {
        let mut metadata = Metadata::default();
        let operator = |metadata: &Metadata, has_device| {
            let cost = RecorderCost::of(metadata, has_device);
            cost.per_event(Category::Operator, CostName::Other)
        };
        assert!(operator(&metadata, false) < operator(&metadata, true));
        let plain = operator(&metadata, true);
        metadata.set(SHAPES, "1");
        assert!(operator(&metadata, true) > plain);
        let recorder = Recorder {
            inputs: true,
            ..Recorder::default()
        };
        let launch = |metadata: &Metadata| {
            let cost = RecorderCost::of(metadata, true);
            cost.per_event(Category::Runtime, CostName::Other)
        };
        let by_collector = launch(&metadata);
        recorder.write(&mut metadata);
        assert!(operator(&metadata, false) < plain);
        assert!(operator(&metadata, true) < plain);
        assert!(launch(&metadata) < by_collector);
        // Nobody has measured the profilers of other devices.
        metadata.set(Metadata::BACKEND, "\"npu\"");
        assert_eq!(launch(&metadata), Nanos::ZERO);
        assert_eq!(operator(&metadata, true), Nanos::ZERO);
        assert!(operator(&metadata, false) > Nanos::ZERO);
    }

    // Launches are the yardstick, whatever other calls wait for.
    #[test]
    fn names_tell_built_in_calls() {
        assert_eq!(CostName::of("cudaMalloc"), CostName::Other);
        assert_eq!(CostName::of("<built-in method get>"), CostName::BuiltIn);
    }
}
