//! Kept arguments of events as debug annotations: JSON in, typed values out.
//!
//! Keys and texts are interned per sequence; repeated entries are encoded once.

use mindprof_model::{PassthroughArgs, TextId};
use rustc_hash::FxHashMap;
use serde_json::Value;

use super::arguments::add_text;
use super::fields::{annotation, event as field, interned};
use super::message::Message;
use crate::chrome::each_entry;
use crate::scan::decode;

/// The number of bytes of encoded annotations that are kept for events with the same entries.
const KEPT_BYTES: usize = 4 << 20;

/// The largest number of texts interned per sequence. If there are more, they hardly repeat.
const MOST_TEXTS: usize = 1 << 16;

/// The argument keys and texts that a sequence has interned so far.
#[derive(Debug)]
pub(super) struct Annotations {
    /// The ids of the keys, which follow those that every sequence defines.
    names: FxHashMap<String, u64>,
    first_name: u64,
    texts: FxHashMap<String, u64>,
    known: FxHashMap<TextId, Box<[u8]>>,
    kept_bytes: usize,
}

impl Annotations {
    pub(super) fn new(first_name: u64) -> Self {
        Self {
            names: FxHashMap::default(),
            first_name,
            texts: FxHashMap::default(),
            known: FxHashMap::default(),
            kept_bytes: 0,
        }
    }

    /// Appends the entries kept under an id to `event`. New interned data goes to `news`; `texts`
    /// counts the texts of the sequence.
    pub(super) fn push(
        &mut self,
        (passthrough, id): (&PassthroughArgs, TextId),
        texts: &mut u64,
        news: &mut Message,
        event: &mut Message,
    ) {
        if let Some(known) = self.known.get(&id) {
            event.append(known);
            return;
        }
        let mut made = Message::default();
        self.push_entries(&passthrough.texts.text(id), texts, news, &mut made);
        event.append(made.as_bytes());
        if self.kept_bytes < KEPT_BYTES {
            self.kept_bytes += made.as_bytes().len();
            self.known.insert(id, made.as_bytes().into());
        }
    }

    /// Appends the entries of a JSON object.
    pub(super) fn push_entries(
        &mut self,
        entries: &str,
        texts: &mut u64,
        news: &mut Message,
        event: &mut Message,
    ) {
        // Kept entries were validated, so parsing cannot fail.
        let _ = each_entry(format!("{entries}}}").as_bytes(), |key, value| {
            let name = self.name(&decode(key).0, news);
            let value = serde_json::from_slice(value).unwrap_or(Value::Null);
            event.message(field::ANNOTATION, |said| {
                said.number(annotation::NAME, name);
                self.push_value(&value, texts, news, said);
            });
        });
    }

    fn push_value(
        &mut self,
        value: &Value,
        texts: &mut u64,
        news: &mut Message,
        said: &mut Message,
    ) {
        match value {
            Value::Null => drop(said.text(annotation::TEXT, "null")),
            Value::Bool(value) => drop(said.number(annotation::TRUTH, u64::from(*value))),
            Value::Number(number) => {
                if let Some(value) = number.as_u64() {
                    said.number(annotation::NUMBER, value);
                } else if let Some(value) = number.as_i64() {
                    said.number(annotation::SIGNED, value as u64);
                } else {
                    let value = number.as_f64().unwrap_or(f64::NAN);
                    said.fixed(annotation::FLOAT, value.to_bits());
                }
            }
            Value::String(text) => match self.text(text, texts, news) {
                Some(id) => drop(said.number(annotation::INTERNED_TEXT, id)),
                None => drop(said.text(annotation::TEXT, text)),
            },
            Value::Array(items) => {
                for item in items {
                    said.message(annotation::ITEM, |said| {
                        self.push_value(item, texts, news, said);
                    });
                }
            }
            Value::Object(entries) => {
                for (key, value) in entries {
                    let name = self.name(key, news);
                    said.message(annotation::ENTRY, |said| {
                        said.number(annotation::NAME, name);
                        self.push_value(value, texts, news, said);
                    });
                }
            }
        }
    }

    fn name(&mut self, name: &str, news: &mut Message) -> u64 {
        if let Some(&known) = self.names.get(name) {
            return known;
        }
        let id = self.first_name + self.names.len() as u64;
        self.names.insert(name.into(), id);
        add_text(news, interned::ANNOTATION_NAMES, id, name);
        id
    }

    /// Returns the id of a text. `None` for a new one when there are too many.
    fn text(&mut self, text: &str, texts: &mut u64, news: &mut Message) -> Option<u64> {
        if let Some(&known) = self.texts.get(text) {
            return Some(known);
        }
        if self.texts.len() >= MOST_TEXTS {
            return None;
        }
        *texts += 1;
        self.texts.insert(text.into(), *texts);
        add_text(news, interned::ANNOTATION_TEXTS, *texts, text);
        Some(*texts)
    }
}
