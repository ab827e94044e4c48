//! The times of steps as text: percentiles, classes, and what was different in slow steps.

use std::fmt::Write as _;

use mindprof_analyze::microseconds;
use mindprof_answers::{SlowStep, StepClass, StepSplit, StepTimes};
use mindprof_formats::counted;
use mindprof_model::Nanos;

use crate::grid::{Align, grid, push_line, push_wrapped};
use crate::visible::visible;

/// The layout of a list of steps.
#[derive(Clone, Copy, Debug)]
pub struct StepsLayout {
    /// The largest number of steps to list.
    pub rows: usize,
    /// The largest width, or `None` for no limit.
    pub width: Option<usize>,
}

/// Returns that devices set the pace, if they need longer for a step than the CPU.
pub(crate) fn behind_text(times: &StepTimes) -> Option<String> {
    let median = short_time(times.device_p50?);
    Some(format!(
        "The device sets the pace: its median step takes {median}. The times and classes here are \
         those of the CPU, which runs ahead"
    ))
}

/// Returns the times of steps as text, as `mindprof steps` prints them.
pub fn steps_text(times: &StepTimes, layout: StepsLayout) -> String {
    let mut text = String::new();
    if times.steps.is_empty() {
        push_line(
            &mut text,
            "No complete steps: record with `prof.step()` or `mindprof run`",
        );
        return text;
    }
    let line = format!(
        "{}: p50 {}, {}",
        counted(times.steps.len() as u64, "step"),
        short_time(times.p50),
        tail_text(&times.tail())
    );
    push_wrapped(&mut text, &line, layout.width);
    if let Some(behind) = behind_text(times) {
        push_wrapped(&mut text, &behind, layout.width);
    }
    if let Some(first) = times.first {
        let first = format!(
            "Step {} is left out: it began before the recording, or with it",
            first.number
        );
        push_wrapped(&mut text, &first, layout.width);
    }
    text.push('\n');
    let count = times.steps.len() as u64;
    let rows: Vec<Vec<String>> = (times.split.iter())
        .filter(|(_, time)| *time > Nanos::ZERO)
        .map(|(class, time)| {
            vec![
                class_text(class, times.has_python).into(),
                percent(time, times.split.total()),
                short_time(Nanos(time.0 / count)),
                short_time(time),
            ]
        })
        .collect();
    let columns = [
        ("Class", Align::Left),
        ("Share", Align::Right),
        ("Per step", Align::Right),
        ("In all", Align::Right),
    ];
    text.push_str(&grid(&columns, &rows));
    push_slow(&mut text, times, layout.width);
    push_list(&mut text, times, layout);
    text
}

/// Returns named times beyond the median: `p90 1.00 ms, longest 2.90 ms`.
pub(crate) fn tail_text(tail: &[(&'static str, Nanos)]) -> String {
    let texts = tail
        .iter()
        .map(|(name, time)| format!("{name} {}", short_time(*time)));
    texts.collect::<Vec<_>>().join(", ")
}

/// Returns the classes of steps in one line, largest first, as far as they matter.
pub(crate) fn split_text(split: &StepSplit, has_python: bool) -> String {
    let total = split.total();
    let mut classes: Vec<(StepClass, Nanos)> = (split.iter())
        .filter(|&(_, time)| is_share(time, total, 1))
        .collect();
    classes.sort_by_key(|&(class, time)| (std::cmp::Reverse(time), class));
    let classes = classes
        .into_iter()
        .map(|(class, time)| format!("{} {}", class_text(class, has_python), percent(time, total)));
    classes.collect::<Vec<_>>().join(", ")
}

/// Returns what was different in a slow step: `Python +31 ms, in save (train.py:7)`.
pub(crate) fn slow_text(slow: &SlowStep, has_python: bool) -> String {
    let class = class_text(slow.class, has_python);
    let mut text = format!("{class} +{}", short_time(slow.class_excess));
    if let Some(function) = &slow.growth.function {
        let _ = write!(
            text,
            ", in {} ({}:{})",
            function.function, function.file, function.line
        );
    }
    let operator = slow.growth.operator.as_ref();
    if let Some(operator) = operator.filter(|operator| is_share(operator.time, slow.excess, 50)) {
        let _ = write!(text, ", {}", visible(&operator.name));
    }
    text
}

/// Returns a time with three digits.
pub(crate) fn short_time(time: Nanos) -> String {
    let micros = microseconds(time);
    let (value, unit) = match micros {
        0.0..1e3 => (micros, "us"),
        1e3..1e6 => (micros / 1e3, "ms"),
        _ => (micros / 1e6, "s"),
    };
    let digits = match value {
        0.0..9.995 => 2,
        0.0..99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {unit}")
}

/// Returns whether a replay takes so much more or less time than the recording that both are told.
pub(crate) const fn differ(recorded: Nanos, replayed: Nanos) -> bool {
    recorded.0.abs_diff(replayed.0) > recorded.0 / 100
}

/// Returns a share as a whole percentage.
pub(crate) fn percent(part: Nanos, whole: Nanos) -> String {
    format!("{:.0} %", 100.0 * part.0 as f64 / whole.0.max(1) as f64)
}

/// Returns whether a time is at least so many percent of a whole, and not zero.
pub(crate) fn is_share(part: Nanos, whole: Nanos, least_percent: u64) -> bool {
    let product = |time: Nanos, factor: u64| u128::from(time.0) * u128::from(factor);
    part > Nanos::ZERO && product(part, 100) >= product(whole, least_percent)
}

/// Returns the name of a class. Without recorded calls, Python code cannot be told from idle time.
const fn class_text(class: StepClass, has_python: bool) -> &'static str {
    match class {
        StepClass::Idle if !has_python => "Python or idle",
        class => class.name(),
    }
}

fn push_slow(text: &mut String, times: &StepTimes, width: Option<usize>) {
    if times.slow.is_empty() {
        return;
    }
    let line = format!(
        "\nSlow steps: {} of {}, in comparison with the others:",
        times.slow_count,
        times.steps.len()
    );
    push_line(text, &line);
    for slow in &times.slow {
        let line = format!(
            "step {} ({}): {}",
            slow.step.number,
            short_time(slow.step.duration),
            slow_text(slow, times.has_python)
        );
        push_wrapped(text, &line, width);
    }
}

fn push_list(text: &mut String, times: &StepTimes, layout: StepsLayout) {
    if layout.rows == 0 {
        return;
    }
    text.push('\n');
    let shown: Vec<StepClass> = (times.split.iter())
        .filter(|(_, time)| time.0 * 200 >= times.split.total().0)
        .map(|(class, _)| class)
        .collect();
    let mut columns = vec![("Step", Align::Right), ("Time", Align::Right)];
    columns.extend(
        shown
            .iter()
            .map(|&class| (class_text(class, times.has_python), Align::Right)),
    );
    columns.push(("", Align::Left));
    let rows: Vec<Vec<String>> = (times.steps.iter().take(layout.rows))
        .map(|time| {
            let mut cells = vec![time.step.number.to_string(), short_time(time.step.duration)];
            let classes = shown.iter();
            cells.extend(classes.map(|&class| percent(time.split.time(class), time.step.duration)));
            cells.push(if time.is_slow {
                "slow".into()
            } else {
                String::new()
            });
            cells
        })
        .collect();
    text.push_str(&grid(&columns, &rows));
    let more = times.steps.len().saturating_sub(layout.rows);
    if more > 0 {
        push_line(text, &format!("{more} more steps"));
    }
}

#[cfg(test)]
mod tests {
    use mindprof_analyze::Analysis;
    use mindprof_answers::OwnCode;
    use mindprof_model::{Category, Timeline};

    use super::*;

    #[test]
    fn steps_are_split_and_slow_ones_explained() {
        let profile = Timeline::draw(|time| {
            for number in 0..6 {
                time.annotation(&format!("ProfilerStep#{number}"), |time| {
                    time.op("aten::mm", 900_000);
                    let save = if number == 4 { 2_000_000 } else { 100_000 };
                    let call = Category::PythonFunction;
                    time.event(call, "train.py(7): save", |time| time.idle(save));
                });
            }
        });
        let times = StepTimes::build(&Analysis::build(profile), &OwnCode::default());
        let layout = StepsLayout {
            rows: 2,
            width: Some(80),
        };
        assert_eq!(
            steps_text(&times, layout),
            "\
6 steps: p50 1.00 ms, longest 2.90 ms

Class      Share  Per step   In all
---------  -----  --------  -------
operators   68 %    900 us  5.40 ms
Python      32 %    417 us  2.50 ms

Slow steps: 1 of 6, in comparison with the others:
step 4 (2.90 ms): Python +1.90 ms, in save (train.py:7)

Step     Time  operators  Python
----  -------  ---------  ------
   0  1.00 ms       90 %    10 %
   1  1.00 ms       90 %    10 %
4 more steps
"
        );
    }

    #[test]
    fn percentiles_of_few_steps_are_not_told() {
        let tail = |count: u64| {
            let profile = Timeline::draw(|time| {
                for number in 1..=count {
                    time.annotation(&format!("ProfilerStep#{number}"), |time| {
                        time.op("aten::mm", number * 1_000);
                    });
                }
            });
            let times = StepTimes::build(&Analysis::build(profile), &OwnCode::default());
            tail_text(&times.tail())
        };
        assert_eq!(tail(19), "longest 19.0 us");
        assert_eq!(tail(20), "p90 18.0 us, longest 20.0 us");
        assert_eq!(tail(199), "p90 180 us, longest 199 us");
        assert_eq!(tail(200), "p90 180 us, p99 198 us, longest 200 us");
    }

    #[test]
    fn shares_of_the_longest_times_do_not_overflow() {
        let longest = Nanos(u64::MAX);
        assert!(is_share(longest, longest, 100));
        assert!(is_share(Nanos(u64::MAX / 2 + 1), longest, 50));
        assert!(!is_share(Nanos(u64::MAX / 2), longest, 50));
        assert!(!is_share(Nanos::ZERO, Nanos::ZERO, 1));
    }

    #[test]
    fn times_have_three_digits() {
        for (nanos, text) in [
            (0, "0.00 us"),
            (1_234, "1.23 us"),
            (45_678, "45.7 us"),
            (999_400, "999 us"),
            (12_345_678, "12.3 ms"),
            (61_000_000_000, "61.0 s"),
        ] {
            assert_eq!(short_time(Nanos(nanos)), text);
        }
    }
}
