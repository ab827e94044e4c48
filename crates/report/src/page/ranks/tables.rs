//! The answers about a job as tables of the page.

use mindprof_analyze::Percentiles;
use mindprof_model::Nanos;
use mindprof_ranks::{Blame, Cause, JobAnswer, RankLabel, StepGrid};

use crate::page::table::{Cell, Column, Kind, Table, column};
use crate::ranks::{cause_words, ranks_words};

/// The most cells of ranks and steps that the page has, those with the most excess.
const MOST_CELLS: usize = 5_000;

const RANK: Column = column("Rank", Kind::Name, "");
const MACHINE: Column = column("Machine", Kind::Text, "");

fn table(
    id: &'static str,
    caption: &str,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    sorted_by: Option<usize>,
) -> Table {
    let made = Table {
        id,
        caption: caption.into(),
        columns,
        rows,
        sorted_by,
    };
    made.without_empty_columns()
}

fn rank_cell(rank: &RankLabel) -> Cell {
    Cell::text(rank.text())
}

fn machine_cell(rank: &RankLabel) -> Cell {
    Cell::text(rank.host.as_deref().unwrap_or_default())
}

fn cause_cell(cause: Option<Cause>) -> Cell {
    Cell::text(cause.map_or("no single cause", cause_words))
}

/// Returns the size of a message, or an empty cell if it is not known.
fn bytes_cell(bytes: Option<u64>) -> Cell {
    bytes.map_or(Cell::Empty, |bytes| {
        Cell::bytes(i64::try_from(bytes).unwrap_or(i64::MAX))
    })
}

fn signed(nanoseconds: i64) -> Cell {
    Cell::Number(nanoseconds as f64)
}

/// Returns the slow ranks with their causes.
pub(super) fn slow_rank_table(answer: &JobAnswer) -> Table {
    let rows = answer.stragglers.ranks.iter().map(|slow| {
        vec![
            rank_cell(&slow.rank),
            machine_cell(&slow.rank),
            Cell::time(slow.excess),
            Cell::Number(slow.share),
            Cell::count(slow.slow_steps as u64),
            Cell::count(slow.steps as u64),
            cause_cell(slow.cause),
        ]
    });
    let columns = vec![
        RANK,
        MACHINE,
        column(
            "Own work",
            Kind::Time,
            "More than the median rank, in each step.",
        ),
        column("Of step", Kind::Share, ""),
        column("Slow steps", Kind::Count, ""),
        column("Steps", Kind::Count, ""),
        column("Mostly", Kind::Text, ""),
    ];
    table("slow-ranks", "Slow ranks", columns, rows.collect(), Some(2))
}

/// Returns the slow steps with the ranks to blame.
pub(super) fn slow_step_table(answer: &JobAnswer) -> Table {
    let rows = answer.slow_steps.iter().map(|step| {
        let (who, cause) = match &step.blame {
            Blame::Rank(rank) => (rank.text(), cause_cell(step.cause)),
            Blame::Ranks(ranks) => (ranks_words(ranks), cause_cell(step.cause)),
            Blame::AllRanks => ("all ranks".into(), cause_cell(step.cause)),
            Blame::Nobody => ("communication".into(), Cell::Empty),
        };
        vec![
            Cell::text(step.number.to_string()),
            Cell::time(step.duration),
            Cell::time(step.excess),
            Cell::text(who),
            cause,
        ]
    });
    let columns = vec![
        column("Step", Kind::Name, ""),
        column("Time", Kind::Time, ""),
        column("Excess", Kind::Time, "More than the median step."),
        column("Because of", Kind::Text, ""),
        column("Mostly", Kind::Text, ""),
    ];
    table("slow-steps", "Slow steps", columns, rows.collect(), Some(2))
}

/// Returns the ranks with their files and clocks.
pub(super) fn clock_table(answer: &JobAnswer) -> Table {
    let clocks = &answer.clocks;
    let aligned = clocks.ranks.iter().map(|clock| {
        vec![
            rank_cell(&clock.rank),
            machine_cell(&clock.rank),
            Cell::text(clock.rank.file.as_str()),
            signed(clock.offset_ns),
            Cell::time(clock.error),
            Cell::count(clock.collectives),
            Cell::Empty,
        ]
    });
    let others = [(&clocks.unknown, "unknown"), (&clocks.doubtful, "doubtful")];
    let others = others
        .into_iter()
        .flat_map(|(ranks, why)| ranks.iter().map(move |rank| (rank, why)));
    let others = others.map(|(rank, why)| {
        vec![
            rank_cell(rank),
            machine_cell(rank),
            Cell::text(rank.file.as_str()),
            Cell::Empty,
            Cell::Empty,
            Cell::Empty,
            Cell::text(why),
        ]
    });
    let columns = vec![
        RANK,
        MACHINE,
        column("File", Kind::Text, ""),
        column(
            "Clock",
            Kind::Time,
            "The time to add to the rank's clock, so that it agrees with the first.",
        ),
        column("Error", Kind::Time, "The true offset is within this."),
        column("Collectives", Kind::Count, ""),
        column("Alignment", Kind::Text, ""),
    ];
    let rows = aligned.chain(others).collect();
    table("roster", "Ranks and their clocks", columns, rows, None)
}

/// Returns the use of the device of each rank.
pub(super) fn device_table(answer: &JobAnswer) -> Table {
    let rows = answer.devices.ranks.iter().map(|rank| {
        let times = &rank.times;
        vec![
            rank_cell(&rank.rank),
            Cell::time(times.span),
            Cell::time(times.compute),
            Cell::time(times.not_compute),
            Cell::time(times.idle),
            Cell::time(times.communication),
            Cell::time(times.exposed),
            times.overlap.map_or(Cell::Empty, Cell::Number),
            Cell::count(times.launches),
            Cell::time(times.delay_p50),
            percentile("p99", times.delay_p99, times.launches),
        ]
    });
    let columns = vec![
        RANK,
        column("Span", Kind::Time, "From the first to the last work."),
        column("Compute", Kind::Time, ""),
        column("Other", Kind::Time, "Neither computing nor idle."),
        column("Idle", Kind::Time, ""),
        column("Communication", Kind::Time, ""),
        column(
            "Exposed",
            Kind::Time,
            "Communication without computing beside it.",
        ),
        column("Overlap", Kind::Share, "Of communication with computing."),
        column("Launches", Kind::Count, ""),
        column("Delay p50", Kind::Time, "From the launch to the start."),
        column("Delay p99", Kind::Time, ""),
    ];
    table("devices", "Devices", columns, rows.collect(), None)
}

/// Returns the peak memory of each rank.
pub(super) fn memory_table(answer: &JobAnswer) -> Table {
    let bytes = |bytes: u64| Cell::bytes(i64::try_from(bytes).unwrap_or(i64::MAX));
    let rows = answer.memory.iter().map(|peak| {
        vec![
            rank_cell(&peak.rank),
            Cell::text(peak.device.as_str()),
            bytes(peak.allocated),
            bytes(peak.reserved),
            peak.capacity.map_or(Cell::Empty, bytes),
        ]
    });
    let columns = vec![
        RANK,
        column("Device", Kind::Text, ""),
        column("Allocated", Kind::Bytes, "The most that tensors had."),
        column("Reserved", Kind::Bytes, "The most that the allocator had."),
        column("Capacity", Kind::Bytes, ""),
    ];
    table("memory", "Peak memory", columns, rows.collect(), None)
}

/// Returns the steps of the job.
pub(super) fn step_table(answer: &JobAnswer) -> Table {
    let skews = &answer.communication.steps;
    let rows = answer.steps.each.iter().map(|step| {
        let skew = skews.iter().find(|skew| skew.step == step.number);
        vec![
            Cell::text(step.number.to_string()),
            Cell::time(step.duration),
            Cell::time(step.own),
            Cell::time(step.own_max),
            rank_cell(&step.busiest),
            skew.map_or(Cell::Empty, |skew| Cell::time(skew.skew_p50)),
            skew.map_or(Cell::Empty, |skew| Cell::time(skew.skew_max)),
            skew.map_or(Cell::Empty, |skew| rank_cell(&skew.last)),
        ]
    });
    let columns = vec![
        column("Step", Kind::Name, ""),
        column("Time", Kind::Time, "The median over all ranks."),
        column(
            "Own work",
            Kind::Time,
            "The median time that is not communication.",
        ),
        column("Most own work", Kind::Time, ""),
        column("Busiest", Kind::Text, ""),
        column(
            "Skew p50",
            Kind::Time,
            "From the first to the last arrival at a collective.",
        ),
        column("Skew max", Kind::Time, ""),
        column("Last", Kind::Text, ""),
    ];
    table("steps", "Steps of the job", columns, rows.collect(), None)
}

/// Returns the work of each rank in each step, the numbers of the picture.
pub(super) fn grid_table(grid: &StepGrid) -> Table {
    let cells = grid.steps.iter();
    let cells = cells.flat_map(|step| step.cells.iter().map(move |cell| (step, cell)));
    let mut cells: Vec<_> = cells.collect();
    let all = cells.len();
    cells.sort_by_key(|(step, cell)| std::cmp::Reverse(step.excess_ns(cell)));
    cells.truncate(MOST_CELLS);
    let rows = cells.iter().map(|(step, cell)| {
        vec![
            rank_cell(&grid.ranks[cell.rank]),
            Cell::count(step.number),
            signed(step.excess_ns(cell)),
            Cell::time(cell.own),
            Cell::time(cell.duration),
        ]
    });
    let caption = if all > MOST_CELLS {
        format!("Ranks and steps: the {MOST_CELLS} of {all} with the most work")
    } else {
        "Ranks and steps".into()
    };
    let columns = vec![
        RANK,
        column("Step", Kind::Count, ""),
        column(
            "Excess",
            Kind::Time,
            "Own work beyond that of the median rank.",
        ),
        column(
            "Own work",
            Kind::Time,
            "The time that is not communication.",
        ),
        column("Time", Kind::Time, ""),
    ];
    table("rank-steps", &caption, columns, rows.collect(), Some(2))
}

/// Returns the collectives by group and kind, and the single ones with the largest skew.
pub(super) fn collective_tables(answer: &JobAnswer) -> [Table; 2] {
    let communication = &answer.communication;
    let rows = communication.rows.iter().map(|row| {
        let mean = |sum: u64| sum / row.count.max(1);
        vec![
            Cell::text(row.kind.name()),
            Cell::text(row.group.as_str()),
            Cell::text(row.ranks.as_str()),
            Cell::text(row.description.as_str()),
            Cell::count(row.count),
            bytes_cell(row.bytes.map(mean)),
            Cell::time(Nanos(mean(row.transfer.0))),
            Cell::time(Nanos(mean(row.wait.0))),
            row.bytes_per_s.map_or(Cell::Empty, Cell::Number),
            Cell::time(row.skew_p50),
            Cell::time(row.skew_max),
            row.last.as_ref().map_or(Cell::Empty, |(rank, times)| {
                Cell::text(format!("{} ({times}x)", rank.text()))
            }),
        ]
    });
    let columns = vec![
        column("Kind", Kind::Name, ""),
        column("Group", Kind::Text, ""),
        column("Ranks", Kind::Text, ""),
        column("Description", Kind::Text, ""),
        column("Count", Kind::Count, ""),
        column("Size", Kind::Bytes, "The mean."),
        column("Transfer", Kind::Time, "The mean, without waiting."),
        column("Wait", Kind::Time, "The mean, for the rank that came last."),
        column("B/s", Kind::Amount, ""),
        column("Skew p50", Kind::Time, ""),
        column("Skew max", Kind::Time, ""),
        column("Last", Kind::Text, "The rank that came last most often."),
    ];
    let by_group = table(
        "collectives",
        "Collectives by group and kind",
        columns,
        rows.collect(),
        None,
    );
    let rows = communication.worst.iter().map(|worst| {
        vec![
            Cell::text(worst.kind.name()),
            Cell::text(worst.group.as_str()),
            worst.step.map_or(Cell::Empty, Cell::count),
            worst.sequence.map_or(Cell::Empty, Cell::count),
            bytes_cell(worst.bytes),
            Cell::time(worst.skew),
            Cell::time(worst.transfer),
            rank_cell(&worst.last),
        ]
    });
    let columns = vec![
        column("Kind", Kind::Name, ""),
        column("Group", Kind::Text, ""),
        column("Step", Kind::Count, ""),
        column("Sequence", Kind::Count, ""),
        column("Size", Kind::Bytes, ""),
        column("Skew", Kind::Time, ""),
        column("Transfer", Kind::Time, ""),
        column("Last", Kind::Text, ""),
    ];
    let worst = table(
        "worst-collectives",
        "Collectives with the largest skew",
        columns,
        rows.collect(),
        Some(5),
    );
    [by_group, worst]
}

/// Returns a percentile of so many times; empty if people are not told it of so few.
fn percentile(name: &str, time: Nanos, count: u64) -> Cell {
    let told = Percentiles::TOLD.iter().find(|told| told.name == name);
    let is_told = told.is_some_and(|told| count >= told.least as u64);
    if is_told {
        Cell::time(time)
    } else {
        Cell::Empty
    }
}

/// Returns the kernels of all ranks.
pub(super) fn kernel_table(answer: &JobAnswer) -> Table {
    let rows = answer.kernels.iter().map(|kernel| {
        vec![
            Cell::text(kernel.name.as_str()),
            Cell::count(kernel.ranks as u64),
            Cell::count(kernel.count),
            Cell::time(kernel.sum),
            Cell::time(kernel.mean),
            Cell::time(kernel.p50),
            percentile("p99", kernel.p99, kernel.count),
            Cell::time(kernel.largest),
            rank_cell(&kernel.slowest.0),
        ]
    });
    let columns = vec![
        column("Kernel", Kind::Name, ""),
        column("Ranks", Kind::Count, ""),
        column("Count", Kind::Count, ""),
        column("Sum", Kind::Time, ""),
        column("Mean", Kind::Time, ""),
        column("p50", Kind::Time, ""),
        column("p99", Kind::Time, ""),
        column("Max", Kind::Time, ""),
        column("Slowest", Kind::Text, "The rank with the largest mean."),
    ];
    table("kernels", "Kernels", columns, rows.collect(), Some(3))
}

/// Returns the operators and kernels that differ between ranks, and the facts that do.
pub(super) fn difference_tables(answer: &JobAnswer) -> [Table; 2] {
    let differences = &answer.differences;
    let rows = differences.rows.iter().map(|row| {
        vec![
            Cell::text(row.name.as_str()),
            Cell::count(row.usual_count),
            Cell::count(row.count_ranks as u64),
            Cell::count(row.shape_ranks as u64),
            Cell::time(row.time),
        ]
    });
    let columns = vec![
        column("Name", Kind::Name, ""),
        column("Usual count", Kind::Count, ""),
        column("Other counts", Kind::Count, "Ranks with another count."),
        column("Other shapes", Kind::Count, "Ranks with other shapes."),
        column("Time", Kind::Time, ""),
    ];
    let rows = table(
        "differing-rows",
        "Operators and kernels that differ",
        columns,
        rows.collect(),
        Some(4),
    );
    let facts = differences.facts.iter().flat_map(|fact| {
        fact.values.iter().map(|(value, ranks, first)| {
            vec![
                Cell::text(fact.fact.as_str()),
                Cell::text(value.as_str()),
                Cell::count(*ranks as u64),
                rank_cell(first),
            ]
        })
    });
    let columns = vec![
        column("Fact", Kind::Name, ""),
        column("Value", Kind::Text, ""),
        column("Ranks", Kind::Count, ""),
        column("Such as", Kind::Text, ""),
    ];
    let facts = table(
        "differing-facts",
        "Facts that differ",
        columns,
        facts.collect(),
        None,
    );
    [rows, facts]
}

/// Returns the findings of `mindprof advise` about single ranks.
pub(super) fn advice_table(answer: &JobAnswer) -> Table {
    let rows = answer.advice.iter().map(|advice| {
        vec![
            Cell::text(advice.rule.as_str()),
            Cell::count(advice.ranks as u64),
            Cell::Number(advice.share),
            Cell::Number(advice.highest.1),
            rank_cell(&advice.highest.0),
        ]
    });
    let columns = vec![
        column("Rule", Kind::Name, "A rule of mindprof advise."),
        column("Ranks", Kind::Count, ""),
        column("Of step", Kind::Share, "The median over these ranks."),
        column("Highest", Kind::Share, ""),
        column("On", Kind::Text, ""),
    ];
    table(
        "advice",
        "Findings about single ranks",
        columns,
        rows.collect(),
        Some(2),
    )
}
