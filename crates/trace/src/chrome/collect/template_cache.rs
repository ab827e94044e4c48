//! How texts are kept that differ in their numbers alone: worked out once for all of a template.

use mindprof_model::{PackedTexts, PatternId, TextId, TextTemplate};

use crate::scan::text_hash;

/// How many templates are known by one look.
const SLOTS: usize = 1 << 10;
/// Longer texts may hold numbers of too many digits.
const LONGEST: usize = 2_000;

/// The templates of texts so far.
pub(super) struct TemplateCache {
    slots: Vec<Slot>,
    /// The last text that was looked for, taken apart.
    last: TextTemplate,
    slot: usize,
}

#[derive(Clone, Default)]
struct Slot {
    /// Of the template that was seen last.
    hash: u64,
    /// Whether it was tried to work that template out.
    was_tried: bool,
    template: Option<Box<Template>>,
}

/// What becomes of texts of one template.
#[derive(Clone)]
struct Template {
    /// What is left of them without their parts.
    raw: Box<[u8]>,
    use_of: Use,
    pattern: PatternId,
    /// Those parts that are kept, unless it is all.
    parts: Option<Box<[u16]>>,
}

/// What a text is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// All of it, beside an event.
    Entries,
    /// What is said of a record beside its time and track.
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
    /// Looks whether the template of a text is known.
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
            // What comes only once is not worth it.
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

    /// Works out the template of the text that was looked for last. `kept_of` returns what is kept
    /// of such a text, if it is sound.
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
        // Each part is kept as it stands, and they stay in their order.
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

/// What is known of the template of a text.
pub(super) enum Lookup<'a> {
    Known(TemplateMatch<'a>),
    /// It came before, but is not known yet.
    Again,
    New,
}

/// A text of a template that is known.
pub(super) struct TemplateMatch<'a> {
    template: &'a Template,
    text: &'a TextTemplate,
}

impl TemplateMatch<'_> {
    /// Keeps the text; nothing when there is no room for it.
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
