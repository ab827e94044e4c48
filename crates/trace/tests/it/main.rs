//! Tests of reading and writing traces, on recorded ones and on made-up ones.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod categories;
mod corpus;
mod damage;
mod files;
mod kept;
mod parts;
mod passthrough;
mod perfetto;
mod plain;
mod round_trip;
