//! Writes a profile as Perfetto's packets.
//!
//! Every lane is a sequence of packets of its own: its names are told once, its times are differences, and its
//! track is the default, so that beginning and ending a slice takes some thirty bytes together.

use std::io::Write;
use std::path::Path;

use mindprof_analyze::{Lane, lanes};
use mindprof_model::{Category, DeviceKind, Event, InputsId, Nanos, Profile, StringId, Thread};
use rustc_hash::FxHashMap;

use super::message::Message;
use crate::{Result, shapes_text, write_file};

#[cfg(test)]
mod tests;

/// Fields of a trace and of its packets.
mod trace {
    pub(super) const PACKET: u32 = 1;
    pub(super) const CLOCK_SNAPSHOT: u32 = 6;
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const INTERNED: u32 = 12;
    pub(super) const FLAGS: u32 = 13;
    pub(super) const CLOCK: u32 = 58;
    pub(super) const DEFAULTS: u32 = 59;
    pub(super) const TRACK: u32 = 60;
}

/// Fields of a track event, and its types.
mod slice {
    pub(super) const CATEGORY: u32 = 3;
    pub(super) const ANNOTATION: u32 = 4;
    pub(super) const TYPE: u32 = 9;
    pub(super) const NAME: u32 = 10;
    pub(super) const TRACK: u32 = 11;
    pub(super) const BEGIN: u64 = 1;
    pub(super) const END: u64 = 2;
}

/// Fields of what is interned, and of one interned text.
mod interned {
    pub(super) const CATEGORIES: u32 = 1;
    pub(super) const NAMES: u32 = 2;
    pub(super) const ANNOTATION_NAMES: u32 = 3;
    pub(super) const ANNOTATION_TEXTS: u32 = 29;
    pub(super) const ID: u32 = 1;
    pub(super) const TEXT: u32 = 2;
}

const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;

/// The clocks: the trace's own, the wall's, and one per sequence whose readings are differences.
const BOOT_CLOCK: u64 = 6;
const WALL_CLOCK: u64 = 1;
const DIFFERENCE_CLOCK: u64 = 64;

/// The arguments of slices, by the number under which their names are interned.
const SHAPES: (u64, &str) = (1, "Input Dims");
const SEQUENCE_NUMBER: (u64, &str) = (2, "Sequence number");

/// Writes `profile` as a Perfetto trace.
///
/// # Errors
/// When `out` does not take the bytes.
pub fn write_perfetto(profile: &Profile, mut out: impl Write) -> Result<()> {
    let mut packets = Message::default();
    describe_processes(profile, &mut packets);
    for (index, lane) in lanes(profile).iter().enumerate() {
        let mut sequence = Sequence::new(profile, index as u64 + 1);
        sequence.open(lane, &mut packets);
        sequence.write_slices(lane, &mut packets, &mut out)?;
    }
    out.write_all(packets.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes `profile` as a Perfetto trace to a file, as [`write_file`] does.
///
/// # Errors
/// When the file cannot be written; the error names it.
pub fn write_perfetto_file(profile: &Profile, path: &Path) -> Result<()> {
    write_file(path, |out| write_perfetto(profile, out))
}

/// Names each process and device once.
fn describe_processes(profile: &Profile, packets: &mut Message) {
    let mut known: Vec<u64> = Vec::new();
    for thread in profile.threads() {
        let uuid = process_uuid(thread);
        if known.contains(&uuid) {
            continue;
        }
        known.push(uuid);
        packets.message(trace::PACKET, |packet| {
            packet.message(trace::TRACK, |track| {
                track.number(1, uuid);
                if thread.device == DeviceKind::Cpu {
                    track.message(3, |process| {
                        process.number(1, thread.process);
                        process.text(6, profile.strings().text(thread.name));
                    });
                } else {
                    track.text(2, &format!("GPU {}", thread.process));
                }
            });
        });
    }
}

/// Processes have even numbers, lanes odd ones.
fn process_uuid(thread: &Thread) -> u64 {
    let kind = u64::from(thread.device != DeviceKind::Cpu);
    (thread.process << 2 | kind << 1).wrapping_add(1 << 40) & !1
}

/// One sequence of packets: the state that its readers keep.
struct Sequence<'a> {
    profile: &'a Profile,
    id: u64,
    now: Nanos,
    names: FxHashMap<StringId, u64>,
    shapes: FxHashMap<InputsId, u64>,
    categories: Vec<Category>,
    annotations_named: bool,
}

impl<'a> Sequence<'a> {
    fn new(profile: &'a Profile, id: u64) -> Self {
        Self {
            profile,
            id,
            now: Nanos::ZERO,
            names: FxHashMap::default(),
            shapes: FxHashMap::default(),
            categories: Vec::new(),
            annotations_named: false,
        }
    }

    /// Writes what holds for the whole sequence: its track and its clock.
    fn open(&self, lane: &Lane, packets: &mut Message) {
        let thread = &self.profile.threads()[lane.thread.index()];
        let uuid = self.id << 1 | 1;
        packets.message(trace::PACKET, |packet| {
            packet.number(trace::SEQUENCE, self.id);
            packet.message(trace::TRACK, |track| {
                track.number(1, uuid);
                track.number(5, process_uuid(thread));
                let name = self.profile.strings().text(thread.name);
                match (lane.number, thread.device) {
                    (0, DeviceKind::Cpu) => {
                        track.message(4, |description| {
                            description.number(1, thread.process);
                            description.number(2, thread.native);
                            description.text(5, name);
                        });
                    }
                    (0, _) => {
                        track.text(2, &format!("stream {}", thread.native));
                    }
                    (number, _) => {
                        track.text(
                            2,
                            &format!("{name} {} (overlapping {number})", thread.native),
                        );
                    }
                }
            });
        });
        packets.message(trace::PACKET, |packet| {
            packet.number(trace::SEQUENCE, self.id);
            packet.number(trace::FLAGS, STATE_CLEARED | NEEDS_STATE);
            packet.message(trace::CLOCK_SNAPSHOT, |snapshot| {
                for (clock, time) in [
                    (BOOT_CLOCK, 0),
                    (WALL_CLOCK, self.profile.reference_unix_ns()),
                    (DIFFERENCE_CLOCK, 0),
                ] {
                    snapshot.message(1, |reading| {
                        reading.number(1, clock).number(2, time);
                        if clock == DIFFERENCE_CLOCK {
                            reading.number(3, 1);
                        }
                    });
                }
            });
            packet.message(trace::DEFAULTS, |defaults| {
                defaults.number(trace::CLOCK, DIFFERENCE_CLOCK);
                defaults.message(trace::TRACK_EVENT, |event| {
                    event.number(slice::TRACK, uuid);
                });
            });
        });
    }

    /// Writes beginnings and ends in the order of time: before an event begins, what has ended by then ends.
    fn write_slices(
        &mut self,
        lane: &Lane,
        packets: &mut Message,
        out: &mut impl Write,
    ) -> Result<()> {
        let mut open: Vec<Nanos> = Vec::new();
        for &id in &lane.events {
            let event = self.profile.event(id);
            while let Some(end) = open.pop_if(|end| *end <= event.start) {
                self.write_end(end, packets);
            }
            self.write_begin(event, packets);
            open.push(event.end());
            if packets.as_bytes().len() >= 1 << 16 {
                out.write_all(packets.as_bytes())?;
                packets.clear();
            }
        }
        while let Some(end) = open.pop() {
            self.write_end(end, packets);
        }
        Ok(())
    }

    fn write_begin(&mut self, event: &Event, packets: &mut Message) {
        let mut news = Message::default();
        let name = self.intern_name(event, &mut news);
        let category = self.intern_category(event.category, &mut news);
        let shapes = self.intern_shapes(event.inputs, &mut news);
        if (shapes.is_some() || event.sequence().is_some()) && !self.annotations_named {
            self.annotations_named = true;
            for (id, text) in [SHAPES, SEQUENCE_NUMBER] {
                add_text(&mut news, interned::ANNOTATION_NAMES, id, text);
            }
        }
        self.write_packet(event.start, packets, |packet| {
            packet.message(trace::TRACK_EVENT, |track_event| {
                track_event.number(slice::TYPE, slice::BEGIN);
                track_event.number(slice::CATEGORY, category);
                track_event.number(slice::NAME, name);
                if let Some(shapes) = shapes {
                    track_event.message(slice::ANNOTATION, |annotation| {
                        annotation.number(1, SHAPES.0).number(17, shapes);
                    });
                }
                if let Some(sequence) = event.sequence() {
                    track_event.message(slice::ANNOTATION, |annotation| {
                        annotation.number(1, SEQUENCE_NUMBER.0);
                        annotation.number(3, u64::from(sequence));
                    });
                }
            });
            if !news.as_bytes().is_empty() {
                packet.nested(trace::INTERNED, &news);
            }
        });
    }

    fn write_end(&mut self, end: Nanos, packets: &mut Message) {
        self.write_packet(end, packets, |packet| {
            packet.message(trace::TRACK_EVENT, |track_event| {
                track_event.number(slice::TYPE, slice::END);
            });
        });
    }

    fn write_packet(
        &mut self,
        time: Nanos,
        packets: &mut Message,
        fill: impl FnOnce(&mut Message),
    ) {
        let difference = time.saturating_sub(self.now);
        self.now = self.now.max(time);
        packets.message(trace::PACKET, |packet| {
            packet.number(trace::TIMESTAMP, difference.0);
            packet.number(trace::SEQUENCE, self.id);
            fill(packet);
        });
    }

    fn intern_name(&mut self, event: &Event, news: &mut Message) -> u64 {
        let next = self.names.len() as u64 + 1;
        let id = *self.names.entry(event.name).or_insert(next);
        if id == next {
            add_text(news, interned::NAMES, id, self.profile.name(event));
        }
        id
    }

    fn intern_category(&mut self, category: Category, news: &mut Message) -> u64 {
        let id = category as u64 + 1;
        if !self.categories.contains(&category) {
            self.categories.push(category);
            add_text(news, interned::CATEGORIES, id, category_name(category));
        }
        id
    }

    fn intern_shapes(&mut self, inputs: InputsId, news: &mut Message) -> Option<u64> {
        if inputs == InputsId::NONE {
            return None;
        }
        let next = self.shapes.len() as u64 + 1;
        let id = *self.shapes.entry(inputs).or_insert(next);
        if id == next {
            let text = shapes_text(self.profile.inputs(), inputs);
            add_text(news, interned::ANNOTATION_TEXTS, id, &text);
        }
        Some(id)
    }
}

fn category_name(category: Category) -> &'static str {
    match category {
        Category::Operator => "cpu_op",
        Category::Annotation => "user_annotation",
        Category::PythonFunction => "python_function",
        Category::Runtime => "runtime",
        Category::Kernel => "kernel",
        Category::DeviceAnnotation => "gpu_user_annotation",
        Category::Other => "other",
    }
}

fn add_text(news: &mut Message, field: u32, id: u64, text: &str) {
    news.message(field, |entry| {
        entry.number(interned::ID, id).text(interned::TEXT, text);
    });
}
