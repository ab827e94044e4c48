//! What the totals count that memory records tell of the host.
//!
//! Who records knows it, whoever adds memory up asks for it; between the two it travels as one text
//! of the profile's metadata, so that it survives a trace file.

use crate::Metadata;

const KEY: &str = "host_memory_totals";
const SINCE_FIRST_PROFILER: &str = "\"since the first profiler\"";

/// Since when the host's allocator counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostTotals {
    /// Since the first profiler of the process, as torch's does: what was there before is in no
    /// total.
    SinceFirstProfiler,
}

impl HostTotals {
    /// Notes it in the metadata of a profile.
    pub fn write(self, metadata: &mut Metadata) {
        match self {
            Self::SinceFirstProfiler => metadata.set(KEY, SINCE_FIRST_PROFILER),
        }
    }

    /// Returns what metadata notes, if it notes anything that is known.
    pub fn read(metadata: &Metadata) -> Option<Self> {
        (metadata.get(KEY)? == SINCE_FIRST_PROFILER).then_some(Self::SinceFirstProfiler)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_read_and_nothing_else() {
        let mut metadata = Metadata::default();
        assert_eq!(HostTotals::read(&metadata), None);
        metadata.set(KEY, "1");
        assert_eq!(HostTotals::read(&metadata), None);
        HostTotals::SinceFirstProfiler.write(&mut metadata);
        assert_eq!(
            HostTotals::read(&metadata),
            Some(HostTotals::SinceFirstProfiler)
        );
    }
}
