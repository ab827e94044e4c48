//! Writes cut profiles as trace files that record the cut, and fits them into a size limit.
//!
//! The cut itself is made by `mindprof_analyze::slim`.

use std::io::{self, Write};

use mindprof_analyze::{Cut, CutReport, SLIM_KEY, Slimmed, slim};
use mindprof_model::Profile;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::chrome::{EventOrder, TraceOptions, json_value};
use crate::error::{Error, Result};
use crate::files::{Compression, Effort, write_compressed};
use crate::trace_format::TraceFormat;

/// The largest number of sizes to try. File size is nearly linear in the number of events, so a few
/// tries suffice.
const TRIES: usize = 12;

/// The fraction of the allowed size that may stay unused.
const SLACK: f64 = 0.05;

/// The file format of a cut trace.
///
/// The size of the file depends on all of it, which is why [`fitting_slim`] needs to know it in
/// advance.
#[derive(Clone, Copy, Debug)]
pub struct SlimForm<'a> {
    /// The format: Perfetto or Chrome.
    pub format: TraceFormat,
    /// The compression, if any.
    pub compression: Option<Compression>,
    /// The name that the trace states as its own.
    pub name: &'a str,
}

/// Writes a cut profile, with a record of what was cut from it.
///
/// # Errors
/// If `out` cannot be written to.
pub fn write_slim(slimmed: &Slimmed, form: SlimForm<'_>, out: &mut dyn Write) -> Result<()> {
    let (profile, options) = (&slimmed.profile, options_of(slimmed));
    form.format.write(profile, form.name, &options, out)
}

/// Cuts a profile, and further until its file fits into `max_bytes` if that is given.
///
/// The shortest events are dropped first. Memory records and unknown events such as counters are
/// dropped only if they alone would take up more than half of the limit.
///
/// # Errors
/// If not even a trace without events fits.
pub fn fitting_slim(
    profile: &Profile,
    cut: &Cut,
    max_bytes: Option<u64>,
    form: SlimForm<'_>,
) -> Result<Slimmed> {
    match max_bytes {
        Some(max_bytes) => fitting(profile, cut, max_bytes, form),
        None => Ok(slim(profile, cut)),
    }
}

/// Searches for the largest number of events that fits, between one that does and one that does
/// not.
fn fitting(profile: &Profile, cut: &Cut, max_bytes: u64, form: SlimForm<'_>) -> Result<Slimmed> {
    let whole = slim(profile, cut);
    let whole_size = size(&whole, form)?;
    if whole_size <= max_bytes {
        return Ok(whole);
    }
    let mut cut = Cut {
        most_events: Some(0),
        ..cut.clone()
    };
    let mut best = slim(profile, &cut);
    let mut small = (0_u64, size(&best, form)?);
    if small.1 > max_bytes / 2 && best.report.memory_kept + best.report.foreign_kept > 0 {
        (cut.without_memory, cut.without_foreign) = (true, true);
        best = slim(profile, &cut);
        small.1 = size(&best, form)?;
    }
    if small.1 > max_bytes {
        let least = small.1;
        return Err(Error::TooLarge { max_bytes, least });
    }
    let mut large = (whole.report.kept, whole_size);
    for _ in 0..TRIES {
        let is_close = small.1 as f64 >= max_bytes as f64 * (1.0 - SLACK);
        if is_close || large.0 - small.0 <= 1 {
            break;
        }
        let number = between(small, large, max_bytes);
        cut.most_events = Some(number as usize);
        let tried = slim(profile, &cut);
        let tried_size = size(&tried, form)?;
        if tried_size <= max_bytes {
            (small, best) = ((number, tried_size), tried);
        } else {
            large = (number, tried_size);
        }
    }
    Ok(best)
}

/// Interpolates a number of events for a size slightly below the target, strictly between two known
/// points.
fn between(small: (u64, u64), large: (u64, u64), target: u64) -> u64 {
    let aim = target as f64 * (1.0 - SLACK / 2.0);
    let slope = (large.0 - small.0) as f64 / (large.1.saturating_sub(small.1)).max(1) as f64;
    let number = small.0 as f64 + (aim - small.1 as f64) * slope;
    (number as u64).clamp(small.0 + 1, large.0 - 1)
}

fn size(slimmed: &Slimmed, form: SlimForm<'_>) -> Result<u64> {
    let write = |out: &mut dyn Write| write_slim(slimmed, form, out);
    let written = write_compressed(io::sink(), form.compression, Effort::Small, write)?;
    Ok(written.1)
}

/// Returns options whose metadata records this cut and earlier ones.
fn options_of(slimmed: &Slimmed) -> TraceOptions {
    let earlier = slimmed.profile.metadata().get(SLIM_KEY);
    let mut options = TraceOptions {
        order: EventOrder::Kind,
        ..TraceOptions::default()
    };
    let text = document(&slimmed.report, None, earlier);
    options.metadata.set(SLIM_KEY, text);
    options
}

/// Returns the counts of a cut and the size of the written file as JSON.
pub fn slim_json(report: &CutReport, bytes: u64) -> String {
    document(report, Some(bytes), None)
}

/// Returns the counts of a cut as JSON, for the metadata of a trace that is cut before it is first
/// written.
pub fn slim_metadata(report: &CutReport) -> String {
    document(report, None, None)
}

fn document(report: &CutReport, bytes: Option<u64>, earlier: Option<&str>) -> String {
    let earlier = earlier.and_then(|text| RawValue::from_string(json_value(text)).ok());
    let document = Document {
        events: report.events,
        kept: report.kept,
        cut: CutDocument {
            window: report.outside,
            threads: report.other_threads,
            duration: report.too_short,
            size: report.too_many,
        },
        clipped: report.clipped,
        memory_records: report.memory,
        memory_records_kept: report.memory_kept,
        foreign_records: report.foreign,
        foreign_records_kept: report.foreign_kept,
        bytes,
        earlier,
    };
    serde_json::to_string(&document).expect("plain data is JSON")
}

#[derive(Serialize)]
struct Document {
    events: u64,
    kept: u64,
    cut: CutDocument,
    clipped: u64,
    memory_records: u64,
    memory_records_kept: u64,
    foreign_records: u64,
    foreign_records_kept: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier: Option<Box<RawValue>>,
}

/// Numbers of dropped events, by the first reason that applied.
#[derive(Serialize)]
struct CutDocument {
    window: u64,
    threads: u64,
    duration: u64,
    size: u64,
}
