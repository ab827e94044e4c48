//! The texts of a database, which its tables refer to by number.

use mindprof_model::{StringId, StringTable};
use rusqlite::Row;
use rusqlite::types::ValueRef;

use super::connection::{Database, integer, text};
use crate::ascend::id_map::IdMap;
use crate::error::Result;

/// The texts of `STRING_IDS`, as strings of the part.
pub(super) struct Names {
    ids: IdMap,
}

impl Names {
    /// Reads all texts.
    pub(super) fn read(database: &Database, strings: &mut StringTable) -> Result<Self> {
        let mut ids = IdMap::default();
        database.each_row("STRING_IDS", &["id", "value"], |row| {
            if let Some(id) = integer(row, 0)? {
                let value = strings.intern(text(row, 1)?);
                ids.insert(id as u64, value.to_raw());
            }
            Ok(())
        })?;
        Ok(Self { ids })
    }

    /// Returns the string in a column, which holds its number or, in some versions, the text itself.
    pub(super) fn string(
        &self,
        row: &Row<'_>,
        column: usize,
        strings: &mut StringTable,
    ) -> Result<StringId> {
        Ok(match row.get_ref(column)? {
            ValueRef::Integer(id) => match self.ids.get(id as u64) {
                Some(string) => StringId::from_raw(string),
                None => strings.intern(&format!("string {id}")),
            },
            ValueRef::Text(_) => strings.intern(text(row, column)?),
            ValueRef::Real(_) | ValueRef::Null | ValueRef::Blob(_) => StringTable::EMPTY,
        })
    }
}
