//! Measures the cost of a recorded scope against a floor in the same run.
//!
//! The floor is the least that any recorder has to do: read the clock twice and append 32 bytes to
//! a warm buffer. The blocks of all contestants alternate, so that a noisy machine disturbs them
//! alike. Compare ratios of medians, not times.

#![expect(
    clippy::print_stdout,
    reason = "a benchmark reports on standard output"
)]

use std::hint::black_box;
use std::time::Instant;

use mindprof_record::{Options, Session, Site, scope, ticks};

const BLOCKS: usize = 41;
const SCOPES: usize = 200_000;

static SITE: Site = Site::operator("op");

fn main() {
    let mut ring = vec![[0_u64; 4]; 1024];
    let mut contestants: [Contestant<'_>; 5] = [
        Contestant::new("empty body", Box::new(|| time(|_| ()))),
        Contestant::new("scope, off", Box::new(|| time(|_| drop(scope(&SITE))))),
        Contestant::new("floor", Box::new(move || floor(&mut ring))),
        Contestant::new(
            "scope, on, recycled memory",
            Box::new(|| recorded(Memory::Recycled)),
        ),
        Contestant::new(
            "scope, on, fresh memory",
            Box::new(|| recorded(Memory::Fresh)),
        ),
    ];
    for _ in 0..BLOCKS {
        for contestant in &mut contestants {
            let nanoseconds = (contestant.block)();
            contestant.samples.push(nanoseconds);
        }
    }
    let medians = contestants.each_mut().map(Contestant::median);
    for (contestant, median) in contestants.iter().zip(medians) {
        println!("{:<28}{median:>8.2} ns", contestant.name);
    }
    let [empty, off, floor, recycled, fresh] = medians;
    println!(
        "\noff costs {:.2} ns more than an empty body (goal: at most 1)",
        off - empty
    );
    println!(
        "on, recycled memory: {:.2} times the floor (goal: at most 1.3)",
        recycled / floor
    );
    println!(
        "on, fresh memory:    {:.2} times the floor (goal: at most 1.3)",
        fresh / floor
    );
}

struct Contestant<'a> {
    name: &'static str,
    block: Box<dyn FnMut() -> f64 + 'a>,
    samples: Vec<f64>,
}

impl<'a> Contestant<'a> {
    fn new(name: &'static str, block: Box<dyn FnMut() -> f64 + 'a>) -> Self {
        Self {
            name,
            block,
            samples: Vec::with_capacity(BLOCKS),
        }
    }

    fn median(&mut self) -> f64 {
        self.samples.sort_by(f64::total_cmp);
        self.samples[self.samples.len() / 2]
    }
}

/// Returns nanoseconds per call over one block.
fn time(mut body: impl FnMut(usize)) -> f64 {
    let start = Instant::now();
    for index in 0..SCOPES {
        body(black_box(index));
    }
    start.elapsed().as_nanos() as f64 / SCOPES as f64
}

fn floor(ring: &mut [[u64; 4]]) -> f64 {
    let mask = ring.len() - 1;
    time(|index| {
        let (start, end) = (ticks(), ticks());
        ring[index & mask] = black_box([start, end, 1, u64::MAX]);
    })
}

#[derive(Clone, Copy, PartialEq)]
enum Memory {
    Recycled,
    Fresh,
}

/// Records a block. With fresh memory, a large capture is held meanwhile, so that none of its
/// chunks can be reused.
fn recorded(memory: Memory) -> f64 {
    let hoard = (memory == Memory::Fresh).then(|| {
        // More full chunks than the recorder keeps for reuse.
        let session = Session::start(Options::default());
        (0..10 * 65_536).for_each(|_| drop(scope(&SITE)));
        session.stop()
    });
    let session = Session::start(Options::default());
    let nanoseconds = time(|_| drop(scope(&SITE)));
    drop(session.stop());
    drop(hoard);
    nanoseconds
}
