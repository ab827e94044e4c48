//! The event tree: parents, self times, and duplicates that are merged into their parents.
//!
//! The events of a profile are sorted by start, longest first, so one pass with a stack of open
//! events per thread finds every parent.

use mindprof_model::{Category, DeviceKind, Event, EventId, Flags, Nanos, Profile};

use crate::links::correlate::Correlation;
use crate::rows::keys::Keys;
use crate::tree::short_times::ShortTimes;

#[cfg(test)]
mod tests;

const NONE: u32 = u32::MAX;

/// The tree of a profile's CPU events.
///
/// Recordings and trace files hold only intervals. Self times, totals, stacks and memory all need
/// to know which event ran inside which, so [`crate::Analysis`] builds the tree first. Device
/// events, asynchronous events and hidden events are outside the tree: they have no parent, no
/// children and no self time. The tree takes 8 bytes per event, or 9 if some events are outside or
/// merged.
#[derive(Clone, Debug)]
pub struct Tree {
    parents: Vec<u32>,
    self_times: ShortTimes,
    /// The place of each event; empty as long as all are inside.
    places: Vec<Place>,
    /// The number of events that are hidden or merged.
    not_shown: usize,
    merged: usize,
}

/// Whether an event is a node of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Place {
    Inside,
    /// A duplicate that is represented by its parent.
    Merged,
    Outside,
}

impl Tree {
    /// Builds the tree in time linear in the number of events.
    ///
    /// The parent of an event is the nearest earlier event of its thread that is still open when it
    /// starts and does not end before it:
    ///
    /// ```text
    /// time  0    10   20   30   40   50   60   70   80   90
    /// a     |-------------------------------------------|      root
    /// b          |--------------|                              in a
    /// c               |----|                                   in b
    /// d                              |---------|               in a
    /// e                                   |---------|          in a: d ends before it
    /// f                                         |--|           in e: e hides d
    /// self  a: the time that b, d and e leave uncovered; the overlap of d and e counts once
    /// ```
    ///
    /// An event that is its parent's only child and has the same key is merged into the parent,
    /// which adopts its children. A Python function that calls itself is not a duplicate:
    ///
    /// ```text
    /// x     |---------------------|          x     |---------------------|
    /// x       |-----------------|     ==>    y         |----|
    /// y         |----|
    /// ```
    pub fn build(profile: &Profile, keys: &Keys, correlation: &Correlation) -> Self {
        let mut tree = Self::with_capacity(profile.events().len());
        let mut stacks: Vec<Vec<Open>> = vec![Vec::new(); profile.threads().len()];
        for (index, event) in profile.events().iter().enumerate() {
            if !is_candidate(profile, event) {
                tree.push(NONE, Nanos::ZERO, Place::Outside);
                tree.not_shown += usize::from(event.flags.contains(Flags::HIDDEN));
                continue;
            }
            let thread = if event.category == Category::Runtime {
                correlation.thread(profile, EventId::from_index(index))
            } else {
                event.thread
            };
            let stack = &mut stacks[thread.index()];
            while stack.last().is_some_and(|top| !top.encloses(event)) {
                tree.close(stack);
            }
            let parent = stack.last_mut().map_or(NONE, |parent| {
                parent.cover(event);
                parent.index
            });
            tree.push(parent, event.duration, Place::Inside);
            stack.push(Open::new(
                index as u32,
                keys.key(event.name).to_raw(),
                event,
            ));
        }
        for stack in &mut stacks {
            while !stack.is_empty() {
                tree.close(stack);
            }
        }
        if tree.merged > 0 {
            tree.adopt_children_of_merged();
        }
        tree
    }

    /// Returns the number of events, including those outside the tree.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Returns whether the profile has no events.
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// Returns whether no event is hidden or merged into another.
    pub(crate) const fn shows_all(&self) -> bool {
        self.not_shown == 0
    }

    /// Returns the event that `id` ran inside, or `None` if it is a root or outside the tree.
    ///
    /// # Panics
    /// If `id` is out of range. An id of another profile gives a meaningless parent.
    pub fn parent(&self, id: EventId) -> Option<EventId> {
        let parent = self.parents[id.index()];
        (parent != NONE).then(|| EventId::from_raw(parent))
    }

    /// Returns the duration of `id` without the time that its children cover.
    ///
    /// # Panics
    /// If `id` is out of range. An id of another profile gives a meaningless time.
    #[inline]
    pub fn self_time(&self, id: EventId) -> Nanos {
        self.self_times.at(id.index())
    }

    /// Returns whether `id` is a duplicate that was merged into its parent. An id of another
    /// profile gives a meaningless answer.
    pub fn is_merged(&self, id: EventId) -> bool {
        self.place(id.index()) == Place::Merged
    }

    /// Returns whether `id` is outside the tree: on a device, asynchronous or hidden. An id of
    /// another profile gives a meaningless answer.
    pub fn is_outside(&self, id: EventId) -> bool {
        self.place(id.index()) == Place::Outside
    }

    fn with_capacity(events: usize) -> Self {
        Self {
            parents: Vec::with_capacity(events),
            self_times: ShortTimes::with_capacity(events),
            places: Vec::new(),
            not_shown: 0,
            merged: 0,
        }
    }

    /// Adds the next event. Its self time is `duration` until children are subtracted.
    #[inline]
    fn push(&mut self, parent: u32, duration: Nanos, place: Place) {
        self.parents.push(parent);
        self.self_times.push(duration);
        if place != Place::Inside {
            self.set_place(self.parents.len() - 1, place);
        }
    }

    #[inline]
    fn place(&self, index: usize) -> Place {
        self.places.get(index).copied().unwrap_or(Place::Inside)
    }

    fn set_place(&mut self, index: usize, place: Place) {
        if self.places.len() <= index {
            // Grow to the full length at once: if one event is outside, more will follow.
            let events = self.parents.capacity().max(index + 1);
            self.places.resize(events, Place::Inside);
        }
        self.places[index] = place;
    }

    /// Pops the innermost open event off `stack`, now that all its children are known.
    fn close(&mut self, stack: &mut Vec<Open>) {
        let Some(open) = stack.last_mut() else { return };
        let is_duplicate = |child: &Closed| open.merges && child.key == open.key;
        if let Some(child) = open.only_child.filter(is_duplicate) {
            self.set_place(child.index as usize, Place::Merged);
            self.not_shown += 1;
            self.merged += 1;
            self.self_times.set(child.index as usize, Nanos::ZERO);
            open.covered = child.covered;
            open.children = child.children;
        }
        if open.covered != Nanos::ZERO {
            let own = open.duration.saturating_sub(open.covered);
            self.self_times.set(open.index as usize, own);
        }
        if let [.., parent, open] = &mut stack[..]
            && parent.children == 1
        {
            parent.only_child = Some(open.closed());
        }
        stack.truncate(stack.len() - 1);
    }

    /// Moves the children of merged events to the parents of those.
    ///
    /// Parents precede their children, so the parent of a merged event is final when it is read.
    fn adopt_children_of_merged(&mut self) {
        for index in 0..self.parents.len() {
            let parent = self.parents[index];
            if parent != NONE && self.place(parent as usize) == Place::Merged {
                self.parents[index] = self.parents[parent as usize];
            }
        }
    }
}

fn is_candidate(profile: &Profile, event: &Event) -> bool {
    let outside = event.flags.contains(Flags::ASYNC) || event.flags.contains(Flags::HIDDEN);
    !outside && profile.threads()[event.thread.index()].device == DeviceKind::Cpu
}

/// An event on the stack of its thread, while its children are collected.
#[derive(Clone, Debug)]
struct Open {
    index: u32,
    key: u32,
    children: u32,
    /// Whether a child of the same key is a duplicate.
    merges: bool,
    end: Nanos,
    duration: Nanos,
    covered: Nanos,
    covered_until: Nanos,
    only_child: Option<Closed>,
}

/// The facts about an only child that its parent needs in order to absorb it.
#[derive(Clone, Copy, Debug)]
struct Closed {
    index: u32,
    key: u32,
    children: u32,
    covered: Nanos,
}

impl Open {
    fn new(index: u32, key: u32, event: &Event) -> Self {
        Self {
            index,
            key,
            children: 0,
            merges: event.category != Category::PythonFunction,
            end: event.end(),
            duration: event.duration,
            covered: Nanos::ZERO,
            covered_until: event.start,
            only_child: None,
        }
    }

    fn encloses(&self, event: &Event) -> bool {
        event.start < self.end && event.end() <= self.end
    }

    /// Adds a child. Children arrive in start order, so the covered time grows only at its end.
    fn cover(&mut self, child: &Event) {
        let from = child.start.max(self.covered_until);
        self.covered = self.covered + child.end().saturating_sub(from);
        self.covered_until = self.covered_until.max(child.end());
        self.children += 1;
        self.only_child = None;
    }

    fn closed(&self) -> Closed {
        Closed {
            index: self.index,
            key: self.key,
            children: self.children,
            covered: self.covered,
        }
    }
}
