//! What events say beyond what a profile knows, set aside as text for who writes the profile again.
//!
//! Most texts come again, and are then known by a look into a small table. All of them together
//! stay a small part of the trace: what is beyond is counted.

use mindprof_model::{Category, ExtraKind, ForeignRecord, StringId, TextId};

use super::Collector;
use super::meaning::MeantCategory;
use crate::chrome::category;
use crate::chrome::event::{RawArguments, RawEvent, Rest, Texts};
use crate::chrome::keys::{ArgumentKey, ArgumentKeys, EventKey};
use crate::chrome::text::{is_json, json_string};
use crate::scan::{Cursor, Fragment, Scan, decode, inside_quotes, text_hash};

/// How many texts are known by one look.
const SLOTS: usize = 1 << 12;

/// The phase by which events are counted that are kept without all that they say.
const DETAILS: u8 = b'X';

/// What texts may take: this much, and this part of the trace so far.
const ROOM_BYTES: u64 = 16 << 20;
const ROOM_PART: u64 = 8;

/// How texts were kept so far.
pub(super) struct KeptTexts {
    slots: Vec<Slot>,
    /// How much of the trace was read.
    read_bytes: u64,
    entries: Vec<u8>,
    bad_texts: u64,
}

#[derive(Clone, Default)]
struct Slot {
    raw: Vec<u8>,
    text: Option<TextId>,
}

impl Default for KeptTexts {
    fn default() -> Self {
        Self {
            slots: vec![Slot::default(); SLOTS],
            read_bytes: 0,
            entries: Vec::new(),
            bad_texts: 0,
        }
    }
}

impl KeptTexts {
    /// Returns how many texts were not written as JSON wants it.
    pub(super) const fn bad_texts(&self) -> u64 {
        self.bad_texts
    }

    /// Counts the text of an event.
    pub(super) const fn pass(&mut self, bytes: usize) {
        self.read_bytes += bytes as u64;
    }
}

/// What is left to say of an event.
pub(super) struct Leftover<'a> {
    pub(super) index: usize,
    pub(super) kind: ExtraKind,
    /// The arguments that are known, but not to the kind of event.
    pub(super) keys: ArgumentKeys,
    pub(super) arguments: &'a RawArguments<'a>,
    pub(super) texts: &'a Texts,
    /// Those that are not known.
    pub(super) rest: &'a [u8],
}

impl Collector {
    /// Keeps arguments that have no place in the profile.
    #[inline]
    pub(super) fn keep_arguments(&mut self, leftover: &Leftover<'_>) {
        if leftover.keys.is_empty() {
            if !leftover.rest.is_empty() {
                self.keep(leftover.kind, leftover.index, leftover.rest);
            }
            return;
        }
        let mut entries = std::mem::take(&mut self.kept.entries);
        entries.clear();
        entries.extend_from_slice(leftover.rest);
        for key in leftover.keys.iter() {
            let value = if key.is_text() {
                leftover.texts.text(leftover.arguments.text(key))
            } else {
                leftover.arguments.value(key)
            };
            entries.extend_from_slice(json_string(key.name()).as_bytes());
            entries.push(b':');
            entries.extend_from_slice(value);
            entries.push(b',');
        }
        self.keep(leftover.kind, leftover.index, &entries);
        self.kept.entries = entries;
    }

    /// Keeps fields that have no place in the profile.
    #[inline]
    pub(super) fn keep_fields(&mut self, index: usize, rest: &Rest) {
        if !rest.fields.is_empty() {
            self.keep(ExtraKind::Fields, index, &rest.fields);
        }
    }

    /// Keeps the category of an event, if its place in the profile does not tell it.
    pub(super) fn keep_category(
        &mut self,
        event: &RawEvent<'_>,
        texts: &Texts,
        meant: MeantCategory,
        name: StringId,
    ) {
        if event.category == Fragment::NONE {
            return;
        }
        let name = self.profile.strings.text(name);
        let told = category::to_name(meant.category, name, meant.other_device);
        if told == meant.known {
            return;
        }
        let raw = texts.text(event.category);
        self.keep(ExtraKind::Category, self.events.len(), raw);
    }

    /// Keeps a whole event of a kind that a profile does not know.
    pub(super) fn keep_record(&mut self, event: &RawEvent<'_>, texts: &Texts) {
        let time = if event.phase == b'M' && event.start.is_empty() {
            // Names and the like are true at any time.
            None
        } else {
            let Some(time) = self.time(event.start) else {
                return;
            };
            Some(time)
        };
        let device = self.meanings.category(event.category, texts).device;
        if !self.has_room() {
            self.left_out.add(event.phase);
            return;
        }
        let strings = &mut self.profile.strings;
        let thread = self
            .tracks
            .track(device, event.process, event.thread, strings);
        let mut entries = std::mem::take(&mut self.kept.entries);
        entries.clear();
        let scanned = push_record(&mut entries, event.whole);
        let text = self.sound(&entries);
        self.kept.entries = entries;
        match self.profile.extras.texts.add(&text) {
            Some(id) if scanned.is_ok() && !text.is_empty() => {
                self.set_aside.add(event.phase);
                self.profile.extras.add_record(ForeignRecord {
                    time_ns: time.unwrap_or(i64::MAX),
                    thread,
                    text: id,
                });
            }
            Some(_) | None => self.left_out.add(event.phase),
        }
    }

    fn keep(&mut self, kind: ExtraKind, index: usize, raw: &[u8]) {
        let slot = (text_hash(raw) >> 32) as usize % SLOTS;
        if self.kept.slots[slot].raw != raw {
            if !self.has_room() {
                self.left_out.add(DETAILS);
                return;
            }
            let text = match kind {
                ExtraKind::Category => json_string(&decode(inside_quotes(raw).unwrap_or(raw)).0),
                ExtraKind::Fields | ExtraKind::Arguments | ExtraKind::MemoryArguments => {
                    self.sound(raw)
                }
            };
            let text = if text.is_empty() {
                None
            } else {
                self.profile.extras.texts.intern(&text)
            };
            let slot = &mut self.kept.slots[slot];
            slot.raw.clear();
            slot.raw.extend_from_slice(raw);
            slot.text = text;
        }
        match self.kept.slots[slot].text {
            Some(text) => self.profile.extras.set(kind, index, text),
            None => self.left_out.add(DETAILS),
        }
    }

    fn has_room(&self) -> bool {
        let room = ROOM_BYTES + self.kept.read_bytes / ROOM_PART;
        (self.profile.extras.bytes() as u64) < room
    }

    /// Returns entries as JSON that every reader takes, without spaces around and a comma behind.
    fn sound(&mut self, entries: &[u8]) -> String {
        let entries = entries.strip_suffix(b",").unwrap_or(entries);
        let is_sound =
            std::str::from_utf8(entries).is_ok_and(|text| is_json(&format!("{{{text}}}")));
        self.kept.bad_texts += u64::from(!is_sound);
        let mut sound = String::with_capacity(entries.len());
        // What cannot be told apart is dropped: the scanner has passed it, so it is next to nothing.
        let _ = each_entry(entries, |key, value| {
            let value = String::from_utf8_lossy(value);
            if !sound.is_empty() {
                sound.push(',');
            }
            sound.push_str(&json_string(&decode(key).0));
            sound.push(':');
            if is_sound || is_json(&value) {
                sound.push_str(&value);
            } else {
                sound.push_str(&json_string(&value));
            }
        });
        sound
    }
}

/// Appends the entries of a whole event but for its time and its track.
fn push_record(entries: &mut Vec<u8>, whole: &[u8]) -> Scan<()> {
    let inside = whole.strip_prefix(b"{").unwrap_or(whole);
    each_entry(inside, |key, value| {
        let key = decode(key).0;
        match EventKey::of(key.as_bytes()) {
            EventKey::Process | EventKey::Thread | EventKey::Start => {}
            EventKey::Phase
            | EventKey::Category
            | EventKey::Name
            | EventKey::Duration
            | EventKey::Arguments
            | EventKey::Other => {
                entries.extend_from_slice(json_string(&key).as_bytes());
                entries.push(b':');
                entries.extend_from_slice(value);
                entries.push(b',');
            }
        }
    })
}

/// Walks entries with commas between them: the inside of each key, and its value.
pub(in crate::chrome) fn each_entry(
    entries: &[u8],
    mut each: impl FnMut(&[u8], &[u8]),
) -> Scan<()> {
    // Behind a number that ends the text, only more text shows that it ended.
    let closed = [entries, b"}"].concat();
    let mut cursor = Cursor::new(&closed);
    while cursor.peek()? != b'}' {
        let key = cursor.string()?;
        cursor.expect(b':', "expected `:`")?;
        each(inside_quotes(key).unwrap_or_default(), cursor.value()?);
        if cursor.peek()? == b',' {
            cursor.pass();
        }
    }
    Ok(())
}

const OF_SCOPES: ArgumentKeys = ArgumentKeys::new(&[
    ArgumentKey::Dims,
    ArgumentKey::Types,
    ArgumentKey::Strides,
    ArgumentKey::Values,
    ArgumentKey::ListTypes,
    ArgumentKey::CallStack,
    ArgumentKey::Sequence,
    ArgumentKey::ForwardThread,
    ArgumentKey::Finished,
    ArgumentKey::Asynchronous,
    ArgumentKey::External,
    ArgumentKey::Correlation,
    ArgumentKey::RecordFunction,
    ArgumentKey::EventIndex,
]);
const OF_PYTHON: ArgumentKeys = ArgumentKeys::new(&[
    ArgumentKey::CallStack,
    ArgumentKey::External,
    ArgumentKey::Correlation,
    ArgumentKey::Python,
    ArgumentKey::PythonParent,
    ArgumentKey::EventIndex,
]);
const OF_OTHERS: ArgumentKeys = ArgumentKeys::new(&[
    ArgumentKey::External,
    ArgumentKey::Correlation,
    ArgumentKey::EventIndex,
]);
/// The arguments that a memory record tells.
pub(super) const OF_MEMORY: ArgumentKeys = ArgumentKeys::new(&[
    ArgumentKey::Bytes,
    ArgumentKey::Address,
    ArgumentKey::TotalAllocated,
    ArgumentKey::TotalReserved,
    ArgumentKey::DeviceType,
    ArgumentKey::DeviceId,
    ArgumentKey::CallStack,
    ArgumentKey::Finished,
    ArgumentKey::EventIndex,
]);

/// Returns the arguments that events of a category tell.
pub(super) const fn keys_of(category: Category) -> ArgumentKeys {
    match category {
        Category::Operator | Category::Annotation => OF_SCOPES,
        Category::PythonFunction => OF_PYTHON,
        Category::Runtime | Category::Kernel | Category::DeviceAnnotation | Category::Other => {
            OF_OTHERS
        }
    }
}
