//! Counts kernel launches without a kernel: work that the device's own recorder lost.
//!
//! A launch and its kernel share a correlation id. The events come from the reader, the count goes
//! into the loss of the part.

use mindprof_model::StringId;

/// The correlation ids of launches and of device work seen so far.
#[derive(Default)]
pub(super) struct Launches {
    launched: Vec<Launch>,
    reported: Vec<i64>,
    /// The kind of call by the id of its name, each computed once.
    kinds: Vec<Option<CallKind>>,
    /// When calls began and ceased to be captured into a graph, which may run later or never.
    captures: Vec<(i64, CaptureEdge)>,
}

#[derive(Clone, Copy)]
struct Launch {
    correlation: i64,
    time: i64,
}

#[derive(Clone, Copy)]
enum CallKind {
    Launch,
    Capture(CaptureEdge),
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CaptureEdge {
    Begin,
    End,
}

impl Launches {
    /// Adds a call into the runtime that began at `time`.
    pub(super) fn add_call(&mut self, name: StringId, text: &str, correlation: i128, time: i64) {
        if self.kinds.len() <= name.index() {
            self.kinds.resize(name.index() + 1, None);
        }
        match *self.kinds[name.index()].get_or_insert_with(|| CallKind::of(text)) {
            CallKind::Launch => self.launched.push(Launch {
                correlation: correlation as i64,
                time,
            }),
            CallKind::Capture(edge) => self.captures.push((time, edge)),
            CallKind::Other => {}
        }
    }

    /// Adds work of a device.
    pub(super) fn add_work(&mut self, correlation: i128) {
        self.reported.push(correlation as i64);
    }

    /// Returns the number of launches without a kernel. Launches during a capture have none, on
    /// whichever thread: the backward pass is captured on a thread of its own.
    ///
    /// ```text
    /// capture          |begin            end|
    /// launches   |          |   |                |    the first and the last have a kernel
    /// ```
    pub(super) fn unreported(&mut self) -> u64 {
        let captured = captured_times(&mut self.captures);
        // Both are nearly sorted already.
        self.launched
            .sort_unstable_by_key(|launch| launch.correlation);
        self.reported.sort_unstable();
        let mut reported = self.reported.iter().peekable();
        let is_lost = |launch: &&Launch| {
            while reported
                .next_if(|next| **next < launch.correlation)
                .is_some()
            {}
            reported.peek() != Some(&&launch.correlation) && !is_within(&captured, launch.time)
        };
        self.launched.iter().filter(is_lost).count() as u64
    }
}

/// Returns the times in which some capture ran, in order. One that never ends lasts forever.
fn captured_times(edges: &mut [(i64, CaptureEdge)]) -> Vec<(i64, i64)> {
    edges.sort_unstable();
    let mut times = Vec::new();
    let (mut open, mut begin) = (0_usize, 0);
    for &(time, edge) in edges.iter() {
        match edge {
            CaptureEdge::Begin => {
                if open == 0 {
                    begin = time;
                }
                open += 1;
            }
            // One that began before the recording.
            CaptureEdge::End if open == 0 => times.push((i64::MIN, time)),
            CaptureEdge::End => {
                open -= 1;
                if open == 0 {
                    times.push((begin, time));
                }
            }
        }
    }
    if open > 0 {
        times.push((begin, i64::MAX));
    }
    times
}

fn is_within(times: &[(i64, i64)], time: i64) -> bool {
    let next = times.partition_point(|(_, end)| *end < time);
    times.get(next).is_some_and(|(begin, _)| *begin <= time)
}

impl CallKind {
    fn of(name: &str) -> Self {
        // cudaLaunchKernelExC, cuLaunchCooperativeKernel, urEnqueueKernelLaunch.
        if name.contains("Launch") && name.contains("Kernel") {
            Self::Launch
        } else if name.contains("StreamBeginCapture") {
            Self::Capture(CaptureEdge::Begin)
        } else if name.contains("StreamEndCapture") {
            Self::Capture(CaptureEdge::End)
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAUNCH: (u32, &str) = (0, "cudaLaunchKernel");
    const BEGIN: (u32, &str) = (1, "cudaStreamBeginCapture_v10010");
    const END: (u32, &str) = (2, "cudaStreamEndCapture");

    fn unreported(calls: &[((u32, &str), i128, i64)], work: &[i128]) -> u64 {
        let mut launches = Launches::default();
        for ((name, text), correlation, time) in calls {
            launches.add_call(StringId::from_raw(*name), text, *correlation, *time);
        }
        for number in work {
            launches.add_work(*number);
        }
        launches.unreported()
    }

    #[test]
    fn a_launch_without_a_kernel_is_lost() {
        let calls = [(LAUNCH, 1, 10), (LAUNCH, 2, 20), (LAUNCH, 3, 30)];
        assert_eq!(unreported(&calls, &[3, 1]), 1);
        assert_eq!(unreported(&calls, &[3, 1, 2]), 0);
    }

    // capture           |20         40|
    // launches    |10      |30            |50
    #[test]
    fn a_launch_during_a_capture_needs_no_kernel_but_others_do() {
        let calls = [
            (LAUNCH, 1, 10),
            (BEGIN, 2, 20),
            (LAUNCH, 3, 30),
            (END, 4, 40),
            (LAUNCH, 5, 50),
        ];
        assert_eq!(unreported(&calls, &[]), 2);
        assert_eq!(unreported(&calls, &[1, 5]), 0);
        assert_eq!(unreported(&calls[2..], &[5]), 0, "it began before");
        assert_eq!(unreported(&calls[..3], &[1]), 0, "it never ends");
    }
}
