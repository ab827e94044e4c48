//! Draws made-up training runs for the tests of rules. All times are in microseconds.
//!
//! The CPU thread and the streams have a clock each. A kernel begins when its launch has returned
//! and its stream is free, as on a device.

use mindprof_analyze::Analysis;
use mindprof_model::{
    Category, DType, DeviceKind, Event, InputsEncoder, InputsId, Links, LossCause, MemoryRecord,
    Nanos, Part, PassthroughKind, Profile, Sampling, ScopeKind, StackId, StringTable, Thread,
    ThreadId,
};

use crate::advice::{Advice, Finding};
use crate::own_code::OwnCode;

/// The time between the launch of a kernel and its beginning on an idle stream.
const LATENCY: u64 = 5;

/// How long the CPU takes to launch a kernel, and to call the operator around it.
const LAUNCH: u64 = 10;
const OPERATOR: u64 = 30;

/// The profile of a training run while it is drawn.
pub(crate) struct Drawing {
    part: Part,
    events: Vec<(Event, Links, Option<String>)>,
    thread: ThreadId,
    /// The streams, each with the time from which on it is free.
    streams: Vec<(ThreadId, u64)>,
    now: u64,
    stack: StackId,
    operator: u32,
    number: u32,
    inputs: InputsId,
    sequence: Option<u32>,
    allocated: u64,
    reserved: u64,
    device: DeviceKind,
}

/// Draws steps on an NPU: small kernels, and one that `multiply` launches in `aten::mm`.
pub(crate) fn multiplying_on_npu(multiply: impl Fn(&mut Drawing)) -> Profile {
    training(4, |time, _| {
        time.on_npu();
        for _ in 0..10 {
            time.launch("aten::add", "Add", 100);
        }
        time.call("model.py(4): forward", |time| {
            time.operator("aten::mm", &multiply);
        });
    })
}

/// Draws steps, each with its number.
pub(crate) fn training(steps: u64, mut draw: impl FnMut(&mut Drawing, u64)) -> Profile {
    let mut time = empty();
    for step in 0..steps {
        time.range(&format!("ProfilerStep#{step}"), |time| draw(time, step));
    }
    time.finish()
}

/// Draws a program without steps.
pub(crate) fn program(draw: impl FnOnce(&mut Drawing)) -> Profile {
    let mut time = empty();
    draw(&mut time);
    time.finish()
}

fn empty() -> Drawing {
    let mut part = Part::new();
    let thread = part.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    Drawing {
        part,
        events: Vec::new(),
        thread,
        streams: Vec::new(),
        now: 100,
        stack: StackId::NONE,
        operator: 0,
        number: 0,
        inputs: InputsId::NONE,
        sequence: None,
        allocated: 0,
        reserved: 0,
        device: DeviceKind::Cuda,
    }
}

impl Drawing {
    /// Lets time pass on the CPU.
    pub(crate) fn idle(&mut self, micros: u64) {
        self.now += micros;
    }

    /// Draws a range.
    pub(crate) fn range(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.scope(Category::Annotation, name, inside);
    }

    /// Draws the call of a Python function.
    pub(crate) fn call(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        let outer = self.stack;
        self.scope(Category::PythonFunction, name, |time| {
            let frame = time.part.strings.intern(name);
            time.stack = time.part.stacks.push(outer, frame);
            inside(time);
        });
        self.stack = outer;
    }

    /// Draws the call of a Python function that another thread makes from now on.
    pub(crate) fn beside(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        let (thread, now) = (self.thread, self.now);
        self.thread = self.part.add_thread(Thread {
            process: 1,
            native: 1_000 + now,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        });
        self.call(name, inside);
        (self.thread, self.now) = (thread, now);
    }

    /// Draws the call of a Python function that calls nothing.
    pub(crate) fn python(&mut self, name: &str, micros: u64) {
        self.call(name, |time| time.idle(micros));
    }

    /// Draws an operator around others.
    pub(crate) fn operator(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.scope(Category::Operator, name, inside);
    }

    /// Draws an operator that does its work on the CPU.
    pub(crate) fn op(&mut self, name: &str, micros: u64) {
        self.operator(name, |time| time.idle(micros));
    }

    /// Draws an operator that launches one kernel.
    pub(crate) fn launch(&mut self, name: &str, kernel: &str, micros: u64) {
        self.operator(name, |time| {
            time.idle((OPERATOR - LAUNCH) / 2);
            time.kernel(kernel, micros);
            time.idle((OPERATOR - LAUNCH) / 2);
        });
    }

    /// Draws a healthy piece of work: operators that launch large kernels.
    pub(crate) fn compute(&mut self, kernels: usize, micros: u64) {
        for _ in 0..kernels {
            self.launch("aten::mm", "bf16_gemm", micros);
        }
    }

    /// Draws the backward node of an operator with this sequence number.
    pub(crate) fn node(&mut self, name: &str, sequence: u32, inside: impl FnOnce(&mut Self)) {
        let slot = self.events.len();
        self.sequence = Some(sequence);
        self.operator(name, inside);
        self.events[slot].0.scope = ScopeKind::Backward;
    }

    /// Launches a kernel on the first stream.
    pub(crate) fn kernel(&mut self, name: &str, micros: u64) {
        self.device_work("cudaLaunchKernel", name, micros, 0);
    }

    /// Launches a kernel on one of the streams.
    pub(crate) fn kernel_on(&mut self, stream: usize, name: &str, micros: u64) {
        self.device_work("cudaLaunchKernel", name, micros, stream);
    }

    /// Launches a kernel with further facts about it, as JSON fields.
    pub(crate) fn kernel_with(&mut self, name: &str, micros: u64, facts: &str) {
        let slot = self.device_work("cudaLaunchKernel", name, micros, 0);
        self.events[slot].2 = Some(facts.to_owned());
    }

    /// Launches a kernel with inputs and further facts about it, as JSON fields.
    pub(crate) fn kernel_of(
        &mut self,
        name: &str,
        micros: u64,
        facts: &str,
        dtype: DType,
        shapes: &[&[usize]],
    ) {
        let slot = self.device_work("cudaLaunchKernel", name, micros, 0);
        self.events[slot].2 = Some(facts.to_owned());
        self.takes(dtype, shapes);
        self.events[slot].0.inputs = std::mem::replace(&mut self.inputs, InputsId::NONE);
    }

    /// Draws a kernel whose launch was not recorded, from now on.
    pub(crate) fn unlaunched_kernel(&mut self, name: &str, micros: u64) {
        let slot = self.device_work("cudaLaunchKernel", name, micros, 0);
        self.events[slot - 1].1.correlation = 0;
        self.events[slot].1 = Links::default();
        self.now += micros;
    }

    /// Launches a captured graph of one kernel.
    pub(crate) fn graph(&mut self, name: &str, micros: u64) {
        self.device_work("cudaGraphLaunch", name, micros, 0);
    }

    /// Draws a range of the device's from now on.
    pub(crate) fn device_range(&mut self, name: &str, micros: u64) {
        let (thread, _) = self.streams[0];
        let name = self.part.strings.intern(name);
        let (start, duration) = (Nanos(self.now * 1_000), Nanos(micros * 1_000));
        let event = Event::new(Category::DeviceAnnotation, name, thread, start, duration);
        self.events.push((event, Links::default(), None));
    }

    /// Launches a kernel and returns only when it is done.
    pub(crate) fn blocking_kernel(&mut self, name: &str, micros: u64) {
        let slot = self.device_work("cudaLaunchKernel", name, micros, 0);
        let end = self.streams[0].1;
        let call = &mut self.events[slot - 1].0;
        call.duration = Nanos(end * 1_000) - call.start;
        self.now = self.now.max(end);
    }

    /// Copies memory in an operator. The CPU waits for copies of pageable memory.
    pub(crate) fn copy(&mut self, operator: &str, copy: &str, micros: u64, bytes: u64) {
        self.operator(operator, |time| {
            let slot = time.device_work("cudaMemcpyAsync", copy, micros, 0);
            time.events[slot].2 = Some(format!("\"bytes\": {bytes}"));
            if copy.contains("Pageable") {
                let end = time.streams[0].1;
                let call = &mut time.events[slot - 1].0;
                call.duration = Nanos(end * 1_000) - call.start;
                time.now = time.now.max(end);
            }
        });
    }

    /// Reads a number of the device's, as `.item()` does.
    pub(crate) fn item(&mut self) {
        self.operator("aten::item", |time| {
            time.operator("aten::_local_scalar_dense", |time| {
                time.device_work("cudaMemcpyAsync", "Memcpy DtoH (Device -> Pinned)", 2, 0);
                time.synchronize();
            });
        });
    }

    /// Waits for the device.
    pub(crate) fn synchronize(&mut self) {
        let done = self.streams.iter().map(|&(_, free)| free).max();
        let until = done.map_or(0, |done| done.saturating_sub(self.now));
        self.runtime("cudaStreamSynchronize", until + 2);
    }

    /// Draws a call of the device's runtime.
    pub(crate) fn runtime(&mut self, name: &str, micros: u64) {
        self.scope(Category::Runtime, name, |time| time.idle(micros));
    }

    /// Gives the next operator inputs.
    pub(crate) fn takes(&mut self, dtype: DType, shapes: &[&[usize]]) {
        let mut encoder = InputsEncoder::default();
        for dims in shapes {
            let mut strides = vec![1_isize; dims.len()];
            for place in (1..dims.len()).rev() {
                strides[place - 1] = strides[place] * dims[place] as isize;
            }
            encoder.tensor(dtype, dims, &strides);
        }
        self.inputs = self.part.inputs.intern(encoder.words());
    }

    /// Gives the next operator a sequence number: it is part of a graph.
    pub(crate) fn number(&mut self, sequence: u32) {
        self.sequence = Some(sequence);
    }

    /// Allocates memory of the device, or frees it.
    pub(crate) fn allocate(&mut self, address: u64, bytes: i64) {
        self.allocated = self.allocated.saturating_add_signed(bytes);
        self.reserved = self.reserved.max(self.allocated);
        self.part.add_memory(MemoryRecord {
            time: Nanos(self.now * 1_000),
            address,
            bytes,
            total_allocated: self.allocated,
            total_reserved: self.reserved,
            thread: self.thread,
            stack: self.stack,
            device: DeviceKind::Cuda,
            device_index: 0,
        });
    }

    /// Lets the allocator hold this much memory from now on.
    pub(crate) fn reserve(&mut self, bytes: u64) {
        self.reserved = bytes;
    }

    /// Notes a fact about the profile.
    pub(crate) fn note(&mut self, key: &str, value: &str) {
        self.part.metadata.set(key, value);
    }

    /// Lets Python calls be slices between samples, named with the line that ran.
    pub(crate) fn sampled(&mut self) {
        let sampling = Sampling {
            interval_us: 10_000,
            samples: 100,
            main_samples: 100,
            dropped: 0,
        };
        sampling.write(&mut self.part.metadata);
    }

    /// Counts lost events.
    pub(crate) fn lose(&mut self, cause: LossCause, events: u64) {
        self.part.add_loss(cause, events);
    }

    /// Lets the device be an NPU. Its streams are created at their first kernel.
    pub(crate) fn on_npu(&mut self) {
        self.device = DeviceKind::PrivateUse1;
        self.note("privateuse1_backend", "\"npu\"");
    }

    /// Notes the device: an H200.
    pub(crate) fn on_h200(&mut self) {
        let card =
            r#"[{"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150000000000, "numSms": 132}]"#;
        self.note("deviceProperties", card);
    }

    fn device_work(&mut self, call: &str, name: &str, micros: u64, stream: usize) -> usize {
        self.number += 1;
        let correlation = self.number;
        self.scope(Category::Runtime, call, |time| time.idle(LAUNCH));
        let call = self.events.len() - 1;
        self.events[call].1.correlation = correlation;
        while self.streams.len() <= stream {
            let thread = self.part.add_thread(Thread {
                process: 0,
                native: 7 + self.streams.len() as u64,
                name: StringTable::EMPTY,
                device: self.device,
            });
            self.streams.push((thread, 0));
        }
        let (thread, free) = self.streams[stream];
        let begin = (self.now + LATENCY).max(free + 1);
        self.streams[stream].1 = begin + micros;
        let name = self.part.strings.intern(name);
        let (start, duration) = (Nanos(begin * 1_000), Nanos(micros * 1_000));
        let event = Event::new(Category::Kernel, name, thread, start, duration);
        let links = Links::new(self.operator, correlation);
        self.events.push((event, links, None));
        self.events.len() - 1
    }

    fn scope(&mut self, category: Category, name: &str, inside: impl FnOnce(&mut Self)) {
        let name = self.part.strings.intern(name);
        let start = Nanos(self.now * 1_000);
        let mut event = Event::new(category, name, self.thread, start, Nanos::ZERO);
        event.stack = self.stack;
        let outer = self.operator;
        let mut links = Links::new(self.operator, 0);
        if category == Category::Operator {
            self.number += 1;
            self.operator = self.number;
            links.external = self.number;
            event.inputs = std::mem::replace(&mut self.inputs, InputsId::NONE);
            event.set_sequence(self.sequence.take());
        }
        let slot = self.events.len();
        self.events.push((event, links, None));
        inside(self);
        self.events[slot].0.duration = Nanos(self.now * 1_000) - start;
        self.operator = outer;
    }

    fn finish(mut self) -> Profile {
        for (index, (event, links, facts)) in self.events.into_iter().enumerate() {
            self.part.add_linked_event(event, links);
            if let Some(facts) = facts {
                let text = self.part.passthrough.texts.add(&facts);
                let text = text.expect("texts of tests are short");
                let kind = PassthroughKind::Arguments;
                self.part.passthrough.set(kind, index, text);
            }
        }
        let profile = self.part.into_profile();
        profile.expect("a drawing only refers to what it added")
    }
}

/// Applies all rules to a profile.
pub(crate) fn advise(profile: Profile) -> Advice {
    Advice::build(&Analysis::build(profile), &OwnCode::default())
}

/// Returns what a rule says about a profile: `found`, `merged` into another rule's finding, `clean`
/// or `unknown`.
pub(crate) fn outcome(profile: Profile, rule: &str) -> &'static str {
    let advice = advise(profile);
    if advice.findings.iter().any(|found| found.rule.id == rule) {
        "found"
    } else if (advice.findings.iter()).any(|found| found.merged.contains(&rule)) {
        "merged"
    } else if advice.clean.contains(&rule) {
        "clean"
    } else if advice.unknown.iter().any(|unknown| unknown.rule == rule) {
        "unknown"
    } else {
        "absent"
    }
}

/// Returns the finding of a rule.
pub(crate) fn found(profile: Profile, rule: &str) -> Finding {
    let advice = advise(profile);
    let all: Vec<_> = (advice.findings.iter())
        .map(|found| (found.rule.id, found.share, found.merged.clone()))
        .collect();
    let mut findings = advice.findings.into_iter();
    let found = findings.find(|found| found.rule.id == rule);
    found.unwrap_or_else(|| panic!("{rule} is not among {all:?}"))
}

/// Returns the function that a finding blames.
pub(crate) fn blamed(finding: &Finding) -> &str {
    let place = finding.place.as_ref();
    place.map_or("nobody", |place| place.function.as_str())
}

/// Asserts that a finding saves about this part of the step.
#[track_caller]
pub(crate) fn assert_saves(finding: &Finding, share: f64) {
    let (low, high) = (share * 0.8, share * 1.25);
    let found = finding.share;
    assert!(
        low <= found && found <= high,
        "{found} is not about {share}"
    );
}
