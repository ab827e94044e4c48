use mindprof_analyze::Analysis;
use mindprof_model::{
    Category, DeviceKind, Event, Links, Nanos, Part, StringTable, Thread, ThreadId, Timeline,
};

use super::*;

const LAYOUT: DeviceLayout = DeviceLayout {
    rows: 8,
    width: Some(80),
};

struct Drawing {
    part: Part,
    correlation: u32,
}

impl Drawing {
    fn thread(&mut self, process: u64, native: u64, device: DeviceKind) -> ThreadId {
        self.part.add_thread(Thread {
            process,
            native,
            name: StringTable::EMPTY,
            device,
        })
    }

    /// Adds an event; times are microseconds.
    fn event(&mut self, category: Category, name: &str, thread: ThreadId, span: (u64, u64)) {
        let name = self.part.strings.intern(name);
        let (start, end) = (Nanos(1_000 * span.0), Nanos(1_000 * span.1));
        let event = Event::new(category, name, thread, start, end - start);
        let links = Links::new(0, self.correlation);
        self.part.add_linked_event(event, links);
    }
}

// CPU step   |------------------ 0 ------------------|      0..1000
// launches   |a|            |b|
// stream 7     |---a---|      |----b----|                    10..210, 510..710
// stream 20                        |--all-reduce--|         610..810
#[test]
fn the_time_of_a_device_is_laid_out() {
    let mut drawing = Drawing {
        part: Part::new(),
        correlation: 0,
    };
    let cpu = drawing.thread(9, 9, DeviceKind::Cpu);
    let stream = drawing.thread(0, 7, DeviceKind::Cuda);
    let other = drawing.thread(0, 20, DeviceKind::Cuda);
    drawing.event(Category::Annotation, "ProfilerStep#0", cpu, (0, 1_000));
    let gemm = "void ns::(anonymous namespace)::gemm<at::Half, 4>(int)";
    for (call, on, name, span) in [
        ((0, 5), stream, gemm, (10, 210)),
        ((500, 505), stream, gemm, (510, 710)),
        ((520, 525), other, "ncclDevKernel_AllReduce", (610, 810)),
    ] {
        drawing.correlation += 1;
        drawing.event(Category::Runtime, "cudaLaunchKernel", cpu, call);
        drawing.event(Category::Kernel, name, on, span);
    }
    let analysis = Analysis::build(drawing.part.into_profile().unwrap());
    let text = device_text(&Device::build(&analysis), LAYOUT);
    assert_eq!(
        text,
        "\
cuda:0: busy 50 % of 1 step, 50 % of the recording

                  In steps  Share  Recording  Share
----------------  --------  -----  ---------  -----
time               1.00 ms  100 %    1.00 ms  100 %
busy                500 us   50 %     500 us   50 %
  compute           400 us   40 %     400 us   40 %
  communication     200 us   20 %     200 us   20 %
    exposed         100 us   10 %     100 us   10 %
    with compute    100 us   10 %     100 us   10 %
idle                500 us   50 %     500 us   50 %
  CPU late          290 us   29 %     290 us   29 %
  launch           20.0 us    2 %    20.0 us    2 %
  end of work       190 us   19 %     190 us   19 %

Kernels: utilization 50.0 %, tensor cores 0 % of kernel time, 100 % of kernel
time has no launch geometry
Launches: 3, delay p50 5.00 us, longest 85.0 us; 1 over 50 us, 0 over 100 us

Stream  Count    Work  CPU wait  Kernel wait  Other gap  Queue  Mean
------  -----  ------  --------  -----------  ---------  -----  ----
     7      2  400 us    300 us      0.00 us    0.00 us      1   0.0
    20      1  200 us   0.00 us      0.00 us    0.00 us      1   1.0

Kernel              Calls    Time  Share  Tensor  Occupancy  FLOP/s
------------------  -----  ------  -----  ------  ---------  ------
gemm<Half, 4>(int)      2  400 us  100 %

Operations are counted for 0 % of the kernel time. Not counted: unknown
operators 100 %. The limits of this device are not known

Step     Time  Busy  CPU late  launch  end of work
----  -------  ----  --------  ------  -----------
   0  1.00 ms  50 %      29 %     2 %         19 %
"
    );
}

#[test]
fn a_profile_without_devices_says_so() {
    let profile = Timeline::draw(|time| time.op("aten::mm", 10));
    let text = device_text(&Device::build(&Analysis::build(profile)), LAYOUT);
    assert!(
        text.starts_with("No device work in this profile: record a device"),
        "{text}"
    );
}

#[test]
fn amounts_have_three_digits_and_a_prefix() {
    for (number, text) in [
        (612.0, "612 "),
        (1_000.0, "1.00 k"),
        (19_267_584.0, "19.3 M"),
        (9.894e14, "989 T"),
        (0.0, "0 "),
    ] {
        assert_eq!(amount(number), text);
    }
}
