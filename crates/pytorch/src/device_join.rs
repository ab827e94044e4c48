//! Joins device events to the window that they were recorded beside.
//!
//! Kineto records the devices and the calls that launch their work, the observer records operators
//! and ranges. A call has the handle of its thread, which tells the thread in the window, and then
//! the ranges around the call follow from its time. This moves the calls to their threads and adds to
//! each stream the ranges that users named, as torch does; operators find their kernels in the
//! analysis.

use mindprof_model::{
    Category, DeviceKind, Event, Flags, Links, Nanos, Part, StringId, Thread, ThreadId,
};
use mindprof_record::WindowEvents;
use rustc_hash::FxHashMap;

/// Moves runtime calls to the window's threads, and adds the device's side of the window's ranges:
/// on each stream, a range covers the work that was launched directly in it.
///
/// ```text
/// thread    forward        |-----------------|
///           launch             |-|    |-|
/// stream    kernel                |----|  |-------|
///           forward               |---------------|      added
/// ```
pub fn join_devices(window: &WindowEvents, devices: &mut Part) {
    move_calls(window, devices);
    let window = &window.part;
    let ranges = Ranges::of(window);
    if ranges.list.is_empty() {
        return;
    }
    let launched_in = ranges.of_launches(devices);
    for (range, extent) in extents(devices, &launched_in) {
        let name = devices
            .strings
            .intern(window.strings.text(ranges.list[range].name));
        let (start, duration) = (extent.start, extent.end - extent.start);
        let event = Event::new(
            Category::DeviceAnnotation,
            name,
            extent.stream,
            start,
            duration,
        );
        devices.add_linked_event(event, Links::default());
    }
}

/// Moves the runtime calls of devices to the threads that the window knows them by.
fn move_calls(window: &WindowEvents, devices: &mut Part) {
    let lives = Lives::of(window);
    let threads: Vec<_> = devices.threads().to_vec();
    let is_host = |thread: &&Thread| thread.device == DeviceKind::Cpu;
    let callers: FxHashMap<u64, Vec<Life>> = threads
        .iter()
        .filter(is_host)
        .map(|thread| (thread.native, lives.with_handle(window, thread.native)))
        .collect();
    let found: Vec<ThreadId> = window
        .part
        .threads()
        .iter()
        .map(|thread| {
            let name = devices
                .strings
                .intern(window.part.strings.text(thread.name));
            devices.add_thread(Thread { name, ..*thread })
        })
        .collect();
    let zero = devices.reference_unix_ns;
    devices.move_events(|event| {
        let thread = threads[event.thread.index()];
        let lives = callers.get(&thread.native).filter(|_| is_host(&&thread))?;
        let life = nearest(lives, zero + event.start.0)?;
        Some(found[life.thread])
    });
}

/// The time from the first event of a thread to its last, in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug)]
struct Life {
    start: u64,
    end: u64,
    /// The index among the window's threads.
    thread: usize,
}

/// The lives of the window's threads.
struct Lives(Vec<Life>);

impl Lives {
    fn of(window: &WindowEvents) -> Self {
        let part = &window.part;
        let mut lives: Vec<Life> = (0..part.threads().len())
            .map(|thread| Life {
                start: u64::MAX,
                end: 0,
                thread,
            })
            .collect();
        for event in part.events() {
            let life = &mut lives[event.thread.index()];
            life.start = life.start.min(part.reference_unix_ns + event.start.0);
            life.end = life.end.max(part.reference_unix_ns + event.end().0);
        }
        lives.sort_unstable_by_key(|life| life.start);
        Self(lives)
    }

    /// Returns the lives of the threads that a collector's number may mean, in the order of their
    /// starts.
    fn with_handle(&self, window: &WindowEvents, number: u64) -> Vec<Life> {
        let is_meant = |life: &&Life| {
            let handle = window.handles.get(life.thread);
            handle.is_some_and(|handle| handle.is_meant_by(number))
        };
        self.0.iter().filter(is_meant).copied().collect()
    }
}

/// Returns the life that is nearest to a time. Threads have a handle one after the other, so only
/// two can be.
///
/// ```text
/// handle 7    ──thread 3──      ───thread 5───
/// call                      ^ thread 5
/// ```
fn nearest(lives: &[Life], time: u64) -> Option<&Life> {
    let next = lives.partition_point(|life| life.start <= time);
    let near = &lives[next.saturating_sub(1)..lives.len().min(next + 1)];
    near.iter().min_by_key(|life| {
        let after = life.start.saturating_sub(time);
        after.max(time.saturating_sub(life.end))
    })
}

/// A range that a user named, in nanoseconds since the Unix epoch.
struct Range {
    start: u64,
    end: u64,
    name: StringId,
    /// The system's id of its thread.
    thread: u64,
}

/// The ranges of a window in start order.
struct Ranges {
    list: Vec<Range>,
}

impl Ranges {
    fn of(window: &Part) -> Self {
        let zero = window.reference_unix_ns;
        let is_range = |event: &&Event| {
            event.category == Category::Annotation
                && !event.flags.contains(Flags::ASYNC)
                && !event.flags.contains(Flags::HIDDEN)
        };
        let mut list: Vec<Range> = window
            .events()
            .iter()
            .filter(is_range)
            .map(|event| Range {
                start: zero + event.start.0,
                end: zero + event.end().0,
                name: event.name,
                thread: window.threads()[event.thread.index()].native,
            })
            .collect();
        list.sort_by_key(|range| range.start);
        Self { list }
    }

    /// Returns the innermost range around each call of the runtime, by correlation id.
    fn of_launches(&self, devices: &Part) -> FxHashMap<u32, usize> {
        let zero = devices.reference_unix_ns;
        let mut open: FxHashMap<u64, Vec<usize>> = FxHashMap::default();
        let mut ranges = self.list.iter().enumerate().peekable();
        let mut found = FxHashMap::default();
        let calls = devices.events().iter().enumerate();
        for (index, call) in calls.filter(|(_, event)| event.category == Category::Runtime) {
            let time = zero + call.start.0;
            while let Some((index, range)) = ranges.next_if(|(_, range)| range.start <= time) {
                let stack = open.entry(range.thread).or_default();
                while stack
                    .pop_if(|outer| self.list[*outer].end <= range.start)
                    .is_some()
                {}
                stack.push(index);
            }
            let thread = devices.threads()[call.thread.index()].native;
            let Some(stack) = open.get_mut(&thread) else {
                continue;
            };
            while stack
                .pop_if(|range| self.list[*range].end <= time)
                .is_some()
            {}
            if let Some(&range) = stack.last() {
                found.insert(devices.links(index).correlation, range);
            }
        }
        found.remove(&0);
        found
    }
}

/// The time that the work of a range takes on a stream.
struct Extent {
    stream: ThreadId,
    start: Nanos,
    end: Nanos,
}

/// Returns what the work of each range covers on each stream, by the index of the range.
fn extents(devices: &Part, launched_in: &FxHashMap<u32, usize>) -> Vec<(usize, Extent)> {
    let mut places: FxHashMap<(usize, ThreadId), usize> = FxHashMap::default();
    let mut found: Vec<(usize, Extent)> = Vec::new();
    for (index, work) in devices.events().iter().enumerate() {
        let on_device = devices.threads()[work.thread.index()].device != DeviceKind::Cpu;
        if work.category != Category::Kernel || !on_device {
            continue;
        }
        let Some(&range) = launched_in.get(&devices.links(index).correlation) else {
            continue;
        };
        let place = *places.entry((range, work.thread)).or_insert(found.len());
        if place == found.len() {
            let extent = Extent {
                stream: work.thread,
                start: work.start,
                end: work.end(),
            };
            found.push((range, extent));
        } else {
            let extent = &mut found[place].1;
            extent.start = extent.start.min(work.start);
            extent.end = extent.end.max(work.end());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use mindprof_model::StringTable;
    use mindprof_record::ThreadHandle;

    use super::*;

    const HOST: (u64, DeviceKind) = (40, DeviceKind::Cpu);
    const OTHER: (u64, DeviceKind) = (41, DeviceKind::Cpu);
    const STREAM: (u64, DeviceKind) = (7, DeviceKind::Cuda);
    const SIDE_STREAM: (u64, DeviceKind) = (13, DeviceKind::Cuda);

    type Row = (
        Category,
        &'static str,
        (u64, DeviceKind),
        std::ops::Range<u64>,
        u32,
    );

    fn part(reference_unix_ns: u64, rows: &[Row]) -> Part {
        let mut part = Part::new();
        part.reference_unix_ns = reference_unix_ns;
        let threads = [HOST, OTHER, STREAM, SIDE_STREAM];
        let ids = threads.map(|(native, device)| {
            part.add_thread(Thread {
                process: 1,
                native,
                name: StringTable::EMPTY,
                device,
            })
        });
        for (category, name, thread, times, correlation) in rows {
            let name = part.strings.intern(name);
            let place = threads.iter().position(|known| known == thread).unwrap();
            let (start, duration) = (Nanos(times.start), Nanos(times.end - times.start));
            let event = Event::new(*category, name, ids[place], start, duration);
            part.add_linked_event(event, Links::new(0, *correlation));
        }
        part
    }

    /// A window whose threads have handles that a collector cuts to the numbers 40 and 41.
    fn window(reference_unix_ns: u64, rows: &[Row]) -> WindowEvents {
        let handles = [HOST, OTHER].map(|(number, _)| ThreadHandle::from_raw(number | 7 << 32));
        WindowEvents {
            part: part(reference_unix_ns, rows),
            handles: handles.to_vec(),
        }
    }

    fn ranges_of_streams(part: &Part) -> Vec<(String, u64, u64, u64)> {
        let ranges = part.events().iter();
        let ranges = ranges.filter(|event| event.category == Category::DeviceAnnotation);
        let mut found: Vec<_> = ranges
            .map(|event| {
                let name = part.strings.text(event.name).to_owned();
                let stream = part.threads()[event.thread.index()].native;
                (name, stream, event.start.0, event.end().0)
            })
            .collect();
        found.sort();
        found
    }

    // thread     step     |--------------------------------------|   100..200, of the window
    //            forward       |----------|                          110..140
    // launches                   |    |           |                  115 (1), 130 (2), 160 (3)
    // other                        |                                 120 (4): another thread
    // stream 7                     |---| |---|           |--|        1, 2 and 3
    // stream 13                              |-|                     4, and 5 without a launch
    #[test]
    fn a_range_covers_the_work_that_was_launched_directly_in_it() {
        use Category::{Annotation, Kernel, Operator, Runtime};
        let window = window(
            1_000,
            &[
                (Annotation, "step", HOST, 100..200, 0),
                (Annotation, "forward", HOST, 110..140, 0),
                (Operator, "aten::mm", HOST, 112..120, 0),
            ],
        );
        let mut devices = part(
            900,
            &[
                (Runtime, "cudaLaunchKernel", HOST, 215..218, 1),
                (Runtime, "cudaLaunchKernel", OTHER, 220..221, 4),
                (Runtime, "cudaLaunchKernel", HOST, 230..231, 2),
                (Runtime, "cudaLaunchKernel", HOST, 260..262, 3),
                (Kernel, "gemm", STREAM, 220..230, 1),
                (Kernel, "relu", STREAM, 240..250, 2),
                (Kernel, "copy", SIDE_STREAM, 250..255, 4),
                (Kernel, "unknown", SIDE_STREAM, 256..258, 5),
                (Kernel, "sum", STREAM, 280..290, 3),
            ],
        );
        join_devices(&window, &mut devices);
        let expected = [("forward", 7, 220, 250), ("step", 7, 280, 290)];
        let expected = expected.map(|(name, stream, from, to)| (name.to_owned(), stream, from, to));
        assert_eq!(ranges_of_streams(&devices), expected);
        devices.check().unwrap();
    }

    #[test]
    fn a_range_has_one_event_per_stream() {
        use Category::{Annotation, Kernel, Runtime};
        let window = window(0, &[(Annotation, "step", HOST, 100..200, 0)]);
        let mut devices = part(
            0,
            &[
                (Runtime, "cudaLaunchKernel", HOST, 110..112, 1),
                (Runtime, "cudaLaunchKernel", HOST, 120..122, 2),
                (Runtime, "cudaLaunchKernel", HOST, 200..202, 3),
                (Kernel, "gemm", STREAM, 115..140, 1),
                (Kernel, "gemm", SIDE_STREAM, 125..130, 2),
                (Kernel, "late", STREAM, 205..210, 3),
            ],
        );
        join_devices(&window, &mut devices);
        let expected = [
            ("step".to_owned(), 7, 115, 140),
            ("step".to_owned(), 13, 125, 130),
        ];
        assert_eq!(ranges_of_streams(&devices), expected);
    }

    // handle 40    thread 40 |100───200|       thread 41 |400───500|
    // calls                     ^150      ^250     ^380              ^600
    #[test]
    fn a_call_is_of_the_thread_that_was_nearest_with_its_handle() {
        use Category::{Operator, Runtime};
        let mut window = window(
            0,
            &[
                (Operator, "aten::mm", HOST, 100..200, 0),
                (Operator, "aten::mm", OTHER, 400..500, 0),
            ],
        );
        window.handles[1] = window.handles[0];
        // As a collector reports it: 32 bits, taken for a signed number.
        const NUMBER: (u64, DeviceKind) = (40, DeviceKind::Cpu);
        let call = |time: u64| (Runtime, "cudaLaunchKernel", NUMBER, time..time + 1, 0);
        let mut devices = part(0, &[150, 250, 380, 600].map(call));
        join_devices(&window, &mut devices);
        let callers = devices.events().iter();
        let callers = callers.map(|event| devices.threads()[event.thread.index()].native);
        assert_eq!(callers.collect::<Vec<_>>(), [40, 40, 41, 41]);
        devices.check().unwrap();
    }

    #[test]
    fn a_call_of_an_unknown_thread_stays() {
        use Category::{Operator, Runtime};
        let window = window(0, &[(Operator, "aten::mm", HOST, 100..200, 0)]);
        let stranger = (99, DeviceKind::Cpu);
        let mut devices = Part::new();
        let thread = devices.add_thread(Thread {
            process: 1,
            native: stranger.0,
            name: StringTable::EMPTY,
            device: stranger.1,
        });
        let name = devices.strings.intern("cudaLaunchKernel");
        let call = Event::new(Runtime, name, thread, Nanos(150), Nanos(2));
        devices.add_linked_event(call, Links::new(0, 1));
        join_devices(&window, &mut devices);
        assert_eq!(devices.events()[0].thread, thread);
    }
}
