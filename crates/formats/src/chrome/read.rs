//! Reads a Chrome trace into a profile, in one pass over its text.
//!
//! Both forms of a trace are taken: an object with `traceEvents`, and the bare array of events.

use std::fmt;
use std::io::Read;

use flate2::read::MultiGzDecoder;
use mindprof_model::{LossCause, Profile};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use super::category::loss_key;
use super::collect::Collector;
use super::event::RawEvent;
use crate::{Error, Result};

#[cfg(test)]
mod tests;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Reads a trace from its bytes, which may be compressed with gzip.
///
/// Events whose times make no sense are counted as lost, not kept.
///
/// # Errors
/// When the bytes are empty, damaged, not JSON or JSON of another kind; the error says where.
pub fn read_trace(bytes: &[u8]) -> Result<Profile> {
    if bytes.starts_with(&GZIP_MAGIC) {
        let mut text = Vec::new();
        let read = MultiGzDecoder::new(bytes).read_to_end(&mut text);
        read.map_err(|_| Error::Gzip)?;
        return read_text(&text);
    }
    read_text(bytes)
}

fn read_text(text: &[u8]) -> Result<Profile> {
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(Error::Empty);
    }
    let mut collector = Collector::default();
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    TraceSeed(&mut collector)
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end())
        .map_err(|error| located(&error))?;
    collector.build()
}

/// Turns an error of the JSON reader into ours: the place apart from what was expected there.
fn located(error: &serde_json::Error) -> Error {
    let (line, column) = (error.line(), error.column());
    let message = error.to_string();
    let what = match message.rsplit_once(" at line ") {
        Some((what, _)) => what.to_owned(),
        None => message,
    };
    match error.classify() {
        serde_json::error::Category::Eof => Error::Truncated { line, column },
        serde_json::error::Category::Data => Error::NotATrace { line, column, what },
        serde_json::error::Category::Syntax | serde_json::error::Category::Io => {
            Error::NotJson { line, column, what }
        }
    }
}

/// Reads a whole trace, of either form.
struct TraceSeed<'c>(&'c mut Collector);

impl<'de> DeserializeSeed<'de> for TraceSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for TraceSeed<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object with \"traceEvents\" or an array of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, events: A) -> std::result::Result<(), A::Error> {
        EventsSeed(self.0).visit_seq(events)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        let mut has_events = false;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "traceEvents" => {
                    has_events = true;
                    map.next_value_seed(EventsSeed(self.0))?;
                }
                "baseTimeNanoseconds" => {
                    let base: &RawValue = map.next_value()?;
                    self.0.base_ns = base.get().parse().unwrap_or(0);
                }
                "mindprof" => map.next_value::<Mark>()?.apply(self.0),
                // Said anew by whoever writes the profile.
                "schemaVersion" | "displayTimeUnit" | "traceName" => {
                    map.next_value::<IgnoredAny>()?;
                }
                _ => {
                    let value: &RawValue = map.next_value()?;
                    self.0.profile.metadata.set(key, value.get());
                }
            }
        }
        if has_events {
            Ok(())
        } else {
            Err(A::Error::custom(
                "expected the key \"traceEvents\" in the object",
            ))
        }
    }
}

/// Reads the array of events.
struct EventsSeed<'c>(&'c mut Collector);

impl<'de> DeserializeSeed<'de> for EventsSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for EventsSeed<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> std::result::Result<(), A::Error> {
        while let Some(event) = events.next_element::<RawEvent<'de>>()? {
            self.0.add(&event);
        }
        Ok(())
    }
}

/// What our own writer says about a profile beside torch's keys.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Mark {
    lost: FxHashMap<String, u64>,
    spare_tracks: Vec<SpareTrack>,
}

/// A track that holds events of the thread `of`, apart because they cross others of it.
#[derive(Deserialize)]
struct SpareTrack {
    pid: i64,
    tid: i64,
    of: i64,
}

impl Mark {
    fn apply(&self, collector: &mut Collector) {
        for cause in LossCause::ALL {
            let count = self.lost.get(loss_key(cause)).copied().unwrap_or(0);
            collector.profile.add_loss(cause, count);
        }
        for track in &self.spare_tracks {
            collector.add_spare_track(track.pid, track.tid, track.of);
        }
    }
}
