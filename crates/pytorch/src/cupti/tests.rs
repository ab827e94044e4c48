//! Reads made-up records, and takes buffers as CUPTI hands them over.

#![expect(
    unsafe_code,
    reason = "the tests write and hand over memory as CUPTI does"
)]

use std::ffi::CStr;
use std::ptr;

use mindprof_model::{Category, DeviceKind, LossCause, Part, PassthroughKind};
use mindprof_record::{Options, Session, ThreadHandle, TimeAxis, ticks};

use super::blocks::{BLOCK_BYTES, Blocks, Count, Filled, KeepRecords, Lost};
use super::calls::{CallRecord, run_of};
use super::interface::Interface;
use super::layout::{Layout, kind};
use super::names::Domain;
use super::records::{End, Place, Record, Records};

/// A kind, its size, and its fields by their position and width.
type Row<'a> = (u32, &'a [(usize, usize, u64)]);

/// Returns the size of a record, with CUDA 13.0.
fn size(kind: u32) -> usize {
    match kind {
        kind::KERNEL => 216,
        kind::COPY | kind::PEER_COPY => 96,
        kind::FILL => 88,
        kind::RUNTIME | kind::DRIVER => 40,
        kind::SYNCHRONIZATION | kind::OVERHEAD | kind::CUDA_EVENT => 56,
        _ => 24,
    }
}

unsafe extern "C" fn next(buffer: *mut u8, bytes: usize, record: *mut *mut u8) -> i32 {
    const NO_MORE: i32 = 12;
    // SAFETY: the tests pass buffers of whole records.
    unsafe {
        let at = if (*record).is_null() {
            buffer
        } else {
            (*record).add(size((*record).cast::<u32>().read_unaligned()))
        };
        if at.addr() >= buffer.addr() + bytes {
            return NO_MORE;
        }
        *record = at;
        0
    }
}

pub(super) fn interface() -> Interface {
    Interface::stand_in(next, Layout::of_version(130_001).unwrap())
}

/// Returns a buffer with these records.
fn words(rows: &[Row<'_>]) -> Vec<u64> {
    let mut bytes = Vec::new();
    for (kind, fields) in rows {
        let start = bytes.len();
        bytes.resize(start + size(*kind), 0);
        let mut set = |position: usize, width: usize, value: u64| {
            let value = &value.to_le_bytes()[..width];
            bytes[start + position..start + position + width].copy_from_slice(value);
        };
        set(0, 4, u64::from(*kind));
        for &(position, width, value) in *fields {
            set(position, width, value);
        }
    }
    let words = bytes.chunks_exact(8);
    words
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        .collect()
}

fn kernel(times: (u64, u64), correlation: u64, name: &'static CStr) -> Vec<(usize, usize, u64)> {
    vec![
        (16, 8, times.0),
        (24, 8, times.1),
        (40, 4, 0),
        (44, 4, 1),
        (48, 4, 7),
        (52, 4, 3),
        (64, 4, 128),
        (92, 4, correlation),
        (104, 8, name.as_ptr().addr() as u64),
    ]
}

fn call(number: u64, times: (u64, u64), thread: u64, correlation: u64) -> [(usize, usize, u64); 5] {
    [
        (4, 4, number),
        (8, 8, times.0),
        (16, 8, times.1),
        (28, 4, thread),
        (32, 4, correlation),
    ]
}

/// A window that opens now, and times in it: `at(1)` is a microsecond or so after its opening.
struct Window {
    axis: TimeAxis,
    before: u64,
    opening: u64,
}

impl Window {
    fn new() -> Self {
        let before = ticks();
        let session = Session::start(Options::default());
        let opening = ticks();
        while ticks() < opening + 40_000_000 {}
        let axis = session.stop().axis();
        Self {
            axis,
            before,
            opening,
        }
    }

    fn at(&self, number: u64) -> u64 {
        self.opening + number * 10_000
    }

    fn ns(&self, number: u64) -> u64 {
        self.axis.reference_unix_ns() + self.axis.at_ticks(self.at(number)).0
    }

    fn read(&self, rows: &[Row<'_>], end: u64) -> Records {
        self.read_filled(&[Filled::made(&words(rows))], end)
    }

    fn read_filled(&self, filled: &[Filled], ticks: u64) -> Records {
        let thread = ThreadHandle::current();
        Records::read(&interface(), filled, &self.axis, End { ticks, thread })
    }
}

fn names(records: &Records) -> Vec<&str> {
    let list = records.list.iter();
    list.map(|record| records.names[record.name as usize].as_str())
        .collect()
}

// Threads that live at the same time may have handles with the same low half.
#[test]
fn calls_of_ours_have_whole_handles() {
    let window = Window::new();
    let times = (window.at(1), window.at(2));
    let launch = CallRecord::new(kind::RUNTIME, 211, times, 12);
    let records = window.read_filled(&[Filled::calls(run_of(&[launch]))], u64::MAX);
    let own = ThreadHandle::current().to_raw().cast_signed();
    assert_eq!(records.list[0].place, Place::Thread(own));
}

#[test]
fn graphs_of_other_threads_are_noted() {
    let window = Window::new();
    let times = (window.at(1), window.at(2));
    let own = ThreadHandle::current().to_raw() & u64::from(u32::MAX);
    let has_graphs = |number, thread| {
        let call = call(number, times, thread, 12);
        let records = window.read(&[(kind::RUNTIME, &call)], u64::MAX);
        records.has_graphs_elsewhere
    };
    assert!(has_graphs(311, own ^ 1));
    assert!(!has_graphs(311, own));
    assert!(!has_graphs(211, own ^ 1));
}

#[test]
fn records_are_read_by_the_positions_of_their_fields() {
    let window = Window::new();
    let span = |from, to| (window.at(from), window.at(to));
    let gemm = kernel(span(3, 5), 12, c"gemm");
    let launch = call(211, span(1, 2), 0xb420_8040, 12);
    let copied = [
        (4, 1, 1),
        (5, 1, 2),
        (6, 1, 3),
        (8, 8, 4096),
        (16, 8, window.at(6)),
        (24, 8, window.at(7)),
        (40, 4, 13),
        (44, 4, 14),
    ];
    let filled = [
        (16, 8, window.at(8)),
        (24, 8, window.at(9)),
        (44, 4, 15),
        (50, 2, 3),
    ];
    let records = window.read(
        &[
            (kind::RUNTIME, &launch),
            (kind::KERNEL, &gemm),
            (kind::COPY, &copied),
            (kind::FILL, &filled),
        ],
        u64::MAX,
    );
    let expected = [
        "cudaLaunchKernel",
        "gemm",
        "Memcpy HtoD (Pinned -> Device)",
        "Memset (Device)",
    ];
    assert_eq!(names(&records), expected);
    let Record {
        start_ns,
        end_ns,
        correlation,
        place,
        ..
    } = records.list[1];
    assert_eq!((start_ns, end_ns), (window.ns(3), window.ns(5)));
    let stream = Place::Stream {
        device: 0,
        stream: 7,
    };
    assert_eq!((correlation, place), (12, stream));
    // A thread is named by the low half of its handle, with its sign.
    let thread = 0xb420_8040_u32.cast_signed();
    assert_eq!(records.list[0].place, Place::Thread(thread.into()));
    assert_eq!(records.list[2].correlation, 14);
    let text = records.arguments.text(records.list[2].arguments, 800);
    assert!(text.unwrap().contains(r#""bytes":4096"#));
}

#[test]
fn what_torch_does_not_show_is_left_out() {
    let window = Window::new();
    let span = (window.at(1), window.at(2));
    let calls = [call(10, span, 1, 2), call(211, span, 1, 3)];
    let driver = [call(307, span, 1, 4), call(719, span, 1, 5)];
    let records = window.read(
        &[
            (kind::RUNTIME, &calls[0]),
            (kind::RUNTIME, &calls[1]),
            (kind::DRIVER, &driver[0]),
            (kind::DRIVER, &driver[1]),
            (99, &[]),
        ],
        u64::MAX,
    );
    assert_eq!(names(&records), ["cudaLaunchKernel", "cuLaunchKernel"]);
}

#[test]
fn calls_that_torch_does_not_show_are_known_beforehand() {
    let interface = interface();
    let left_out = interface.rules.left_out(&interface);
    assert_eq!(left_out, [(Domain::Runtime, 10), (Domain::Driver, 719)]);
}

// window         |open                |end
// calls       ^       ^                  ^     only the second
// kernels     ^       ^                  ^     not the first; one without an end is not over
#[test]
fn what_began_outside_of_the_collection_is_left_out() {
    let window = Window::new();
    let (early, late) = (window.before - 10, window.at(50));
    let spans = [
        (early, early + 5),
        (window.at(1), window.at(2)),
        (late, late + 5),
    ];
    let calls = spans.map(|span| call(211, span, 1, 1));
    let mut kernels: Vec<_> = spans.iter().map(|span| kernel(*span, 1, c"k")).collect();
    kernels.push(kernel((window.at(1), 0), 1, c"k"));
    let mut rows: Vec<Row<'_>> = calls
        .iter()
        .map(|call| (kind::RUNTIME, &call[..]))
        .collect();
    rows.extend(kernels.iter().map(|kernel| (kind::KERNEL, &kernel[..])));
    let records = window.read(&rows, window.at(50));
    assert_eq!(names(&records), ["cudaLaunchKernel", "k", "k"]);
}

#[test]
fn a_wait_of_a_stream_is_shown_if_the_stream_had_work() {
    let window = Window::new();
    let wait = |kind, stream| {
        [
            (4, 4, kind),
            (8, 8, window.at(1)),
            (16, 8, window.at(2)),
            (24, 4, 30),
            (28, 4, 1),
            (32, 4, stream),
            (36, 4, 56),
        ]
    };
    let recorded =
        |correlation, stream| [(4, 4, correlation), (8, 4, 1), (12, 4, stream), (16, 4, 56)];
    let gemm = kernel((window.at(1), window.at(2)), 12, c"gemm");
    let records = window.read(
        &[
            (kind::CUDA_EVENT, &recorded(31, 19)),
            (kind::CUDA_EVENT, &recorded(29, 13)),
            (kind::SYNCHRONIZATION, &wait(2, 7)),
            (kind::SYNCHRONIZATION, &wait(2, 8)),
            (kind::SYNCHRONIZATION, &wait(4, u64::from(u32::MAX))),
            (kind::KERNEL, &gemm),
        ],
        u64::MAX,
    );
    assert_eq!(
        names(&records),
        ["gemm", "Stream Wait Event", "Context Sync"]
    );
    let text = |index: usize| {
        records
            .arguments
            .text(records.list[index].arguments, 1)
            .unwrap()
    };
    assert!(text(1).contains(r#""wait_on_stream":13,"wait_on_cuda_event_record_corr_id":29"#));
    assert!(text(2).contains(r#""stream":-1,"device":0,"context":1"#));
}

fn part(window: &Window, rows: &[Row<'_>], lost: Lost) -> Part {
    let records = window.read(rows, u64::MAX);
    super::collection::part_of(&records, &window.axis, lost).unwrap()
}

#[test]
fn records_become_the_events_of_a_part() {
    let window = Window::new();
    let span = |from, to| (window.at(from), window.at(to));
    let overhead = [
        (4, 4, 7 << 16),
        (24, 8, window.at(1)),
        (32, 8, window.at(2)),
    ];
    let rows: &[Row<'_>] = &[
        (kind::OVERHEAD, &overhead),
        (kind::KERNEL, &kernel(span(3, 5), 12, c"gemm")),
        (kind::RUNTIME, &call(211, span(2, 3), 40, 12)),
        (kind::RUNTIME, &call(211, span(6, 7), 40, 13)),
    ];
    let part = part(&window, rows, Lost::default());
    let events = part.events();
    let text = |index: usize| part.strings.text(events[index].name);
    assert_eq!(text(0), "Activity Buffer Request");
    assert_eq!(text(1), "cudaLaunchKernel");
    assert_eq!(text(2), "gemm");
    let categories = [0, 1, 2].map(|index: usize| events[index].category);
    let expected = [Category::Other, Category::Runtime, Category::Kernel];
    assert_eq!(categories, expected);
    let thread = |index: usize| part.threads()[events[index].thread.index()];
    assert_eq!((thread(1).device, thread(1).native), (DeviceKind::Cpu, 40));
    assert_eq!((thread(2).device, thread(2).native), (DeviceKind::Cuda, 7));
    assert_eq!(part.links(1).correlation, part.links(2).correlation);
    let told = part.passthrough.of(PassthroughKind::Arguments, 2);
    let told = part.passthrough.texts.text(told.unwrap());
    assert!(told.as_str().contains(r#""block":[128,0,0]"#));
    let start = part.reference_unix_ns + events[2].start.0;
    assert_eq!(start, window.ns(3));
    // The second launch has no kernel.
    let profile = part.into_profile().unwrap();
    assert_eq!(profile.loss().count(LossCause::Unreported), 1);
}

#[test]
fn a_loss_is_not_counted_twice() {
    let window = Window::new();
    let span = (window.at(1), window.at(2));
    let launches = [1, 2, 3].map(|correlation| call(211, span, 40, correlation));
    let rows = launches
        .each_ref()
        .map(|launch| (kind::RUNTIME, &launch[..]));
    let lost = Lost {
        over_budget: Count {
            calls: 5,
            others: 1,
        },
        dropped: 1,
    };
    let part = part(&window, &rows, lost);
    let profile = part.into_profile().unwrap();
    // Lost calls are no work that a launch misses.
    assert_eq!(profile.loss().count(LossCause::Budget), 6);
    assert_eq!(profile.loss().count(LossCause::Unreported), 2);
}

/// Fills a buffer as CUPTI does, and hands it back. Returns whether it was taken.
fn hand_over(blocks: &Blocks, rows: &[Row<'_>], times: usize) -> bool {
    let words = words(rows);
    let block = blocks.give();
    for index in 0..times {
        // SAFETY: the words fit into the buffer as often.
        unsafe {
            let size = size_of_val(words.as_slice());
            let target = block.add(index * size);
            ptr::copy_nonoverlapping(words.as_ptr().cast::<u8>(), target, size);
        }
    }
    let bytes = size_of_val(words.as_slice()) * times;
    // SAFETY: as many bytes were written.
    unsafe { blocks.take_back(&interface(), block, bytes) }
}

fn number_of_records(filled: &[Filled]) -> usize {
    let mut count = 0;
    for buffer in filled {
        buffer.each(&interface(), |_| count += 1);
    }
    count
}

#[test]
fn a_collection_has_what_was_handed_back_while_it_was_open() {
    let blocks = Blocks::new();
    let row = call(211, (1, 2), 1, 1);
    let rows: &[Row<'_>] = &[(kind::RUNTIME, &row)];
    assert!(hand_over(&blocks, rows, 3), "before");
    let first = blocks.open(BLOCK_BYTES * 4, KeepRecords::First);
    assert!(hand_over(&blocks, rows, 5));
    let most = BLOCK_BYTES / 40;
    assert!(hand_over(&blocks, rows, most));
    let taken = blocks.close(first).unwrap();
    assert_eq!(number_of_records(&taken.filled), 5 + most);
    assert_eq!(taken.lost, Lost::default());
    blocks.recycle(taken.filled);
    assert!(hand_over(&blocks, rows, 3), "after");
    let second = blocks.open(BLOCK_BYTES, KeepRecords::First);
    assert!(hand_over(&blocks, rows, 7));
    assert!(blocks.close(first).is_none(), "it has ended");
    assert_eq!(number_of_records(&blocks.close(second).unwrap().filled), 7);
}

#[test]
fn what_exceeds_the_budget_is_counted() {
    let blocks = Blocks::new();
    let shown = call(211, (1, 2), 1, 1);
    let left_out = call(10, (1, 2), 1, 2);
    let rows: &[Row<'_>] = &[(kind::RUNTIME, &shown), (kind::RUNTIME, &left_out)];
    let collection = blocks.open(1000, KeepRecords::First);
    assert!(hand_over(&blocks, rows, 10));
    assert!(hand_over(&blocks, rows, 9));
    assert!(hand_over(&blocks, rows, 2));
    let taken = blocks.close(collection).unwrap();
    assert_eq!(number_of_records(&taken.filled), 24);
    let expected = Lost {
        over_budget: calls(9),
        dropped: 0,
    };
    assert_eq!(taken.lost, expected);
}

#[test]
fn the_last_records_stay_if_they_are_wanted() {
    let blocks = Blocks::new();
    let shown = call(211, (1, 2), 1, 1);
    let rows: &[Row<'_>] = &[(kind::RUNTIME, &shown)];
    let size = size_of_val(words(rows).as_slice());
    let collection = blocks.open(10 * size, KeepRecords::Last);
    for times in [4, 5, 3, 6] {
        assert!(hand_over(&blocks, rows, times));
    }
    assert!(hand_over(&blocks, rows, 11), "more than the budget");
    let taken = blocks.close(collection).unwrap();
    assert_eq!(number_of_records(&taken.filled), 3 + 6);
    let counts: Vec<Count> = taken.evicted.iter().map(|it| it.count).collect();
    assert_eq!(counts, [4, 5].map(calls));
    let times: Vec<u64> = taken.evicted.iter().map(|it| it.until).collect();
    assert!(times.is_sorted() && times[0] > 0, "{times:?}");
    assert_eq!(taken.lost.over_budget, calls(11));
}

fn calls(count: u64) -> Count {
    Count {
        calls: count,
        others: 0,
    }
}

// A run over days makes room again and again.
#[test]
fn what_made_room_is_counted_in_a_bounded_list() {
    let blocks = Blocks::new();
    let shown = call(211, (1, 2), 1, 1);
    let rows: &[Row<'_>] = &[(kind::RUNTIME, &shown)];
    let size = size_of_val(words(rows).as_slice());
    let collection = blocks.open(size, KeepRecords::Last);
    for _ in 0..5_000 {
        assert!(hand_over(&blocks, rows, 1));
    }
    let taken = blocks.close(collection).unwrap();
    assert!(taken.evicted.len() <= 1024, "{}", taken.evicted.len());
    let count: u64 = taken.evicted.iter().map(|it| it.count.all()).sum();
    assert_eq!(count, 4_999);
    assert!(taken.evicted.is_sorted_by_key(|it| it.until));
}

#[test]
fn a_buffer_of_another_is_not_taken() {
    let blocks = Blocks::new();
    let mut other = [0_u64; 8];
    // SAFETY: the buffer is only compared with those that were given.
    let is_taken = unsafe { blocks.take_back(&interface(), other.as_mut_ptr().cast(), 64) };
    assert!(!is_taken);
    // A buffer is handed back once.
    let block = blocks.give();
    // SAFETY: nothing was written.
    let taken = unsafe {
        [
            blocks.take_back(&interface(), block, 0),
            blocks.take_back(&interface(), block, 0),
        ]
    };
    assert_eq!(taken, [true, false]);
}
