//! The properties of devices in the metadata of a trace.

use mindprof_model::Metadata;
use serde::Deserialize;

use super::cards::Card;

/// The metadata key under which torch lists the devices.
const KEY: &str = "deviceProperties";

/// The properties of one device, as torch writes them into a trace.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct DeviceProperties {
    pub(crate) id: u64,
    pub(crate) name: String,
    #[serde(rename = "totalGlobalMem", default)]
    pub(crate) memory_bytes: u64,
    /// The first number of the compute capability.
    #[serde(rename = "computeMajor", default)]
    pub(crate) compute_major: Option<u32>,
}

impl DeviceProperties {
    /// Reads the devices from metadata. Those that make no sense are left out.
    pub(crate) fn read(metadata: &Metadata) -> Vec<Self> {
        let text = metadata.get(KEY).unwrap_or_default();
        let devices: Vec<serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
        let devices = devices.into_iter();
        devices
            .filter_map(|device| serde_json::from_value(device).ok())
            .collect()
    }

    /// Returns the limits of the device's model, if they are known.
    pub(crate) fn card(&self) -> Option<Card> {
        Card::of(&self.name, self.memory_bytes)
    }
}
