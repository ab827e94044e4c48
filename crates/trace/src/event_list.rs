//! The smaller, older trace format of `EventList.export_chrome_trace`: a bare JSON array.

use std::io::Write;
use std::path::Path;

use mindprof_analyze::{Analysis, Item, microseconds};
use mindprof_model::{DeviceKind, EventId, StringId};
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::files::write_file;

/// Writes the visible events of a profile as torch's `EventList` does.
///
/// Times are in microseconds, threads have their small numbers, and each kernel has a flow event.
///
/// # Errors
/// If `out` cannot be written to.
pub fn write_event_list(analysis: &Analysis, mut out: impl Write) -> Result<()> {
    let arrow = format!(
        "cpu_to_{}",
        analysis.accelerator().map_or("cuda", DeviceKind::name)
    );
    let mut names = Names::default();
    let mut arrows = 0_u64;
    let mut separator = "";
    out.write_all(b"[")?;
    for item in analysis.items() {
        // These traces show no memory records.
        let Item::Event(id) = item else { continue };
        if analysis.is_out_of_memory(id) {
            continue;
        }
        let event = analysis.profile().event(id);
        let name = names.json(analysis, id, event.name);
        let (start, end) = (microseconds(event.start), microseconds(event.end()));
        let thread = analysis.thread_number(id);
        write!(
            out,
            "{separator}{{\"name\": {name}, \"ph\": \"X\", \"ts\": {start:?}, \"dur\": {:?}, \"tid\": {thread}, \
             \"pid\": \"CPU functions\", \"args\": {{}}}}",
            end - start
        )?;
        for _ in analysis.kernels(id) {
            write!(
                out,
                ", {{\"name\": {name}, \"ph\": \"s\", \"ts\": {start:?}, \"tid\": {thread}, \
                 \"pid\": \"CPU functions\", \"id\": {arrows}, \"cat\": \"{arrow}\", \"args\": {{}}}}"
            )?;
            arrows += 1;
        }
        separator = ", ";
    }
    Ok(out.write_all(b"]")?)
}

/// Writes the visible events of a profile to a file, as torch's `EventList` does.
///
/// # Errors
/// If the file cannot be written. The error names it.
pub fn write_event_list_file(analysis: &Analysis, path: &Path) -> Result<()> {
    write_file(path, |out| write_event_list(analysis, out))
}

/// Event names as JSON strings, each escaped once.
#[derive(Default)]
struct Names {
    known: FxHashMap<StringId, Box<str>>,
}

impl Names {
    fn json(&mut self, analysis: &Analysis, id: EventId, name: StringId) -> &str {
        self.known.entry(name).or_insert_with(|| {
            let text = analysis.profile().name(analysis.profile().event(id));
            serde_json::Value::from(text).to_string().into()
        })
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::Timeline;

    use super::*;

    #[test]
    fn the_text_is_torchs() {
        let profile = Timeline::draw(|time| {
            time.annotation("a\"b", |time| {
                time.idle(500);
                time.op("aten::mm", 1500);
            });
        });
        let mut out = Vec::new();
        write_event_list(&Analysis::build(profile), &mut out).unwrap();
        let expected = concat!(
            r#"[{"name": "a\"b", "ph": "X", "ts": 0.0, "dur": 2.0, "tid": 1, "pid": "CPU functions", "args": {}}, "#,
            r#"{"name": "aten::mm", "ph": "X", "ts": 0.5, "dur": 1.5, "tid": 1, "pid": "CPU functions", "args": {}}]"#,
        );
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
