//! The profiler's own cost: the time that recording an event takes from the program.
//!
//! The costs are medians of training runs that were timed with and without a profiler. They depend
//! on who recorded and on what was recorded, which the metadata of a profile tells.

use mindprof_analyze::Analysis;
use mindprof_model::{Category, Metadata, Nanos, RecordedStacks, Recorder};

use crate::charges::switches_profiler;
use crate::replay::is_allocation_call;

/// The time that recording takes per event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RecorderCost {
    operator: Nanos,
    call: Nanos,
    /// A call of a function that is not written in Python.
    built_in: Nanos,
    range: Nanos,
    runtime: Nanos,
    /// A call of the runtime that takes or returns memory.
    allocation: Nanos,
}

/// The names of events whose cost differs from that of others of their category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CostName {
    Allocation,
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
        } else if is_allocation_call(name) {
            Self::Allocation
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

/// The time that a call of the runtime takes longer while torch's collector records devices alone,
/// measured with additions on an H200. A recording of operators by the same collector costs more.
const LAUNCH_BESIDE: Nanos = Nanos(1_300);

impl RecorderCost {
    /// Returns the cost of the recording that a profile came from.
    pub(crate) fn of(metadata: &Metadata, has_device: bool) -> Self {
        if let Some(recorder) = Recorder::read(metadata) {
            let cost = Self::of_observer(recorder);
            return if has_device {
                cost.beside_devices()
            } else {
                cost
            };
        }
        // No cost of the profilers of third-party devices was measured.
        if metadata.get(Metadata::BACKEND).is_some() {
            return Self::default();
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
                allocation: Nanos(60_000),
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
        let metadata = analysis.profile().metadata();
        match Recorder::read(metadata) {
            Some(_) => Self::of(metadata, analysis.accelerator().is_some()),
            None => Self::default(),
        }
    }

    /// Returns the cost of this engine's own recorder: differences between the least times of small
    /// operators with and without it.
    fn of_observer(recorder: Recorder) -> Self {
        let inputs = if recorder.inputs { 200 } else { 0 };
        let memory = if recorder.memory { 120 } else { 0 };
        // The sampler does not stop the program, so estimated calls cost nothing.
        let (stack, call) = match recorder.stacks {
            RecordedStacks::None => (0, Nanos::ZERO),
            RecordedStacks::Sampled => (350, Nanos::ZERO),
            RecordedStacks::Traced => (200, Nanos(370)),
        };
        Self {
            operator: Nanos(300 + inputs + memory + stack),
            call,
            built_in: call,
            range: Nanos(600),
            ..Self::default()
        }
    }

    /// Returns the cost with torch's collector beside the recorder, which records devices alone: it
    /// hears of launches, but of no operator.
    const fn beside_devices(self) -> Self {
        Self {
            runtime: LAUNCH_BESIDE,
            allocation: LAUNCH_BESIDE,
            ..self
        }
    }

    /// Returns the cost of recording an event.
    pub(crate) const fn per_event(&self, category: Category, name: CostName) -> Nanos {
        match (category, name) {
            (Category::Operator, _) => self.operator,
            (Category::PythonFunction, CostName::BuiltIn) => self.built_in,
            (Category::PythonFunction, _) => self.call,
            (Category::Annotation, _) => self.range,
            (Category::Runtime, CostName::Allocation) => self.allocation,
            (Category::Runtime, _) => self.runtime,
            (Category::Kernel | Category::DeviceAnnotation | Category::Other, _) => Nanos::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }

    #[test]
    fn only_calls_that_take_memory_are_slow() {
        assert_eq!(CostName::of("cudaMalloc"), CostName::Allocation);
        assert_eq!(CostName::of("cudaFree"), CostName::Allocation);
        assert_eq!(CostName::of("cudaMallocAsync"), CostName::Other);
        assert_eq!(CostName::of("<built-in method get>"), CostName::BuiltIn);
        let cost = RecorderCost::of(&Metadata::default(), true);
        let call = |name| cost.per_event(Category::Runtime, CostName::of(name));
        assert!(call("cudaMalloc") > call("cudaLaunchKernel"));
    }
}
