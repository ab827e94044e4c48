//! How the calls of a sampled profile were estimated.
//!
//! The recorder writes it, and reports of shares of time read it to state their error. In
//! between it is an entry of the profile's metadata, so that it survives a trace file.

use crate::Metadata;

const KEY: &str = "mindprof_sampling";

/// The innermost frame of a sample whose thread was waiting: asleep, or for a lock or a file.
///
/// Samples do not see which C function a thread is in, so this frame stands in its place.
pub const WAITING_FRAME: &str = "<waiting>";

/// The sampling behind the Python calls of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// The mean time between two samples of the main thread, in microseconds. The more threads there
    /// are, the longer it is.
    pub interval_us: u64,
    /// The number of samples of all threads.
    pub samples: u64,
    /// The number of samples of the main thread.
    pub main_samples: u64,
    /// The number of samples that could not be taken or kept.
    pub dropped: u64,
}

impl Sampling {
    /// Writes it to the metadata of a profile.
    pub fn write(self, metadata: &mut Metadata) {
        let Self {
            interval_us,
            samples,
            main_samples,
            dropped,
        } = self;
        let text = format!(
            "{{\"interval_us\":{interval_us},\"samples\":{samples},\
             \"main_samples\":{main_samples},\"dropped\":{dropped}}}"
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
        let samples = number("samples")?;
        Some(Self {
            interval_us: number("interval_us")?,
            samples,
            main_samples: number("main_samples").unwrap_or(samples),
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
            main_samples: 104,
            dropped: 2,
        };
        let mut metadata = Metadata::default();
        assert_eq!(Sampling::read(&metadata), None);
        sampling.write(&mut metadata);
        assert_eq!(Sampling::read(&metadata), Some(sampling));
        let other =
            r#"{ "main_samples": 104, "dropped": 2, "samples": 312, "interval_us": 10000 }"#;
        metadata.set(KEY, other);
        assert_eq!(Sampling::read(&metadata), Some(sampling));
        metadata.set(KEY, r#"{"interval_us":10000,"samples":312,"dropped":2}"#);
        let read = Sampling::read(&metadata).unwrap();
        assert_eq!(
            read.main_samples, 312,
            "an older trace does not tell threads apart"
        );
        for wrong in ["", "{}", "{\"samples\":1}", "[1,2]"] {
            metadata.set(KEY, wrong);
            assert_eq!(Sampling::read(&metadata), None, "{wrong}");
        }
    }
}
