//! Steps of a training loop, defined once for listings, cuts, data frames and the report of a run.
//!
//! A profile records steps in one of two ways. `prof.step()` under a schedule opens a range named
//! `ProfilerStep#N` around each step. Without a schedule, and in `mindprof run`, steps are marks
//! ([`StepMark`]): a mark ends one step and begins the next.

use mindprof_analyze::Keys;
use mindprof_model::{Category, Nanos, Profile, StepMark};
use serde::Serialize;

use crate::questions::micros;
use crate::side_ranges::SideRanges;

/// One step of a training loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The number of the step.
    pub number: u64,
    /// The time at which it began, since the profile's reference time.
    #[serde(rename = "start_us", serialize_with = "micros")]
    pub start: Nanos,
    /// The duration of the step.
    #[serde(rename = "duration_us", serialize_with = "micros")]
    pub duration: Nanos,
}

impl Step {
    /// Returns the time at which it ended.
    pub fn end(&self) -> Nanos {
        self.start + self.duration
    }
}

/// The steps of a profile, from marks or from ranges.
///
/// A recording may begin and end in the middle of a step, so complete steps are kept apart from the
/// one that was open at the end.
///
/// ```text
/// marks               1        2        3
/// recording   |-------|--------|--------|-----|
/// steps           0        1        2      3 is open: it has not ended
/// ```
#[derive(Clone, Debug, Default, Serialize)]
pub struct Steps {
    complete: Vec<Step>,
    open: Option<Step>,
    #[serde(skip)]
    is_marked: bool,
    /// The steps that began, in time order, with their numbers.
    #[serde(skip)]
    starts: Vec<(Nanos, u64)>,
    /// The number of the step that was running before the first start.
    #[serde(skip)]
    before: u64,
    /// The number of ranges that are no steps because an earlier one has their number.
    #[serde(skip)]
    repeated: usize,
}

impl Steps {
    /// Collects the steps of a profile: from its marks if it has any, otherwise from its ranges.
    pub fn build(profile: &Profile) -> Self {
        let marks = StepMark::read(profile.metadata());
        if marks.is_empty() {
            Self::of_ranges(profile)
        } else {
            Self::of_marks(profile, &marks)
        }
    }

    /// Returns the steps that ended, sorted by number.
    pub fn complete(&self) -> &[Step] {
        &self.complete
    }

    /// Returns the step that was running when the recording ended. Always `None` if steps are
    /// ranges, since a range that is still open ends with the recording.
    pub const fn open(&self) -> Option<Step> {
        self.open
    }

    /// Returns the first step if steps are marks. It began with the recording, so its true
    /// beginning is unknown, and it includes imports and all other preparation.
    pub fn first_of_marks(&self) -> Option<Step> {
        self.complete.first().filter(|_| self.is_marked).copied()
    }

    /// Returns the number of ranges that are not among the steps because an earlier range has their
    /// number.
    pub const fn repeated(&self) -> usize {
        self.repeated
    }

    /// Returns the number of the last step that began at or before `moment`, or zero if the profile
    /// has no steps.
    pub fn at(&self, moment: Nanos) -> u64 {
        let next = self.starts.partition_point(|&(start, _)| start <= moment);
        match next.checked_sub(1) {
            Some(last) => self.starts[last].1,
            None => self.before,
        }
    }

    /// Returns the time that the steps with numbers from `first` to `last` span, or `None` if there
    /// are no such steps.
    pub fn window(&self, first: u64, last: u64) -> Option<(Nanos, Nanos)> {
        let all = self.complete.iter().chain(&self.open);
        let wanted = all.filter(|step| (first..=last).contains(&step.number));
        wanted.fold(None, |window, step| {
            let (start, end) = window.unwrap_or((step.start, step.end()));
            Some((start.min(step.start), end.max(step.end())))
        })
    }

    fn of_marks(profile: &Profile, marks: &[StepMark]) -> Self {
        let (reference, span) = (profile.reference_unix_ns(), profile.span());
        let time = |mark: &StepMark| Nanos(mark.unix_ns.saturating_sub(reference));
        // A profile cut out of a recording keeps the marks of the whole recording.
        let earlier = marks.partition_point(|mark| mark.unix_ns <= reference);
        let later = marks.partition_point(|mark| time(mark) <= span);
        let inside = &marks[earlier..later.max(earlier)];
        let before = match earlier.checked_sub(1) {
            Some(last) => marks[last].number,
            None => marks[0].number.saturating_sub(1),
        };
        let starts: Vec<_> = inside
            .iter()
            .map(|mark| (time(mark), mark.number))
            .collect();
        let mut complete = Vec::with_capacity(starts.len());
        let (mut start, mut number) = (Nanos::ZERO, before);
        for &(end, next) in &starts {
            complete.push(Step {
                number,
                start,
                duration: end.saturating_sub(start),
            });
            (start, number) = (end, next);
        }
        let open = Step {
            number,
            start,
            duration: span.saturating_sub(start),
        };
        Self {
            complete,
            open: Some(open),
            is_marked: true,
            starts,
            before,
            repeated: 0,
        }
    }

    /// Collects the ranges of steps: the launcher's in a run, otherwise all. The recording begins
    /// just before the range of its first step, so events before that range belong to the first step
    /// too. If two ranges have the same number, the first one counts.
    fn of_ranges(profile: &Profile) -> Self {
        let numbers: Vec<_> = profile.strings().iter().map(Keys::step_number).collect();
        let ranges = profile.events().iter();
        let ranges = ranges.filter(|event| event.category == Category::Annotation);
        let mut complete: Vec<Step> = ranges
            .filter_map(|event| {
                Some(Step {
                    number: numbers[event.name.index()]?,
                    start: event.start,
                    duration: event.duration,
                })
            })
            .collect();
        if let Some(side) = SideRanges::read(profile)
            && !side.step_times.is_empty()
        {
            complete = launched(&complete, &side.step_times, profile.reference_unix_ns());
        }
        let starts: Vec<_> = complete
            .iter()
            .map(|step| (step.start, step.number))
            .collect();
        complete.sort_by_key(|step| step.number);
        let ranges = complete.len();
        complete.dedup_by_key(|step| step.number);
        Self {
            repeated: ranges - complete.len(),
            complete,
            open: None,
            is_marked: false,
            before: starts.first().map_or(0, |&(_, number)| number),
            starts,
        }
    }
}

/// Returns the ranges that are steps of the launcher: for each of its times the range that fits it
/// best, if the two share at least half of the longer one. The launcher and the recording read
/// different clocks, so no range fits exactly.
///
/// ```text
/// time of the launcher    |---------|
/// its range                |--------|
/// range of a profiler   |---|                too little in common
/// ```
fn launched(ranges: &[Step], times: &[(u64, u64)], reference_unix_ns: u64) -> Vec<Step> {
    let mut found: Vec<Step> = Vec::new();
    for &(begin, end) in times {
        let time = |unix_ns: u64| unix_ns.saturating_sub(reference_unix_ns);
        let (begin, end) = (time(begin), time(end));
        let misfit = |step: &Step| step.start.0.abs_diff(begin) + step.end().0.abs_diff(end);
        let is_shared = |step: &&Step| {
            let shared = (step.end().0.min(end)).saturating_sub(step.start.0.max(begin));
            2 * shared >= step.duration.0.max(end.saturating_sub(begin))
        };
        let best = ranges
            .iter()
            .filter(is_shared)
            .min_by_key(|step| misfit(step));
        found.extend(best.filter(|step| !found.contains(step)));
    }
    found.sort_by_key(|step| step.start);
    found
}

#[cfg(test)]
mod tests {
    use mindprof_model::{Part, Timeline};

    use super::*;

    fn marked(marks: &[(u64, u64)], span: u64) -> Steps {
        let mut part = Part::new();
        part.reference_unix_ns = 1_000;
        part.span = Nanos(span);
        let marks: Vec<_> = marks
            .iter()
            .map(|&(number, unix_ns)| StepMark { number, unix_ns })
            .collect();
        StepMark::write(&marks, &mut part.metadata);
        Steps::build(&part.into_profile().expect("nothing was added"))
    }

    fn times(steps: &[Step]) -> Vec<(u64, u64, u64)> {
        let steps = steps.iter();
        steps
            .map(|step| (step.number, step.start.0, step.duration.0))
            .collect()
    }

    // ProfilerStep#3   |-----|         10..20
    // ProfilerStep#4           |----|  25..30
    #[test]
    fn a_moment_belongs_to_the_last_step_that_began() {
        let profile = Timeline::draw(|time| {
            time.idle(10);
            time.annotation("ProfilerStep#3", |time| time.op("mm", 10));
            time.idle(5);
            time.annotation("ProfilerStep#4", |time| time.op("mm", 5));
        });
        let steps = Steps::build(&profile);
        let at = [0, 10, 22, 25, 99].map(|moment| steps.at(Nanos(moment)));
        assert_eq!(at, [3, 3, 3, 4, 4]);
        assert_eq!(times(steps.complete()), [(3, 10, 10), (4, 25, 5)]);
        assert_eq!(steps.open(), None);
        assert_eq!(steps.first_of_marks(), None);
    }

    // recording |--------|---------|------|   0..30
    // marks              1 at 10   2 at 20
    #[test]
    fn a_mark_ends_a_step_and_begins_the_next() {
        let steps = marked(&[(1, 1_010), (2, 1_020)], 30);
        let at = [0, 9, 10, 19, 20, 99].map(|moment| steps.at(Nanos(moment)));
        assert_eq!(at, [0, 0, 1, 1, 2, 2]);
        assert_eq!(times(steps.complete()), [(0, 0, 10), (1, 10, 10)]);
        assert_eq!(times(steps.open().as_slice()), [(2, 20, 10)]);
        assert_eq!(steps.first_of_marks().map(|step| step.number), Some(0));
    }

    // whole     |----|----|----|----|----|
    // cut                |--------|           from 1_000, 25 long
    #[test]
    fn a_cut_profile_has_the_marks_inside_it() {
        let steps = marked(&[(1, 980), (2, 990), (3, 1_010), (4, 1_090)], 25);
        assert_eq!(times(steps.complete()), [(2, 0, 10)]);
        assert_eq!(times(steps.open().as_slice()), [(3, 10, 15)]);
        assert_eq!(steps.at(Nanos(3)), 2);
    }

    #[test]
    fn a_window_spans_the_steps_that_exist() {
        let steps = marked(&[(1, 1_010), (2, 1_020)], 30);
        let window = |first, last| steps.window(first, last).map(|(a, b)| (a.0, b.0));
        assert_eq!(window(0, 1), Some((0, 20)));
        assert_eq!(window(1, 9), Some((10, 30)));
        assert_eq!(window(7, 9), None);
    }

    #[test]
    fn of_two_ranges_with_one_number_the_first_counts() {
        let profile = Timeline::draw(|time| {
            time.annotation("ProfilerStep#2", |time| time.idle(30));
            time.annotation("ProfilerStep#1", |time| time.idle(10));
            time.annotation("ProfilerStep#1", |time| time.idle(5));
            time.annotation("ProfilerStep#none", |_| {});
        });
        let steps = Steps::build(&profile);
        assert_eq!(times(steps.complete()), [(1, 30, 10), (2, 0, 30)]);
    }

    // ProfilerStep#0      |----|            0..10     of the launcher
    // ProfilerStep#1            |----|      20..30    of the launcher
    // ProfilerStep#7    |-------------|     0..34     of a profiler of the program
    #[test]
    fn steps_of_the_programs_own_profiler_are_not_those_of_a_run() {
        let profile = Timeline::draw(|time| {
            time.annotation("ProfilerStep#7", |time| {
                time.annotation("ProfilerStep#0", |time| time.idle(10));
                time.idle(10);
                time.annotation("ProfilerStep#1", |time| time.idle(10));
                time.idle(4);
            });
        });
        assert_eq!(Steps::build(&profile).complete().len(), 3);
        let reference = profile.reference_unix_ns();
        let side = SideRanges {
            step_times: vec![
                (reference, reference + 11),
                (reference + 19, reference + 30),
            ],
            ..SideRanges::default()
        };
        let mut part = Part::from(profile);
        part.metadata.set(crate::side_ranges::RUN_KEY, side.json());
        let steps = Steps::build(&part.into_profile().expect("the part stays sound"));
        assert_eq!(times(steps.complete()), [(0, 0, 10), (1, 20, 10)]);
    }

    #[test]
    fn without_steps_everything_is_in_step_zero() {
        let profile = Timeline::draw(|time| time.op("mm", 10));
        let steps = Steps::build(&profile);
        assert_eq!(steps.at(Nanos(5)), 0);
        assert!(steps.complete().is_empty() && steps.open().is_none());
    }
}
