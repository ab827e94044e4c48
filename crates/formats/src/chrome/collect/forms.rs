//! How texts are kept that differ in their numbers alone: worked out once for all of one form.

use mindprof_model::{PackedTexts, PatternId, TextId, TextTemplate};

use crate::scan::text_hash;

/// How many forms are known by one look.
const SLOTS: usize = 1 << 10;
/// Longer texts may hold numbers of too many digits.
const LONGEST: usize = 2_000;

/// The forms of texts so far.
pub(super) struct Forms {
    slots: Vec<Slot>,
    /// The last text that was looked for, taken apart.
    split: TextTemplate,
    slot: usize,
}

#[derive(Clone, Default)]
struct Slot {
    /// Of the form that was seen last.
    hash: u64,
    /// Whether it was tried to work that form out.
    was_tried: bool,
    form: Option<Box<Form>>,
}

/// What becomes of texts of one form.
#[derive(Clone)]
struct Form {
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

impl Default for Forms {
    fn default() -> Self {
        Self {
            slots: vec![Slot::default(); SLOTS],
            split: TextTemplate::default(),
            slot: 0,
        }
    }
}

impl Forms {
    /// Looks whether the form of a text is known.
    pub(super) fn find(&mut self, raw: &[u8], use_of: Use) -> Found<'_> {
        self.split.split(raw);
        let hash = text_hash(self.split.pattern());
        self.slot = (hash >> 32) as usize % SLOTS;
        let slot = &mut self.slots[self.slot];
        match &slot.form {
            Some(form) if *form.raw == *self.split.pattern() && form.use_of == use_of => {
                Found::Known(Known {
                    form,
                    split: &self.split,
                })
            }
            // What comes only once is not worth it.
            Some(_) | None if slot.hash != hash => {
                (slot.hash, slot.was_tried) = (hash, false);
                Found::New
            }
            Some(_) | None if slot.was_tried || raw.len() > LONGEST || raw.contains(&b'\\') => {
                Found::New
            }
            Some(_) | None => Found::Again,
        }
    }

    /// Works out the form of the text that was looked for last. `kept_of` returns what is kept of
    /// such a text, if it is sound.
    pub(super) fn learn(
        &mut self,
        use_of: Use,
        texts: &mut PackedTexts,
        kept_of: impl FnOnce(&[u8]) -> Option<String>,
    ) {
        self.slots[self.slot].was_tried = true;
        let raw = self.split.distinct();
        let split = TextTemplate::of(&raw);
        if split.pattern() != self.split.pattern() {
            return;
        }
        let Some(text) = kept_of(&raw) else { return };
        let kept = TextTemplate::of(text.as_bytes());
        let place =
            |index| (0..split.len()).position(|other| split.part(other) == kept.part(index));
        let places: Option<Vec<usize>> = (0..kept.len()).map(place).collect();
        // Each part is kept as it stands, and they stay in their order.
        let Some(places) = places.filter(|places| places.is_sorted_by(|a, b| a < b)) else {
            return;
        };
        let Some(pattern) = texts.add_pattern(&kept) else {
            return;
        };
        let is_all = places.len() == split.len();
        let parts = (!is_all).then(|| places.iter().map(|&place| place as u16).collect());
        self.slots[self.slot].form = Some(Box::new(Form {
            raw: self.split.pattern().into(),
            use_of,
            pattern,
            parts,
        }));
    }
}

/// What is known of the form of a text.
pub(super) enum Found<'a> {
    Known(Known<'a>),
    /// It came before, but is not known yet.
    Again,
    New,
}

/// A text of a form that is known.
pub(super) struct Known<'a> {
    form: &'a Form,
    split: &'a TextTemplate,
}

impl Known<'_> {
    /// Keeps the text; nothing when there is no room for it.
    pub(super) fn keep(&self, texts: &mut PackedTexts) -> Option<TextId> {
        match &self.form.parts {
            None => texts.add_parts(self.form.pattern, [self.split.packed()]),
            Some(parts) => {
                let parts = parts.iter().map(|&part| self.split.part(part.into()));
                texts.add_parts(self.form.pattern, parts)
            }
        }
    }
}
