//! Tests of the formats on real traces and on files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod categories;
mod corpus;
mod damage;
mod files;
mod goldens;
mod kept;
mod memory;
mod parts;
mod passthrough;
mod perfetto;
mod plain;
mod round_trip;
mod stacks;
mod torchs_view;
