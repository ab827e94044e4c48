//! The shortest way to a profile and its table.

use mindprof_analyze::Analysis;
use mindprof_answers::Work;
use mindprof_model::Profile;
use mindprof_record::{Options, Session};
use mindprof_report::TableOptions;

/// Runs `action` and returns its result, together with the profile of everything that ran on any
/// thread meanwhile.
///
/// ```
/// use std::thread;
///
/// let ((), profile) = mindprof::profile(mindprof::Options::default(), || {
///     thread::spawn(|| {
///         mindprof::scope!("on another thread");
///     })
///     .join()
///     .unwrap();
/// });
/// assert!(profile.events().iter().any(|event| profile.name(event) == "on another thread"));
/// ```
pub fn profile<T>(options: Options, action: impl FnOnce() -> T) -> (T, Profile) {
    let session = Session::start(options);
    let value = action();
    (value, session.stop().assemble())
}

/// Returns the table of a profile, with one row per name. In a trace of `mindprof run`, imports and
/// step ranges are left out, as in every other table of it.
///
/// ```
/// use mindprof::{Metric, Options, RowOptions, SortBy, TableOptions};
///
/// let ((), profile) = mindprof::profile(Options::default(), || {
///     mindprof::scope!("once");
/// });
/// let options = TableOptions {
///     rows: RowOptions {
///         sort_by: Some(SortBy::Metric(Metric::SelfCpuTimeTotal)),
///         ..RowOptions::default()
///     },
///     ..TableOptions::default()
/// };
/// assert!(mindprof::table(&profile, &options).contains("once"));
/// ```
pub fn table(profile: &Profile, options: &TableOptions) -> String {
    let analysis = Analysis::build(profile.clone());
    let work = Work::of(&analysis);
    let group_by = work.grouping(profile);
    let view = work.view(&analysis, group_by).unwrap_or(analysis);
    let rows = work.averages(&view, group_by).averages;
    mindprof_report::table(&view, &rows, group_by, options)
}
