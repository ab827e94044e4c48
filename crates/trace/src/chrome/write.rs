//! Writes a profile as a Chrome trace, in the layout of torch's own.
//!
//! Everything that events share is converted to JSON once. An event is assembled from these pieces
//! and its numbers, without `std::fmt`.

use std::io::Write;

use mindprof_analyze::{FlowEnd, FlowKind, FlowSide, Flows, PythonCalls};
use mindprof_model::{
    Category, Event, EventId, Flags, ForwardThread, Metadata, Nanos, Profile, ThreadNumbers,
};

use self::json_cache::JsonCache;
use self::memory::memory_head;
pub use self::order::EventOrder;
use self::order::Groups;
use self::passthrough::{EventPassthrough, PassthroughTexts};
use self::tensors::Carried;
use self::text::Text;
use self::tracks::{Tracks, drawn};
use super::category::DEVICE_ANNOTATION_MARGIN;
use super::keys::{ArgumentKey, ArgumentKeys};
use super::text::json_string;
use super::time::base_ns;
use crate::error::Result;

mod json_cache;
mod memory;
mod order;
mod passthrough;
mod python;
mod tensors;
#[cfg(test)]
mod tests;
mod text;
mod tracks;
mod window;

/// Options for writing a trace: extra metadata, and what to leave out.
///
/// The defaults write the whole profile in the order of time.
#[derive(Clone, Debug, Default)]
pub struct TraceOptions {
    /// Metadata for the top of the file, after that of the profile. On equal keys, these values
    /// win.
    pub metadata: Metadata,
    /// The categories whose events are not written.
    pub leave_out: Vec<Category>,
    /// Whether to leave out flow events from forward operators to their autograd nodes.
    pub leave_out_forward_arrows: bool,
    /// The order in which events are written.
    pub order: EventOrder,
}

impl TraceOptions {
    /// Returns the metadata for the top of a file: the profile's, then the file's.
    pub(crate) fn facts(&self, profile: &Profile) -> Metadata {
        let mut facts = profile.metadata().clone();
        for (key, value) in self.metadata.iter() {
            facts.set(key, value);
        }
        facts
    }
}

/// Writes `profile` as a trace named `trace_name`.
///
/// # Errors
/// If `out` cannot be written to.
pub fn write_trace(profile: &Profile, trace_name: &str, out: impl Write) -> Result<()> {
    write_trace_with(profile, trace_name, &TraceOptions::default(), out)
}

/// Writes a trace as [`write_trace`] does, with options.
///
/// # Errors
/// If `out` cannot be written to.
pub fn write_trace_with(
    profile: &Profile,
    trace_name: &str,
    options: &TraceOptions,
    mut out: impl Write,
) -> Result<()> {
    let mut writer = Writer::new(profile, options);
    writer.push_opening(&options.facts(profile));
    writer.push_window();
    writer.push_tracks();
    let order = Groups::build(profile, options.order);
    for group in order.all() {
        writer.begin_group();
        for (id, event) in order.events(profile, group) {
            if options.leave_out.contains(&event.category) {
                continue;
            }
            writer.push_event(id, event);
            writer.text.flush_if_full(&mut out)?;
        }
    }
    for (index, record) in profile.memory().iter().enumerate() {
        writer.push_memory(index, &record);
        writer.text.flush_if_full(&mut out)?;
    }
    for record in profile.passthrough().unknown_events() {
        writer.push_record(record);
        writer.text.flush_if_full(&mut out)?;
    }
    writer.text.push(&format!(
        "\n],\"traceName\":{}}}\n",
        json_string(trace_name)
    ));
    writer.text.flush(&mut out)?;
    Ok(out.flush()?)
}

/// Assembles the text of a trace.
struct Writer<'a> {
    profile: &'a Profile,
    base_ns: u64,
    text: Text,
    json: JsonCache<'a>,
    memory_head: String,
    tracks: Tracks,
    flows: Flows,
    leave_out_forward_arrows: bool,
    python: PythonCalls,
    roles: Carried,
    passthrough: PassthroughTexts<'a>,
    thread_numbers: ThreadNumbers,
}

impl<'a> Writer<'a> {
    fn new(profile: &'a Profile, options: &TraceOptions) -> Self {
        Self {
            profile,
            base_ns: base_ns(profile.reference_unix_ns()),
            text: Text::new(),
            json: JsonCache::new(profile),
            memory_head: memory_head(),
            tracks: Tracks::build(profile),
            flows: Flows::build(profile),
            leave_out_forward_arrows: options.leave_out_forward_arrows,
            python: PythonCalls::new(profile),
            roles: Carried::build(profile, &options.leave_out),
            passthrough: PassthroughTexts::new(profile),
            thread_numbers: profile.thread_numbers(),
        }
    }

    /// Returns to the first event.
    fn begin_group(&mut self) {
        self.passthrough.rewind();
        self.roles.rewind();
    }

    fn push_event(&mut self, id: EventId, event: &Event) {
        let (start, end) = drawn(event);
        let passthrough = self.passthrough.of_event(id);
        match passthrough.category {
            Some(category) => {
                let category = self.passthrough.text(category).to_owned();
                self.push_foreign_head(&category, event);
            }
            None if event.flags.contains(Flags::INSTANT) => {
                let category = json_string(self.json.category(event));
                self.push_foreign_head(&category, event);
            }
            None => match self.profile.overload(id) {
                Some(overload) => self.push_overloaded_head(overload, event),
                None => self.text.push(self.json.head(event)),
            },
        }
        self.text.push(self.tracks.of_event(id, event));
        self.push_since_reference(start.0, DEVICE_ANNOTATION_MARGIN);
        if !event.flags.contains(Flags::INSTANT) {
            self.text.push(",\"dur\":");
            self.text.push_microseconds((end - start).0);
        }
        if let Some(fields) = passthrough.fields {
            self.text.push(",");
            self.text.push(self.passthrough.text(fields));
        }
        match event.category {
            Category::Operator | Category::Annotation => {
                self.push_scope_arguments(id, event, passthrough);
            }
            Category::PythonFunction => {
                self.text.push(",\"args\":{");
                let are_told = self.push_python_numbers(event, passthrough);
                self.push_links(id);
                // Callers that are given by number need no names, which would take up space
                // quadratic in the depth of the stack.
                if !(are_told && self.json.is_deep(event.stack)) {
                    self.text.push(self.json.stack(event.stack));
                }
            }
            Category::Runtime | Category::Kernel | Category::DeviceAnnotation | Category::Other => {
                self.text.push(",\"args\":{");
                self.push_links(id);
            }
        }
        let is_said = passthrough.keys.contains(ArgumentKey::Finished);
        if event.flags.contains(Flags::UNFINISHED) && !is_said {
            self.text.push("\"finished\":false,");
        }
        self.push_tensors(id, event.start);
        self.push_further_arguments(passthrough.arguments);
        match event.category {
            Category::Operator | Category::Annotation | Category::PythonFunction => {
                self.text.push("\"Ev Idx\":");
                self.text.push_number(id.to_raw());
            }
            // As in torch's traces, events that were not recorded in the program have none.
            Category::Runtime | Category::Kernel | Category::DeviceAnnotation | Category::Other => {
                self.text.pop_comma();
            }
        }
        self.text.push("}}");
        if let Some(end) = self.flows.end_at(id, event)
            && !(self.leave_out_forward_arrows && end.kind == FlowKind::Backward)
        {
            self.push_flow_end(end, id, event);
        }
    }

    /// Writes the start of an instant event, or of an event with an unknown category.
    fn push_foreign_head(&mut self, category: &str, event: &Event) {
        let is_moment = event.flags.contains(Flags::INSTANT);
        let phase = if is_moment { "i" } else { "X" };
        self.text.push(",\n{\"ph\":\"");
        self.text.push(phase);
        self.text.push("\",\"cat\":");
        self.text.push(category);
        self.text.push(",\"name\":");
        self.text.push(&json_string(self.profile.name(event)));
    }

    /// Writes the start of an operator whose overload is known, which is a part of its name.
    fn push_overloaded_head(&mut self, overload: &str, event: &Event) {
        let category = self.json.category(event);
        let name = format!("{}.{overload}", self.profile.name(event));
        self.text.push(",\n{\"ph\":\"X\",\"cat\":\"");
        self.text.push(category);
        self.text.push("\",\"name\":");
        self.text.push(&json_string(&name));
    }

    /// Writes one end of a flow.
    fn push_flow_end(&mut self, end: FlowEnd, id: EventId, event: &Event) {
        let name = match end.kind {
            FlowKind::Backward => "fwdbwd",
            FlowKind::Launch => "ac2g",
        };
        let (phase, binding) = match end.side {
            FlowSide::Tail => ("s", ""),
            FlowSide::Head => ("f", ",\"bp\":\"e\""),
        };
        self.text.push(",\n{\"ph\":\"");
        self.text.push(phase);
        self.text.push("\",\"id\":");
        self.text.push_number(end.number);
        self.text.push(self.tracks.of_event(id, event));
        self.push_time(event.start);
        self.text.push(",\"cat\":\"");
        self.text.push(name);
        self.text.push("\",\"name\":\"");
        self.text.push(name);
        self.text.push("\"");
        self.text.push(binding);
        self.text.push("}");
    }

    /// Writes the arguments of operators and annotations, each followed by a comma.
    fn push_scope_arguments(&mut self, id: EventId, event: &Event, passthrough: EventPassthrough) {
        let links = self.profile.links(id).unwrap_or_default();
        let external = self.profile.scope_number(id, &links);
        self.text.push(",\"args\":{");
        if !passthrough.keys.contains(ArgumentKey::External) {
            self.text.push_argument("External id", external);
        }
        if links.correlation != 0 {
            self.text.push_argument("correlation", links.correlation);
        }
        if !passthrough.keys.contains(ArgumentKey::RecordFunction) {
            self.text
                .push_argument("Record function id", links.record_function);
        }
        if let Some(sequence) = event.sequence() {
            let forward = self.flows.forward_thread(self.profile, id);
            // Zero would mean that it is not an autograd node.
            let forward = match forward {
                Some(ForwardThread::Unknown) => ForwardThread::Elsewhere,
                Some(told) => told,
                None => ForwardThread::Unknown,
            };
            let forward_thread = self.thread_numbers.forward_number(forward);
            self.text.push_argument("Sequence number", sequence);
            self.text.push_argument("Fwd thread id", forward_thread);
        }
        if let Some(hierarchy) = self.profile.module_hierarchy(id) {
            self.text.push("\"Module Hierarchy\":");
            self.text.push(&json_string(hierarchy));
            self.text.push(",");
        }
        if event.flags.contains(Flags::ASYNC) {
            self.text.push("\"Async\":true,");
        }
        if passthrough.keys.within(ArgumentKeys::INPUTS).is_empty() {
            self.text.push(self.json.inputs(event));
        } else {
            let inputs = self.json.inputs_without(event, passthrough.keys);
            self.text.push(&inputs);
        }
        self.text.push(self.json.stack(event.stack));
    }

    /// Writes the correlation ids that tie device work to CPU events.
    fn push_links(&mut self, id: EventId) {
        let Some(links) = self.profile.links(id) else {
            return;
        };
        for (key, number) in [
            ("External id", links.external),
            ("correlation", links.correlation),
        ] {
            if number != 0 {
                self.text.push_argument(key, number);
            }
        }
    }

    fn push_time(&mut self, time: Nanos) {
        self.push_since_reference(time.0, 0);
    }

    /// Writes a time that is `time_ns` after `before_ns` before the reference time.
    fn push_since_reference(&mut self, time_ns: u64, before_ns: u64) {
        let reference = self.profile.reference_unix_ns() - self.base_ns;
        let since_base = reference.saturating_add(time_ns).saturating_sub(before_ns);
        self.text.push_microseconds(since_base);
    }
}
