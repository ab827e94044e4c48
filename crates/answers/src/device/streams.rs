//! The streams of a device: their gaps and the length of their queues.
//!
//! A stream is idle whenever it has nothing to do, whatever the others do. So gaps of streams are
//! no idle time of the device, and they are never summed up over streams.

use mindprof_model::{Nanos, Profile, ThreadId};
use serde::Serialize;

use super::work::WorkItem;
use crate::questions::micros;

/// A gap on a stream before work that was launched in time is a wait for the launch if it is
/// shorter than this.
const KERNEL_WAIT: Nanos = Nanos(30_000);

/// The number of launches that CUDA queues before the next call blocks.
const FULL_QUEUE: i64 = 1024;

/// One stream of a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamUse {
    /// The number of the stream.
    pub stream: u64,
    /// The name of a track that is no stream, such as that of a group of ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The number of its works.
    pub works: u64,
    /// The sum of their durations.
    #[serde(rename = "work_us", serialize_with = "micros")]
    pub work: Nanos,
    /// The gaps between its works.
    pub gaps: StreamGaps,
    /// The length of its queue, or `None` if no launch was recorded.
    pub queue: Option<QueueLength>,
}

/// The gaps between consecutive works of a stream by their cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StreamGaps {
    /// The next work was launched after the last one had ended.
    #[serde(rename = "cpu_wait_us", serialize_with = "micros")]
    pub cpu_wait: Nanos,
    /// The next work was in the queue, and the gap is shorter than 30 microseconds.
    #[serde(rename = "kernel_wait_us", serialize_with = "micros")]
    pub kernel_wait: Nanos,
    /// All other gaps.
    #[serde(rename = "other_us", serialize_with = "micros")]
    pub other: Nanos,
}

/// The number of works that are launched and have not begun.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct QueueLength {
    /// The number of launches.
    pub launches: u64,
    /// The greatest length.
    pub max: u64,
    /// The mean over time, from the first launch to the last start.
    pub mean: f64,
    /// The mean over all launches and starts, of the length after each.
    pub mean_at_changes: f64,
    /// The time with 1024 launches or more in the queue, at which a further launch blocks.
    #[serde(rename = "full_us", serialize_with = "micros")]
    pub full: Nanos,
}

impl StreamUse {
    /// Describes the streams of a device, sorted by number. `visit` gets each time in which a queue
    /// has so many works.
    pub(crate) fn build(
        profile: &Profile,
        items: &[WorkItem],
        mut visit: impl FnMut(Nanos, Nanos, u64),
    ) -> Vec<Self> {
        let mut positions: Vec<Option<usize>> = vec![None; profile.threads().len()];
        let mut streams: Vec<Stream> = Vec::new();
        for item in items {
            let position = *positions[item.stream.index()].get_or_insert_with(|| {
                streams.push(Stream::new(profile, item.stream));
                streams.len() - 1
            });
            streams[position].add(item);
        }
        let mut streams: Vec<Self> = streams
            .into_iter()
            .map(|stream| stream.finish(&mut visit))
            .collect();
        streams.sort_by_key(|stream| stream.stream);
        streams
    }
}

/// A stream in the making.
struct Stream {
    number: u64,
    name: Option<String>,
    works: u64,
    work: Nanos,
    gaps: StreamGaps,
    last_end: Option<Nanos>,
    /// The launches and the starts of works whose launch was recorded.
    launches: Vec<Nanos>,
    starts: Vec<Nanos>,
}

impl Stream {
    fn new(profile: &Profile, thread: ThreadId) -> Self {
        let thread = &profile.threads()[thread.index()];
        let name = || profile.strings().text(thread.name).to_owned();
        Self {
            number: thread.native,
            name: thread.number().is_none().then(name),
            works: 0,
            work: Nanos::ZERO,
            gaps: StreamGaps::default(),
            last_end: None,
            launches: Vec::new(),
            starts: Vec::new(),
        }
    }

    fn add(&mut self, item: &WorkItem) {
        self.works += 1;
        self.work = self.work + item.duration();
        if let Some(end) = self.last_end {
            let gap = item.start.saturating_sub(end);
            let sum = if item.launch.is_some_and(|launch| launch.start > end) {
                &mut self.gaps.cpu_wait
            } else if gap < KERNEL_WAIT {
                &mut self.gaps.kernel_wait
            } else {
                &mut self.gaps.other
            };
            *sum = *sum + gap;
        }
        self.last_end = Some(self.last_end.map_or(item.end, |end| end.max(item.end)));
        if let Some(launch) = item.launch {
            self.launches.push(launch.start);
            self.starts.push(item.start);
        }
    }

    fn finish(mut self, visit: &mut impl FnMut(Nanos, Nanos, u64)) -> StreamUse {
        StreamUse {
            stream: self.number,
            name: self.name,
            works: self.works,
            work: self.work,
            gaps: self.gaps,
            queue: queue_length(&mut self.launches, &self.starts, visit),
        }
    }
}

/// Follows the length of a queue: a launch adds one, a start takes one away. `starts` is sorted.
///
/// ```text
/// CPU       |launch|  |launch|
/// stream                   |----|   |----|
/// length    1         2    1        0
/// ```
fn queue_length(
    launches: &mut [Nanos],
    starts: &[Nanos],
    visit: &mut impl FnMut(Nanos, Nanos, u64),
) -> Option<QueueLength> {
    launches.sort_unstable();
    let first = (*launches.first()?).min(*starts.first()?);
    let (mut queued, mut started) = (0, 0);
    let mut queue = QueueLength {
        launches: launches.len() as u64,
        ..QueueLength::default()
    };
    let (mut weighted, mut at_changes) = (0.0, 0.0);
    let mut now = first;
    while started < starts.len() {
        let is_launch = (launches.get(queued)).is_some_and(|&launch| launch <= starts[started]);
        let time = if is_launch {
            launches[queued]
        } else {
            starts[started]
        };
        let length = queued as i64 - started as i64;
        let held = time.saturating_sub(now);
        weighted += length.max(0) as f64 * held.0 as f64;
        if length >= FULL_QUEUE {
            queue.full = queue.full + held;
        }
        visit(now, time, length.max(0) as u64);
        now = time;
        if is_launch {
            queued += 1;
        } else {
            started += 1;
        }
        let length = queued as i64 - started as i64;
        // A start before its launch, as clocks that disagree show it, empties no queue.
        at_changes += length.max(0) as f64;
        queue.max = queue.max.max(length.max(0) as u64);
    }
    let whole = now.saturating_sub(first);
    queue.mean = weighted / whole.0.max(1) as f64;
    queue.mean_at_changes = at_changes / (2 * starts.len()) as f64;
    Some(queue)
}

#[cfg(test)]
mod tests {
    use super::*;

    // CPU                    |launch|
    // stream       |----|                     the clocks disagree
    #[test]
    fn a_start_before_its_launch_makes_no_negative_queue() {
        let queue = queue_length(&mut [Nanos(50)], &[Nanos(10)], &mut |_, _, _| {}).unwrap();
        assert_eq!(
            (queue.mean, queue.mean_at_changes, queue.max),
            (0.0, 0.0, 0)
        );
    }
}
