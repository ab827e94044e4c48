//! Facts about processes and threads.

use super::Collector;
use crate::chrome::event::{RawEvent, Texts};
use crate::chrome::keys::ArgumentKey;
use crate::scan::{decode, inside_quotes};

impl Collector {
    /// Takes a fact about a process or a thread. Those that a writer finds by itself are not kept.
    pub(super) fn add_fact(&mut self, event: &RawEvent<'_>, texts: &Texts) {
        let fact = inside_quotes(texts.text(event.name)).unwrap_or_default();
        match fact {
            b"thread_name" => self.add_thread_name(event, texts),
            b"process_name" | b"process_labels" | b"process_sort_index" | b"thread_sort_index" => {}
            _ => self.keep_record(event, texts),
        }
    }

    fn add_thread_name(&mut self, event: &RawEvent<'_>, texts: &Texts) {
        let Some(name) = inside_quotes(texts.text(event.arguments.text(ArgumentKey::Name))) else {
            return;
        };
        let (name, _) = decode(name);
        let strings = &mut self.profile.strings;
        let name = strings.intern(bare_thread_name(&name));
        self.tracks.name(event.process, event.thread, name, strings);
    }
}

/// Takes the name out of `thread 12 (name)`, which is how a trace shows it.
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
