//! Tables, groups and trees of events and rows that were made by hand.
//!
//! Their attributes are read from Python, then they are computed and laid out like recorded ones.

#![expect(
    clippy::needless_pass_by_value,
    reason = "PyO3 extracts arguments into owned values"
)]

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use mindprof_analyze::{Amount, Amounts, Correlation, Keys, Tree, Unit, sum_by_key};
use mindprof_formats::Row;
use mindprof_model::{
    Category, DeviceKind, Event, EventId, Links, Part, StringTable, Thread, ThreadId,
};
use mindprof_report::table_of_rows;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::averages::{amounts_dict, nanos};
use crate::error::Error;
use crate::from_dict::from_dict;
use crate::table::{ListFacts, TableArguments};

/// Returns a table of rows of any Python class that has torch's attributes.
#[pyfunction]
pub(crate) fn given_table(
    rows: Vec<Bound<'_, PyAny>>,
    facts: ListFacts,
    arguments: TableArguments,
) -> PyResult<String> {
    let options = arguments.options().map_err(Error::from)?;
    let rows: PyResult<Vec<Row<'_>>> = rows
        .iter()
        .map(|object| row(object, options.rows.percentiles))
        .collect();
    Ok(table_of_rows(&rows?, &facts.into(), &options).map_err(Error::from)?)
}

from_dict! {
    /// The attributes that events must share to be in one group.
    pub(crate) struct GroupArguments {
        by_key: bool,
        input_shapes: bool,
        stack_frames: usize,
        overload_name: bool,
        python_functions: bool,
    }
}

/// A group of events: the position of its first member, its sums, and the positions of all members.
type Group<'py> = (usize, Bound<'py, PyDict>, Vec<usize>);

/// Groups events by key and returns the groups.
#[pyfunction]
pub(crate) fn given_groups<'py>(
    py: Python<'py>,
    events: Vec<Bound<'py, PyAny>>,
    arguments: GroupArguments,
) -> PyResult<Vec<Group<'py>>> {
    let mut positions = Vec::new();
    let mut parts = Vec::new();
    for (position, event) in events.iter().enumerate() {
        if !arguments.python_functions && truth(event, "is_python_function")? {
            continue;
        }
        positions.push(position);
        parts.push((group_key(event, &arguments)?, amounts(event)?));
    }
    sum_by_key(parts)
        .into_iter()
        .map(|row| {
            let members = row.members.into_iter().map(|member| positions[member]);
            let members: Vec<usize> = members.collect();
            Ok((members[0], amounts_dict(py, &row.amounts)?, members))
        })
        .collect()
}

/// Builds the call tree of events. Returns for each event the position of its parent, and whether
/// it is merged into that parent.
#[pyfunction]
pub(crate) fn given_tree(events: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<(Option<usize>, bool)>> {
    let mut times = Vec::with_capacity(events.len());
    for event in &events {
        let range = event.getattr("time_range")?;
        let [start, end] = ["start", "end"].map(|key| number(&range, key));
        times.push((start?, end?));
    }
    let zero = times.iter().map(|(start, _)| *start).fold(0.0, f64::min);
    let mut part = Part::new();
    let mut tracks: HashMap<(String, i64), ThreadId> = HashMap::new();
    for (position, event) in events.iter().enumerate() {
        let is_host = device(event)? == Some(DeviceKind::Cpu);
        if !is_host || truth(event, "is_async")? {
            continue;
        }
        let thread = event.getattr("thread")?.str()?.to_string();
        let place = (thread, integer(event, "node_id")?);
        let native = tracks.len() as u64;
        let track = *tracks.entry(place).or_insert_with(|| {
            part.add_thread(Thread {
                process: 0,
                native,
                name: StringTable::EMPTY,
                device: DeviceKind::Cpu,
            })
        });
        let name = part.strings.intern(&text(event, "name")?);
        let [start, end] = [times[position].0, times[position].1].map(|time| nanos(time - zero));
        let duration = end.saturating_sub(start);
        let event = Event::new(Category::Operator, name, track, start, duration);
        // The position is stored as a link, because building a profile reorders the events.
        part.add_linked_event(event, Links::new(position as u32 + 1, 0));
    }
    relations(events.len(), part)
}

/// Returns the parents by position, which `part` stores as the links of its events.
fn relations(count: usize, part: Part) -> PyResult<Vec<(Option<usize>, bool)>> {
    let profile = part
        .into_profile()
        .map_err(|error| Error::from(mindprof_trace::Error::from(error)))?;
    let keys = Keys::build(profile.strings());
    let tree = Tree::build(&profile, &keys, &Correlation::default());
    let position = |id: EventId| {
        let links = profile.links(id).unwrap_or_default();
        links.external as usize - 1
    };
    let mut found = vec![(None, false); count];
    for id in (0..profile.events().len()).map(EventId::from_index) {
        found[position(id)] = (tree.parent(id).map(position), tree.is_merged(id));
    }
    Ok(found)
}

fn row<'py>(object: &Bound<'py, PyAny>, with_percentiles: bool) -> PyResult<Row<'py>> {
    let device = device(object)?;
    let annotation = truth(object, "is_user_annotation")?;
    let is_work = match device {
        Some(DeviceKind::Cpu) => truth(object, "is_legacy")?,
        Some(device) => device.is_device_work() && !annotation,
        None => false,
    };
    let spread: Option<[f64; 4]> = match object.getattr_opt("_percentiles")? {
        Some(spread) if with_percentiles => spread.call0()?.extract()?,
        Some(_) | None => None,
    };
    Ok(Row {
        name: Cow::Owned(text(object, "key")?),
        overload: Cow::Owned(text(object, "overload_name")?),
        amounts: amounts(object)?,
        node: integer(object, "node_id")?,
        shapes: Some(Rc::from(object.getattr("input_shapes")?.str()?.to_str()?)),
        stack: frames(object)?.into_iter().map(Cow::Owned).collect(),
        is_async: truth(object, "is_async")?,
        has_parent: !object.getattr("cpu_parent")?.is_none(),
        is_device_work: is_work,
        is_device_range: device.is_some_and(DeviceKind::is_device_work) && annotation,
        percentiles: spread.map(|times| {
            let [p50, p90, p99, max] = times.map(nanos);
            mindprof_analyze::Percentiles { p50, p90, p99, max }
        }),
        margin: None,
    })
}

/// torch's key of a group, and the additional attributes to group by.
#[derive(PartialEq, Eq, Hash)]
struct GroupKey {
    key: String,
    node: i64,
    device: Option<DeviceKind>,
    is_legacy: bool,
    is_annotation: bool,
    overload: String,
    shapes: String,
    stack: Vec<String>,
}

fn group_key(event: &Bound<'_, PyAny>, by: &GroupArguments) -> PyResult<Option<GroupKey>> {
    if !by.by_key {
        return Ok(None);
    }
    let mut stack = Vec::new();
    if by.stack_frames > 0 {
        stack = frames(event)?;
        stack.truncate(by.stack_frames);
    }
    let shapes = if by.input_shapes {
        event.getattr("input_shapes")?.str()?.to_string()
    } else {
        String::new()
    };
    Ok(Some(GroupKey {
        key: text(event, "key")?,
        node: integer(event, "node_id")?,
        device: device(event)?,
        is_legacy: truth(event, "is_legacy")?,
        is_annotation: truth(event, "is_user_annotation")?,
        overload: if by.overload_name {
            text(event, "overload_name")?
        } else {
            String::new()
        },
        shapes,
        stack,
    }))
}

fn amounts(object: &Bound<'_, PyAny>) -> PyResult<Amounts> {
    Amounts::read(|metric| {
        let value = object.getattr(metric.name())?;
        Ok(match metric.unit() {
            Unit::Micros => Amount::Float(value.extract()?),
            Unit::Bytes | Unit::Events => Amount::Whole(value.extract()?),
            // `None` stands for an unknown number.
            Unit::Operations => Amount::Float(value.extract::<Option<f64>>()?.unwrap_or(0.0)),
        })
    })
}

fn number(object: &Bound<'_, PyAny>, name: &str) -> PyResult<f64> {
    object.getattr(name)?.extract()
}

fn integer(object: &Bound<'_, PyAny>, name: &str) -> PyResult<i64> {
    object.getattr(name)?.extract()
}

/// Returns whether an attribute exists and is true.
fn truth(object: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    object
        .getattr_opt(name)?
        .map_or(Ok(false), |value| value.is_truthy())
}

/// Returns an attribute as text, or an empty string if it is `None`.
fn text(object: &Bound<'_, PyAny>, name: &str) -> PyResult<String> {
    let value = object.getattr(name)?;
    if value.is_none() {
        return Ok(String::new());
    }
    Ok(value.str()?.to_string_lossy().into_owned())
}

fn device(object: &Bound<'_, PyAny>) -> PyResult<Option<DeviceKind>> {
    let value = object.getattr("device_type")?.getattr("value")?;
    Ok(DeviceKind::from_number(value.extract()?))
}

fn frames(object: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let stack = object.getattr("stack")?;
    if !stack.is_truthy()? {
        return Ok(Vec::new());
    }
    if let Ok(list) = stack.cast_exact::<PyList>() {
        return list
            .iter()
            .map(|frame| Ok(frame.str()?.to_string_lossy().into_owned()))
            .collect();
    }
    stack.extract()
}
