//! Analyses of a profile: pure functions from [`mindprof_model::Profile`] to trees, rows, links
//! between events, memory timelines and stacks.
//!
//! Nothing here reads a clock or a file, or rounds for display. Times are whole nanoseconds, except
//! for a few sums that are kept as floating-point microseconds as well ([`Sums::cpu_micros`] and
//! its kin): torch adds floats, and reproducing its tables to the last digit takes its rounding
//! errors.
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
mod links;
mod memory;
mod parts;
mod rows;
mod stacks;
mod tree;

pub use analysis::{Analysis, Item};
pub use links::correlate::Correlation;
pub use links::event_number::event_number;
pub use links::execution::{ExecutionStep, execution};
pub use links::flows::{FlowEnd, FlowKind, FlowSide, Flows};
pub use memory::host_totals::HostTotals;
pub use memory::memory_timeline::{
    CategoryBytes, MemoryAction, MemoryCategory, MemoryChange, MemoryDevice, MemoryDoubt,
    MemoryHolder, MemoryOrigin, MemoryPeak, MemoryPlace, MemoryPrecision, MemoryTimeline,
    UnseenMemory,
};
pub use memory::memory_use::Bytes;
pub use memory::tensor_numbers::{NodeTensors, SeenTensor, TensorNumbers};
pub use parts::merge::merge;
pub use parts::slim::{Cut, CutReport, SLIM_KEY, Slimmed, slim};
pub use rows::averages::{
    Average, Averages, GroupBy, Percentiles, ToldPercentile, averages, averages_of, percentiles,
    time_inside,
};
pub use rows::estimates::Margin;
pub use rows::flops::{Flops, uncounted};
pub use rows::keys::{Keys, MEMORY_KEY, OUT_OF_MEMORY_KEY};
pub use rows::metric::{Amount, Amounts, Metric, Unit};
pub use rows::micros::{elapsed_micros, microseconds, nanoseconds};
pub use rows::shapes::dims;
pub use rows::sum_by_key::sum_by_key;
pub use rows::sums::Sums;
pub use stacks::folded::{Folded, PATH_LEVELS, PathPart, StackMetric, stack_weights};
pub use stacks::source::{is_shown_frame, shown_frames};
pub use tree::call_tree::CallTree;
pub use tree::event_tree::Tree;
pub use tree::lanes::Lanes;
pub use tree::process_time::process_time;
pub use tree::python_calls::{PythonCall, PythonCalls};
pub use tree::spans::spans;
pub use tree::without_calls::{stacks_without_calls, without_calls};
