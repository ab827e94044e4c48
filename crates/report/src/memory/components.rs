//! The memory of each component of the software on a device, as text and as HTML.

use std::fmt::Write as _;

use mindprof_answers::{ComponentAmount, ComponentMemory};

use crate::grid::{Align, cut, dense_grid, push_wrapped};
use crate::number::memory_text;
use crate::page::escaped;

const WIDTH: usize = 80;

/// How the components overlap, which the numbers do not show.
const NOTE: &str = "components overlap: APP is the whole process, PTA is torch's allocator";

/// Returns the components of a device, for the whole recording.
fn of_device(
    components: &[ComponentMemory],
    device: i16,
) -> impl Iterator<Item = &ComponentMemory> {
    components
        .iter()
        .filter(move |component| component.device == device)
}

/// Returns the memory of the components of an NPU as text. It is empty if there are none.
pub fn component_memory_text(components: &[ComponentMemory], device: i16) -> String {
    let amount = |bytes: Option<u64>| {
        bytes.map_or_else(String::new, |bytes| {
            memory_text(bytes.min(i64::MAX as u64) as i64)
                .trim()
                .to_owned()
        })
    };
    let rows: Vec<Vec<String>> = of_device(components, device)
        .map(|one| {
            vec![
                cut(&one.component, Some(30)),
                amount(peak(one.allocated)),
                amount(peak(one.reserved)),
                amount(one.reserved.or(one.allocated).map(|amount| amount.end)),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let columns = [
        ("component", Align::Left),
        ("peak allocated", Align::Right),
        ("peak reserved", Align::Right),
        ("at the end", Align::Right),
    ];
    let mut text = format!("npu:{device} by component, over the whole recording:\n");
    text.push_str(&dense_grid(&columns, &rows));
    push_wrapped(&mut text, NOTE, Some(WIDTH));
    text
}

/// Returns the memory of the components of all NPUs as HTML. It is empty if there are none.
pub(super) fn component_memory_html(components: &[ComponentMemory]) -> String {
    if components.is_empty() {
        return String::new();
    }
    let mut rows = String::new();
    let cell = |bytes: Option<u64>| {
        bytes.map_or_else(String::new, |bytes| {
            memory_text(bytes.min(i64::MAX as u64) as i64)
        })
    };
    for one in components {
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\" class=\"text\">{}</th><td>npu:{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(&one.component),
            one.device,
            cell(peak(one.allocated)),
            cell(peak(one.reserved)),
            cell(one.reserved.or(one.allocated).map(|amount| amount.end)),
        );
    }
    format!(
        "<h2>By component</h2>\n<p>Over the whole recording; {NOTE}.</p>\n<div class=\"wide\">\n<table>\n\
         <caption>Memory by component of the software</caption>\n\
         <thead><tr><th scope=\"col\" class=\"text\">Component</th><th scope=\"col\">Device</th>\
         <th scope=\"col\">Peak allocated</th><th scope=\"col\">Peak reserved</th>\
         <th scope=\"col\">At the end</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n"
    )
}

fn peak(amount: Option<ComponentAmount>) -> Option<u64> {
    amount.map(|amount| amount.peak)
}
