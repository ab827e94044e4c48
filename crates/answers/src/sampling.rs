//! How a recording sampled Python stacks, and the error that this leaves in shares of time.

use mindprof_model::{Metadata, Nanos};
use serde::Serialize;

/// How the Python stacks of a recording were sampled.
///
/// A sampled recording has no Python calls. Its events of Python code are slices of time in which a
/// line was found running, each named with that line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sampling {
    /// The mean time between two samples of the main thread, in microseconds.
    pub interval_us: u64,
    /// The number of samples of all threads.
    pub samples: u64,
    /// The number of samples of the main thread, whose shares are shown.
    pub main_samples: u64,
    /// The number of samples that could not be kept.
    pub dropped: u64,
}

impl Sampling {
    /// Reads from the metadata of a profile how it was sampled, or returns `None` if it was not.
    pub fn read(metadata: &Metadata) -> Option<Self> {
        let found = mindprof_model::Sampling::read(metadata)?;
        Some(Self {
            interval_us: found.interval_us,
            samples: found.samples,
            main_samples: found.main_samples,
            dropped: found.dropped,
        })
    }

    /// Returns the number of samples of the main thread that fell into some of its time.
    pub fn samples_in(&self, time: Nanos) -> u64 {
        let taken = time.0 / (self.interval_us * 1000).max(1);
        taken.min(self.main_samples)
    }

    /// Returns the standard error of a sampled part of some time, as a fraction of that time.
    ///
    /// A sample falls into the part with its probability `p`, so that the share that `n` samples
    /// find has the standard error `sqrt(p (1 - p) / n)`.
    pub fn error(&self, part: Nanos, whole: Nanos) -> f64 {
        let samples = self.samples_in(whole).max(1);
        let share = (part.0 as f64 / whole.0.max(1) as f64).min(1.0);
        (share * (1.0 - share) / samples as f64).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_falls_with_the_number_of_samples() {
        let mut metadata = Metadata::default();
        assert_eq!(Sampling::read(&metadata), None);
        let recorded = mindprof_model::Sampling {
            interval_us: 10_000,
            samples: 900,
            main_samples: 300,
            dropped: 0,
        };
        recorded.write(&mut metadata);
        let sampling = Sampling::read(&metadata).unwrap();
        // Two seconds hold 200 samples of the 300, and four would hold more than there are.
        assert_eq!(sampling.samples_in(Nanos(4_000_000_000)), 300);
        let error = sampling.error(Nanos(1_000_000_000), Nanos(2_000_000_000));
        assert!((error - (0.25_f64 / 200.0).sqrt()).abs() < 1e-12);
        assert!(sampling.error(Nanos(1), Nanos(0)).abs() < 1e-12);
    }
}
