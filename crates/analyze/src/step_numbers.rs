//! Which step of the profiler a moment lies in: by the marks of a recording whose steps no scope
//! names, else by the scopes that name them.

use mindprof_model::{Category, Nanos, Profile, StepMark};

use crate::rows::keys::Keys;

/// The steps of a profile, in time order.
#[derive(Clone, Debug, Default)]
pub struct StepNumbers {
    starts: Vec<(Nanos, u64)>,
    /// The number before the first start.
    before: u64,
}

impl StepNumbers {
    /// Collects the steps.
    pub fn build(profile: &Profile) -> Self {
        let marks = StepMark::read(profile.metadata());
        if marks.is_empty() {
            return Self::of_scopes(profile);
        }
        let reference = profile.reference_unix_ns();
        let starts = marks.iter();
        let starts = starts.map(|mark| {
            let start = mark.unix_ns.saturating_sub(reference);
            (Nanos(start), mark.number)
        });
        Self {
            before: marks[0].number.saturating_sub(1),
            starts: starts.collect(),
        }
    }

    /// The recording begins just before the scope of its first step, so that what comes before it
    /// is of that step too.
    fn of_scopes(profile: &Profile) -> Self {
        let numbers: Vec<_> = profile.strings().iter().map(Keys::step_number).collect();
        let scopes = profile.events().iter();
        let scopes = scopes.filter(|event| event.category == Category::Annotation);
        let starts: Vec<_> = scopes
            .filter_map(|event| Some((event.start, numbers[event.name.index()]?)))
            .collect();
        Self {
            before: starts.first().map_or(0, |&(_, number)| number),
            starts,
        }
    }

    /// Returns the number of the step that was under way at a moment; zero where there are none.
    pub fn at(&self, moment: Nanos) -> u64 {
        let next = self.starts.partition_point(|&(start, _)| start <= moment);
        match next.checked_sub(1) {
            Some(last) => self.starts[last].1,
            None => self.before,
        }
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::{Part, Timeline};

    use super::*;

    // ProfilerStep#3   |-----|         10..20
    // ProfilerStep#4           |----|  25..30
    #[test]
    fn a_moment_is_of_the_last_step_that_began() {
        let profile = Timeline::draw(|time| {
            time.idle(10);
            time.annotation("ProfilerStep#3", |time| time.op("mm", 10));
            time.idle(5);
            time.annotation("ProfilerStep#4", |time| time.op("mm", 5));
        });
        let steps = StepNumbers::build(&profile);
        let at = [0, 10, 22, 25, 99].map(|moment| steps.at(Nanos(moment)));
        assert_eq!(at, [3, 3, 3, 4, 4]);
    }

    #[test]
    fn marks_count_from_the_reference_time() {
        let mut part = Part::new();
        part.reference_unix_ns = 1_000;
        let marks = [(1, 1_010), (2, 1_020)];
        let marks = marks.map(|(number, unix_ns)| StepMark { number, unix_ns });
        StepMark::write(&marks, &mut part.metadata);
        let steps = StepNumbers::build(&part.into_profile().expect("nothing was added"));
        let at = [0, 9, 10, 19, 20, 99].map(|moment| steps.at(Nanos(moment)));
        assert_eq!(at, [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn without_steps_everything_is_of_step_zero() {
        let profile = Timeline::draw(|time| time.op("mm", 10));
        assert_eq!(StepNumbers::build(&profile).at(Nanos(5)), 0);
    }
}
