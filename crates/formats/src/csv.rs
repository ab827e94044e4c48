//! Writes the columns of events as CSV: a header with the column names, then one record per event.
//!
//! Lists become JSON. An unknown value is an empty field, whereas a known but empty text is `""`,
//! so that readers can tell the two apart.

use std::io::{self, Write};

use csv::{QuoteStyle, WriterBuilder};
use mindprof_analyze::Analysis;

use crate::columns::{Column, Values, event_columns};
use crate::error::Result;

/// Writes every visible event and memory record of a profile as CSV. Returns the number of records
/// below the header.
///
/// # Errors
/// Fails if `out` cannot be written to.
pub(crate) fn write_csv(analysis: &Analysis, out: impl Write) -> Result<u64> {
    let columns = event_columns(analysis);
    Ok(write_columns(&columns, out).map_err(io_error)?)
}

fn write_columns(columns: &[Column], out: impl Write) -> csv::Result<u64> {
    let fields: Vec<Fields<'_>> = columns.iter().map(Fields::of).collect::<csv::Result<_>>()?;
    // Fields are quoted beforehand, each distinct text once. The writer only separates them.
    let mut writer = WriterBuilder::new()
        .quote_style(QuoteStyle::Never)
        .from_writer(out);
    for column in columns {
        writer.write_field(quoted(&column.name)?)?;
    }
    writer.write_record(None::<&[u8]>)?;
    let rows = columns.first().map_or(0, |column| column.values.len());
    let mut digits = Vec::new();
    for row in 0..rows {
        for fields in &fields {
            writer.write_field(fields.at(row, &mut digits)?)?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    writer.flush()?;
    Ok(rows as u64)
}

/// The fields of one column. Texts and lists are quoted when this is created, because many rows
/// share them; numbers are formatted row by row.
struct Fields<'a> {
    column: &'a Column,
    texts: Vec<Vec<u8>>,
}

impl<'a> Fields<'a> {
    fn of(column: &'a Column) -> csv::Result<Self> {
        let json = |text: serde_json::Result<String>| quoted(&text.expect("plain data is JSON"));
        let texts = match &column.values {
            Values::Text { texts, .. } => texts.iter().map(|text| quoted(text)).collect(),
            Values::TextLists { lists, texts, .. } => {
                let named = |list: &Vec<i32>| -> Vec<&str> {
                    list.iter().map(|&text| &*texts[text as usize]).collect()
                };
                let lists = lists.iter().map(named);
                lists
                    .map(|list| json(serde_json::to_string(&list)))
                    .collect()
            }
            Values::IntLists { lists, .. } => {
                let lists = lists.iter();
                lists
                    .map(|list| json(serde_json::to_string(list)))
                    .collect()
            }
            Values::Int(_) | Values::Float(_) | Values::Bool(_) => Ok(Vec::new()),
        };
        Ok(Self {
            column,
            texts: texts?,
        })
    }

    /// Returns the field of a row. Numbers are formatted into `digits`, which is cleared first.
    fn at<'f>(&'f self, row: usize, digits: &'f mut Vec<u8>) -> io::Result<&'f [u8]> {
        digits.clear();
        if self.column.known.as_ref().is_some_and(|known| !known[row]) {
            return Ok(digits);
        }
        match &self.column.values {
            Values::Text { numbers, .. }
            | Values::TextLists { numbers, .. }
            | Values::IntLists { numbers, .. } => return Ok(&self.texts[numbers[row] as usize]),
            Values::Int(values) => write!(digits, "{}", values[row])?,
            Values::Float(values) => write!(digits, "{}", values[row])?,
            Values::Bool(values) => write!(digits, "{}", values[row])?,
        }
        Ok(digits)
    }
}

/// Returns a text as a CSV field, in quotes if it needs them. An empty text is the only field of its
/// record here, and the crate quotes those.
fn quoted(text: &str) -> csv::Result<Vec<u8>> {
    let mut record = Vec::with_capacity(text.len() + 3);
    let mut writer = WriterBuilder::new()
        .buffer_capacity(text.len() + 3)
        .from_writer(&mut record);
    writer.write_record([text])?;
    writer.flush()?;
    drop(writer);
    record.pop();
    Ok(record)
}

/// Returns the I/O error itself, so that callers can tell a closed pipe from a full disk.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        kind => unreachable!("every record has one field per column: {kind:?}"),
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;
    use crate::columns::text_values;

    #[test]
    fn every_event_is_a_line_with_a_cell_for_each_column() {
        let analysis = Analysis::build(Timeline::draw(|time| {
            time.annotation("a \"step\", the first", |time| time.op("mm", 1500));
        }));
        let mut out = Vec::new();
        assert_eq!(write_csv(&analysis, &mut out).unwrap(), 2);
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("key,count,"), "{text}");
        assert!(
            lines[1].starts_with("\"a \"\"step\"\", the first\",1,"),
            "{text}"
        );
        assert!(lines[2].starts_with("mm,1,1.5,"), "{text}");
        let columns = event_columns(&analysis).len();
        assert_eq!(lines[2].split(',').count(), columns, "{text}");
    }

    #[test]
    fn an_empty_text_is_quoted_and_an_unknown_value_is_not() {
        let columns = [
            Column {
                name: "key".into(),
                values: text_values(["", "a\nb"]),
                known: None,
            },
            Column {
                name: "flops".into(),
                values: Values::Int(vec![0, -3]),
                known: Some(vec![false, true]),
            },
        ];
        let mut out = Vec::new();
        write_columns(&columns, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "key,flops\n\"\",\n\"a\nb\",-3\n");
    }
}
