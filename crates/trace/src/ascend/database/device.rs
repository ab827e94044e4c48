//! The device's side: the tasks of its streams, and the collectives of HCCL.

use std::fmt::Write;

use mindprof_model::{Category, DeviceKind, InputsId, StringId, ThreadId};
use rustc_hash::FxHashMap;

use super::DatabaseReading;
use super::connection::integer;
use super::counters::Counters;
use super::kernels::Kernels;
use super::program::connection_of;
use crate::ascend::assembly::{Row, task_number};
use crate::ascend::id_map::IdMap;
use crate::ascend::{collective_name, is_wait};
use crate::error::Result;

const TASK_COLUMNS: [&str; 10] = [
    "startNs",
    "endNs",
    "deviceId",
    "streamId",
    "connectionId",
    "globalTaskId",
    "taskType",
    "taskId",
    "modelId",
    "contextId",
];
const COLLECTIVE_COLUMNS: [&str; 9] = [
    "startNs",
    "endNs",
    "deviceId",
    "connectionId",
    "opName",
    "groupName",
    "algType",
    "count",
    "dataType",
];

impl DatabaseReading<'_> {
    /// Reads everything that devices did.
    pub(super) fn read_device(&mut self) -> Result<()> {
        let kernels = self.read_kernels()?;
        let parts = self.read_collective_parts()?;
        let counters = self.read_counters()?;
        self.read_tasks(&kernels, &parts, &counters)?;
        self.read_collectives()
    }

    /// Reads the ids of the tasks that collectives consist of, which are no work of their own.
    fn read_collective_parts(&mut self) -> Result<IdMap> {
        let mut parts = IdMap::default();
        let columns = ["globalTaskId"];
        self.database
            .each_row("COMMUNICATION_TASK_INFO", &columns, |row| {
                if let Some(task) = integer(row, 0)? {
                    parts.insert(task as u64, 0);
                }
                Ok(())
            })?;
        Ok(parts)
    }

    fn read_tasks(&mut self, kernels: &Kernels, parts: &IdMap, counters: &Counters) -> Result<()> {
        let database = self.database;
        let mut waits: FxHashMap<StringId, bool> = FxHashMap::default();
        let mut last: Option<((i64, i64), ThreadId)> = None;
        database.each_row("TASK", &TASK_COLUMNS, |row| {
            let task = integer(row, 5)?.unwrap_or(-1) as u64;
            if !parts.is_empty() && parts.get(task).is_some() {
                return Ok(());
            }
            let place = (integer(row, 2)?.unwrap_or(0), integer(row, 3)?.unwrap_or(0));
            let thread = match last {
                Some((known, thread)) if known == place => thread,
                _ => {
                    (self.assembly).thread(DeviceKind::PrivateUse1, place.0 as u64, place.1 as u64)
                }
            };
            last = Some((place, thread));
            let kind = kernels.of_task.get(task);
            let kind = kind.map(|kind| &kernels.kinds[kind as usize]);
            let (name, category) = if let Some(kind) = kind {
                (kind.name, Category::Kernel)
            } else {
                let strings = &mut self.assembly.part.strings;
                let name = self.names.string(row, 6, strings)?;
                let is_wait = waits
                    .entry(name)
                    .or_insert_with(|| is_wait(strings.text(name)));
                let category = if *is_wait {
                    Category::Other
                } else {
                    Category::Kernel
                };
                (name, category)
            };
            let (start_ns, end_ns) = (integer(row, 0)?, integer(row, 1)?);
            let added = self.assembly.add(Row {
                category,
                name,
                thread,
                start_ns,
                end_ns,
                connection: connection_of(integer(row, 4)?),
                task: task_number((task, integer(row, 7)?, integer(row, 8)?, integer(row, 9)?)),
            });
            let Some(event) = added else {
                return Ok(());
            };
            event.inputs = kind.map_or(InputsId::NONE, |kind| kind.inputs);
            if !self.keeps_arguments {
                return Ok(());
            }
            let mut entries = counters.of(task as i64, start_ns, end_ns);
            if self.keeps_ids {
                let (id, model) = (integer(row, 7)?, integer(row, 8)?);
                let [id, model] = [id, model].map(|number| number.unwrap_or(-1));
                // Writing to a text does not fail.
                let _ = write!(entries, "\"Task Id\":{id},\"Model Id\":{model}");
            }
            if entries.is_empty() {
                // Many tasks share one text.
                self.assembly.keep_text(kind.and_then(|kind| kind.text));
            } else {
                let kept = kind.map_or("", |kind| kind.arguments.as_str());
                let entries = format!("{kept}{entries}");
                self.assembly.keep_arguments(entries.trim_end_matches(','));
            }
            Ok(())
        })?;
        Ok(())
    }

    fn read_collectives(&mut self) -> Result<()> {
        let database = self.database;
        let mut kinds: FxHashMap<i64, String> = FxHashMap::default();
        database.each_row("ENUM_HCCL_DATA_TYPE", &["id", "name"], |row| {
            let strings = &mut self.assembly.part.strings;
            let name = self.names.string(row, 1, strings)?;
            if let Some(id) = integer(row, 0)? {
                kinds.insert(id, strings.text(name).to_owned());
            }
            Ok(())
        })?;
        database.each_row("COMMUNICATION_OP", &COLLECTIVE_COLUMNS, |row| {
            let strings = &mut self.assembly.part.strings;
            let full = self.names.string(row, 4, strings)?;
            let bare = collective_name(strings.text(full)).to_owned();
            let name = strings.intern(&bare);
            let group = self.names.string(row, 5, strings)?;
            let algorithm = self.names.string(row, 6, strings)?;
            let device = integer(row, 2)?.unwrap_or(0) as u64;
            let thread = self.assembly.group(device, group);
            let added = self.assembly.add(Row {
                category: Category::Kernel,
                name,
                thread,
                start_ns: integer(row, 0)?,
                end_ns: integer(row, 1)?,
                connection: connection_of(integer(row, 3)?),
                task: task_number((full.to_raw(), integer(row, 3)?)),
            });
            if added.is_none() || !self.keeps_arguments {
                return Ok(());
            }
            let strings = &self.assembly.part.strings;
            let text = |string| serde_json::Value::from(strings.text(string));
            let count = integer(row, 7)?.unwrap_or(-1);
            let kind = integer(row, 8)?.and_then(|kind| kinds.get(&kind));
            let kind = serde_json::Value::from(kind.map_or("", String::as_str));
            let entries = format!(
                "\"name\":{},\"group\":{},\"algorithm\":{},\"count\":{count},\"data_type\":{kind}",
                text(full),
                text(group),
                text(algorithm)
            );
            self.assembly.keep_arguments(&entries);
            Ok(())
        })?;
        Ok(())
    }
}
