//! Tests of the timeline: lifetimes of blocks, versions, categories, the peak.

use mindprof_model::{
    Category, DType, DeviceKind, Event, HostTotals, InputsEncoder, LossCause, MemoryRecord, Nanos,
    Part, Profile, RoleRecord, ScopeKind, StackId, StringTable, TensorRole, Thread, ThreadId,
};
use proptest::prelude::*;
use rustc_hash::FxHashMap;

use super::*;

const HOST: MemoryPlace = MemoryPlace {
    process: 1,
    device: MemoryDevice::HOST,
};

/// Draws operators with their tensors and memory, on a clock that advances by ten with each of
/// them.
struct Draw {
    builder: Part,
    now: u64,
    /// The thread that is drawn on.
    thread: ThreadId,
}

impl Draw {
    fn new() -> Self {
        let mut draw = Self {
            builder: Part::new(),
            now: 0,
            thread: ThreadId::from_raw(0),
        };
        draw.add_thread(1);
        draw
    }

    fn add_thread(&mut self, native: u64) -> ThreadId {
        self.builder.add_thread(Thread {
            process: 1,
            native,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        })
    }

    /// Draws on another thread.
    fn on(&mut self, thread: ThreadId, inside: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.thread, thread);
        inside(self);
        self.thread = before;
    }

    fn tick(&mut self) -> Nanos {
        self.now += 10;
        Nanos(self.now)
    }

    /// Adds an operator with input tensors of four bytes at `addresses`.
    fn op(&mut self, name: &str, addresses: &[u64], inside: impl FnOnce(&mut Self)) {
        self.scope(ScopeKind::Function, name, addresses, inside);
    }

    fn backward(&mut self, name: &str, addresses: &[u64], inside: impl FnOnce(&mut Self)) {
        self.scope(ScopeKind::Backward, name, addresses, inside);
    }

    fn scope(
        &mut self,
        scope: ScopeKind,
        name: &str,
        addresses: &[u64],
        inside: impl FnOnce(&mut Self),
    ) {
        let start = self.tick();
        let mut encoder = InputsEncoder::default();
        for _ in addresses {
            encoder.tensor(DType::F32, &[1], &[1]);
        }
        inside(self);
        let name = self.builder.strings.intern(name);
        let end = self.tick();
        let mut event = Event::new(
            Category::Operator,
            name,
            self.thread,
            start,
            Nanos(end.0 - start.0),
        );
        event.scope = scope;
        event.inputs = self.builder.inputs.intern(encoder.words());
        let index = self.builder.len();
        self.builder.add_event(event);
        self.builder.set_storages(index, addresses);
    }

    fn memory(&mut self, address: u64, bytes: i64) {
        self.counted_memory(address, bytes, 0);
    }

    /// Adds a memory record after which the allocator reports `total_allocated`.
    fn counted_memory(&mut self, address: u64, bytes: i64, total_allocated: u64) {
        let time = self.tick();
        self.builder.add_memory(MemoryRecord {
            time,
            address,
            bytes,
            total_allocated,
            total_reserved: 0,
            thread: self.thread,
            stack: StackId::NONE,
            device: DeviceKind::Cpu,
            device_index: -1,
        });
    }

    fn role(&mut self, role: TensorRole, address: u64) {
        let time = self.tick();
        self.builder.add_role(RoleRecord {
            time,
            address,
            bytes: 4,
            thread: self.thread,
            role,
        });
    }

    fn finish(self) -> Analysis {
        Analysis::build(self.builder.into_profile().unwrap())
    }
}

/// Returns the changes of the blocks at `address`: action, bytes, and category after.
fn story(analysis: &Analysis, address: u64) -> Vec<(MemoryAction, u64, MemoryCategory)> {
    let timeline = analysis.memory_timeline();
    let is_there =
        |change: &&MemoryChange| timeline.blocks()[change.block as usize].address == address;
    let changes = timeline.changes().iter().filter(is_there);
    changes
        .map(|change| (change.action, change.bytes, change.after))
        .collect()
}

const WEIGHT: u64 = 1;
const INPUT: u64 = 2;
const OUTPUT: u64 = 3;
const GRADIENT: u64 = 4;
const SCRATCH: u64 = 5;
const DETAIL: u64 = 6;
const MOMENTUM: u64 = 7;

/// ```text
/// randn                 input
/// mul                   input, weight -> output, with scratch
/// MulBackward0          output -> detail, gradient
/// AccumulateGrad        detach(gradient)
/// add_                  momentum += gradient
/// add_                  weight += momentum
/// ```
fn training_step(tells: bool) -> Analysis {
    let mut draw = Draw::new();
    draw.op("aten::randn", &[], |draw| draw.memory(INPUT, 4));
    if tells {
        draw.role(TensorRole::Parameter, WEIGHT);
    }
    draw.op("aten::mul", &[INPUT, WEIGHT], |draw| {
        draw.memory(SCRATCH, 64);
        draw.op("aten::abs", &[SCRATCH], |_| ());
        draw.memory(OUTPUT, 4);
        draw.memory(SCRATCH, -64);
    });
    draw.backward("MulBackward0", &[OUTPUT], |draw| {
        draw.memory(DETAIL, 4);
        draw.memory(GRADIENT, 4);
        draw.op("aten::mul", &[DETAIL, OUTPUT], |_| ());
    });
    draw.backward("torch::autograd::AccumulateGrad", &[GRADIENT], |draw| {
        draw.op("aten::detach", &[GRADIENT], |_| ());
    });
    draw.memory(DETAIL, -4);
    draw.op("aten::add_", &[MOMENTUM, GRADIENT], |_| ());
    draw.op("aten::add_", &[WEIGHT, MOMENTUM], |_| ());
    if tells {
        draw.role(TensorRole::OptimizerState, MOMENTUM);
    }
    draw.memory(OUTPUT, -4);
    draw.finish()
}

#[test]
fn blocks_of_a_training_step_have_their_categories() {
    use MemoryAction::{Create, Destroy, IncrementVersion, Preexisting};
    use MemoryCategory::{Activation, AutogradDetail, Gradient, Input, OptimizerState, Parameter};
    let step = training_step(true);
    assert_eq!(
        story(&step, WEIGHT),
        [
            (Preexisting, 4, Parameter),
            (IncrementVersion, 4, Parameter)
        ]
    );
    assert_eq!(story(&step, INPUT), [(Create, 4, Input)]);
    assert_eq!(
        story(&step, OUTPUT),
        [(Create, 4, Activation), (Destroy, 4, Activation)]
    );
    assert_eq!(story(&step, GRADIENT), [(Create, 4, Gradient)]);
    assert_eq!(
        story(&step, DETAIL),
        [(Create, 4, AutogradDetail), (Destroy, 4, AutogradDetail)]
    );
    assert_eq!(
        story(&step, SCRATCH),
        [
            (Create, 64, MemoryCategory::Temporary),
            (Destroy, 64, MemoryCategory::Temporary)
        ]
    );
    let momentum = story(&step, MOMENTUM);
    assert_eq!(momentum[0], (Preexisting, 4, OptimizerState));
    assert_eq!(momentum[1], (IncrementVersion, 4, OptimizerState));
}

#[test]
fn an_unreported_parameter_is_found_by_its_use() {
    let step = training_step(false);
    let found: Vec<_> = [WEIGHT, INPUT, OUTPUT, GRADIENT]
        .map(|address| story(&step, address)[0].2)
        .into();
    assert_eq!(
        found,
        [
            MemoryCategory::Parameter,
            MemoryCategory::Input,
            MemoryCategory::Activation,
            MemoryCategory::Gradient
        ]
    );
}

#[test]
fn an_out_argument_is_written_to() {
    let versions = |addresses: &[u64]| {
        let mut draw = Draw::new();
        draw.op("aten::mul", addresses, |_| ());
        let actions = story(&draw.finish(), OUTPUT);
        actions.into_iter().map(|(action, ..)| action).collect()
    };
    let (preexisting, written) = (MemoryAction::Preexisting, MemoryAction::IncrementVersion);
    let (read, by_out): (Vec<_>, Vec<_>) = (
        versions(&[INPUT, OUTPUT]),
        versions(&[INPUT, WEIGHT, OUTPUT]),
    );
    assert_eq!(read, [preexisting]);
    assert_eq!(by_out, [preexisting, written]);
}

/// ```text
/// mul      |----------------|      of a tensor that may have no storage
/// neg          |---|               reads scratch
/// scratch    x        x
/// ```
#[test]
fn an_operator_with_a_tensor_without_storage_is_replaced_by_its_callees() {
    let scratch = |other: u64| {
        let mut draw = Draw::new();
        draw.op("aten::mul", &[INPUT, other], |draw| {
            draw.memory(SCRATCH, 64);
            draw.op("aten::neg", &[SCRATCH], |_| ());
            draw.memory(SCRATCH, -64);
        });
        let analysis = draw.finish();
        assert_eq!(story(&analysis, 0), []);
        story(&analysis, SCRATCH)[0].2
    };
    assert_eq!(scratch(WEIGHT), MemoryCategory::Temporary);
    assert_eq!(scratch(0), MemoryCategory::Unknown);
}

#[test]
fn a_reused_address_is_a_new_block() {
    let mut draw = Draw::new();
    draw.op("aten::ones", &[], |draw| draw.memory(9, 8));
    draw.op("aten::neg", &[9], |_| ());
    draw.memory(9, -8);
    draw.op("aten::ones", &[], |draw| draw.memory(9, 16));
    let analysis = draw.finish();
    let timeline = analysis.memory_timeline();
    let sizes: Vec<_> = timeline.blocks().iter().map(|block| block.bytes).collect();
    assert_eq!(sizes, [8, 16]);
    assert_eq!(timeline.changes().len(), 3);
}

#[test]
fn a_freed_block_without_an_allocation_existed_before_the_window() {
    let mut draw = Draw::new();
    draw.memory(9, -8);
    let analysis = draw.finish();
    assert_eq!(
        story(&analysis, 9),
        [
            (MemoryAction::Preexisting, 8, MemoryCategory::Unknown),
            (MemoryAction::Destroy, 8, MemoryCategory::Unknown)
        ]
    );
    let peak = analysis.memory_timeline().peak(&analysis, HOST);
    assert_eq!((peak.total(), peak.time), (8, None));
    assert_eq!(peak.at_end, CategoryBytes::default());
}

#[test]
fn a_partly_seen_tensor_has_the_size_of_its_allocation() {
    let mut draw = Draw::new();
    draw.op("aten::ones", &[], |draw| draw.memory(9, 400));
    draw.op("aten::neg", &[9], |_| ());
    assert_eq!(story(&draw.finish(), 9)[0].1, 400);
}

// bytes  |     ┌──┐ 12
//        |  ┌──┘  └──┐ 8
//        └──┘        └── 0
#[test]
fn the_peak_names_who_holds_it() {
    let mut draw = Draw::new();
    draw.op("aten::ones", &[], |draw| draw.memory(1, 8));
    draw.op("aten::neg", &[1], |draw| {
        draw.op("aten::empty", &[], |draw| draw.memory(2, 4));
    });
    let highest = draw.now;
    draw.memory(2, -4);
    draw.memory(1, -8);
    let analysis = draw.finish();
    let peak = analysis.memory_timeline().peak(&analysis, HOST);
    assert_eq!(peak.total(), 12);
    assert!(peak.time.unwrap() < Nanos(highest));
    let names: Vec<_> = peak
        .holders
        .iter()
        .map(|holder| {
            let owner = analysis.profile().strings().text(holder.owner.unwrap());
            (owner, holder.bytes, holder.blocks)
        })
        .collect();
    assert_eq!(names, [("aten::ones", 8, 1), ("aten::neg", 4, 1)]);
    assert_eq!(peak.at_end.iter().sum::<i64>(), 0);
}

#[test]
fn each_device_has_its_own_timeline() {
    let mut draw = Draw::new();
    draw.memory(1, 8);
    let mut record = MemoryRecord {
        device: DeviceKind::Cuda,
        device_index: 1,
        ..draw.finish_records()[0]
    };
    record.time = Nanos(100);
    let mut draw = Draw::new();
    draw.memory(1, 8);
    draw.builder.add_memory(record);
    let analysis = draw.finish();
    let timeline = analysis.memory_timeline();
    let places = timeline.places();
    assert_eq!(places.len(), 2);
    for place in places {
        assert_eq!(timeline.changes_in(place).count(), 1);
    }
}

// process 1   |neg 9| +8 at 1 (108) ──────────── -8 at 1 (100)
// process 2                  +4 at 1 (54) ───────────────────
#[test]
fn processes_have_separate_blocks_at_the_same_address() {
    let mut draw = Draw::new();
    let other = draw.builder.add_thread(Thread {
        process: 2,
        native: 7,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    draw.op("aten::neg", &[9], |_| ());
    draw.counted_memory(1, 8, 108);
    draw.on(other, |draw| draw.counted_memory(1, 4, 54));
    draw.counted_memory(1, -8, 100);
    let analysis = draw.finish();
    let timeline = analysis.memory_timeline();
    let places = timeline.places_by_peak(&analysis);
    let told: Vec<_> = places
        .iter()
        .map(|&place| {
            let peak = timeline.peak(&analysis, place);
            (place.process, peak.total(), peak.total_at_end())
        })
        .collect();
    assert_eq!(told, [(1, 108, 100), (2, 54, 54)]);
    let actions = |place| -> Vec<_> {
        let changes = timeline.changes_in(place);
        changes.map(|change| change.action).collect()
    };
    assert_eq!(
        actions(places[0]),
        [
            MemoryAction::Preexisting,
            MemoryAction::Create,
            MemoryAction::Destroy
        ]
    );
    assert_eq!(actions(places[1]), [MemoryAction::Create]);
}

// +8 at 1 (108) ── +4 at 2 (54): the release of the first was not recorded
#[test]
fn an_allocator_total_below_the_known_blocks_is_not_exact() {
    let mut draw = Draw::new();
    draw.op("aten::neg", &[1], |_| ());
    draw.counted_memory(2, 8, 12);
    draw.counted_memory(3, 4, 8);
    let analysis = draw.finish();
    let peak = analysis.memory_timeline().peak(&analysis, HOST);
    assert_eq!(peak.doubts, [MemoryDoubt::MissingReleases]);
    assert_eq!(peak.precision(), MemoryPrecision::AsFarAsKnown);
}

#[test]
fn lost_events_may_include_releases() {
    let told = |cause: LossCause| {
        let mut draw = Draw::new();
        draw.op("aten::neg", &[1], |draw| draw.counted_memory(2, 8, 12));
        draw.builder.add_loss(cause, 1);
        let analysis = draw.finish();
        analysis.memory_timeline().peak(&analysis, HOST).precision()
    };
    assert_eq!(told(LossCause::Budget), MemoryPrecision::AsFarAsKnown);
    assert_eq!(told(LossCause::Unseen), MemoryPrecision::Exact);
}

/// Draws a recording and returns the precision of its peak, first with a CPU allocator that counts
/// from the beginning, then with one that counts since the first profiler.
fn precisions(fill: impl Fn(&mut Draw)) -> [MemoryPrecision; 2] {
    [false, true].map(|is_late| {
        let mut draw = Draw::new();
        fill(&mut draw);
        if is_late {
            HostTotals::SinceFirstProfiler.write(&mut draw.builder.metadata);
        }
        let analysis = draw.finish();
        analysis.memory_timeline().peak(&analysis, HOST).precision()
    })
}

#[test]
fn older_cpu_memory_is_unknown_if_the_allocator_counts_since_the_profiler() {
    use MemoryPrecision::{AsFarAsKnown, AtLeast, Exact};
    // Everything was allocated in the window except for the block of one tensor, which may have been
    // freed unrecorded, unless it is a parameter or its release was recorded.
    let uses = |draw: &mut Draw| {
        draw.counted_memory(1, 4, 8);
        draw.op("aten::neg", &[1], |draw| draw.counted_memory(2, 8, 16));
    };
    assert_eq!(precisions(uses), [Exact, AtLeast]);
    let uses_old = |draw: &mut Draw| {
        draw.op("aten::neg", &[1], |draw| draw.counted_memory(2, 8, 16));
    };
    assert_eq!(precisions(uses_old), [Exact, AsFarAsKnown]);
    let trains_old = |draw: &mut Draw| {
        draw.role(TensorRole::Parameter, 1);
        uses_old(draw);
    };
    assert_eq!(precisions(trains_old), [Exact, AtLeast]);
    let gives_old_back = |draw: &mut Draw| {
        uses_old(draw);
        draw.counted_memory(1, -4, 12);
    };
    assert_eq!(precisions(gives_old_back), [Exact, AtLeast]);
}

// A file may contain any numbers.
#[test]
fn absurd_totals_do_not_panic() {
    let mut draw = Draw::new();
    for (address, bytes, total_allocated) in [
        (1, i64::MAX, 0),
        (2, i64::MIN, u64::MAX),
        (3, i64::MAX, i64::MAX as u64),
        (4, i64::MIN, 0),
    ] {
        draw.counted_memory(address, bytes, total_allocated);
    }
    let analysis = draw.finish();
    let timeline = analysis.memory_timeline();
    let place = timeline.places()[0];
    assert!(AllocatorTotals::build(analysis.profile(), place).is_some());
}

/// Returns the certain changes: time, action, address and bytes.
fn certain(analysis: &Analysis) -> Vec<(Option<u64>, MemoryAction, u64, u64)> {
    let timeline = analysis.memory_timeline();
    let changes = timeline.certain_changes_in(HOST);
    changes
        .map(|change| {
            let address = timeline.blocks()[change.block as usize].address;
            (
                change.time.map(|time| time.0),
                change.action,
                address,
                change.bytes,
            )
        })
        .collect()
}

// reports |neg 1|                        |take 4|  |mul 1, 3|            |mul 1, 3|
// silent          |fill_ 2|  |fill_ 2|                        |fill_ 5|
// 1       before ──────────────────────────────────────────────────────────────────
// 2               ├────────┤ ├───────┤
// 3                                                ├────────┤            ├────────┤
#[test]
fn blocks_of_a_silent_thread_count_only_while_they_are_seen() {
    use MemoryAction::{Create, Destroy, Preexisting};
    let mut draw = Draw::new();
    let silent = draw.add_thread(2);
    draw.op("aten::neg", &[1], |_| ());
    draw.on(silent, |draw| {
        draw.op("aten::neg", &[2], |_| ());
        draw.op("aten::neg", &[2], |_| ());
    });
    draw.memory(4, 8);
    draw.op("aten::mul", &[1, 3], |_| ());
    draw.on(silent, |draw| draw.op("aten::neg", &[5], |_| ()));
    draw.op("aten::mul", &[1, 3], |_| ());
    let analysis = draw.finish();
    assert_eq!(
        certain(&analysis),
        [
            (None, Preexisting, 1, 4),
            (Some(30), Preexisting, 2, 4),
            (Some(40), Destroy, 2, 4),
            (Some(50), Preexisting, 2, 4),
            (Some(60), Destroy, 2, 4),
            (Some(70), Create, 4, 8),
            (Some(80), Preexisting, 3, 4),
            (Some(90), Destroy, 3, 4),
            (Some(100), Preexisting, 5, 4),
            (Some(110), Destroy, 5, 4),
            (Some(120), Preexisting, 3, 4),
            (Some(130), Destroy, 3, 4),
        ]
    );
    let timeline = analysis.memory_timeline();
    assert_eq!(story(&analysis, 3).len(), 1, "torch's rows stay");
    let peak = timeline.peak(&analysis, HOST);
    assert_eq!(peak.precision(), MemoryPrecision::AtLeast);
    assert_eq!((peak.total(), peak.total_at_end()), (16, 12));
    let untimed = UntimedMemory {
        blocks: 3,
        bytes: 12,
    };
    assert_eq!(peak.untimed, untimed);
    let origins: Vec<_> = peak.holders.iter().map(|holder| holder.origin).collect();
    for origin in [
        MemoryOrigin::Window,
        MemoryOrigin::Before,
        MemoryOrigin::NotTold,
    ] {
        assert!(origins.contains(&origin), "{origins:?}");
    }
}

// reports |neg 1|   take 4   |neg 1|
// silent                               |neg 7|
#[test]
fn a_block_stays_between_uses_if_no_silent_thread_runs() {
    use MemoryAction::{Create, Destroy, Preexisting};
    let mut draw = Draw::new();
    let silent = draw.add_thread(2);
    draw.on(silent, |draw| draw.op("aten::neg", &[7], |_| ()));
    draw.op("aten::neg", &[1], |_| ());
    draw.memory(4, 8);
    draw.op("aten::neg", &[1], |_| ());
    let analysis = draw.finish();
    assert_eq!(
        certain(&analysis)[2..],
        [
            (Some(30), Preexisting, 1, 4),
            (Some(50), Create, 4, 8),
            (Some(70), Destroy, 1, 4),
        ]
    );
}

// reports |neg 1| |lift 2| |neg 2|  |lift 3| |neg 3|  |lift 2|  take 3  take 9
// 1       before ──────────────────────────────────────────────────────────────
// 2               ├──────────────┤                    ├──────┤
// 3                                 ├──────────────┤            ├──────────────
#[test]
fn foreign_memory_counts_only_while_it_is_seen() {
    use MemoryAction::{Create, Destroy, Preexisting};
    let mut draw = Draw::new();
    draw.op("aten::neg", &[1], |_| ());
    for address in [2, 3] {
        draw.op("aten::lift_fresh", &[address], |_| ());
        draw.op("aten::neg", &[address], |_| ());
    }
    draw.op("aten::lift_fresh", &[2], |_| ());
    draw.memory(3, 8);
    draw.memory(9, 16);
    let analysis = draw.finish();
    assert_eq!(
        certain(&analysis),
        [
            (None, Preexisting, 1, 4),
            (Some(30), Preexisting, 2, 4),
            (Some(60), Destroy, 2, 4),
            (Some(70), Preexisting, 3, 4),
            (Some(100), Destroy, 3, 4),
            (Some(110), Preexisting, 2, 4),
            (Some(120), Destroy, 2, 4),
            (Some(130), Create, 3, 8),
            (Some(140), Create, 9, 16),
        ]
    );
}

// reports take 1  |lift 1|  free 1
#[test]
fn memory_that_torch_allocated_and_lifted_has_its_recorded_times() {
    let mut draw = Draw::new();
    draw.memory(1, 4);
    draw.op("aten::lift_fresh", &[1], |_| ());
    draw.memory(1, -4);
    let analysis = draw.finish();
    assert_eq!(analysis.memory_timeline().untimed(HOST).blocks, 0);
}

// silent  |neg 7|          |neg 7|
// reports        role 1            role 1   take 4
#[test]
fn a_parameter_stays_between_its_uses() {
    use MemoryAction::{Destroy, Preexisting};
    let mut draw = Draw::new();
    let silent = draw.add_thread(2);
    draw.on(silent, |draw| draw.op("aten::neg", &[7], |_| ()));
    draw.role(TensorRole::Parameter, 1);
    draw.on(silent, |draw| draw.op("aten::neg", &[7], |_| ()));
    draw.role(TensorRole::Parameter, 1);
    draw.memory(4, 8);
    let changes = certain(&draw.finish());
    let of_parameter: Vec<_> = changes.into_iter().filter(|change| change.2 == 1).collect();
    assert_eq!(
        of_parameter,
        [(Some(30), Preexisting, 1, 4), (Some(60), Destroy, 1, 4)]
    );
}

// silent  |neg 1|   |neg 2|   |neg 1|       and no thread reports its memory
#[test]
fn no_times_are_known_if_every_thread_is_silent() {
    let mut draw = Draw::new();
    for address in [1, 2, 1] {
        draw.op("aten::neg", &[address], |_| ());
    }
    let analysis = draw.finish();
    let peak = analysis.memory_timeline().peak(&analysis, HOST);
    assert_eq!((peak.total(), peak.total_at_end()), (4, 0));
    assert_eq!(peak.untimed.blocks, 2);
}

// reports take 1 |neg 1| take 2 |neg 2| take 1      the first release is not recorded
// 1       ├────────────┤                ├
// 2                      ├────────────┤
#[test]
fn one_missing_release_makes_others_doubtful() {
    use MemoryAction::{Create, Destroy};
    let mut draw = Draw::new();
    draw.memory(1, 8);
    draw.op("aten::neg", &[1], |_| ());
    draw.memory(2, 16);
    draw.op("aten::neg", &[2], |_| ());
    draw.memory(1, 8);
    let analysis = draw.finish();
    assert_eq!(
        certain(&analysis),
        [
            (Some(10), Create, 1, 8),
            (Some(30), Destroy, 1, 8),
            (Some(40), Create, 2, 16),
            (Some(60), Destroy, 2, 16),
            (Some(70), Create, 1, 8),
            (Some(70), Destroy, 1, 8),
        ]
    );
    let peak = analysis.memory_timeline().peak(&analysis, HOST);
    assert_eq!((peak.untimed.blocks, peak.untimed.bytes), (3, 32));
    assert_eq!(peak.precision(), MemoryPrecision::AtLeast);
}

// reports take 1              take 2
// silent          |neg 1|                 and frees it unrecorded
#[test]
fn a_block_used_by_a_silent_thread_may_be_gone() {
    let mut draw = Draw::new();
    let silent = draw.add_thread(2);
    draw.memory(1, 8);
    draw.on(silent, |draw| draw.op("aten::mul", &[1, 3], |_| ()));
    draw.memory(2, 16);
    let analysis = draw.finish();
    let peak = analysis.memory_timeline().peak(&analysis, HOST);
    assert_eq!(peak.total_at_end(), 16);
    assert_eq!(peak.untimed.blocks, 2);
}

#[test]
fn all_times_are_known_if_every_thread_reports_its_memory() {
    let mut draw = Draw::new();
    let other = draw.add_thread(2);
    draw.memory(1, 8);
    draw.on(other, |draw| {
        draw.memory(2, 8);
        draw.op("aten::neg", &[3], |_| ());
    });
    let analysis = draw.finish();
    let peak = analysis.memory_timeline().peak(&analysis, HOST);
    assert_eq!(peak.untimed, UntimedMemory::default());
    assert_eq!(peak.total_at_end(), 20);
}

impl Draw {
    fn finish_records(self) -> Vec<MemoryRecord> {
        self.builder
            .into_profile()
            .unwrap()
            .memory()
            .iter()
            .collect()
    }
}

/// One step of a program that allocates, frees and uses memory at a few addresses.
#[derive(Clone, Debug)]
enum Step {
    Take(u64, i64),
    Give(u64, i64),
    Use(&'static str, Vec<u64>),
    Backward(Vec<u64>, Vec<u64>),
    Tell(TensorRole, u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let address = || 1_u64..8;
    // No address is zero: that means a tensor without a storage.
    let addresses = || prop::collection::vec(0_u64..8, 0..4);
    let made = prop::collection::vec(address(), 0..4);
    let names = prop::sample::select(vec![
        "aten::add",
        "aten::add_",
        "aten::_foreach_add_",
        "aten::mul",
        "my_range",
        "autograd::engine::evaluate_function: X",
    ]);
    let role = prop::sample::select(TensorRole::ALL.to_vec());
    prop::collection::vec(
        prop_oneof![
            (address(), 1_i64..100).prop_map(|(at, bytes)| Step::Take(at, bytes)),
            (address(), 1_i64..100).prop_map(|(at, bytes)| Step::Give(at, bytes)),
            (names, addresses()).prop_map(|(name, at)| Step::Use(name, at)),
            (addresses(), made).prop_map(|(read, made)| Step::Backward(read, made)),
            (role, address()).prop_map(|(role, at)| Step::Tell(role, at)),
        ],
        0..60,
    )
}

fn drawn(steps: &[Step]) -> Profile {
    let mut draw = Draw::new();
    draw_steps(&mut draw, steps);
    draw.builder.into_profile().unwrap()
}

fn draw_steps(draw: &mut Draw, steps: &[Step]) {
    // A block is freed with the size that it was allocated with. A block that is used without an
    // allocation existed before.
    let mut live: FxHashMap<u64, i64> = FxHashMap::default();
    for step in steps {
        match step {
            Step::Take(at, bytes) => {
                if !live.contains_key(at) {
                    live.insert(*at, *bytes);
                    draw.memory(*at, *bytes);
                }
            }
            Step::Give(at, bytes) => {
                let bytes = live.remove(at).unwrap_or(*bytes);
                draw.memory(*at, -bytes);
            }
            Step::Use(name, at) => {
                for &at in at {
                    live.entry(at).or_insert(4);
                }
                draw.op(name, at, |_| ());
            }
            Step::Backward(read, made) => {
                for &at in read {
                    live.entry(at).or_insert(4);
                }
                draw.backward("XBackward0", read, |draw| {
                    for at in made {
                        if !live.contains_key(at) {
                            live.insert(*at, 8);
                            draw.memory(*at, 8);
                        }
                    }
                    draw.op("aten::mul", made, |_| ());
                });
            }
            Step::Tell(role, at) => {
                live.entry(*at).or_insert(4);
                draw.role(*role, *at);
            }
        }
    }
}

proptest! {
    #[test]
    fn totals_are_those_of_a_count_by_hand(steps in steps()) {
        let profile = drawn(&steps);
        let analysis = Analysis::build(profile);
        let timeline = analysis.memory_timeline();
        let mut bytes = CategoryBytes::default();
        let before: i64 = timeline
            .changes()
            .iter()
            .take_while(|change| change.time.is_none())
            .map(|change| change.bytes as i64)
            .sum();
        let mut records = analysis.profile().memory().iter().peekable();
        let mut by_hand = before;
        for (index, change) in timeline.changes().iter().enumerate() {
            change.apply(&mut bytes);
            for (category, &bytes) in bytes.iter().enumerate() {
                prop_assert!(bytes >= 0, "category {category} after change {index}: {bytes}");
            }
            let next = timeline.changes().get(index + 1);
            if change.time.is_none() || next.is_some_and(|next| next.time == change.time) {
                continue;
            }
            while let Some(record) = records.next_if(|record| Some(record.time) <= change.time) {
                by_hand += record.bytes;
            }
            prop_assert_eq!(bytes.iter().sum::<i64>(), by_hand);
        }
        prop_assert!(records.next().is_none(), "every record is in the timeline");
    }

    #[test]
    fn versions_of_a_block_follow_each_other(steps in steps()) {
        let analysis = Analysis::build(drawn(&steps));
        let timeline = analysis.memory_timeline();
        let mut last: FxHashMap<u32, (u32, MemoryCategory)> = FxHashMap::default();
        for change in timeline.changes() {
            let known = last.get(&change.block).copied();
            match change.action {
                MemoryAction::Preexisting | MemoryAction::Create => {
                    prop_assert_eq!(known, None);
                    last.insert(change.block, (0, change.after));
                }
                MemoryAction::IncrementVersion => {
                    prop_assert_eq!(known, Some((change.version, change.category)));
                    last.insert(change.block, (change.version + 1, change.after));
                }
                MemoryAction::Destroy => {
                    prop_assert_eq!(known, Some((change.version, change.category)));
                    last.insert(change.block, (u32::MAX, change.category));
                }
            }
        }
    }

    #[test]
    fn holders_at_the_peak_hold_the_peak(steps in steps()) {
        let analysis = Analysis::build(drawn(&steps));
        let peak = analysis.memory_timeline().peak(&analysis, HOST);
        for category in MemoryCategory::ALL {
            let holders = peak.holders.iter().filter(|holder| holder.category == category);
            let held: u64 = holders.map(|holder| holder.bytes).sum();
            prop_assert_eq!(held as i64, peak.bytes[category.index()]);
        }
    }

    #[test]
    fn certain_changes_never_exceed_all_changes(
        steps in prop::collection::vec((steps(), prop::collection::vec(0_u64..8, 0..4)), 0..6),
    ) {
        let mut draw = Draw::new();
        let silent = draw.add_thread(2);
        for (told, used) in &steps {
            draw.on(silent, |draw| draw.op("aten::add_", used, |_| ()));
            draw_steps(&mut draw, told);
        }
        let analysis = draw.finish();
        let timeline = analysis.memory_timeline();
        let mut all = timeline.changes_in(HOST).peekable();
        let (mut known, mut certain) = (CategoryBytes::default(), CategoryBytes::default());
        let mut changes = timeline.certain_changes_in(HOST).peekable();
        while let Some(change) = changes.next() {
            change.apply(&mut certain);
            if changes.peek().is_some_and(|next| next.time == change.time) {
                continue;
            }
            while let Some(change) = all.next_if(|other| other.time <= change.time) {
                change.apply(&mut known);
            }
            for (category, (&certain, &known)) in certain.iter().zip(&known).enumerate() {
                let is_right = (0..=known).contains(&certain);
                prop_assert!(is_right, "category {category}: {certain} of {known}");
            }
        }
    }
}
