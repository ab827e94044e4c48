//! Unknown event fields, kept as raw JSON for round-tripping.
//!
//! Most texts repeat, and a small direct-mapped table recognizes them. All texts together are
//! limited to a small fraction of the trace; what exceeds it is counted.

use mindprof_model::{Category, PassthroughKind, StringId, TextId, UnknownEvent, activity_name};

use super::Collector;
use super::template_cache::{Lookup, TemplateCache, Use};
use super::vocabulary::CategoryMeaning;
use crate::chrome::event::{RawArguments, RawEvent, Rest, Texts};
use crate::chrome::keys::{ArgumentKey, ArgumentKeys, EventKey};
use crate::chrome::text::{is_json, json_string};
use crate::read_options::UnknownArgs;
use crate::scan::{Cursor, Fragment, Scan, decode, inside_quotes, text_hash};

/// The number of slots in the table of recent texts.
const SLOTS: usize = 1 << 12;

/// The phase under which events are counted whose details are not all kept.
const DETAILS: u8 = b'X';

/// The limit for kept texts: this many bytes, or this fraction of the trace read so far, or the
/// share that the rest of the profile and its analysis leave of the larger fraction.
const ROOM_BYTES: usize = 8 << 20;
const ROOM_PART: usize = 32;
const WHOLE_PART: f64 = 0.3;
const EVENT_BYTES: usize = 70;
const MEMORY_BYTES: usize = 100;

/// The state of keeping texts: the recent ones, their templates and their limit.
///
/// The texts themselves are stored in the part.
pub(super) struct PassthroughStore {
    /// Whether texts are kept or only validated.
    pub(super) unknown: UnknownArgs,
    slots: Vec<Slot>,
    templates: TemplateCache,
    /// The number of bytes of the trace read so far.
    read_bytes: usize,
    entries: Vec<u8>,
    bad_texts: u64,
}

#[derive(Clone, Default)]
struct Slot {
    raw: Vec<u8>,
    text: Option<TextId>,
}

impl Default for PassthroughStore {
    fn default() -> Self {
        Self {
            unknown: UnknownArgs::Keep,
            slots: vec![Slot::default(); SLOTS],
            templates: TemplateCache::default(),
            read_bytes: 0,
            entries: Vec::new(),
            bad_texts: 0,
        }
    }
}

impl PassthroughStore {
    /// Returns the number of strings that were not valid JSON.
    pub(super) const fn bad_texts(&self) -> u64 {
        self.bad_texts
    }

    /// Adds the size of an event to the bytes read.
    pub(super) const fn pass(&mut self, bytes: usize) {
        self.read_bytes += bytes;
    }
}

/// The arguments of an event that the profile has no place for.
pub(super) struct UnclaimedArgs<'a> {
    pub(super) index: usize,
    pub(super) kind: PassthroughKind,
    /// Known arguments that do not apply to this kind of event.
    pub(super) keys: ArgumentKeys,
    pub(super) arguments: &'a RawArguments<'a>,
    pub(super) texts: &'a Texts,
    /// Unknown arguments.
    pub(super) rest: &'a [u8],
}

impl UnclaimedArgs<'_> {
    /// Appends all of them, with a comma after each entry.
    pub(super) fn push_to(&self, entries: &mut Vec<u8>) {
        entries.extend_from_slice(self.rest);
        for key in self.keys.iter() {
            let value = if key.is_text() {
                self.texts.text(self.arguments.text(key))
            } else {
                self.arguments.value(key)
            };
            entries.extend_from_slice(json_string(key.name()).as_bytes());
            entries.push(b':');
            entries.extend_from_slice(value);
            entries.push(b',');
        }
    }
}

impl Collector {
    /// Keeps arguments that have no place in the profile.
    #[inline]
    pub(super) fn keep_arguments(&mut self, unclaimed: &UnclaimedArgs<'_>) {
        if unclaimed.keys.is_empty() {
            if !unclaimed.rest.is_empty() {
                self.keep(unclaimed.kind, unclaimed.index, unclaimed.rest);
            }
            return;
        }
        let mut entries = std::mem::take(&mut self.store.entries);
        entries.clear();
        unclaimed.push_to(&mut entries);
        self.keep(unclaimed.kind, unclaimed.index, &entries);
        self.store.entries = entries;
    }

    /// Keeps fields that have no place in the profile.
    #[inline]
    pub(super) fn keep_fields(&mut self, index: usize, rest: &Rest) {
        if !rest.fields.is_empty() {
            self.keep(PassthroughKind::Fields, index, &rest.fields);
        }
    }

    /// Keeps the category of an event, if the profile cannot reproduce it.
    pub(super) fn keep_category(
        &mut self,
        event: &RawEvent<'_>,
        texts: &Texts,
        meaning: CategoryMeaning,
        name: StringId,
    ) {
        if event.category == Fragment::NONE || self.store.unknown == UnknownArgs::Count {
            return;
        }
        let name = self.part.strings.text(name);
        let told = activity_name(meaning.category, name, meaning.other_device);
        if told == meaning.known {
            return;
        }
        let raw = texts.text(event.category);
        self.keep(PassthroughKind::Category, self.events.len(), raw);
    }

    /// Keeps a whole event of an unknown kind.
    pub(super) fn keep_record(&mut self, event: &RawEvent<'_>, texts: &Texts) {
        let time = if event.phase == b'M' && event.start.is_none() {
            // Metadata such as names has no time.
            None
        } else {
            let Some(time) = self.time(event.start) else {
                return;
            };
            Some(time)
        };
        let device = self.vocabulary.category(event.category, texts).device;
        if !self.has_room() {
            self.left_out.add(event.phase);
            return;
        }
        let strings = &mut self.part.strings;
        let thread = self
            .tracks
            .track(device, event.process, event.thread, strings);
        let inside = event.whole.strip_prefix(b"{").unwrap_or(event.whole);
        let inside = inside.strip_suffix(b"}").unwrap_or(inside);
        let Some(text) = self.keep_text(inside, Use::Record) else {
            self.left_out.add(event.phase);
            return;
        };
        self.set_aside.add(event.phase);
        if self.store.unknown.are_kept() {
            self.part.passthrough.add_unknown_event(UnknownEvent {
                time_ns: time.unwrap_or(i64::MAX),
                thread,
                text,
            });
        }
    }

    fn keep(&mut self, kind: PassthroughKind, index: usize, raw: &[u8]) {
        let slot = (text_hash(raw) >> 32) as usize % SLOTS;
        if self.store.slots[slot].raw != raw {
            if !self.has_room() {
                self.left_out.add(DETAILS);
                return;
            }
            let text = match kind {
                PassthroughKind::Category => {
                    let text = json_string(&decode(inside_quotes(raw).unwrap_or(raw)).0);
                    self.part.passthrough.texts.add(&text)
                }
                PassthroughKind::Fields
                | PassthroughKind::Arguments
                | PassthroughKind::MemoryArguments
                | PassthroughKind::Track => self.keep_text(raw, Use::Entries),
            };
            let slot = &mut self.store.slots[slot];
            slot.raw.clear();
            slot.raw.extend_from_slice(raw);
            slot.text = text;
        }
        match self.store.slots[slot].text {
            Some(_) if self.store.unknown == UnknownArgs::Count => {}
            Some(text) => self.part.passthrough.set(kind, index, text),
            None => self.left_out.add(DETAILS),
        }
    }

    /// Keeps the wanted entries of a text, or only validates them. `None` if nothing is left of
    /// them or the limit is reached.
    fn keep_text(&mut self, entries: &[u8], use_of: Use) -> Option<TextId> {
        let is_kept = self.store.unknown.are_kept();
        let texts = &mut self.part.passthrough.texts;
        let found = self.store.templates.find(entries, use_of);
        let is_again = match found {
            Lookup::Known(text) if is_kept => return text.keep(texts),
            Lookup::Known(_) => return Some(NOT_KEPT),
            Lookup::Again => true,
            Lookup::New => false,
        };
        let bad_before = self.store.bad_texts;
        let text = self.sound(entries, use_of.is_wanted());
        if text.is_empty() {
            return None;
        }
        if is_again && self.store.bad_texts == bad_before {
            self.train_template(use_of);
        }
        if is_kept {
            self.part.passthrough.texts.add(&text)
        } else {
            Some(NOT_KEPT)
        }
    }

    /// Prepares the template of the last text, which was valid.
    fn train_template(&mut self, use_of: Use) {
        let mut templates = std::mem::take(&mut self.store.templates);
        let mut texts = std::mem::take(&mut self.part.passthrough.texts);
        templates.train(use_of, &mut texts, |raw| {
            let bad_before = self.store.bad_texts;
            let text = self.sound(raw, use_of.is_wanted());
            let is_sound = self.store.bad_texts == bad_before;
            self.store.bad_texts = bad_before;
            Some(text).filter(|text| is_sound && !text.is_empty())
        });
        self.store.templates = templates;
        self.part.passthrough.texts = texts;
    }

    pub(super) fn has_room(&self) -> bool {
        let (read, passthrough) = (self.store.read_bytes, self.part.passthrough.bytes());
        let others = self.events.len() * EVENT_BYTES + self.memory.len() * MEMORY_BYTES;
        let left = ((read as f64 * WHOLE_PART) as usize).saturating_sub(others);
        passthrough < ROOM_BYTES.max(left).max(read / ROOM_PART)
    }

    /// Counts an event whose details are not all kept.
    pub(super) fn leave_out_details(&mut self) {
        self.left_out.add(DETAILS);
    }

    /// Returns the wanted entries as valid JSON, without surrounding spaces or a final comma.
    pub(super) fn sound(&mut self, entries: &[u8], is_wanted: fn(&[u8]) -> bool) -> String {
        let entries = entries.strip_suffix(b",").unwrap_or(entries);
        let object = [b"{", entries, b"}"].concat();
        let is_sound = std::str::from_utf8(&object).is_ok_and(is_json);
        self.store.bad_texts += u64::from(!is_sound);
        let mut sound = String::with_capacity(entries.len());
        // Text that cannot be split into entries is dropped. The scanner accepted it, so it is
        // tiny.
        let _ = each_entry(&object[1..], |key, value| {
            let (key, value) = (decode(key).0, String::from_utf8_lossy(value));
            if !is_wanted(key.as_bytes()) {
                return;
            }
            if !sound.is_empty() {
                sound.push(',');
            }
            push_string(&mut sound, &key);
            sound.push(':');
            if is_sound || is_json(&value) {
                sound.push_str(&value);
            } else {
                push_string(&mut sound, &value);
            }
        });
        sound
    }
}

/// Appends a JSON string.
pub(super) fn push_string(out: &mut String, text: &str) {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\' && byte != 0x7f;
    if text.bytes().all(is_plain) {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&json_string(text));
    }
}

/// The id of a text that was validated but not kept.
const NOT_KEPT: TextId = TextId::from_raw(0);

impl Use {
    /// Returns the filter for the entries to keep.
    fn is_wanted(self) -> fn(&[u8]) -> bool {
        match self {
            Self::Entries => |_| true,
            Self::Record => is_of_record,
        }
    }
}

/// Returns whether a field is kept for an unknown event. Its time and track are stored separately.
fn is_of_record(key: &[u8]) -> bool {
    match EventKey::of(key) {
        EventKey::Process | EventKey::Thread | EventKey::Start => false,
        EventKey::Phase
        | EventKey::Category
        | EventKey::Name
        | EventKey::Duration
        | EventKey::Arguments
        | EventKey::Other => true,
    }
}

/// Calls `each` with the key, without quotes, and the value of every entry up to the closing brace.
pub(crate) fn each_entry(entries: &[u8], mut each: impl FnMut(&[u8], &[u8])) -> Scan<()> {
    let mut cursor = Cursor::new(entries);
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
/// The arguments that a memory record reproduces.
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

/// Returns the arguments that events of a category reproduce.
pub(super) const fn keys_of(category: Category) -> ArgumentKeys {
    match category {
        Category::Operator | Category::Annotation => OF_SCOPES,
        Category::PythonFunction => OF_PYTHON,
        Category::Runtime | Category::Kernel | Category::DeviceAnnotation | Category::Other => {
            OF_OTHERS
        }
    }
}
