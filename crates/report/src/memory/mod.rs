//! The memory timeline for people: an HTML page and a text summary. Also the file that holds a page
//! or JSON, depending on its name.

mod bands;
mod file;
mod page;
mod summary;

#[cfg(test)]
mod tests;

pub use file::write_memory_timeline_file;
pub(crate) use page::memory_pane;
pub use page::write_memory_timeline_html;
pub use summary::memory_summary;
