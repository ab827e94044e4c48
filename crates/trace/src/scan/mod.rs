//! A one-pass JSON scanner that works in windows and builds no tree. The readers of this crate are
//! made of it.

mod bytes;
mod cursor;
mod digits;
mod fragments;
mod prefix_predictor;
mod prefix_text;
mod source;
mod text;
mod value_end;
mod zstd;

pub(crate) use bytes::unwrapped;
pub(crate) use cursor::{Cursor, Scan, Stop};
pub(crate) use digits::decimal;
pub(crate) use fragments::{Fragment, Fragments, text_hash};
pub(crate) use prefix_predictor::{Prefix, PrefixPredictor};
use prefix_text::PrefixText;
pub(crate) use source::{Fault, Source};
pub(crate) use text::{decode, inside_quotes};
#[cfg(test)]
pub(crate) use zstd::ZstdFrames;
