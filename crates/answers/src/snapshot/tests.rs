//! Histories that are drawn by hand, replayed.

use mindprof_model::{
    AllocatorAction, AllocatorEntry, BlockState, MemorySnapshot, SnapshotBlock, SnapshotDevice,
    SnapshotSegment, StackId,
};

use super::*;

const MIB: u64 = 1 << 20;

/// A snapshot of one device that is written down entry by entry, a microsecond apart.
#[derive(Default)]
struct Draft {
    snapshot: MemorySnapshot,
    device: SnapshotDevice,
}

impl Draft {
    /// Interns a stack of frames, outermost first.
    fn stack(&mut self, frames: &[&str]) -> StackId {
        frames.iter().fold(StackId::NONE, |caller, frame| {
            let frame = self.snapshot.strings.intern(frame);
            self.snapshot.stacks.push(caller, frame)
        })
    }

    fn entry(&mut self, action: AllocatorAction, address: u64, bytes: u64, stack: StackId) {
        let time_us = 1_000 + self.device.entries.len() as u64;
        self.device.entries.push(AllocatorEntry {
            action,
            address,
            bytes,
            time_us,
            stream: 0,
            stack,
        });
    }

    fn alloc(&mut self, address: u64, bytes: u64, stack: StackId) {
        self.entry(AllocatorAction::Alloc, address, bytes, stack);
    }

    fn free(&mut self, address: u64, bytes: u64) {
        self.entry(
            AllocatorAction::FreeRequested,
            address,
            bytes,
            StackId::NONE,
        );
        self.entry(
            AllocatorAction::FreeCompleted,
            address,
            bytes,
            StackId::NONE,
        );
    }

    /// Adds a segment with blocks one after another: their bytes, what was asked for, and by whom.
    /// Blocks that nobody asked for are free.
    fn segment(&mut self, address: u64, blocks: &[(u64, Option<(u64, StackId)>)]) {
        let mut end = address;
        let blocks = blocks.iter().map(|&(bytes, asked)| {
            let address = end;
            end += bytes;
            SnapshotBlock {
                address,
                bytes,
                requested: asked.map_or(0, |(requested, _)| requested),
                state: if asked.is_some() {
                    BlockState::Allocated
                } else {
                    BlockState::Free
                },
                stack: asked.map_or(StackId::NONE, |(_, stack)| stack),
            }
        });
        let blocks: Vec<SnapshotBlock> = blocks.collect();
        self.device.segments.push(SnapshotSegment {
            address,
            bytes: end - address,
            stream: 0,
            pool: (0, 0),
            is_large: true,
            is_expandable: false,
            blocks,
        });
    }

    fn answer(mut self) -> DeviceMemory {
        self.snapshot.devices.push(self.device);
        let mut memory = SnapshotMemory::build(&self.snapshot, &OwnCode::default());
        memory.devices.remove(0)
    }
}

/// ```text
/// state       0    1    2    3    5    the history has two frees, as each has two entries
/// old      40 |----|----|----|----|    there at the end, and no entry is about it
/// gone     30 |----|----|----|         freed, and no entry allocates it
/// new      20      |----|----|----|
/// brief    10           |----|
/// sum         70   90  100   90  60
/// ```
#[test]
fn memory_from_before_the_history_counts_from_its_start() {
    let mut draft = Draft::default();
    let [new, brief] =
        ["train.py(7): step", "train.py(8): step"].map(|frame| draft.stack(&[frame]));
    draft.alloc(2000, 20, new);
    draft.alloc(3000, 10, brief);
    draft.free(3000, 10);
    draft.free(4000, 30);
    draft.segment(
        1000,
        &[
            (1000, Some((40, StackId::NONE))),
            (1000, Some((20, new))),
            (3000, None),
        ],
    );
    let memory = draft.answer();
    assert_eq!(memory.curve.allocated_bytes, [90, 100, 100, 90, 90, 60]);
    assert_eq!(memory.curve.times_us, [0, 1, 2, 3, 4, 5]);
    assert_eq!(
        (memory.most().allocated_bytes, memory.most().time_us),
        (100, Some(1))
    );
    assert_eq!(memory.at_end.allocated_bytes, 60);
    assert_eq!(memory.history.before_bytes, 70);
    assert!(!memory.history.is_truncated());
    assert_eq!(memory.history.contradictions, 0);
    let lines: Vec<(u64, u64)> = memory
        .held
        .lines
        .iter()
        .map(|one| (one.bytes, one.blocks))
        .collect();
    assert_eq!(lines, [(70, 2), (20, 1), (10, 1)]);
    assert_eq!(memory.held.lines[0].kind, HolderKind::Before);
}

/// A block whose stack is known was recorded when it was allocated: its entry is gone.
#[test]
fn recorded_blocks_without_entries_show_that_the_ring_was_full() {
    let mut draft = Draft::default();
    let stack = draft.stack(&["train.py(7): step"]);
    draft.alloc(2000, 20, stack);
    draft.free(2000, 20);
    draft.segment(1000, &[(1000, Some((40, stack))), (1000, None)]);
    let memory = draft.answer();
    assert!(memory.history.is_truncated());
    assert_eq!(memory.history.overwritten_bytes, 40);
}

/// All earlier allocations were released, and only their segment shows that there were any.
#[test]
fn reserved_memory_from_before_the_history_is_counted() {
    let mut draft = Draft::default();
    draft.alloc(0, 20, StackId::NONE);
    draft.entry(AllocatorAction::SegmentAlloc, 9000, 500, StackId::NONE);
    draft.free(0, 20);
    draft.segment(0, &[(4096, None)]);
    draft.segment(9000, &[(500, None)]);
    let history = draft.answer().history;
    assert_eq!(history.before_bytes, 0);
    assert_eq!(history.before_reserved_bytes, 4096);
}

#[test]
fn memory_belongs_to_the_innermost_line_of_the_users() {
    let library = "/v/lib/python3.12/site-packages/torch/nn/modules/linear.py(5): forward";
    let mut draft = Draft::default();
    let mine = draft.stack(&[
        "train.py(9): main",
        "model.py(4): forward",
        library,
        "??(0): at::mm",
    ]);
    let theirs = draft.stack(&[library]);
    let native = draft.stack(&["??(0): start_thread", "engine.cpp(0): run"]);
    for (address, stack) in [
        (1000, mine),
        (2000, theirs),
        (3000, native),
        (4000, StackId::NONE),
    ] {
        draft.alloc(address, address, stack);
    }
    draft.segment(
        1000,
        &[
            (1000, Some((1000, mine))),
            (1000, Some((2000, theirs))),
            (1000, Some((3000, native))),
            (4000, Some((4000, StackId::NONE))),
        ],
    );
    let held = draft.answer().held;
    let kinds: Vec<&HolderKind> = held.lines.iter().map(|line| &line.kind).collect();
    let [
        HolderKind::NoPython,
        HolderKind::Library(theirs),
        HolderKind::Line(mine),
    ] = kinds[..]
    else {
        panic!("{kinds:?}");
    };
    assert_eq!((mine.file.as_str(), mine.line), ("model.py", 4));
    assert_eq!(theirs.line, 5);
    assert_eq!(held.lines[0].bytes, 7000);
    assert_eq!(held.stack_count, 4);
}

#[test]
fn contradictions_are_counted() {
    let mut draft = Draft::default();
    draft.alloc(1000, 10, StackId::NONE);
    draft.alloc(1000, 10, StackId::NONE);
    draft.free(2000, 10);
    draft.free(2000, 10);
    // The allocation at 1000 is not among the blocks, and a block at 2000 is.
    draft.segment(2000, &[(512, Some((10, StackId::NONE)))]);
    assert_eq!(draft.answer().history.contradictions, 4);
}

/// Without entries there is no history, only the blocks.
#[test]
fn a_snapshot_without_a_history_has_its_blocks() {
    let mut draft = Draft::default();
    let stack = draft.stack(&["train.py(7): step"]);
    draft.segment(
        0,
        &[
            (1024, Some((600, stack))),
            (512, None),
            (512, Some((512, stack))),
        ],
    );
    let memory = draft.answer();
    assert_eq!(memory.most().allocated_bytes, 1112);
    assert!(!memory.history.is_truncated());
    assert_eq!(
        memory.space,
        Space {
            reserved_bytes: 2048,
            allocated_bytes: 1536,
            rounding_bytes: 424,
            split_bytes: 512,
            split_blocks: 1,
            largest_free_bytes: 512,
            ..Space::default()
        }
    );
}

/// ```text
/// MiB     0    10   20   30   40   50   60   70   80
/// held         |                  |           |--|
/// free    |----||-----------------||----------|
/// page              |---------|                         the only one of 20 MiB that is free
/// ```
#[test]
fn segments_that_grow_in_place_return_whole_pages() {
    let held = Some((MIB, StackId::NONE));
    let blocks = [
        (10 * MIB, None),
        (MIB, held),
        (34 * MIB, None),
        (MIB, held),
        (29 * MIB, None),
        (5 * MIB, held),
    ];
    let mut draft = Draft::default();
    draft.segment(7 << 40, &blocks);
    draft.device.segments[0].is_expandable = true;
    let space = draft.answer().space;
    assert_eq!(space.cached_bytes, 20 * MIB);
    assert_eq!((space.split_bytes, space.split_blocks), (53 * MIB, 3));
    // The same blocks have more free pages of 2 MiB.
    let mut draft = Draft::default();
    draft.segment(7 << 40, &blocks);
    draft.device.segments[0].is_expandable = true;
    draft.device.segments[0].is_large = false;
    let space = draft.answer().space;
    assert_eq!(space.cached_bytes, (10 + 32 + 28) * MIB);
}

#[test]
fn private_pools_keep_their_free_memory() {
    let mut draft = Draft::default();
    draft.segment(0, &[(64 * MIB, None)]);
    draft.segment(1 << 40, &[(32 * MIB, None)]);
    draft.device.segments[0].pool = (0, 7);
    let space = draft.answer().space;
    assert_eq!(space.private_free_bytes, 64 * MIB);
    assert_eq!((space.cached_bytes, space.split_bytes), (32 * MIB, 0));
}

/// ```text
/// segment of 60 MiB:  | 20 free | 10 held | 20 free | 10 held |     asked for: 30 MiB
/// ```
#[test]
fn a_request_that_fits_into_the_sum_of_free_pieces_is_fragmentation() {
    let mut draft = Draft::default();
    let stack = draft.stack(&["train.py(7): step"]);
    draft.entry(AllocatorAction::SegmentAlloc, 0, 60 * MIB, stack);
    draft.alloc(20 * MIB, 10 * MIB, stack);
    draft.alloc(50 * MIB, 10 * MIB, stack);
    draft.entry(AllocatorAction::OutOfMemory, MIB, 30 * MIB, stack);
    // What comes later does not count.
    draft.free(20 * MIB, 10 * MIB);
    draft.entry(AllocatorAction::SegmentAlloc, 1000 * MIB, 500 * MIB, stack);
    draft.segment(0, &[(50 * MIB, None), (10 * MIB, Some((10 * MIB, stack)))]);
    draft.segment(1000 * MIB, &[(500 * MIB, None)]);
    let memory = draft.answer();
    assert_eq!(memory.out_of_memory_count, 1);
    let error = &memory.out_of_memory[0];
    assert_eq!(error.shortage, Shortage::Fragmented);
    assert_eq!(
        (error.free_bytes, error.largest_free_bytes),
        (40 * MIB, 20 * MIB)
    );
    assert_eq!(
        (error.allocated_bytes, error.reserved_bytes),
        (20 * MIB, 60 * MIB)
    );
    assert_eq!(error.held.lines.len(), 1);
    assert_eq!(memory.peak_reserved_bytes, Some(560 * MIB));
}

/// ```text
/// asked for: 30 MiB on stream 0     free: 100 MiB in one piece, on another stream or in a pool
/// ```
#[test]
fn free_memory_that_a_request_cannot_use_is_no_fragmentation() {
    let error = |stream: u64, pool: (u64, u64), is_large: bool| {
        let mut draft = Draft::default();
        draft.entry(AllocatorAction::OutOfMemory, MIB, 30 * MIB, StackId::NONE);
        draft.segment(0, &[(100 * MIB, None)]);
        let segment = &mut draft.device.segments[0];
        (segment.stream, segment.pool, segment.is_large) = (stream, pool, is_large);
        let found = draft.answer().out_of_memory.remove(0);
        (found.shortage, found.free_bytes, found.free_elsewhere)
    };
    let none = FreeElsewhere::default();
    let elsewhere = |free| (Shortage::Elsewhere, 0, free);
    let private = FreeElsewhere {
        private_pool_bytes: 100 * MIB,
        ..none
    };
    assert_eq!(error(0, (1, 7), true), elsewhere(private));
    let stream = FreeElsewhere {
        other_stream_bytes: 100 * MIB,
        ..none
    };
    assert_eq!(error(5, (0, 0), true), elsewhere(stream));
    let size = FreeElsewhere {
        other_size_bytes: 100 * MIB,
        ..none
    };
    assert_eq!(error(0, (0, 0), false), elsewhere(size));
    assert_eq!(
        error(0, (0, 0), true),
        (Shortage::Unused, 100 * MIB, none),
        "one piece sufficed"
    );
}

/// A history with none of the releases that are complete has those that were requested.
#[test]
fn requested_releases_count_if_no_others_were_recorded() {
    let mut draft = Draft::default();
    draft.alloc(1000, 10, StackId::NONE);
    draft.entry(AllocatorAction::FreeRequested, 1000, 10, StackId::NONE);
    let memory = draft.answer();
    assert_eq!(memory.curve.allocated_bytes, [10, 0]);
    assert_eq!(memory.history.contradictions, 0);
}

/// ```text
/// state         0  1  2  3  4  5    no release is complete
/// awaiting   5        |--|--|--|    awaits its release at the end, so that it is in use
/// old        7  |--|--|--|--|--|    the same, and allocated before the history
/// freed     10     |--|--|          free at the end
/// sum           7 17 22 22 12 12
/// ```
#[test]
fn blocks_that_await_their_release_are_in_use_though_no_release_is_complete() {
    let mut draft = Draft::default();
    let request = |draft: &mut Draft, address, bytes| {
        draft.entry(
            AllocatorAction::FreeRequested,
            address,
            bytes,
            StackId::NONE,
        );
    };
    draft.alloc(5000, 10, StackId::NONE);
    draft.alloc(1000, 5, StackId::NONE);
    request(&mut draft, 1000, 5);
    request(&mut draft, 5000, 10);
    request(&mut draft, 2000, 7);
    let none = StackId::NONE;
    draft.segment(
        1000,
        &[
            (1000, Some((5, none))),
            (1000, Some((7, none))),
            (9000, None),
        ],
    );
    for block in &mut draft.device.segments[0].blocks[..2] {
        block.state = BlockState::AwaitingFree;
    }
    let memory = draft.answer();
    assert_eq!(memory.curve.allocated_bytes, [17, 22, 22, 12, 12]);
    assert_eq!(memory.most().allocated_bytes, 22);
    assert_eq!(memory.history.contradictions, 0);
}

/// 300 lines hold 1 to 300 bytes each; the stack of the last one is 1,000 frames deep.
#[test]
fn long_lists_are_cut_and_say_so() {
    let mut draft = Draft::default();
    let deep = vec!["train.py(300): recurse"; 1000];
    for number in 1..=300 {
        let frame = format!("train.py({number}): step");
        let one = [frame.as_str()];
        let frames = if number == 300 { &deep[..] } else { &one };
        let stack = draft.stack(frames);
        draft.alloc(number << 20, number, stack);
    }
    let stack = draft.stack(&deep);
    draft.entry(AllocatorAction::OutOfMemory, MIB, 30 * MIB, stack);
    let memory = draft.answer();
    let held = &memory.held;
    let sums = |held: &HeldBy| {
        let listed: u64 = held.lines.iter().map(|line| line.bytes).sum();
        let numbers = (held.lines.len(), held.lines_left_out, held.stacks.len());
        (numbers, listed + held.lines_left_out_bytes)
    };
    assert_eq!(sums(held), ((100, 200, 50), 45_150));
    assert_eq!(held.stack_count, 300);
    let deepest = &held.stacks[0];
    assert_eq!((deepest.frames.len(), deepest.frames_left_out), (128, 872));
    let error = &memory.out_of_memory[0];
    assert_eq!(sums(&error.held), ((50, 250, 10), 45_150));
    assert_eq!(error.held.stack_count, 300);
    assert_eq!((error.frames.len(), error.frames_left_out), (128, 872));
}

#[test]
fn long_curves_are_thinned_and_keep_the_peak() {
    let mut draft = Draft::default();
    for round in 0..20_000 {
        let bytes = if round == 7_777 { 99 } else { 10 };
        draft.alloc(1000, bytes, StackId::NONE);
        draft.free(1000, bytes);
    }
    let memory = draft.answer();
    assert!(memory.curve.times_us.len() <= 4_010);
    assert_eq!(memory.curve.allocated_bytes.iter().max(), Some(&99));
    assert!(memory.curve.times_us.is_sorted());
}
