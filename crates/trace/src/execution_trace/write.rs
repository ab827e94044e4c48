//! Writes a recording as an execution trace: the nodes in the order of their ends, each with its
//! parent, and the process last.

use std::io::Write;
use std::path::Path;

use mindprof_analyze::{ExecutionStep, execution};
use mindprof_model::{EventId, ForwardThread, Input, Profile, ScopeKind, ThreadId};
use rustc_hash::FxHashMap;

use super::objects::Objects;
use super::schema::{Returns, Schema};
use super::values::Values;
use super::{PROCESS_NODE, SCHEMA, THREAD_NODE};
use crate::chrome::json_string;
use crate::error::Result;
use crate::files::write_file;

/// The id of the process node, and the next one.
const PROCESS: u64 = 1;
const FIRST_FREE: u64 = 2;

/// The facts at the top of an execution trace.
///
/// The observer of the Python package measures them and passes them on.
#[derive(Clone, Debug, Default)]
pub struct ExecutionTraceOptions {
    /// The process id.
    pub process: u32,
    /// The local start time, for people.
    pub time: String,
    /// The start time in milliseconds of a monotonic clock.
    pub start_ms: u64,
    /// The end time by the same clock.
    pub finish_ms: u64,
}

/// Writes a recording with inputs, memory and results as an execution trace, like [`write_file`].
/// Without a recording, the trace is empty.
///
/// # Errors
/// If the file cannot be written. The error names it.
pub fn write_execution_trace_file(
    profile: Option<&Profile>,
    options: &ExecutionTraceOptions,
    path: &Path,
) -> Result<()> {
    write_file(path, |out| write_execution_trace(profile, options, out))
}

fn write_execution_trace(
    profile: Option<&Profile>,
    options: &ExecutionTraceOptions,
    out: &mut dyn Write,
) -> Result<()> {
    let time = json_string(&options.time);
    write!(
        out,
        "{{\n  \"schema\": \"{SCHEMA}\", \"pid\": {}, \"time\": {time}, \"start_ts\": {},\n  \"nodes\": [",
        options.process, options.start_ms
    )?;
    if let Some(profile) = profile {
        Writer::new(profile, out).write_all()?;
    }
    write_node(out, PROCESS_NODE, &Node::of_process())?;
    write!(out, "\n  ],\n  \"finish_ts\": {}", options.finish_ms)?;
    let lost = profile.map_or(0, |profile| profile.loss().total());
    if lost > 0 {
        write!(out, ",\n  \"lost_events\": {lost}")?;
    }
    writeln!(out, "\n}}")?;
    Ok(())
}

/// An open node, with the facts that are written at its end.
#[derive(Clone, Debug, Default)]
struct Node {
    id: u64,
    parent: u64,
    /// The id that the other profiles of the same time have for it; zero for processes and threads.
    record_function: u64,
    forward_parent: u64,
    sequence: i64,
    scope: u8,
    thread: u64,
    forward_thread: u64,
    schema: Option<&'static Schema>,
    inputs: Values,
    outputs: Values,
    /// The results of the operator inside it that ended last.
    last_outputs: Values,
}

/// The scope kind of user ranges, processes and threads.
const USER_SCOPE: u8 = 7;

impl Node {
    fn of_process() -> Self {
        Self {
            id: PROCESS,
            parent: PROCESS,
            sequence: -1,
            scope: USER_SCOPE,
            ..Self::default()
        }
    }

    fn of_thread(id: u64, thread: u64) -> Self {
        Self {
            id,
            thread,
            ..Self::of_process()
        }
    }

    /// Determines the results of the node.
    fn finish(&mut self) {
        let Some(schema) = self.schema else {
            return;
        };
        let last = std::mem::take(&mut self.last_outputs);
        let input = |place: usize| self.inputs.at(place).cloned().map(Values::one);
        let own = std::mem::take(&mut self.outputs);
        self.outputs = match schema.returns() {
            Returns::Other => Values::default(),
            Returns::TensorList if !own.is_empty() => own.into_list(),
            _ if !own.is_empty() => own,
            Returns::Written(place) => input(place).unwrap_or_default(),
            Returns::ViewOf(place) if last.is_empty() => input(place).unwrap_or_default(),
            // A composed operator returns the results of its last operator.
            Returns::Tensors | Returns::TensorList | Returns::ViewOf(_) => last,
        };
    }
}

/// The threads of a trace, with their nodes and open scopes.
#[derive(Default)]
struct Threads {
    numbers: FxHashMap<ThreadId, u64>,
    nodes: Vec<u64>,
    open: Vec<Vec<Node>>,
}

impl Threads {
    /// Returns the innermost open node of a thread.
    fn innermost(&self, number: u64) -> u64 {
        let index = (number as usize).wrapping_sub(1);
        let open = self.open.get(index).and_then(|open| open.last());
        open.map_or_else(
            || self.nodes.get(index).copied().unwrap_or_default(),
            |node| node.id,
        )
    }
}

struct Writer<'a> {
    profile: &'a Profile,
    out: &'a mut dyn Write,
    objects: Objects,
    threads: Threads,
    scopes: u64,
    /// The number of memory records processed.
    memory: usize,
}

impl<'a> Writer<'a> {
    fn new(profile: &'a Profile, out: &'a mut dyn Write) -> Self {
        Self {
            profile,
            out,
            objects: Objects::from(FIRST_FREE),
            threads: Threads::default(),
            scopes: 0,
            memory: 0,
        }
    }

    fn write_all(&mut self) -> Result<()> {
        for step in execution(self.profile) {
            match step {
                ExecutionStep::Begin(event) => self.begin(event)?,
                ExecutionStep::End(event) => self.end(event)?,
            }
        }
        Ok(())
    }

    fn begin(&mut self, id: EventId) -> Result<()> {
        let profile = self.profile;
        let event = profile.event(id);
        self.pass_memory(event.start.0);
        let thread = self.thread(event.thread)?;
        let inputs: Vec<Input<'_>> = profile.inputs().inputs(event.inputs).collect();
        self.scopes += 1;
        let links = profile.links(id).unwrap_or_default();
        let mut node = Node {
            id: self.objects.number(),
            parent: self.threads.innermost(thread),
            // A profile that was made by other means has no ids.
            record_function: match links.record_function {
                0 => self.scopes,
                number => u64::from(number),
            },
            sequence: -1,
            thread,
            schema: Schema::find(profile.name(event), &inputs),
            ..Node::default()
        };
        match event.scope {
            // The scope around an autograd node is represented by that node alone.
            ScopeKind::Function if self.is_linked(id) => {}
            ScopeKind::Function => node.sequence = event.sequence().map_or(-1, i64::from),
            ScopeKind::User => node.scope = USER_SCOPE,
            ScopeKind::Backward => {
                node.scope = 1;
                node.sequence = event.sequence().map_or(-1, i64::from);
                node.forward_thread = self.forward_thread(id, thread);
                node.forward_parent = self.threads.innermost(node.forward_thread);
            }
        }
        let addresses = profile.storages().of(id.index());
        let inputs = profile.inputs().inputs(event.inputs);
        node.inputs = Values::of(inputs, addresses, &mut self.objects);
        self.threads.open[thread as usize - 1].push(node);
        Ok(())
    }

    fn end(&mut self, id: EventId) -> Result<()> {
        let profile = self.profile;
        let event = profile.event(id);
        self.pass_memory(event.end().0);
        let number = self.threads.numbers[&event.thread];
        let open = &mut self.threads.open[number as usize - 1];
        let Some(mut node) = open.pop() else {
            return Ok(());
        };
        if let Some((tensors, addresses)) = profile.results().of(id.index()) {
            let tensors = profile.inputs().inputs(tensors);
            node.outputs = Values::of(tensors, addresses, &mut self.objects);
        }
        node.finish();
        if let Some(outer) = open.last_mut()
            && !node.outputs.is_empty()
        {
            outer.last_outputs = node.outputs.clone();
        }
        write_node(self.out, profile.name(event), &node)?;
        write!(self.out, ",")?;
        Ok(())
    }

    /// Returns the id of a thread. Its node is written when it is first used.
    fn thread(&mut self, thread: ThreadId) -> Result<u64> {
        if let Some(&number) = self.threads.numbers.get(&thread) {
            return Ok(number);
        }
        let number = self.threads.numbers.len() as u64 + 1;
        let node = Node::of_thread(self.objects.number(), number);
        self.threads.numbers.insert(thread, number);
        self.threads.nodes.push(node.id);
        self.threads.open.push(Vec::new());
        write_node(self.out, THREAD_NODE, &node)?;
        write!(self.out, ",")?;
        Ok(number)
    }

    fn is_linked(&self, id: EventId) -> bool {
        let links = self.profile.links(id).unwrap_or_default();
        links.forward_thread() != ForwardThread::Unknown
    }

    /// Returns the thread of an autograd node's forward operator, or its own thread for a leaf,
    /// which has none.
    fn forward_thread(&self, id: EventId, own: u64) -> u64 {
        let links = self.profile.links(id).unwrap_or_default();
        match links.forward_thread() {
            ForwardThread::At(thread) => {
                let number = self.threads.numbers.get(&thread).copied();
                number.unwrap_or_default()
            }
            ForwardThread::Elsewhere => 0,
            ForwardThread::Unknown => own,
        }
    }

    /// Forgets the storages that were freed before a time.
    fn pass_memory(&mut self, before_ns: u64) {
        let memory = self.profile.memory();
        while self.memory < memory.len() && memory.time(self.memory).0 < before_ns {
            let record = memory.at(self.memory);
            if record.bytes < 0 {
                self.objects.release(record.address);
            }
            self.memory += 1;
        }
    }
}

fn write_node(out: &mut dyn Write, name: &str, node: &Node) -> Result<()> {
    let schema = node.schema.map_or("", |schema| schema.text);
    let attributes = [
        ("rf_id", "uint64", node.record_function.to_string()),
        ("fw_parent", "uint64", node.forward_parent.to_string()),
        ("seq_id", "int64", node.sequence.to_string()),
        ("scope", "uint64", node.scope.to_string()),
        ("tid", "uint64", node.thread.to_string()),
        ("fw_tid", "uint64", node.forward_thread.to_string()),
        ("op_schema", "string", json_string(schema)),
        ("kernel_backend", "string", json_string("")),
        ("kernel_file", "string", json_string("")),
        ("tensor_range", "string", json_string("")),
    ];
    let attributes = attributes.map(|(key, kind, value)| {
        format!("{{\"name\": \"{key}\", \"type\": \"{kind}\", \"value\": {value}}}")
    });
    write!(
        out,
        "\n      {{\n        \"id\": {}, \"name\": {}, \"ctrl_deps\": {},\n        \"inputs\": {},\n        \
         \"outputs\": {},\n        \"attrs\": [{}]\n      }}",
        node.id,
        json_string(name),
        node.parent,
        node.inputs.json(),
        node.outputs.json(),
        attributes.join(",")
    )?;
    Ok(())
}
