//! Reads the results of torch's own collector in place.
//!
//! A result holds its start time and a vector of events. Each event is read through the accessors
//! that libtorch exports and that Python's accessors call too. The size of an event follows from a
//! result with a known number of events. `raw_results` compares the first result with Python's
//! accessors.

#![expect(
    unsafe_code,
    reason = "torch's accessors are called by addresses that were looked up by name"
)]

use std::ffi::c_void;
use std::marker::PhantomData;

use crate::error::{Error, Result};
use crate::ivalue::slice;
use crate::kineto_symbols::{KinetoSymbols, Text, TextAccessor};
use mindprof_frames::read_words;

/// The place of a result in torch's memory.
///
/// The binding that holds the result creates it; the start time serves to check the memory.
#[derive(Clone, Copy, Debug)]
pub struct ResultInMemory<'a> {
    address: u64,
    start_ns: u64,
    /// The owner keeps the result alive.
    _owner: PhantomData<&'a ()>,
}

impl<'a> ResultInMemory<'a> {
    /// Makes the place of a result that began at `start_ns` and lives as long as `owner`.
    pub const fn new<T>(address: u64, start_ns: u64, _owner: &'a T) -> Self {
        Self {
            address,
            start_ns,
            _owner: PhantomData,
        }
    }
}

/// The layout of results, and the accessors that read them.
#[derive(Clone, Copy)]
pub(crate) struct KinetoLayout {
    symbols: KinetoSymbols,
    /// The size of one event in bytes.
    stride: u64,
}

/// An event holds at least its source, stack, shapes and types.
const SMALLEST_EVENT: u64 = 64;
const LARGEST_EVENT: u64 = 4096;

impl KinetoLayout {
    /// Finds the layout from a result with a known number of events.
    ///
    /// # Errors
    /// If the platform is not supported, libtorch lacks an accessor, or the memory does not look
    /// like a result.
    pub(crate) fn find(result: ResultInMemory<'_>, count: u64) -> Result<Self> {
        Self::find_with(KinetoSymbols::find()?, result, count)
    }

    /// As [`KinetoLayout::find`], with known accessors.
    pub(crate) fn find_with(
        symbols: KinetoSymbols,
        result: ResultInMemory<'_>,
        count: u64,
    ) -> Result<Self> {
        let (begin, end) = vector(result)?;
        let bytes = end - begin;
        if count < 2 || bytes % count != 0 {
            return Err(unexpected(
                "the number of events does not fit their total size",
            ));
        }
        let stride = bytes / count;
        if !(SMALLEST_EVENT..=LARGEST_EVENT).contains(&stride) || !stride.is_multiple_of(8) {
            return Err(unexpected("events have an implausible size"));
        }
        Ok(Self { symbols, stride })
    }

    /// Opens a result.
    ///
    /// # Errors
    /// If the memory does not look like a result with this start time.
    pub(crate) fn open<'a>(&self, result: ResultInMemory<'a>) -> Result<KinetoEvents<'a>> {
        let (begin, end) = vector(result)?;
        if (end - begin) % self.stride != 0 {
            return Err(unexpected("events have another size"));
        }
        Ok(KinetoEvents {
            layout: *self,
            begin,
            len: ((end - begin) / self.stride) as usize,
            _owner: PhantomData,
        })
    }
}

/// Returns the addresses of the begin and the end of a result's events.
fn vector(result: ResultInMemory<'_>) -> Result<(u64, u64)> {
    let words = read_words::<4>(result.address).ok_or_else(|| unexpected("they cannot be read"))?;
    let [start, begin, end, room] = words;
    if start != result.start_ns || begin > end || end > room || !begin.is_multiple_of(8) {
        return Err(unexpected("the vector of events was not found"));
    }
    Ok((begin, end))
}

fn unexpected(what: &str) -> Error {
    Error::Layout(format!("results of torch's collector: {what}"))
}

/// The events of one result.
pub(crate) struct KinetoEvents<'a> {
    layout: KinetoLayout,
    begin: u64,
    len: usize,
    /// The result owns the events and outlives these.
    _owner: PhantomData<&'a ()>,
}

/// The facts of one event, by torch's accessors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KinetoEvent {
    /// The start, in nanoseconds since the Unix epoch.
    pub(crate) start_ns: u64,
    /// The end, in nanoseconds since the Unix epoch.
    pub(crate) end_ns: u64,
    /// The thread it began on, as torch numbers threads.
    pub(crate) start_thread: u64,
    /// The thread it ended on, as torch numbers threads.
    pub(crate) end_thread: u64,
    /// The thread of a backward node's forward operator; zero if it has none.
    pub(crate) forward_thread: u64,
    /// The number of torch's `RecordScope`.
    pub(crate) scope: u8,
    /// The sequence number that links forward operators with backward nodes.
    pub(crate) sequence: i64,
    /// The number of the kind of device.
    pub(crate) device: u8,
    /// The index of the device, or the process id of an event on the CPU.
    pub(crate) device_index: i32,
    /// The stream of a device, or the system's id of a CPU thread.
    pub(crate) resource: i64,
    /// The event's own correlation id.
    pub(crate) correlation: u64,
    /// The correlation id of the scope that launched it.
    pub(crate) linked: u64,
    /// The external id: zero for events that are not scopes, `None` if this torch has no accessor
    /// for it.
    pub(crate) external: Option<i64>,
    /// The number of Kineto's activity type.
    pub(crate) activity: u8,
    /// Whether it is asynchronous.
    pub(crate) is_async: bool,
    /// Whether torch hides it from results.
    pub(crate) is_hidden: bool,
    /// Whether it is a call of a Python function.
    pub(crate) is_python: bool,
}

impl KinetoEvents<'_> {
    /// Returns the number of events.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns one event, without its name and stack.
    ///
    /// # Panics
    /// If there are fewer events.
    pub(crate) fn event(&self, index: usize) -> KinetoEvent {
        let event = self.address(index);
        let ask = &self.layout.symbols;
        // SAFETY: `address` returns an event of the vector, which lives as long as `self`. The
        // accessors only read, and have the types that their mangled names state.
        unsafe {
            KinetoEvent {
                start_ns: (ask.start_ns)(event),
                end_ns: (ask.end_ns)(event),
                start_thread: (ask.start_thread)(event),
                end_thread: (ask.end_thread)(event),
                forward_thread: (ask.forward_thread)(event),
                scope: (ask.scope)(event),
                sequence: (ask.sequence)(event),
                device: (ask.device_type)(event),
                device_index: (ask.device_index)(event),
                resource: (ask.resource)(event),
                correlation: (ask.correlation)(event),
                linked: (ask.linked)(event),
                external: ask.external.map(|external| external(event)),
                activity: (ask.activity)(event),
                is_async: (ask.is_async)(event) != 0,
                is_hidden: ask.is_hidden.is_some_and(|hidden| hidden(event) != 0),
                is_python: (ask.is_python)(event) != 0,
            }
        }
    }

    /// Calls `use_name` with the name of an event.
    ///
    /// # Panics
    /// If there are fewer events.
    pub(crate) fn with_name<R>(&self, index: usize, use_name: impl FnOnce(&[u8]) -> R) -> R {
        self.with_text(self.layout.symbols.name, index, use_name)
    }

    /// Calls a function with what Kineto says about an event besides what torch reads: the inside of
    /// a JSON object. Returns `None` if this torch does not tell.
    ///
    /// # Panics
    /// If there are fewer events.
    pub(crate) fn with_metadata<R>(
        &self,
        index: usize,
        use_metadata: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        let accessor = self.layout.symbols.metadata?;
        Some(self.with_text(accessor, index, use_metadata))
    }

    fn with_text<R>(
        &self,
        accessor: TextAccessor,
        index: usize,
        use_text: impl FnOnce(&[u8]) -> R,
    ) -> R {
        let mut text = Text::EMPTY;
        // SAFETY: as in `event`. A string is returned by writing it into the slot, which is `text`.
        unsafe { accessor(&raw mut text, self.address(index)) };
        let used = use_text(text.bytes());
        // SAFETY: torch has just created the string, and it is not used again.
        unsafe { text.free(self.layout.symbols.delete) };
        used
    }

    /// Returns the number of bytes that a memory event allocated; negative if it freed them.
    ///
    /// # Panics
    /// If there are fewer events.
    pub(crate) fn bytes(&self, index: usize) -> i64 {
        // SAFETY: as in `event`.
        unsafe { (self.layout.symbols.bytes)(self.address(index)) }
    }

    /// Returns the frames of an event's stack, the innermost first.
    ///
    /// # Panics
    /// If there are fewer events.
    pub(crate) fn stack(&self, index: usize) -> impl DoubleEndedIterator<Item = &[u8]> {
        // SAFETY: as in `event`. The event owns the strings, which live as long as it does.
        let frames: &[Text] = unsafe {
            let frames = (self.layout.symbols.stack)(self.address(index));
            slice(frames.begin.cast(), frames.len)
        };
        frames.iter().map(Text::bytes)
    }

    pub(crate) fn symbols(&self) -> &KinetoSymbols {
        &self.layout.symbols
    }

    pub(crate) fn address(&self, index: usize) -> *const c_void {
        assert!(index < self.len, "there are {} events", self.len);
        (self.begin + index as u64 * self.layout.stride) as *const c_void
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::kineto_stand_in::{StandInEvent, StandInResult, symbols};

    const START: u64 = 1_000_000;

    fn events() -> [StandInEvent; 3] {
        [
            StandInEvent::new(1, "aten::add"),
            StandInEvent::new(2, "a name of more letters than a text has room for"),
            StandInEvent::new(3, ""),
        ]
    }

    #[test]
    fn events_are_told_apart() {
        let events = events();
        let result = StandInResult::new(START, &events);
        let opened = result.open();
        assert_eq!(opened.len(), 3);
        for (index, expected) in events.iter().enumerate() {
            assert_eq!(opened.event(index).start_ns, expected.start_ns);
            let is_same = |name: &[u8]| name == expected.name.as_bytes();
            assert!(opened.with_name(index, is_same), "{}", expected.name);
        }
    }

    #[test]
    fn what_does_not_look_like_a_result_is_refused() {
        let events = events();
        let result = StandInResult::new(START, &events);
        let find = |address, count, start| {
            let result = ResultInMemory::new(address, start, &result);
            KinetoLayout::find_with(symbols(), result, count).is_ok()
        };
        assert!(find(result.address(), 3, START));
        for (address, count, start) in [
            (result.address(), 3, START + 1),
            (result.address(), 2, START),
            (result.address(), 1, START),
            (result.address() + 8, 3, START),
            (8, 3, START),
        ] {
            assert!(!find(address, count, start), "{count} {start}");
        }
    }
}
