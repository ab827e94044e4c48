//! Predictions as text: how long steps would take with some changes.

use mindprof_answers::{Matched, NotChanged, Prediction};
use mindprof_formats::counted;
use mindprof_model::Nanos;

use crate::grid::{Align, cut, grid, push_wrapped};
use crate::steps::{differ, percent, short_time};
use crate::verdict::incomplete_text;

/// Returns a prediction as text, as `mindprof what-if` prints it.
pub fn what_if_text(prediction: &Prediction, width: Option<usize>) -> String {
    let mut text = String::new();
    let (before, after) = (&prediction.unrecorded, &prediction.changed);
    let what = if prediction.has_steps {
        if prediction.numbers.len() == 1 {
            "The step would take"
        } else {
            "An average step would take"
        }
    } else {
        "The recording, which has no steps, would take"
    };
    let change = match after.mean.cmp(&before.mean) {
        std::cmp::Ordering::Less => {
            let saved = before.mean.saturating_sub(after.mean);
            format!("{} less", percent(saved, before.mean))
        }
        std::cmp::Ordering::Equal => "no change".into(),
        std::cmp::Ordering::Greater => {
            let more = after.mean.saturating_sub(before.mean);
            format!("{} more", percent(more, before.mean))
        }
    };
    let first = format!(
        "{what} {} instead of {}: {change}",
        short_time(after.mean),
        short_time(before.mean)
    );
    if prediction.is_doubtful {
        let (recorded, replayed) = (&prediction.recorded, &prediction.replayed);
        let doubt = format!(
            "Do not trust this prediction: a replay of the recording takes {} instead of {}, so \
             work waits for something that the recording does not show.",
            short_time(replayed.total),
            short_time(recorded.total)
        );
        push_wrapped(&mut text, &doubt, width);
    }
    push_wrapped(&mut text, &first, width);
    if let Some(incomplete) = incomplete_text(&prediction.incomplete) {
        push_wrapped(&mut text, &incomplete, width);
    }
    text.push('\n');
    push_times(&mut text, prediction);
    let own = (prediction.replayed.mean).saturating_sub(before.mean);
    if own > Nanos::ZERO {
        let of = if prediction.has_steps {
            "a recorded step"
        } else {
            "the recording"
        };
        let note = format!(
            "The profiler's own cost is about {} of {of} ({}).",
            short_time(own),
            percent(own, prediction.replayed.mean)
        );
        push_wrapped(&mut text, &note, width);
    }
    push_matched(&mut text, &prediction.matched, width);
    text
}

fn push_times(text: &mut String, prediction: &Prediction) {
    let count = prediction.numbers.len();
    let average = match count {
        _ if !prediction.has_steps => "Time".into(),
        1 => "One step".into(),
        _ => format!("Average of {}", counted(count as u64, "step")),
    };
    let mut columns = vec![("Steps", Align::Left), (average.as_str(), Align::Right)];
    if count > 1 {
        columns.extend([("Median", Align::Right), ("In all", Align::Right)]);
    }
    let (recorded, replayed) = (&prediction.recorded, &prediction.replayed);
    let differs = differ(recorded.mean, replayed.mean);
    let times = [
        Some(("as recorded", recorded)),
        differs.then_some(("in a replay of that", replayed)),
        Some(("without the profiler", &prediction.unrecorded)),
        Some(("with the change", &prediction.changed)),
    ];
    let mut rows: Vec<Vec<String>> = times
        .into_iter()
        .flatten()
        .map(|(what, times)| {
            vec![
                what.into(),
                short_time(times.mean),
                short_time(times.median),
                short_time(times.total),
            ]
        })
        .collect();
    let (before, after) = (&prediction.unrecorded, &prediction.changed);
    rows.push(vec![
        "saved".into(),
        saved(before.mean, after.mean),
        saved(before.median, after.median),
        saved(before.total, after.total),
    ]);
    for row in &mut rows {
        row.truncate(columns.len());
    }
    text.push_str(&grid(&columns, &rows));
}

fn saved(before: Nanos, after: Nanos) -> String {
    if after > before {
        return format!("-{}", short_time(after.saturating_sub(before)));
    }
    short_time(before.saturating_sub(after))
}

fn push_matched(text: &mut String, matched: &[Matched], width: Option<usize>) {
    if matched.is_empty() {
        return;
    }
    text.push('\n');
    let room = width.map(|width| width.saturating_sub(28).max(20));
    let rows: Vec<Vec<String>> = matched
        .iter()
        .map(|matched| {
            let mut names: Vec<String> = (matched.names.iter())
                .map(|name| match name.events {
                    1 => name.name.clone(),
                    events => format!("{} ({events})", name.name),
                })
                .collect();
            if names.is_empty() {
                names.push(matched.pattern.clone());
            }
            vec![
                factor_text(matched.factor),
                matched.changed.to_string(),
                cut(&names.join(", "), room),
            ]
        })
        .collect();
    let columns = [
        ("Time", Align::Right),
        ("Events", Align::Right),
        ("Changed, with all inside it", Align::Left),
    ];
    text.push_str(&grid(&columns, &rows));
}

fn factor_text(factor: f64) -> String {
    if factor == 0.0 {
        return "removed".into();
    }
    if (factor - 1.0).abs() < f64::EPSILON {
        return "unchanged".into();
    }
    // As it is asked for, such as x 0.5.
    format!("x {factor}")
}

/// Returns why changes cannot be replayed, and what to do instead.
pub fn not_changed_text(reason: &NotChanged) -> (String, String) {
    match reason {
        NotChanged::NoChange => (
            "no change was given".into(),
            "name one: scale or remove work by name, or drop synchronization, data loading or \
             copies"
                .into(),
        ),
        NotChanged::NoWork => (
            "nothing ran on the CPU".into(),
            "record with the CPU among the activities".into(),
        ),
        NotChanged::NoMatch { pattern, similar } => {
            let hint = match similar {
                Some(similar) => format!("did you mean `{similar}`?"),
                None => "list names with `mindprof table --include-python-functions`".into(),
            };
            (format!("nothing called `{pattern}` in the profile"), hint)
        }
        NotChanged::BadFactor { pattern, factor } => (
            format!("the time of `{pattern}` cannot change by a factor of {factor}"),
            "use a factor from 0 to 1000, such as 0.5 for half of the time".into(),
        ),
        NotChanged::NoDataLoading => (
            "the profile has no data loading".into(),
            "name the function that gets the next batch, and remove it".into(),
        ),
        NotChanged::NoDevice => (
            "the profile has no device work".into(),
            "record with the device among the activities".into(),
        ),
    }
}
