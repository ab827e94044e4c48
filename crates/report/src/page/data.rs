//! The data block of a report: one compressed document for the scripts.
//!
//! ```text
//! length of the document (4 bytes) | document (JSON) | columns
//! ```
//!
//! All of it is compressed and written as base64, so that no name can be taken for markup. Large
//! blocks are denser text, because a quarter of base64 is waste.

use mindprof_analyze::Percentiles;
use mindprof_trace::{Compression, Effort, write_compressed};
use serde_json::{Value, json};

use super::base64::base64;
use super::columns::Columns;
use super::contents::Contents;
use super::critical::write_path;
use super::dense::dense;
use super::events::DrawnEvents;
use super::findings::findings_json;
use super::flames::write_flames;
use super::links::write_links;
use super::source::source_json;
use super::strings::Strings;
use super::table::Table;
use crate::error::Result;

/// The version of the layout, which the scripts check.
const VERSION: u32 = 1;

/// The size of columns from which on speed matters more than the last 2 % of compression.
const LARGE: usize = 4 << 20;

/// The size of compressed data up to which base64 keeps a page below 5 MB. Browsers decode base64
/// natively, and read text of one byte a character faster: for a million events that is a fifth of
/// the time until the page is drawn. Dense text makes larger pages a seventh smaller.
const MOST_BASE64: usize = 3_500_000;

/// Returns the data block: JSON or, if it is large, dense text.
pub(super) fn data_block(
    contents: &Contents<'_>,
    drawn: &DrawnEvents,
    tables: &[Table],
    rest: &Rest<'_>,
) -> Result<String> {
    let analysis = contents.analysis;
    let (mut columns, mut strings) = (Columns::default(), Strings::new());
    drawn.write(analysis, &mut columns, &mut strings);
    write_links(analysis, drawn, &mut columns);
    let path_kinds = write_path(&contents.path, drawn, &mut columns);
    let flames = write_flames(analysis, &contents.work, &mut columns, &mut strings);
    let (places, bytes) = columns.into_parts();
    let device_steps = contents.device_steps();
    let steps = contents.steps().iter();
    let steps = steps.map(|time| {
        let step = &time.step;
        json!({
            "number": step.number,
            "start": step.start.0,
            "duration": step.duration.0,
            "slow": time.is_slow,
            "device": device_steps.get(&step.number).map(|device| (device.start.0, device.duration.0)),
        })
    });
    let document = json!({
        "version": VERSION,
        "span": analysis.profile().span().0,
        "events": drawn.len(),
        "left_out": drawn.left_out.map_or(0, |(_, count)| count),
        "tracks": drawn.tracks,
        "is_behind": contents.device_median().is_some(),
        "steps": steps.collect::<Vec<_>>(),
        "percentiles": Percentiles::TOLD.map(|told| (told.name, told.percent, told.least)),
        "findings": findings_json(contents, drawn),
        "flames": flames,
        "path_kinds": path_kinds,
        "memory": rest.memory,
        "source": source_json(contents, rest.sources),
        "tables": tables.iter().map(Table::json).collect::<Vec<_>>(),
        "strings": strings.into_texts(),
        "columns": places,
    });
    packed(&document.to_string(), &bytes)
}

/// The parts of the block besides conclusions and events.
pub(super) struct Rest<'a> {
    pub(super) memory: &'a [Value],
    pub(super) sources: &'a [mindprof_answers::SourceFile],
}

fn packed(document: &str, columns: &[u8]) -> Result<String> {
    let mut compressed = Vec::new();
    let length = (document.len() as u32).to_le_bytes();
    let effort = if columns.len() > LARGE {
        Effort::Fast
    } else {
        Effort::Small
    };
    write_compressed::<_, crate::Error>(&mut compressed, Some(Compression::Gzip), effort, |out| {
        out.write_all(&length)?;
        out.write_all(document.as_bytes())?;
        Ok(out.write_all(columns)?)
    })?;
    Ok(if compressed.len() > MOST_BASE64 {
        dense(&compressed)
    } else {
        format!("{{\"packed\":\"{}\"}}", base64(&compressed))
    })
}
