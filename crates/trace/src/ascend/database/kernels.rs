//! The kernels of `COMPUTE_TASK_INFO`: the name, inputs and properties of each task that is one.

use mindprof_model::{InputsId, StringId, TextId};
use rusqlite::Row;
use rustc_hash::FxHashMap;

use super::DatabaseReading;
use super::connection::integer;
use crate::ascend::id_map::IdMap;
use crate::error::Result;

const COLUMNS: [&str; 10] = [
    "globalTaskId",
    "name",
    "opType",
    "taskType",
    "inputShapes",
    "inputDataTypes",
    "outputShapes",
    "outputDataTypes",
    "blockNum",
    "mixBlockNum",
];

/// The properties that all kernels of one kind share.
pub(super) struct KernelKind {
    pub(super) name: StringId,
    pub(super) inputs: InputsId,
    /// Its properties as entries of a JSON object with a comma behind each, if they are kept.
    pub(super) arguments: String,
    /// The properties alone, for tasks that have no others.
    pub(super) text: Option<TextId>,
}

/// The kinds of kernels, and the kind of each task.
///
/// A program runs few kinds of kernels many times, so a task takes one number.
#[derive(Default)]
pub(super) struct Kernels {
    pub(super) kinds: Vec<KernelKind>,
    pub(super) of_task: IdMap,
}

impl DatabaseReading<'_> {
    /// Reads the kinds of all kernels.
    pub(super) fn read_kernels(&mut self) -> Result<Kernels> {
        let mut kernels = Kernels::default();
        let mut known: FxHashMap<[i64; 9], u32> = FxHashMap::default();
        let database = self.database;
        database.each_row("COMPUTE_TASK_INFO", &COLUMNS, |row| {
            let Some(task) = integer(row, 0)? else {
                return Ok(());
            };
            let mut key = [0; 9];
            for (column, value) in (1..).zip(&mut key) {
                *value = self.number_of(row, column)?;
            }
            let kind = if let Some(&kind) = known.get(&key) {
                kind
            } else {
                let kind = kernels.kinds.len() as u32;
                kernels.kinds.push(self.kernel_kind(row)?);
                known.insert(key, kind);
                kind
            };
            kernels.of_task.insert(task as u64, kind);
            Ok(())
        })?;
        Ok(kernels)
    }

    /// Returns a number that stands for the value of a column: its own, or that of its text.
    fn number_of(&mut self, row: &Row<'_>, column: usize) -> Result<i64> {
        if let Some(number) = integer(row, column)? {
            return Ok(number);
        }
        let strings = &mut self.assembly.part.strings;
        let string = self.names.string(row, column, strings)?;
        Ok(-1 - i64::from(string.to_raw()))
    }

    fn kernel_kind(&mut self, row: &Row<'_>) -> Result<KernelKind> {
        let mut string = |column| {
            let strings = &mut self.assembly.part.strings;
            self.names.string(row, column, strings)
        };
        let (name, shapes, dtypes) = (string(1)?, string(4)?, string(5)?);
        let texts = [
            ("Type", string(2)?),
            ("Task Type", string(3)?),
            ("Input Shapes", shapes),
            ("Input Data Types", dtypes),
            ("Output Shapes", string(6)?),
            ("Output Data Types", string(7)?),
        ];
        let mut arguments: Vec<String> = Vec::new();
        if self.keeps_arguments {
            let strings = &self.assembly.part.strings;
            for (key, text) in texts {
                let text = serde_json::Value::from(strings.text(text));
                arguments.push(format!("\"{key}\":{text},"));
            }
            for (key, column) in [("Block Num", 8), ("Mix Block Num", 9)] {
                if let Some(number) = integer(row, column)? {
                    arguments.push(format!("\"{key}\":{number},"));
                }
            }
        }
        let arguments = arguments.concat();
        let texts = &mut self.assembly.part.passthrough.texts;
        Ok(KernelKind {
            name,
            text: match arguments.trim_end_matches(',') {
                "" => None,
                entries => texts.add(entries),
            },
            inputs: self.assembly.inputs(shapes, dtypes),
            arguments,
        })
    }
}
