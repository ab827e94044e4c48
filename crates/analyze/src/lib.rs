//! What a profile means: pure functions from [`mindprof_model::Profile`] to trees and rows.
//!
//! Nothing here reads a clock or a file, or rounds for display: times stay whole nanoseconds.

mod analysis;
mod averages;
mod children;
mod correlate;
mod device_time;
mod diff;
mod execution;
mod flops;
mod flows;
mod folded;
mod forward;
mod host_totals;
mod keys;
mod lanes;
mod memory_timeline;
mod memory_use;
mod merge;
mod metric;
mod python_calls;
mod shapes;
mod short_times;
mod slim;
mod source;
mod step_numbers;
mod summary;
mod tree;

pub use analysis::{Analysis, Item};
pub use averages::{
    Average, Averages, GroupBy, MEMORY_KEY, OUT_OF_MEMORY_KEY, Percentiles, SummedGroup, Sums,
    averages, averages_of, elapsed_micros, percentiles, sum_by_key,
};
pub use children::Children;
pub use correlate::{Correlation, event_number};
pub use device_time::DeviceTimes;
pub use diff::{Change, Diff, DiffOptions, Measure, Whole};
pub use execution::{ExecutionStep, execution};
pub use flops::{Flops, uncounted};
pub use flows::{FlowEnd, FlowKind, FlowSide, Flows};
pub use folded::{Folded, StackMetric, stack_weights};
pub use forward::{is_backward_wrapper, wrapped_node};
pub use host_totals::HostTotals;
pub use keys::Keys;
pub use lanes::{Lanes, OverflowTrack};
pub use memory_timeline::{
    AllocatorTotals, CategoryBytes, MemoryAction, MemoryBlock, MemoryCategory, MemoryChange,
    MemoryDevice, MemoryHolder, MemoryPeak, MemoryTimeline, UnseenMemory,
};
pub use memory_use::{Bytes, MemoryUse};
pub use merge::merge;
pub use metric::{Amount, Amounts, Metric, Unit, microseconds, nanoseconds};
pub use python_calls::{PythonCall, PythonCalls, module_number};
pub use shapes::dims;
pub use slim::{Cut, CutReport, Slimmed, slim};
pub use source::{Sources, is_shown_frame, shown_frames};
pub use step_numbers::StepNumbers;
pub use summary::{Step, Summary, Track, steps};
pub use tree::Tree;
