//! Profiles of a loop with a device for tests. Times are milliseconds, so that what the recorder is
//! taken to cost does not show in whole numbers.

use mindprof_analyze::Analysis;
use mindprof_model::{
    Category, DeviceKind, Event, EventId, Links, Nanos, Part, Profile, ScopeKind, StringTable,
    Thread, ThreadId,
};

use super::Replayed;

const MS: u64 = 1_000_000;

/// A profile while it is drawn.
pub(crate) struct Drawing {
    pub(crate) part: Part,
    pub(crate) host: ThreadId,
    next: u32,
}

impl Drawing {
    /// Begins a profile with the thread of a loop.
    pub(crate) fn new() -> Self {
        let mut part = Part::new();
        let host = part.add_thread(thread(7, DeviceKind::Cpu));
        Self {
            part,
            host,
            next: 1,
        }
    }

    pub(crate) fn stream(&mut self, number: u64) -> ThreadId {
        self.part.add_thread(Thread {
            process: 0,
            ..thread(number, DeviceKind::Cuda)
        })
    }

    pub(crate) fn thread(&mut self, number: u64) -> ThreadId {
        self.part.add_thread(thread(number, DeviceKind::Cpu))
    }

    /// Adds an event on the loop's thread.
    pub(crate) fn host(&mut self, category: Category, name: &str, begin: u64, end: u64) {
        self.event(self.host, category, name, (begin, end), 0);
    }

    pub(crate) fn step(&mut self, number: u64, begin: u64, end: u64) {
        let name = format!("ProfilerStep#{number}");
        self.host(Category::Annotation, &name, begin, end);
    }

    /// Adds a call of the runtime on the loop's thread, and what it launches on a stream.
    pub(crate) fn launch(
        &mut self,
        call: (&str, u64, u64),
        stream: ThreadId,
        work: (&str, u64, u64),
    ) {
        let correlation = self.next;
        self.next += 1;
        let (name, begin, end) = call;
        self.event(
            self.host,
            Category::Runtime,
            name,
            (begin, end),
            correlation,
        );
        let (name, begin, end) = work;
        self.event(stream, Category::Kernel, name, (begin, end), correlation);
    }

    /// Adds a backward node on a thread.
    pub(crate) fn node(&mut self, thread: ThreadId, name: &str, begin: u64, end: u64) {
        let name = self.part.strings.intern(name);
        let mut event = Event::new(
            Category::Operator,
            name,
            thread,
            Nanos(begin * MS),
            Nanos((end - begin) * MS),
        );
        event.scope = ScopeKind::Backward;
        self.part.add_event(event);
    }

    pub(crate) fn event(
        &mut self,
        thread: ThreadId,
        category: Category,
        name: &str,
        (begin, end): (u64, u64),
        correlation: u32,
    ) {
        let name = self.part.strings.intern(name);
        let (start, duration) = (Nanos(begin * MS), Nanos((end - begin) * MS));
        let event = Event::new(category, name, thread, start, duration);
        let mut links = Links::default();
        links.correlation = correlation;
        self.part.add_linked_event(event, links);
    }

    pub(crate) fn analysis(self) -> Analysis {
        let profile = self.part.into_profile();
        Analysis::build(profile.expect("a drawing refers to what it added"))
    }
}

fn thread(native: u64, device: DeviceKind) -> Thread {
    Thread {
        process: 7,
        native,
        name: StringTable::EMPTY,
        device,
    }
}

/// Returns the events of a name.
pub(crate) fn events(profile: &Profile, name: &str) -> Vec<EventId> {
    let events = profile.events().iter().enumerate();
    events
        .filter(|(_, event)| profile.name(event) == name)
        .map(|(index, _)| EventId::from_index(index))
        .collect()
}

/// Returns the steps in whole milliseconds.
pub(crate) fn whole_ms(replayed: &Replayed) -> Vec<u64> {
    let steps = replayed.steps.iter();
    steps.map(|step| (step.0 + MS / 2) / MS).collect()
}
