//! The time that each rank spends on its own work in each step, compared with the other ranks.
//!
//! All ranks of a synchronized job have steps of the same length: the fast ones wait in collectives
//! for the slow ones. A slow rank therefore shows in the time that it does not communicate, which
//! needs no common clock.

use std::collections::{BTreeMap, BTreeSet};

use mindprof_answers::StepClass;
use mindprof_model::Nanos;
use serde::Serialize;

use crate::median::median;
use crate::summary::{RankStep, RankSummary};

/// The work that a rank spends more time on than others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Kernels of its devices, or operators if it has none.
    Computing,
    /// Its next batch.
    Data,
    /// Copies and fills of memory by its devices.
    Copies,
    /// Its CPU: Python, operators, calls of the device's runtime, or time that nothing explains.
    Host,
}

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 4] = [Self::Computing, Self::Data, Self::Copies, Self::Host];

    /// Returns the cause of the time of a class, or `None` for communication.
    const fn of(class: StepClass, has_device: bool) -> Option<Self> {
        match class {
            StepClass::Kernel => Some(Self::Computing),
            StepClass::Operators if !has_device => Some(Self::Computing),
            StepClass::Copy | StepClass::Memset => Some(Self::Copies),
            StepClass::DataLoading => Some(Self::Data),
            StepClass::Communication => None,
            StepClass::Runtime | StepClass::Operators | StepClass::Python | StepClass::Idle => {
                Some(Self::Host)
            }
        }
    }
}

/// The times by cause, in the order of [`Cause::ALL`].
pub(crate) type ByCause = [u64; Cause::ALL.len()];

/// The own times of one step.
#[derive(Clone, Debug)]
pub(crate) struct StepTimesOfRanks {
    pub(crate) number: u64,
    /// The position, duration and own time by cause of each rank that has the step.
    pub(crate) ranks: Vec<(usize, Nanos, ByCause)>,
    /// The median duration.
    pub(crate) duration: Nanos,
    /// The median own time, and that of each cause.
    pub(crate) own: u64,
    pub(crate) by_cause: ByCause,
}

/// The own times of all steps that at least two ranks have, sorted by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnTimes {
    pub(crate) steps: Vec<StepTimesOfRanks>,
    /// The median duration of a step.
    pub(crate) step: Nanos,
    /// The sum of the median durations of the steps that are priced.
    pub(crate) total: Nanos,
    /// The number of steps at the beginning that are not priced: one that has the preparation, or none.
    unpriced: usize,
    /// Whether the ranks communicate in most steps, as far as the recordings show.
    pub(crate) has_communication: bool,
}

/// The first step is preparation, such as imports and compiling, if it takes so many times the usual
/// time, of enough steps. Its time would hide what the others cost.
const PREPARATION: u64 = 10;
const ENOUGH_STEPS: usize = 5;

impl OwnTimes {
    /// Returns the steps that findings are priced over.
    pub(crate) fn priced(&self) -> &[StepTimesOfRanks] {
        &self.steps[self.unpriced..]
    }

    /// Collects the own times in time nearly linear in the number of steps of all ranks, except those
    /// of some ranks, whose positions are sorted.
    ///
    /// A rank without collectives in a step in which most ranks have some is left out of it: part of
    /// its recording is missing, and its waits would look like work.
    pub(crate) fn build(summaries: &[&RankSummary], except: &[usize]) -> Self {
        let mut by_number: BTreeMap<u64, Vec<(usize, Nanos, ByCause)>> = BTreeMap::new();
        for (rank, summary) in summaries.iter().enumerate() {
            if except.binary_search(&rank).is_ok() {
                continue;
            }
            let has_device = summary.device.is_some();
            for step in &summary.steps {
                let of_step = by_number.entry(step.number).or_default();
                of_step.push((rank, step.duration(), by_cause(step, has_device)));
            }
        }
        let communicating: Vec<BTreeSet<u64>> = summaries
            .iter()
            .map(|summary| {
                summary
                    .collectives
                    .iter()
                    .filter_map(|found| found.step)
                    .collect()
            })
            .collect();
        for (number, ranks) in &mut by_number {
            let has_any = |rank: usize| communicating[rank].contains(number);
            let count = ranks.iter().filter(|(rank, ..)| has_any(*rank)).count();
            if count * 2 > ranks.len() {
                ranks.retain(|(rank, ..)| has_any(*rank));
            }
        }
        let steps: Vec<StepTimesOfRanks> = by_number
            .into_iter()
            .filter(|(_, ranks)| ranks.len() > 1)
            .map(|(number, ranks)| StepTimesOfRanks::new(number, ranks))
            .collect();
        let communicates = |step: &&StepTimesOfRanks| {
            let ranks = step.ranks.iter();
            let found = ranks.filter(|(rank, ..)| communicating[*rank].contains(&step.number));
            step.own < step.duration.0 || found.count() * 2 > step.ranks.len()
        };
        let has_communication = steps.iter().filter(communicates).count() * 2 > steps.len();
        let mut durations: Vec<Nanos> = steps.iter().map(|step| step.duration).collect();
        let step = median(&mut durations).unwrap_or_default();
        let is_preparation = |first: &StepTimesOfRanks| {
            steps.len() >= ENOUGH_STEPS && first.duration.0 / PREPARATION > step.0
        };
        let unpriced = usize::from(steps.first().is_some_and(is_preparation));
        let priced = steps[unpriced..].iter().map(|step| step.duration);
        Self {
            total: priced.fold(Nanos::ZERO, Nanos::saturating_add),
            unpriced,
            step,
            has_communication,
            steps,
        }
    }
}

impl StepTimesOfRanks {
    fn new(number: u64, ranks: Vec<(usize, Nanos, ByCause)>) -> Self {
        let middle = |of: &dyn Fn(&(usize, Nanos, ByCause)) -> u64| {
            let mut values: Vec<u64> = ranks.iter().map(of).collect();
            median(&mut values).unwrap_or(0)
        };
        Self {
            number,
            duration: Nanos(middle(&|rank| rank.1.0)),
            own: middle(&|rank| sum_of(&rank.2)),
            by_cause: std::array::from_fn(|cause| middle(&|rank| rank.2[cause])),
            ranks,
        }
    }
}

/// Returns the own time of all causes.
pub(crate) fn sum_of(own: &ByCause) -> u64 {
    own.iter().fold(0, |sum, &time| sum.saturating_add(time))
}

fn by_cause(step: &RankStep, has_device: bool) -> ByCause {
    let mut times = ByCause::default();
    for class in StepClass::ALL {
        if let Some(cause) = Cause::of(class, has_device) {
            let time = &mut times[cause as usize];
            *time = time.saturating_add(step.time(class).0);
        }
    }
    times
}
