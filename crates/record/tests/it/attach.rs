//! Parts attached after a window has closed, and the threads of forward operators.

use std::thread;

use mindprof_model::{
    Category, DeviceEvent, DeviceKind, Event, EventId, ForwardThread, Links, Nanos, Part, Profile,
    StringId, StringTable, Thread,
};
use mindprof_record::{Name, NameKind, Options, Session, Site, ThreadKey, open, scope, ticks};

static OP: Site = Site::operator("op");

/// A part with one kernel that starts at `start` and lasts for `duration`.
fn kernel(reference_unix_ns: u64, start: u64) -> Part {
    let mut part = Part::new();
    part.reference_unix_ns = reference_unix_ns;
    let name = part.strings.intern("kernel");
    let stream = part.add_thread(Thread {
        process: 0,
        native: 7,
        name: StringTable::EMPTY,
        device: DeviceKind::Cuda,
    });
    let event = Event::new(Category::Kernel, name, stream, Nanos(start), Nanos(5));
    part.add_linked_event(event, Links::new(0, 3));
    part
}

fn named<'a>(profile: &'a Profile, name: &str) -> (EventId, &'a Event) {
    let events = (0..).map(EventId::from_index).zip(profile.events());
    let mut found = events.filter(|(_, event)| profile.name(event) == name);
    let event = found.next().expect("it was recorded");
    assert!(found.next().is_none());
    event
}

#[test]
fn what_a_device_reports_late_lies_on_the_axis_of_the_window() {
    let session = Session::start(Options::default());
    let before = ticks();
    drop(scope(&OP));
    let mut capture = session.stop();
    let axis = capture.axis();
    let at = axis.at_ticks(before);
    assert_eq!(axis.at_unix_ns(axis.reference_unix_ns() + at.0), at);
    let early = axis.reference_unix_ns() - 1_000;
    capture.attach(kernel(early, 1_000 + at.0)).unwrap();
    let profile = capture.assemble();
    // The axis begins at the earlier of the two time zeros.
    assert_eq!(profile.reference_unix_ns(), early);
    let (id, event) = named(&profile, "kernel");
    assert_eq!(event.start, Nanos(1_000 + at.0));
    assert_eq!(profile.links(id).unwrap().correlation, 3);
    assert!(named(&profile, "op").1.start >= event.start);
    let device = profile.threads()[event.thread.index()].device;
    assert_eq!(device, DeviceKind::Cuda);
}

/// ```text
/// outer   |-----------------|    external id 40
///  inner     |------|            external id 41
/// kernel          |------|       correlation 41
/// ```
#[test]
fn the_work_of_a_device_names_the_scope_that_asked_for_it() {
    let name = |text| Name::intern(text, NameKind::Operator);
    let session = Session::start(Options::default());
    let outer = open(name("outer")).expect("a window is open");
    outer.set_external(40);
    let inner = open(name("inner")).expect("a window is open");
    inner.set_external(41);
    inner.close();
    drop(scope(&OP));
    outer.close();
    let mut capture = session.stop();
    let start = capture.axis().reference_unix_ns();
    let work = DeviceEvent {
        name: 0,
        start_unix_ns: start,
        end_unix_ns: start + 5,
        stream: 7,
        correlation: 41,
        device: 0,
    };
    let part = Part::from_device_events(DeviceKind::Cuda, &["kernel"], &[work]).unwrap();
    capture.attach(part).unwrap();
    let profile = capture.assemble();
    let external = |name| {
        profile
            .links(named(&profile, name).0)
            .map(|links| links.external)
    };
    assert_eq!(external("outer"), Some(40));
    assert_eq!(external("inner"), external("kernel"));
    assert_eq!(external("op").unwrap_or(0), 0);
}

#[test]
fn a_part_that_names_what_it_does_not_hold_is_refused() {
    let mut capture = Session::start(Options::default()).stop();
    let mut part = kernel(0, 0);
    let stream = part.threads().len() as u32 - 1;
    let stream = mindprof_model::ThreadId::from_raw(stream);
    let unknown = StringId::from_raw(99);
    let event = Event::new(Category::Kernel, unknown, stream, Nanos(0), Nanos(1));
    part.add_event(event);
    assert!(capture.attach(part).is_err());
    assert!(capture.assemble().events().is_empty());
}

fn backward(sequence: u32, thread: ThreadKey) {
    let name = Name::intern("MulBackward0", NameKind::Backward);
    let mut node = open(name).expect("a window is open");
    node.set_forward(sequence, thread);
    node.close();
}

#[test]
fn a_node_knows_the_thread_that_its_forward_ran_on() {
    let here = ThreadKey::current();
    for is_recorded in [true, false] {
        let session = Session::start(Options::default());
        if is_recorded {
            scope(&OP).set_sequence(5);
        }
        thread::spawn(move || backward(5, here)).join().unwrap();
        let profile = session.stop().assemble();
        let (id, event) = named(&profile, "MulBackward0");
        assert_eq!(event.sequence(), Some(5));
        let forward = profile.links(id).unwrap().forward_thread();
        if is_recorded {
            let thread = named(&profile, "op").1.thread;
            assert_ne!(thread, event.thread);
            assert_eq!(forward, ForwardThread::At(thread));
        } else {
            assert_eq!(forward, ForwardThread::Elsewhere);
        }
    }
}

#[test]
fn a_node_that_runs_where_its_forward_ran_needs_no_record_of_it() {
    let session = Session::start(Options::default());
    backward(7, ThreadKey::current());
    let profile = session.stop().assemble();
    let (id, event) = named(&profile, "MulBackward0");
    let forward = profile.links(id).unwrap().forward_thread();
    assert_eq!(forward, ForwardThread::At(event.thread));
    assert_eq!(event.sequence(), Some(7));
}
