//! The meaning of the CPU totals in memory records.
//!
//! The recorder knows it, and the memory analysis asks for it. In between it is an entry of the
//! profile's metadata, so that it survives a trace file.

use crate::Metadata;

const KEY: &str = "host_memory_totals";
const SINCE_FIRST_PROFILER: &str = "\"since the first profiler\"";

/// The moment from which the CPU allocator counts its total. The memory analysis needs it to tell
/// whether the total includes memory from before the profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostTotals {
    /// The first profiler of the process, as in torch: memory allocated before is in no total.
    SinceFirstProfiler,
}

impl HostTotals {
    /// Writes it to the metadata of a profile.
    pub fn write(self, metadata: &mut Metadata) {
        match self {
            Self::SinceFirstProfiler => metadata.set(KEY, SINCE_FIRST_PROFILER),
        }
    }

    /// Reads it from metadata. Returns `None` if there is no entry, or an unknown one.
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
