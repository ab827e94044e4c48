use mindprof_analyze::Analysis;
use mindprof_model::{Category, DType, Nanos, Timeline};
use proptest::prelude::*;

use super::drawing::Drawing;
use super::*;
use crate::step_split::StepClass;

fn micros(time: Nanos) -> u64 {
    time.0 / 1_000
}

/// Returns the idle time of the first device by cause, without causes that do not occur.
fn idle(device: &Device) -> Vec<(&'static str, u64)> {
    shown(&device.devices[0].whole)
}

fn shown(window: &DeviceWindow) -> Vec<(&'static str, u64)> {
    let times = window.idle.iter().filter(|(_, time)| *time > Nanos::ZERO);
    times
        .map(|(cause, time)| (cause.name(), micros(time)))
        .collect()
}

fn assert_share(found: Option<f64>, expected: f64) {
    let found = found.expect("it is known");
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
}

// CPU      |launch|                 |launch|      0..10, 100..110
// stream       |------|                  |----|   5..40, 112..130
// idle     |---|      |-------------|----|    |
//           launch     CPU late     launch
#[test]
fn the_cpu_is_late_until_it_launches() {
    let mut drawing = Drawing::new();
    drawing.launched((0, 10), 7, "gemm", (5, 40));
    drawing.launched((100, 110), 7, "gemm", (112, 130));
    let device = drawing.device();
    assert_eq!(idle(&device), [("CPU late", 60), ("launch", 5 + 12)]);
    assert_eq!(micros(device.devices[0].whole.busy), 35 + 18);
}

// CPU      |launch| |--synchronize--|   |launch|   0..10, 20..50, 70..80
// stream       |------------|               |---|  5..40, 82..90
// idle                      |-------|---|------|
//                  synchronization   CPU late
#[test]
fn a_synchronizing_call_holds_the_next_launch_up() {
    let mut drawing = Drawing::new();
    drawing.launched((0, 10), 7, "gemm", (0, 40));
    drawing.call("cudaStreamSynchronize", (20, 50));
    drawing.launched((80, 82), 7, "gemm", (85, 90));
    // The call lasted 30 microseconds: without it the launch would have come so much earlier.
    let expected = [("CPU late", 10), ("synchronization", 30), ("launch", 5)];
    assert_eq!(idle(&drawing.device()), expected);
}

// main      |launch|                    |launch|   0..10, 80..82
// watcher             |--synchronize--|            20..50: it launches nothing
// stream        |------------|               |---|
#[test]
fn a_thread_that_launches_nothing_holds_nothing_up() {
    let mut drawing = Drawing::new();
    drawing.launched((0, 10), 7, "gemm", (0, 40));
    drawing.launched((80, 82), 7, "gemm", (85, 90));
    drawing.thread(101);
    drawing.call("cudaStreamSynchronize", (20, 50));
    assert_eq!(idle(&drawing.device()), [("CPU late", 40), ("launch", 5)]);
}

// CPU      |launch| |----copy----|   |launch|      0..10, 20..60, 65..70
// stream       |-----------||---|        |---|     0..40, 40..58, 71..80
#[test]
fn a_call_that_returns_after_its_copy_has_waited_for_it() {
    let blocking = |returns| {
        let mut drawing = Drawing::new();
        drawing.launched((0, 10), 7, "gemm", (0, 40));
        drawing.launched(
            (20, returns),
            7,
            "Memcpy DtoH (Device -> Pageable)",
            (40, 58),
        );
        drawing.launched((65, 70), 7, "gemm", (71, 80));
        idle(&drawing.device())
    };
    assert_eq!(blocking(60), [("synchronization", 7), ("launch", 6)]);
    assert_eq!(blocking(30), [("CPU late", 7), ("launch", 6)]);
}

// CPU        |launch| |wait event| |launch|          0..5, 6..8, 9..12
// stream 7     |------------|                        0..30
// stream 20                            |------|      90..100
#[test]
fn work_in_the_queue_waits_for_another_stream() {
    let queued = |call: &str, start| {
        let mut drawing = Drawing::new();
        drawing.launched((0, 5), 7, "gemm", (0, 30));
        drawing.call(call, (6, 8));
        drawing.launched((9, 12), 20, "gemm", (start, start + 10));
        idle(&drawing.device())
    };
    assert_eq!(queued("cudaStreamWaitEvent", 90), [("another stream", 60)]);
    // Nothing that was recorded explains it.
    assert_eq!(queued("cudaEventQuery", 90), [("unknown", 60)]);
    // A short gap is the usual latency.
    assert_eq!(queued("cudaStreamWaitEvent", 50), [("launch", 20)]);
}

// CPU      |launch|                         ... |   the recording ends at 100
// stream       |------|
#[test]
fn after_the_last_work_is_the_end_of_work() {
    let mut drawing = Drawing::new();
    drawing.launched((0, 10), 7, "gemm", (0, 40));
    drawing.until(100);
    assert_eq!(idle(&drawing.device()), [("end of work", 60)]);
}

// recording  |---------------------------|
// stream          |-----|   |----|             30..60, 70..90: launched before it began
#[test]
fn nothing_is_known_before_work_from_before_the_recording() {
    let mut drawing = Drawing::new();
    drawing.work((0, 7), "gemm", (30, 60));
    drawing.work((0, 7), "gemm", (70, 90));
    let device = drawing.device();
    let whole = &device.devices[0].whole;
    assert_eq!(micros(whole.unrecorded), 30);
    assert_eq!(idle(&device), [("unknown", 10)]);
    assert_share(Some(whole.utilization), 50.0 / 60.0);
    assert_eq!(whole.launches.unknown, 2);
}

// stream 7    |-----------------|     0..80
// stream 20      |--------------|    20..80
// Summed over streams, kernels take 140 of 100 microseconds.
#[test]
fn utilization_is_a_union_over_streams() {
    let mut drawing = Drawing::new();
    drawing.launched((0, 1), 7, "gemm", (0, 80));
    drawing.launched((2, 3), 20, "gemm", (20, 80));
    drawing.until(100);
    let device = drawing.device();
    let whole = &device.devices[0].whole;
    assert_share(Some(whole.utilization), 0.8);
    assert_eq!((micros(whole.busy), micros(whole.kernels)), (80, 140));
}

// stream 7    |---------------------|     0..100
// stream 20   |--|              |---|     gap of 80
// stream 21   |---|             |---|     gap of 70
#[test]
fn idle_streams_do_not_make_an_idle_device() {
    let mut drawing = Drawing::new();
    drawing.launched((0, 1), 7, "gemm", (0, 100));
    drawing.launched((1, 2), 20, "gemm", (2, 10));
    drawing.launched((3, 4), 21, "gemm", (4, 20));
    drawing.launched((70, 71), 20, "gemm", (90, 100));
    drawing.launched((71, 72), 21, "gemm", (90, 100));
    let device = drawing.device();
    assert_eq!(idle(&device), []);
    let streams = &device.devices[0].streams;
    let gaps: Vec<_> = (streams.iter())
        .map(|stream| (stream.stream, micros(stream.gaps.cpu_wait)))
        .collect();
    assert_eq!(gaps, [(7, 0), (20, 80), (21, 70)]);
}

// stream   |--gemm--|                   0..20
// range    |------------ forward -----| 0..100: a range of the user's, drawn on the stream
// wait     |------ Stream Sync -------| 0..100: a wait of the CPU
#[test]
fn ranges_and_waits_on_a_stream_are_no_work() {
    let mut drawing = Drawing::new();
    drawing.launched((0, 1), 7, "gemm", (0, 20));
    drawing.on_stream(Category::DeviceAnnotation, (0, 7), "forward", (0, 100));
    drawing.on_stream(
        Category::DeviceAnnotation,
        (0, 7),
        "ProfilerStep#3",
        (0, 20),
    );
    drawing.on_stream(Category::Other, (0, 7), "Stream Sync", (0, 100));
    let device = drawing.device();
    assert_eq!(micros(device.devices[0].whole.busy), 20);
    assert_eq!(device.devices[0].streams[0].works, 1);
    // The range of a step on the device is no step either.
    assert!(device.steps.is_empty());
    // Alone, they are no device work.
    let mut drawing = Drawing::new();
    drawing.on_stream(Category::DeviceAnnotation, (0, 7), "forward", (0, 100));
    assert!(drawing.device().devices.is_empty());
}

// compute         |-----------|              0..50
// communication        |-----------|        20..70
// copy                      |----------|    40..90
#[test]
fn overlaps_are_told_for_each_pair() {
    let mut drawing = Drawing::new();
    drawing.launched((0, 1), 7, "gemm", (0, 50));
    drawing.launched((1, 2), 20, "ncclDevKernel_AllReduce", (20, 70));
    drawing.launched((2, 3), 21, "Memcpy HtoD (Pinned -> Device)", (40, 90));
    let device = drawing.device();
    let classes = device.devices[0].whole.classes;
    let (kernel, copy) = (StepClass::Kernel, StepClass::Copy);
    let communication = StepClass::Communication;
    assert_eq!(micros(classes.of(communication)), 50);
    assert_eq!(micros(classes.overlap(kernel, communication)), 30);
    assert_eq!(micros(classes.overlap(kernel, copy)), 10);
    assert_eq!(micros(classes.overlap(communication, copy)), 30);
    assert_eq!(micros(classes.exposed(communication)), 20);
    assert_eq!(micros(classes.exposed(copy)), 40);
    assert_eq!(micros(classes.kernels()), 70);
    let json = serde_json::to_value(classes).unwrap();
    let together = serde_json::json!({
        "compute": 20.0, "compute+communication": 20.0, "compute+communication+copy": 10.0,
        "communication+copy": 20.0, "copy": 20.0,
    });
    assert_eq!(json["together_us"], together);
}

// CPU       |launch|launch|launch|             at 0, 10, 20
// stream                  |------|----|---|    at 15, 40, 60
// length    1     2     1 2      1    0
#[test]
fn a_queue_grows_with_launches_and_shrinks_with_starts() {
    let mut drawing = Drawing::new();
    drawing.launched((0, 5), 7, "gemm", (15, 40));
    drawing.launched((10, 12), 7, "gemm", (40, 60));
    drawing.launched((20, 21), 7, "gemm", (60, 70));
    let device = drawing.device();
    let queue = device.devices[0].streams[0].queue.unwrap();
    assert_eq!((queue.launches, queue.max), (3, 2));
    let area = 10.0 + 2.0 * 5.0 + 5.0 + 2.0 * 20.0 + 20.0;
    assert_share(Some(queue.mean), area / 60.0);
    assert_share(Some(queue.mean_at_changes), 7.0 / 6.0);
    assert_eq!(queue.full, Nanos::ZERO);
    let delays = device.devices[0].whole.launches;
    assert_eq!((delays.launches, delays.over_50_us), (3, 0));
    assert_eq!([delays.p50, delays.max].map(micros), [28, 39]);
    assert_eq!(device.devices[0].whole.longest_queue, 2);
}

#[test]
fn a_full_queue_blocks() {
    let mut drawing = Drawing::new();
    for index in 0..1_030 {
        let start = 10_000 + 10 * index;
        drawing.launched((index, index + 1), 7, "tiny", (start, start + 5));
    }
    let queue = drawing.device().devices[0].streams[0].queue.unwrap();
    assert_eq!(queue.max, 1_030);
    // From the 1024th launch until so many have begun that fewer are left.
    assert_eq!(micros(queue.full), 10_000 + 10 * 6 - 1_023);
}

// CPU steps    |--3--|--4--|        0..100, 100..200
// launches      a b    c
// stream         |-a-|-b--|---c---| 10..60, 60..150, 150..230
// device       |----3-----|---4---| 0..150, 150..230
#[test]
fn a_step_ends_with_the_work_that_was_launched_in_it() {
    let mut drawing = Drawing::new();
    drawing.step(3, (0, 100));
    drawing.step(4, (100, 200));
    drawing.launched((5, 6), 7, "gemm", (10, 60));
    drawing.launched((10, 11), 7, "gemm", (60, 150));
    drawing.launched((110, 111), 7, "gemm", (150, 230));
    let device = drawing.device();
    let steps: Vec<_> = (device.steps.iter())
        .map(|step| {
            (
                step.step.number,
                micros(step.step.start),
                micros(step.step.end()),
            )
        })
        .collect();
    assert_eq!(steps, [(3, 0, 150), (4, 150, 230)]);
    let used = &device.devices[0];
    let busy: Vec<_> = used
        .each_step
        .iter()
        .map(|step| micros(step.busy))
        .collect();
    assert_eq!(busy, [140, 80]);
    let all = used.in_steps.as_ref().unwrap();
    assert_eq!((micros(all.duration), micros(all.busy)), (230, 220));
    assert_eq!(all.launches.launches, 3);
    assert_eq!(micros(device.split.time(StepClass::Kernel)), 220);
}

// stream       |---x---|          0..50: launched before the step
// step            |------3------| 20..100
// stream                |--a--|   60..90
#[test]
fn work_from_before_delays_the_first_step() {
    let mut drawing = Drawing::new();
    drawing.work((0, 7), "gemm", (0, 50));
    drawing.step(3, (20, 100));
    drawing.launched((30, 31), 7, "gemm", (60, 90));
    let device = drawing.device();
    let step = device.steps[0].step;
    assert_eq!((micros(step.start), micros(step.end())), (50, 100));
}

// step        |--3--|             0..50: it launches nothing
// stream               |---|      60..90: launched elsewhere
#[test]
fn work_from_after_does_not_delay_a_step_without_work() {
    let mut drawing = Drawing::new();
    drawing.step(3, (0, 50));
    drawing.work((0, 7), "gemm", (60, 90));
    let step = drawing.device().steps[0].step;
    assert_eq!((micros(step.start), micros(step.end())), (0, 50));
}

// gemm   |--------|             0..40     0.5 blocks per SM, 20 % occupancy
// other       |--------|       20..60     0.8 blocks per SM, 50 % occupancy
#[test]
fn efficiency_adds_up_to_one_and_occupancy_is_weighted() {
    let mut drawing = Drawing::new();
    drawing.launched((0, 1), 7, "gemm", (0, 40));
    drawing.arguments(r#""blocks per SM":0.5,"est. achieved occupancy %":20"#);
    drawing.launched((1, 2), 20, "other", (20, 60));
    drawing.arguments(r#""blocks per SM":0.8,"est. achieved occupancy %":50"#);
    drawing.launched((2, 3), 20, "silent", (60, 70));
    drawing.until(100);
    let device = drawing.device();
    let whole = &device.devices[0].whole;
    assert_share(
        whole.sm_efficiency,
        (0.5 * 20.0 + 20.0 + 0.8 * 20.0) / 100.0,
    );
    assert_share(whole.occupancy, (0.2 * 40.0 + 0.5 * 40.0) / 80.0);
    assert_eq!(micros(whole.silent_kernels), 10);
}

#[test]
fn without_arguments_efficiency_is_unknown() {
    let mut drawing = Drawing::new();
    drawing.launched((0, 1), 7, "gemm", (0, 40));
    let device = drawing.device();
    let whole = &device.devices[0].whole;
    assert_eq!((whole.sm_efficiency, whole.occupancy), (None, None));
    assert_eq!(device.devices[0].card, None);
}

#[test]
fn copies_have_their_direction_bytes_and_rate() {
    let mut drawing = Drawing::new();
    let name = "Memcpy HtoD (Pageable -> Device)";
    drawing.launched((0, 1), 7, name, (0, 40));
    drawing.arguments(r#""bytes":400000"#);
    drawing.launched((50, 51), 7, name, (60, 100));
    drawing.arguments(r#""bytes":400000"#);
    drawing.launched((100, 101), 7, "Memset (Device)", (110, 120));
    let device = drawing.device();
    let copies = &device.devices[0].whole.copies;
    let found: Vec<_> = copies
        .iter()
        .map(|copy| (copy.direction, copy.memory, copy.copies, copy.bytes))
        .collect();
    let pageable = Some(CpuMemory::Pageable);
    assert_eq!(
        found,
        [
            (CopyDirection::CpuToDevice, pageable, 2, Some(800_000)),
            (CopyDirection::Fill, None, 1, None),
        ]
    );
    assert_share(copies[0].bytes_per_s, 1e10);
}

// aten::mm            |----|          2 x 1000^3 operations
// gemm kernel           |------|      100 us: 20 TFLOP/s
// aten::sort                 |---|    not counted
#[test]
fn rates_are_compared_with_the_limits_and_the_rest_is_listed() {
    let mut drawing = Drawing::new();
    drawing.model("NVIDIA A100-SXM4-40GB");
    let shapes = [[1_000, 1_000]; 2];
    drawing.operator("aten::mm", (0, 10), DType::BF16, &shapes);
    drawing.launched((1, 2), 7, "ampere_bf16_s16816gemm_bf16", (5, 105));
    drawing.operator("aten::sort", (10, 20), DType::BF16, &shapes[..1]);
    drawing.launched((11, 12), 7, "sort_kernel", (105, 205));
    let device = drawing.device();
    let used = &device.devices[0];
    let mm = &used.operators[0];
    assert_eq!(
        (mm.operator.as_str(), mm.dtype, mm.calls),
        ("aten::mm", "bfloat16", 1)
    );
    let flops = mm.flops.unwrap();
    assert_eq!(flops.total, 2_000_000_000);
    assert_share(flops.share, 20.0 / 312.0);
    assert_share(mm.bytes.unwrap().share, 6e6 / 1e-4 / 1_555e9);
    assert_eq!(used.kernels.len(), 2);
    let gemm = used.kernels.iter().find(|kernel| kernel.uses_tensor_cores);
    assert_eq!(gemm.unwrap().flops, Some(flops));
    let rest = &used.not_counted;
    assert_eq!(rest[0].operator.as_deref(), Some("aten::sort"));
    assert_share(Some(rest[0].share), 0.5);
    assert_eq!(
        (micros(used.whole.counted), used.whole.flops),
        (100, 2_000_000_000)
    );
    assert_eq!(micros(used.whole.tensor_cores), 100);
    let matmul = MatmulDtype {
        dtype: Some("bfloat16"),
        time: Nanos(100_000),
        tensor_cores: Nanos(100_000),
    };
    assert_eq!(used.matmul, [matmul]);
}

// aten::mm       |----|
// kernels          |------|--|      a product and its reduction: neither has the rate of both
#[test]
fn a_kernel_has_no_rate_if_it_does_a_part_of_the_operator() {
    let mut drawing = Drawing::new();
    drawing.operator("aten::mm", (0, 10), DType::F32, &[[100, 100]; 2]);
    drawing.launched((1, 2), 7, "sgemm_splitk", (5, 10));
    drawing.launched((3, 4), 7, "splitk_reduce", (10, 12));
    let device = drawing.device();
    let used = &device.devices[0];
    assert!(used.kernels.iter().all(|kernel| kernel.flops.is_none()));
    let flops = used.operators[0].flops.unwrap();
    assert_eq!((flops.total, flops.limit_per_s), (2_000_000, None));
    assert_share(Some(flops.per_s), 2e6 / 7e-6);
}

// CPU      |graph launch|           0..10
// stream        |---|  |---|        12..20, 25..30
#[test]
fn all_works_of_a_graph_have_its_launch() {
    let mut drawing = Drawing::new();
    drawing.launched((0, 10), 7, "first", (12, 20));
    drawing.again(7, "second", (25, 30));
    let device = drawing.device();
    let launches = device.devices[0].whole.launches;
    assert_eq!((launches.launches, launches.unknown), (2, 0));
    assert_eq!(idle(&device), [("launch", 12 + 5)]);
}

#[test]
fn devices_are_described_one_by_one() {
    let mut drawing = Drawing::new();
    drawing.work((1, 7), "gemm", (0, 50));
    drawing.work((0, 7), "gemm", (0, 20));
    drawing.until(100);
    let device = drawing.device();
    let found: Vec<_> = (device.devices.iter())
        .map(|used| (used.device.as_str(), micros(used.whole.busy)))
        .collect();
    assert_eq!(found, [("cuda:0", 20), ("cuda:1", 50)]);
}

#[test]
fn a_profile_without_devices_has_none() {
    let profile = Timeline::draw(|time| time.op("aten::mm", 10));
    let device = Device::build(&Analysis::build(profile));
    assert!(device.devices.is_empty() && device.steps.is_empty());
}

proptest! {
    /// Whatever runs, busy and idle time make up each window, and nothing exceeds it.
    #[test]
    fn busy_and_idle_time_make_up_the_window(
        works in prop::collection::vec((0_u64..3, 0_u64..500, 0_u64..80, 0_u64..60, 0_usize..4), 1..60),
        steps in prop::collection::vec((0_u64..500, 0_u64..100), 0..5),
        calls in prop::collection::vec((0_u64..500, 0_u64..50, any::<bool>()), 0..10),
    ) {
        let mut drawing = Drawing::new();
        for (number, (start, length)) in steps.into_iter().enumerate() {
            drawing.step(number as u64, (start, start + length));
        }
        for (start, length, is_wait) in calls {
            let name = ["cudaDeviceSynchronize", "cudaStreamWaitEvent"][usize::from(is_wait)];
            drawing.call(name, (start, start + length));
        }
        for (stream, start, length, ahead, name) in works {
            let name = ["gemm", "ncclKernel_AllReduce", "Memcpy DtoD", "Memset"][name];
            let call = start.saturating_sub(ahead);
            drawing.launched((call, call + 3), stream, name, (start, start + length));
        }
        let device = drawing.device();
        let used = &device.devices[0];
        let windows = used.each_step.iter().chain(&used.in_steps).chain([&used.whole]);
        for window in windows {
            let all = window.busy + window.idle.total() + window.unrecorded;
            prop_assert_eq!(all, window.duration);
            prop_assert!(window.utilization <= 1.0);
            let classes = [
                StepClass::Kernel,
                StepClass::Communication,
                StepClass::Copy,
                StepClass::Memset,
            ];
            let most = classes.map(|class| window.classes.of(class)).into_iter().max();
            prop_assert!(most <= Some(window.busy));
        }
        for step in &device.steps {
            prop_assert_eq!(step.split.total(), step.step.duration);
        }
    }
}
