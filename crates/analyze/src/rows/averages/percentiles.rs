//! The distribution of the times of a row's events.

use mindprof_model::Nanos;

use super::groups::{GroupBy, Groups, is_left_out};
use crate::analysis::{Analysis, Item};

/// Percentiles of the CPU times of a row's events.
///
/// They are times that occur (the nearest rank), never interpolated ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Percentiles {
    /// The median: half of the events took at most this long.
    pub p50: Nanos,
    /// 90 % of the events took at most this long.
    pub p90: Nanos,
    /// 99 % of the events took at most this long.
    pub p99: Nanos,
    /// The time of the longest event.
    pub max: Nanos,
}

/// A percentile that texts for people contain, and the number of times from which on they do.
///
/// At least two times lie beyond such a percentile. With fewer times, it would be the longest one
/// under a name that promises more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToldPercentile {
    /// Its name, such as `p90`.
    pub name: &'static str,
    /// The percentage of the times that do not exceed it.
    pub percent: u32,
    /// The least number of times.
    pub least: usize,
}

impl Percentiles {
    /// The percentiles beyond the median in texts for people.
    pub const TOLD: [ToldPercentile; 2] = [
        ToldPercentile {
            name: "p90",
            percent: 90,
            least: 20,
        },
        ToldPercentile {
            name: "p99",
            percent: 99,
            least: 200,
        },
    ];

    /// Returns the percentiles beyond the median that say something about `count` times, with their
    /// names.
    pub fn told(&self, count: usize) -> impl Iterator<Item = (&'static str, Nanos)> + use<> {
        (Self::TOLD.into_iter())
            .zip([self.p90, self.p99])
            .filter(move |(told, _)| count >= told.least)
            .map(|(told, time)| (told.name, time))
    }

    /// Returns the percentiles of times, which it sorts. All are zero if there are no times.
    pub fn of(times: &mut [Nanos]) -> Self {
        times.sort_unstable();
        let rank = |percent: usize| {
            let position = (times.len() * percent).div_ceil(100);
            times
                .get(position.saturating_sub(1))
                .copied()
                .unwrap_or_default()
        };
        Self {
            p50: rank(50),
            p90: rank(90),
            p99: rank(99),
            max: rank(100),
        }
    }
}

/// Returns the percentiles of the CPU times of each row that [`super::averages`] returns for
/// `group_by`.
pub fn percentiles(analysis: &Analysis, group_by: GroupBy) -> Vec<Percentiles> {
    let mut groups = Groups::new(analysis, group_by);
    let mut times: Vec<Vec<Nanos>> = Vec::new();
    let mut memory_row = None;
    for item in analysis.items() {
        let (row, time) = match item {
            Item::Event(id) if is_left_out(analysis.profile().event(id), group_by) => continue,
            Item::Event(id) => {
                let event = analysis.profile().event(id);
                let row = groups.row_of(analysis, id, event, times.len());
                (row, analysis.cpu_time(id))
            }
            Item::Memory(_) => (*memory_row.get_or_insert(times.len()), Nanos::ZERO),
        };
        if row == times.len() {
            times.push(Vec::new());
        }
        times[row].push(time);
    }
    times
        .iter_mut()
        .map(|times| Percentiles::of(times))
        .collect()
}
