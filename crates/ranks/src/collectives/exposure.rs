//! The times in which a rank's devices compute, and how much of another time lies outside of them.

use mindprof_analyze::Analysis;
use mindprof_answers::{StepClass, WorkClasses};
use mindprof_model::{Category, DeviceKind, Event, EventId, Nanos};

/// The union of all compute kernels of a rank, with running sums, so that each question costs a
/// search and no walk.
#[derive(Debug, Default)]
pub(super) struct Exposure {
    /// Begin, end, and the computing time before the begin.
    ranges: Vec<(Nanos, Nanos, Nanos)>,
}

impl Exposure {
    pub(super) fn build(analysis: &Analysis, works: &WorkClasses) -> Self {
        let profile = analysis.profile();
        let is_compute = |(index, event): &(usize, &Event)| {
            event.category == Category::Kernel
                && works.of(EventId::from_index(*index), event) == StepClass::Kernel
                && profile.threads()[event.thread.index()].device != DeviceKind::Cpu
        };
        let kernels = profile.events().iter().enumerate().filter(is_compute);
        Self::of(kernels.map(|(_, event)| (event.start, event.end())))
    }

    /// Joins times that come in the order of their begins.
    fn of(times: impl Iterator<Item = (Nanos, Nanos)>) -> Self {
        let mut ranges: Vec<(Nanos, Nanos, Nanos)> = Vec::new();
        for (begin, end) in times {
            match ranges.last_mut() {
                Some((_, last, _)) if begin <= *last => *last = (*last).max(end),
                Some(&mut (from, to, before)) => ranges.push((begin, end, before + (to - from))),
                None => ranges.push((begin, end, Nanos::ZERO)),
            }
        }
        Self { ranges }
    }

    /// Returns how much of a time lies outside of all computing.
    ///
    /// ```text
    /// compute       |-----|    |------|
    /// collective       |----------|
    /// outside             '----'
    /// ```
    pub(super) fn outside(&self, begin: Nanos, end: Nanos) -> Nanos {
        let inside = self.until(end).saturating_sub(self.until(begin));
        end.saturating_sub(begin).saturating_sub(inside)
    }

    /// Returns the computing time before a moment.
    fn until(&self, moment: Nanos) -> Nanos {
        let next = self.ranges.partition_point(|&(begin, ..)| begin < moment);
        let Some(&(begin, end, before)) =
            next.checked_sub(1).and_then(|last| self.ranges.get(last))
        else {
            return Nanos::ZERO;
        };
        before + moment.min(end).saturating_sub(begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // compute      |---|  |------|      10..20, 30..50 (two kernels that overlap)
    //                       |--|
    #[test]
    fn computing_is_taken_out_of_a_time() {
        let times = [(10, 20), (30, 50), (35, 40)];
        let exposure = Exposure::of(times.into_iter().map(|(a, b)| (Nanos(a), Nanos(b))));
        for (begin, end, outside) in [
            (0, 10, 10),
            (0, 60, 30),
            (12, 18, 0),
            (15, 35, 10),
            (45, 70, 20),
            (50, 50, 0),
        ] {
            assert_eq!(exposure.outside(Nanos(begin), Nanos(end)), Nanos(outside));
        }
        assert_eq!(Exposure::default().outside(Nanos(3), Nanos(9)), Nanos(6));
    }
}
