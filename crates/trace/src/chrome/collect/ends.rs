//! Ends of events, and what they say: it belongs to the events that they end.

use mindprof_model::{ForwardThread, PassthroughKind, TextId};
use rustc_hash::FxHashMap;

use super::Collector;
use super::passthrough::{UnclaimedArgs, each_entry, push_string};
use super::vocabulary::Role;
use crate::chrome::event::{RawArguments, RawEvent, Rest, Texts};
use crate::chrome::keys::{ArgumentKey, ArgumentKeys};
use crate::read_options::UnknownArgs;
use crate::scan::decode;

/// What only our own traces say, which have no ends, or what has to be known at the beginning.
const OF_BEGINS: ArgumentKeys = ArgumentKeys::new(&[
    ArgumentKey::Storages,
    ArgumentKey::Roles,
    ArgumentKey::Python,
    ArgumentKey::PythonParent,
]);

impl Collector {
    /// Takes the end of the event that was begun last on its track.
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

    /// Adds arguments to those of an event. Of two with one key the later one counts.
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

    /// Forgets an argument that is kept as text, for the event itself says it now.
    pub(super) fn forget_argument(&mut self, index: usize, argument: ArgumentKey) {
        let is_other = |key: &str| ArgumentKey::of(key.as_bytes()) != argument;
        self.amend(PassthroughKind::Arguments, index, |said| {
            join(said, "", is_other)
        });
    }

    /// Makes other entries of those that are kept of an event. What becomes of them is put into its
    /// place when all is known.
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

    /// Puts what was amended into its place.
    pub(super) fn settle_amended(&mut self) {
        for kind in [PassthroughKind::Fields, PassthroughKind::Arguments] {
            let changes = std::mem::take(self.amended.of(kind));
            if !changes.is_empty() {
                self.part.passthrough.replace(kind, &changes);
            }
        }
    }
}

/// What is kept of events anew, by their indices.
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

/// Returns the wanted ones of the first entries that are not among the second, and all of those: in
/// the order in which arguments are kept, known ones last.
fn join(first: &str, second: &str, is_wanted: impl Fn(&str) -> bool) -> String {
    let mut entries: FxHashMap<String, (usize, String)> = FxHashMap::default();
    let mut count = 0;
    for (text, is_wanted) in [
        (first, &is_wanted as &dyn Fn(&str) -> bool),
        (second, &|_| true),
    ] {
        // Both are sound: there is nothing in them that could not be told apart.
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
