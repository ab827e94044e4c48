//! Columns as CSV: a line of names, a line for each item. Lists are JSON, what is not known is
//! empty, and what is known to be an empty text is quoted.

use std::borrow::Cow;
use std::io::Write;

use mindprof_analyze::Analysis;

use crate::columns::{Column, Values, event_columns};
use crate::error::Result;

/// Writes everything that a profile shows, a line each. Returns how many there are.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write_csv(analysis: &Analysis, mut out: impl Write) -> Result<u64> {
    let columns = event_columns(analysis);
    let cells: Vec<Cells<'_>> = columns.iter().map(Cells::of).collect();
    let names: Vec<Cow<'_, str>> = columns.iter().map(|column| quoted(&column.name)).collect();
    writeln!(out, "{}", names.join(","))?;
    let rows = columns.first().map_or(0, |column| column.values.len());
    for row in 0..rows {
        for (index, cells) in cells.iter().enumerate() {
            if index > 0 {
                out.write_all(b",")?;
            }
            cells.write(row, &mut out)?;
        }
        out.write_all(b"\n")?;
    }
    Ok(rows as u64)
}

/// The values of a column, with each distinct text as CSV has it.
struct Cells<'a> {
    column: &'a Column,
    texts: Vec<Cow<'a, str>>,
}

impl<'a> Cells<'a> {
    fn of(column: &'a Column) -> Self {
        let json = |text: serde_json::Result<String>| {
            let text = text.expect("texts and numbers are JSON");
            Cow::Owned(quoted(&text).into_owned())
        };
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
            Values::Int(_) | Values::Float(_) | Values::Bool(_) => Vec::new(),
        };
        Self { column, texts }
    }

    fn write(&self, row: usize, out: &mut impl Write) -> Result<()> {
        if self.column.known.as_ref().is_some_and(|known| !known[row]) {
            return Ok(());
        }
        match &self.column.values {
            Values::Text { numbers, .. }
            | Values::TextLists { numbers, .. }
            | Values::IntLists { numbers, .. } => {
                out.write_all(self.texts[numbers[row] as usize].as_bytes())?;
            }
            Values::Int(values) => write!(out, "{}", values[row])?,
            Values::Float(values) => write!(out, "{}", values[row])?,
            Values::Bool(values) => write!(out, "{}", values[row])?,
        }
        Ok(())
    }
}

/// Returns a text in quotes if it has to be.
fn quoted(text: &str) -> Cow<'_, str> {
    let is_plain = !text.is_empty() && !text.contains(['"', ',', '\n', '\r']);
    if is_plain {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

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
}
