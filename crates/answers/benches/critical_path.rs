//! Measures how long replays and the critical path take on a profile of a million events: a training
//! loop that calls Python functions and operators, launches kernels and synchronizes.

use divan::Bencher;
use mindprof_analyze::Analysis;
use mindprof_answers::{Changes, CriticalPath, OwnCode, PathOptions, Prediction, Replay, WhatIf};
use mindprof_model::{
    Category, DeviceKind, Event, Links, Nanos, Part, StringTable, Thread, ThreadId,
};

const EVENTS: usize = 1_000_000;
const LAYERS: usize = 200;

fn main() {
    divan::main();
}

/// Draws steps until there are enough events.
struct Drawing {
    part: Part,
    host: ThreadId,
    stream: ThreadId,
    now: u64,
    device: u64,
    correlation: u32,
}

impl Drawing {
    fn event(&mut self, category: Category, name: &str, start: u64, length: u64, correlation: u32) {
        let name = self.part.strings.intern(name);
        let thread = if category == Category::Kernel {
            self.stream
        } else {
            self.host
        };
        let event = Event::new(category, name, thread, Nanos(start), Nanos(length));
        let mut links = Links::default();
        links.correlation = correlation;
        self.part.add_linked_event(event, links);
    }

    /// Each layer is a call with an operator in it, which launches a kernel.
    fn step(&mut self, number: usize) {
        let begin = self.now;
        for layer in 0..LAYERS {
            let call = format!("model.py({layer}): forward");
            self.event(Category::PythonFunction, &call, self.now, 30_000, 0);
            self.event(
                Category::Operator,
                "aten::addmm",
                self.now + 5_000,
                20_000,
                0,
            );
            self.correlation += 1;
            let launch = self.now + 10_000;
            self.event(
                Category::Runtime,
                "cudaLaunchKernel",
                launch,
                5_000,
                self.correlation,
            );
            let kernel = self.device.max(launch + 6_000);
            let length = 15_000 + 200 * (layer as u64 % 100);
            self.event(Category::Kernel, "gemm", kernel, length, self.correlation);
            self.device = kernel + length + 1_000;
            self.now += 32_000;
        }
        let waiting = self.device.saturating_sub(self.now).max(5_000);
        self.event(
            Category::Runtime,
            "cudaDeviceSynchronize",
            self.now,
            waiting,
            0,
        );
        self.now += waiting + 2_000;
        let name = format!("ProfilerStep#{number}");
        self.event(Category::Annotation, &name, begin, self.now - begin, 0);
    }
}

fn analysis() -> Analysis {
    let mut part = Part::new();
    let mut thread = |process, native, device| {
        part.add_thread(Thread {
            process,
            native,
            name: StringTable::EMPTY,
            device,
        })
    };
    let (host, stream) = (
        thread(7, 7, DeviceKind::Cpu),
        thread(0, 1, DeviceKind::Cuda),
    );
    let mut drawing = Drawing {
        part,
        host,
        stream,
        now: 0,
        device: 0,
        correlation: 0,
    };
    for number in 0.. {
        if drawing.part.len() >= EVENTS {
            break;
        }
        drawing.step(number);
    }
    Analysis::build(drawing.part.into_profile().expect("ids are in range"))
}

#[divan::bench(sample_count = 10)]
fn preparing_a_replay(bencher: Bencher) {
    let analysis = analysis();
    bencher.bench_local(|| Replay::build(&analysis));
}

#[divan::bench(sample_count = 10)]
fn one_replay(bencher: Bencher) {
    let analysis = analysis();
    let replay = Replay::build(&analysis).expect("there is host work");
    let change = WhatIf::none(&analysis);
    bencher.bench_local(|| replay.with(&change));
}

#[divan::bench(sample_count = 10)]
fn critical_path(bencher: Bencher) {
    let analysis = analysis();
    let options = PathOptions {
        rows: 5,
        ..PathOptions::default()
    };
    bencher.bench_local(|| CriticalPath::build(&analysis, &OwnCode::default(), options));
}

#[divan::bench(sample_count = 10)]
fn what_if(bencher: Bencher) {
    let analysis = analysis();
    let changes = Changes {
        scales: vec![("aten::addmm".into(), 0.5)],
        no_synchronization: true,
        ..Changes::default()
    };
    bencher.bench_local(|| Prediction::build(&analysis, &changes));
}
