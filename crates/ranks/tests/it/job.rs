//! Made-up jobs with known stragglers, clocks and slow steps. Times are microseconds.
//!
//! In each step every rank works, meets the others in an all-reduce, works again, and meets them
//! again. A collective ends on all ranks when the last one has come and the data is transferred.

use mindprof_analyze::Analysis;
use mindprof_model::{
    Category, DeviceKind, Event, Links, Nanos, Part, PassthroughKind, StringTable, Thread, ThreadId,
};
use mindprof_ranks::{JobAnswer, RankSummary, Ranks, Source};

/// The kind of extra work of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Computing,
    Data,
    Copies,
    Host,
}

/// Extra work of a rank, in all steps or in one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extra {
    pub(crate) rank: u64,
    pub(crate) step: Option<u64>,
    pub(crate) work: Work,
    pub(crate) time: u64,
}

/// A job in the making.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) ranks: u64,
    pub(crate) steps: u64,
    pub(crate) extras: Vec<Extra>,
    /// Whether the trace tells sequence numbers.
    pub(crate) has_sequence: bool,
    /// The time of a transfer.
    pub(crate) transfer: u64,
    /// The ranks of a machine.
    pub(crate) ranks_per_host: u64,
    /// When the job ran.
    pub(crate) base_unix_ns: u64,
    /// Changes the noise.
    pub(crate) seed: u64,
    /// The most that noise adds to the work of a rank between two collectives.
    pub(crate) noise: u64,
    /// The most that noise adds to the end of a collective on a rank, in nanoseconds.
    pub(crate) end_noise_ns: u64,
    /// By how much later each collective ends on a rank than on the rank before, in nanoseconds.
    pub(crate) late_ns: u64,
    /// The name of the kernel that communicates.
    pub(crate) kernel: &'static str,
}

/// The work of a rank between two collectives.
pub(crate) const HALF: u64 = 5_000;

impl Job {
    pub(crate) fn new(ranks: u64, steps: u64) -> Self {
        Self {
            ranks,
            steps,
            extras: Vec::new(),
            has_sequence: true,
            transfer: 100,
            ranks_per_host: 8,
            base_unix_ns: 1_700_000_000_000_000_000,
            seed: 1,
            noise: 60,
            end_noise_ns: 4_000,
            late_ns: 0,
            kernel: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        }
    }

    pub(crate) fn with(mut self, rank: u64, step: Option<u64>, work: Work, time: u64) -> Self {
        self.extras.push(Extra {
            rank,
            step,
            work,
            time,
        });
        self
    }

    /// Returns how far the clock of a rank is ahead, in nanoseconds.
    pub(crate) fn clock_ns(rank: u64) -> i64 {
        let spread = (rank * 7_919) % 2_001;
        if rank == 0 {
            0
        } else {
            (spread as i64 - 1_000) * 50_000
        }
    }

    /// Returns the summaries of all ranks.
    pub(crate) fn summaries(&self) -> Vec<RankSummary> {
        let times = self.times();
        (0..self.ranks)
            .map(|rank| self.summary(rank, &times))
            .collect()
    }

    pub(crate) fn answer(&self) -> JobAnswer {
        answer(self.summaries())
    }

    /// Returns the starts of the halves of all steps, and the end of the last.
    fn times(&self) -> Vec<u64> {
        let mut now = 1_000;
        let mut times = vec![now];
        for half in 0..2 * self.steps {
            let work = (0..self.ranks).map(|rank| self.work(rank, half)).max();
            now += work.unwrap_or(0) + self.transfer;
            times.push(now);
        }
        times
    }

    fn work(&self, rank: u64, half: u64) -> u64 {
        let extras = self.extras_of(rank, half);
        let noise = self.noise(rank, half) % self.noise.max(1);
        HALF + noise + extras.map(|extra| extra.time).sum::<u64>()
    }

    /// Returns the extras of a rank, which are in the first half of a step.
    fn extras_of(&self, rank: u64, half: u64) -> impl Iterator<Item = &Extra> {
        let is_meant = move |extra: &&Extra| {
            let is_step = extra.step.is_none_or(|step| step == half / 2);
            extra.rank == rank && is_step && half.is_multiple_of(2)
        };
        self.extras.iter().filter(is_meant)
    }

    fn noise(&self, rank: u64, half: u64) -> u64 {
        let place = ((rank << 32) | half) + 1;
        let mixed = (place ^ self.seed.rotate_left(48)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 33
    }

    fn summary(&self, rank: u64, times: &[u64]) -> RankSummary {
        let mut drawing = Drawing::new();
        for half in 0..2 * self.steps {
            let place = half as usize;
            let (begin, end) = (times[place], times[place + 1]);
            self.draw_half(&mut drawing, rank, half, (begin, end));
            if half.is_multiple_of(2) {
                let step = (begin, times[place + 2]);
                drawing.cpu(
                    Category::Annotation,
                    &format!("ProfilerStep#{}", half / 2),
                    step,
                );
            }
        }
        let part = &mut drawing.part;
        let base = self.base_unix_ns as i64 + Self::clock_ns(rank);
        part.reference_unix_ns = base as u64;
        let info = format!(
            "{{\"backend\":\"nccl\",\"rank\":{rank},\"world_size\":{}}}",
            self.ranks
        );
        part.metadata.set("distributedInfo", info);
        part.metadata.set(
            "host_name",
            format!("\"node{}\"", rank / self.ranks_per_host),
        );
        let profile = drawing.part.into_profile().expect("the part is sound");
        let file = format!("rank{rank}.json");
        let source = Source {
            file: &file,
            repairs: Vec::new(),
        };
        RankSummary::build(&Analysis::build(profile), &source)
    }

    fn draw_half(&self, drawing: &mut Drawing, rank: u64, half: u64, (begin, end): (u64, u64)) {
        let mut now = begin;
        for extra in self.extras_of(rank, half) {
            let span = (now, now + extra.time);
            match extra.work {
                Work::Computing => drawing.launched(begin, 7, "gemm", span),
                Work::Copies => {
                    drawing.launched(begin, 7, "Memcpy HtoD (Pageable -> Device)", span);
                }
                Work::Data => drawing.cpu(
                    Category::Annotation,
                    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
                    span,
                ),
                Work::Host => drawing.cpu(Category::Operator, "aten::item", span),
            }
            now = span.1;
        }
        let work = self.work(rank, half);
        drawing.launched(now, 7, "gemm", (now, begin + work));
        let end_noise = self.noise(rank, half + 7_777) % self.end_noise_ns.max(1);
        let end_ns = 1_000 * end + end_noise + rank * self.late_ns;
        let span_ns = (1_000 * (begin + work), end_ns);
        drawing.collective(now, self.kernel, span_ns, &self.arguments(half));
    }

    fn arguments(&self, half: u64) -> String {
        let sequence = if self.has_sequence {
            format!(",\"Seq\":{half}")
        } else {
            String::new()
        };
        format!(
            "\"Collective name\":\"allreduce\",\"In msg nelems\":4000000,\"Out msg nelems\":4000000,\
             \"Group size\":{},\"dtype\":\"Float\",\"Process Group Name\":\"0\",\
             \"Process Group Description\":\"default_pg\",\"Global rank start\":0,\
             \"Global rank stride\":1{sequence}",
            self.ranks
        )
    }
}

pub(crate) fn answer(summaries: Vec<RankSummary>) -> JobAnswer {
    JobAnswer::build(&Ranks::merge(summaries.into_iter().map(Ranks::from)))
}

struct Drawing {
    part: Part,
    cpu: ThreadId,
    compute: ThreadId,
    communication: ThreadId,
    correlation: u32,
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
        let cpu = thread(100, 100, DeviceKind::Cpu);
        let compute = thread(0, 7, DeviceKind::Cuda);
        let communication = thread(0, 20, DeviceKind::Cuda);
        Self {
            part,
            cpu,
            compute,
            communication,
            correlation: 0,
        }
    }

    fn cpu(&mut self, category: Category, name: &str, (begin, end): (u64, u64)) {
        let event = self.event(category, name, self.cpu, (1_000 * begin, 1_000 * end));
        self.part.add_event(event);
    }

    fn launched(&mut self, call: u64, _stream: u64, name: &str, (begin, end): (u64, u64)) {
        let links = self.launch(call);
        let event = self.event(
            Category::Kernel,
            name,
            self.compute,
            (1_000 * begin, 1_000 * end),
        );
        self.part.add_linked_event(event, links);
    }

    fn collective(&mut self, call: u64, name: &str, span_ns: (u64, u64), arguments: &str) {
        let links = self.launch(call);
        let event = self.event(Category::Kernel, name, self.communication, span_ns);
        self.part.add_linked_event(event, links);
        let text = self
            .part
            .passthrough
            .texts
            .add(arguments)
            .expect("it is short");
        let index = self.part.len() - 1;
        self.part
            .passthrough
            .set(PassthroughKind::Arguments, index, text);
    }

    fn launch(&mut self, call: u64) -> Links {
        self.correlation += 1;
        let links = Links::new(0, self.correlation);
        let span = (1_000 * call, 1_000 * call + 900);
        let event = self.event(Category::Runtime, "cudaLaunchKernel", self.cpu, span);
        self.part.add_linked_event(event, links);
        links
    }

    fn event(
        &mut self,
        category: Category,
        name: &str,
        thread: ThreadId,
        span: (u64, u64),
    ) -> Event {
        let name = self.part.strings.intern(name);
        let (start, end) = (Nanos(span.0), Nanos(span.1.max(span.0)));
        Event::new(category, name, thread, start, end - start)
    }
}
