//! Perfetto's Protobuf traces: the same profile in a fraction of the bytes of a Chrome trace.

mod annotations;
mod arguments;
mod fields;
mod foreign;
mod marks;
mod message;
mod packets;
mod sequence;
mod tracks;
mod write;

pub use write::{write_perfetto, write_perfetto_file, write_perfetto_with};
