//! Which memory tensors lie in: of the inputs of events, and of what a training program says of its
//! tensors.
//!
//! A storage is known by where it lies. An address means one storage from its allocation to its
//! release; what lies there afterwards is another one, which `analyze` tells apart by the memory
//! records between them.

use crate::{Nanos, ThreadId};

/// The addresses of the storages that each event's input tensors lie in, in the order in which the
/// event's inputs list them.
#[derive(Clone, Debug, Default)]
pub struct StorageLists {
    /// Where each event's addresses lie among all: none at all, or one entry for each event.
    spans: Vec<Span>,
    addresses: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Span {
    begin: u32,
    count: u32,
}

impl StorageLists {
    /// Returns the addresses of the event at `index`; none where they were not recorded.
    pub fn of(&self, index: usize) -> &[u64] {
        let Some(span) = self.spans.get(index) else {
            return &[];
        };
        &self.addresses[span.begin as usize..][..span.count as usize]
    }

    /// Returns whether no event has any.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }

    /// Makes room for the lists of events up to number `events`, and for so many addresses more.
    pub(crate) fn reserve(&mut self, events: usize, addresses: usize) {
        self.spans.reserve(events.saturating_sub(self.spans.len()));
        self.addresses.reserve(addresses);
    }

    /// Sets the addresses of the event at `index`.
    pub(crate) fn set(&mut self, index: usize, addresses: &[u64]) {
        if self.spans.len() <= index {
            self.spans.resize(index + 1, Span::default());
        }
        // Beyond 2^32 addresses there is no room for more: those events have none.
        if let (Ok(begin), Ok(count)) = (
            u32::try_from(self.addresses.len()),
            u32::try_from(addresses.len()),
        ) {
            self.spans[index] = Span { begin, count };
            self.addresses.extend_from_slice(addresses);
        }
    }

    /// Puts the lists into another order of the events: `order` names, for each place, the one that
    /// comes there.
    pub(crate) fn reorder(&mut self, order: &[u32]) {
        if !self.spans.is_empty() {
            let span = |&index: &u32| self.spans.get(index as usize).copied();
            self.spans = order.iter().map(|i| span(i).unwrap_or_default()).collect();
        }
    }
}

/// What a tensor is to the program that trains with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum TensorRole {
    /// A parameter of a module or an optimizer.
    Parameter,
    /// The gradient of a parameter.
    Gradient,
    /// What an optimizer keeps from one step to the next.
    OptimizerState,
}

impl TensorRole {
    /// Every role, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Parameter, Self::Gradient, Self::OptimizerState];
}

/// One tensor that a module or an optimizer was seen to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoleRecord {
    /// When it was seen, since the profile's reference time.
    pub time: Nanos,
    /// Where its storage lies.
    pub address: u64,
    /// How large the storage is.
    pub bytes: u64,
    /// The thread that saw it.
    pub thread: ThreadId,
    /// What it is.
    pub role: TensorRole,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_follow_their_events_into_another_order() {
        let mut lists = StorageLists::default();
        lists.set(0, &[1, 2]);
        lists.set(2, &[3]);
        lists.reorder(&[2, 1, 0, 3]);
        let found: Vec<_> = (0..5).map(|index| lists.of(index)).collect();
        assert_eq!(found, [&[3][..], &[], &[1, 2], &[], &[]]);
    }
}
