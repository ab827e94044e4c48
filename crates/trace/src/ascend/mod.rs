//! Profiles of Ascend NPUs: databases, CSV files and the vocabulary that all of them share.
//!
//! `trace_view.json` is a Chrome trace, which `chrome::collect` reads.

mod assembly;
mod database;
mod folder;
mod id_map;
mod memory;
mod shapes;
mod tables;
mod vocabulary;

pub(crate) use self::database::{DatabaseReader, MAGIC as DATABASE_MAGIC, read_database_file};
pub(crate) use self::folder::read_folder;
pub(crate) use self::tables::TableReader;
pub(crate) use self::vocabulary::{
    Layer, collective_name, device_of_process, is_user_range, is_wait, process_of,
};
