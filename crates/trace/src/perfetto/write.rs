//! Writes a profile as Perfetto packets: one sequence per track of slices, and one for memory.

use std::io::Write;
use std::path::Path;

use mindprof_analyze::{Flows, Lanes};
use mindprof_model::{
    Category, DeviceKind, Event, EventId, Links, LossCause, Nanos, PassthroughKind, Profile,
};
use rustc_hash::FxHashMap;

use super::fields::{annotation, event as field, trace, track};
use super::foreign::ForeignTracks;
use super::marks::track_of_thread;
use super::packets::Packets;
use super::sequence::{Said, Sequence};
use super::tracks::{Processes, describe_memory, describe_overflow, describe_thread};
use crate::chrome::{TraceOptions, loss_key};
use crate::error::Result;
use crate::files::write_file;

#[cfg(test)]
mod tests;

/// Writes `profile` as a Perfetto trace.
///
/// # Errors
/// If `out` cannot be written to.
pub fn write_perfetto(profile: &Profile, out: impl Write) -> Result<()> {
    write_perfetto_with(profile, &TraceOptions::default(), out)
}

/// Writes a trace as [`write_perfetto`] does, with options.
///
/// # Errors
/// If `out` cannot be written to.
pub fn write_perfetto_with(
    profile: &Profile,
    options: &TraceOptions,
    out: impl Write,
) -> Result<()> {
    let mut packets = Packets::new(out);
    write_facts(profile, options, &mut packets)?;
    let processes = Processes::new(profile);
    processes.describe(profile, &mut packets)?;
    let lanes = Lanes::build(profile);
    let mut sequences = open_sequences(profile, &processes, &lanes, &mut packets)?;
    write_slices(profile, options, &lanes, &mut sequences, &mut packets)?;
    let mut next = sequences.len() as u64 + 2;
    next = write_memory(profile, next, &mut packets)?;
    ForeignTracks::new(profile, &processes, next).write(&mut packets)?;
    packets.finish()
}

/// Writes `profile` to a Perfetto file, like [`write_file`].
///
/// # Errors
/// If the file cannot be written. The error names it.
pub fn write_perfetto_file(profile: &Profile, path: &Path) -> Result<()> {
    write_file(path, |out| write_perfetto(profile, out))
}

/// Writes the metadata of the profile as an instant at its start: the writer, lost events, and user
/// metadata.
fn write_facts(
    profile: &Profile,
    options: &TraceOptions,
    packets: &mut Packets<impl Write>,
) -> Result<()> {
    let (sequence, uuid) = (1, 3);
    packets.add(|packet| {
        packet.number(trace::SEQUENCE, sequence);
        packet.message(trace::TRACK, |descriptor| {
            descriptor.number(track::UUID, uuid);
            descriptor.text(track::NAME, "mindprof");
        });
    })?;
    let loss = profile.loss();
    packets.add(|packet| {
        packet.number(trace::TIMESTAMP, 0);
        packet.number(trace::SEQUENCE, sequence);
        packet.message(trace::TRACK_EVENT, |mark| {
            mark.number(field::TYPE, field::INSTANT);
            mark.number(field::TRACK, uuid);
            mark.text(field::NAME_TEXT, "profile");
            let mut say = |key: &str, text: &str| {
                mark.message(field::ANNOTATION, |said| {
                    said.text(annotation::NAME_TEXT, key);
                    said.text(annotation::TEXT, text);
                });
            };
            say("version", env!("CARGO_PKG_VERSION"));
            for cause in LossCause::ALL {
                let key = format!("lost.{}", loss_key(cause));
                say(&key, &loss.count(cause).to_string());
            }
            for (key, value) in options.facts(profile).iter() {
                say(key, value);
            }
        });
    })
}

/// Opens a sequence for each thread, and then for each overflow track.
fn open_sequences<'a>(
    profile: &'a Profile,
    processes: &Processes,
    lanes: &Lanes,
    packets: &mut Packets<impl Write>,
) -> Result<Vec<Sequence<'a>>> {
    let threads = profile.threads();
    let own = threads.iter().map(|thread| (thread, 0));
    let overflow = lanes.overflow().iter();
    let overflow = overflow.map(|lane| (&threads[lane.thread.index()], lane.number));
    let mut sequences = Vec::new();
    for ((thread, number), id) in own.chain(overflow).zip(2..) {
        let sequence = Sequence::new(profile, id);
        let parent = processes.of(thread);
        packets.add(|packet| {
            packet.number(trace::SEQUENCE, id);
            packet.message(trace::TRACK, |descriptor| {
                descriptor.number(track::UUID, sequence.track());
                if number == 0 {
                    describe_thread(profile, thread, parent, descriptor);
                } else {
                    describe_overflow(thread, number, parent, descriptor);
                }
            });
        })?;
        packets.add(|packet| sequence.open(packet))?;
        sequences.push(sequence);
    }
    Ok(sequences)
}

/// Writes the starts and ends of slices, on each track in the order of time: before a slice starts,
/// those that have ended by then are closed.
fn write_slices(
    profile: &Profile,
    options: &TraceOptions,
    lanes: &Lanes,
    sequences: &mut [Sequence<'_>],
    packets: &mut Packets<impl Write>,
) -> Result<()> {
    let flows = Flows::build(profile);
    let passthrough = profile.passthrough();
    let [mut categories, mut fields, mut arguments] = [
        PassthroughKind::Category,
        PassthroughKind::Fields,
        PassthroughKind::Arguments,
    ]
    .map(|kind| passthrough.walk(kind));
    let threads = profile.threads().len();
    for (index, event) in profile.events().iter().enumerate() {
        if options.leave_out.contains(&event.category) {
            continue;
        }
        let id = EventId::from_index(index);
        let overflow = lanes.moved_to(id).map(|lane| threads + lane);
        let sequence = &mut sequences[overflow.unwrap_or(event.thread.index())];
        close(sequence, event.start, packets)?;
        let flow = flows.end_at(id, event);
        let said = Said {
            links: links_of(profile, id, event),
            category: categories.at(index),
            fields: fields.at(index),
            arguments: arguments.at(index),
        };
        packets.add(|packet| sequence.begin(event, flow, said, packet))?;
    }
    for sequence in sequences {
        close(sequence, Nanos(u64::MAX), packets)?;
    }
    Ok(())
}

/// Returns the links of an event. A scope without an external id gets its number, as in
/// Chrome traces.
fn links_of(profile: &Profile, id: EventId, event: &Event) -> Links {
    let mut links = profile.links(id).unwrap_or_default();
    let is_scope = matches!(event.category, Category::Operator | Category::Annotation);
    if is_scope {
        links.external = profile.scope_number(id, &links);
    }
    links
}

fn close(
    sequence: &mut Sequence<'_>,
    time: Nanos,
    packets: &mut Packets<impl Write>,
) -> Result<()> {
    while let Some(end) = sequence.close_before(time) {
        packets.add(|packet| sequence.end(end, packet))?;
    }
    Ok(())
}

/// Writes allocations and frees as instants on the tracks of threads, and the memory in use as
/// counters of each device. Returns the next free sequence id.
fn write_memory(profile: &Profile, first: u64, packets: &mut Packets<impl Write>) -> Result<u64> {
    if profile.memory().is_empty() {
        return Ok(first);
    }
    let mut sequence = Sequence::new(profile, first);
    packets.add(|packet| sequence.open(packet))?;
    let mut tracks: FxHashMap<(DeviceKind, i16, &str), u64> = FxHashMap::default();
    let mut further = profile.passthrough().walk(PassthroughKind::MemoryArguments);
    for (index, record) in profile.memory().iter().enumerate() {
        let track = track_of_thread(record.thread);
        let further = further.at(index);
        packets.add(|packet| sequence.memory((&record, track), further, packet))?;
        let counts = [
            ("allocated", record.total_allocated),
            ("reserved", record.total_reserved),
        ];
        for (what, bytes) in counts {
            // The CPU allocator does not reserve memory.
            if what == "reserved" && record.device == DeviceKind::Cpu {
                continue;
            }
            let key = (record.device, record.device_index, what);
            let next = (first + tracks.len() as u64 + 1) << 1 | 1;
            let uuid = *tracks.entry(key).or_insert(next);
            if uuid == next {
                packets.add(|packet| {
                    packet.number(trace::SEQUENCE, first);
                    packet.message(trace::TRACK, |descriptor| {
                        descriptor.number(track::UUID, uuid);
                        describe_memory(record.device, record.device_index, what, descriptor);
                    });
                })?;
            }
            packets.add(|packet| sequence.count(record.time, uuid, bytes, packet))?;
        }
    }
    Ok(first + tracks.len() as u64 + 1)
}
