//! The builder of profiles: combines parts, checks them and puts them in order.
//!
//! This is the only code that re-interns ids, renumbers links and shifts times. The first part is
//! taken over as it is, so a profile from one source only costs its checks.

use std::cmp::Reverse;

use self::append::Appender;
use crate::{Category, Event, Nanos, Origins, Part, PassthroughKind, Profile, Result};

mod append;
#[cfg(test)]
mod tests;

/// The relation of a part to the parts before it. It decides whether equal threads and ids mean the
/// same thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kinship {
    /// The same process and window, such as a device's late report: equal threads are one thread,
    /// and equal ids mean the same.
    Window,
    /// The same process in another window: its threads and ids are kept apart.
    Process,
    /// Another process: its process ids are kept apart too.
    Job,
}

/// Combines parts into a [`Profile`]. It is the only way to create one, so every profile has passed
/// the checks that its readers rely on.
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
    /// Adds a part. Its strings, inputs, stacks and threads get ids of the whole, its times count
    /// from the earlier of the two time zeros, and its metadata adds keys that are not set yet. Damage
    /// adds up.
    ///
    /// ```text
    /// CPU      |==================|          reference 100, times 0..100: 60..160 of the whole
    /// device      |====|                     reference 40, times 80..120: the same in the whole
    /// ```
    ///
    /// Takes time linear in the size of the part; if the part begins before the others, those are
    /// shifted too.
    pub fn append(&mut self, part: Part, kinship: Kinship) {
        Appender::new(self, &part, kinship).append(part);
    }

    /// Builds the profile.
    ///
    /// # Errors
    /// Fails if an event refers to a string, thread, input list or stack that is not there, or ends
    /// after the largest representable time.
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

/// Orders the events. A call of Python encloses another event of the same interval: an estimated
/// call that made a single operator has its interval. Otherwise the first one added is the outer
/// one, because the sort is stable.
fn sort_events(whole: &mut Part) {
    let key = |event: &Event| {
        let is_call = event.category == Category::PythonFunction;
        (event.start, Reverse(event.end()), !is_call)
    };
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
