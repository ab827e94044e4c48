use super::*;
use crate::{Category, DeviceKind, Error, EventId, StackId, StringId};

fn part_with_thread() -> Part {
    let mut part = Part::new();
    part.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    part
}

fn event(start: u64, duration: u64) -> Event {
    let (name, thread) = (StringTable::EMPTY, ThreadId::from_raw(0));
    Event::new(
        Category::Operator,
        name,
        thread,
        Nanos(start),
        Nanos(duration),
    )
}

#[test]
fn events_come_out_by_start_then_longest_first() {
    let mut part = part_with_thread();
    for (start, duration) in [(5, 1), (0, 2), (0, 9), (5, 3)] {
        part.add_event(event(start, duration));
    }
    let profile = part.into_profile().unwrap();
    let order: Vec<_> = profile
        .events()
        .iter()
        .map(|e| (e.start.0, e.duration.0))
        .collect();
    assert_eq!(order, [(0, 9), (0, 2), (5, 3), (5, 1)]);
    assert_eq!(profile.span(), Nanos(9));
}

#[test]
fn an_unknown_name_is_refused() {
    let mut part = part_with_thread();
    let mut stranger = event(0, 1);
    stranger.name = StringId::from_raw(7);
    part.add_event(stranger);
    assert_eq!(
        part.into_profile().unwrap_err().to_string(),
        "event 0 refers to string 7, expected an id below 1"
    );
}

#[test]
fn an_unknown_thread_is_refused() {
    let mut part = Part::new();
    part.add_event(event(0, 1));
    assert_eq!(
        part.into_profile().unwrap_err().to_string(),
        "event 0 refers to thread 0, expected an id below 0"
    );
}

#[test]
fn an_unknown_stack_is_refused() {
    let mut part = part_with_thread();
    let mut stranger = event(0, 1);
    stranger.stack = StackId::from_raw(3);
    part.add_event(stranger);
    assert_eq!(
        part.into_profile().unwrap_err().to_string(),
        "an event or memory record refers to stack 3, expected an id below 1"
    );
}

#[test]
fn identifiers_stay_with_their_events() {
    let mut part = part_with_thread();
    part.add_event(event(9, 1));
    for start in [5, 0] {
        part.add_linked_event(event(start, 1), Links::new(start as u32 + 1, 0));
    }
    part.add_event(event(7, 1));
    let profile = part.into_profile().unwrap();
    let externals: Vec<_> = (0..4)
        .map(|index| profile.links(EventId::from_index(index)).unwrap().external)
        .collect();
    assert_eq!(externals, [1, 6, 0, 0]);
}

#[test]
fn memory_records_come_out_by_time() {
    let mut part = part_with_thread();
    for time in [4, 2] {
        part.add_memory(MemoryRecord {
            time: Nanos(time),
            address: 1,
            bytes: 8,
            total_allocated: 8,
            total_reserved: 8,
            thread: ThreadId::from_raw(0),
            stack: StackId::NONE,
            device: DeviceKind::Cpu,
            device_index: -1,
        });
    }
    let profile = part.into_profile().unwrap();
    assert_eq!(profile.memory().time(0), Nanos(2));
    assert_eq!(profile.span(), Nanos(4));
}

#[test]
fn an_end_beyond_time_is_refused() {
    let mut part = part_with_thread();
    part.add_event(event(u64::MAX, 1));
    assert!(matches!(
        part.into_profile(),
        Err(Error::EndOverflow { .. })
    ));
}
