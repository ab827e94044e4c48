use super::*;
use crate::replay::drawing::Drawing;

fn scaled(scales: &[(&str, f64)]) -> Changes {
    let scales = scales
        .iter()
        .map(|(name, factor)| ((*name).into(), *factor));
    Changes {
        scales: scales.collect(),
        ..Changes::default()
    }
}

fn median(analysis: &Analysis, changes: &Changes) -> u64 {
    let prediction = Prediction::build(analysis, changes).unwrap();
    (prediction.changed.median.0 + 500_000) / 1_000_000
}

// step         |-------------------------------------------|   0..40
// batch        |-------|                                       0..10
// forward                |------|                             12..18   Python
// aten::mm               |----|                               12..16
// optimizer                       |-----------|               20..30
// aten::add                         |------|                  22..28
fn host_bound() -> Analysis {
    let mut drawing = Drawing::new();
    drawing.step(0, 0, 40);
    let batch = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
    drawing.host(Category::Annotation, batch, 0, 10);
    drawing.host(Category::PythonFunction, "model.py(7): forward", 12, 18);
    drawing.host(Category::Operator, "aten::mm", 12, 16);
    drawing.host(Category::Annotation, "Optimizer.step#AdamW.step", 20, 30);
    drawing.host(Category::Operator, "aten::add", 22, 28);
    drawing.analysis()
}

#[test]
fn everything_inside_of_a_name_changes() {
    let analysis = host_bound();
    assert_eq!(median(&analysis, &scaled(&[("optimizer", 0.5)])), 35);
    assert_eq!(median(&analysis, &scaled(&[("forward", 0.0)])), 34);
    assert_eq!(median(&analysis, &scaled(&[("aten::*", 0.0)])), 30);
    assert_eq!(median(&analysis, &scaled(&[("aten::mm", 2.0)])), 44);
    // Both apply to the operator in the optimizer.
    let both = scaled(&[("optimizer", 0.5), ("aten::add", 0.0)]);
    assert_eq!(median(&analysis, &both), 32);
}

#[test]
fn a_prediction_tells_what_it_changed() {
    let prediction = Prediction::build(&host_bound(), &scaled(&[("optimizer", 0.0)])).unwrap();
    assert_eq!(prediction.numbers, [0]);
    assert!(
        (prediction.share - 0.25).abs() < 0.01,
        "{}",
        prediction.share
    );
    let matched = &prediction.matched[0];
    assert_eq!((matched.events, matched.changed), (1, 2));
    assert_eq!(matched.names[0].name, "Optimizer.step#AdamW.step");
    let text = prediction.json();
    assert!(
        text.contains(r#""recorded":{"mean_us":40000.0,"median_us":40000.0,"#),
        "{text}"
    );
}

#[test]
fn data_loading_may_be_left_out() {
    let changes = Changes {
        no_data_loading: true,
        ..Changes::default()
    };
    assert_eq!(median(&host_bound(), &changes), 30);
}

#[test]
fn a_change_that_applies_to_nothing_is_refused() {
    let analysis = host_bound();
    let refused = |changes: &Changes| Prediction::build(&analysis, changes).unwrap_err();
    let similar = |name: &str| match refused(&scaled(&[(name, 0.5)])) {
        NotChanged::NoMatch { similar, .. } => similar,
        other => panic!("{other:?}"),
    };
    assert_eq!(similar("aten::nm").as_deref(), Some("aten::mm"));
    assert_eq!(similar("Adam").as_deref(), Some("*Adam*"));
    assert_eq!(similar("something else").as_deref(), None);
    assert_eq!(refused(&Changes::default()), NotChanged::NoChange);
    let negative = refused(&scaled(&[("aten::mm", -1.0)]));
    assert!(matches!(negative, NotChanged::BadFactor { .. }));
    let huge = refused(&scaled(&[("aten::mm", 1e12)]));
    assert!(matches!(huge, NotChanged::BadFactor { .. }));
    let changes = Changes {
        no_synchronization: true,
        ..Changes::default()
    };
    assert_eq!(refused(&changes), NotChanged::NoDevice);
}

// step       |-------------------------------|   0..20
// memcpy     |-------------|                     1..11   waits for its copy
// copy         |-----------|                     2..11
// launch                    |-|                 12..13
// gemm                        |------|          13..18
// synchronize                   |----|          14..18
fn with_device() -> Analysis {
    let mut drawing = Drawing::new();
    drawing.step(0, 0, 20);
    let stream = drawing.stream(1);
    let copy = ("Memcpy HtoD (Pageable -> Device)", 2, 11);
    drawing.launch(("cudaMemcpyAsync", 1, 11), stream, copy);
    drawing.launch(("cudaLaunchKernel", 12, 13), stream, ("gemm", 13, 18));
    drawing.host(Category::Runtime, "cudaDeviceSynchronize", 14, 18);
    drawing.analysis()
}

#[test]
fn kernels_change_with_the_call_that_launched_them() {
    let analysis = with_device();
    assert_eq!(median(&analysis, &scaled(&[("gemm", 0.0)])), 16);
    assert_eq!(median(&analysis, &scaled(&[("cudaLaunchKernel", 0.0)])), 15);
}

#[test]
fn copies_may_run_beside_other_work_but_not_faster() {
    let changes = Changes {
        overlap_copies: true,
        ..Changes::default()
    };
    // 10 of the host and the kernel remain.
    assert_eq!(median(&with_device(), &changes), 10);
}

#[test]
fn without_synchronization_the_host_runs_ahead() {
    let changes = Changes {
        no_synchronization: true,
        ..Changes::default()
    };
    // The copy ends at 11 and the kernel at 16.
    assert_eq!(median(&with_device(), &changes), 16);
}

// step       |-------------------------------------------------|   0..40
// batch      |------|                                              0..10
//   collate    |--|                                                2..8    torch's code, for the loader
// count             |-----|                                       10..16   the user's
//   get               |-|                                         12..14   built in
// linear                   |--------|                             16..24
//   launch                    |-|                                 18..20
// gemm                          |--|                              20..22
// call                               |-----|                      24..30   torch's
#[test]
fn a_graph_saves_launches_but_no_code_of_the_users() {
    let mut drawing = Drawing::new();
    drawing.step(0, 0, 40);
    let batch = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
    drawing.host(Category::Annotation, batch, 0, 10);
    let collate = "torch/utils/data/_utils/collate.py(3): collate";
    drawing.host(Category::PythonFunction, collate, 2, 8);
    drawing.host(Category::PythonFunction, "train.py(7): count", 10, 16);
    drawing.host(
        Category::PythonFunction,
        "<built-in method get of dict>",
        12,
        14,
    );
    drawing.host(Category::Operator, "aten::linear", 16, 24);
    let stream = drawing.stream(1);
    drawing.launch(("cudaLaunchKernel", 18, 20), stream, ("gemm", 20, 22));
    let call = "torch/nn/modules/module.py(1): _call_impl";
    drawing.host(Category::PythonFunction, call, 24, 30);
    let changes = Changes {
        cuda_graphs: true,
        ..Changes::default()
    };
    // 10 of the batch, 6 of `count` and the last 10 remain, and 0.3 of launching the graph.
    assert_eq!(median(&drawing.analysis(), &changes), 26);
}
