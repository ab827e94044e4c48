//! Writes a profile as a Chrome trace, in the layout of torch's own.
//!
//! Names and inputs are made into JSON once each; an event is put together from those pieces.

use std::io::Write;

use mindprof_model::{
    Category, DeviceKind, Event, EventId, Flags, InputsIter, Links, LossCause, Metadata, Nanos,
    Profile, ScopeKind, StackId, Thread,
};

use self::flows::{FlowEnd, Flows};
use self::python::PythonNumbers;
use super::category::{self, DEVICE_ANNOTATION_MARGIN, WINDOW, is_backward_wrapper, loss_key};
use super::inputs::inputs_arguments;
use super::text::{json_string, json_value};
use super::time::{base_ns, push_microseconds};
use crate::Result;

mod facts;
mod flows;
mod memory;
mod python;
#[cfg(test)]
mod tests;

/// Keys that the writer fills itself; metadata of that name is written with a `user_` before it.
const RESERVED: [&str; 6] = [
    "schemaVersion",
    "displayTimeUnit",
    "baseTimeNanoseconds",
    "traceEvents",
    "traceName",
    "mindprof",
];

/// Where the span of the window is put below all processes.
const SPANS_SORT_INDEX: u64 = 536_870_912;

/// What a trace file says beside the profile, and what it leaves out of it.
#[derive(Clone, Debug, Default)]
pub struct TraceOptions {
    /// Facts for the top of the file, after those of the profile; of two with one key, these win.
    pub metadata: Metadata,
    /// Events of these categories are not written.
    pub leave_out: Vec<Category>,
}

/// Writes `profile` as a trace that calls itself `trace_name`.
///
/// # Errors
/// When `out` does not take the bytes.
pub fn write_trace(profile: &Profile, trace_name: &str, out: impl Write) -> Result<()> {
    write_trace_with(profile, trace_name, &TraceOptions::default(), out)
}

/// As [`write_trace`], with options.
///
/// # Errors
/// When `out` does not take the bytes.
pub fn write_trace_with(
    profile: &Profile,
    trace_name: &str,
    options: &TraceOptions,
    mut out: impl Write,
) -> Result<()> {
    let mut writer = Writer::new(profile);
    writer.push_opening(&options.metadata);
    writer.push_threads();
    for (index, event) in profile.events().iter().enumerate() {
        if options.leave_out.contains(&event.category) {
            continue;
        }
        writer.push_event(EventId::from_index(index));
        writer.hand_over(&mut out)?;
    }
    for record in profile.memory() {
        writer.push_memory(record);
        writer.hand_over(&mut out)?;
    }
    writer.push_window();
    writer.push(&format!(
        "\n],\"traceName\":{}}}\n",
        json_string(trace_name)
    ));
    out.write_all(&writer.text)?;
    Ok(out.flush()?)
}

const CHUNK_BYTES: usize = 1 << 16;

/// Puts the text of a trace together.
struct Writer<'a> {
    profile: &'a Profile,
    base_ns: u64,
    text: Vec<u8>,
    /// Whether an event was written that the next one needs a comma after.
    has_events: bool,
    /// The JSON of each string, and of each list of inputs.
    names: Vec<String>,
    inputs: Vec<String>,
    /// The argument that each stack becomes, made when it is first met.
    stacks: Vec<Option<Box<str>>>,
    flows: Flows,
    python: PythonNumbers,
    /// The kind of the devices, if there are any.
    device: Option<DeviceKind>,
    /// The number of each thread, from one up in the order in which they began to work.
    thread_numbers: Vec<i64>,
}

impl<'a> Writer<'a> {
    fn new(profile: &'a Profile) -> Self {
        let inputs = profile.inputs().iter().map(inputs_fragment).collect();
        let mut devices = profile.threads().iter().map(|thread| thread.device);
        Self {
            profile,
            base_ns: base_ns(profile.reference_unix_ns()),
            text: Vec::with_capacity(2 * CHUNK_BYTES),
            has_events: false,
            names: profile.strings().iter().map(json_string).collect(),
            inputs,
            stacks: vec![None; profile.stacks().len()],
            flows: Flows::build(profile),
            python: PythonNumbers::build(profile),
            device: devices.find(|&device| device != DeviceKind::Cpu),
            thread_numbers: thread_numbers(profile),
        }
    }

    /// Gives `out` what was put together so far, once it is worth it.
    fn hand_over(&mut self, out: &mut impl Write) -> Result<()> {
        if self.text.len() >= CHUNK_BYTES {
            out.write_all(&self.text)?;
            self.text.clear();
        }
        Ok(())
    }

    fn push_opening(&mut self, of_file: &Metadata) {
        self.push("{\n\"schemaVersion\":1,\n");
        let mut metadata = self.profile.metadata().clone();
        for (key, value) in of_file.iter() {
            metadata.set(key, value);
        }
        if metadata.get("deviceProperties").is_none() {
            self.push("\"deviceProperties\":[],\n");
        }
        for (key, value) in metadata.iter() {
            let prefix = if RESERVED.contains(&key) { "user_" } else { "" };
            let key = json_string(&format!("{prefix}{key}"));
            self.push(&format!("{key}:{},\n", json_value(value)));
        }
        let loss = self.profile.loss();
        let counts = LossCause::ALL
            .map(|cause| format!("\"{}\":{}", loss_key(cause), loss.count(cause)))
            .join(",");
        let version = env!("CARGO_PKG_VERSION");
        self.push(&format!(
            "\"mindprof\":{{\"version\":\"{version}\",\"lost\":{{{counts}}}}},\n\
             \"displayTimeUnit\":\"ms\",\n\"baseTimeNanoseconds\":{},\n\"traceEvents\":[",
            self.base_ns
        ));
    }

    fn push_event(&mut self, id: EventId) {
        let event = self.profile.event(id);
        let name = self.profile.name(event);
        let category = category::to_name(event.category, name, self.device);
        self.begin_event();
        self.push("{\"ph\":\"X\",\"cat\":\"");
        self.push(category);
        self.push("\",\"name\":");
        self.text
            .extend_from_slice(self.names[event.name.index()].as_bytes());
        self.push_thread(&self.profile.threads()[event.thread.index()]);
        let margin = match event.category {
            Category::DeviceAnnotation => DEVICE_ANNOTATION_MARGIN,
            Category::Operator
            | Category::Annotation
            | Category::PythonFunction
            | Category::Runtime
            | Category::Kernel
            | Category::Other => 0,
        };
        self.push(",\"ts\":");
        let start = self.since_base(event.start).saturating_sub(margin);
        push_microseconds(&mut self.text, start);
        self.push(",\"dur\":");
        let duration = event.duration.0.saturating_add(2 * margin);
        push_microseconds(&mut self.text, duration);
        self.push(",\"args\":{");
        match event.category {
            Category::Operator | Category::Annotation => self.push_scope_arguments(id, event),
            Category::PythonFunction => {
                self.push_python_numbers(id);
                self.push_stack(event.stack);
            }
            Category::Runtime | Category::Kernel | Category::DeviceAnnotation => {
                self.push_links(id);
            }
            Category::Other => {}
        }
        self.push("\"Ev Idx\":");
        self.push_number(i64::from(id.to_raw()));
        self.push("}}");
        if let Some(end) = self.flows.end_at(id) {
            self.push_flow_end(end, event);
        }
    }

    /// Writes an end of the arrow from a forward operator to its backward node.
    fn push_flow_end(&mut self, end: FlowEnd, event: &Event) {
        let (phase, binding, flow) = match end {
            FlowEnd::Tail(flow) => ("s", "", flow),
            FlowEnd::Head(flow) => ("f", ",\"bp\":\"e\"", flow),
        };
        self.begin_event();
        self.push(&format!("{{\"ph\":\"{phase}\",\"id\":{flow}"));
        self.push_thread(&self.profile.threads()[event.thread.index()]);
        self.push(",\"ts\":");
        self.push_time(event.start);
        self.push(",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\"");
        self.push(binding);
        self.push("}");
    }

    /// Writes the arguments that operators and annotations have, each with a comma after it.
    fn push_scope_arguments(&mut self, id: EventId, event: &Event) {
        let said = self.profile.links(id).map_or(0, |links| links.external);
        let external = if said == 0 { id.to_raw() + 1 } else { said };
        self.push_argument("External id", external);
        self.push("\"Record function id\":0,");
        if let Some(sequence) = event.sequence() {
            self.push_argument("Sequence number", sequence);
            self.push_argument("Fwd thread id", self.forward_thread(id, sequence));
        }
        if event.flags.contains(Flags::UNFINISHED) {
            self.push("\"finished\":false,");
        }
        if event.flags.contains(Flags::ASYNC) {
            self.push("\"Async\":true,");
        }
        self.text
            .extend_from_slice(self.inputs[event.inputs.index()].as_bytes());
        self.push_stack(event.stack);
    }

    /// Writes by which numbers a device's work is tied to the host's.
    fn push_links(&mut self, id: EventId) {
        let Some(links) = self.profile.links(id) else {
            return;
        };
        for (key, number) in [
            ("External id", links.external),
            ("correlation", links.correlation),
        ] {
            if number != 0 {
                self.push_argument(key, number);
            }
        }
    }

    /// Writes a stack, innermost frame first, with a comma after it.
    fn push_stack(&mut self, stack: StackId) {
        if stack == StackId::NONE {
            return;
        }
        let profile = self.profile;
        let fragment = self.stacks[stack.index()].get_or_insert_with(|| {
            let frames = profile.stacks().frames(stack);
            let text: String = frames
                .flat_map(|frame| [profile.strings().text(frame), ";"])
                .collect();
            format!("\"Call stack\":{},", json_string(&text)).into()
        });
        self.text.extend_from_slice(fragment.as_bytes());
    }

    fn push_argument(&mut self, key: &str, value: impl itoa::Integer) {
        self.push("\"");
        self.push(key);
        self.push("\":");
        self.push(itoa::Buffer::new().format(value));
        self.push(",");
    }

    /// Returns the number of the thread that a backward node's forward operator ran on, zero for others.
    fn forward_thread(&self, id: EventId, sequence: u32) -> i64 {
        let event = self.profile.event(id);
        let is_backward = match event.scope {
            ScopeKind::Backward => true,
            ScopeKind::Function | ScopeKind::User => is_backward_wrapper(self.profile.name(event)),
        };
        if !is_backward {
            return 0;
        }
        let said = self.profile.links(id).and_then(Links::forward_thread);
        let forward = self.flows.forward(sequence);
        let thread = said.or_else(|| Some(self.profile.event(forward?).thread));
        thread.map_or(1, |thread| self.thread_numbers[thread.index()])
    }

    /// Writes the span of the window and the marks at its two ends.
    fn push_window(&mut self) {
        let span = self.profile.span();
        self.begin_event();
        self.push(&format!(
            "{{\"ph\":\"X\",\"cat\":\"{WINDOW}\",\"name\":\"PyTorch Profiler (0)\",\
             \"pid\":\"Spans\",\"tid\":\"PyTorch Profiler\",\"ts\":"
        ));
        self.push_time(Nanos::ZERO);
        self.push(",\"dur\":");
        push_microseconds(&mut self.text, span.0);
        self.push(",\"args\":{\"Op count\":0}}");
        self.begin_event();
        self.push("{\"ph\":\"M\",\"name\":\"process_sort_index\",\"ts\":");
        self.push_time(Nanos::ZERO);
        self.push(&format!(
            ",\"pid\":\"Spans\",\"tid\":0,\"args\":{{\"sort_index\":{SPANS_SORT_INDEX}}}}}"
        ));
        self.push_mark(
            "Iteration Start: PyTorch Profiler",
            "\"pid\":\"Traces\",\"tid\":\"Trace PyTorch Profiler\"",
            Nanos::ZERO,
        );
        self.push_mark("Record Window End", "\"pid\":\"\",\"tid\":\"\"", span);
    }

    fn push_mark(&mut self, name: &str, place: &str, time: Nanos) {
        self.begin_event();
        self.push(&format!(
            "{{\"ph\":\"i\",\"s\":\"g\",\"name\":\"{name}\",{place},\"ts\":"
        ));
        self.push_time(time);
        self.push("}");
    }

    fn begin_event(&mut self) {
        self.push(if self.has_events { ",\n" } else { "\n" });
        self.has_events = true;
    }

    fn push_thread(&mut self, thread: &Thread) {
        self.push(",\"pid\":");
        self.push_number(thread.process as i64);
        self.push(",\"tid\":");
        self.push_number(thread.native as i64);
    }

    fn push_time(&mut self, time: Nanos) {
        let since_base = self.since_base(time);
        push_microseconds(&mut self.text, since_base);
    }

    fn since_base(&self, time: Nanos) -> u64 {
        let reference = self.profile.reference_unix_ns() - self.base_ns;
        reference.saturating_add(time.0)
    }

    fn push_number(&mut self, number: i64) {
        let mut buffer = itoa::Buffer::new();
        self.push(buffer.format(number));
    }

    fn push(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }
}

/// Returns the arguments that a list of inputs becomes, with a comma after them.
fn inputs_fragment(words: &[u64]) -> String {
    if words.is_empty() {
        return String::new();
    }
    inputs_arguments(InputsIter::new(words)) + ","
}

fn thread_numbers(profile: &Profile) -> Vec<i64> {
    let mut numbers = vec![0; profile.threads().len()];
    let mut next = 1;
    for event in profile.events() {
        let number = &mut numbers[event.thread.index()];
        if *number == 0 {
            *number = next;
            next += 1;
        }
    }
    numbers
}
