use mindprof_model::{Category, Event, Nanos, Part, StackId, StringTable, Thread};
use proptest::prelude::*;

use super::*;
use crate::links::correlate::Correlation;
use crate::rows::keys::Keys;

fn profile(events: &[(usize, u64, u64)], records: &[(u64, i64, DeviceKind)]) -> Profile {
    let records: Vec<_> = (records.iter())
        .map(|&(time, bytes, device)| (0, time, bytes, device))
        .collect();
    profile_of([1, 1], events, &records)
}

/// Builds a profile of threads in the given processes. Events and records begin with their thread.
fn profile_of<const N: usize>(
    processes: [u64; N],
    events: &[(usize, u64, u64)],
    records: &[(usize, u64, i64, DeviceKind)],
) -> Profile {
    let mut builder = Part::new();
    let mut native = 0;
    let threads = processes.map(|process| {
        native += 1;
        builder.add_thread(Thread {
            process,
            native,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        })
    });
    for (index, &(thread, start, end)) in events.iter().enumerate() {
        let name = builder.strings.intern(&format!("op{index}"));
        let (start, duration) = (Nanos(start), Nanos(end - start));
        builder.add_event(Event::new(
            Category::Operator,
            name,
            threads[thread],
            start,
            duration,
        ));
    }
    for &(thread, time, bytes, device) in records {
        builder.add_memory(MemoryRecord {
            time: Nanos(time),
            address: 1,
            bytes,
            total_allocated: 0,
            total_reserved: 0,
            thread: threads[thread],
            stack: StackId::NONE,
            device,
            device_index: -1,
        });
    }
    builder.into_profile().unwrap()
}

fn tree_of(profile: &Profile) -> Tree {
    let keys = Keys::build(profile.strings());
    Tree::build(profile, &keys, &Correlation::default())
}

fn memory_of(profile: &Profile) -> MemoryUse {
    MemoryUse::build(profile, &tree_of(profile))
}

// thread 1  a |--------|         0..10    claims 1, 2, 4 and 8 (both ends count)
// thread 2  b     |--|           4..7     claims 4
// records     1 2  4   8    16   0 2 5 10 12
#[test]
fn records_belong_to_every_event_of_their_time() {
    let host = DeviceKind::Cpu;
    let profile = profile(
        &[(0, 0, 10), (1, 4, 7)],
        &[
            (0, 1, host),
            (2, 2, host),
            (5, 4, host),
            (10, 8, host),
            (12, 16, host),
        ],
    );
    let memory = memory_of(&profile);
    let bytes = |index| memory.total(EventId::from_index(index)).host;
    assert_eq!((bytes(0), bytes(1)), (15, 4));
    assert_eq!(memory.unclaimed(), [4]);
}

// process 1  a |--------|         0..10   claims 1
// process 2  b   |--------|       2..12   claims 2 and 4
// process 3                               has no events: 8 is unclaimed
#[test]
fn records_of_another_process_are_not_claimed() {
    let host = DeviceKind::Cpu;
    let profile = profile_of(
        [1, 2, 3],
        &[(0, 0, 10), (1, 2, 12)],
        &[
            (0, 5, 1, host),
            (1, 5, 2, host),
            (1, 11, 4, host),
            (2, 5, 8, host),
            (0, 11, 16, host),
        ],
    );
    let memory = memory_of(&profile);
    let bytes = |index| memory.total(EventId::from_index(index)).host;
    assert_eq!((bytes(0), bytes(1)), (1, 6));
    let nobodys = memory
        .unclaimed()
        .iter()
        .map(|&index| profile.memory().at(index as usize).bytes);
    let mut nobodys: Vec<i64> = nobodys.collect();
    nobodys.sort_unstable();
    assert_eq!(nobodys, [8, 16]);
}

// a |----------|     0..10   takes 24, 20 of them in b
// b    |--|          3..6
#[test]
fn own_memory_excludes_children() {
    let profile = profile(
        &[(0, 0, 10), (0, 3, 6)],
        &[
            (1, 4, DeviceKind::Cpu),
            (4, 20, DeviceKind::Cpu),
            (5, 7, DeviceKind::Cuda),
        ],
    );
    let memory = memory_of(&profile);
    let [a, b] = [0, 1].map(EventId::from_index);
    let bytes = |host, device| Bytes { host, device };
    assert_eq!(
        (memory.total(a), memory.own(a)),
        (bytes(24, 7), bytes(4, 0))
    );
    assert_eq!(
        (memory.total(b), memory.own(b)),
        (bytes(20, 7), bytes(20, 7))
    );
}

#[test]
fn records_of_uncounted_devices_are_still_claimed() {
    let profile = profile(&[(0, 0, 10)], &[(5, 9, DeviceKind::Mps)]);
    let memory = memory_of(&profile);
    assert_eq!(memory.total(EventId::from_index(0)), Bytes::default());
    assert!(memory.unclaimed().is_empty());
}

proptest! {
    #[test]
    fn the_sweep_agrees_with_the_rules(
        events in prop::collection::vec((0..2_usize, 0..40_u64, 0..20_u64), 0..30),
        records in prop::collection::vec((0..70_u64, -9..9_i64), 0..300),
    ) {
        let events: Vec<_> = events.into_iter().map(|(t, start, len)| (t, start, start + len)).collect();
        let records: Vec<_> = records.into_iter().map(|(t, bytes)| (t, bytes, DeviceKind::Cpu)).collect();
        let profile = profile(&events, &records);
        let memory = memory_of(&profile);
        let open = |event: &Event, record: &MemoryRecord| {
            event.start <= record.time && record.time <= event.end()
        };
        for (index, event) in profile.events().iter().enumerate() {
            let inside = profile.memory().iter().filter(|record| open(event, record));
            let expected: i64 = inside.map(|record| record.bytes).sum();
            prop_assert_eq!(memory.total(EventId::from_index(index)).host, expected);
        }
        let tree = tree_of(&profile);
        let ids = || (0..profile.events().len()).map(EventId::from_index);
        for id in ids().filter(|&id| !tree.is_outside(id) && !tree.is_merged(id)) {
            let is_child = |child: &EventId| tree.parent(*child) == Some(id) && !tree.is_merged(*child);
            let of_children: i64 = ids().filter(is_child).map(|child| memory.total(child).host).sum();
            prop_assert_eq!(memory.own(id).host, memory.total(id).host - of_children);
        }
        let loose: Vec<u32> = (0..profile.memory().len() as u32)
            .filter(|&index| {
                let record = &profile.memory().at(index as usize);
                !profile.events().iter().any(|event| open(event, record))
            })
            .collect();
        prop_assert_eq!(memory.unclaimed(), loose);
    }
}

#[test]
fn an_instant_claims_no_memory() {
    let mut part = Part::new();
    let thread = part.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    let name = part.strings.intern("[OutOfMemory]");
    let mut moment = Event::new(Category::Other, name, thread, Nanos(5), Nanos::ZERO);
    moment.flags = Flags::INSTANT;
    part.add_event(moment);
    part.add_memory(MemoryRecord {
        time: Nanos(5),
        address: 1,
        bytes: 16,
        total_allocated: 0,
        total_reserved: 0,
        thread,
        stack: StackId::NONE,
        device: DeviceKind::Cpu,
        device_index: -1,
    });
    let memory = memory_of(&part.into_profile().unwrap());
    assert_eq!(memory.total(EventId::from_raw(0)), Bytes::default());
    assert_eq!(memory.unclaimed(), [0]);
}
