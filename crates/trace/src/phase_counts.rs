//! Counts, by phase, of the events in a trace that profiles have no place for.

/// Numbers of events by phase.
///
/// Readers count what they keep verbatim and what they leave out in one of these each. Flow events
/// that the profile represents as links, and the names of processes and threads, are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseCounts {
    counts: [u64; 128],
}

impl PhaseCounts {
    /// Returns the number of events in a phase.
    pub fn count(&self, phase: char) -> u64 {
        let index = usize::try_from(u32::from(phase));
        index.map_or(0, |index| self.counts.get(index).copied().unwrap_or(0))
    }

    /// Returns whether no event was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|&count| count == 0)
    }

    /// Returns each phase that has events, with their number and a plural noun for them.
    pub fn iter(&self) -> impl Iterator<Item = (char, u64, &'static str)> {
        let phases = (0_u8..).map(char::from).zip(self.counts);
        phases
            .filter(|&(_, count)| count > 0)
            .map(|(phase, count)| (phase, count, name_of(phase)))
    }

    /// Returns the counts summed by noun. A flow counts once, for its start; if only its other ends
    /// were kept, those are counted.
    pub fn by_name(&self) -> Vec<(&'static str, u64)> {
        let begun = self.count('s');
        let mut names: Vec<(&'static str, u64)> = Vec::new();
        for (phase, count, name) in self.iter() {
            if begun > 0 && matches!(phase, 't' | 'f') {
                continue;
            }
            match names.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += count,
                None => names.push((name, count)),
            }
        }
        names
    }

    /// Counts an event.
    pub(crate) fn add(&mut self, phase: u8) {
        self.counts[usize::from(phase & 0x7f)] += 1;
    }
}

impl Default for PhaseCounts {
    fn default() -> Self {
        Self { counts: [0; 128] }
    }
}

fn name_of(phase: char) -> &'static str {
    match phase {
        'X' => "details of events",
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
        let mut counts = PhaseCounts::default();
        assert!(counts.is_empty());
        for phase in [b'C', b's', b'C', 0xff] {
            counts.add(phase);
        }
        let told: Vec<_> = counts.iter().collect();
        assert_eq!(
            told,
            [
                ('C', 2, "counters"),
                ('s', 1, "flows"),
                ('\u{7f}', 1, "events of an unknown phase")
            ]
        );
        assert_eq!((counts.count('C'), counts.count('é')), (2, 0));
        counts.add(b'f');
        let named = counts.by_name();
        assert_eq!(named[..2], [("counters", 2), ("flows", 1)]);
    }
}
