//! Measures how long the use of devices takes to describe, on a profile of a million events: steps
//! with operators, launches, kernels on three streams, copies and collectives.

use divan::Bencher;
use mindprof_analyze::Analysis;
use mindprof_answers::Device;
use mindprof_model::{
    Category, DType, DeviceKind, Event, InputsEncoder, InputsId, Links, Nanos, Part,
    PassthroughKind, StringTable, Thread, ThreadId,
};

const EVENTS: [usize; 2] = [250_000, 1_000_000];
const LAUNCHES_PER_STEP: usize = 1_000;

fn main() {
    divan::main();
}

struct Drawing {
    part: Part,
    cpu: ThreadId,
    streams: [ThreadId; 3],
    inputs: InputsId,
    correlation: u32,
    now: u64,
    device: u64,
}

impl Drawing {
    fn new() -> Self {
        let mut part = Part::new();
        let mut thread = |process, native, device| {
            part.add_thread(Thread {
                process,
                native,
                name: StringTable::EMPTY,
                device,
            })
        };
        let cpu = thread(7, 7, DeviceKind::Cpu);
        let streams = [7, 20, 21].map(|stream| thread(0, stream, DeviceKind::Cuda));
        let mut encoder = InputsEncoder::default();
        for _ in 0..2 {
            encoder.tensor(DType::BF16, &[512, 512], &[512, 1]);
        }
        let inputs = part.inputs.intern(encoder.words());
        let properties = r#"[{"id":0,"name":"NVIDIA H200","totalGlobalMem":150109880320}]"#;
        part.metadata.set("deviceProperties", properties);
        Self {
            part,
            cpu,
            streams,
            inputs,
            correlation: 0,
            now: 0,
            device: 0,
        }
    }

    fn event(
        &mut self,
        category: Category,
        name: &str,
        thread: ThreadId,
        span: (u64, u64),
    ) -> Event {
        let name = self.part.strings.intern(name);
        Event::new(category, name, thread, Nanos(span.0), Nanos(span.1))
    }

    /// Adds an operator, the call that it launches by, and the work on the device.
    fn launch(&mut self, index: usize) {
        self.correlation += 1;
        let (operator, work, stream) = match index % 20 {
            7 => ("aten::copy_", "Memcpy HtoD (Pinned -> Device)", 1),
            13 => (
                "c10d::allreduce_",
                "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
                2,
            ),
            other => [
                ("aten::mm", "nvjet_sm90_tst_128x64", 0),
                ("aten::sort", "sort", 0),
            ][other % 2],
        };
        let links = Links::new(self.correlation, self.correlation);
        let mut event = self.event(Category::Operator, operator, self.cpu, (self.now, 9_000));
        event.inputs = self.inputs;
        self.part
            .add_linked_event(event, Links::new(self.correlation, 0));
        let call = (self.now + 2_000, 5_000);
        let event = self.event(Category::Runtime, "cudaLaunchKernel", self.cpu, call);
        self.part.add_linked_event(event, links);
        self.now += 10_000;
        self.device = self.device.max(self.now) + 500;
        let length = 1_000 + 97 * (index as u64 % 150);
        let event = self.event(
            Category::Kernel,
            work,
            self.streams[stream],
            (self.device, length),
        );
        self.part.add_linked_event(event, links);
        let arguments = format!(
            "\"queued\":0,\"device\":0,\"context\":1,\"stream\":7,\"registers per thread\":40,\
             \"shared memory\":400,\"blocks per SM\":{}.7407,\"warps per SM\":75.85,\
             \"grid\":[512,1,1],\"block\":[512,1,1],\"est. achieved occupancy %\":{}",
            index % 8,
            index % 100,
        );
        if let Some(text) = self.part.passthrough.texts.add(&arguments) {
            let at = self.part.len() - 1;
            (self.part.passthrough).set(PassthroughKind::Arguments, at, text);
        }
        if stream == 0 {
            self.device += length;
        }
    }

    fn step(&mut self, number: usize) {
        let begin = self.now;
        for index in 0..LAUNCHES_PER_STEP {
            self.launch(index);
        }
        let call = (self.now, 20_000);
        let event = self.event(Category::Runtime, "cudaStreamSynchronize", self.cpu, call);
        self.part.add_event(event);
        self.now = self.device.max(self.now + 20_000);
        let name = format!("ProfilerStep#{number}");
        let event = self.event(
            Category::Annotation,
            &name,
            self.cpu,
            (begin, self.now - begin),
        );
        self.part.add_event(event);
    }
}

fn analysis(events: usize) -> Analysis {
    let mut drawing = Drawing::new();
    let mut number = 0;
    while drawing.part.len() < events {
        drawing.step(number);
        number += 1;
    }
    Analysis::build(drawing.part.into_profile().expect("ids are in range"))
}

#[divan::bench(args = EVENTS, sample_count = 10)]
fn device(bencher: Bencher, events: usize) {
    let analysis = analysis(events);
    bencher.bench_local(|| Device::build(&analysis));
}
