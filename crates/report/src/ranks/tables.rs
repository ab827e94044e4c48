//! The tables of a job.

use mindprof_model::Nanos;
use mindprof_ranks::{Blame, Cause, DeviceTimes, JobAnswer, RankLabel};

use super::{RanksLayout, cause_words, ranks_words, share_words};
use crate::grid::{Align, cut, grid, push_line};
use crate::number::memory_text;
use crate::steps::{percent, short_time};
use crate::visible::visible;

fn push_table(
    text: &mut String,
    title: &str,
    columns: &[(&str, Align)],
    rows: &[Vec<String>],
    more: usize,
) {
    if rows.is_empty() {
        return;
    }
    push_line(text, &format!("\n{title}"));
    text.push_str(&grid(columns, rows));
    if more > 0 {
        push_line(text, &format!("… and {more} more"));
    }
}

/// Returns the number of a rank, or the name of its file.
fn short(rank: &RankLabel) -> String {
    let name = rank
        .rank
        .map_or_else(|| rank.file.clone(), |rank| rank.to_string());
    cut(&visible(&name), Some(10))
}

fn host(rank: &RankLabel) -> String {
    cut(&visible(rank.host.as_deref().unwrap_or("-")), Some(16))
}

fn cause_cell(cause: Option<Cause>) -> String {
    cause.map_or("no single cause", cause_words).into()
}

pub(super) fn push_slow_ranks(text: &mut String, answer: &JobAnswer, layout: RanksLayout) {
    let slow = &answer.stragglers.ranks;
    let rows = slow.iter().take(layout.rows).map(|rank| {
        vec![
            short(&rank.rank),
            host(&rank.rank),
            format!("+{}", short_time(rank.excess)),
            share_words(rank.share),
            format!("{} of {}", rank.slow_steps, rank.steps),
            cause_cell(rank.cause),
        ]
    });
    let columns = [
        ("Rank", Align::Right),
        ("Machine", Align::Left),
        ("Own work", Align::Right),
        ("Of step", Align::Right),
        ("Slow steps", Align::Right),
        ("Mostly", Align::Left),
    ];
    let more = slow.len().saturating_sub(layout.rows);
    push_table(
        text,
        "Slow ranks",
        &columns,
        &rows.collect::<Vec<_>>(),
        more,
    );
}

pub(super) fn push_slow_steps(text: &mut String, answer: &JobAnswer, layout: RanksLayout) {
    let slow = &answer.slow_steps;
    let rows = slow.iter().take(layout.rows).map(|step| {
        let who = match &step.blame {
            Blame::Rank(rank) => visible(&rank.text()).into_owned(),
            Blame::Ranks(ranks) => ranks_words(ranks),
            Blame::AllRanks => "all ranks".into(),
            Blame::Nobody => "communication".into(),
        };
        let cause = match step.blame {
            Blame::Rank(_) | Blame::Ranks(_) | Blame::AllRanks => cause_cell(step.cause),
            Blame::Nobody => String::new(),
        };
        vec![
            step.number.to_string(),
            short_time(step.duration),
            format!("+{}", short_time(step.excess)),
            cut(&who, Some(24)),
            cause,
        ]
    });
    let columns = [
        ("Step", Align::Right),
        ("Time", Align::Right),
        ("Excess", Align::Right),
        ("Because of", Align::Left),
        ("Mostly", Align::Left),
    ];
    let more = slow.len().saturating_sub(layout.rows);
    push_table(
        text,
        "Slow steps",
        &columns,
        &rows.collect::<Vec<_>>(),
        more,
    );
}

pub(super) fn push_collectives(text: &mut String, answer: &JobAnswer, layout: RanksLayout) {
    let all = &answer.communication.rows;
    let rows = all.iter().take(layout.rows).map(|row| {
        let last = row.last.as_ref().map_or_else(String::new, |(rank, times)| {
            format!("{} ({times}x)", short(rank))
        });
        let rate = row
            .bytes_per_s
            .map_or_else(|| "-".into(), |rate| format!("{:.1}", rate / 1e9));
        let mean = row.bytes.map_or_else(
            || "-".into(),
            |bytes| memory_text(i64::try_from(bytes / row.count.max(1)).unwrap_or(i64::MAX)),
        );
        vec![
            row.kind.name().into(),
            cut(&visible(&row.ranks), Some(8)),
            row.count.to_string(),
            mean,
            short_time(Nanos(row.transfer.0 / row.count.max(1))),
            short_time(Nanos(row.wait.0 / row.count.max(1))),
            rate,
            last,
        ]
    });
    let columns = [
        ("Kind", Align::Left),
        ("Ranks", Align::Left),
        ("Count", Align::Right),
        ("Size", Align::Right),
        ("Transfer", Align::Right),
        ("Wait", Align::Right),
        ("GB/s", Align::Right),
        ("Last", Align::Left),
    ];
    let more = all.len().saturating_sub(layout.rows);
    let title = "Collectives, means of each";
    push_table(text, title, &columns, &rows.collect::<Vec<_>>(), more);
}

fn device_row(name: String, times: &DeviceTimes) -> Vec<String> {
    vec![
        name,
        short_time(times.span),
        percent(times.compute, times.span),
        percent(times.not_compute, times.span),
        percent(times.idle, times.span),
        percent(times.exposed, times.span),
        times.overlap.map_or_else(|| "-".into(), share_words),
        times.launches.to_string(),
        if times.launches > 0 {
            short_time(times.delay_p50)
        } else {
            "-".into()
        },
    ]
}

pub(super) fn push_devices(text: &mut String, answer: &JobAnswer, layout: RanksLayout) {
    let devices = &answer.devices;
    let Some(all) = &devices.all else {
        return;
    };
    let ranks = devices.ranks.iter().take(layout.rows);
    let mut rows: Vec<Vec<String>> = ranks
        .map(|rank| device_row(short(&rank.rank), &rank.times))
        .collect();
    rows.push(device_row("all".into(), all));
    let columns = [
        ("Rank", Align::Right),
        ("Span", Align::Right),
        ("Compute", Align::Right),
        ("Other", Align::Right),
        ("Idle", Align::Right),
        ("Exposed", Align::Right),
        ("Overlap", Align::Right),
        ("Launches", Align::Right),
        ("Delay", Align::Right),
    ];
    let more = devices.ranks.len().saturating_sub(layout.rows);
    push_table(
        text,
        "Devices, from their first to their last work",
        &columns,
        &rows,
        more,
    );
}

pub(super) fn push_kernels(text: &mut String, answer: &JobAnswer, layout: RanksLayout) {
    // The columns of numbers and the spaces between all take so much.
    const NUMBERS: usize = 50;
    // Without a limit, names of templates would take thousands of columns.
    const WIDE: usize = 140;
    let room = Some(layout.width.unwrap_or(WIDE).saturating_sub(NUMBERS));
    let kernels = answer.kernels.iter().take(layout.rows).map(|kernel| {
        vec![
            cut(&visible(&kernel.name), room),
            kernel.count.to_string(),
            short_time(kernel.sum),
            short_time(kernel.p50),
            short_time(kernel.largest),
            short(&kernel.slowest.0),
        ]
    });
    let columns = [
        ("Kernels of all ranks", Align::Left),
        ("Count", Align::Right),
        ("Sum", Align::Right),
        ("p50", Align::Right),
        ("Longest", Align::Right),
        ("Slowest", Align::Right),
    ];
    let rows: Vec<Vec<String>> = kernels.collect();
    if rows.is_empty() {
        return;
    }
    text.push('\n');
    text.push_str(&grid(&columns, &rows));
}
