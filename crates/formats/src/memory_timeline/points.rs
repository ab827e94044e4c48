//! The memory timeline as points: the bytes in each category after every microsecond in which
//! something changed.

use mindprof_analyze::{Analysis, CategoryBytes, MemoryCategory, MemoryChange, MemoryPlace};
use mindprof_model::Nanos;

/// The memory in use over time, of one process on one device.
///
/// The memory page draws its chart from these points. They count blocks only while these were
/// certainly in use, whereas torch's JSON counts them for as long as they may have been.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryPoints {
    /// The times, in microseconds since the Unix epoch. Memory from before the window has the time
    /// of the first change.
    pub times: Vec<u64>,
    /// The bytes in each category after each time.
    pub bytes: Vec<CategoryBytes>,
    /// The bytes that the allocator had handed out beyond that after each time; zero if it does not
    /// report its totals.
    pub unseen: Vec<i64>,
}

impl MemoryPoints {
    /// Computes the points of a place from the blocks that were certainly in use.
    pub fn build(analysis: &Analysis, place: MemoryPlace) -> Self {
        let timeline = analysis.memory_timeline();
        let totals = timeline.totals(analysis, place);
        let mut points = Self::default();
        for point in points_of(analysis, || timeline.certain_changes_in(place)) {
            let unseen = totals
                .as_ref()
                .map(|totals| totals.beyond(point.last, &point.bytes).max(0));
            points.times.push(point.time);
            points.bytes.push(point.bytes);
            points.unseen.push(unseen.unwrap_or_default());
        }
        points
    }
}

/// The memory in use after one microsecond.
pub(super) struct Point {
    /// The microsecond.
    pub(super) time: u64,
    pub(super) bytes: CategoryBytes,
    /// The time of the last change in it; `None` before the window.
    last: Option<Nanos>,
}

/// Returns the points of a place, counting every block for as long as it may have been in use.
pub(super) fn points(analysis: &Analysis, place: MemoryPlace) -> impl Iterator<Item = Point> {
    points_of(analysis, move || {
        analysis.memory_timeline().changes_in(place)
    })
}

/// Returns the points of changes. Changes within the same microsecond become one point.
///
/// ```text
/// changes   (before) a b        c  d d     e
/// points    0        1          2  3       4     0 has the time of 1; a and b share a microsecond
/// ```
fn points_of<'a, I: Iterator<Item = &'a MemoryChange>>(
    analysis: &Analysis,
    changes: impl Fn() -> I,
) -> impl Iterator<Item = Point> {
    let reference = analysis.profile().reference_unix_ns();
    let microseconds = move |nanoseconds: u64| (reference + nanoseconds) / 1000;
    let first = changes().find_map(|change| change.time);
    let first = microseconds(first.map_or(0, |time| time.0));
    let mut bytes = CategoryBytes::default();
    let mut rest = changes().peekable();
    std::iter::from_fn(move || {
        let change = rest.next()?;
        let time = change.time.map(|time| microseconds(time.0));
        change.apply(&mut bytes);
        let mut last = change.time;
        let is_together = |other: Option<u64>| other.map(microseconds) == time;
        while let Some(other) = rest.next_if(|next| is_together(next.time.map(|time| time.0))) {
            other.apply(&mut bytes);
            last = other.time;
        }
        Some(Point {
            time: time.unwrap_or(first),
            bytes,
            last,
        })
    })
}

/// Returns the name of a category in torch's enumeration.
pub const fn memory_category_name(category: MemoryCategory) -> &'static str {
    match category {
        MemoryCategory::Parameter => "PARAMETER",
        MemoryCategory::OptimizerState => "OPTIMIZER_STATE",
        MemoryCategory::Input => "INPUT",
        MemoryCategory::Temporary => "TEMPORARY",
        MemoryCategory::Activation => "ACTIVATION",
        MemoryCategory::Gradient => "GRADIENT",
        MemoryCategory::AutogradDetail => "AUTOGRAD_DETAIL",
        MemoryCategory::Unknown => "UNKNOWN",
    }
}
