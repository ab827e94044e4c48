use mindprof_analyze::Analysis;
use mindprof_answers::DiffOptions;
use mindprof_model::Timeline;

use super::*;

fn of(before: &[(&str, u64)], after: &[(&str, u64)]) -> Diff {
    let drawn = |operators: &[(&str, u64)]| {
        Analysis::build(Timeline::draw(|time| {
            for (name, nanoseconds) in operators {
                time.op(name, *nanoseconds);
            }
        }))
    };
    Diff::build(&drawn(before), &drawn(after), DiffOptions::default())
}

#[test]
fn the_largest_change_stands_first_and_totals_stand_below() {
    let diff = of(
        &[("mm", 1_000), ("größer", 4_000), ("same", 500), ("old", 10)],
        &[("mm", 2_000_000), ("größer", 3_000), ("same", 500)],
    );
    assert_eq!(
        diff_text(&diff, &DiffLayout::default()),
        "\
Name    Calls A  Calls B   Self A   Self B  Self diff    Change %  Total A  Total B  Total diff
------  -------  -------  -------  -------  ---------  ----------  -------  -------  ----------
mm            1        1  1.000us  2.000ms   +1.999ms  +199900.0%  1.000us  2.000ms    +1.999ms
größer        1        1  4.000us  3.000us   -1.000us      -25.0%  4.000us  3.000us    -1.000us
old           1        0  0.010us        -   -0.010us        gone  0.010us        -    -0.010us

Rows: 2 changed, 0 new, 1 gone, 1 without change
Events compared: 4 -> 3
Self CPU time total: 5.510us -> 2.003ms (+36261.2%)
Span: 5.510us -> 2.003ms (+36261.2%)
"
    );
}

#[test]
fn names_are_cut_and_rows_are_limited() {
    let diff = of(&[("a rather long name", 10), ("b", 5)], &[]);
    let layout = DiffLayout {
        row_limit: Some(1),
        max_name_column_width: Some(10),
        ..DiffLayout::default()
    };
    let text = diff_text(&diff, &layout);
    assert!(text.contains("\na rathe...  "), "{text}");
    assert!(
        text.contains("\n... and 1 more row that changed\n"),
        "{text}"
    );
}

#[test]
fn nothing_changed_is_said() {
    let diff = of(&[("mm", 10)], &[("mm", 10)]);
    assert_eq!(
        diff_text(&diff, &DiffLayout::default()),
        "No change.\nRows: 0 changed, 0 new, 0 gone, 1 without change\nEvents compared: 1 -> 1\n\
         Self CPU time total: 0.010us -> 0.010us (0.0%)\nSpan: 0.010us -> 0.010us (0.0%)\n"
    );
}

#[test]
fn the_text_is_as_narrow_as_asked_for() {
    let diff = of(
        &[("aten::a_rather_long_name_of_an_operator", 1_000), ("b", 5)],
        &[("aten::a_rather_long_name_of_an_operator", 2_000)],
    );
    for width in [120, 100, 80, 60, 40, 30, 20] {
        let layout = DiffLayout {
            max_width: Some(width),
            ..DiffLayout::default()
        };
        let text = diff_text(&diff, &layout);
        let widest = text.lines().map(characters).max();
        assert!(widest <= Some(width), "{width}:\n{text}");
        assert!(text.contains("+1.000us"), "{width}:\n{text}");
    }
}

#[test]
fn where_counts_are_compared_other_times_are_no_change() {
    let drawn = |operators: &[(&str, u64)]| {
        Analysis::build(Timeline::draw(|time| {
            for (name, nanoseconds) in operators {
                time.op(name, *nanoseconds);
            }
        }))
    };
    let options = DiffOptions {
        measure: Measure::Count,
        ..DiffOptions::default()
    };
    let after = [("mm", 20), ("mm", 10), ("relu", 7)];
    let diff = Diff::build(&drawn(&[("mm", 10), ("relu", 5)]), &drawn(&after), options);
    let text = diff_text(&diff, &DiffLayout::default());
    assert!(!text.contains("relu"), "{text}");
    assert!(
        text.contains("Rows: 1 changed, 0 new, 0 gone, 1 without change"),
        "{text}"
    );
    let none = DiffLayout {
        row_limit: Some(0),
        ..DiffLayout::default()
    };
    let text = diff_text(&diff, &none);
    assert!(text.starts_with("Rows: 1 changed"), "{text}");
}
