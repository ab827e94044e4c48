//! Reads the records in CUPTI's buffers, by the positions of their fields.
//!
//! Which records torch's traces leave out is decided here: calls without interest, what began
//! outside of the collection, and waits of streams that had no work.

#![expect(
    unsafe_code,
    reason = "records are read in place, by the layout of their version"
)]

use std::ffi::{CStr, c_char};

use mindprof_record::{ThreadHandle, TimeAxis};
use rustc_hash::{FxHashMap, FxHashSet};

use super::arguments::{ArgumentsId, ArgumentsTable, Ends, Graph, Kernel, Transfer, Waiting};
use super::blocks::Filled;
use super::interface::Interface;
use super::layout::{call, copy, cuda_event, fill, kernel, kind, overhead, peer_copy};
use super::layout::{synchronization as wait, synchronization};
use super::names::{Domain, Synchronization, copy_name, fill_name, overhead_name};

/// One record, in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) correlation: u32,
    /// The index of its name.
    pub(super) name: u32,
    pub(super) place: Place,
    pub(super) arguments: ArgumentsId,
}

/// The place of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A call, on the thread with this handle, or with its low half in CUPTI's own records.
    Thread(i64),
    /// CUPTI itself was at work.
    Collector,
    /// A stream of a device; -1 if it is about no stream.
    Stream { device: u32, stream: i32 },
}

/// The records of a collection.
pub(super) struct Records {
    pub(super) list: Vec<Record>,
    /// The process that made the calls.
    pub(super) process: u32,
    /// The distinct names.
    pub(super) names: Vec<String>,
    pub(super) arguments: ArgumentsTable,
    /// Whether a thread other than the one that ended the collection launched graphs.
    pub(super) has_graphs_elsewhere: bool,
}

/// The end of a collection.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) ticks: u64,
    /// The thread that ended it.
    pub(super) thread: ThreadHandle,
}

impl Records {
    /// Reads buffers. Calls that began at the end or later are left out, and everything that began
    /// before the window opened.
    pub(super) fn read(
        interface: &Interface,
        buffers: &[Filled],
        axis: &TimeAxis,
        end: End,
    ) -> Self {
        let mut reader = Reader::new(interface, axis, end);
        for buffer in buffers {
            reader.has_whole_handles = buffer.is_calls();
            buffer.each(interface, |record| {
                // SAFETY: the record is one that CUPTI wrote, by the layout of its version.
                unsafe { reader.read(record) }
            });
        }
        reader.finish()
    }
}

/// Records under construction.
struct Reader<'a> {
    interface: &'a Interface,
    axis: &'a TimeAxis,
    end: End,
    /// Whether the records that are being read are calls of ours.
    has_whole_handles: bool,
    records: Records,
    names: NameTable,
    /// The devices of contexts.
    devices: FxHashMap<u32, u32>,
    /// The streams that had work.
    streams: FxHashSet<(u32, i32)>,
    /// The calls that recorded events: by context and event, their correlation ids and streams.
    recorded: FxHashMap<(u32, u32), Vec<(u32, i32)>>,
    /// Synchronizations, which are completed when all contexts and events are known.
    waits: Vec<Wait>,
}

/// The names of records.
#[derive(Default)]
struct NameTable {
    places: FxHashMap<String, u32>,
    /// The names of kernels, by the address of their symbol.
    kernels: FxHashMap<usize, u32>,
    /// The names of calls; `None` if torch does not show them.
    calls: FxHashMap<(Domain, u32), Option<u32>>,
    /// The names of calls that launch graphs.
    graph_launches: Vec<u32>,
}

struct Wait {
    times: (u64, u64),
    kind: Synchronization,
    correlation: u32,
    context: u32,
    stream: i32,
    event: u32,
}

/// The fields of a record.
#[derive(Clone, Copy)]
struct Fields(*const u8);

impl Fields {
    /// Reads a field.
    ///
    /// # Safety
    /// The record has a field of this type there.
    unsafe fn at<T: Copy>(self, position: usize) -> T {
        // SAFETY: as the caller guarantees. Records may be packed.
        unsafe { self.0.add(position).cast::<T>().read_unaligned() }
    }
}

impl<'a> Reader<'a> {
    fn new(interface: &'a Interface, axis: &'a TimeAxis, end: End) -> Self {
        Self {
            interface,
            axis,
            end,
            has_whole_handles: false,
            records: Records {
                list: Vec::new(),
                process: std::process::id(),
                names: Vec::new(),
                arguments: ArgumentsTable::default(),
                has_graphs_elsewhere: false,
            },
            names: NameTable::default(),
            devices: FxHashMap::default(),
            streams: FxHashSet::default(),
            recorded: FxHashMap::default(),
            waits: Vec::new(),
        }
    }

    /// # Safety
    /// CUPTI wrote the record, by the layout of its version.
    unsafe fn read(&mut self, record: *const u8) {
        let fields = Fields(record);
        // SAFETY: each record begins with its kind, which tells the fields that follow.
        unsafe {
            match fields.at::<u32>(0) {
                kind::KERNEL => self.read_kernel(fields),
                kind::COPY => self.read_copy(fields),
                kind::PEER_COPY => self.read_peer_copy(fields),
                kind::FILL => self.read_fill(fields),
                kind::RUNTIME => self.read_call(fields, Domain::Runtime),
                kind::DRIVER => self.read_call(fields, Domain::Driver),
                kind::SYNCHRONIZATION => self.read_wait(fields),
                kind::CUDA_EVENT => self.read_event(fields),
                kind::OVERHEAD => self.read_overhead(fields),
                _ => {}
            }
        }
    }

    /// # Safety
    /// The record is a kernel.
    unsafe fn read_kernel(&mut self, fields: Fields) {
        // SAFETY: a kernel has these fields, and its name is a string that CUPTI keeps.
        let (configuration, times, correlation, name) = unsafe {
            let configuration = Kernel {
                queued: fields.at(kernel::QUEUED),
                device: fields.at(kernel::DEVICE),
                context: fields.at(kernel::CONTEXT),
                stream: fields.at(kernel::STREAM),
                registers: fields.at(kernel::REGISTERS),
                static_shared: fields.at(kernel::STATIC_SHARED),
                dynamic_shared: fields.at(kernel::DYNAMIC_SHARED),
                grid: fields.at(kernel::GRID),
                block: fields.at(kernel::BLOCK),
                graph: Graph {
                    id: fields.at(kernel::GRAPH),
                    node: fields.at(kernel::GRAPH_NODE),
                },
                priority: (self.interface.layout.has_priority).then(|| fields.at(kernel::PRIORITY)),
            };
            let times = (fields.at(kernel::START), fields.at(kernel::END));
            let name: *const c_char = fields.at(kernel::NAME);
            (configuration, times, fields.at(kernel::CORRELATION), name)
        };
        self.note_context(configuration.context, configuration.device);
        let Some(times) = self.times_of_work(times) else {
            return;
        };
        let interface = self.interface;
        // SAFETY: the record is a kernel.
        let filling = || unsafe { interface.occupancy.of(fields.0) };
        let arguments = self.records.arguments.add_kernel(configuration, filling);
        // SAFETY: as above.
        let name = unsafe { self.kernel_name(name) };
        let stream = (configuration.device, configuration.stream.cast_signed());
        self.add_work(stream, times, correlation, name, arguments);
    }

    /// # Safety
    /// The record is a copy on one device.
    unsafe fn read_copy(&mut self, fields: Fields) {
        // SAFETY: a copy has these fields.
        let (transfer, correlation, kinds) = unsafe {
            let graph = Graph {
                id: fields.at(copy::GRAPH),
                node: fields.at(copy::GRAPH_NODE),
            };
            let transfer = transfer(fields, graph, None);
            (transfer, fields.at(copy::CORRELATION), copy_kinds(fields))
        };
        let [direction, source, target] = kinds;
        // SAFETY: the record is a copy.
        unsafe {
            self.add_transfer(fields, transfer, correlation, || {
                copy_name(direction, source, target)
            });
        }
    }

    /// # Safety
    /// The record is a copy between two devices.
    unsafe fn read_peer_copy(&mut self, fields: Fields) {
        // SAFETY: such a copy has these fields.
        let (transfer, correlation, kinds) = unsafe {
            let graph = Graph {
                id: fields.at(peer_copy::GRAPH),
                node: fields.at(peer_copy::GRAPH_NODE),
            };
            let ends = Ends {
                source_device: fields.at(peer_copy::SOURCE_DEVICE),
                source_context: fields.at(peer_copy::SOURCE_CONTEXT),
                target_device: fields.at(peer_copy::TARGET_DEVICE),
                target_context: fields.at(peer_copy::TARGET_CONTEXT),
            };
            let transfer = transfer(fields, graph, Some(ends));
            let correlation = fields.at(peer_copy::CORRELATION);
            (transfer, correlation, copy_kinds(fields))
        };
        let [direction, source, target] = kinds;
        // SAFETY: the record begins like a copy.
        unsafe {
            self.add_transfer(fields, transfer, correlation, || {
                copy_name(direction, source, target)
            });
        }
    }

    /// # Safety
    /// The record is a fill.
    unsafe fn read_fill(&mut self, fields: Fields) {
        // SAFETY: a fill has these fields.
        unsafe {
            let graph = Graph {
                id: fields.at(copy::GRAPH),
                node: fields.at(copy::GRAPH_NODE),
            };
            let memory = fields.at::<u16>(fill::MEMORY) as u8;
            let transfer = transfer(fields, graph, None);
            let correlation = fields.at(copy::CORRELATION);
            self.add_transfer(fields, transfer, correlation, || fill_name(memory));
        }
    }

    /// # Safety
    /// The record begins like a copy.
    unsafe fn add_transfer(
        &mut self,
        fields: Fields,
        transfer: Transfer,
        correlation: u32,
        name: impl FnOnce() -> String,
    ) {
        self.note_context(transfer.context, transfer.device);
        // SAFETY: as the caller guarantees.
        let times = unsafe { (fields.at(copy::START), fields.at(copy::END)) };
        if let Some(times) = self.times_of_work(times) {
            let arguments = self.records.arguments.add_transfer(transfer);
            let name = self.name(name());
            let stream = (transfer.device, transfer.stream.cast_signed());
            self.add_work(stream, times, correlation, name, arguments);
        }
    }

    fn add_work(
        &mut self,
        (device, stream): (u32, i32),
        (start_ns, end_ns): (u64, u64),
        correlation: u32,
        name: u32,
        arguments: ArgumentsId,
    ) {
        self.streams.insert((device, stream));
        self.records.list.push(Record {
            start_ns,
            end_ns,
            correlation,
            name,
            place: Place::Stream { device, stream },
            arguments,
        });
    }

    /// # Safety
    /// The record is a call.
    unsafe fn read_call(&mut self, fields: Fields, domain: Domain) {
        // SAFETY: a call has these fields.
        let (number, times, low, high, correlation) = unsafe {
            (
                fields.at(call::NUMBER),
                (fields.at(call::START), fields.at(call::END)),
                fields.at::<u32>(call::THREAD),
                fields.at::<u32>(call::THREAD_HIGH),
                fields.at(call::CORRELATION),
            )
        };
        let thread = if self.has_whole_handles {
            (u64::from(high) << u32::BITS | u64::from(low)).cast_signed()
        } else {
            low.cast_signed().into()
        };
        let Some(name) = self.call_name(domain, number) else {
            return;
        };
        if self.names.graph_launches.contains(&name)
            && !self.end.thread.is_meant_by(thread.cast_unsigned())
        {
            self.records.has_graphs_elsewhere = true;
        }
        if let Some((start_ns, end_ns)) = self.times_of_call(times) {
            self.records.list.push(Record {
                start_ns,
                end_ns,
                correlation,
                name,
                place: Place::Thread(thread),
                arguments: ArgumentsId::None,
            });
        }
    }

    /// # Safety
    /// The record is a synchronization.
    unsafe fn read_wait(&mut self, fields: Fields) {
        // SAFETY: a synchronization has these fields.
        let (times, wait) = unsafe {
            let times = (fields.at(wait::START), fields.at(wait::END));
            let wait = Wait {
                times: (0, 0),
                kind: Synchronization(fields.at(synchronization::TYPE)),
                correlation: fields.at(wait::CORRELATION),
                context: fields.at(wait::CONTEXT),
                stream: fields.at::<u32>(wait::STREAM).cast_signed(),
                event: fields.at(wait::EVENT),
            };
            (times, wait)
        };
        if let Some(times) = self.times_of_call(times) {
            self.waits.push(Wait { times, ..wait });
        }
    }

    /// # Safety
    /// The record is an event.
    unsafe fn read_event(&mut self, fields: Fields) {
        // SAFETY: an event has these fields.
        let (key, at) = unsafe {
            let key = (fields.at(cuda_event::CONTEXT), fields.at(cuda_event::EVENT));
            let stream = fields.at::<u32>(cuda_event::STREAM).cast_signed();
            (key, (fields.at(cuda_event::CORRELATION), stream))
        };
        self.recorded.entry(key).or_default().push(at);
    }

    /// # Safety
    /// The record is work of CUPTI itself.
    unsafe fn read_overhead(&mut self, fields: Fields) {
        // SAFETY: such a record has these fields.
        let (kind, times) = unsafe {
            let times = (fields.at(overhead::START), fields.at(overhead::END));
            (fields.at(overhead::TYPE), times)
        };
        if let Some((start_ns, end_ns)) = self.times_of_call(times) {
            let name = self.name(overhead_name(kind).to_owned());
            self.records.list.push(Record {
                start_ns,
                end_ns,
                correlation: 0,
                name,
                place: Place::Collector,
                arguments: ArgumentsId::None,
            });
        }
    }

    fn note_context(&mut self, context: u32, device: u32) {
        self.devices.entry(context).or_insert(device);
    }

    /// Returns the times of a call, or `None` if it is outside of the collection.
    fn times_of_call(&self, (start, end): (u64, u64)) -> Option<(u64, u64)> {
        if start >= self.end.ticks {
            return None;
        }
        self.times_of_work((start, end))
    }

    /// Returns the times of a record, or `None` if it began before the window or has not ended.
    fn times_of_work(&self, (start, end): (u64, u64)) -> Option<(u64, u64)> {
        if start == 0 || end == 0 {
            return None;
        }
        let since = self.axis.at_ticks(start).0;
        let zero = self.axis.reference_unix_ns();
        let until = self.axis.at_ticks(end.max(start)).0;
        (since > 0).then(|| (zero + since, zero + until))
    }

    fn name(&mut self, name: String) -> u32 {
        let names = &mut self.records.names;
        *self.names.places.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            names.len() as u32 - 1
        })
    }

    /// # Safety
    /// The name is null or a NUL-terminated string.
    unsafe fn kernel_name(&mut self, symbol: *const c_char) -> u32 {
        if let Some(&known) = self.names.kernels.get(&symbol.addr()) {
            return known;
        }
        let text = if symbol.is_null() {
            String::new()
        } else {
            // SAFETY: as the caller guarantees.
            self.interface.demangled(unsafe { CStr::from_ptr(symbol) })
        };
        let name = self.name(text);
        self.names.kernels.insert(symbol.addr(), name);
        name
    }

    fn call_name(&mut self, domain: Domain, number: u32) -> Option<u32> {
        if let Some(&known) = self.names.calls.get(&(domain, number)) {
            return known;
        }
        let shown = self.interface.rules.name(self.interface, domain, number);
        let is_graph_launch = (shown.as_ref()).is_some_and(|name| name.contains("GraphLaunch"));
        let name = shown.map(|name| self.name(name));
        if is_graph_launch {
            self.names.graph_launches.extend(name);
        }
        self.names.calls.insert((domain, number), name);
        name
    }

    /// Completes the synchronizations.
    fn finish(mut self) -> Records {
        for recorded in self.recorded.values_mut() {
            recorded.sort_unstable();
        }
        for wait in std::mem::take(&mut self.waits) {
            let device = self.devices.get(&wait.context).copied().unwrap_or(0);
            if wait.kind.is_stream_wait() && !self.streams.contains(&(device, wait.stream)) {
                continue;
            }
            let waiting = Waiting {
                kind: wait.kind,
                device,
                context: wait.context,
                stream: wait.stream,
                event: wait.event,
                recorded: self.recording_before(&wait),
            };
            let name = self.name(wait.kind.name().to_owned());
            let (start_ns, end_ns) = wait.times;
            let arguments = self.records.arguments.add_synchronization(&waiting);
            self.records.list.push(Record {
                start_ns,
                end_ns,
                correlation: wait.correlation,
                name,
                place: Place::Stream {
                    device,
                    stream: wait.stream,
                },
                arguments,
            });
        }
        self.records
    }

    /// Returns the stream and the correlation id of the last call that recorded the event before a
    /// wait for it, or -1.
    fn recording_before(&self, wait: &Wait) -> (i64, i64) {
        let recorded = self.recorded.get(&(wait.context, wait.event));
        let before = recorded.and_then(|list| {
            let next = list.partition_point(|(correlation, _)| *correlation <= wait.correlation);
            list.get(next.checked_sub(1)?)
        });
        before.map_or((-1, -1), |&(correlation, stream)| {
            (stream.into(), correlation.into())
        })
    }
}

/// Returns the call that a record is about, or `None` if it is about no call.
///
/// # Safety
/// CUPTI wrote the record, by the layout of its version.
pub(super) unsafe fn called(record: *const u8) -> Option<(Domain, u32)> {
    let fields = Fields(record);
    // SAFETY: each record begins with its kind, and a call has a number.
    unsafe {
        let domain = match fields.at::<u32>(0) {
            kind::RUNTIME => Domain::Runtime,
            kind::DRIVER => Domain::Driver,
            _ => return None,
        };
        Some((domain, fields.at(call::NUMBER)))
    }
}

/// # Safety
/// The record begins like a copy.
unsafe fn transfer(fields: Fields, graph: Graph, ends: Option<Ends>) -> Transfer {
    // SAFETY: as the caller guarantees.
    unsafe {
        Transfer {
            device: fields.at(copy::DEVICE),
            context: fields.at(copy::CONTEXT),
            stream: fields.at(copy::STREAM),
            bytes: fields.at(copy::BYTES),
            graph,
            ends,
        }
    }
}

/// Returns the direction of a copy, its source and its target.
///
/// # Safety
/// The record is a copy.
unsafe fn copy_kinds(fields: Fields) -> [u8; 3] {
    // SAFETY: as the caller guarantees.
    unsafe {
        [
            fields.at(copy::DIRECTION),
            fields.at(copy::SOURCE),
            fields.at(copy::TARGET),
        ]
    }
}
