//! Measures how long functions, lines and modules take on a profile of a million events: a training
//! loop with Python calls, operators, kernels and backward nodes.

use divan::Bencher;
use mindprof_analyze::Analysis;
use mindprof_answers::{Functions, ModuleRows, Modules, OwnCode, Work};
use mindprof_model::{
    Category, DeviceKind, Event, Nanos, Part, ScopeKind, StackId, StringTable, Thread, ThreadId,
};

const EVENTS: usize = 1_000_000;
const LAYERS: usize = 40;

fn main() {
    divan::main();
}

/// Draws steps of a model with some layers until there are enough events.
struct Drawing {
    part: Part,
    thread: ThreadId,
    now: u64,
}

impl Drawing {
    fn event(&mut self, category: Category, name: &str, stack: StackId, length: u64) -> Event {
        let name = self.part.strings.intern(name);
        let mut event = Event::new(category, name, self.thread, Nanos(self.now), Nanos(length));
        event.stack = stack;
        event
    }

    fn push(&mut self, stack: StackId, frame: &str) -> StackId {
        let frame = self.part.strings.intern(frame);
        self.part.stacks.push(stack, frame)
    }

    fn step(&mut self, sequence: u32) {
        let step = self.push(StackId::NONE, "train.py(90): step");
        for layer in 0..LAYERS {
            let line = format!("model.py({}): forward", 10 + layer);
            let inside = self.push(step, &line);
            let module = format!("nn.Module: Linear_{layer}");
            let call = self.event(Category::PythonFunction, &module, inside, 90);
            self.part.add_event(call);
            let inside = self.push(inside, &module);
            let inside = self.push(inside, "torch/nn/modules/linear.py(134): forward");
            for part in 0..4 {
                self.now += 10;
                let mut op = self.event(Category::Operator, ["a", "b", "c", "d"][part], inside, 8);
                op.set_sequence(Some(sequence + layer as u32));
                self.part.add_event(op);
            }
            self.now += 100;
        }
        for layer in (0..LAYERS).rev() {
            self.now += 20;
            let mut node = self.event(Category::Operator, "AddmmBackward0", step, 15);
            node.scope = ScopeKind::Backward;
            node.set_sequence(Some(sequence + layer as u32));
            self.part.add_event(node);
        }
    }
}

fn analysis() -> Analysis {
    let mut part = Part::new();
    let thread = part.add_thread(Thread {
        process: 7,
        native: 7,
        name: StringTable::EMPTY,
        device: DeviceKind::Cpu,
    });
    let mut drawing = Drawing {
        part,
        thread,
        now: 0,
    };
    let mut sequence = 1;
    while drawing.part.len() < EVENTS {
        drawing.step(sequence);
        sequence += LAYERS as u32;
        drawing.now += 100;
    }
    let analysis = Analysis::build(drawing.part.into_profile().expect("ids are in range"));
    // The stacks are found once for everything that asks for them.
    Functions::build(&analysis, &Work::of(&analysis), &OwnCode::default());
    analysis
}

#[divan::bench]
fn functions_and_lines(bencher: Bencher) {
    let analysis = analysis();
    let work = Work::of(&analysis);
    bencher.bench_local(|| Functions::build(&analysis, &work, &OwnCode::default()));
}

#[divan::bench]
fn functions_and_lines_with_stacks(bencher: Bencher) {
    let analysis = analysis();
    let work = Work::of(&analysis);
    bencher
        .with_inputs(|| Analysis::build(analysis.profile().clone()))
        .bench_local_values(|fresh| Functions::build(&fresh, &work, &OwnCode::default()));
}

#[divan::bench]
fn modules(bencher: Bencher) {
    let analysis = analysis();
    let work = Work::of(&analysis);
    bencher.bench_local(|| Modules::build(&analysis, &work, ModuleRows::Classes));
}
