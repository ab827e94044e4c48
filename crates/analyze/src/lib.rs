//! What a profile means: pure functions from [`mindprof_model::Profile`] to trees and rows.
//!
//! Nothing here reads a clock or a file, or rounds for display: times stay whole nanoseconds.
//!
//! ```
//! use mindprof_analyze::{Analysis, GroupBy, averages};
//! use mindprof_model::{Nanos, Timeline};
//!
//! // step   |--------------------------|   0..60
//! // mul    |----------|      |--------|   0..30, 50..60
//! let profile = Timeline::draw(|time| {
//!     time.scope("step", |time| {
//!         time.op("aten::mul", 30);
//!         time.idle(20);
//!         time.op("aten::mul", 10);
//!     });
//! });
//!
//! let analysis = Analysis::build(profile);
//! let averages = averages(&analysis, GroupBy::default());
//! let sums = |key: &str| averages.rows.iter().find(|row| row.key == key).map(|row| row.sums);
//!
//! let mul = sums("aten::mul").expect("it ran");
//! assert_eq!((mul.count, mul.self_cpu_total), (2, Nanos(40)));
//! let step = sums("step").expect("it ran");
//! assert_eq!((step.cpu_total, step.self_cpu_total), (Nanos(60), Nanos(20)));
//! ```

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
mod launchers;
mod memory_timeline;
mod memory_use;
mod merge;
mod metric;
mod process_time;
mod python_calls;
mod shapes;
mod short_times;
mod slim;
mod source;
mod spans;
mod step_numbers;
mod summary;
mod tree;
mod without_calls;

pub use analysis::{Analysis, Item};
pub use averages::{
    Average, Averages, GroupBy, MEMORY_KEY, OUT_OF_MEMORY_KEY, Percentiles, SummedGroup, Sums,
    averages, averages_of, elapsed_micros, percentiles, sum_by_key, time_inside,
};
pub use children::Children;
pub use correlate::{Correlation, event_number};
pub use device_time::DeviceTimes;
pub use diff::{Change, Diff, DiffOptions, Measure, Side, Whole};
pub use execution::{ExecutionStep, execution};
pub use flops::{Flops, uncounted};
pub use flows::{FlowEnd, FlowKind, FlowSide, Flows};
pub use folded::{Folded, PATH_LEVELS, StackMetric, stack_weights};
pub use host_totals::HostTotals;
pub use keys::Keys;
pub use lanes::{Lanes, OverflowTrack};
pub use memory_timeline::{
    AllocatorTotals, CategoryBytes, MemoryAction, MemoryBlock, MemoryCategory, MemoryChange,
    MemoryDevice, MemoryDoubt, MemoryHolder, MemoryOrigin, MemoryPeak, MemoryPlace,
    MemoryPrecision, MemoryTimeline, UnseenMemory, UntimedMemory,
};
pub use memory_use::{Bytes, MemoryUse};
pub use merge::merge;
pub use metric::{Amount, Amounts, Metric, Unit, microseconds, nanoseconds};
pub use process_time::process_time;
pub use python_calls::{PythonCall, PythonCalls};
pub use shapes::dims;
pub use slim::{Cut, CutReport, Slimmed, slim};
pub use source::{Sources, is_shown_frame, shown_frames};
pub use spans::{Span, spans};
pub use step_numbers::StepNumbers;
pub use summary::{Step, Summary, Track, is_python_alone, steps};
pub use tree::Tree;
pub use without_calls::{stacks_without_calls, without_calls};
