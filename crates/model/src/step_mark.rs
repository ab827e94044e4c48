//! The starts of profiler steps that have no scope of their own.
//!
//! The recorder writes them, and the analysis reads them to find the step of an event. In between
//! they are an entry of the profile's metadata, so that they survive a trace file.

use crate::Metadata;

const KEY: &str = "profiler_steps";

/// The start of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepMark {
    /// The step's number.
    pub number: u64,
    /// The start in nanoseconds since the Unix epoch, which holds even if a cut moves the reference
    /// time.
    pub unix_ns: u64,
}

impl StepMark {
    /// Writes marks to the metadata of a profile, in time order. Writes nothing if there are none.
    pub fn write(marks: &[Self], metadata: &mut Metadata) {
        if marks.is_empty() {
            return;
        }
        let pairs = marks.iter();
        let pairs = pairs.map(|mark| format!("[{},{}]", mark.number, mark.unix_ns));
        metadata.set(KEY, format!("[{}]", pairs.collect::<Vec<_>>().join(",")));
    }

    /// Reads the marks from metadata. Returns an empty list if the entry is missing or malformed.
    pub fn read(metadata: &Metadata) -> Vec<Self> {
        let text = metadata.get(KEY).unwrap_or_default();
        Self::parse(text).unwrap_or_default()
    }

    fn parse(text: &str) -> Option<Vec<Self>> {
        let compact: String = text.split_whitespace().collect();
        let pairs = compact.strip_prefix("[[")?.strip_suffix("]]")?;
        let pairs = pairs.split("],[").map(|pair| {
            let (number, unix_ns) = pair.split_once(',')?;
            Some(Self {
                number: number.parse().ok()?,
                unix_ns: unix_ns.parse().ok()?,
            })
        });
        pairs.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_come_back_from_the_text_they_become() {
        let marks = [(1, 1_700_000_000_000_000_001), (2, u64::MAX)];
        let marks = marks.map(|(number, unix_ns)| StepMark { number, unix_ns });
        let mut metadata = Metadata::default();
        StepMark::write(&marks, &mut metadata);
        assert_eq!(StepMark::read(&metadata), marks);
    }

    #[test]
    fn no_marks_leave_no_text() {
        let mut metadata = Metadata::default();
        StepMark::write(&[], &mut metadata);
        assert_eq!(metadata.iter().count(), 0);
        assert_eq!(StepMark::read(&metadata), []);
    }

    #[test]
    fn other_texts_of_that_name_are_no_marks() {
        for text in [
            "",
            "[]",
            "[[]]",
            "[[1]]",
            "[[1,-2]]",
            "[[1,2],[3]]",
            "\"two\"",
        ] {
            let mut metadata = Metadata::default();
            metadata.set(KEY, text);
            assert_eq!(StepMark::read(&metadata), [], "{text}");
        }
        let mut metadata = Metadata::default();
        metadata.set(KEY, "[ [1, 2] ]");
        assert_eq!(StepMark::read(&metadata).len(), 1);
    }
}
