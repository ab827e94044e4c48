use super::*;
use crate::replay::drawing::Drawing;

const LAUNCH: &str = "cudaLaunchKernel";

fn path(analysis: &Analysis, timing: Timing) -> CriticalPath {
    let options = PathOptions { rows: 10, timing };
    CriticalPath::build(analysis, &OwnCode::default(), options)
}

fn ms(time: Nanos) -> u64 {
    (time.0 + 500_000) / 1_000_000
}

fn kinds(split: &PathSplit) -> Vec<(&'static str, u64)> {
    let times = split.iter().map(|(kind, time)| (kind.name(), ms(time)));
    times.filter(|(_, time)| *time > 0).collect()
}

fn rows(rows: &[PathRow]) -> Vec<(&str, u64, u64)> {
    let rows = rows.iter().filter(|row| ms(row.time) > 0);
    rows.map(|row| {
        (
            row.name.as_str(),
            ms(row.time),
            ms(row.saves.expect("the replay is faithful")),
        )
    })
    .collect()
}

// step         |-------------------------------------------|   0..30
// main         |-------------------------------------------|   0..30    Python
// aten::mm       |---|                                         2..5
// launch          |-|                                          3..4
// gemm              |------------------|                       4..20
// aten::add            |---|                                   6..8
// synchronize              |------------|                      9..20
fn synchronized() -> Analysis {
    let mut drawing = Drawing::new();
    drawing.step(0, 0, 30);
    drawing.host(Category::PythonFunction, "train.py(3): main", 0, 30);
    drawing.host(Category::Operator, "aten::mm", 2, 5);
    let stream = drawing.stream(1);
    drawing.launch((LAUNCH, 3, 4), stream, ("gemm", 4, 20));
    drawing.host(Category::Operator, "aten::add", 6, 8);
    drawing.host(Category::Runtime, "cudaDeviceSynchronize", 9, 20);
    drawing.analysis()
}

#[test]
fn the_path_leads_over_the_launch_and_back_at_the_synchronization() {
    let path = path(&synchronized(), Timing::Recorded);
    assert_eq!(ms(path.recorded), 30);
    assert_eq!(ms(path.split.total()), 30);
    let expected = [
        ("Python", 12),
        ("operators", 1),
        ("launch latency", 1),
        ("kernels", 16),
    ];
    assert_eq!(kinds(&path.split), expected);
    assert_eq!(path.bound_by, Bound::Gpu);
    assert_eq!(path.per_step.len(), 1);
    assert_eq!(path.per_step[0].split, path.split);
}

#[test]
fn what_is_beside_the_path_is_not_listed() {
    let path = path(&synchronized(), Timing::Recorded);
    // Without the kernel, the synchronization returns at once: 9 + 10 of the host remain.
    assert_eq!(rows(&path.kernels), [("gemm", 16, 11)]);
    assert_eq!(rows(&path.operators), [("aten::mm", 17, 14)]);
    assert_eq!(rows(&path.functions), [("main", 12, 12)]);
    let place = path.functions[0].place.as_ref().unwrap();
    assert_eq!((place.file.as_str(), place.line), ("train.py", 3));
    assert!(path.operators.iter().all(|row| row.name != "aten::add"));
}

#[test]
fn pieces_are_drawn_at_their_recorded_times() {
    let analysis = synchronized();
    let path = path(&analysis, Timing::Recorded);
    let profile = analysis.profile();
    let drawn: Vec<(&str, u64, u64)> = path
        .pieces
        .iter()
        .map(|piece| {
            let event = piece.event.map(|event| profile.name(profile.event(event)));
            let end = piece.start + piece.duration;
            (event.unwrap_or(piece.kind.name()), ms(piece.start), ms(end))
        })
        .collect();
    let expected = [
        ("train.py(3): main", 0, 2),
        ("aten::mm", 2, 3),
        ("launch latency", 3, 4),
        ("gemm", 4, 20),
        ("train.py(3): main", 20, 30),
    ];
    assert_eq!(drawn, expected);
}

// steps    |----|----|            0..4..8
// stream      |-------||-----|    2..10, 10..16
#[test]
fn each_step_has_its_part_of_the_path() {
    let mut drawing = Drawing::new();
    let stream = drawing.stream(1);
    drawing.step(4, 0, 4);
    drawing.launch((LAUNCH, 1, 2), stream, ("gemm", 2, 10));
    drawing.step(5, 4, 8);
    drawing.launch((LAUNCH, 4, 5), stream, ("ncclDevKernel_AllReduce", 10, 16));
    let path = path(&drawing.analysis(), Timing::Recorded);
    let steps: Vec<_> = (path.per_step.iter())
        .map(|step| (step.number, ms(step.duration), step.bound_by))
        .collect();
    assert_eq!(steps, [(4, 10, Bound::Gpu), (5, 6, Bound::Communication)]);
    assert_eq!(path.bound_by, Bound::Gpu);
    let sum: u64 = path.per_step.iter().map(|step| step.duration.0).sum();
    assert_eq!(sum / 2, path.split.total().0);
}

#[test]
fn the_profilers_cost_is_a_kind_of_recorded_time_only() {
    let profile = mindprof_model::Timeline::draw(|time| {
        time.annotation("ProfilerStep#0", |time| {
            for _ in 0..1_000 {
                time.op("aten::add", 2_000);
                time.idle(500);
            }
        });
    });
    let analysis = Analysis::build(profile);
    let recorded = path(&analysis, Timing::Recorded);
    let unrecorded = path(&analysis, Timing::Unrecorded);
    assert!(recorded.split.time(PathKind::Profiler) > Nanos(400_000));
    assert_eq!(unrecorded.split.time(PathKind::Profiler), Nanos::ZERO);
    assert_eq!(
        unrecorded.profiler(),
        recorded.split.total() - unrecorded.split.total()
    );
}

#[test]
fn a_profile_without_steps_is_one() {
    let mut drawing = Drawing::new();
    drawing.host(Category::Operator, "aten::mm", 0, 3);
    let path = path(&drawing.analysis(), Timing::Unrecorded);
    assert!(!path.has_steps);
    assert_eq!(
        (path.steps, rows(&path.operators)),
        (1, vec![("aten::mm", 3, 3)])
    );
}

#[test]
fn a_profile_without_host_work_has_no_path() {
    let profile = mindprof_model::Part::new().into_profile().unwrap();
    let path = path(&Analysis::build(profile), Timing::Unrecorded);
    assert!(path.pieces.is_empty() && path.steps == 0);
}

#[test]
fn the_json_has_times_in_microseconds() {
    let path = path(&synchronized(), Timing::Recorded);
    let text = path.json();
    assert!(text.contains(r#""bound_by":"gpu""#), "{text}");
    assert!(
        text.contains(r#""kernels":[{"name":"gemm","per_step_us":16000.0,"#),
        "{text}"
    );
}
