//! `step_trace_time.csv`: for each step, how long the NPU computed, communicated and was free.

use std::io::Read;

use serde_json::{Map, Value};

use super::Table;
use crate::error::Result;
use crate::repairs::Repairs;

/// Returns the rows as JSON: a list of objects with the columns of the file. Returns the repairs
/// too.
pub(in crate::ascend) fn read_step_times(input: impl Read) -> Result<(String, Repairs)> {
    let table = Table::open(input)?;
    let columns = table.columns.clone();
    let mut rows = Vec::new();
    let repairs = table.each_row(|fields| {
        let entries = columns.iter().enumerate().map(|(column, name)| {
            let text = fields.text(column);
            let number = fields.number(column).parse::<f64>();
            let value = number.map_or(Value::from(text), Value::from);
            (name.trim().to_owned(), value)
        });
        rows.push(Value::Object(entries.collect::<Map<_, _>>()));
        Ok(())
    })?;
    Ok((Value::Array(rows).to_string(), repairs))
}
