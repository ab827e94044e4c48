use proptest::prelude::*;

use super::*;
use crate::{
    Category, DeviceKind, Error, EventId, ForwardThread, Links, MemoryRecord, RoleRecord,
    Selection, StackId, StringTable, TensorRole, Thread, ThreadId, UnknownEvent,
};

/// A part with a thread of `process`, one event at `start` named `name`, and everything that can
/// belong to an event.
fn part(process: u64, name: &str, start: u64) -> Part {
    let mut part = Part::new();
    let name = part.strings.intern(name);
    let frame = part.strings.intern("frame");
    let thread = part.add_thread(Thread {
        process,
        native: 1,
        name,
        device: DeviceKind::Cpu,
    });
    let mut event = Event::new(Category::Operator, name, thread, Nanos(start), Nanos(5));
    event.inputs = part.inputs.intern(&[start]);
    event.stack = part.stacks.push(StackId::NONE, frame);
    let mut links = Links::new(7, 9);
    links.set_forward_thread(ForwardThread::At(thread));
    part.set_storages(0, &[start]);
    part.add_linked_event(event, links);
    part.add_memory(MemoryRecord {
        time: Nanos(start),
        address: 1,
        bytes: 8,
        total_allocated: 8,
        total_reserved: 8,
        thread,
        stack: event.stack,
        device: DeviceKind::Cpu,
        device_index: -1,
    });
    part.add_role(RoleRecord {
        time: Nanos(start),
        address: 1,
        bytes: 8,
        thread,
        role: TensorRole::Parameter,
    });
    let text = part.passthrough.texts.add("\"said\":1").unwrap();
    for kind in PassthroughKind::ALL {
        part.passthrough.set(kind, 0, text);
    }
    part.passthrough.add_unknown_event(UnknownEvent {
        time_ns: start as i64,
        thread,
        text,
    });
    part
}

fn together(first: Part, second: Part, kinship: Kinship) -> Profile {
    let mut builder = ProfileBuilder::from(first);
    builder.append(second, kinship);
    builder.build().unwrap()
}

fn links(profile: &Profile) -> Vec<Links> {
    let ids = (0..profile.events().len()).map(EventId::from_index);
    ids.map(|id| profile.links(id).unwrap_or_default())
        .collect()
}

/// ```text
/// first  |--a--|           reference 100, a at 10
/// second       |--b--|     reference 60,  b at 70: 30 after the first's time zero
/// ```
#[test]
fn parts_share_one_time_axis_that_begins_with_the_earlier() {
    for is_swapped in [false, true] {
        let (mut first, mut second) = (part(1, "a", 10), part(2, "b", 70));
        (first.reference_unix_ns, second.reference_unix_ns) = (100, 60);
        if is_swapped {
            std::mem::swap(&mut first, &mut second);
        }
        let profile = together(first, second, Kinship::Job);
        assert_eq!(profile.reference_unix_ns(), 60);
        let events = profile.events().iter();
        let found: Vec<_> = events
            .map(|event| (profile.name(event), event.start.0))
            .collect();
        assert_eq!(found, [("a", 50), ("b", 70)]);
        assert_eq!(profile.memory().time(0), Nanos(50));
        assert_eq!(profile.roles()[0].time, Nanos(50));
        assert_eq!(profile.passthrough().unknown_events()[1].time_ns, 70);
        assert_eq!(profile.span(), Nanos(75));
    }
}

#[test]
fn ids_of_a_part_become_those_of_the_whole() {
    let profile = together(part(1, "a", 10), part(2, "b", 30), Kinship::Job);
    for (index, event) in profile.events().iter().enumerate() {
        let start = [10, 30][index];
        assert_eq!(profile.inputs().words(event.inputs), [start]);
        assert_eq!(profile.storages().of(index), [start]);
        let frames: Vec<_> = profile.stacks().frames(event.stack).collect();
        assert_eq!(profile.strings().text(frames[0]), "frame");
        let thread = profile.threads()[event.thread.index()];
        assert_eq!(thread.name, event.name);
        assert_eq!(
            links(&profile)[index].forward_thread(),
            ForwardThread::At(event.thread)
        );
        for kind in PassthroughKind::OF_EVENTS
            .into_iter()
            .chain([PassthroughKind::MemoryArguments])
        {
            let text = profile.passthrough().of(kind, index).unwrap();
            assert_eq!(profile.passthrough().texts.text(text), "\"said\":1");
        }
        assert!(
            profile
                .passthrough()
                .of(PassthroughKind::Track, event.thread.index())
                .is_some()
        );
        assert_eq!(profile.memory().at(index).thread, event.thread);
    }
    assert_eq!(profile.stacks().len(), 2, "equal stacks are one");
}

#[test]
fn numbers_of_two_processes_never_meet() {
    let mut second = part(1, "b", 30);
    second.rank = Some(1);
    let profile = together(part(1, "a", 10), second, Kinship::Job);
    let found: Vec<_> = links(&profile)
        .iter()
        .map(|links| (links.external, links.correlation))
        .collect();
    assert_eq!(found, [(7, 9), (16, 18)], "raised alike");
    let processes: Vec<_> = profile
        .threads()
        .iter()
        .map(|thread| thread.process)
        .collect();
    assert_eq!(processes, [1, 2]);
    let threads = [0, 1].map(ThreadId::from_raw);
    assert_eq!(threads.map(|thread| profile.origin(thread)), [0, 1]);
    assert_eq!(threads.map(|thread| profile.rank(thread)), [None, Some(1)]);
}

#[test]
fn numbers_that_cannot_be_raised_are_given_anew() {
    let mut second = part(1, "b", 30);
    second.add_linked_event(second.events.events[0], Links::new(u32::MAX, 0));
    let profile = together(part(1, "a", 10), second, Kinship::Job);
    let externals: Vec<_> = links(&profile).iter().map(|links| links.external).collect();
    assert_eq!(externals[0], 7);
    assert!(externals[1] != externals[2] && externals[1..].iter().all(|&number| number != 7));
}

#[test]
fn what_is_reported_late_shares_threads_and_numbers() {
    let profile = together(part(1, "a", 10), part(1, "b", 30), Kinship::Window);
    assert_eq!(profile.threads().len(), 1);
    let found: Vec<_> = links(&profile)
        .iter()
        .map(|links| links.correlation)
        .collect();
    assert_eq!(found, [9, 9]);
}

#[test]
fn another_window_of_a_process_has_threads_of_its_own() {
    let profile = together(part(1, "a", 10), part(1, "b", 30), Kinship::Process);
    let processes: Vec<_> = profile
        .threads()
        .iter()
        .map(|thread| thread.process)
        .collect();
    assert_eq!(processes, [1, 1]);
}

#[test]
fn what_a_part_does_not_hold_is_refused_after_it_was_appended() {
    let mut wrong = part(2, "b", 30);
    let mut event = wrong.events.events[0];
    event.inputs = crate::InputsId::from_raw(9);
    wrong.add_event(event);
    let mut builder = ProfileBuilder::from(part(1, "a", 10));
    builder.append(wrong, Kinship::Job);
    assert!(matches!(builder.build(), Err(Error::UnknownInputs { .. })));
}

struct OnThread(ThreadId, bool);

impl Selection for OnThread {
    fn event(&mut self, _id: EventId, event: &Event) -> Option<Event> {
        ((event.thread == self.0) == self.1).then_some(*event)
    }

    fn keeps_memory(&mut self, record: &MemoryRecord) -> bool {
        (record.thread == self.0) == self.1
    }

    fn keeps_unknown(&mut self, record: &UnknownEvent) -> bool {
        (record.thread == self.0) == self.1
    }
}

fn any_profile() -> impl Strategy<Value = Profile> {
    let events = prop::collection::vec((0_u32..3, 0_u64..50, 0_u64..20, 0_u32..4), 0..40);
    events.prop_map(|events| {
        let mut part = Part::new();
        for native in 0..3 {
            part.add_thread(Thread {
                process: 1,
                native,
                name: StringTable::EMPTY,
                device: DeviceKind::Cpu,
            });
        }
        for (number, (thread, start, duration, external)) in events.into_iter().enumerate() {
            let name = part.strings.intern(&format!("event {}", number % 7));
            let thread = ThreadId::from_raw(thread);
            let (start, duration) = (Nanos(start), Nanos(duration));
            let event = Event::new(Category::Operator, name, thread, start, duration);
            part.add_linked_event(event, Links::new(external, 0));
        }
        part.into_profile().unwrap()
    })
}

/// The properties of each event that do not depend on the order of equal ones.
fn described(profile: &Profile) -> Vec<(u64, u64, u64, String, u32)> {
    let events = profile.events().iter().zip(links(profile));
    let mut found: Vec<_> = events
        .map(|(event, links)| {
            let native = profile.threads()[event.thread.index()].native;
            let name = profile.name(event).to_owned();
            (
                event.start.0,
                event.duration.0,
                native,
                name,
                links.external,
            )
        })
        .collect();
    found.sort();
    found
}

proptest! {
    #[test]
    fn a_profile_that_is_split_and_put_together_is_the_same(profile in any_profile(), thread in 0_u32..3) {
        let select = |is_chosen| {
            let mut selection = OnThread(ThreadId::from_raw(thread), is_chosen);
            Part::selected(&profile, Nanos::ZERO, &mut selection)
        };
        let whole = together(select(true), select(false), Kinship::Window);
        prop_assert_eq!(described(&whole), described(&profile));
        prop_assert!(whole.events().is_sorted_by_key(|event| (event.start, Reverse(event.end()))));
    }

    #[test]
    fn a_profile_merged_with_itself_has_everything_twice(profile in any_profile()) {
        let whole = together(profile.clone().into(), profile.clone().into(), Kinship::Job);
        prop_assert_eq!(whole.events().len(), 2 * profile.events().len());
        let numbers = |origin: usize| -> std::collections::BTreeSet<u32> {
            let ids = (0..whole.events().len()).map(EventId::from_index);
            let of_origin = ids.filter(|&id| whole.origin(whole.event(id).thread) == origin);
            of_origin.filter_map(|id| whole.links(id)).map(|links| links.external).filter(|&n| n != 0).collect()
        };
        prop_assert!(numbers(0).is_disjoint(&numbers(1)));
    }
}

#[test]
fn a_call_encloses_an_operator_of_the_same_time() {
    let mut part = part(1, "aten::pow", 10);
    let mut call = part.events()[0];
    call.category = Category::PythonFunction;
    // Not in order, so that the events are sorted.
    let mut earlier = part.events()[0];
    earlier.start = Nanos(2);
    part.add_event(call);
    part.add_event(earlier);
    let profile = part.into_profile().unwrap();
    let found: Vec<_> = profile
        .events()
        .iter()
        .map(|event| event.category)
        .collect();
    let operator = earlier.category;
    assert_eq!(found, [operator, Category::PythonFunction, operator]);
}
