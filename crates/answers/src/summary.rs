//! A profile in a few numbers: categories, threads, streams and steps.

use mindprof_model::{Category, DeviceKind, Flags, Nanos, Profile, ThreadId};

use crate::steps::{Step, Steps};

/// Every category, in the order in which they are shown.
const CATEGORIES: [Category; 7] = [
    Category::Operator,
    Category::Annotation,
    Category::PythonFunction,
    Category::Runtime,
    Category::Kernel,
    Category::DeviceAnnotation,
    Category::Other,
];

/// The numbers that describe the contents of a profile, as `mindprof info` prints them.
///
/// It is computed in one pass over the events, without an analysis, so that large traces can be
/// inspected quickly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of events of each category that has any.
    pub categories: Vec<(Category, u64)>,
    /// The CPU threads, in the order of their ids.
    pub threads: Vec<Track>,
    /// The streams of devices, in the order of their ids.
    pub streams: Vec<Track>,
    /// The complete steps, sorted by number.
    pub steps: Vec<Step>,
}

/// The activity of one thread or stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// The thread or stream.
    pub thread: ThreadId,
    /// The kind of device.
    pub device: DeviceKind,
    /// The number of its events.
    pub events: u64,
    /// The time during which at least one of its events was running. Ranges on a device and waits
    /// for a device do not count, because they are not work of the device.
    pub busy: Nanos,
}

impl Summary {
    /// Summarizes a profile in one pass over its events.
    pub fn build(profile: &Profile) -> Self {
        let mut counts = [0_u64; CATEGORIES.len()];
        let threads = profile.threads().iter().enumerate();
        let mut tracks: Vec<Track> = threads
            .map(|(index, thread)| Track {
                thread: ThreadId::from_index(index),
                device: thread.device,
                events: 0,
                busy: Nanos::ZERO,
            })
            .collect();
        // By track, the number of hidden events, and of those that are waits for a device.
        let mut hidden = vec![0_u64; tracks.len()];
        let mut waits = vec![0_u64; tracks.len()];
        let mut busy_until = vec![Nanos::ZERO; tracks.len()];
        for event in profile.events() {
            counts[event.category as usize] += 1;
            let track = &mut tracks[event.thread.index()];
            track.events += 1;
            hidden[event.thread.index()] += u64::from(event.flags.contains(Flags::HIDDEN));
            if is_wait(track.device, event.category) {
                waits[event.thread.index()] += 1;
                continue;
            }
            if event.category == Category::DeviceAnnotation {
                continue;
            }
            // Events are in start order, so the time before the last end is counted already.
            let until = &mut busy_until[event.thread.index()];
            let new = event.end().saturating_sub(event.start.max(*until));
            track.busy = track.busy + new;
            *until = event.end().max(*until);
        }
        let (mut threads, mut streams): (Vec<Track>, Vec<Track>) = tracks
            .into_iter()
            .partition(|track| track.device == DeviceKind::Cpu);
        // Remnants of a stream, such as an arrow, are on a CPU thread with the ids of the stream.
        let place = |track: &Track| {
            let thread = &profile.threads()[track.thread.index()];
            (thread.process, thread.native)
        };
        let is_stream = |track: &Track| streams.iter().any(|stream| place(stream) == place(track));
        threads.retain(|track| track.events > 0 || !is_stream(track));
        // Tracks of what another program concluded are kept for a copy of the trace alone.
        threads.retain(|track| track.events == 0 || hidden[track.thread.index()] < track.events);
        // A stream with nothing but waits, such as those for a whole device, ran nothing.
        let only_waits = |track: &Track| waits[track.thread.index()] == track.events;
        streams.retain(|track| track.events == 0 || !only_waits(track));
        let categories = CATEGORIES.into_iter().zip(counts);
        Self {
            categories: categories.filter(|(_, count)| *count > 0).collect(),
            threads,
            streams,
            steps: Steps::build(profile).complete().to_vec(),
        }
    }
}

/// Returns whether an event on a device's track is a wait of the CPU for the device.
fn is_wait(device: DeviceKind, category: Category) -> bool {
    device != DeviceKind::Cpu && category == Category::Other
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    // thread 1  ProfilerStep#2 |--------|            0..30
    //           op               |--|               10..20
    //           ProfilerStep#1              |----|   40..50
    // thread 2  op             |----|                0..15
    //           op                   |-|            15..20
    #[test]
    fn categories_threads_and_steps_are_counted() {
        let profile = Timeline::draw(|time| {
            time.annotation("ProfilerStep#2", |time| {
                time.idle(10);
                time.op("op", 10);
                time.idle(10);
            });
            time.idle(10);
            time.annotation("ProfilerStep#1", |time| time.idle(10));
            time.annotation("ProfilerStep#none", |_| {});
            time.thread(2);
            time.op("op", 15);
            time.op("op", 5);
        });
        let summary = Summary::build(&profile);
        assert_eq!(
            summary.categories,
            [(Category::Operator, 3), (Category::Annotation, 3)]
        );
        let busy: Vec<_> = summary
            .threads
            .iter()
            .map(|t| (t.events, t.busy.0))
            .collect();
        assert_eq!(busy, [(4, 40), (2, 20)]);
        assert!(summary.streams.is_empty());
        let steps: Vec<_> = summary
            .steps
            .iter()
            .map(|s| (s.number, s.start.0))
            .collect();
        assert_eq!(steps, [(1, 40), (2, 0)]);
    }
}
