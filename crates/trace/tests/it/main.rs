//! Tests of reading and writing traces, on recorded and on generated ones.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod ascend;
mod ascend_database;
mod ascend_faults;
mod ascend_tables;
mod categories;
#[expect(dead_code, reason = "tests of other crates use the rest")]
mod corpus;
mod damage;
mod files;
mod kept;
mod parts;
mod passthrough;
mod perfetto;
mod plain;
mod round_trip;
mod snapshots;
