//! How the devices and the memory of all ranks were used: per rank and in all.

use mindprof_answers::{IdleCause, micros};
use mindprof_model::Nanos;
use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};

use crate::device_totals::DeviceTotals;
use crate::histogram::Histogram;
use crate::label::RankLabel;
use crate::rows::RowKind;
use crate::summary::RankSummary;

/// The most kernels that are listed.
const KERNELS: usize = 50;

/// The use of the devices of one rank, or of all ranks together.
///
/// `span`, `idle`, `compute` and `not_compute` have the definitions of HTA's temporal breakdown:
/// the span reaches from the first to the last work, and the other three sum up to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceTimes {
    /// The time from the first to the last work.
    #[serde(rename = "span_us", serialize_with = "micros")]
    pub span: Nanos,
    /// The part of the span in which nothing ran.
    #[serde(rename = "idle_us", serialize_with = "micros")]
    pub idle: Nanos,
    /// The time in which compute kernels ran.
    #[serde(rename = "compute_us", serialize_with = "micros")]
    pub compute: Nanos,
    /// The time in which only other work ran.
    #[serde(rename = "not_compute_us", serialize_with = "micros")]
    pub not_compute: Nanos,
    /// The time in which communication ran.
    #[serde(rename = "communication_us", serialize_with = "micros")]
    pub communication: Nanos,
    /// The part of it in which no compute kernel ran.
    #[serde(rename = "exposed_communication_us", serialize_with = "micros")]
    pub exposed: Nanos,
    /// The time in which communication and compute ran together, as a share of communication.
    pub overlap: Option<f64>,
    /// The idle time of the whole recording by cause.
    #[serde(serialize_with = "idle_micros")]
    pub idle_by_cause: [Nanos; IdleCause::ALL.len()],
    /// The number of launches.
    pub launches: u64,
    /// The median delay between a launch and the start of its work.
    #[serde(rename = "launch_delay_p50_us", serialize_with = "micros")]
    pub delay_p50: Nanos,
    /// 99 % of the delays are at most this long.
    #[serde(rename = "launch_delay_p99_us", serialize_with = "micros")]
    pub delay_p99: Nanos,
    /// The median duration of a launching call.
    #[serde(rename = "launch_call_p50_us", serialize_with = "micros")]
    pub call_p50: Nanos,
    /// The number of delays beyond 50 microseconds.
    pub launches_over_50_us: u64,
    /// The number of delays beyond 100 microseconds.
    pub launches_over_100_us: u64,
    /// The number of works whose launch was not recorded.
    pub launches_unknown: u64,
}

impl DeviceTimes {
    fn of(totals: &DeviceTotals) -> Self {
        let communication = totals.communication;
        let overlap = totals.overlap().0 as f64 / communication.0.max(1) as f64;
        Self {
            span: totals.span,
            idle: totals.idle_in_span(),
            compute: totals.compute,
            not_compute: totals.not_compute(),
            communication,
            exposed: totals.exposed,
            overlap: (communication > Nanos::ZERO).then_some(overlap),
            idle_by_cause: totals.idle,
            launches: totals.delays.count(),
            delay_p50: totals.delays.percentile(50),
            delay_p99: totals.delays.percentile(99),
            call_p50: totals.calls.percentile(50),
            launches_over_50_us: totals.over_50_us,
            launches_over_100_us: totals.over_100_us,
            launches_unknown: totals.unknown_launches,
        }
    }
}

/// The use of the devices of one rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankDevice {
    /// The rank.
    #[serde(flatten)]
    pub rank: RankLabel,
    /// The use of its devices.
    #[serde(flatten)]
    pub times: DeviceTimes,
}

/// The use of the devices of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobDevices {
    /// All ranks together, or `None` if no rank has device work.
    pub all: Option<DeviceTimes>,
    /// Each rank that has device work.
    pub ranks: Vec<RankDevice>,
}

impl JobDevices {
    pub(crate) fn build(summaries: &[&RankSummary]) -> Self {
        let mut all: Option<DeviceTotals> = None;
        let mut ranks = Vec::new();
        for summary in summaries {
            let Some(totals) = &summary.device else {
                continue;
            };
            all.get_or_insert_default().add(totals);
            ranks.push(RankDevice {
                rank: RankLabel::of(summary),
                times: DeviceTimes::of(totals),
            });
        }
        Self {
            all: all.as_ref().map(DeviceTimes::of),
            ranks,
        }
    }
}

/// The kernels, copies and fills of one name on all ranks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobKernel {
    /// The name.
    pub name: String,
    /// The kind.
    pub kind: RowKind,
    /// The number of ranks that ran it.
    pub ranks: usize,
    /// The number of calls.
    pub count: u64,
    /// The sum of all durations.
    #[serde(rename = "sum_us", serialize_with = "micros")]
    pub sum: Nanos,
    /// The mean duration.
    #[serde(rename = "mean_us", serialize_with = "micros")]
    pub mean: Nanos,
    /// The shortest.
    #[serde(rename = "min_us", serialize_with = "micros")]
    pub least: Nanos,
    /// The median, within 1 %.
    #[serde(rename = "p50_us", serialize_with = "micros")]
    pub p50: Nanos,
    /// 90 % are at most this long, within 1 %.
    #[serde(rename = "p90_us", serialize_with = "micros")]
    pub p90: Nanos,
    /// 99 % are at most this long, within 1 %.
    #[serde(rename = "p99_us", serialize_with = "micros")]
    pub p99: Nanos,
    /// The longest.
    #[serde(rename = "max_us", serialize_with = "micros")]
    pub largest: Nanos,
    /// The rank with the largest mean, and that mean in microseconds.
    pub slowest: (RankLabel, f64),
}

/// Sums up the device work of all ranks by name, by decreasing time.
pub(crate) fn kernels(summaries: &[&RankSummary]) -> Vec<JobKernel> {
    let mut sums: FxHashMap<(&str, RowKind), KernelSums> = FxHashMap::default();
    for (rank, summary) in summaries.iter().enumerate() {
        for row in &summary.rows {
            match row.kind {
                RowKind::Kernel | RowKind::Communication | RowKind::Copy | RowKind::Fill => {}
                RowKind::Operator | RowKind::Range | RowKind::Runtime => continue,
            }
            sums.entry((&*row.name, row.kind))
                .or_default()
                .add(rank, &row.times);
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|((name, kind), sums)| (std::cmp::Reverse(sums.times.sum()), *name, *kind));
    sums.truncate(KERNELS);
    let kernels = sums.into_iter().map(|((name, kind), sums)| JobKernel {
        name: name.into(),
        kind,
        ranks: sums.ranks,
        count: sums.times.count(),
        sum: sums.times.sum(),
        mean: sums.times.mean(),
        least: sums.times.least(),
        p50: sums.times.percentile(50),
        p90: sums.times.percentile(90),
        p99: sums.times.percentile(99),
        largest: sums.times.largest(),
        slowest: (
            RankLabel::of(summaries[sums.slowest.1]),
            sums.slowest.0.0 as f64 / 1e3,
        ),
    });
    kernels.collect()
}

#[derive(Debug, Default)]
struct KernelSums {
    times: Histogram,
    ranks: usize,
    /// The last rank that was added.
    last: Option<usize>,
    /// The largest mean of a row, and its rank.
    slowest: (Nanos, usize),
}

impl KernelSums {
    fn add(&mut self, rank: usize, times: &Histogram) {
        self.times.add(times);
        self.ranks += usize::from(self.last != Some(rank));
        self.last = Some(rank);
        if times.mean() > self.slowest.0 {
            self.slowest = (times.mean(), rank);
        }
    }
}

/// The peak memory of one device of one rank.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RankMemory {
    /// The rank.
    #[serde(flatten)]
    pub rank: RankLabel,
    /// The device as torch names it.
    pub device: String,
    /// The most bytes that tensors had.
    pub allocated: u64,
    /// The most bytes that the allocator had.
    pub reserved: u64,
    /// The size of the device's memory, or `None` if it is not known.
    pub capacity: Option<u64>,
}

/// Returns the peak memory of the devices of all ranks, in the order of the ranks.
pub(crate) fn memory(summaries: &[&RankSummary]) -> Vec<RankMemory> {
    let peaks = summaries.iter().flat_map(|summary| {
        summary.memory.iter().map(|peaks| RankMemory {
            rank: RankLabel::of(summary),
            device: peaks.device.to_string(),
            allocated: peaks.allocated,
            reserved: peaks.reserved,
            capacity: (peaks.capacity > 0).then_some(peaks.capacity),
        })
    });
    peaks.collect()
}

fn idle_micros<S: Serializer>(
    times: &[Nanos; IdleCause::ALL.len()],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let times = times.map(|time| time.0 as f64 / 1e3);
    serializer.collect_map(IdleCause::ALL.map(IdleCause::key).into_iter().zip(times))
}
