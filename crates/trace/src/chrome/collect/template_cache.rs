//! Handles texts that differ only in their numbers once per template.

use mindprof_model::{PackedTexts, PatternId, TextId, TextTemplate};

use crate::scan::text_hash;

/// The number of slots in the table of templates.
const SLOTS: usize = 1 << 10;
/// The longest text that is handled; longer ones may contain numbers with too many digits.
const LONGEST: usize = 2_000;

/// The templates so far, in a direct-mapped table.
pub(super) struct TemplateCache {
    slots: Vec<Slot>,
    /// The text looked up last, split into template and numbers.
    last: TextTemplate,
    slot: usize,
}

#[derive(Clone, Default)]
struct Slot {
    /// The hash of the template seen last in this slot.
    hash: u64,
    /// Whether preparing that template was attempted.
    was_tried: bool,
    template: Option<Box<Template>>,
}

/// The way to store texts of one template.
#[derive(Clone)]
struct Template {
    /// The text without its numbers.
    raw: Box<[u8]>,
    use_of: Use,
    pattern: PatternId,
    /// The numbers that are kept, unless all are.
    parts: Option<Box<[u16]>>,
}

/// The purpose of a kept text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// All entries, stored with an event.
    Entries,
    /// The entries of an unknown event other than its time and track.
    Record,
}

impl Default for TemplateCache {
    fn default() -> Self {
        Self {
            slots: vec![Slot::default(); SLOTS],
            last: TextTemplate::default(),
            slot: 0,
        }
    }
}

impl TemplateCache {
    /// Looks up the template of a text.
    pub(super) fn find(&mut self, raw: &[u8], use_of: Use) -> Lookup<'_> {
        self.last.split(raw);
        let hash = text_hash(self.last.pattern());
        self.slot = (hash >> 32) as usize % SLOTS;
        let slot = &mut self.slots[self.slot];
        match &slot.template {
            Some(template)
                if *template.raw == *self.last.pattern() && template.use_of == use_of =>
            {
                Lookup::Known(TemplateMatch {
                    template,
                    text: &self.last,
                })
            }
            // Texts that occur once are not worth a template.
            Some(_) | None if slot.hash != hash => {
                (slot.hash, slot.was_tried) = (hash, false);
                Lookup::New
            }
            Some(_) | None if slot.was_tried || raw.len() > LONGEST || raw.contains(&b'\\') => {
                Lookup::New
            }
            Some(_) | None => Lookup::Again,
        }
    }

    /// Prepares the template of the text looked up last. `kept_of` returns the entries to keep of a
    /// text, if it is valid.
    pub(super) fn train(
        &mut self,
        use_of: Use,
        texts: &mut PackedTexts,
        kept_of: impl FnOnce(&[u8]) -> Option<String>,
    ) {
        self.slots[self.slot].was_tried = true;
        let raw = self.last.distinct();
        let distinct = TextTemplate::of(&raw);
        if distinct.pattern() != self.last.pattern() {
            return;
        }
        let Some(text) = kept_of(&raw) else { return };
        let kept = TextTemplate::of(text.as_bytes());
        let place =
            |index| (0..distinct.len()).position(|other| distinct.part(other) == kept.part(index));
        let places: Option<Vec<usize>> = (0..kept.len()).map(place).collect();
        // Each number is kept verbatim, and they stay in order.
        let Some(places) = places.filter(|places| places.is_sorted_by(|a, b| a < b)) else {
            return;
        };
        let Some(pattern) = texts.add_pattern(&kept) else {
            return;
        };
        let is_all = places.len() == distinct.len();
        let parts = (!is_all).then(|| places.iter().map(|&place| place as u16).collect());
        self.slots[self.slot].template = Some(Box::new(Template {
            raw: self.last.pattern().into(),
            use_of,
            pattern,
            parts,
        }));
    }
}

/// The result of a lookup.
pub(super) enum Lookup<'a> {
    Known(TemplateMatch<'a>),
    /// The template was seen before but is not prepared yet.
    Again,
    New,
}

/// A text with a known template.
pub(super) struct TemplateMatch<'a> {
    template: &'a Template,
    text: &'a TextTemplate,
}

impl TemplateMatch<'_> {
    /// Keeps the text. `None` if there is no room for it.
    pub(super) fn keep(&self, texts: &mut PackedTexts) -> Option<TextId> {
        match &self.template.parts {
            None => texts.add_parts(self.template.pattern, [self.text.packed()]),
            Some(parts) => {
                let parts = parts.iter().map(|&part| self.text.part(part.into()));
                texts.add_parts(self.template.pattern, parts)
            }
        }
    }
}
