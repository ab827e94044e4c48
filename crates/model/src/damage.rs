//! The damage of the traces that a profile was read from.
//!
//! A reader writes it, and comparisons ask for it. In between it is an entry of the profile's
//! metadata, so that a trace that is written again does not pass for an undamaged one.

use crate::Metadata;

const KEY: &str = "mindprof_damage";

/// The damage of a trace, including that of the traces it was written from. A repaired trace looks
/// faster than the program was, so its readers must be able to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// The places where an unknown number of events is missing.
    pub cuts: u64,
    /// The events that were left out, or whose times were replaced.
    pub altered: u64,
}

impl Damage {
    /// Writes it to the metadata of a profile. Writes nothing if there is no damage.
    pub fn write(self, metadata: &mut Metadata) {
        if self != Self::default() {
            let Self { cuts, altered } = self;
            metadata.set(KEY, format!("{{\"cuts\":{cuts},\"altered\":{altered}}}"));
        }
    }

    /// Reads it from metadata. Returns no damage if the entry is missing or malformed.
    pub fn read(metadata: &Metadata) -> Self {
        let text = metadata.get(KEY).unwrap_or_default();
        Self::parse(text).unwrap_or_default()
    }

    /// Returns the sum of two damages.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            cuts: self.cuts.saturating_add(other.cuts),
            altered: self.altered.saturating_add(other.altered),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let compact: String = text.split_whitespace().collect();
        let entries = compact.strip_prefix('{')?.strip_suffix('}')?;
        // Other programs may have written the trace again, with the entries in another order.
        let number = |key: &str| {
            let mut found = entries
                .split(',')
                .filter_map(|entry| entry.strip_prefix(key));
            found.next()?.parse().ok()
        };
        Some(Self {
            cuts: number("\"cuts\":")?,
            altered: number("\"altered\":")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_survives_metadata_and_adds_up() {
        let mut metadata = Metadata::default();
        Damage::default().write(&mut metadata);
        assert_eq!(metadata.iter().count(), 0);
        let damage = Damage {
            cuts: 1,
            altered: 20,
        };
        damage.write(&mut metadata);
        assert_eq!(Damage::read(&metadata), damage);
        let both = damage.and(damage);
        assert_eq!((both.cuts, both.altered), (2, 40));
    }

    #[test]
    fn entries_may_come_in_any_order() {
        let mut metadata = Metadata::default();
        metadata.set(KEY, "{ \"altered\": 20, \"cuts\": 1 }");
        let damage = Damage::read(&metadata);
        assert_eq!((damage.cuts, damage.altered), (1, 20));
    }

    #[test]
    fn malformed_entries_are_no_damage() {
        for text in ["", "1", "{\"cuts\":1}", "{\"cuts\":-1,\"altered\":2}"] {
            let mut metadata = Metadata::default();
            metadata.set(KEY, text);
            assert_eq!(Damage::read(&metadata), Damage::default(), "{text}");
        }
    }
}
