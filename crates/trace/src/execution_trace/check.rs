//! Parses an execution trace and reports its faults.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use rustc_hash::FxHashSet;
use serde::Deserialize;
use serde_json::Value;

use super::{PROCESS_NODE, SCHEMA, THREAD_NODE};
use crate::error::Result;
use crate::files::FileError;

/// The number of bytes of a file that are needed to recognize the format.
const HEAD_BYTES: usize = 256;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The contents and faults of an execution trace.
///
/// `mindprof verify` prints it, for traces of torch as well as our own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExecutionTraceCheck {
    /// The number of nodes, including those of the process and its threads.
    pub nodes: usize,
    /// The number of threads.
    pub threads: usize,
    /// The number of distinct tensors.
    pub tensors: usize,
    /// The number of events that the writer reported as lost.
    pub lost: u64,
    /// The faults, each with the number of its occurrences.
    pub faults: BTreeMap<String, usize>,
}

#[derive(Deserialize)]
struct Document {
    schema: String,
    nodes: Vec<Node>,
    #[serde(default)]
    lost_events: u64,
}

#[derive(Deserialize)]
struct Node {
    id: u64,
    name: String,
    ctrl_deps: u64,
    inputs: Lists,
    outputs: Lists,
    attrs: Vec<Attribute>,
}

#[derive(Deserialize)]
struct Lists {
    values: Vec<Value>,
    shapes: Vec<Value>,
    types: Vec<String>,
    strides: Vec<Value>,
}

#[derive(Deserialize)]
struct Attribute {
    name: String,
    value: Value,
}

/// Checks the execution trace in a file, which may be compressed. Returns `None` if the file is not
/// an execution trace.
///
/// # Errors
/// If the file cannot be read or is not JSON of this form. The error names the file.
pub fn check_execution_trace_file(path: &Path) -> Result<Option<ExecutionTraceCheck>> {
    let read = || -> Result<Option<ExecutionTraceCheck>> {
        let mut file = BufReader::new(File::open(path)?);
        let is_packed = file.fill_buf()?.starts_with(&GZIP_MAGIC);
        let mut input: Box<dyn Read> = if is_packed {
            Box::new(MultiGzDecoder::new(file))
        } else {
            Box::new(file)
        };
        let mut bytes = Vec::new();
        (&mut input)
            .take(HEAD_BYTES as u64)
            .read_to_end(&mut bytes)?;
        if !is_execution_trace(&bytes) {
            return Ok(None);
        }
        input.read_to_end(&mut bytes)?;
        check_execution_trace(&bytes).map(Some)
    };
    read().map_err(|error| error.at(path))
}

/// Recognizes an execution trace by its first key.
fn is_execution_trace(head: &[u8]) -> bool {
    let text: String = String::from_utf8_lossy(head)
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .collect();
    let schema = text.strip_prefix("{\"schema\":\"");
    schema.is_some_and(|rest| {
        rest.split('"')
            .next()
            .is_some_and(|it| it.contains("chakra"))
    })
}

/// Checks an execution trace.
///
/// # Errors
/// If the bytes are not JSON of this form.
pub fn check_execution_trace(bytes: &[u8]) -> Result<ExecutionTraceCheck> {
    let document: Document = serde_json::from_slice(bytes)
        .map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))?;
    let mut check = ExecutionTraceCheck {
        nodes: document.nodes.len(),
        lost: document.lost_events,
        ..ExecutionTraceCheck::default()
    };
    if document.schema != SCHEMA {
        check.add(&format!("schema {} is not {SCHEMA}", document.schema));
    }
    let mut ids = FxHashSet::default();
    for node in &document.nodes {
        if !ids.insert(node.id) {
            check.add("two nodes have one id");
        }
        check.threads += usize::from(node.name == THREAD_NODE);
    }
    let processes = document
        .nodes
        .iter()
        .filter(|node| node.name == PROCESS_NODE);
    if processes.count() != 1 {
        check.add("there is not one node for the process");
    }
    let mut tensors = FxHashSet::default();
    for node in &document.nodes {
        if !ids.contains(&node.ctrl_deps) {
            check.add("a node's parent is not there");
        }
        check.add_attributes(&node.attrs);
        for values in [&node.inputs, &node.outputs] {
            check.add_values(values, &ids, &mut tensors);
        }
    }
    check.tensors = tensors.len();
    Ok(check)
}

impl ExecutionTraceCheck {
    fn add(&mut self, fault: &str) {
        *self.faults.entry(fault.to_owned()).or_default() += 1;
    }

    fn add_attributes(&mut self, attributes: &[Attribute]) {
        for key in ["rf_id", "fw_parent", "seq_id", "scope", "tid", "fw_tid"] {
            let found = attributes.iter().find(|attribute| attribute.name == key);
            if !found.is_some_and(|attribute| attribute.value.is_i64() || attribute.value.is_u64())
            {
                self.add(&format!("a node has no number for {key}"));
            }
        }
    }

    fn add_values(&mut self, values: &Lists, ids: &FxHashSet<u64>, tensors: &mut FxHashSet<u64>) {
        let count = values.values.len();
        let others = [
            values.shapes.len(),
            values.types.len(),
            values.strides.len(),
        ];
        if others != [count; 3] {
            self.add("values, shapes, types and strides differ in number");
        }
        for (value, kind) in values.values.iter().zip(&values.types) {
            if kind.starts_with("Tensor(") {
                self.add_tensor(value, ids, tensors);
            } else if kind.starts_with("GenericList[Tensor(") {
                for value in value.as_array().into_iter().flatten() {
                    self.add_tensor(value, ids, tensors);
                }
            }
        }
    }

    fn add_tensor(&mut self, value: &Value, ids: &FxHashSet<u64>, tensors: &mut FxHashSet<u64>) {
        let fields = value.as_array().map_or(&[][..], Vec::as_slice);
        let is_whole = matches!(fields, [numbers @ .., device]
            if numbers.len() == 5 && numbers.iter().all(Value::is_u64) && device.is_string());
        let number = fields.first().and_then(Value::as_u64);
        match number {
            Some(number) if is_whole && !ids.contains(&number) => {
                tensors.insert(number);
            }
            Some(_) if is_whole => self.add("a tensor has the id of a node"),
            Some(_) | None => self.add("a tensor is not told by six values"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = r#"{"id": 1, "name": "[pytorch|profiler|execution_trace|process]", "ctrl_deps": 1,
        "inputs": {"values": [], "shapes": [], "types": [], "strides": []},
        "outputs": {"values": [[1,2,0,4,4,"cpu"], [5]], "shapes": [[4], []], "types": ["Tensor(float)", "Tensor(float)"],
        "strides": [[1]]},
        "attrs": [{"name": "rf_id", "type": "uint64", "value": 0}]}"#;

    #[test]
    fn what_is_wrong_is_counted_by_what_it_is() {
        let text = format!(r#"{{"schema": "1.0.1", "nodes": [{NODE}, {NODE}]}}"#);
        let check = check_execution_trace(text.as_bytes()).expect("it has the form");
        assert_eq!(check.nodes, 2);
        let faults: Vec<(&str, usize)> = check
            .faults
            .iter()
            .map(|(what, count)| (what.as_str(), *count))
            .collect();
        assert!(faults.contains(&("two nodes have one id", 1)));
        assert!(faults.contains(&("a tensor has the id of a node", 2)));
        assert!(faults.contains(&("a tensor is not told by six values", 2)));
        assert!(faults.contains(&("values, shapes, types and strides differ in number", 2)));
        assert!(faults.contains(&("a node has no number for seq_id", 2)));
        assert!(faults.contains(&("schema 1.0.1 is not 1.1.1-chakra.0.0.4", 1)));
    }

    #[test]
    fn other_files_are_told_apart() {
        assert!(is_execution_trace(
            b"{\n  \"schema\": \"1.1.1-chakra.0.0.4\", \"pid\": 1"
        ));
        assert!(!is_execution_trace(
            b"{\"schemaVersion\": 1, \"traceEvents\": []}"
        ));
        assert!(!is_execution_trace(b"[]"));
    }
}
