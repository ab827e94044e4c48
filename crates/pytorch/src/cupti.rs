//! Device records from CUPTI, in place of those of torch's own collector.
//!
//! A [`DeviceCollection`] has CUPTI record the work of devices, and records the calls of CUDA itself
//! (`calls`). If it cannot, Kineto switches CUPTI's kinds of records on and off. Either way CUPTI
//! is given buffers of ours (`blocks`), so that Kineto has nothing to process when it stops. They
//! become [`DeviceRecords`], which are read by CUPTI's layouts (`layout`, `records`) into the events
//! that Kineto would have made of them (`source`).

mod arguments;
mod blocks;
mod calls;
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
pub use collection::{
    DeviceCollection, DeviceRecords, Recorder, detach, other_threads_launch_graphs,
};
