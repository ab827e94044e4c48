//! Writes unknown fields and events back as they were read.

use mindprof_model::{
    EventId, PassthroughArgs, PassthroughKind, PassthroughWalk, Profile, TextId, UnknownEvent,
};

use super::Writer;
use crate::chrome::collect::each_entry;
use crate::chrome::keys::{ArgumentKey, ArgumentKeys};
use crate::scan::decode;

/// The number of slots in the table of recent texts, so that texts that do not repeat are soon
/// replaced.
const SLOTS: usize = 1 << 12;

/// The longest text that is kept.
const LONGEST_KEPT: usize = 1 << 12;

/// The texts of events, looked up in the order of events.
pub(super) struct PassthroughTexts<'a> {
    passthrough: &'a PassthroughArgs,
    walks: [PassthroughWalk<'a>; PassthroughKind::ALL.len()],
    slots: Vec<(Option<TextId>, KeyedText)>,
    /// The last text that was too long to keep.
    passing: KeyedText,
}

/// A text, with the known keys in it.
#[derive(Clone, Default)]
struct KeyedText {
    text: String,
    keys: ArgumentKeys,
}

/// The texts of one event.
#[derive(Clone, Copy, Default)]
pub(super) struct EventPassthrough {
    pub(super) category: Option<TextId>,
    pub(super) fields: Option<TextId>,
    pub(super) arguments: Option<TextId>,
    /// The known arguments in the texts, which must not be written a second time.
    pub(super) keys: ArgumentKeys,
}

impl<'a> PassthroughTexts<'a> {
    pub(super) fn new(profile: &'a Profile) -> Self {
        let passthrough = profile.passthrough();
        Self {
            passthrough,
            walks: PassthroughKind::ALL.map(|kind| passthrough.walk(kind)),
            slots: vec![Default::default(); SLOTS],
            passing: KeyedText::default(),
        }
    }

    /// Returns to the first event.
    pub(super) fn rewind(&mut self) {
        self.walks = PassthroughKind::ALL.map(|kind| self.passthrough.walk(kind));
    }

    /// Returns the texts of an event. Events must be asked for in order.
    #[inline]
    pub(super) fn of_event(&mut self, id: EventId) -> EventPassthrough {
        let [category, fields, arguments, ..] = &mut self.walks;
        let arguments = arguments.at(id.index());
        let mut found = EventPassthrough {
            category: category.at(id.index()),
            fields: fields.at(id.index()),
            arguments,
            keys: ArgumentKeys::NONE,
        };
        if let Some(text) = arguments {
            found.keys = self.keyed_text(text).keys;
        }
        found
    }

    /// Returns the text of a memory record. Records must be asked for in order.
    pub(super) fn of_memory(&mut self, index: usize) -> Option<TextId> {
        self.walks[PassthroughKind::MemoryArguments as usize].at(index)
    }

    /// Returns a text of an event.
    pub(super) fn text(&mut self, id: TextId) -> &str {
        &self.keyed_text(id).text
    }

    /// Returns a text that is needed once.
    fn passing_text(&mut self, id: TextId) -> &str {
        self.passing.text.clear();
        self.passthrough.texts.push_to(id, &mut self.passing.text);
        &self.passing.text
    }

    fn keyed_text(&mut self, id: TextId) -> &KeyedText {
        let slot = (id.to_raw().wrapping_mul(0x9e37_79b1) >> 20) as usize % SLOTS;
        if self.slots[slot].0 != Some(id) {
            let text = KeyedText::new(self.passthrough.texts.text(id));
            if text.text.len() > LONGEST_KEPT {
                self.passing = text;
                return &self.passing;
            }
            self.slots[slot] = (Some(id), text);
        }
        &self.slots[slot].1
    }
}

impl KeyedText {
    fn new(text: String) -> Self {
        let mut keys = ArgumentKeys::NONE;
        // A text that is not a list of entries, such as a category, has no keys.
        let _ = each_entry(format!("{text}}}").as_bytes(), |key, _| {
            let key = ArgumentKey::of(decode(key).0.as_bytes());
            if key != ArgumentKey::Other {
                keys.add(key);
            }
        });
        Self { text, keys }
    }
}

impl Writer<'_> {
    /// Writes kept arguments, followed by a comma.
    pub(super) fn push_further_arguments(&mut self, text: Option<TextId>) {
        if let Some(text) = text {
            self.text.push(self.passthrough.text(text));
            self.text.push(",");
        }
    }

    /// Writes an unknown event.
    pub(super) fn push_record(&mut self, record: &UnknownEvent) {
        self.text.push(",\n{");
        self.text.push(self.passthrough.passing_text(record.text));
        self.text.push(self.tracks.of_thread(record.thread));
        let before = record.time_ns.min(0).unsigned_abs();
        self.push_since_reference(record.time_ns.max(0) as u64, before);
        self.text.push("}");
    }
}
