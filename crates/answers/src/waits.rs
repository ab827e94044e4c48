//! Classifies the time a training loop waits for data: within steps, outside them, or while workers
//! start and end.
//!
//! The waits come from the ranges that torch's data loaders open, the starts and ends of workers
//! from the marks of `mindprof run`.

use mindprof_model::Nanos;

/// The share of the time above which waiting is a finding.
const MUCH: f64 = 0.2;

/// The largest share of all batches that counts as few. If so few of them take the share [`MOST`]
/// of the waiting, they are named as its cause.
const FEW: f64 = 0.05;

/// The share of the waiting time that counts as most of it.
const MOST: f64 = 0.8;

/// A span of time, since the profile's reference time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The time at which it begins.
    pub begin: Nanos,
    /// The time at which it ends.
    pub end: Nanos,
}

impl Span {
    /// Returns the length of the span.
    pub const fn duration(self) -> Nanos {
        self.end.saturating_sub(self.begin)
    }

    fn contains(self, inner: Self) -> bool {
        self.begin <= inner.begin && inner.end <= self.end
    }
}

/// The start of a data loader's workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkersStart {
    /// The time that the start took.
    pub span: Span,
    /// The number of workers.
    pub workers: usize,
}

/// The times of the loop that waits, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopTimes {
    /// The duration of the window without imports.
    pub rest: Nanos,
    /// The span of the optimizer steps whose beginning is known, or `None` if there are none.
    pub steps: Option<Span>,
    /// The duration of each of these steps.
    pub step_times: Vec<Nanos>,
}

/// The waits of a loop in one window.
///
/// Waits for workers that start are kept apart from the others, because they happen once per loader
/// rather than in every step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataWaits {
    /// The waits that returned a batch.
    waits: Vec<Span>,
    /// The waits that are not a worker's first batch.
    later: Vec<Span>,
    /// The time spent on workers that start.
    firsts: Nanos,
    /// The time spent on workers that end.
    ends: Nanos,
    /// Whether a data loader has workers.
    pub has_workers: bool,
}

/// Data for which the loop had to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateData {
    /// The time that the loop waited for it.
    pub time: Nanos,
    /// If a few batches cause most of the waiting, the number of these and the number of all
    /// batches.
    pub mostly: Option<(usize, usize)>,
}

/// A conclusion about the waits of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFinding {
    /// Data is late, in a loop whose steps are not known.
    Late(LateData),
    /// Data is late within optimizer steps.
    LateInSteps {
        /// The late data.
        data: LateData,
        /// The wait in an average step.
        per_step: Nanos,
        /// The duration of an average step.
        step: Nanos,
    },
    /// The loop waits outside its optimizer steps, for example for a first batch or in an
    /// evaluation.
    LateOutsideSteps(LateData),
    /// The loop waits for workers that start or end, for this long.
    Workers(Nanos),
}

impl WaitFinding {
    /// Returns the time that the finding is about.
    pub const fn time(&self) -> Nanos {
        match self {
            Self::Late(data) | Self::LateOutsideSteps(data) | Self::LateInSteps { data, .. } => {
                data.time
            }
            Self::Workers(time) => *time,
        }
    }
}

impl DataWaits {
    /// Classifies the waits of a loop, which must be in time order.
    ///
    /// `starts` are the starts of workers in the same window, and `ends` the times at which the
    /// loop asked for a batch, found none and ended its workers.
    pub fn new(waits: &[Span], starts: &[WorkersStart], ends: &[Span], has_workers: bool) -> Self {
        let mut is_first = vec![false; waits.len()];
        for start in starts {
            let first = waits.partition_point(|wait| wait.begin < start.span.end);
            // The first batch of each worker includes its start. If no other batches follow, data
            // may be late too, so only the very first wait is attributed to the start.
            let rest = first + start.workers;
            let firsts = if rest < waits.len() {
                first..rest
            } else {
                first..first + 1
            };
            for flag in is_first.iter_mut().take(firsts.end).skip(firsts.start) {
                *flag = true;
            }
        }
        let mut is_last = vec![false; waits.len()];
        for end in ends {
            let next = waits.partition_point(|wait| wait.begin <= end.begin);
            if let Some(last) = next.checked_sub(1).filter(|&at| waits[at].contains(*end)) {
                is_last[last] = true;
            }
        }
        let select = |keep: &dyn Fn(usize) -> bool| -> Vec<Span> {
            let waits = waits.iter().enumerate().filter(|(at, _)| keep(*at));
            waits.map(|(_, wait)| *wait).collect()
        };
        let all = select(&|at| !is_last[at]);
        let later = select(&|at| !is_last[at] && !is_first[at]);
        Self {
            firsts: sum(&all).saturating_sub(sum(&later)),
            ends: sum(ends),
            waits: all,
            later,
            has_workers,
        }
    }

    /// Returns the time that the loop took to end its workers.
    pub const fn ending(&self) -> Nanos {
        self.ends
    }

    /// Returns the wait for each batch, in time order.
    pub fn times(&self) -> Vec<Nanos> {
        self.waits.iter().map(|wait| wait.duration()).collect()
    }

    /// Returns the findings, those about the most time first.
    pub fn findings(&self, around: &LoopTimes) -> Vec<WaitFinding> {
        if self.waits.is_empty() || around.rest == Nanos::ZERO {
            return Vec::new();
        }
        let mut found = self.late(around);
        let workers = self.firsts + self.ends;
        if is_much(workers, around.rest) {
            found.push(WaitFinding::Workers(workers));
        }
        found.sort_by_key(|finding| std::cmp::Reverse(finding.time()));
        found
    }

    fn late(&self, around: &LoopTimes) -> Vec<WaitFinding> {
        let mut found = Vec::new();
        let later = sum(&self.later);
        let steps_time = Nanos(around.step_times.iter().map(|time| time.0).sum());
        let Some(steps) = around.steps.filter(|_| steps_time > Nanos::ZERO) else {
            if is_much(later, around.rest) {
                found.push(WaitFinding::Late(late(&self.later)));
            }
            return found;
        };
        // Waits outside the steps do not make the data of the steps late.
        let (inside, outside): (Vec<Span>, Vec<Span>) =
            self.later.iter().partition(|wait| steps.contains(**wait));
        let count = around.step_times.len() as u64;
        if is_much(sum(&inside), steps_time) {
            found.push(WaitFinding::LateInSteps {
                data: late(&inside),
                per_step: Nanos(sum(&inside).0 / count),
                step: Nanos(steps_time.0 / count),
            });
        }
        if is_much(sum(&outside), around.rest) {
            found.push(WaitFinding::LateOutsideSteps(LateData {
                time: sum(&outside),
                mostly: None,
            }));
        }
        found
    }
}

fn late(waits: &[Span]) -> LateData {
    LateData {
        time: sum(waits),
        mostly: mostly(waits),
    }
}

/// Returns the number of waits that take most of the time and the number of all waits, if the
/// former are few.
fn mostly(waits: &[Span]) -> Option<(usize, usize)> {
    let mut times: Vec<u64> = waits.iter().map(|wait| wait.duration().0).collect();
    times.sort_unstable_by_key(|&time| std::cmp::Reverse(time));
    let few = (FEW * times.len() as f64) as usize;
    let most = MOST * times.iter().sum::<u64>() as f64;
    let of_few: u64 = times[..few].iter().sum();
    if few == 0 || (of_few as f64) < most {
        return None;
    }
    let mut so_far = 0;
    let count = times
        .iter()
        .take_while(|&&time| {
            let is_needed = (so_far as f64) < most;
            so_far += time;
            is_needed
        })
        .count();
    Some((count, times.len()))
}

fn is_much(time: Nanos, whole: Nanos) -> bool {
    time.0 as f64 > MUCH * whole.0 as f64
}

fn sum(spans: &[Span]) -> Nanos {
    Nanos(spans.iter().map(|span| span.duration().0).sum())
}

#[cfg(test)]
mod tests;
