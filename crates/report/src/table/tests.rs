use mindprof_analyze::{Amount, Amounts, averages};
use mindprof_formats::SortBy;
use mindprof_model::{
    Category, Event, Flags, LossCause, Nanos, Part, Profile, StringTable, Thread, Timeline,
};

use proptest::prelude::*;

use super::columns::cut_name;
use super::*;

fn of(profile: &Profile, options: &TableOptions) -> String {
    let analysis = Analysis::build(profile.clone());
    let averages = averages(&analysis, GroupBy::default());
    table(&analysis, &averages, GroupBy::default(), options)
}

// parent  |--------------------|                 0..100 us
// child     |---|                               10..40
// child2        |--------|                      40..90
// leaf            |--|                          50..60
// other                           |------|     200..1300
fn family() -> Profile {
    Timeline::draw(|time| {
        time.scope("parent", |time| {
            time.idle(10_000);
            time.op("child", 30_000);
            time.scope("child2", |time| {
                time.idle(10_000);
                time.op("leaf", 10_000);
                time.idle(30_000);
            });
            time.idle(10_000);
        });
        time.idle(100_000);
        time.op("other", 1_100_000);
    })
}

#[test]
fn rows_keep_their_order_by_default() {
    assert_eq!(
        of(&family(), &TableOptions::default()),
        "\
----------  ------------  ------------  ------------  ------------  ------------  ------------  
      Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  
----------  ------------  ------------  ------------  ------------  ------------  ------------  
    parent         1.67%      20.000us         8.33%     100.000us     100.000us             1  
     child         2.50%      30.000us         2.50%      30.000us      30.000us             1  
    child2         3.33%      40.000us         4.17%      50.000us      50.000us             1  
      leaf         0.83%      10.000us         0.83%      10.000us      10.000us             1  
     other        91.67%       1.100ms        91.67%       1.100ms       1.100ms             1  
----------  ------------  ------------  ------------  ------------  ------------  ------------  
Self CPU time total: 1.200ms
"
    );
}

#[test]
fn a_header_and_top_level_rows_alone() {
    let options = TableOptions {
        header: Some("H".into()),
        rows: RowOptions {
            top_level_events_only: true,
            ..RowOptions::default()
        },
        ..TableOptions::default()
    };
    assert_eq!(
        of(&family(), &options),
        "\
==============================================================================================
H
==============================================================================================
This report only display top-level ops statistics
----------  ------------  ------------  ------------  ------------  ------------  ------------  
      Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  
----------  ------------  ------------  ------------  ------------  ------------  ------------  
    parent         1.67%      20.000us         8.33%     100.000us     100.000us             1  
     other        91.67%       1.100ms        91.67%       1.100ms       1.100ms             1  
----------  ------------  ------------  ------------  ------------  ------------  ------------  
Self CPU time total: 1.200ms
"
    );
}

#[test]
fn long_names_are_cut() {
    let options = TableOptions {
        max_name_column_width: Some(8),
        ..TableOptions::default()
    };
    assert_eq!(
        of(&family(), &options),
        "\
--------  ------------  ------------  ------------  ------------  ------------  ------------  
    Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  
--------  ------------  ------------  ------------  ------------  ------------  ------------  
paren...         1.67%      20.000us         8.33%     100.000us     100.000us             1  
child...         2.50%      30.000us         2.50%      30.000us      30.000us             1  
child...         3.33%      40.000us         4.17%      50.000us      50.000us             1  
    leaf         0.83%      10.000us         0.83%      10.000us      10.000us             1  
other...        91.67%       1.100ms        91.67%       1.100ms       1.100ms             1  
--------  ------------  ------------  ------------  ------------  ------------  ------------  
Self CPU time total: 1.200ms
"
    );
}

// a (asynchronous)  |---------|     0..100 us
// b                    |-|         20..30
#[test]
fn an_asynchronous_row_has_no_share() {
    let mut builder = Part::new();
    let thread = builder.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: mindprof_model::DeviceKind::Cpu,
    });
    for (name, start, duration, flags) in [
        ("a", 0, 100_000, Flags::ASYNC),
        ("b", 20_000, 10_000, Flags::NONE),
    ] {
        let name = builder.strings.intern(name);
        let (start, duration) = (Nanos(start), Nanos(duration));
        let mut event = Event::new(Category::Operator, name, thread, start, duration);
        event.flags = flags;
        builder.add_event(event);
    }
    assert_eq!(
        of(&builder.into_profile().unwrap(), &TableOptions::default()),
        "\
-----  ------------  ------------  ------------  ------------  ------------  ------------  
 Name    Self CPU %      Self CPU   CPU total %     CPU total  CPU time avg    # of Calls  
-----  ------------  ------------  ------------  ------------  ------------  ------------  
    a         0.00%       0.000us             0     100.000us     100.000us             1  
    b       100.00%      10.000us       100.00%      10.000us      10.000us             1  
-----  ------------  ------------  ------------  ------------  ------------  ------------  
Self CPU time total: 10.000us
"
    );
}

#[test]
fn names_one_short_of_the_dots_are_intact() {
    let name = |length: usize| "n".repeat(length);
    assert_eq!(cut_name(&name(51), Some(55)), name(51));
    assert_eq!(cut_name(&name(52), Some(55)), name(52) + "...");
    assert_eq!(cut_name(&name(80), Some(55)), name(52) + "...");
    assert_eq!(cut_name(&name(80), None), name(80));
    assert_eq!(
        cut_name("é".repeat(9).as_str(), Some(8)),
        "é".repeat(5) + "..."
    );
}

#[test]
fn widths_count_characters_and_not_bytes() {
    let profile = Timeline::draw(|time| time.op("日本", 1_000));
    let text = of(&profile, &TableOptions::default());
    let row = text.lines().nth(3).unwrap();
    assert!(row.starts_with("    日本  "), "{row}");
}

#[test]
fn rows_are_sorted_largest_first_and_limited() {
    let options = TableOptions {
        rows: RowOptions {
            sort_by: Some(SortBy::Metric(Metric::SelfCpuTimeTotal)),
            row_limit: Some(2),
            ..RowOptions::default()
        },
        time_unit: Some(TimeUnit::Milliseconds),
        ..TableOptions::default()
    };
    let text = of(&family(), &options);
    let lines: Vec<_> = text.lines().map(str::trim_start).collect();
    assert!(lines[3].starts_with("other "), "{text}");
    assert!(lines[4].starts_with("child2 "), "{text}");
    assert_eq!(lines[6], "Self CPU time total: 1.200ms");
    assert!(lines[4].contains("0.040ms"), "{text}");
}

#[test]
fn a_table_without_rows_says_so_and_what_was_lost() {
    let mut builder = Part::new();
    let profile = builder.clone().into_profile().unwrap();
    let said = "No events were recorded.\n";
    assert_eq!(of(&profile, &TableOptions::default()), said);
    builder.add_loss(LossCause::Budget, 2);
    let profile = builder.into_profile().unwrap();
    let lost = format!("{said}Events lost: 2 over the byte budget\n");
    assert_eq!(of(&profile, &TableOptions::default()), lost);
}

#[test]
fn lost_events_are_told_under_the_table() {
    let mut builder = Part::new();
    let thread = builder.add_thread(Thread {
        process: 1,
        native: 1,
        name: StringTable::EMPTY,
        device: mindprof_model::DeviceKind::Cpu,
    });
    let name = builder.strings.intern("a");
    builder.add_event(Event::new(
        Category::Operator,
        name,
        thread,
        Nanos(0),
        Nanos(1),
    ));
    builder.add_loss(LossCause::Budget, 10);
    builder.add_loss(LossCause::Damaged, 2);
    let text = of(&builder.into_profile().unwrap(), &TableOptions::default());
    assert_eq!(
        text.lines().last().unwrap(),
        "Events lost: 12, 10 over the byte budget, 2 in a damaged part of the file"
    );
}

fn any_row() -> impl Strategy<Value = Row<'static>> {
    let texts = (".{0,80}", prop::option::of(".{0,120}"));
    let numbers = (0..1_000_000_u32, 0..1_000_000_u32, 0..2000_i64, -9_i64..9);
    let frames = prop::collection::vec(".{0,100}", 0..3);
    (texts, numbers, frames, 0..1_000_000_000_i64).prop_map(
        |((name, shapes), (own, total, count, bytes), frames, flops)| {
            let amounts = Amounts::read(|metric| {
                Ok::<_, ()>(match metric {
                    Metric::Count => Amount::Whole(count),
                    Metric::SelfCpuTimeTotal => Amount::Float(f64::from(own) / 8.0),
                    Metric::CpuTimeTotal => Amount::Float(f64::from(total) / 8.0),
                    Metric::SelfCpuMemoryUsage => Amount::Whole(bytes << 10),
                    Metric::CpuMemoryUsage => Amount::Whole(bytes << 20),
                    Metric::Flops => Amount::Whole(flops),
                    _ => Amount::Whole(0),
                })
            });
            Row {
                name: one_line(&name).into(),
                amounts: amounts.unwrap(),
                node: -1,
                shapes: shapes.map(|text| one_line(&text).into()),
                stack: frames.iter().map(|text| one_line(text).into()).collect(),
                ..Row::default()
            }
        },
    )
}

/// A line feed in a name is shown as it is, and is the one thing that breaks a row.
fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

proptest! {
    #[test]
    fn names_of_any_language_and_length_keep_the_columns_straight(
        rows in prop::collection::vec(any_row(), 1..12),
    ) {
        let facts = TableFacts { memory: true, flops: true, ..TableFacts::default() };
        let text = table_of_rows(&rows, &facts, &TableOptions::default()).unwrap();
        let mut lines: Vec<&str> = text.split('\n').collect();
        prop_assert_eq!(lines.pop(), Some(""));
        let footer = lines.pop().unwrap();
        prop_assert!(footer.starts_with("Self CPU time total: "));
        let width = characters(lines[0]);
        // A header that is wider than its column moves the ones after it, as it does in torch.
        lines.remove(1);
        for line in lines {
            prop_assert_eq!(characters(line), width, "{}", text);
        }
    }

    #[test]
    fn the_text_does_not_depend_on_the_order_of_equal_keys(
        rows in prop::collection::vec(any_row(), 1..12),
    ) {
        // Rows that compare equal keep their order, so what is sorted once is sorted for good.
        let sort_by = Some(SortBy::Metric(Metric::Count));
        let rows_options = RowOptions { sort_by, ..RowOptions::default() };
        let options = TableOptions { rows: rows_options, ..TableOptions::default() };
        let facts = TableFacts::default();
        let once = table_of_rows(&rows, &facts, &options).unwrap();
        let sorted: Vec<Row<'_>> = rows_options.shown(&rows).into_iter().cloned().collect();
        prop_assert_eq!(table_of_rows(&sorted, &facts, &options).unwrap(), once);
    }
}
