//! What is made for eyes: tables, summaries and differences as text, flame graphs as pictures, the
//! memory timeline as a page.
//!
//! Rows, names and files come from `formats`, which makes what programs read; how wide a column is
//! and in which unit a number is told is known here alone.

mod diff;
mod error;
mod flamegraph;
mod grid;
mod info;
mod memory;
mod number;
mod table;
mod visible;

pub use diff::{DiffLayout, diff_text};
pub use error::{Error, Result};
pub use flamegraph::{write_flamegraph, write_flamegraph_file};
pub use info::info_text;
pub use memory::{memory_summary, write_memory_timeline_file, write_memory_timeline_html};
pub use number::{TimeUnit, memory_text, share_text, time_text};
pub use table::{
    NO_EVENTS, TABLE_COLUMNS, TableFacts, TableOptions, events_table, table, table_of_rows,
};
pub use visible::{visible, visible_lines};
