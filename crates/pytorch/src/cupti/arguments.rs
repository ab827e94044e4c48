//! The arguments of device work that a profile keeps as text, in torch's words and order.
//!
//! Kernels of one configuration share a text, so that it is written once.

use std::fmt::Write;

use rustc_hash::FxHashMap;

use super::names::Synchronization;
use super::occupancy::Filling;

/// The place of the arguments of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArgumentsId {
    None,
    Kernel(u32),
    Transfer(u32),
    Synchronization(u32),
}

/// The arguments of all records.
#[derive(Default)]
pub(super) struct ArgumentsTable {
    kernels: Vec<String>,
    known: FxHashMap<Kernel, u32>,
    transfers: Vec<Transfer>,
    synchronizations: Vec<String>,
}

/// The configuration of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Kernel {
    pub(super) queued: u64,
    pub(super) device: u32,
    pub(super) context: u32,
    pub(super) stream: u32,
    pub(super) registers: u16,
    pub(super) static_shared: i32,
    pub(super) dynamic_shared: i32,
    pub(super) grid: [i32; 3],
    pub(super) block: [i32; 3],
    pub(super) graph: Graph,
    pub(super) priority: Option<i32>,
}

/// The node of a CUDA graph that work belongs to; zeros if it belongs to none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Graph {
    pub(super) id: u32,
    pub(super) node: u64,
}

/// A copy or a fill.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) device: u32,
    pub(super) context: u32,
    pub(super) stream: u32,
    pub(super) bytes: u64,
    pub(super) graph: Graph,
    /// Its two ends, if it is between devices.
    pub(super) ends: Option<Ends>,
}

/// The devices and contexts that a copy goes between.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) source_device: u32,
    pub(super) source_context: u32,
    pub(super) target_device: u32,
    pub(super) target_context: u32,
}

/// A wait for a stream, an event or a context.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) kind: Synchronization,
    pub(super) device: u32,
    pub(super) context: u32,
    /// -1 if it is not about a stream.
    pub(super) stream: i32,
    pub(super) event: u32,
    /// The stream and the correlation id of the call that recorded the event, or -1.
    pub(super) recorded: (i64, i64),
}

impl ArgumentsTable {
    /// Adds a kernel. `filling` tells how full it makes its device, if that is known; it is asked
    /// once for each configuration.
    pub(super) fn add_kernel(
        &mut self,
        kernel: Kernel,
        filling: impl FnOnce() -> Option<Filling>,
    ) -> ArgumentsId {
        let kernels = &mut self.kernels;
        let place = self.known.entry(kernel).or_insert_with(|| {
            kernels.push(kernel.text(filling()));
            kernels.len() as u32 - 1
        });
        ArgumentsId::Kernel(*place)
    }

    /// Adds a copy or a fill.
    pub(super) fn add_transfer(&mut self, transfer: Transfer) -> ArgumentsId {
        self.transfers.push(transfer);
        ArgumentsId::Transfer(self.transfers.len() as u32 - 1)
    }

    /// Adds a synchronization.
    pub(super) fn add_synchronization(&mut self, waiting: &Waiting) -> ArgumentsId {
        self.synchronizations.push(waiting.text());
        ArgumentsId::Synchronization(self.synchronizations.len() as u32 - 1)
    }

    /// Returns the text of a record that takes `duration_ns`.
    pub(super) fn text(&self, id: ArgumentsId, duration_ns: u64) -> Option<String> {
        match id {
            ArgumentsId::None => None,
            ArgumentsId::Kernel(place) => Some(self.kernels[place as usize].clone()),
            ArgumentsId::Transfer(place) => Some(self.transfers[place as usize].text(duration_ns)),
            ArgumentsId::Synchronization(place) => {
                Some(self.synchronizations[place as usize].clone())
            }
        }
    }
}

impl Kernel {
    fn text(&self, filling: Option<Filling>) -> String {
        let Self {
            queued,
            device,
            context,
            stream,
            registers,
            ..
        } = self;
        let shared = self.static_shared.wrapping_add(self.dynamic_shared);
        let mut text = format!(
            r#""queued":{queued},"device":{device},"context":{context},"stream":{stream},"registers per thread":{registers},"shared memory":{shared}"#,
        );
        if let Some(filling) = filling {
            let (blocks, warps) = (of_sm(filling.blocks_per_sm), of_sm(filling.warps_per_sm));
            add(
                &mut text,
                format_args!(r#","blocks per SM":{blocks},"warps per SM":{warps}"#),
            );
        }
        for (name, [x, y, z]) in [("grid", self.grid), ("block", self.block)] {
            add(&mut text, format_args!(r#","{name}":[{x},{y},{z}]"#));
        }
        if let Some(filling) = filling {
            let percent = (0.5 + f64::from(filling.achieved) * 100.0) as i64;
            add(
                &mut text,
                format_args!(r#","est. achieved occupancy %":{percent}"#),
            );
        }
        self.graph.add_to(&mut text);
        if let Some(priority) = self.priority {
            add(&mut text, format_args!(r#","priority":{priority}"#));
        }
        text
    }
}

impl Graph {
    fn add_to(self, text: &mut String) {
        let Self { id, node } = self;
        if node != 0 {
            add(
                text,
                format_args!(r#","graph id":{id},"graph node id":{node}"#),
            );
        }
    }
}

impl Transfer {
    fn text(&self, duration_ns: u64) -> String {
        let Self {
            device,
            context,
            stream,
            bytes,
            ..
        } = self;
        let mut text = match self.ends {
            None => format!(r#""device":{device},"context":{context}"#),
            Some(ends) => format!(
                r#""fromDevice":{},"inDevice":{device},"toDevice":{},"fromContext":{},"inContext":{context},"toContext":{}"#,
                ends.source_device, ends.target_device, ends.source_context, ends.target_context
            ),
        };
        add(
            &mut text,
            format_args!(r#","stream":{stream},"bytes":{bytes},"memory bandwidth (GB/s)":"#),
        );
        if duration_ns == 0 {
            text.push_str("\"N/A\"");
        } else {
            let bandwidth = *bytes as f64 / duration_ns as f64;
            add(&mut text, format_args!("{bandwidth}"));
        }
        self.graph.add_to(&mut text);
        text
    }
}

impl Waiting {
    fn text(&self) -> String {
        let mut text = format!(r#""cuda_sync_kind":"{}""#, self.kind.name());
        if self.kind.is_for_event() {
            let (stream, correlation) = self.recorded;
            add(
                &mut text,
                format_args!(
                    r#","wait_on_stream":{stream},"wait_on_cuda_event_record_corr_id":{correlation},"wait_on_cuda_event_id":{}"#,
                    self.event
                ),
            );
        }
        let Self {
            device,
            context,
            stream,
            ..
        } = self;
        add(
            &mut text,
            format_args!(r#","stream":{stream},"device":{device},"context":{context}"#),
        );
        text
    }
}

/// Returns a number per streaming multiprocessor as torch writes it.
fn of_sm(number: f32) -> String {
    if number.is_infinite() {
        "\"inf\"".to_owned()
    } else {
        format!("{number:.6}")
    }
}

fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(more);
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: Kernel = Kernel {
        queued: 0,
        device: 0,
        context: 1,
        stream: 7,
        registers: 96,
        static_shared: 13_312,
        dynamic_shared: 512,
        grid: [8, 2, 1],
        block: [128, 1, 1],
        graph: Graph { id: 0, node: 0 },
        priority: None,
    };

    // The texts are those of torch 2.11 on an H200, without spaces and without the correlation.
    #[test]
    fn a_kernel_has_the_arguments_that_torch_writes() {
        let filling = Filling {
            blocks_per_sm: 16.0 / 132.0,
            warps_per_sm: 16.0 / 132.0 * 4.0,
            achieved: 0.007_6,
        };
        let expected = r#""queued":0,"device":0,"context":1,"stream":7,"registers per thread":96,"shared memory":13824,"blocks per SM":0.121212,"warps per SM":0.484848,"grid":[8,2,1],"block":[128,1,1],"est. achieved occupancy %":1"#;
        assert_eq!(KERNEL.text(Some(filling)), expected);
    }

    #[test]
    fn a_kernel_of_a_graph_tells_its_node() {
        let kernel = Kernel {
            graph: Graph { id: 3, node: 12 },
            priority: Some(-1),
            ..KERNEL
        };
        let text = kernel.text(None);
        assert!(
            text.ends_with(r#""block":[128,1,1],"graph id":3,"graph node id":12,"priority":-1"#)
        );
        assert!(!text.contains("occupancy"));
    }

    #[test]
    fn kernels_of_one_configuration_share_a_text() {
        let mut table = ArgumentsTable::default();
        let first = table.add_kernel(KERNEL, || None);
        assert_eq!(table.add_kernel(KERNEL, || panic!("it is known")), first);
        let other = Kernel {
            stream: 8,
            ..KERNEL
        };
        assert_ne!(table.add_kernel(other, || None), first);
        assert_eq!(table.text(first, 5).unwrap(), KERNEL.text(None));
    }

    #[test]
    fn a_copy_tells_its_bandwidth() {
        let mut copy = Transfer {
            device: 0,
            context: 1,
            stream: 13,
            bytes: 4096,
            graph: Graph::default(),
            ends: None,
        };
        let expected =
            r#""device":0,"context":1,"stream":13,"bytes":4096,"memory bandwidth (GB/s)":5.12"#;
        assert_eq!(copy.text(800), expected);
        assert!(copy.text(0).ends_with(r#"(GB/s)":"N/A""#));
        copy.ends = Some(Ends {
            source_device: 2,
            source_context: 3,
            target_device: 4,
            target_context: 5,
        });
        let expected = r#""fromDevice":2,"inDevice":0,"toDevice":4,"fromContext":3,"inContext":1,"toContext":5,"stream":13,"bytes":4096,"memory bandwidth (GB/s)":4096"#;
        assert_eq!(copy.text(1), expected);
    }

    #[test]
    fn a_wait_for_an_event_tells_who_recorded_it() {
        let mut waiting = Waiting {
            kind: Synchronization(1),
            device: 0,
            context: 1,
            stream: -1,
            event: 56,
            recorded: (-1, -1),
        };
        let expected = r#""cuda_sync_kind":"Event Sync","wait_on_stream":-1,"wait_on_cuda_event_record_corr_id":-1,"wait_on_cuda_event_id":56,"stream":-1,"device":0,"context":1"#;
        assert_eq!(waiting.text(), expected);
        waiting.kind = Synchronization(3);
        waiting.stream = 7;
        let expected = r#""cuda_sync_kind":"Stream Sync","stream":7,"device":0,"context":1"#;
        assert_eq!(waiting.text(), expected);
    }
}
