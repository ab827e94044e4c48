//! Scans the array of events window by window, and skips and counts entries that are not events.

use crate::chrome::collect::Collector;
use crate::chrome::event::RawEvent;
use crate::chrome::event_scanner::EventScanner;
use crate::error::Error;
use crate::repairs::Repair;
use crate::scan::{Cursor, Fault, Stop};

/// The state of scanning the events.
pub(super) struct Events {
    pub(super) collector: Collector,
    scanner: EventScanner,
    /// The number of complete events.
    pub(super) whole: u64,
    /// The fault of the first entry that is not an event, if it precedes all events.
    pub(super) first_fault: Option<Fault>,
    pub(super) first_error: Option<Error>,
    /// The element that may come next.
    expected: Expected,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    /// The first event.
    First,
    /// An event, after a comma.
    Event,
    /// A comma, after an event.
    Comma,
    /// The next event, wherever it starts: the text before it is damaged.
    Anything,
}

/// The reason why scanning stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paused {
    /// The window is too short.
    More,
    /// The closing bracket was passed.
    Closed,
}

impl Events {
    pub(super) fn new() -> Self {
        Self {
            collector: Collector::default(),
            scanner: EventScanner::new(),
            whole: 0,
            first_fault: None,
            first_error: None,
            expected: Expected::First,
        }
    }

    /// Returns whether the text is damaged where scanning stopped.
    pub(super) fn is_lost(&self) -> bool {
        self.expected == Expected::Anything
    }

    /// Counts a part that could not be read.
    pub(super) fn damage(&mut self, repair: Repair) {
        self.collector.add_damage(repair);
    }

    /// Scans all events of a window. Returns the number of bytes passed.
    pub(super) fn scan(&mut self, window: &[u8]) -> (usize, Paused) {
        let mut cursor = Cursor::new(window);
        let mut event = RawEvent::default();
        loop {
            if self.expected == Expected::Anything && !cursor.seek(b'{') {
                return (cursor.at(), Paused::More);
            }
            let Ok(byte) = cursor.peek() else {
                return (cursor.at(), Paused::More);
            };
            let begin = cursor.at();
            let scanned = match byte {
                b']' => {
                    cursor.pass();
                    self.close();
                    return (cursor.at(), Paused::Closed);
                }
                b',' => {
                    cursor.pass();
                    self.pass_comma();
                    Ok(())
                }
                b'{' => self.scan_event(&mut cursor, &mut event),
                _ => cursor.value().map(|_| self.pass_stranger(begin)),
            };
            match scanned {
                Ok(()) => {}
                Err(Stop::More) => return (begin, Paused::More),
                Err(stop) => {
                    self.lose_track(Fault {
                        at: cursor.at(),
                        stop,
                    });
                    if cursor.at() == begin {
                        cursor.pass();
                    }
                }
            }
        }
    }

    fn scan_event<'w>(
        &mut self,
        cursor: &mut Cursor<'w>,
        event: &mut RawEvent<'w>,
    ) -> Result<(), Stop> {
        let begin = cursor.at();
        self.scanner.scan(cursor, event)?;
        let bad_numbers = cursor.take_bad_numbers();
        if bad_numbers > 0 {
            self.collector.repairs.add(Repair::BadNumber, bad_numbers);
        }
        if event.phase == 0 {
            if self.expected != Expected::Anything {
                self.pass_stranger(begin);
            }
            return Ok(());
        }
        if self.expected == Expected::Comma {
            self.collector.repairs.add(Repair::Malformed, 1);
        }
        let scanner = &self.scanner;
        self.collector.add(event, &scanner.texts, &scanner.rest);
        self.whole += 1;
        self.expected = Expected::Comma;
        Ok(())
    }

    fn pass_comma(&mut self) {
        if self.expected != Expected::Comma {
            self.collector.repairs.add(Repair::Malformed, 1);
        }
        self.expected = Expected::Event;
    }

    /// Counts an entry that is not an event.
    fn pass_stranger(&mut self, begin: usize) {
        self.collector.repairs.add(Repair::NotAnEvent, 1);
        self.note(Fault {
            at: begin,
            stop: Stop::Stranger("expected an event, which is an object with a phase \"ph\""),
        });
        self.expected = Expected::Comma;
    }

    fn close(&mut self) {
        // The comma before the bracket is superfluous.
        if self.expected == Expected::Event {
            self.collector.repairs.add(Repair::Malformed, 1);
        }
        self.expected = Expected::First;
    }

    /// Counts a damaged part once, however often the search for the next event resumes.
    fn lose_track(&mut self, fault: Fault) {
        if self.expected != Expected::Anything {
            self.damage(Repair::Malformed);
        }
        self.note(fault);
        self.expected = Expected::Anything;
    }

    fn note(&mut self, fault: Fault) {
        if self.whole == 0 && self.first_fault.is_none() {
            self.first_fault = Some(fault);
        }
    }
}
