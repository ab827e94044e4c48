//! Predicts the text before the next value that varies, other values included: its prefix.
//!
//! ```text
//! {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 7, "tid": 7, "ts": 5.125, "dur": ...
//! ^----------------------------------^            ^-------------------------^      ^-------^
//! ```
//!
//! Files are written by programs, so the same prefixes come in the same order. Each is remembered
//! with those that came after it, and is matched by one comparison when it comes again.

use hashbrown::HashTable;

use super::PrefixText;
use super::{Cursor, text_hash};

/// The id of a prefix that was seen before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prefix(u16);

impl Prefix {
    /// The id before the first prefix.
    pub(crate) const BEGIN: Self = Self(0);
    /// The id of the last prefix that was not remembered.
    const UNKNOWN: Self = Self(1);

    /// Returns the prefix if it is remembered.
    pub(crate) fn known(self) -> Option<Self> {
        (self != Self::UNKNOWN).then_some(self)
    }

    /// Returns the index for tables by prefix.
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The largest number of prefixes to remember; text beyond that is read the slow way. Prefixes that
/// include values leave room for others.
const MOST_PREFIXES: usize = 4096;
const MOST_PASSING: usize = 3072;
/// The number of successors remembered for each prefix.
const WAYS: usize = 8;
/// The number of mispredictions after which the predictor checks whether including values pays off.
const PATIENCE: u32 = 32;

/// The prefixes of a file so far, each with its successors.
///
/// `Effect` is the reader's interpretation of a prefix.
pub(crate) struct PrefixPredictor<Effect> {
    prefixes: Vec<KnownPrefix<Effect>>,
    numbers: HashTable<Prefix>,
}

struct KnownPrefix<Effect> {
    text: PrefixText,
    effect: Effect,
    next: [Prefix; WAYS],
    /// The numbers of correct predictions and mispredictions from here.
    hits: u32,
    misses: u32,
    /// Whether prefixes from here include values that rarely change.
    passes: bool,
}

impl<Effect: PartialEq + Default> PrefixPredictor<Effect> {
    /// Creates an empty predictor. The state before the first prefix has the default effect.
    pub(crate) fn new() -> Self {
        let root = || {
            let text = PrefixText::new(b"").expect("nothing is short enough");
            KnownPrefix::new(text, Effect::default())
        };
        Self {
            prefixes: vec![root(), root()],
            numbers: HashTable::new(),
        }
    }

    /// Returns the number of prefixes.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.prefixes.len()
    }

    /// Passes the next prefix, if it has followed `from` before.
    #[inline]
    pub(crate) fn match_next(&mut self, cursor: &mut Cursor<'_>, from: Prefix) -> Option<Prefix> {
        let likely = self.prefixes[from.index()].next[0];
        if cursor.pass_prefix(&self.prefixes[likely.index()].text) && likely != Prefix::UNKNOWN {
            self.prefixes[from.index()].hits += 1;
            return Some(likely);
        }
        self.match_other(cursor, from)
    }

    fn match_other(&mut self, cursor: &mut Cursor<'_>, from: Prefix) -> Option<Prefix> {
        let ways = self.prefixes[from.index()].next;
        for (way, prefix) in ways.into_iter().enumerate().skip(1) {
            if prefix == Prefix::UNKNOWN {
                break;
            }
            if cursor.pass_prefix(&self.prefixes[prefix.index()].text) {
                let known = &mut self.prefixes[from.index()];
                known.hits += 1;
                // Frequent successors move to the front, but slowly, so that two alternating ones
                // do not swap each time.
                if known.hits.is_multiple_of(4) {
                    known.next.swap(way, way - 1);
                }
                return Some(prefix);
            }
        }
        None
    }

    /// Returns the effect of a prefix.
    #[inline]
    pub(crate) fn effect(&self, prefix: Prefix) -> &Effect {
        &self.prefixes[prefix.index()].effect
    }

    /// Returns whether a prefix from here may include values.
    pub(crate) fn may_pass(&self, from: Prefix) -> bool {
        self.prefixes[from.index()].passes && self.prefixes.len() < MOST_PASSING
    }

    /// Remembers a prefix that came after `from`.
    #[cold]
    pub(crate) fn train(&mut self, from: Prefix, text: &[u8], effect: Effect) -> Prefix {
        let prefix = self.remember(text, effect);
        let known = &mut self.prefixes[from.index()];
        known.misses += 1;
        if known.passes && known.misses > PATIENCE && known.misses > known.hits / 8 {
            known.passes = false;
            known.next = [Prefix::UNKNOWN; WAYS];
        } else if from != Prefix::UNKNOWN && prefix != Prefix::UNKNOWN {
            let free = known
                .next
                .iter()
                .position(|&prefix| prefix == Prefix::UNKNOWN);
            known.next[free.unwrap_or(WAYS - 1)] = prefix;
        }
        prefix
    }

    /// Stores the effect of a prefix that is not remembered, until the next such prefix.
    pub(crate) fn hold(&mut self, effect: Effect) -> Prefix {
        self.prefixes[Prefix::UNKNOWN.index()].effect = effect;
        Prefix::UNKNOWN
    }

    fn remember(&mut self, text: &[u8], effect: Effect) -> Prefix {
        let hash = text_hash(text);
        let prefixes = &self.prefixes;
        let is_it = |prefix: &Prefix| {
            let known = &prefixes[prefix.index()];
            known.effect == effect && known.text.bytes() == text
        };
        if let Some(&prefix) = self.numbers.find(hash, is_it) {
            return prefix;
        }
        let text = PrefixText::new(text).filter(|_| self.prefixes.len() < MOST_PREFIXES);
        let Some(text) = text else {
            return self.hold(effect);
        };
        let prefix = Prefix(self.prefixes.len() as u16);
        self.prefixes.push(KnownPrefix::new(text, effect));
        let prefixes = &self.prefixes;
        let hash_of = |prefix: &Prefix| text_hash(prefixes[prefix.index()].text.bytes());
        self.numbers.insert_unique(hash, prefix, hash_of);
        prefix
    }
}

impl<Effect> KnownPrefix<Effect> {
    const fn new(text: PrefixText, effect: Effect) -> Self {
        Self {
            text,
            effect,
            next: [Prefix::UNKNOWN; WAYS],
            hits: 0,
            misses: 0,
            passes: true,
        }
    }
}
