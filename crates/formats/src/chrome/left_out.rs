//! What a trace holds that a profile has no place for.

/// How many events of a sound trace are not in its profile, by their phase.
///
/// Arrows that the profile tells in its own way, and the names of processes and threads, do not
/// count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    counts: [u64; 128],
}

impl LeftOut {
    /// Returns how many events of a phase were left out.
    pub fn count(&self, phase: char) -> u64 {
        let index = usize::try_from(u32::from(phase));
        index.map_or(0, |index| self.counts.get(index).copied().unwrap_or(0))
    }

    /// Returns whether every event has its place.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|&count| count == 0)
    }

    /// Returns each phase of which events were left out, how many, and what its events are called.
    pub fn iter(&self) -> impl Iterator<Item = (char, u64, &'static str)> {
        let phases = (0_u8..).map(char::from).zip(self.counts);
        phases
            .filter(|&(_, count)| count > 0)
            .map(|(phase, count)| (phase, count, name_of(phase)))
    }

    /// Counts an event.
    pub(crate) fn add(&mut self, phase: u8) {
        self.counts[usize::from(phase & 0x7f)] += 1;
    }
}

impl Default for LeftOut {
    fn default() -> Self {
        Self { counts: [0; 128] }
    }
}

fn name_of(phase: char) -> &'static str {
    match phase {
        'C' => "counters",
        's' | 't' | 'f' => "flows",
        'b' | 'n' | 'e' | 'S' | 'T' | 'p' | 'F' => "asynchronous events",
        'N' | 'O' | 'D' => "objects",
        'P' => "samples",
        'M' => "facts",
        'R' => "marks",
        'c' => "clock marks",
        'v' | 'V' => "memory dumps",
        '(' | ')' => "contexts",
        _ => "events of an unknown phase",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_counted_and_named() {
        let mut left_out = LeftOut::default();
        assert!(left_out.is_empty());
        for phase in [b'C', b's', b'C', 0xff] {
            left_out.add(phase);
        }
        let told: Vec<_> = left_out.iter().collect();
        assert_eq!(
            told,
            [
                ('C', 2, "counters"),
                ('s', 1, "flows"),
                ('\u{7f}', 1, "events of an unknown phase")
            ]
        );
        assert_eq!((left_out.count('C'), left_out.count('é')), (2, 0));
    }
}
