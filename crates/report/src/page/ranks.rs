//! The page of a job: the verdict, a picture of ranks and steps, and every answer as a table.
//!
//! It is made from the answers and the grid of steps, and uses the engine of all pages. Without
//! scripts, all panes are shown one below the other.

mod heat;
mod overview;
mod tables;

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use mindprof_formats::counted;
use mindprof_ranks::{JobAnswer, StepGrid};
use mindprof_trace::write_file;
use serde_json::json;

use self::overview::overview;
use self::tables::{
    advice_table, clock_table, collective_tables, device_table, difference_tables, grid_table,
    kernel_table, memory_table, slow_rank_table, slow_step_table, step_table,
};
use super::engine::{Page, Pane};
use super::markup::escaped;
use super::modules::RANKS;
use super::table::Table;
use crate::error::Result;
use crate::ranks::{clock_notes, difference_notes};

/// The largest number of differences of each kind that the page lists.
const DIFFERENCES: usize = 50;

/// Writes the page of a job: one HTML file that needs no other file and no network.
///
/// # Errors
/// Fails if `out` cannot be written to.
pub fn write_ranks_page(answer: &JobAnswer, grid: &StepGrid, out: &mut dyn Write) -> Result<()> {
    let overview_tables = [slow_rank_table(answer), slow_step_table(answer)];
    let rank_tables = [
        clock_table(answer),
        device_table(answer),
        memory_table(answer),
    ];
    let step_tables = [step_table(answer), grid_table(grid)];
    let collectives = collective_tables(answer);
    let kernels = [kernel_table(answer)];
    let [rows, facts] = difference_tables(answer);
    let differences = [facts, rows, advice_table(answer)];
    let panes = [
        (
            "overview",
            "Overview",
            overview(answer, grid, &overview_tables),
        ),
        (
            "ranks",
            "Ranks",
            pane("Ranks", &clock_notes(answer), &rank_tables),
        ),
        ("steps", "Steps", pane("Steps", &[], &step_tables)),
        (
            "collectives",
            "Collectives",
            pane("Collectives", &[], &collectives),
        ),
        (
            "kernels",
            "Kernels",
            pane("Kernels of all ranks", &[], &kernels),
        ),
        (
            "differences",
            "Differences",
            pane(
                "What ranks do differently",
                &difference_notes(answer, DIFFERENCES),
                &differences,
            ),
        ),
    ];
    let panes = panes.into_iter().filter(|(_, _, html)| !html.is_empty());
    let tables = overview_tables
        .iter()
        .chain(&rank_tables)
        .chain(&step_tables)
        .chain(&collectives)
        .chain(&kernels)
        .chain(&differences);
    let page = Page {
        title: "All ranks of a job".into(),
        subtitle: counted(answer.roster.files as u64, "rank"),
        panes: panes
            .map(|(id, title, html)| Pane {
                id,
                title,
                html,
                is_listed: true,
            })
            .collect(),
        data: json!({"tables": tables.map(Table::json).collect::<Vec<_>>()}).to_string(),
        modules: RANKS,
    };
    page.write(out)
}

/// Writes the page of a job to a file, as [`write_ranks_page`] does.
///
/// # Errors
/// Fails if the file cannot be written. The error names the file.
pub fn write_ranks_page_file(answer: &JobAnswer, grid: &StepGrid, path: &Path) -> Result<()> {
    write_file(path, |out| write_ranks_page(answer, grid, out))
}

/// Returns a pane of notes and tables; empty if there is nothing to show.
fn pane(title: &str, notes: &[String], tables: &[Table]) -> String {
    let shown: Vec<&Table> = tables
        .iter()
        .filter(|table| !table.rows.is_empty())
        .collect();
    if notes.is_empty() && shown.is_empty() {
        return String::new();
    }
    let mut html = format!("<h1>{title}</h1>\n");
    push_notes(&mut html, notes);
    html.extend(shown.into_iter().map(Table::html));
    html
}

/// Appends notes as a list.
fn push_notes(html: &mut String, notes: &[String]) {
    if notes.is_empty() {
        return;
    }
    html.push_str("<ul class=\"facts\">\n");
    for note in notes {
        let _ = writeln!(html, "<li>{}</li>", escaped(note));
    }
    html.push_str("</ul>\n");
}
