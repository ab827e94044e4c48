//! Device events: plain rows that a framework's own collector hands over, and that become a part.
//!
//! The rows arrive when a recording ends; `record::Capture::attach` takes the part.

use std::collections::HashMap;

use crate::{
    Category, DeviceKind, Error, Event, EventId, Links, Nanos, Part, Result, StringId, Thread,
};

/// One kernel, copy or fill that a device ran. Frameworks with a device of their own fill these
/// rows from their collector and pass them to [`Part::from_device_events`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceEvent {
    /// The index of its name among the names passed along.
    pub name: u32,
    /// The start, in nanoseconds since the Unix epoch.
    pub start_unix_ns: u64,
    /// The end, in nanoseconds since the Unix epoch.
    pub end_unix_ns: u64,
    /// The stream that it ran on.
    pub stream: u64,
    /// The external id of the operator that launched it; zero for none.
    pub correlation: u32,
    /// The index of the device among those of its kind.
    pub device: u32,
}

impl Part {
    /// Builds a part from the events of devices of one kind, with a track for each device and
    /// stream.
    ///
    /// ```text
    /// operator      |------|                   external id 7
    /// stream 3           |-------------|       correlation 7: belongs to the operator
    /// ```
    ///
    /// # Errors
    /// Fails if an event's name is not among `names`, or if an event ends before it begins.
    pub fn from_device_events<S: AsRef<str>>(
        kind: DeviceKind,
        names: &[S],
        events: &[DeviceEvent],
    ) -> Result<Self> {
        let mut part = Self::new();
        let first = events.iter().map(|event| event.start_unix_ns).min();
        part.reference_unix_ns = first.unwrap_or(0);
        let names: Vec<StringId> = names
            .iter()
            .map(|name| part.strings.intern(name.as_ref()))
            .collect();
        let mut tracks = HashMap::new();
        for (index, event) in events.iter().enumerate() {
            let id = EventId::from_index(index);
            let name = *names.get(event.name as usize).ok_or(Error::UnknownName {
                event: id,
                name: StringId::from_raw(event.name),
                strings: names.len(),
            })?;
            let Some(duration) = event.end_unix_ns.checked_sub(event.start_unix_ns) else {
                return Err(Error::EndBeforeStart { event: id });
            };
            let track = *tracks
                .entry((event.device, event.stream))
                .or_insert_with(|| part.add_track(kind, event));
            let start = Nanos(event.start_unix_ns - part.reference_unix_ns);
            let work = Event::new(Category::Kernel, name, track, start, Nanos(duration));
            let links = Links::new(event.correlation, event.correlation);
            part.add_linked_event(work, links);
        }
        Ok(part)
    }

    fn add_track(&mut self, device: DeviceKind, event: &DeviceEvent) -> crate::ThreadId {
        let name = self.strings.intern(&format!("stream {}", event.stream));
        self.add_thread(Thread {
            process: u64::from(event.device),
            native: event.stream,
            name,
            device,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: DeviceEvent = DeviceEvent {
        name: 0,
        start_unix_ns: 1_000,
        end_unix_ns: 1_030,
        stream: 7,
        correlation: 5,
        device: 1,
    };

    fn part(events: &[DeviceEvent]) -> Result<Part> {
        Part::from_device_events(DeviceKind::Cuda, &["gemm", "copy"], events)
    }

    /// ```text
    /// device 1, stream 7        |--gemm--|        1000..1030
    /// device 1, stream 8     |-copy-|              990..1010
    /// ```
    #[test]
    fn rows_become_tracks_of_one_time_axis() {
        let copy = DeviceEvent {
            name: 1,
            start_unix_ns: 990,
            end_unix_ns: 1_010,
            stream: 8,
            ..KERNEL
        };
        let profile = part(&[KERNEL, copy, KERNEL])
            .unwrap()
            .into_profile()
            .unwrap();
        assert_eq!(profile.reference_unix_ns(), 990);
        let found: Vec<_> = profile
            .events()
            .iter()
            .map(|event| {
                let thread = profile.threads()[event.thread.index()];
                let times = (event.start.0, event.duration.0);
                (profile.name(event), times, thread.process, thread.native)
            })
            .collect();
        let gemm = ("gemm", (10, 30), 1, 7);
        assert_eq!(found, [("copy", (0, 20), 1, 8), gemm, gemm]);
        assert_eq!(
            profile.links(EventId::from_index(1)),
            Some(Links::new(5, 5))
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let unnamed = DeviceEvent { name: 2, ..KERNEL };
        let backwards = DeviceEvent {
            end_unix_ns: 999,
            ..KERNEL
        };
        let texts = [unnamed, backwards].map(|event| part(&[event]).unwrap_err().to_string());
        assert!(texts[0].ends_with("expected an id below 2"), "{}", texts[0]);
        assert!(texts[1].ends_with("ends before it begins"), "{}", texts[1]);
        assert!(part(&[]).unwrap().is_empty());
    }
}
