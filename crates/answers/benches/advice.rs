//! Measures how long all rules together take on a profile of a million events: a training loop with
//! Python calls, modules, operators with shapes, launches, kernels and backward nodes.

use divan::Bencher;
use mindprof_analyze::Analysis;
use mindprof_answers::{Advice, OwnCode};
use mindprof_model::{
    Category, DType, DeviceKind, Event, InputsEncoder, InputsId, Links, Nanos, Part, ScopeKind,
    StackId, StringTable, Thread, ThreadId,
};

const EVENTS: usize = 1_000_000;
const LAYERS: usize = 40;

fn main() {
    divan::main();
}

/// Draws steps of a model with some layers until there are enough events.
struct Drawing {
    part: Part,
    host: ThreadId,
    stream: ThreadId,
    inputs: InputsId,
    now: u64,
    free: u64,
    number: u32,
}

impl Drawing {
    fn event(&mut self, category: Category, name: &str, stack: StackId, length: u64) -> Event {
        let name = self.part.strings.intern(name);
        let mut event = Event::new(category, name, self.host, Nanos(self.now), Nanos(length));
        event.stack = stack;
        event
    }

    fn push(&mut self, stack: StackId, frame: &str) -> StackId {
        let frame = self.part.strings.intern(frame);
        self.part.stacks.push(stack, frame)
    }

    /// Draws an operator of 20 us that launches a kernel of 15 us.
    fn operator(&mut self, name: &str, stack: StackId, sequence: u32, scope: ScopeKind) {
        self.number += 1;
        let mut event = self.event(Category::Operator, name, stack, 20_000);
        event.set_sequence(Some(sequence));
        event.inputs = self.inputs;
        event.scope = scope;
        let links = Links::new(self.number, 0);
        self.part.add_linked_event(event, links);
        self.now += 5_000;
        let links = Links::new(self.number, self.number);
        let launch = self.event(Category::Runtime, "cudaLaunchKernel", stack, 10_000);
        self.part.add_linked_event(launch, links);
        let kernel = self.part.strings.intern("void gemm_bf16<128>");
        let begin = (self.now + 4_000).max(self.free);
        self.free = begin + 15_000;
        let (begin, length) = (Nanos(begin), Nanos(15_000));
        let kernel = Event::new(Category::Kernel, kernel, self.stream, begin, length);
        self.part.add_linked_event(kernel, links);
        self.now += 16_000;
    }

    fn step(&mut self, step: u32) {
        let begin = self.now;
        let name = format!("ProfilerStep#{step}");
        let stack = self.push(StackId::NONE, "train.py(90): step");
        let sequence = step * 1_000;
        for layer in 0..LAYERS {
            let inside = self.push(stack, &format!("model.py({}): forward", 10 + layer));
            let module = format!("nn.Module: Linear_{layer}");
            let call = self.event(Category::PythonFunction, &module, inside, 86_000);
            self.part.add_linked_event(call, Links::default());
            let inside = self.push(inside, &module);
            for part in ["aten::mm", "aten::add", "aten::mul", "aten::gelu"] {
                self.operator(part, inside, sequence + layer as u32, ScopeKind::Function);
            }
            self.now += 4_000;
        }
        for layer in (0..LAYERS).rev() {
            let number = sequence + layer as u32;
            self.operator("AddmmBackward0", stack, number, ScopeKind::Backward);
        }
        let length = self.now - begin;
        let name = self.part.strings.intern(&name);
        let (begin, length) = (Nanos(begin), Nanos(length));
        let range = Event::new(Category::Annotation, name, self.host, begin, length);
        self.part.add_linked_event(range, Links::default());
        self.now += 1_000;
    }
}

fn analysis() -> Analysis {
    let mut part = Part::new();
    let thread = |process, native, device| Thread {
        process,
        native,
        name: StringTable::EMPTY,
        device,
    };
    let host = part.add_thread(thread(7, 7, DeviceKind::Cpu));
    let stream = part.add_thread(thread(0, 7, DeviceKind::Cuda));
    let mut encoder = InputsEncoder::default();
    encoder.tensor(DType::BF16, &[1024, 1024], &[1024, 1]);
    encoder.tensor(DType::BF16, &[1024, 1024], &[1024, 1]);
    let inputs = part.inputs.intern(encoder.words());
    let mut drawing = Drawing {
        part,
        host,
        stream,
        inputs,
        now: 0,
        free: 0,
        number: 0,
    };
    let mut step = 0;
    while drawing.part.len() < EVENTS {
        drawing.step(step);
        step += 1;
    }
    Analysis::build(drawing.part.into_profile().expect("ids are in range"))
}

#[divan::bench]
fn advice(bencher: Bencher) {
    let analysis = analysis();
    bencher.bench_local(|| Advice::build(&analysis, &OwnCode::default()));
}
