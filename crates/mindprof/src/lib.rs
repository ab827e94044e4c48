//! mindprof for programs without Python: open scopes, record a profile, print its table and write
//! its trace.
//!
//! ```
//! use mindprof::{Options, TableOptions};
//!
//! fn work(rounds: u64) -> u64 {
//!     mindprof::scope!("work");
//!     (0..rounds).map(|round| round * round).sum()
//! }
//!
//! let (sum, profile) = mindprof::profile(Options::default(), || work(10) + work(100));
//! assert_eq!(sum, 285 + 328_350);
//! let table = mindprof::table(&profile, &TableOptions::default());
//! assert!(table.contains("work"));
//!
//! let path = std::env::temp_dir().join(format!("mindprof-{}.json.gz", std::process::id()));
//! mindprof::write_trace_file(&profile, &path)?; // for Perfetto, chrome://tracing and `mindprof`
//! let again = mindprof::read_trace_file(&path)?; // reads what torch.profiler wrote, too
//! assert_eq!(again.events().len(), 2);
//! # std::fs::remove_file(&path).unwrap();
//! # Ok::<(), mindprof::Error>(())
//! ```
//!
//! The other crates have an example each: `mindprof_model` defines a profile, `mindprof_record`
//! records one, `mindprof_trace` reads and writes trace files, `mindprof_analyze` computes the
//! event tree and rows, `mindprof_answers` draws conclusions from them, and `mindprof_formats` and
//! `mindprof_report` write the results for programs and for people.
//!
//! A framework with operators of its own records them through [`host`].
//!
//! This crate is a thin facade; its re-exports are documented in the crates that define them.

pub mod host;
mod profile;
mod scope;

pub use mindprof_analyze::{Analysis, Average, Averages, GroupBy, Metric, Sums, averages};
pub use mindprof_answers::{Step, Steps, Work, WorkRows};
pub use mindprof_formats::{RowOptions, SortBy};
pub use mindprof_model::{Event, Loss, LossCause, Nanos, Profile};
pub use mindprof_record::{Options, Scope, Session};
pub use mindprof_report::{TableOptions, TimeUnit};
pub use mindprof_trace::{Error, Result, read_trace_file, write_perfetto_file, write_trace_file};
pub use profile::{profile, table};

/// The expansion of [`scope!`]: not an interface.
#[doc(hidden)]
pub mod expansion {
    pub use mindprof_record::{Site, scope};
}
