//! The faults that a reader repairs or leaves out, so that a damaged trace still yields a profile.

use mindprof_model::Damage;

/// One kind of fault that a trace can have and still be read.
///
/// Each kind has a stable key for programs and a sentence for people, which is shown as a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Repair {
    /// The file ends before its JSON does; everything complete before that was kept.
    Truncated,
    /// The compressed data is damaged or cut off; everything decompressed before that was kept.
    DamagedCompression,
    /// A part of the file is not JSON; reading resumed at the next event.
    Malformed,
    /// An entry in the list of events is not an event and was left out.
    NotAnEvent,
    /// An event has no start time that fits into nanoseconds and was left out.
    NoTime,
    /// A time was a string and was read as a number.
    StringTimestamp,
    /// A time was not a number (`NaN`, `Infinity`); a duration of that kind became zero.
    NotANumber,
    /// A duration was negative and became zero.
    NegativeDuration,
    /// A complete event had no duration and got a duration of zero.
    NoDuration,
    /// An event ends after the event it started in; both were kept unchanged.
    Crossing,
    /// An event in a trace with whole microseconds ends less than a microsecond after the event it
    /// started in, and was shortened to that event's end.
    Shortened,
    /// A begin event had no end event and was closed at the end of the trace.
    UnmatchedBegin,
    /// An end event had no begin event and was left out.
    UnmatchedEnd,
    /// A string is not valid Unicode or not valid JSON; its readable part was kept.
    BadText,
    /// A number of bytes exceeds any machine's memory and became zero.
    AbsurdMemory,
    /// A number of bytes is negative or not a number, and was left out.
    UnreadableMemory,
    /// A task of a device repeats another one, field by field, and was left out.
    DuplicateTask,
    /// A number has a form that JSON does not have (`010`, `10.`) and was read by its digits.
    BadNumber,
    /// A note of the writer about lost events has an unknown form; the number of lost events is
    /// unknown.
    UnreadableNote,
}

impl Repair {
    /// All kinds, in the order in which they are reported.
    pub const ALL: [Self; 19] = [
        Self::Truncated,
        Self::DamagedCompression,
        Self::Malformed,
        Self::NotAnEvent,
        Self::NoTime,
        Self::StringTimestamp,
        Self::NotANumber,
        Self::NegativeDuration,
        Self::NoDuration,
        Self::Crossing,
        Self::Shortened,
        Self::UnmatchedBegin,
        Self::UnmatchedEnd,
        Self::BadText,
        Self::AbsurdMemory,
        Self::UnreadableMemory,
        Self::DuplicateTask,
        Self::BadNumber,
        Self::UnreadableNote,
    ];

    /// Returns the stable name of the kind, for programs.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::DamagedCompression => "damaged_compression",
            Self::Malformed => "malformed",
            Self::NotAnEvent => "not_an_event",
            Self::NoTime => "no_time",
            Self::StringTimestamp => "string_timestamp",
            Self::NotANumber => "not_a_number",
            Self::NegativeDuration => "negative_duration",
            Self::NoDuration => "no_duration",
            Self::Crossing => "crossing",
            Self::Shortened => "shortened",
            Self::UnmatchedBegin => "unmatched_begin",
            Self::UnmatchedEnd => "unmatched_end",
            Self::BadText => "bad_text",
            Self::AbsurdMemory => "absurd_memory",
            Self::UnreadableMemory => "unreadable_memory",
            Self::DuplicateTask => "duplicate_task",
            Self::BadNumber => "bad_number",
            Self::UnreadableNote => "unreadable_note",
        }
    }

    /// Returns a sentence for `count` faults of this kind: the problem and the repair.
    pub fn sentence(self, count: u64) -> String {
        let (one, many) = self.subject();
        let subject = if count == 1 { one } else { many };
        format!("{count} {subject}")
    }

    /// Returns the sentence without the count, in singular and plural.
    const fn subject(self) -> (&'static str, &'static str) {
        match self {
            Self::Truncated => (
                "place where the file is cut off: everything complete before it was kept",
                "places where the file is cut off: everything complete before them was kept",
            ),
            Self::DamagedCompression => (
                "place where the compressed data is damaged: everything before it was kept",
                "places where the compressed data is damaged: everything before them was kept",
            ),
            Self::Malformed => (
                "part is not JSON and was left out",
                "parts are not JSON and were left out",
            ),
            Self::NotAnEvent => (
                "entry is not an event and was left out",
                "entries are not events and were left out",
            ),
            Self::NoTime => (
                "event has no usable time and was left out",
                "events have no usable time and were left out",
            ),
            Self::StringTimestamp => (
                "time is a string and was read as a number",
                "times are strings and were read as numbers",
            ),
            Self::NotANumber => (
                "time is not a number (NaN or Infinity)",
                "times are not numbers (NaN or Infinity)",
            ),
            Self::NegativeDuration => (
                "duration is negative and was set to zero",
                "durations are negative and were set to zero",
            ),
            Self::NoDuration => (
                "event has no duration and was given zero",
                "events have no duration and were given zero",
            ),
            Self::Crossing => (
                "event ends after the event it started in; both were kept",
                "events end after the events they started in; all were kept",
            ),
            Self::Shortened => (
                "event ends a microsecond after the event it started in and was shortened to it",
                "events end a microsecond after the events they started in and were shortened to them",
            ),
            Self::UnmatchedBegin => (
                "begin event has no end and was closed at the end of the trace",
                "begin events have no end and were closed at the end of the trace",
            ),
            Self::UnmatchedEnd => (
                "end event has no begin and was left out",
                "end events have no begin and were left out",
            ),
            Self::BadText => (
                "string is not valid Unicode or JSON; its readable part was kept",
                "strings are not valid Unicode or JSON; their readable parts were kept",
            ),
            Self::AbsurdMemory => (
                "amount of memory exceeds that of any machine and was not taken",
                "amounts of memory exceed that of any machine and were not taken",
            ),
            Self::UnreadableMemory => (
                "amount of memory is negative or not a number and was not taken",
                "amounts of memory are negative or not numbers and were not taken",
            ),
            Self::DuplicateTask => (
                "task of a device repeats another one and was left out",
                "tasks of devices repeat others and were left out",
            ),
            Self::BadNumber => (
                "number is not JSON, such as 010 or 10., and was read by its digits",
                "numbers are not JSON, such as 010 or 10., and were read by their digits",
            ),
            Self::UnreadableNote => (
                "note about lost events is in an unknown form; any number may be missing",
                "notes about lost events are in an unknown form; any number may be missing",
            ),
        }
    }
}

/// The number of faults found in a trace, by kind.
///
/// A reader returns it with every profile; callers show it as warnings or refuse the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    counts: [u64; Repair::ALL.len()],
}

impl Repairs {
    /// Returns the damage that these repairs stand for. Texts that were mended, and events that
    /// cross others, are none: no event and no time is missing.
    pub fn damage(&self) -> Damage {
        let mut damage = Damage::default();
        for repair in Repair::ALL {
            let count = self.count(repair);
            match repair {
                Repair::Truncated | Repair::DamagedCompression | Repair::Malformed => {
                    damage.cuts += count;
                }
                Repair::NotAnEvent
                | Repair::NoTime
                | Repair::NotANumber
                | Repair::NegativeDuration
                | Repair::NoDuration
                | Repair::UnmatchedBegin
                | Repair::UnmatchedEnd
                | Repair::BadNumber => damage.altered += count,
                Repair::UnreadableNote => damage.unreadable += count,
                Repair::StringTimestamp
                | Repair::Crossing
                | Repair::Shortened
                | Repair::BadText
                | Repair::AbsurdMemory
                | Repair::UnreadableMemory
                | Repair::DuplicateTask => {}
            }
        }
        damage
    }

    /// Returns the number of faults of a kind.
    pub const fn count(&self, repair: Repair) -> u64 {
        self.counts[repair as usize]
    }

    /// Returns the number of all faults.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns whether no fault was found.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// Returns each kind that was found, with its count and its sentence.
    pub fn iter(&self) -> impl Iterator<Item = (Repair, u64, String)> {
        Repair::ALL
            .into_iter()
            .map(|repair| (repair, self.count(repair)))
            .filter(|&(_, count)| count > 0)
            .map(|(repair, count)| (repair, count, repair.sentence(count)))
    }

    /// Adds faults of one kind.
    pub(crate) fn add(&mut self, repair: Repair, count: u64) {
        self.counts[repair as usize] += count;
    }

    /// Adds the faults of another part of the input.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// Forgets the faults of one kind, if they turn out to be none.
    pub(crate) const fn forget(&mut self, repair: Repair) {
        self.counts[repair as usize] = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_told_with_its_number() {
        let mut repairs = Repairs::default();
        assert!(repairs.is_empty());
        repairs.add(Repair::Truncated, 1);
        repairs.add(Repair::NegativeDuration, 3);
        let told: Vec<_> = repairs
            .iter()
            .map(|(repair, count, sentence)| (repair.key(), count, sentence))
            .collect();
        assert_eq!(
            told,
            [
                (
                    "truncated",
                    1,
                    "1 place where the file is cut off: everything complete before it was kept"
                        .into()
                ),
                (
                    "negative_duration",
                    3,
                    "3 durations are negative and were set to zero".into()
                ),
            ]
        );
        assert_eq!(repairs.count(Repair::Crossing), 0);
    }

    #[test]
    fn every_kind_has_a_place_and_a_name_of_its_own() {
        let mut keys: Vec<_> = Repair::ALL.map(Repair::key).into();
        for (index, repair) in Repair::ALL.into_iter().enumerate() {
            assert_eq!(repair as usize, index);
        }
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), Repair::ALL.len());
    }
}
