//! Device records from CUPTI's buffers, while torch's own collector believes to have them.
//!
//! Kineto subscribes to CUPTI and switches its kinds of records on and off. In between, CUPTI is
//! given buffers of ours (`blocks`), so that Kineto has nothing to process when it stops. A
//! [`DeviceCollection`] takes the buffers and yields [`DeviceRecords`], which are read by CUPTI's
//! layouts (`layout`, `records`) into the events that Kineto would have made of them (`source`).

mod arguments;
mod blocks;
mod collection;
mod interface;
mod layout;
mod names;
mod occupancy;
mod records;
mod source;
#[cfg(test)]
mod tests;

pub use blocks::KeepRecords;
pub use collection::{DeviceCollection, DeviceRecords, detach};
