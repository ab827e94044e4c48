//! A database of a profile: opened for reading only, with the tables that it has.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OpenFlags, Row};
use serde_json::Number;

use crate::error::{Error, Result};

/// The first bytes of every database.
pub(crate) const MAGIC: &[u8] = b"SQLite format 3\0";

/// The time to wait for a program that writes the database.
const PATIENCE: Duration = Duration::from_millis(500);

/// A profile's database.
///
/// All of its tables are read in one transaction, so that a program that writes it meanwhile cannot
/// make them disagree.
pub(super) struct Database {
    connection: Connection,
    /// The number of rows that a table cannot exceed.
    row_limit: u64,
}

/// Selects the tables that are stored in the file. Views and virtual tables compute their rows, of
/// which there may be no end.
const STORED: &str = "type = 'table' AND rootpage > 0 AND sql LIKE 'CREATE TABLE%'";

/// The fewest bytes of a row: its place in the page, its size and its number.
const LEAST_ROW_BYTES: u64 = 4;

impl Database {
    /// Opens a file.
    ///
    /// # Errors
    /// If it is not a database, is damaged, or is locked by another program.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let opened = Self::open_as(path, "mode=ro");
        match opened {
            // A read-only folder has no room for the file that readers of a log share. Without a log
            // there is nothing to share.
            Err(Error::DatabaseUnopened { .. }) if !has_log(path) => {
                Self::open_as(path, "mode=ro&immutable=1")
            }
            opened => opened,
        }
    }

    fn open_as(path: &Path, options: &str) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let uri = format!("file:{}?{options}", escaped(path));
        let connection = Connection::open_with_flags(uri, flags)?;
        Self::begin(connection)
    }

    /// Takes a database of `bytes` bytes from memory.
    ///
    /// # Errors
    /// If it is not a database, or is damaged.
    pub(super) fn read(input: impl Read, bytes: usize) -> Result<Self> {
        let mut connection = Connection::open_in_memory()?;
        connection.deserialize_read_exact("main", input, bytes, true)?;
        Self::begin(connection)
    }

    fn begin(connection: Connection) -> Result<Self> {
        connection.busy_timeout(PATIENCE)?;
        // A view or a trigger of a malicious file runs nothing but plain SQL.
        connection.execute_batch("PRAGMA trusted_schema = OFF; BEGIN")?;
        let mut database = Self {
            connection,
            row_limit: u64::MAX,
        };
        database.tables()?;
        let bytes = database.pragma("page_count")? * database.pragma("page_size")?;
        database.row_limit = bytes / LEAST_ROW_BYTES;
        Ok(database)
    }

    fn pragma(&self, name: &str) -> Result<u64> {
        let value: i64 = self
            .connection
            .pragma_query_value(None, name, |row| row.get(0))?;
        Ok(u64::from(u32::try_from(value).unwrap_or(u32::MAX)))
    }

    /// Returns the names of all tables.
    pub(super) fn tables(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        let sql = format!("SELECT name FROM sqlite_master WHERE {STORED} ORDER BY name");
        self.each_row_of(&sql, |row| {
            names.push(text(row, 0)?.to_owned());
            Ok(())
        })?;
        Ok(names)
    }

    /// Returns a number of rows that a table surely does not exceed, unless rows were deleted.
    pub(super) fn most_rows(&self, table: &str) -> Result<usize> {
        let mut rows = 0;
        let sql = format!("SELECT max(rowid) FROM \"{table}\"");
        self.each_row_of(&sql, |row| {
            rows = integer(row, 0)?.unwrap_or(0);
            Ok(())
        })?;
        Ok(usize::try_from(rows).unwrap_or(0))
    }

    /// Calls `each` with every row of a table that may be missing. A column that the table lacks is
    /// `NULL`. Returns whether there is such a table.
    pub(super) fn each_row(
        &self,
        table: &str,
        columns: &[&str],
        each: impl FnMut(&Row<'_>) -> Result<()>,
    ) -> Result<bool> {
        let known = self.columns(table)?;
        if known.is_empty() {
            return Ok(false);
        }
        let is_known = |column: &&str| known.iter().any(|name| name.eq_ignore_ascii_case(column));
        let columns: Vec<String> = columns
            .iter()
            .map(|column| {
                if is_known(column) {
                    format!("\"{column}\"")
                } else {
                    "NULL".to_owned()
                }
            })
            .collect();
        let sql = format!("SELECT {} FROM \"{table}\"", columns.join(", "));
        self.each_row_of(&sql, each)?;
        Ok(true)
    }

    /// Returns the columns of a table. They are empty if there is none.
    pub(super) fn columns(&self, table: &str) -> Result<Vec<String>> {
        let mut names = Vec::new();
        let sql = format!(
            "SELECT name FROM pragma_table_info('{table}') WHERE EXISTS \
             (SELECT 1 FROM sqlite_master AS known WHERE known.name = '{table}' AND {STORED})"
        );
        self.each_row_of(&sql, |row| {
            names.push(text(row, 0)?.to_owned());
            Ok(())
        })?;
        Ok(names)
    }

    fn each_row_of(&self, sql: &str, mut each: impl FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            count += 1;
            if count > self.row_limit {
                let what = "a table has more rows than the file has room for".to_owned();
                return Err(Error::DatabaseDamaged { what });
            }
            each(row)?;
        }
        Ok(())
    }
}

/// Returns the integer in a column. Some versions write integers as texts.
pub(super) fn integer(row: &Row<'_>, column: usize) -> Result<Option<i64>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(value) => Some(value),
        ValueRef::Real(value) => Some(value as i64),
        ValueRef::Text(text) => std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.trim().parse().ok()),
        ValueRef::Null | ValueRef::Blob(_) => None,
    })
}

/// Returns the number in a column, as it is written in JSON. Numbers that JSON has no words for are
/// none.
pub(super) fn number(row: &Row<'_>, column: usize) -> Result<Option<Number>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Integer(value) => Some(value.into()),
        ValueRef::Real(value) => Number::from_f64(value),
        ValueRef::Text(text) => std::str::from_utf8(text)
            .ok()
            .and_then(|text| Number::from_f64(text.trim().parse().ok()?)),
        ValueRef::Null | ValueRef::Blob(_) => None,
    })
}

/// Returns the text in a column. It is empty if there is none.
pub(super) fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(text) => std::str::from_utf8(text).unwrap_or_default(),
        ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Null | ValueRef::Blob(_) => "",
    })
}

/// Returns whether a program left changes beside the database.
fn has_log(path: &Path) -> bool {
    ["-wal", "-journal"].iter().any(|suffix| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name).exists()
    })
}

/// Returns a path as a part of a URI.
fn escaped(path: &Path) -> String {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let text = path.to_string_lossy();
    text.replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23")
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        let what = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::DatabaseLocked,
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => Self::DatabaseUnopened { what },
            _ => Self::DatabaseDamaged { what },
        }
    }
}
