//! Profiles for tests, drawn with nested closures.

use crate::{
    Category, DeviceKind, Event, Nanos, Part, Profile, StringId, StringTable, Thread, ThreadId,
};

/// Draws a profile for tests: nested closures on a clock that only moves when told to. Tests that
/// use it read like the timeline in their comment, and never depend on real time.
///
/// ```
/// use mindprof_model::Timeline;
///
/// // parent |--------------------|   0..100
/// // child      |------|            10..40
/// let profile = Timeline::draw(|time| {
///     time.scope("parent", |time| {
///         time.idle(10);
///         time.op("child", 30);
///         time.idle(60);
///     });
/// });
/// assert_eq!(profile.events()[0].duration.0, 100);
/// ```
#[derive(Debug)]
pub struct Timeline {
    part: Part,
    events: Vec<Event>,
    thread: ThreadId,
    now: u64,
}

impl Timeline {
    /// Draws a profile of one thread; [`Self::thread`] begins another.
    ///
    /// # Panics
    /// Never panics in practice: a timeline only refers to what it has added.
    pub fn draw(draw: impl FnOnce(&mut Self)) -> Profile {
        let mut timeline = Self {
            part: Part::new(),
            events: Vec::new(),
            thread: ThreadId::from_raw(0),
            now: 0,
        };
        timeline.thread(1);
        draw(&mut timeline);
        timeline.part.add_events(timeline.events.into());
        timeline
            .part
            .into_profile()
            .expect("a timeline only refers to what it added")
    }

    /// Continues at time zero of a new thread with this native id.
    pub fn thread(&mut self, native: u64) {
        let thread = Thread {
            process: 1,
            native,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        };
        self.thread = self.part.add_thread(thread);
        self.now = 0;
    }

    /// Lets time pass.
    pub fn idle(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
    }

    /// Adds an operator that takes `nanoseconds` and contains nothing.
    pub fn op(&mut self, name: &str, nanoseconds: u64) {
        self.scope(name, |time| time.idle(nanoseconds));
    }

    /// Adds an operator around the events that `inside` draws.
    pub fn scope(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.event(Category::Operator, name, inside);
    }

    /// Adds a user's range around the events that `inside` draws.
    pub fn annotation(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.event(Category::Annotation, name, inside);
    }

    /// Adds an event of any category around the events that `inside` draws.
    pub fn event(&mut self, category: Category, name: &str, inside: impl FnOnce(&mut Self)) {
        let name: StringId = self.part.strings.intern(name);
        let (start, thread) = (self.now, self.thread);
        let slot = self.events.len();
        let (start, duration) = (Nanos(start), Nanos::ZERO);
        (self.events).push(Event::new(category, name, thread, start, duration));
        inside(self);
        self.events[slot].duration = Nanos(self.now) - start;
    }
}
