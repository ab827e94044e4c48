//! Conclusions from a profile: which ranges count as work, what a step is, where a training loop
//! waited, and whether one profile got slower than another.
//!
//! Every interface (command line, Python, notebooks) asks this crate, so that all of them give the
//! same answer. Conclusions are data that serialize to JSON; `mindprof_report` puts them into words.
//!
//! ```
//! use mindprof_analyze::{Analysis, GroupBy};
//! use mindprof_answers::{Steps, Work};
//! use mindprof_model::Timeline;
//!
//! let profile = Timeline::draw(|time| {
//!     time.annotation("ProfilerStep#0", |time| time.op("aten::mm", 30));
//!     time.annotation("ProfilerStep#1", |time| time.op("aten::mm", 10));
//! });
//! assert_eq!(Steps::build(&profile).complete().len(), 2);
//!
//! let analysis = Analysis::build(profile);
//! let work = Work::of(&analysis);
//! let rows = work.averages(&analysis, GroupBy::default());
//! assert_eq!(rows.averages.self_cpu_total().0, 40);
//! ```

mod advice;
mod beside;
mod called;
mod captured;
mod charges;
mod code_paths;
mod completeness;
mod component_memory;
mod critical_path;
mod culprit;
mod device;
mod diff;
mod explanation;
mod functions;
mod headline;
mod input_dtypes;
mod labels;
mod last_window;
mod memory_growth;
mod modules;
mod own_code;
mod pictures;
mod questions;
mod recorder_cost;
mod replay;
mod run;
mod sampling;
mod screen;
mod side_ranges;
mod snapshot;
mod source_files;
mod step_growth;
mod step_split;
mod step_times;
mod steps;
mod summary;
mod time_selection;
mod top_operators;
mod verdict;
mod waits;
mod what_if;
mod work;
mod work_classes;

pub use advice::{Advice, Confidence, Finding, Overhead, RULES, Rule, Unknown};
pub use called::Called;
pub use charges::Cost;
pub use code_paths::{CodePath, CodePaths};
pub use completeness::{Completeness, EventKind, Extra, KindLoss};
pub use component_memory::{ComponentAmount, ComponentMemory};
pub use critical_path::{
    Bound, CriticalPath, PathKind, PathOptions, PathPiece, PathRow, PathSplit, StepPath,
};
pub use culprit::Culprit;
pub use device::{
    Card, ClassTimes, CopyDirection, CopyUse, CpuMemory, Device, DeviceStep, DeviceUse,
    DeviceWindow, IdleCause, IdleTimes, KernelUse, LaunchDelays, MathUnits, MatmulDtype,
    NotCounted, OperatorRate, QueueLength, Rate, StreamGaps, StreamUse,
};
pub use diff::{Change, Diff, DiffOptions, Measure, Side, Whole};
pub use explanation::Explanation;
pub use functions::{FunctionCost, Functions, LineCost};
pub use headline::{
    Compiled, Elsewhere, Headline, RUN_FACTS_KEY, RunFacts, StepOperators, Subject, first_findings,
    screen_findings, worth_mending,
};
pub use labels::Label;
pub use last_window::last_window;
pub use memory_growth::{GrownLine, MemoryGrowth};
pub use modules::{ModuleCost, ModuleRows, Modules};
pub use own_code::{OwnCode, SOURCES_KEY, Sources};
pub use pictures::{CallersOf, Pictures, folded_callers};
pub use questions::{QUESTIONS, Question, ask, micros};
pub use replay::{Replay, Replayed, Timing, WhatIf};
pub use run::{RunMarks, RunReport, RunSteps};
pub use sampling::Sampling;
pub use screen::{Screen, ScreenFacts};
pub use side_ranges::{IMPORT_PREFIX, RUN_KEY, SideRanges};
pub use snapshot::{
    DeviceMemory, FreeElsewhere, HeldBy, History, HolderKind, LineHolder, MemoryCurve,
    MemoryMoment, OutOfMemory, Shortage, SnapshotMemory, Space, StackHolder,
};
pub use source_files::{FUNCTIONS_KEY, SourceFile, SourceFiles, SourceFunction};
pub use step_growth::{GrownFunction, Growth};
pub use step_split::{StepClass, StepSplit};
pub use step_times::{SlowStep, StepTime, StepTimes};
pub use steps::{Step, Steps};
pub use summary::{Summary, Track};
pub use time_selection::{NotSelected, TimeSelection};
pub use top_operators::{CodePlace, TopOperator, TopOperators, WideFloats};
pub use verdict::{Doubt, FailOn, Grown, Incomplete, Limit, Refusal, Verdict};
pub use waits::{DataWaits, LateData, LoopTimes, Span, WaitFinding, WorkersStart};
pub use what_if::{
    Changes, LARGEST_FACTOR, Matched, MatchedName, NotChanged, Prediction, ReplayedTimes,
};
pub use work::{ImportTime, LeftOut, LeftOutTotals, Work, WorkRows, WorkTotals, is_python_alone};
pub use work_classes::WorkClasses;
