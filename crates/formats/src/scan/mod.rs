//! JSON read in one pass, in windows, without a tree: what the reader of traces is made of.

mod cursor;
mod digits;
mod fragments;
mod source;
mod step_text;
mod steps;
mod text;
mod value_end;
mod zstd;

pub(crate) use cursor::{Cursor, Scan, Stop};
pub(crate) use digits::decimal;
pub(crate) use fragments::{Fragment, Fragments, text_hash};
pub(crate) use source::{Fault, Source};
use step_text::StepText;
pub(crate) use steps::{Step, Steps};
pub(crate) use text::{decode, inside_quotes};
