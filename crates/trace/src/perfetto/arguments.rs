//! The arguments that slices and instants share, and their encoding.

use super::fields::{annotation, event as field, interned};
use super::message::Message;

/// The arguments of slices. Their interned ids are their positions, from one; those of inputs are
/// in the order of the lists.
pub(super) const ARGUMENTS: [&str; 13] = [
    "Concrete Inputs",
    "Input type",
    "Input Strides",
    "Input Dims",
    "Call stack",
    "Sequence number",
    "finished",
    "External id",
    "correlation",
    "Bytes",
    "Addr",
    "Device Type",
    "Device Id",
];
pub(super) const CALL_STACK: u64 = 5;
pub(super) const SEQUENCE_NUMBER: u64 = 6;
pub(super) const FINISHED: u64 = 7;
pub(super) const EXTERNAL_ID: u64 = 8;
pub(super) const CORRELATION: u64 = 9;
pub(super) const BYTES: u64 = 10;
pub(super) const ADDRESS: u64 = 11;
pub(super) const DEVICE_TYPE: u64 = 12;
pub(super) const DEVICE_ID: u64 = 13;

/// Appends an argument.
pub(super) fn annotate(slice: &mut Message, argument: u64, kind: u32, value: u64) {
    slice.message(field::ANNOTATION, |written| {
        written.number(annotation::NAME, argument);
        written.number(kind, value);
    });
}

/// Appends a newly interned text.
pub(super) fn add_text(news: &mut Message, field: u32, id: u64, text: &str) {
    news.message(field, |entry| {
        entry.number(interned::ID, id).text(interned::TEXT, text);
    });
}
