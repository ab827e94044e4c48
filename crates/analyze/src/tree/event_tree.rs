//! Which event called which: parents, self times, and duplicates that are merged into their
//! parents.
//!
//! The events of a profile lie in start order, longest first, so one walk with a stack of open
//! events per thread finds every parent.

use mindprof_model::{Category, DeviceKind, Event, EventId, Flags, Nanos, Profile};

use crate::links::correlate::Correlation;
use crate::rows::keys::Keys;
use crate::tree::short_times::ShortTimes;

#[cfg(test)]
mod tests;

const NONE: u32 = u32::MAX;

/// The tree of a profile's host events. Takes 8 bytes per event, 9 where some stand apart.
///
/// Events of devices, asynchronous ones and hidden ones stand outside: they have no parent, no
/// children and no self time.
#[derive(Clone, Debug)]
pub struct Tree {
    parents: Vec<u32>,
    self_times: ShortTimes,
    /// Where each event stands; empty while all are inside.
    places: Vec<Place>,
    /// How many events are hidden or merged.
    not_shown: usize,
    merged: usize,
}

/// Where an event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Place {
    Inside,
    /// A duplicate that its parent stands for.
    Merged,
    Outside,
}

impl Tree {
    /// Builds the tree in time linear in the number of events.
    ///
    /// On each thread the parent of an event is the nearest earlier event that is still open at its
    /// start and does not end before it:
    ///
    /// ```text
    /// time  0    10   20   30   40   50   60   70   80   90
    /// a     |-------------------------------------------|      root
    /// b          |--------------|                              in a
    /// c               |----|                                   in b
    /// d                              |---------|               in a
    /// e                                   |---------|          in a: d ends before it
    /// f                                         |--|           in e: e hides d
    /// self  a: what b, d and e leave uncovered; where d and e overlap counts once
    /// ```
    ///
    /// An event that is its parent's only child and has its key is merged into the parent, which
    /// takes over its children. A Python function that calls itself is no duplicate:
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

    /// Returns the number of events, those outside included.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Returns whether there is no event.
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// Returns whether no event is hidden or merged into another.
    pub(crate) const fn shows_all(&self) -> bool {
        self.not_shown == 0
    }

    /// Returns the event that `id` ran inside of.
    ///
    /// # Panics
    /// When `id` is of another profile.
    pub fn parent(&self, id: EventId) -> Option<EventId> {
        let parent = self.parents[id.index()];
        (parent != NONE).then(|| EventId::from_raw(parent))
    }

    /// Returns the time that `id` did not spend inside its children.
    ///
    /// # Panics
    /// When `id` is of another profile.
    #[inline]
    pub fn self_time(&self, id: EventId) -> Nanos {
        self.self_times.at(id.index())
    }

    /// Returns whether `id` was a duplicate that its parent stands for.
    ///
    /// # Panics
    /// When `id` is of another profile.
    pub fn is_merged(&self, id: EventId) -> bool {
        self.place(id.index()) == Place::Merged
    }

    /// Returns whether `id` stands outside of the tree: on a device, asynchronous or hidden.
    ///
    /// # Panics
    /// When `id` is of another profile.
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

    /// Adds the next event, whose self time is `duration` until it has children.
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
            // To the end at once: where one event stands apart, others do.
            let events = self.parents.capacity().max(index + 1);
            self.places.resize(events, Place::Inside);
        }
        self.places[index] = place;
    }

    /// Takes the innermost open event off `stack`: all its children are known now, and final.
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

    /// Parents come before their children, so a parent's own parent is settled when it is asked
    /// for.
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

/// An event on the stack of its thread, while its children are being met.
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

/// What a parent needs to know of its only child in order to take its place.
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

    /// Children come in start order, so what they cover together grows at its end only.
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
