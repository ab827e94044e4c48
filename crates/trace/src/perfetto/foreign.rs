//! Unknown events of other tools, as far as Perfetto's format has a place for them: counters,
//! asynchronous events and flows. All others become instants on their threads.

use std::io::Write;

use mindprof_analyze::FlowSide;
use mindprof_model::{Nanos, Profile, UnknownEvent};
use rustc_hash::FxHashMap;
use serde_json::Value;

use super::fields::{event as field, trace, track};
use super::marks::{Foreign, track_of_thread};
use super::packets::Packets;
use super::sequence::Sequence;
use super::tracks::Processes;
use crate::chrome::each_entry;
use crate::error::Result;
use crate::scan::decode;

/// The first number of other tools' flows, above our own.
const FOREIGN_FLOWS: u64 = 1 << 33;

/// The tracks other than those of threads: one per counter and per asynchronous event.
pub(super) struct ForeignTracks<'a> {
    profile: &'a Profile,
    processes: &'a Processes,
    sequence: Sequence<'a>,
    first: u64,
    known: FxHashMap<(u64, String), u64>,
    flows: FxHashMap<String, u64>,
}

/// The parsed fields of an event.
#[derive(Default)]
struct Record {
    phase: String,
    name: String,
    category: String,
    /// The id that distinguishes it from others of its name.
    id: String,
    /// The entries of its arguments, and further fields.
    arguments: String,
    fields: String,
}

impl<'a> ForeignTracks<'a> {
    /// Prepares to write the unknown events of a profile as sequence `first`.
    pub(super) fn new(profile: &'a Profile, processes: &'a Processes, first: u64) -> Self {
        Self {
            profile,
            processes,
            sequence: Sequence::new(profile, first),
            first,
            known: FxHashMap::default(),
            flows: FxHashMap::default(),
        }
    }

    /// Writes all events.
    pub(super) fn write(mut self, packets: &mut Packets<impl Write>) -> Result<()> {
        let records = self.profile.passthrough().unknown_events();
        if records.is_empty() {
            return Ok(());
        }
        packets.add(|packet| self.sequence.open(packet))?;
        for record in records {
            let said = Record::read(&self.profile.passthrough().texts.text(record.text));
            match said.phase.as_str() {
                "C" => self.write_counter(record, &said, packets)?,
                "b" | "S" => self.write_async(record, &said, field::BEGIN, packets)?,
                "e" | "F" => self.write_async(record, &said, field::END, packets)?,
                "n" | "T" | "p" => self.write_async(record, &said, field::INSTANT, packets)?,
                _ => self.write_moment(record, &said, packets)?,
            }
        }
        Ok(())
    }

    /// Writes each series of a counter on a track of its own.
    fn write_counter(
        &mut self,
        record: &UnknownEvent,
        said: &Record,
        packets: &mut Packets<impl Write>,
    ) -> Result<()> {
        let arguments: Value =
            serde_json::from_str(&format!("{{{}}}", said.arguments)).unwrap_or_default();
        for (series, value) in arguments.as_object().into_iter().flatten() {
            let Some(value) = value.as_f64() else {
                continue;
            };
            let name = match said.id.as_str() {
                "" => format!("{} {series}", said.name),
                id => format!("{}[{id}] {series}", said.name),
            };
            let track = self.track(record, &name, Kind::Counter, packets)?;
            let time = time_of(record);
            packets.add(|packet| self.sequence.count_float(time, track, value, packet))?;
        }
        Ok(())
    }

    fn write_async(
        &mut self,
        record: &UnknownEvent,
        said: &Record,
        kind: u64,
        packets: &mut Packets<impl Write>,
    ) -> Result<()> {
        let name = format!("{} {}", said.category, said.id);
        let track = self.track(record, name.trim(), Kind::Slices, packets)?;
        self.add(record, said, (kind, track, None), packets)
    }

    /// Writes an instant. Flow events become the ends of a flow.
    fn write_moment(
        &mut self,
        record: &UnknownEvent,
        said: &Record,
        packets: &mut Packets<impl Write>,
    ) -> Result<()> {
        let side = match said.phase.as_str() {
            "s" | "t" => Some(FlowSide::Tail),
            "f" => Some(FlowSide::Head),
            _ => None,
        };
        let flow = side.map(|side| {
            let key = format!("{} {} {}", said.category, said.name, said.id);
            let next = FOREIGN_FLOWS + self.flows.len() as u64;
            (*self.flows.entry(key).or_insert(next), side)
        });
        let track = track_of_thread(record.thread);
        self.add(record, said, (field::INSTANT, track, flow), packets)
    }

    fn add(
        &mut self,
        record: &UnknownEvent,
        said: &Record,
        (kind, track, flow): (u64, u64, Option<(u64, FlowSide)>),
        packets: &mut Packets<impl Write>,
    ) -> Result<()> {
        let separator = if said.arguments.is_empty() || said.fields.is_empty() {
            ""
        } else {
            ","
        };
        let event = Foreign {
            kind,
            track,
            category: &said.category,
            name: &said.name,
            arguments: &format!("{}{separator}{}", said.arguments, said.fields),
            flow,
        };
        packets.add(|packet| self.sequence.foreign(time_of(record), &event, packet))
    }

    /// Returns the id of the track with this name in the event's process, and describes it on first
    /// use.
    fn track(
        &mut self,
        record: &UnknownEvent,
        name: &str,
        kind: Kind,
        packets: &mut Packets<impl Write>,
    ) -> Result<u64> {
        let parent = self
            .processes
            .of(&self.profile.threads()[record.thread.index()]);
        let next = (self.first + self.known.len() as u64 + 1) << 1 | 1;
        let uuid = *self.known.entry((parent, name.into())).or_insert(next);
        if uuid == next {
            packets.add(|packet| {
                packet.number(trace::SEQUENCE, self.first);
                packet.message(trace::TRACK, |descriptor| {
                    descriptor.number(track::UUID, uuid);
                    descriptor.number(track::PARENT, parent);
                    descriptor.text(track::NAME, name);
                    if kind == Kind::Counter {
                        descriptor.message(track::COUNTER, |_| {});
                    }
                });
            })?;
        }
        Ok(uuid)
    }
}

/// The kind of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Slices,
}

impl Record {
    fn read(text: &str) -> Self {
        let mut record = Self::default();
        // Kept events were validated, so parsing cannot fail.
        let _ = each_entry(format!("{text}}}").as_bytes(), |key, value| {
            let value = String::from_utf8_lossy(value);
            let plain = || match serde_json::from_str(&value) {
                Ok(Value::String(text)) => text,
                _ => value.to_string(),
            };
            match &*decode(key).0 {
                "ph" => record.phase = plain(),
                "name" => record.name = plain(),
                "cat" => record.category = plain(),
                "id" => record.id = plain(),
                "args" => {
                    let inside = value
                        .strip_prefix('{')
                        .and_then(|rest| rest.strip_suffix('}'));
                    record.arguments =
                        inside.map_or_else(|| format!("\"args\":{value}"), str::to_owned);
                }
                key => {
                    if !record.fields.is_empty() {
                        record.fields.push(',');
                    }
                    record.fields.push_str(&Value::from(key).to_string());
                    record.fields.push(':');
                    record.fields.push_str(&value);
                }
            }
        });
        record
    }
}

/// Returns the time of an event. Those before the start of the profile are moved to its start.
fn time_of(record: &UnknownEvent) -> Nanos {
    Nanos(record.time_ns.max(0) as u64)
}
