//! Reads a Chrome trace into a part, in one pass over its text.
//!
//! Both forms are accepted: an object with `traceEvents`, and a bare array of events. Damaged parts
//! are skipped and counted; only input that is not a trace at all is an error.

use mindprof_model::{DeviceKind, LossCause};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;

use self::entries::Entry;
use self::events::Events;
use super::category::loss_key;
use super::collect::Collector;
use crate::error::{Error, Result};
use crate::read_options::ReadOptions;
use crate::readers::Reader;
use crate::reading::PartReading;
use crate::repairs::Repair;
use crate::scan::{Source, Stop};

mod entries;
mod events;
#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;

/// Reads Chrome traces, in the dialect of torch's profiler.
pub(crate) struct ChromeReader;

impl Reader for ChromeReader {
    fn recognizes(&self, head: &[u8]) -> bool {
        matches!(head.first(), Some(b'{' | b'['))
    }

    fn read(&self, source: Source<'_>, options: &ReadOptions<'_>) -> Result<PartReading> {
        let mut reading = TraceReading {
            source,
            events: Events::new(),
        };
        reading.events.collector.set_unknown(options.unknown);
        reading.read()?;
        if reading.source.is_damaged() {
            reading.events.damage(Repair::DamagedCompression);
        }
        Ok(reading.events.collector.build())
    }
}

/// A trace being read: the rest of its text, and the events collected so far.
struct TraceReading<'a> {
    source: Source<'a>,
    events: Events,
}

/// The two forms of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Object,
    /// The closing bracket may be missing.
    Array,
}

impl TraceReading<'_> {
    fn read(&mut self) -> Result<()> {
        if self.source.peek()? == Some(b'{') {
            return self.read_object();
        }
        self.source.pass(1);
        if self.read_events(Form::Array)? {
            self.read_behind()?;
        }
        Ok(())
    }

    /// Reads the object form: the events under their key, and metadata under the others.
    fn read_object(&mut self) -> Result<()> {
        self.source.pass(1);
        let mut has_events = false;
        let mut is_first = true;
        loop {
            match self.source.scan(|cursor| entries::scan(cursor, is_first))? {
                Ok(Entry::End) => break,
                Ok(Entry::Events) => {
                    has_events = true;
                    if !self.read_events(Form::Object)? {
                        return Ok(());
                    }
                }
                Ok(Entry::Fact(key, value)) => self.add_fact(&key, &value)?,
                Err(fault) if self.events.whole > 0 => {
                    self.events.damage(match fault.stop {
                        Stop::More => Repair::Truncated,
                        Stop::Bad(_) | Stop::Stranger(_) => Repair::Malformed,
                    });
                    return Ok(());
                }
                Err(fault) => {
                    let error = self.source.error(fault);
                    if fault.stop == Stop::More {
                        return Err(error);
                    }
                    // The unreadable part may begin with the very key that is searched for.
                    self.source.pass(1);
                    if !self.source.seek(entries::EVENTS_KEY)? {
                        return Err(error);
                    }
                    self.events.damage(Repair::Malformed);
                    is_first = true;
                    continue;
                }
            }
            is_first = false;
        }
        if !has_events {
            let what = "expected the key \"traceEvents\" in the object";
            return Err(self.source.lacks(what));
        }
        self.read_behind()
    }

    /// Reads the events up to the closing bracket. Returns whether it was found.
    fn read_events(&mut self, form: Form) -> Result<bool> {
        let closed = loop {
            let (bytes, paused) = self.events.scan(self.source.window());
            if self.events.whole > 0 {
                self.source.forget_lines();
            }
            if let Some(fault) = self.events.first_fault.filter(|_| self.events.whole == 0)
                && self.events.first_error.is_none()
            {
                self.events.first_error = Some(self.source.error(fault));
            }
            self.source.pass(bytes);
            if let Some(part) = self.source.part_read() {
                self.events.collector.make_room(part);
            }
            if paused == events::Paused::Closed {
                break true;
            }
            match self.source.more() {
                Ok(true) => {}
                Ok(false) => break false,
                // One endless event does not invalidate those before it.
                Err(Error::TooLong { .. }) if self.events.whole > 0 => {
                    self.events.damage(Repair::Malformed);
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        };
        if self.events.whole == 0
            && let Some(error) = self.events.first_error.take()
        {
            return Err(error);
        }
        if closed {
            return Ok(true);
        }
        let is_legal = form == Form::Array && self.source.window().is_empty();
        if self.events.whole == 0 {
            return Err(self.source.cut_off());
        }
        if !is_legal && !self.events.is_lost() && !self.source.is_damaged() {
            self.events.damage(Repair::Truncated);
        }
        Ok(false)
    }

    /// Checks for text after the end.
    fn read_behind(&mut self) -> Result<()> {
        if self.source.peek()?.is_some() {
            self.events.damage(Repair::Malformed);
        }
        Ok(())
    }

    fn add_fact(&mut self, key: &str, value: &[u8]) -> Result<()> {
        let collector = &mut self.events.collector;
        match key {
            "traceEvents" => {
                let what = "expected an array of events under \"traceEvents\"";
                return Err(self.source.lacks(what));
            }
            "baseTimeNanoseconds" => {
                collector.base_ns = super::integer::number_of(value);
            }
            "mindprof" => {
                add_losses(value, collector);
                let mark = serde_json::from_slice::<Mark>(value);
                mark.unwrap_or_default().apply(collector);
            }
            // The writer adds these again.
            "schemaVersion" | "displayTimeUnit" | "traceName" => {}
            _ => {
                let value = String::from_utf8_lossy(value);
                collector.part.metadata.set(key, value);
            }
        }
        Ok(())
    }
}

/// Adds the lost events that the writer of a trace counted. A count that cannot be read, or that has
/// an unknown cause, is an unreadable note rather than no loss.
fn add_losses(mark: &[u8], collector: &mut Collector) {
    let lost = serde_json::from_slice::<Losses>(mark).map(|mark| mark.lost.unwrap_or_default());
    let is_readable = lost.is_ok_and(|lost| {
        let add = |(key, count): (String, Value)| {
            let count = count.as_u64()?;
            let mut causes = LossCause::ALL.into_iter();
            match causes.find(|&cause| loss_key(cause) == key) {
                Some(cause) => collector.part.add_loss(cause, count),
                None if count == 0 => {}
                None => return None,
            }
            Some(())
        };
        // Every count that can be read is added, even if another one cannot.
        lost.into_iter().map(add).filter(Option::is_none).count() == 0
    });
    if !is_readable {
        collector.repairs.add(Repair::UnreadableNote, 1);
    }
}

/// The counts of lost events that our own writer adds to torch's keys.
#[derive(Deserialize)]
struct Losses {
    lost: Option<FxHashMap<String, Value>>,
}

/// The facts about tracks and devices that our own writer adds to torch's keys.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Mark {
    #[serde(rename = "spare_tracks")]
    overflow_tracks: Vec<OverflowTrack>,
    /// The kind of the devices as torch's number, if it is not CUDA.
    device_type: Option<u64>,
}

/// An overflow track: it holds events of the thread `of` that cross others.
#[derive(Deserialize)]
struct OverflowTrack {
    pid: Value,
    tid: Value,
    of: Value,
}

impl Mark {
    fn apply(&self, collector: &mut Collector) {
        if let Some(device) = self.device_type.and_then(DeviceKind::from_number) {
            collector.set_device(device);
        }
        for track in &self.overflow_tracks {
            collector.add_overflow_track([&track.pid, &track.tid, &track.of]);
        }
    }
}
