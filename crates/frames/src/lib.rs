//! Python frames, read from the memory of this process: no lock of the interpreter is taken, and an
//! address that turns out to be wrong is an error and not a fault.
//!
//! The interpreter does not document where its structures keep what. A [`Layout`] holds the
//! positions that a probe has found in the running interpreter; [`walk()`] follows a thread's frames
//! by it, and [`CodeLayout`] tells the function and the line of each.
//!
//! A thread may read its own frames directly while it waits in a call that one of them made. Frames
//! of other threads change at any time: a [`ForeignThread`] copies them at once and reads the copy.

mod code;
mod foreign_thread;
mod layout;
mod line_table;
mod memory;
mod text;
mod waits;
mod walk;

pub use code::{Code, CodeLayout};
pub use foreign_thread::ForeignThread;
pub use layout::{FrameLayout, Layout, ThreadLayout};
pub use memory::{Checked, Direct, Memory, read_many, read_words};
pub use text::{TextLayout, class_name};
pub use waits::Activity;
pub use walk::{RawFrame, threads, walk};
