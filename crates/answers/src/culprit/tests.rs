use super::*;

/// A path of calls: depth, function, own time, and the part of it that is work of a model.
fn path(depth: usize, function: &str, own: u64, model: u64) -> CodePath {
    CodePath {
        depth,
        file: "train.py".into(),
        function: function.into(),
        definition: None,
        line: 1,
        own_line: 1,
        called_at: None,
        is_forward: function.ends_with("forward"),
        own: Nanos(own),
        total: Nanos::ZERO,
        mostly: None,
        operators: Nanos::ZERO,
        model: Nanos(model),
        backward: Nanos::ZERO,
        operator_calls: 0,
    }
}

fn with_backward(path: CodePath) -> CodePath {
    CodePath {
        backward: Nanos(path.model.0 / 2),
        ..path
    }
}

/// Finds the culprit of paths whose total times follow from their own times.
fn culprit(mut paths: Vec<CodePath>) -> (String, Culprit) {
    let callers = callers(&paths);
    for index in (0..paths.len()).rev() {
        paths[index].total = paths[index].total + paths[index].own;
        if let Some(caller) = callers[index] {
            paths[caller].total = paths[caller].total + paths[index].total;
        }
    }
    let total = Nanos(paths.iter().map(|path| path.own.0).sum());
    let paths = CodePaths {
        recording: Nanos::ZERO,
        total,
        paths,
        path_of_node: Vec::new(),
    };
    let found = Culprit::find(&paths).unwrap();
    (paths.paths[found.path].function.clone(), found)
}

#[test]
fn unexpected_work_comes_before_the_model() {
    let (name, found) = culprit(vec![
        with_backward(path(0, "main", 63, 60)),
        path(1, "Momentum.step", 29, 0),
    ]);
    assert_eq!(name, "Momentum.step");
    assert_eq!((found.time, found.larger), (Nanos(29), Some(0)));
}

#[test]
fn a_model_that_takes_nearly_all_the_time_is_named() {
    let (name, found) = culprit(vec![
        path(0, "main", 10, 0),
        with_backward(path(1, "Net.forward", 85, 80)),
    ]);
    assert_eq!(name, "Net.forward");
    assert_eq!((found.through, found.larger), (None, None));
}

/// ```text
/// main ── teacher_targets ── Net.forward 86
///     └── Net.forward 3, trained
/// ```
#[test]
fn the_function_that_runs_a_shared_model_is_to_blame() {
    let (name, found) = culprit(vec![
        path(0, "main", 7, 0),
        path(1, "teacher_targets", 1, 0),
        path(2, "Net.forward", 86, 60),
        with_backward(path(1, "Net.forward", 3, 2)),
    ]);
    assert_eq!(name, "teacher_targets");
    assert_eq!((found.time, found.through), (Nanos(87), Some(2)));
}

#[test]
fn a_caller_that_does_much_else_is_not_blamed_for_a_shared_model() {
    let (name, found) = culprit(vec![
        path(0, "fit", 10, 0),
        with_backward(path(1, "Net.forward", 50, 50)),
        path(1, "evaluate", 1, 0),
        path(2, "Net.forward", 9, 9),
        path(1, "log", 8, 0),
    ]);
    assert_eq!(name, "Net.forward");
    assert_eq!((found.path, found.time), (1, Nanos(50)));
}

#[test]
fn a_helper_is_summed_up_over_its_callers() {
    let (name, found) = culprit(vec![
        path(0, "main", 30, 0),
        path(1, "encode", 5, 0),
        path(2, "mask", 20, 0),
        path(1, "decode", 5, 0),
        path(2, "mask", 21, 0),
    ]);
    assert_eq!(name, "mask");
    assert_eq!((found.time, found.path), (Nanos(41), 4));
    assert_eq!(found.paths, [2, 4]);
}

#[test]
fn without_training_the_model_is_expected_too() {
    let (name, _) = culprit(vec![
        path(0, "main", 0, 0),
        path(1, "tokenize", 35, 0),
        path(1, "Net.forward", 60, 60),
    ]);
    assert_eq!(name, "tokenize");
}

// fit trains with the loss that evaluate computes too.
#[test]
fn a_validation_is_told_apart_from_a_training_that_shares_a_helper() {
    let (name, found) = culprit(vec![
        path(0, "fit", 6, 0),
        path(1, "evaluate", 4, 0),
        path(2, "loss", 3, 0),
        path(3, "Net.forward", 55, 55),
        path(1, "loss", 2, 0),
        with_backward(path(2, "Net.forward", 30, 30)),
    ]);
    assert_eq!(name, "evaluate");
    assert_eq!(found.time, Nanos(62));
    assert_eq!(found.through, Some(3));
}

// Two classes of a file have a method of this name, and only one of them takes long.
#[test]
fn methods_of_one_name_do_not_sum() {
    let defined = |line: u32, own: u64| CodePath {
        definition: Some(line),
        ..path(1, "measure", own, 0)
    };
    let (name, found) = culprit(vec![path(0, "main", 1, 0), defined(7, 20), defined(30, 9)]);
    assert_eq!((name.as_str(), found.time), ("measure", Nanos(20)));
    assert_eq!(found.paths.len(), 1);
}
