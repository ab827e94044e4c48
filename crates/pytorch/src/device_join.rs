//! Joins device events to the window that they were recorded beside.
//!
//! Kineto records the devices and the calls that launch their work, the observer records operators
//! and ranges. Once a call is on the thread that made it (`device_callers`), the ranges around it
//! follow from its time. This adds to each stream the ranges that users named, and to kernels of
//! collectives the arguments of the operator that launched them, as torch does; operators find their
//! kernels in the analysis.

use mindprof_model::{
    Category, DeviceKind, Event, Flags, Links, Nanos, Part, PassthroughKind, ThreadId,
};
use mindprof_record::WindowEvents;
use rustc_hash::FxHashMap;

use crate::collectives::COLLECTIVE;
use crate::device_callers::{CallerNumbers, move_calls};

/// The beginnings of the names of device work other than kernels.
const OTHER_WORK: [&str; 2] = ["Memcpy", "Memset"];

/// Moves runtime calls to the window's threads, and adds the device's side of the window's ranges:
/// on each stream, a range covers the work that was launched directly in it. Kernels that a
/// collective launched get its arguments.
///
/// ```text
/// thread    forward        |-----------------|
///           launch             |-|    |-|
/// stream    kernel                |----|  |-------|
///           forward               |---------------|      added
/// ```
pub fn join_devices(window: &WindowEvents, devices: &mut Part) {
    join(window, devices, CallerNumbers::Kineto);
}

/// As [`join_devices`], for the records of CUPTI, which name threads by their handles.
pub fn join_records(window: &WindowEvents, devices: &mut Part) {
    join(window, devices, CallerNumbers::Handles);
}

fn join(window: &WindowEvents, devices: &mut Part, numbers: CallerNumbers) {
    move_calls(window, devices, numbers);
    let window = &window.part;
    describe_exchanges(window, devices);
    // Also asynchronous ones, as those of collectives are.
    let ranges = Ranges::of(window, |event| {
        event.category == Category::Annotation && !event.flags.contains(Flags::HIDDEN)
    });
    if ranges.list.is_empty() {
        return;
    }
    let launched_in = ranges.of_launches(devices);
    for (range, extent) in extents(devices, &launched_in) {
        let name = devices.strings.intern(
            window
                .strings
                .text(window.events()[ranges.list[range].event].name),
        );
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

/// Adds the arguments of collectives to the kernels that were launched directly in them.
///
/// ```text
/// thread    record_param_comms   |------------|          "Seq":5
///           launch                   |-|
/// stream    ncclDevKernel_…                |-------|     "stream":13,…,"Seq":5
/// ```
fn describe_exchanges(window: &Part, devices: &mut Part) {
    let arguments = &window.passthrough;
    let text_of = |index| arguments.of(PassthroughKind::Arguments, index);
    let mut events = window.events().iter().enumerate();
    let is_collective = |(index, event): (usize, &Event)| {
        window.strings.text(event.name) == COLLECTIVE && text_of(index).is_some()
    };
    if !events.any(is_collective) {
        return;
    }
    let operators = Ranges::of(window, |event| {
        event.category == Category::Operator && !event.flags.contains(Flags::ASYNC)
    });
    let launched_in = operators.of_launches(devices);
    let described = devices
        .events()
        .iter()
        .enumerate()
        .filter_map(|(index, work)| {
            let name = devices.strings.text(work.name);
            let is_kernel = work.category == Category::Kernel
                && !OTHER_WORK.iter().any(|other| name.starts_with(other));
            let correlation = is_kernel.then(|| devices.links(index).correlation)?;
            let owner = operators.list[*launched_in.get(&correlation)?].event;
            if window.strings.text(window.events()[owner].name) != COLLECTIVE {
                return None;
            }
            Some((index, arguments.texts.text(text_of(owner)?)))
        });
    let described: FxHashMap<usize, String> = described.collect();
    (devices.passthrough).add_entries(PassthroughKind::Arguments, described);
}

/// A range of the window, in nanoseconds since the Unix epoch.
struct Range {
    start: u64,
    end: u64,
    /// The index of its event.
    event: usize,
    /// The system's id of its thread.
    thread: u64,
}

/// The ranges of a window in start order.
struct Ranges {
    list: Vec<Range>,
}

impl Ranges {
    /// Collects the events for which something holds.
    fn of(window: &Part, is_range: impl Fn(&Event) -> bool) -> Self {
        let zero = window.reference_unix_ns;
        let events = window.events().iter().enumerate();
        let mut list: Vec<Range> = events
            .filter(|(_, event)| is_range(event))
            .map(|(index, event)| Range {
                start: zero + event.start.0,
                end: zero + event.end().0,
                event: index,
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
    use mindprof_model::{StringTable, Thread};
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

    // Collectives are ranges that may end on another thread. They do not nest in time.
    #[test]
    fn asynchronous_ranges_cover_their_work_too() {
        use Category::{Annotation, Kernel, Runtime};
        let mut window = window(0, &[(Annotation, "step", HOST, 100..200, 0)]);
        for (name, start, duration) in [("nccl:reduce", 110, 10), ("late", 130, 170)] {
            let name = window.part.strings.intern(name);
            let thread = window.part.events()[0].thread;
            let times = (Nanos(start), Nanos(duration));
            let mut event = Event::new(Annotation, name, thread, times.0, times.1);
            event.flags = event.flags.union(Flags::ASYNC);
            window.part.add_linked_event(event, Links::default());
        }
        let mut devices = part(
            0,
            &[
                (Runtime, "cudaLaunchKernel", HOST, 112..113, 1),
                (Runtime, "cudaLaunchKernel", HOST, 122..123, 2),
                (Runtime, "cudaLaunchKernel", HOST, 250..251, 3),
                (Kernel, "exchange", STREAM, 115..140, 1),
                (Kernel, "sum", STREAM, 145..150, 2),
                (Kernel, "tail", STREAM, 260..270, 3),
            ],
        );
        join_devices(&window, &mut devices);
        let expected = [
            ("late".to_owned(), 7, 260, 270),
            ("nccl:reduce".to_owned(), 7, 115, 140),
            ("step".to_owned(), 7, 145, 150),
        ];
        assert_eq!(ranges_of_streams(&devices), expected);
    }

    fn arguments(part: &Part) -> Vec<Option<String>> {
        let passthrough = &part.passthrough;
        let of = |index| {
            let text = passthrough.of(PassthroughKind::Arguments, index)?;
            Some(passthrough.texts.text(text))
        };
        (0..part.len()).map(of).collect()
    }

    fn add_arguments(part: &mut Part, index: usize, text: &str) {
        let text = part.passthrough.texts.add(text).unwrap();
        (part.passthrough).set(PassthroughKind::Arguments, index, text);
    }

    // thread     collective   |-----------------|                 "Seq":5
    //            copy_              |--|
    //            collective                          |------|     none recorded
    // launches                   |   |     |  |        |     |    1, 2, 3, 6, 4 and 5
    // stream 7                     |---|                          1: an exchange
    //                                  |--|                       2: a copy by another operator
    //                                        |--|                 3: an exchange without arguments
    //                                             |--|            6: no kernel
    //                                                  |--| |--|  4 and 5
    #[test]
    fn an_exchange_has_the_arguments_of_the_collective_that_launched_it() {
        use Category::{Kernel, Operator, Runtime};
        let mut window = window(
            0,
            &[
                (Operator, COLLECTIVE, HOST, 100..120, 0),
                (Operator, COLLECTIVE, HOST, 130..140, 0),
                (Operator, "aten::neg", HOST, 150..160, 0),
                (Operator, "aten::copy_", HOST, 107..110, 0),
            ],
        );
        add_arguments(&mut window.part, 0, r#""Seq":5"#);
        add_arguments(&mut window.part, 2, r#""Seq":6"#);
        let launches = [104, 108, 112, 132, 152, 116].into_iter().zip(1..);
        let launches = launches
            .map(|(start, number)| (Runtime, "cudaLaunchKernel", HOST, start..start + 1, number));
        let kernels = [
            "ncclDevKernel_AllReduce",
            "copy",
            "onerank_reduce",
            "ncclLate",
            "ncclOther",
            "Memcpy DtoD (Device -> Device)",
        ];
        let kernels = kernels.into_iter().zip(1..).map(|(name, number)| {
            let start = 200 + u64::from(number) * 10;
            (Kernel, name, STREAM, start..start + 5, number)
        });
        let mut devices = part(0, &launches.chain(kernels).collect::<Vec<_>>());
        add_arguments(&mut devices, 6, r#""stream":7"#);
        add_arguments(&mut devices, 7, r#""stream":7"#);
        join_records(&window, &mut devices);
        let found = arguments(&devices).split_off(6);
        let found: Vec<Option<&str>> = found.iter().map(Option::as_deref).collect();
        let expected = [
            Some(r#""stream":7,"Seq":5"#),
            Some(r#""stream":7"#),
            Some(r#""Seq":5"#),
            None,
            None,
            None,
        ];
        assert_eq!(found, expected);
        devices.check().unwrap();
    }
}
