//! Facts about the whole: the rank of the process, its machine, and what the profiler noted.

use super::DatabaseReading;
use super::connection::{integer, text};
use crate::error::Result;

/// The entry of the metadata with variables of the environment that slow an NPU down.
const VARIABLES: &str = "ENV_VARIABLES";

impl DatabaseReading<'_> {
    /// Returns the metadata of the profile, as JSON values by key.
    pub(super) fn metadata(&mut self) -> Result<Vec<(&'static str, String)>> {
        let mut facts = Vec::new();
        let mut ranks = Vec::new();
        let columns = ["rankId", "deviceId"];
        self.database.each_row("RANK_DEVICE_MAP", &columns, |row| {
            ranks.extend(integer(row, 0)?.and_then(|rank| u32::try_from(rank).ok()));
            Ok(())
        })?;
        if let [rank] = ranks.as_slice() {
            self.assembly.part.rank = Some(*rank);
            let told = format!("{{\"backend\":\"hccl\",\"rank\":{rank}}}");
            facts.push(("distributedInfo", told));
        }
        let mut machine = None;
        self.database.each_row("HOST_INFO", &["hostName"], |row| {
            machine = Some(text(row, 0)?.to_owned());
            Ok(())
        })?;
        if let Some(machine) = machine {
            facts.push(("host_name", serde_json::Value::from(machine).to_string()));
        }
        let mut chips = Vec::new();
        self.database.each_row("NPU_INFO", &["name"], |row| {
            chips.push(text(row, 0)?.to_owned());
            Ok(())
        })?;
        if !chips.is_empty() {
            facts.push(("npu_names", serde_json::Value::from(chips).to_string()));
        }
        self.database
            .each_row("META_DATA", &["name", "value"], |row| {
                let is_object = |value: &serde_json::Value| value.is_object();
                if text(row, 0)? == VARIABLES
                    && let Ok(value) = serde_json::from_str(text(row, 1)?)
                    && is_object(&value)
                {
                    facts.push((VARIABLES, value.to_string()));
                }
                Ok(())
            })?;
        Ok(facts)
    }
}
