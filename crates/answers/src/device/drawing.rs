//! Draws profiles with devices for tests. Times are microseconds.

use mindprof_analyze::Analysis;
use mindprof_model::{
    Category, DType, DeviceKind, Event, InputsEncoder, Links, Nanos, Part, PassthroughKind,
    StringTable, Thread, ThreadId,
};
use rustc_hash::FxHashMap;

use super::Device;

/// A profile in the making: one CPU thread and any number of devices and streams.
pub(super) struct Drawing {
    part: Part,
    cpu: ThreadId,
    streams: FxHashMap<(u64, u64), ThreadId>,
    /// The last correlation id and the last external id.
    correlation: u32,
    external: u32,
}

/// A span of time, as a begin and an end.
pub(super) type Span = (u64, u64);

impl Drawing {
    pub(super) fn new() -> Self {
        let mut part = Part::new();
        let cpu = part.add_thread(Thread {
            process: 100,
            native: 100,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        });
        Self {
            part,
            cpu,
            streams: FxHashMap::default(),
            correlation: 0,
            external: 0,
        }
    }

    /// Adds an event of the CPU.
    pub(super) fn cpu(&mut self, category: Category, name: &str, span: Span) {
        let event = self.event(category, name, self.cpu, span);
        self.part.add_event(event);
    }

    /// Continues with another CPU thread.
    pub(super) fn thread(&mut self, native: u64) {
        self.cpu = self.part.add_thread(Thread {
            process: 100,
            native,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        });
    }

    /// Adds a step.
    pub(super) fn step(&mut self, number: u64, span: Span) {
        self.cpu(
            Category::Annotation,
            &format!("ProfilerStep#{number}"),
            span,
        );
    }

    /// Adds a call of the runtime that launches nothing.
    pub(super) fn call(&mut self, name: &str, span: Span) {
        self.cpu(Category::Runtime, name, span);
    }

    /// Adds work of device 0 and the call that launched it.
    pub(super) fn launched(&mut self, call: Span, stream: u64, name: &str, span: Span) {
        self.correlation += 1;
        let links = Links::new(self.external, self.correlation);
        let event = self.event(Category::Runtime, "cudaLaunchKernel", self.cpu, call);
        self.part.add_linked_event(event, links);
        self.again(stream, name, span);
    }

    /// Adds further work of the last launch.
    pub(super) fn again(&mut self, stream: u64, name: &str, span: Span) {
        let links = Links::new(self.external, self.correlation);
        let stream = self.stream(0, stream);
        let event = self.event(Category::Kernel, name, stream, span);
        self.part.add_linked_event(event, links);
    }

    /// Adds work whose launch was not recorded.
    pub(super) fn work(&mut self, (device, stream): (u64, u64), name: &str, span: Span) {
        self.on_stream(Category::Kernel, (device, stream), name, span);
    }

    /// Adds something else on a stream's track.
    pub(super) fn on_stream(
        &mut self,
        category: Category,
        (device, stream): (u64, u64),
        name: &str,
        span: Span,
    ) {
        let stream = self.stream(device, stream);
        let event = self.event(category, name, stream, span);
        self.part.add_event(event);
    }

    /// Adds raw arguments to the last event.
    pub(super) fn arguments(&mut self, json: &str) {
        let text = self.part.passthrough.texts.add(json).unwrap();
        let index = self.part.len() - 1;
        (self.part.passthrough).set(PassthroughKind::Arguments, index, text);
    }

    /// Adds an operator on matrices of these shapes. Work that follows belongs to it.
    pub(super) fn operator(&mut self, name: &str, span: Span, dtype: DType, shapes: &[[usize; 2]]) {
        let mut encoder = InputsEncoder::default();
        for shape in shapes {
            encoder.tensor(dtype, shape, &[shape[1] as isize, 1]);
        }
        let mut event = self.event(Category::Operator, name, self.cpu, span);
        event.inputs = self.part.inputs.intern(encoder.words());
        self.external += 1_000;
        self.part
            .add_linked_event(event, Links::new(self.external, 0));
    }

    /// Sets the model of device 0.
    pub(super) fn model(&mut self, name: &str) {
        let json = format!("[{{\"id\":0,\"name\":\"{name}\",\"totalGlobalMem\":42949672960}}]");
        self.part.metadata.set("deviceProperties", json);
    }

    /// Ends the recording at a time, unless an event ends later.
    pub(super) fn until(&mut self, end: u64) {
        self.part.span = Nanos(1_000 * end);
    }

    pub(super) fn analysis(self) -> Analysis {
        Analysis::build(self.part.into_profile().unwrap())
    }

    pub(super) fn device(self) -> Device {
        Device::build(&self.analysis())
    }

    fn stream(&mut self, device: u64, stream: u64) -> ThreadId {
        let part = &mut self.part;
        *self.streams.entry((device, stream)).or_insert_with(|| {
            part.add_thread(Thread {
                process: device,
                native: stream,
                name: StringTable::EMPTY,
                device: DeviceKind::Cuda,
            })
        })
    }

    fn event(&mut self, category: Category, name: &str, thread: ThreadId, span: Span) -> Event {
        let name = self.part.strings.intern(name);
        let (start, end) = (Nanos(1_000 * span.0), Nanos(1_000 * span.1));
        Event::new(category, name, thread, start, end - start)
    }
}
