use mindprof_model::{
    Category, DeviceKind, Links, PassthroughKind, RoleRecord, StackId, StringTable, TensorRole,
    Thread, Timeline,
};
use proptest::prelude::*;

use super::*;

/// One line per event: its name, its start and end, and whether it is marked as unfinished.
fn describe(profile: &Profile) -> Vec<String> {
    let events = profile.events().iter();
    events
        .map(|event| {
            let mark = if event.flags.contains(Flags::UNFINISHED) {
                " unfinished"
            } else {
                ""
            };
            let (start, end) = (event.start.0, event.end().0);
            format!("{} {start}..{end}{mark}", profile.name(event))
        })
        .collect()
}

// outer |--------------------|   0..100
// a       |---|                 10..30
// b               |---|         50..70
fn nested() -> Profile {
    Timeline::draw(|time| {
        time.scope("outer", |time| {
            time.idle(10);
            time.op("a", 20);
            time.idle(20);
            time.op("b", 20);
            time.idle(30);
        });
        time.thread(2);
        time.op("other", 40);
    })
}

#[test]
fn the_default_cut_keeps_everything() {
    let profile = nested();
    let slimmed = slim(&profile, &Cut::default());
    assert_eq!(describe(&slimmed.profile), describe(&profile));
    assert_eq!(slimmed.profile.threads(), profile.threads());
    assert_eq!((slimmed.report.events, slimmed.report.kept), (4, 4));
    assert_eq!(slimmed.report.clipped, 0);
}

#[test]
fn what_starts_within_some_times_is_kept_whole() {
    let cut = Cut {
        within: Some(vec![(Nanos(5), Nanos(15)), (Nanos(50), Nanos(51))]),
        ..Cut::default()
    };
    let slimmed = slim(&nested(), &cut);
    assert_eq!(describe(&slimmed.profile), ["a 10..30", "b 50..70"]);
    assert_eq!(slimmed.report.outside, 2);
}

#[test]
fn a_window_clips_events_that_cross_its_edges() {
    let cut = Cut {
        window: Some((Nanos(20), Nanos(60))),
        threads: Some(vec![ThreadId::from_raw(0)]),
        ..Cut::default()
    };
    let slimmed = slim(&nested(), &cut);
    assert_eq!(
        describe(&slimmed.profile),
        ["outer 0..40 unfinished", "a 0..10", "b 30..40 unfinished"]
    );
    assert_eq!(slimmed.profile.reference_unix_ns(), 20);
    assert_eq!(slimmed.profile.span(), Nanos(40));
    let report = slimmed.report;
    assert_eq!((report.clipped, report.other_threads), (3, 1));
    assert_eq!(slimmed.profile.threads().len(), 1);
}

#[test]
fn short_events_and_all_but_the_longest_are_left_out() {
    let shortest = Cut {
        shortest: Nanos(30),
        ..Cut::default()
    };
    let slimmed = slim(&nested(), &shortest);
    assert_eq!(describe(&slimmed.profile), ["outer 0..100", "other 0..40"]);
    assert_eq!(slimmed.report.too_short, 2);
    let longest = Cut {
        most_events: Some(3),
        ..Cut::default()
    };
    let slimmed = slim(&nested(), &longest);
    assert_eq!(
        describe(&slimmed.profile),
        ["outer 0..100", "other 0..40", "a 10..30"]
    );
    assert_eq!(slimmed.report.too_many, 1);
}

// host thread 1   op     |----|                 10..20   launches kernel 1
// host thread 2   op     |----|                 10..20   launches kernel 2
// stream          range          |---------|    30..60
//                 kernel 1         |--|         35..40
//                 kernel 2              |--|    50..55
fn with_device() -> Profile {
    let mut builder = Part::new();
    let mut thread = |native, device| {
        builder.add_thread(Thread {
            process: 1,
            native,
            name: StringTable::EMPTY,
            device,
        })
    };
    let first = thread(1, DeviceKind::Cpu);
    let second = thread(2, DeviceKind::Cpu);
    let stream = thread(7, DeviceKind::Cuda);
    for (category, name, thread, start, end, correlation) in [
        (Category::Runtime, "launch 1", first, 10, 20, 1),
        (Category::Runtime, "launch 2", second, 10, 20, 2),
        (Category::DeviceAnnotation, "range", stream, 30, 60, 0),
        (Category::Kernel, "kernel 1", stream, 35, 40, 1),
        (Category::Kernel, "kernel 2", stream, 50, 55, 2),
        (Category::DeviceAnnotation, "later", stream, 70, 80, 0),
        (Category::Kernel, "kernel 3", stream, 71, 79, 0),
    ] {
        let name = builder.strings.intern(name);
        let event = Event::new(category, name, thread, Nanos(start), Nanos(end - start));
        builder.add_linked_event(event, Links::new(0, correlation));
    }
    builder.into_profile().unwrap()
}

#[test]
fn device_work_follows_its_launch() {
    let by_thread = Cut {
        threads: Some(vec![ThreadId::from_raw(1)]),
        ..Cut::default()
    };
    let slimmed = slim(&with_device(), &by_thread);
    assert_eq!(
        describe(&slimmed.profile),
        ["launch 2 10..20", "range 30..60", "kernel 2 50..55"]
    );
    let by_window = Cut {
        window: Some((Nanos(0), Nanos(25))),
        ..Cut::default()
    };
    let slimmed = slim(&with_device(), &by_window);
    assert_eq!(
        describe(&slimmed.profile),
        [
            "launch 1 10..20",
            "launch 2 10..20",
            "range 30..60",
            "kernel 1 35..40",
            "kernel 2 50..55",
        ]
    );
    assert_eq!(slimmed.report.clipped, 0);
    let links = slimmed.profile.links(EventId::from_index(4)).unwrap();
    assert_eq!(links.correlation, 2);
}

#[test]
fn memory_records_are_cut_by_time_and_thread() {
    let mut builder = Part::new();
    let thread = builder.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    for time in [5, 15, 25] {
        builder.add_memory(MemoryRecord {
            time: Nanos(time),
            address: 1,
            bytes: 8,
            total_allocated: 8,
            total_reserved: 8,
            thread,
            stack: StackId::NONE,
            device: DeviceKind::Cpu,
            device_index: -1,
        });
    }
    let profile = builder.into_profile().unwrap();
    let cut = Cut {
        window: Some((Nanos(10), Nanos(20))),
        ..Cut::default()
    };
    let slimmed = slim(&profile, &cut);
    assert_eq!(slimmed.profile.memory().time(0), Nanos(5));
    assert_eq!((slimmed.report.memory, slimmed.report.memory_kept), (3, 1));
    let without = Cut {
        without_memory: true,
        ..Cut::default()
    };
    assert!(slim(&profile, &without).profile.memory().is_empty());
}

#[test]
fn addresses_of_tensors_stay_with_their_events() {
    let mut builder = Part::new();
    let thread = builder.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    for (index, start) in [0, 10].into_iter().enumerate() {
        let name = StringTable::EMPTY;
        builder.add_event(Event::new(
            Category::Operator,
            name,
            thread,
            Nanos(start),
            Nanos(5),
        ));
        builder.set_storages(index, &[start + 1]);
    }
    builder.add_role(RoleRecord {
        time: Nanos(2),
        address: 11,
        bytes: 8,
        thread,
        role: TensorRole::Parameter,
    });
    let cut = Cut {
        window: Some((Nanos(10), Nanos(20))),
        ..Cut::default()
    };
    let slimmed = slim(&builder.into_profile().unwrap(), &cut);
    assert_eq!(slimmed.profile.storages().of(0), [11]);
    assert_eq!(slimmed.profile.roles()[0].address, 11);
}

fn any_profile() -> impl Strategy<Value = Profile> {
    let drawn = prop::collection::vec((0..3_u64, 0..100_u64, 0..40_u64), 0..30);
    drawn.prop_map(|events| {
        let mut builder = Part::new();
        let threads: Vec<ThreadId> = (0..3)
            .map(|native| {
                builder.add_thread(Thread {
                    process: 1,
                    native,
                    name: StringTable::EMPTY,
                    device: DeviceKind::Cpu,
                })
            })
            .collect();
        for (thread, start, duration) in events {
            builder.add_event(Event::new(
                Category::Operator,
                StringTable::EMPTY,
                threads[thread as usize],
                Nanos(start),
                Nanos(duration),
            ));
        }
        builder.into_profile().unwrap()
    })
}

proptest! {
    #[test]
    fn every_event_is_kept_or_counted(
        profile in any_profile(),
        begin in 0..100_u64,
        length in 1..60_u64,
        shortest in 0..20_u64,
        most in 0..30_usize,
    ) {
        let cut = Cut {
            window: Some((Nanos(begin), Nanos(begin + length))),
            within: None,
            threads: Some(vec![ThreadId::from_raw(0), ThreadId::from_raw(2)]),
            shortest: Nanos(shortest),
            most_events: Some(most),
            without_memory: false,
            without_foreign: false,
        };
        let Slimmed { profile: slim, report } = slim(&profile, &cut);
        let left = report.outside + report.other_threads + report.too_short + report.too_many;
        prop_assert_eq!(report.kept + left, report.events);
        prop_assert_eq!(report.kept, slim.events().len() as u64);
        prop_assert!(slim.events().len() <= most);
        for event in slim.events() {
            prop_assert!(event.end().0 <= length);
        }
    }
}

/// ```text
/// 0    10   20   30
/// |-a-|
///           |-b-|        further arguments
///        ^     ^   ^     counters at 15, 25 and 35
/// ```
#[test]
fn unknown_fields_stay_with_their_events_and_unknown_events_in_the_window() {
    let mut builder = Part::new();
    let thread = builder.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    for start in [0, 20] {
        let name = StringTable::EMPTY;
        let (start, duration) = (Nanos(start), Nanos(9));
        builder.add_event(Event::new(Category::Kernel, name, thread, start, duration));
    }
    let text = builder.passthrough.texts.add("\"grid\":[1]").unwrap();
    builder.passthrough.set(PassthroughKind::Arguments, 1, text);
    for time_ns in [15, 25, 35] {
        builder.passthrough.add_unknown_event(UnknownEvent {
            time_ns,
            thread,
            text,
        });
    }
    let cut = Cut {
        window: Some((Nanos(20), Nanos(30))),
        ..Cut::default()
    };
    let slimmed = slim(&builder.into_profile().unwrap(), &cut);
    let passthrough = slimmed.profile.passthrough();
    assert_eq!(passthrough.of(PassthroughKind::Arguments, 0), Some(text));
    let times: Vec<_> = passthrough
        .unknown_events()
        .iter()
        .map(|record| record.time_ns)
        .collect();
    assert_eq!(times, [5]);
    assert_eq!(
        (slimmed.report.foreign, slimmed.report.foreign_kept),
        (3, 1)
    );
}
