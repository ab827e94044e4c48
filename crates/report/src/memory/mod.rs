//! The memory timeline for people: an HTML page and a text summary. Also the file that holds a page
//! or JSON, depending on its name, and the page and text of a memory snapshot.

mod bands;
mod components;
mod file;
mod page;
mod snapshot_page;
mod snapshot_text;
mod summary;

#[cfg(test)]
mod tests;

pub(crate) use bands::amount_text;
pub use components::component_memory_text;
pub use file::write_memory_timeline_file;
pub(crate) use page::memory_pane;
pub use page::write_memory_timeline_html;
pub use snapshot_page::write_snapshot_html;
pub use snapshot_text::snapshot_text;
pub use summary::memory_summary;
