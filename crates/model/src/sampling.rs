//! How the calls of a sampled profile were estimated.
//!
//! The recorder writes it, and reports of shares of time read it to state their error. In
//! between it is an entry of the profile's metadata, so that it survives a trace file.

use crate::Metadata;

const KEY: &str = "mindprof_sampling";

/// The sampling behind the Python calls of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// The time between two samples of a thread, in microseconds.
    pub interval_us: u64,
    /// The number of samples.
    pub samples: u64,
    /// The number of samples that could not be taken or kept.
    pub dropped: u64,
}

impl Sampling {
    /// Writes it to the metadata of a profile.
    pub fn write(self, metadata: &mut Metadata) {
        let Self {
            interval_us,
            samples,
            dropped,
        } = self;
        let text = format!(
            "{{\"interval_us\":{interval_us},\"samples\":{samples},\"dropped\":{dropped}}}"
        );
        metadata.set(KEY, text);
    }

    /// Reads it from metadata. Returns `None` if calls were not sampled or the entry is malformed.
    pub fn read(metadata: &Metadata) -> Option<Self> {
        let compact: String = metadata.get(KEY)?.split_whitespace().collect();
        let entries = compact.strip_prefix('{')?.strip_suffix('}')?;
        // Other programs may have written the trace again, with the entries in another order.
        let number = |key: &str| {
            let mut pairs = entries.split(',').filter_map(|entry| entry.split_once(':'));
            let (_, number) = pairs.find(|(found, _)| found.trim_matches('"') == key)?;
            number.parse().ok()
        };
        Some(Self {
            interval_us: number("interval_us")?,
            samples: number("samples")?,
            dropped: number("dropped")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_from_the_text_it_becomes() {
        let sampling = Sampling {
            interval_us: 10_000,
            samples: 312,
            dropped: 2,
        };
        let mut metadata = Metadata::default();
        assert_eq!(Sampling::read(&metadata), None);
        sampling.write(&mut metadata);
        assert_eq!(Sampling::read(&metadata), Some(sampling));
        let other = r#"{ "dropped": 2, "samples": 312, "interval_us": 10000 }"#;
        metadata.set(KEY, other);
        assert_eq!(Sampling::read(&metadata), Some(sampling));
        for wrong in ["", "{}", "{\"samples\":1}", "[1,2]"] {
            metadata.set(KEY, wrong);
            assert_eq!(Sampling::read(&metadata), None, "{wrong}");
        }
    }
}
