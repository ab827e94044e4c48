//! The damage of the traces that a profile was read from.
//!
//! A reader writes it, and comparisons ask for it. In between it is an entry of the profile's
//! metadata, so that a trace that is written again does not pass for an undamaged one.

use crate::Metadata;

const KEY: &str = "mindprof_damage";

const CUTS: &str = "\"cuts\":";
const ALTERED: &str = "\"altered\":";
const UNREADABLE: &str = "\"unreadable\":";

/// The damage of a trace, including that of the traces it was written from. A repaired trace looks
/// faster than the program was, so its readers must be able to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// The places where an unknown number of events is missing.
    pub cuts: u64,
    /// The events that were left out, or whose times were replaced.
    pub altered: u64,
    /// The notes of loss or damage that are malformed, each of which may stand for any number of
    /// missing events.
    pub unreadable: u64,
}

impl Damage {
    /// Writes it to the metadata of a profile. Writes nothing if there is no damage.
    pub fn write(self, metadata: &mut Metadata) {
        if self == Self::default() {
            return;
        }
        let Self {
            cuts,
            altered,
            unreadable,
        } = self;
        let last = match unreadable {
            0 => String::new(),
            _ => format!(",{UNREADABLE}{unreadable}"),
        };
        metadata.set(KEY, format!("{{{CUTS}{cuts},{ALTERED}{altered}{last}}}"));
    }

    /// Reads it from metadata. A malformed entry is one unreadable note.
    pub fn read(metadata: &Metadata) -> Self {
        let Some(text) = metadata.get(KEY) else {
            return Self::default();
        };
        Self::parse(text).unwrap_or(Self {
            unreadable: 1,
            ..Self::default()
        })
    }

    /// Returns the sum of two damages.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            cuts: self.cuts.saturating_add(other.cuts),
            altered: self.altered.saturating_add(other.altered),
            unreadable: self.unreadable.saturating_add(other.unreadable),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let compact: String = text.split_whitespace().collect();
        let entries = compact.strip_prefix('{')?.strip_suffix('}')?;
        let mut damage = Self::default();
        let mut found = [false; 2];
        // Other programs may have written the trace again, with the entries in another order.
        for entry in entries.split(',') {
            if let Some(number) = entry.strip_prefix(CUTS) {
                (damage.cuts, found[0]) = (number.parse().ok()?, true);
            } else if let Some(number) = entry.strip_prefix(ALTERED) {
                (damage.altered, found[1]) = (number.parse().ok()?, true);
            } else {
                damage.unreadable = entry.strip_prefix(UNREADABLE)?.parse().ok()?;
            }
        }
        (found == [true; 2]).then_some(damage)
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
            unreadable: 3,
        };
        damage.write(&mut metadata);
        assert_eq!(Damage::read(&metadata), damage);
        let both = damage.and(damage);
        assert_eq!((both.cuts, both.altered, both.unreadable), (2, 40, 6));
    }

    #[test]
    fn entries_may_come_in_any_order() {
        let mut metadata = Metadata::default();
        metadata.set(KEY, "{ \"altered\": 20, \"cuts\": 1 }");
        let damage = Damage::read(&metadata);
        assert_eq!((damage.cuts, damage.altered), (1, 20));
    }

    #[test]
    fn a_malformed_entry_is_one_unreadable_note() {
        for text in [
            "",
            "1",
            "{\"cuts\":1}",
            "{\"altered\":90}",
            "{\"cuts\":\"1\",\"altered\":0}",
            "{\"cuts\":-1,\"altered\":2}",
            "{\"cuts\":0,\"altered\":0,\"torn\":5}",
        ] {
            let mut metadata = Metadata::default();
            metadata.set(KEY, text);
            let damage = Damage::read(&metadata);
            assert_eq!((damage.cuts, damage.altered), (0, 0), "{text}");
            assert_eq!(damage.unreadable, 1, "{text}");
        }
        assert_eq!(Damage::read(&Metadata::default()), Damage::default());
    }
}
