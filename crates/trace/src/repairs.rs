//! What a reader had to put right, or leave out, in order to make a profile of a trace.

/// One kind of fault that a trace can have and still be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Repair {
    /// The file ends before its JSON does; what was whole was kept.
    Truncated,
    /// The compressed data is damaged or cut off; what came out of it before was kept.
    DamagedCompression,
    /// A part of the file is no JSON; reading went on at the next event.
    Malformed,
    /// An entry among the events is no event and was left out.
    NotAnEvent,
    /// An event has no time, or none that can be told in nanoseconds, and was left out.
    NoTime,
    /// A time was given as a text and was read as a number.
    StringTimestamp,
    /// A time was no number (`NaN`, `Infinity`); a duration that is none became zero.
    NotANumber,
    /// A duration was below zero and became zero.
    NegativeDuration,
    /// A complete event had no duration and was given that of zero.
    NoDuration,
    /// An event ends after one that it began in; both were kept as they are.
    Crossing,
    /// An event of a trace of whole microseconds ends less than one after an event that it began in,
    /// and was given that one's end.
    Shortened,
    /// A begin had no end and was closed where the trace ends.
    UnmatchedBegin,
    /// An end had no begin and was left out.
    UnmatchedEnd,
    /// A text is not Unicode, or not escaped as JSON wants it; what could be read of it was kept.
    BadText,
    /// An amount of memory was beyond what a machine can have and became zero.
    AbsurdMemory,
}

impl Repair {
    /// All kinds, in the order in which they are reported.
    pub const ALL: [Self; 15] = [
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
    ];

    /// Returns the name that programs know the kind by; it does not change.
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
        }
    }

    /// Says what was wrong `count` times and what was done about it.
    pub fn sentence(self, count: u64) -> String {
        let (one, many) = self.subject();
        let subject = if count == 1 { one } else { many };
        format!("{count} {subject}")
    }

    /// What stands behind the count, for one and for many.
    const fn subject(self) -> (&'static str, &'static str) {
        match self {
            Self::Truncated => (
                "place where the file was cut off: what was whole before it was kept",
                "places where the file was cut off: what was whole before them was kept",
            ),
            Self::DamagedCompression => (
                "place where the compressed data is damaged: what came before it was kept",
                "places where the compressed data is damaged: what came before them was kept",
            ),
            Self::Malformed => (
                "part is no JSON and was left out",
                "parts are no JSON and were left out",
            ),
            Self::NotAnEvent => (
                "entry is no event and was left out",
                "entries are no events and were left out",
            ),
            Self::NoTime => (
                "event has no usable time and was left out",
                "events have no usable time and were left out",
            ),
            Self::StringTimestamp => (
                "time is a text and was read as a number",
                "times are texts and were read as numbers",
            ),
            Self::NotANumber => (
                "time is no number (NaN or Infinity)",
                "times are no numbers (NaN or Infinity)",
            ),
            Self::NegativeDuration => (
                "duration is below zero and became zero",
                "durations are below zero and became zero",
            ),
            Self::NoDuration => (
                "event has no duration and was given zero",
                "events have no duration and were given zero",
            ),
            Self::Crossing => (
                "event ends after one that it began in; it was kept beside it",
                "events end after ones that they began in; they were kept beside them",
            ),
            Self::Shortened => (
                "event ends a microsecond after one that it began in; it was shortened by that",
                "events end a microsecond after ones that they began in; they were shortened by that",
            ),
            Self::UnmatchedBegin => (
                "begin has no end and was closed where the trace ends",
                "begins have no end and were closed where the trace ends",
            ),
            Self::UnmatchedEnd => (
                "end has no begin and was left out",
                "ends have no begin and were left out",
            ),
            Self::BadText => (
                "text is not Unicode or wrongly escaped; what could be read of it was kept",
                "texts are not Unicode or wrongly escaped; what could be read of them was kept",
            ),
            Self::AbsurdMemory => (
                "amount of memory is beyond what a machine can have and became zero",
                "amounts of memory are beyond what a machine can have and became zero",
            ),
        }
    }
}

/// How often each kind of fault was found in a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    counts: [u64; Repair::ALL.len()],
}

impl Repairs {
    /// Returns whether the trace was damaged or cut off, so that events may be missing.
    pub fn are_cuts(&self) -> bool {
        let cuts = [
            Repair::Truncated,
            Repair::DamagedCompression,
            Repair::Malformed,
        ];
        cuts.into_iter().any(|cut| self.count(cut) > 0)
    }

    /// Returns how often a kind was found.
    pub const fn count(&self, repair: Repair) -> u64 {
        self.counts[repair as usize]
    }

    /// Returns how many faults were found.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns whether nothing was wrong.
    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    /// Returns each kind that was found, how often, and a sentence that says it.
    pub fn iter(&self) -> impl Iterator<Item = (Repair, u64, String)> {
        Repair::ALL
            .into_iter()
            .map(|repair| (repair, self.count(repair)))
            .filter(|&(_, count)| count > 0)
            .map(|(repair, count)| (repair, count, repair.sentence(count)))
    }

    /// Counts faults of one kind.
    pub(crate) fn add(&mut self, repair: Repair, count: u64) {
        self.counts[repair as usize] += count;
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
                    "1 place where the file was cut off: what was whole before it was kept".into()
                ),
                (
                    "negative_duration",
                    3,
                    "3 durations are below zero and became zero".into()
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
