//! The picture of ranks and steps: how much more than the median rank each rank worked.
//!
//! ```text
//! rank 0  . . . . . .
//! rank 1  . . . # . .      rank 1 was slow in step 3
//! rank 2  # # # # # #      rank 2 is slow
//! step    0 1 2 3 4 5
//! ```

use std::fmt::Write as _;

use mindprof_model::Nanos;
use mindprof_ranks::{GridCell, GridStep, RankLabel, StepGrid};

use crate::page::markup::escaped;
use crate::steps::short_time;

/// The largest number of rows and columns. If there are more ranks or steps, a cell is the worst of
/// several.
const MOST_ROWS: usize = 64;
const MOST_COLUMNS: usize = 60;

/// The parts of a median step from which on a cell has the next colour.
const LEVELS: [(f64, &str); 5] = [
    (0.02, "2 %"),
    (0.05, "5 %"),
    (0.10, "10 %"),
    (0.20, "20 %"),
    (0.40, "40 %"),
];

/// The largest numbers of row and column labels.
const ROW_LABELS: usize = 16;
const COLUMN_LABELS: usize = 15;

/// Returns the picture as HTML; empty if there are no steps.
pub(super) fn heat_map(grid: &StepGrid) -> String {
    if grid.steps.is_empty() || grid.step == Nanos::ZERO {
        return String::new();
    }
    let ranks_per_row = grid.ranks.len().div_ceil(MOST_ROWS);
    let steps_per_column = grid.steps.len().div_ceil(MOST_COLUMNS);
    let rows = grid.ranks.len().div_ceil(ranks_per_row);
    let columns = grid.steps.len().div_ceil(steps_per_column);
    let height = rows * if rows > ROW_LABELS { 9 } else { 24 };
    let mut html = format!(
        "<h2>Ranks and steps</h2>\n<figure class=\"heat\">\n{}<svg viewBox=\"0 0 {columns} {rows}\" \
         height=\"{height}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"How much more than \
         the median rank each rank worked in each step. The table of the pane Steps has the numbers.\">\n",
        row_labels(grid, ranks_per_row),
    );
    for (column, steps) in grid.steps.chunks(steps_per_column).enumerate() {
        let mut worst: Vec<Option<(&GridStep, &GridCell)>> = vec![None; rows];
        for (step, cell) in cells(steps) {
            let place = &mut worst[cell.rank / ranks_per_row];
            let excess = step.excess_ns(cell);
            if place.is_none_or(|(other, known)| other.excess_ns(known) < excess) {
                *place = Some((step, cell));
            }
        }
        for (row, found) in worst.iter().enumerate() {
            if let Some((step, cell)) = found {
                push_cell(&mut html, grid, (column, row), step, cell);
            }
        }
    }
    html.push_str("</svg>\n");
    html.push_str(&column_labels(grid, steps_per_column));
    html.push_str(&legend(ranks_per_row, steps_per_column));
    html + "</figure>\n"
}

fn cells(steps: &[GridStep]) -> impl Iterator<Item = (&GridStep, &GridCell)> {
    let with_step = |step| move |cell| (step, cell);
    steps
        .iter()
        .flat_map(move |step| step.cells.iter().map(with_step(step)))
}

fn push_cell(
    html: &mut String,
    grid: &StepGrid,
    (column, row): (usize, usize),
    step: &GridStep,
    cell: &GridCell,
) {
    let excess = step.excess_ns(cell);
    let share = excess as f64 / grid.step.0 as f64;
    let level = LEVELS.iter().filter(|(least, _)| share >= *least).count();
    let sign = if excess < 0 { "\u{2212}" } else { "+" };
    let _ = writeln!(
        html,
        "<rect class=\"heat-{level}\" x=\"{column}\" y=\"{row}\" width=\"1\" height=\"1\"><title>{}, step {}: \
         {sign}{} ({} of work)</title></rect>",
        escaped(&grid.ranks[cell.rank].text()),
        step.number,
        short_time(Nanos(excess.unsigned_abs())),
        short_time(cell.own)
    );
}

/// Returns the numbers of the ranks beside the rows, as many as there is room for.
fn row_labels(grid: &StepGrid, ranks_per_row: usize) -> String {
    let rows = grid.ranks.len().div_ceil(ranks_per_row);
    let every = rows.div_ceil(ROW_LABELS) * ranks_per_row;
    let mut html = String::from("<div class=\"rows\" aria-hidden=\"true\">");
    for chunk in grid.ranks.chunks(every) {
        let _ = write!(html, "<span>{}</span>", escaped(&short(&chunk[0])));
    }
    html + "</div>\n"
}

fn column_labels(grid: &StepGrid, steps_per_column: usize) -> String {
    let columns = grid.steps.len().div_ceil(steps_per_column);
    let every = columns.div_ceil(COLUMN_LABELS) * steps_per_column;
    let mut html = String::from("<div class=\"columns\" aria-hidden=\"true\">");
    for chunk in grid.steps.chunks(every) {
        let _ = write!(html, "<span>{}</span>", chunk[0].number);
    }
    html + "</div>\n"
}

/// Returns the number of a rank, or a mark for a rank without one.
fn short(rank: &RankLabel) -> String {
    rank.rank
        .map_or_else(|| "?".into(), |rank| rank.to_string())
}

fn legend(ranks_per_row: usize, steps_per_column: usize) -> String {
    let mut html = String::from(
        "<figcaption>Rows are ranks, columns are steps. The colour tells how much more than the median \
         rank a rank worked, communication left out, as a part of the median step.",
    );
    if ranks_per_row > 1 || steps_per_column > 1 {
        let _ = write!(
            html,
            " A cell is the worst of {ranks_per_row} ranks and {steps_per_column} steps."
        );
    }
    html.push_str("<ul class=\"legend\"><li><span class=\"swatch heat-0\"></span>less</li>");
    for (index, (_, text)) in LEVELS.iter().enumerate() {
        let level = index + 1;
        let _ = write!(
            html,
            "<li><span class=\"swatch heat-{level}\"></span>from {text}</li>"
        );
    }
    html + "</ul></figcaption>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(ranks: usize, steps: usize) -> StepGrid {
        let label = |rank: usize| RankLabel {
            rank: Some(rank as u32),
            host: None,
            file: format!("<b>{rank}.json"),
        };
        let own = |rank: usize| Nanos(if rank == ranks - 1 { 1_300 } else { 1_000 });
        let cells = |_| {
            (0..ranks).map(|rank| GridCell {
                rank,
                duration: Nanos(1_500),
                own: own(rank),
            })
        };
        StepGrid {
            ranks: (0..ranks).map(label).collect(),
            step: Nanos(1_500),
            steps: (0..steps)
                .map(|number| GridStep {
                    number: number as u64,
                    own_p50: Nanos(1_000),
                    cells: cells(number).collect(),
                })
                .collect(),
        }
    }

    #[test]
    fn the_slow_rank_has_the_colour_of_its_excess() {
        let html = heat_map(&grid(3, 4));
        assert_eq!(html.matches("<rect class=\"heat-4\"").count(), 4);
        assert_eq!(html.matches("<rect class=\"heat-0\"").count(), 8);
        assert!(
            html.contains("rank 2, step 3: +0.30 us (1.30 us of work)"),
            "{html}"
        );
    }

    #[test]
    fn many_ranks_share_rows_and_the_worst_is_shown() {
        let html = heat_map(&grid(512, 200));
        assert_eq!(html.matches("<rect ").count(), 64 * 50);
        assert_eq!(html.matches("<rect class=\"heat-4\"").count(), 50);
        assert!(html.contains("the worst of 8 ranks and 4 steps"), "{html}");
    }

    #[test]
    fn without_steps_there_is_no_picture() {
        assert_eq!(heat_map(&StepGrid::default()), "");
    }
}
