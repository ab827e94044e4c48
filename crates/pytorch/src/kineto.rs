//! Results of torch's own collector, read where they lie.
//!
//! A result holds the moment it began at and a vector of events; each event is asked by accessors
//! that libtorch exports, and that Python's own are made of. How large an event is, is worked out
//! from a result whose events were counted. Goes to whoever makes a part of it, who compares the
//! first results with what Python says of them.

#![expect(
    unsafe_code,
    reason = "torch's accessors are called by addresses that were looked up by name"
)]

use std::ffi::c_void;
use std::marker::PhantomData;

use crate::error::{Error, Result};
use crate::ivalue::slice;
use crate::kineto_symbols::{KinetoSymbols, Text};
use crate::self_read::read_words;

/// How results lie in memory, and what reads them.
#[derive(Clone, Copy)]
pub(crate) struct KinetoLayout {
    symbols: KinetoSymbols,
    /// The bytes of one event.
    stride: u64,
}

/// No event is smaller: it holds what it was made of, its stack, its shapes and its types.
const SMALLEST_EVENT: u64 = 64;
const LARGEST_EVENT: u64 = 4096;

impl KinetoLayout {
    /// Finds the layout from the address of a result whose events were counted, and that began at
    /// a known moment.
    ///
    /// # Errors
    /// If the platform is not supported, libtorch lacks an accessor, or what lies there does not
    /// look like a result.
    pub(crate) fn find(address: u64, count: u64, start_ns: u64) -> Result<Self> {
        Self::find_with(KinetoSymbols::find()?, address, count, start_ns)
    }

    /// As [`KinetoLayout::find`], with accessors that are known.
    pub(crate) fn find_with(
        symbols: KinetoSymbols,
        address: u64,
        count: u64,
        start_ns: u64,
    ) -> Result<Self> {
        let (begin, end) = vector(address, start_ns)?;
        let bytes = end - begin;
        if count < 2 || bytes % count != 0 {
            return Err(unexpected("its events are not counted right"));
        }
        let stride = bytes / count;
        if !(SMALLEST_EVENT..=LARGEST_EVENT).contains(&stride) || !stride.is_multiple_of(8) {
            return Err(unexpected("its events are too small or too large"));
        }
        Ok(Self { symbols, stride })
    }

    /// Opens the result at an address, which is borrowed from `owner`.
    ///
    /// # Errors
    /// If it does not look like a result that began at that moment.
    pub(crate) fn open<'a, T>(
        &self,
        address: u64,
        start_ns: u64,
        _owner: &'a T,
    ) -> Result<KinetoEvents<'a>> {
        let (begin, end) = vector(address, start_ns)?;
        if (end - begin) % self.stride != 0 {
            return Err(unexpected("its events are of another size"));
        }
        Ok(KinetoEvents {
            layout: *self,
            begin,
            len: ((end - begin) / self.stride) as usize,
            _owner: PhantomData,
        })
    }
}

/// Returns where the events of a result begin and end.
fn vector(address: u64, start_ns: u64) -> Result<(u64, u64)> {
    let words = read_words::<4>(address).ok_or_else(|| unexpected("it cannot be read"))?;
    let [start, begin, end, room] = words;
    if start != start_ns || begin > end || end > room || !begin.is_multiple_of(8) {
        return Err(unexpected("its events were not found"));
    }
    Ok((begin, end))
}

fn unexpected(what: &str) -> Error {
    Error::Layout(format!("a result of its collector: {what}"))
}

/// The events of one result.
pub(crate) struct KinetoEvents<'a> {
    layout: KinetoLayout,
    begin: u64,
    len: usize,
    /// The events are the result's, which stays while these are used.
    _owner: PhantomData<&'a ()>,
}

/// One event, in the words of torch's accessors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KinetoEvent {
    /// When it began and ended, in nanoseconds since the Unix epoch.
    pub(crate) start_ns: u64,
    /// See `start_ns`.
    pub(crate) end_ns: u64,
    /// The thread that it began on, by torch's count.
    pub(crate) start_thread: u64,
    /// The thread that it ended on.
    pub(crate) end_thread: u64,
    /// The thread of a backward node's forward operator; zero for none.
    pub(crate) forward_thread: u64,
    /// The kind of scope.
    pub(crate) scope: u8,
    /// What links forward operators with backward nodes.
    pub(crate) sequence: i64,
    /// The kind of device.
    pub(crate) device: u8,
    /// The number of the device, or the process.
    pub(crate) device_index: i32,
    /// The stream, or the thread by the system's number.
    pub(crate) resource: i64,
    /// Its own number.
    pub(crate) correlation: u64,
    /// The number of the scope that asked for it.
    pub(crate) linked: u64,
    /// Zero for what is no scope; none where torch does not say.
    pub(crate) external: Option<i64>,
    /// The kind of activity.
    pub(crate) activity: u8,
    /// Whether it is asynchronous.
    pub(crate) is_async: bool,
    /// Whether it is kept out of results.
    pub(crate) is_hidden: bool,
    /// Whether it is a call of Python's.
    pub(crate) is_python: bool,
}

impl KinetoEvents<'_> {
    /// Returns how many there are.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Returns one, without its name and stack.
    ///
    /// # Panics
    /// When there are fewer.
    pub(crate) fn event(&self, index: usize) -> KinetoEvent {
        let event = self.address(index);
        let ask = &self.layout.symbols;
        // SAFETY: the address is of an event of the vector, which lives as long as `self`; the
        // accessors only read, and have the types that the symbols' names say.
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

    /// Calls `use_name` with the name of one.
    ///
    /// # Panics
    /// When there are fewer.
    pub(crate) fn with_name<R>(&self, index: usize, use_name: impl FnOnce(&[u8]) -> R) -> R {
        let mut name = Text::EMPTY;
        // SAFETY: as in `event`; a text that is returned is written where it is told to.
        unsafe { (self.layout.symbols.name)(&raw mut name, self.address(index)) };
        let used = use_name(name.bytes());
        // SAFETY: the text was made just now, by torch, and is not used again.
        unsafe { name.free(&self.layout.symbols) };
        used
    }

    /// Returns how many bytes an event of memory took, or gave back.
    ///
    /// # Panics
    /// When there are fewer.
    pub(crate) fn bytes(&self, index: usize) -> i64 {
        // SAFETY: as in `event`.
        unsafe { (self.layout.symbols.bytes)(self.address(index)) }
    }

    /// Calls `use_frame` with the frames of an event's stack, the innermost first.
    ///
    /// # Panics
    /// When there are fewer.
    pub(crate) fn stack(&self, index: usize) -> impl DoubleEndedIterator<Item = &[u8]> {
        // SAFETY: as in `event`; the texts are the event's, and live as long.
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
            KinetoLayout::find_with(symbols(), address, count, start).is_ok()
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
