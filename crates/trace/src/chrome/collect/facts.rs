//! Metadata events: names and sort positions of processes and threads.

use super::Collector;
use super::passthrough::each_entry;
use crate::chrome::event::{RawEvent, Rest, Texts};
use crate::chrome::integer::integer_of;
use crate::chrome::keys::ArgumentKey;
use crate::scan::{decode, inside_quotes};

impl Collector {
    /// Adds a fact about a process or a thread. Unknown facts are kept verbatim.
    pub(super) fn add_fact(&mut self, event: &RawEvent<'_>, texts: &Texts, rest: &Rest) {
        let fact = inside_quotes(texts.text(event.name)).unwrap_or_default();
        let name = || text_of(texts.text(event.arguments.text(ArgumentKey::Name)));
        let labels = || text_of(&entry_of(&rest.arguments, "labels"));
        let sort_index = || integer_of(&entry_of(&rest.arguments, "sort_index"));
        let strings = &mut self.part.strings;
        let (process, thread) = (event.process, event.thread);
        let is_understood = match fact {
            b"thread_name" => name().map(|name| {
                let bare = strings.intern(bare_thread_name(&name));
                self.tracks.name(process, thread, bare, strings);
                let facts = self.tracks.thread_facts(process, thread, strings);
                facts.thread_name = Some(name);
            }),
            b"thread_sort_index" => sort_index().map(|index| {
                let facts = self.tracks.thread_facts(process, thread, strings);
                facts.thread_sort_index = Some(index);
            }),
            b"process_name" => name().map(|name| {
                self.tracks.process_facts(process, strings).process_name = Some(name);
            }),
            b"process_labels" => labels().map(|labels| {
                self.tracks.process_facts(process, strings).process_labels = Some(labels);
            }),
            b"process_sort_index" => sort_index().map(|index| {
                let facts = self.tracks.process_facts(process, strings);
                facts.process_sort_index = Some(index);
            }),
            _ => None,
        };
        if is_understood.is_none() {
            self.keep_record(event, texts);
        }
    }
}

/// Returns the contents of a JSON string.
fn text_of(raw: &[u8]) -> Option<String> {
    inside_quotes(raw).map(|inside| decode(inside).0.into_owned())
}

/// Returns the value of an entry of [`Rest`], or an empty text.
pub(super) fn entry_of(entries: &[u8], wanted: &str) -> Vec<u8> {
    let mut found = Vec::new();
    let entries = [entries, b"}"].concat();
    // Entries that cannot be parsed count as absent.
    let _ = each_entry(&entries, |key, value| {
        if decode(key).0 == wanted {
            found = value.to_vec();
        }
    });
    found
}

/// Extracts the name from `thread 12 (name)`, which is how traces show it.
fn bare_thread_name(shown: &str) -> &str {
    let Some(rest) = shown.strip_prefix("thread ") else {
        return shown;
    };
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
    match rest
        .strip_prefix(" (")
        .and_then(|rest| rest.strip_suffix(')'))
    {
        Some(name) => name,
        None if rest.is_empty() => "",
        None => shown,
    }
}
