//! The timeline as points: how much there was of each category after each microsecond in which
//! something changed.

use mindprof_analyze::{Analysis, CategoryBytes, MemoryCategory, MemoryChange, MemoryPlace};
use mindprof_model::Nanos;

/// Times and sizes of one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryPoints {
    /// The times, in microseconds since the Unix epoch. What was there before the window shares
    /// the first time.
    pub times: Vec<u64>,
    /// The bytes by category after each time.
    pub bytes: Vec<CategoryBytes>,
    /// What the allocator had handed out beyond that after each time; nothing where it does not
    /// tell.
    pub unseen: Vec<i64>,
}

impl MemoryPoints {
    /// Collects the points of a place, of what was certainly in use.
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

/// How much there was after one microsecond.
pub(super) struct Point {
    /// The microsecond.
    pub(super) time: u64,
    pub(super) bytes: CategoryBytes,
    /// When the last change in it was; none before the window.
    last: Option<Nanos>,
}

/// Walks the points of a place, with every block for as long as it may have been there.
pub(super) fn points(analysis: &Analysis, place: MemoryPlace) -> impl Iterator<Item = Point> {
    points_of(analysis, move || {
        analysis.memory_timeline().changes_in(place)
    })
}

/// Walks the points of changes. Changes within one microsecond are one point.
///
/// ```text
/// changes   (before) a b        c  d d     e
/// points    0        1          2  3       4     0 shares the time of 1, in whose microsecond a and b are
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

/// Returns the name of a category, as torch's enumeration has it.
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
