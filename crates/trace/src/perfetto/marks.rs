//! Packets of a sequence on the tracks of others: memory, counters, and events of other tools.

use mindprof_analyze::FlowSide;
use mindprof_model::{INSTANT_ACTIVITY, MEMORY_EVENT, MemoryRecord, Nanos, TextId, ThreadId};

use super::arguments::{ADDRESS, BYTES, CALL_STACK, DEVICE_ID, DEVICE_TYPE, add_text, annotate};
use super::fields::{annotation, event as field, interned, trace};
use super::message::Message;
use super::sequence::Sequence;

/// An event of another tool.
pub(super) struct Foreign<'a> {
    pub(super) kind: u64,
    pub(super) track: u64,
    pub(super) category: &'a str,
    pub(super) name: &'a str,
    /// The entries of a JSON object.
    pub(super) arguments: &'a str,
    /// The flow that it is an end of.
    pub(super) flow: Option<(u64, FlowSide)>,
}

impl Sequence<'_> {
    /// Fills the packet of an allocation or a free, on the track of its thread. Counters show the
    /// memory in use.
    pub(super) fn memory(
        &mut self,
        (record, track): (&MemoryRecord, u64),
        further: Option<TextId>,
        packet: &mut Message,
    ) {
        self.news.clear();
        if self.categories.is_empty() {
            add_text(&mut self.news, interned::NAMES, 1, MEMORY_EVENT);
        }
        let category = self.intern_category(INSTANT_ACTIVITY);
        let stack = self.intern_stack(record.stack);
        self.at(record.time, packet);
        packet.message(trace::TRACK_EVENT, |mark| {
            mark.number(field::TYPE, field::INSTANT);
            mark.number(field::TRACK, track);
            mark.number(field::CATEGORY, category);
            mark.number(field::NAME, 1);
            annotate(mark, BYTES, annotation::SIGNED, record.bytes as u64);
            annotate(mark, ADDRESS, annotation::NUMBER, record.address);
            let device = i64::from(record.device.number()) as u64;
            annotate(mark, DEVICE_TYPE, annotation::SIGNED, device);
            let device_index = i64::from(record.device_index) as u64;
            annotate(mark, DEVICE_ID, annotation::SIGNED, device_index);
            if let Some(stack) = stack {
                annotate(mark, CALL_STACK, annotation::INTERNED_TEXT, stack);
            }
            if let Some(text) = further {
                let kept = (self.profile.passthrough(), text);
                let (texts, news) = (&mut self.texts, &mut self.news);
                self.annotations.push(kept, texts, news, mark);
            }
        });
        self.tell_news(packet);
    }

    /// Fills the packet of another tool's event, on any track.
    pub(super) fn foreign(&mut self, time: Nanos, event: &Foreign<'_>, packet: &mut Message) {
        self.news.clear();
        self.at(time, packet);
        packet.message(trace::TRACK_EVENT, |written| {
            written.number(field::TYPE, event.kind);
            written.number(field::TRACK, event.track);
            if !event.category.is_empty() {
                written.text(field::CATEGORY_TEXT, event.category);
            }
            written.text(field::NAME_TEXT, event.name);
            let (texts, news) = (&mut self.texts, &mut self.news);
            self.annotations
                .push_entries(event.arguments, texts, news, written);
            match event.flow {
                Some((flow, FlowSide::Head)) => drop(written.fixed(field::LAST_FLOWS, flow)),
                Some((flow, FlowSide::Tail)) => drop(written.fixed(field::FLOWS, flow)),
                None => {}
            }
        });
        self.tell_news(packet);
    }

    /// Fills the packet of an integer counter value, on another track.
    pub(super) fn count(&mut self, time: Nanos, track: u64, value: u64, packet: &mut Message) {
        self.at(time, packet);
        packet.message(trace::TRACK_EVENT, |event| {
            event.number(field::TYPE, field::COUNTER);
            event.number(field::TRACK, track);
            event.number(field::COUNTER_VALUE, value);
        });
    }

    /// Fills the packet of a counter value that may not be an integer.
    pub(super) fn count_float(
        &mut self,
        time: Nanos,
        track: u64,
        value: f64,
        packet: &mut Message,
    ) {
        self.at(time, packet);
        packet.message(trace::TRACK_EVENT, |event| {
            event.number(field::TYPE, field::COUNTER);
            event.number(field::TRACK, track);
            event.fixed(field::FLOAT_COUNTER_VALUE, value.to_bits());
        });
    }
}

/// Returns the id of a thread's track. The sequences of threads are numbered from two.
pub(super) fn track_of_thread(thread: ThreadId) -> u64 {
    (u64::from(thread.to_raw()) + 2) << 1 | 1
}
