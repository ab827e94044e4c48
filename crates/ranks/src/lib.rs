//! Distributed jobs: one trace per rank becomes one small summary, summaries merge, and answers come
//! from the merged whole.
//!
//! Any `map` over the files followed by [`Ranks::merge`] gives the same answer: threads, processes,
//! a cluster, or parts that were written to files. No crate here reads a file.

mod alignment;
mod answer;
mod arrivals;
mod clocks;
mod codec;
mod collectives;
mod communication;
mod completeness;
mod device_totals;
mod differences;
mod error;
mod excess;
mod exposed;
mod findings;
mod histogram;
mod identity;
mod label;
mod lateness;
mod matched;
mod median;
mod own_times;
mod pipeline;
mod rank_set;
mod ranks;
mod roster;
mod rows;
mod runs;
mod slow_steps;
mod step_grid;
mod stragglers;
mod summary;
mod usage;

pub use alignment::Alignment;
pub use answer::{JobAnswer, JobClocks, JobStep, JobSteps, RankAdvice, RankClock};
pub use collectives::{Collective, CollectiveKind};
pub use communication::{CollectiveRow, Communication, StepSkew, WorstCollective};
pub use device_totals::{DeviceTotals, StreamTotals};
pub use differences::{Differences, FactDifference, RowDifference};
pub use error::{Error, Result};
pub use findings::{JOB_RULES, JobFinding, JobFindings, JobRule, UnknownJobRule};
pub use histogram::Histogram;
pub use identity::{Group, Identity, RankSource};
pub use label::RankLabel;
pub use own_times::Cause;
pub use pipeline::Bubble;
pub use ranks::Ranks;
pub use roster::Roster;
pub use rows::{Row, RowKind};
pub use slow_steps::{Blame, SlowJobStep};
pub use step_grid::{GridCell, GridStep, StepGrid};
pub use stragglers::{SlowHost, Straggler, Stragglers};
pub use summary::{Fault, MemoryPeaks, RankFinding, RankStep, RankSummary, Source, Sureness};
pub use usage::{DeviceTimes, JobDevices, JobKernel, RankDevice, RankMemory};
