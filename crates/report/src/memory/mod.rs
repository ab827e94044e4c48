//! The memory timeline for eyes: a page, and a summary; and the file whose name says which kind of
//! timeline it is.

mod bands;
mod file;
mod page;
mod summary;

#[cfg(test)]
mod tests;

pub use file::write_memory_timeline_file;
pub use page::write_memory_timeline_html;
pub use summary::memory_summary;
