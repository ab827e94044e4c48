//! The one way to make a [`Profile`]: parts in, checked and ordered, profile out.
//!
//! This is the only code that re-interns, renumbers and shifts time. A first part is taken as it
//! is, so that a profile of one source costs nothing more than its checks.

use std::cmp::Reverse;

use self::append::Appender;
use crate::{Event, Nanos, Origins, Part, PassthroughKind, Profile, Result};

mod append;
#[cfg(test)]
mod tests;

/// What a part shares with the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinship {
    /// It is of the same process and window, such as what a device reports late: equal threads are
    /// one thread, and equal numbers mean the same.
    Window,
    /// It is of the same process in another window: its threads and numbers are its own.
    Process,
    /// It is of another process: so are its process numbers.
    Job,
}

/// Puts parts together and checks what every reader relies on.
#[derive(Clone, Debug, Default)]
pub struct ProfileBuilder {
    whole: Part,
    origins: Origins,
}

impl From<Part> for ProfileBuilder {
    fn from(part: Part) -> Self {
        Self {
            origins: Origins::new(part.rank, part.threads.len()),
            whole: part,
        }
    }
}

impl ProfileBuilder {
    /// Adds a part. Its strings, inputs, stacks and threads get the ids of the whole; its times
    /// count from the earlier of the two time zeros; its metadata adds what is not there yet.
    ///
    /// ```text
    /// host     |==================|          reference 100
    /// device          |====|                 reference 40, times 80..120: 20..60 of the whole
    /// ```
    ///
    /// Linear in the size of the part, unless it begins before the others: then those shift too.
    pub fn append(&mut self, part: Part, kinship: Kinship) {
        Appender::new(self, &part, kinship).append(part);
    }

    /// Builds the profile.
    ///
    /// # Errors
    /// When an event names a string, thread, input list or stack that is not there, or ends beyond
    /// the last nanosecond.
    pub fn build(mut self) -> Result<Profile> {
        self.whole.check()?;
        let whole = &mut self.whole;
        if let Some(order) = whole.memory.settle() {
            (whole.passthrough).reorder(PassthroughKind::MemoryArguments, &order);
        }
        let mut last_end = Nanos(whole.events.extremes.last_end);
        if let Some(last) = whole.memory.len().checked_sub(1) {
            last_end = last_end.max(whole.memory.time(last));
        }
        whole.span = whole.span.max(last_end);
        whole.roles.sort_by_key(|record| record.time);
        if !whole.events.extremes.is_sorted {
            sort_events(whole);
        }
        whole.storages.settle();
        whole.results.settle();
        whole.passthrough.settle();
        Ok(Profile {
            contents: self.whole,
            origins: self.origins,
        })
    }
}

/// Orders the events. Stable, so that of two events with the same interval the first one added
/// stays the outer one.
fn sort_events(whole: &mut Part) {
    let key = |event: &Event| (event.start, Reverse(event.end()));
    let events = &mut whole.events.events;
    if whole.links.is_empty()
        && whole.storages.is_empty()
        && whole.results.is_empty()
        && whole.passthrough.is_empty()
    {
        events.sort_by_key(key);
        return;
    }
    let mut order: Vec<u32> = (0..events.len() as u32).collect();
    order.sort_by_key(|&index| key(&events[index as usize]));
    *events = order.iter().map(|&index| events[index as usize]).collect();
    whole.links = whole.links.reordered(&order);
    whole.storages.reorder(&order);
    whole.results.reorder(&order);
    for kind in PassthroughKind::OF_EVENTS {
        whole.passthrough.reorder(kind, &order);
    }
}
