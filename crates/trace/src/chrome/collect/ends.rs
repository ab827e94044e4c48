//! End events, whose arguments belong to the events they end.

use mindprof_model::{ForwardThread, PassthroughKind, TextId};
use rustc_hash::FxHashMap;

use super::Collector;
use super::passthrough::{UnclaimedArgs, each_entry, push_string};
use super::vocabulary::Role;
use crate::chrome::event::{RawArguments, RawEvent, Rest, Texts};
use crate::chrome::keys::{ArgumentKey, ArgumentKeys};
use crate::read_options::UnknownArgs;
use crate::scan::decode;

/// Arguments that only our own traces have, which contain no end events, or that must be known at
/// the beginning.
const OF_BEGINS: ArgumentKeys = ArgumentKeys::new(&[
    ArgumentKey::Storages,
    ArgumentKey::Roles,
    ArgumentKey::Python,
    ArgumentKey::PythonParent,
]);

impl Collector {
    /// Ends the innermost open event of a track.
    pub(super) fn add_end(&mut self, event: &RawEvent<'_>, texts: &Texts, rest: &Rest) {
        let Some(time) = self.time(event.start) else {
            return;
        };
        let device = self.vocabulary.category(event.category, texts).device;
        let strings = &mut self.part.strings;
        let thread = self
            .tracks
            .track(device, event.process, event.thread, strings);
        if let Some(begun) = self.spans.end(time, thread) {
            self.add_late_arguments(begun, &event.arguments, texts, rest);
            if !rest.fields.is_empty() {
                let fields = self.sound(&rest.fields, |_| true);
                self.amend(PassthroughKind::Fields, begun, |begins| {
                    join(&fields, begins, |_| true)
                });
            }
        }
    }

    /// Adds arguments to those of an event. A later value replaces an earlier one.
    fn add_late_arguments(
        &mut self,
        index: usize,
        arguments: &RawArguments<'_>,
        texts: &Texts,
        rest: &Rest,
    ) {
        let said = arguments.said;
        if said.is_empty() && rest.arguments.is_empty() {
            return;
        }
        let mut event = self.events[index];
        let before = self.links.at(index);
        let mut links = before;
        let left = self.add_arguments(&mut event, &mut links, Role::Any, (arguments, texts));
        self.events[index] = event;
        if links != before {
            self.has_forward_threads |= links.forward_thread() != ForwardThread::Unknown;
            self.links.set(index, links);
        }
        let mut entries = Vec::new();
        let unclaimed = UnclaimedArgs {
            index,
            kind: PassthroughKind::Arguments,
            keys: left.without(OF_BEGINS),
            arguments,
            texts,
            rest: &rest.arguments,
        };
        unclaimed.push_to(&mut entries);
        let entries = self.sound(&entries, |_| true);
        let is_unsaid = |key: &str| !said.contains(ArgumentKey::of(key.as_bytes()));
        self.amend(unclaimed.kind, index, |begins| {
            join(begins, &entries, is_unsaid)
        });
    }

    /// Drops an argument that is kept as text, because the event itself now has it.
    pub(super) fn forget_argument(&mut self, index: usize, argument: ArgumentKey) {
        let is_other = |key: &str| ArgumentKey::of(key.as_bytes()) != argument;
        self.amend(PassthroughKind::Arguments, index, |said| {
            join(said, "", is_other)
        });
    }

    /// Edits the entries kept as text for an event. The result is stored when all events are known.
    fn amend(&mut self, kind: PassthroughKind, index: usize, amended: impl FnOnce(&str) -> String) {
        if self.store.unknown == UnknownArgs::Count {
            return;
        }
        let passthrough = &self.part.passthrough;
        let known = self.amended.of(kind).get(&index).copied();
        let old = known.unwrap_or_else(|| passthrough.of(kind, index));
        let old = old.map_or_else(String::new, |text| passthrough.texts.text(text));
        let new = amended(&old);
        if new == old {
            return;
        }
        if !self.has_room() {
            self.leave_out_details();
            return;
        }
        let text = if new.is_empty() {
            None
        } else {
            self.part.passthrough.texts.add(&new)
        };
        self.amended.of(kind).insert(index, text);
    }

    /// Stores the edited entries.
    pub(super) fn settle_amended(&mut self) {
        for kind in [PassthroughKind::Fields, PassthroughKind::Arguments] {
            let changes = std::mem::take(self.amended.of(kind));
            if !changes.is_empty() {
                self.part.passthrough.replace(kind, &changes);
            }
        }
    }
}

/// Edited entries by event index.
#[derive(Default)]
pub(super) struct Amended {
    fields: Changes,
    arguments: Changes,
}

type Changes = FxHashMap<usize, Option<TextId>>;

impl Amended {
    const fn of(&mut self, kind: PassthroughKind) -> &mut Changes {
        match kind {
            PassthroughKind::Fields => &mut self.fields,
            PassthroughKind::Category
            | PassthroughKind::Arguments
            | PassthroughKind::MemoryArguments
            | PassthroughKind::Track => &mut self.arguments,
        }
    }
}

/// Joins two lists of entries: the wanted ones of the first that are not in the second, then all of
/// the second. Known arguments come last, as in kept entries.
fn join(first: &str, second: &str, is_wanted: impl Fn(&str) -> bool) -> String {
    let mut entries: FxHashMap<String, (usize, String)> = FxHashMap::default();
    let mut count = 0;
    for (text, is_wanted) in [
        (first, &is_wanted as &dyn Fn(&str) -> bool),
        (second, &|_| true),
    ] {
        // Both were validated when they were kept, so parsing cannot fail.
        let _ = each_entry(format!("{text}}}").as_bytes(), |key, value| {
            let key = decode(key).0.into_owned();
            if is_wanted(&key) {
                entries.insert(key, (count, String::from_utf8_lossy(value).into_owned()));
                count += 1;
            }
        });
    }
    let mut entries: Vec<_> = entries.into_iter().collect();
    entries.sort_unstable_by_key(|(key, (place, _))| match ArgumentKey::of(key.as_bytes()) {
        ArgumentKey::Other => (0, *place),
        known => (1 + known as usize, *place),
    });
    let mut joined = String::new();
    for (key, (_, value)) in entries {
        let separator = if joined.is_empty() { "" } else { "," };
        joined.push_str(separator);
        push_string(&mut joined, &key);
        joined.push(':');
        joined.push_str(&value);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_entries_with_one_key_the_second_counts() {
        let joined = |first, second| join(first, second, |key| key != "no");
        assert_eq!(joined("\"a\":1,\"b\":[2]", "\"a\":3"), "\"b\":[2],\"a\":3");
        assert_eq!(joined("\"a\":1,\"no\":2", ""), "\"a\":1");
        assert_eq!(joined("", "\"a\":1"), "\"a\":1");
        assert_eq!(joined("\"Bytes\":1", "\"a\":1"), "\"a\":1,\"Bytes\":1");
        assert_eq!(joined("", ""), "");
    }
}
