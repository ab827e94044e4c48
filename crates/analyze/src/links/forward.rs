//! The forward operators of backward nodes, found by thread and sequence number.
//!
//! Each thread counts sequence numbers by itself, so a number alone is ambiguous. Flow events
//! (`flows`) and the stacks to show (`source`) both use this lookup.

use mindprof_model::{EventId, ForwardThread, Profile, ThreadId};
use rustc_hash::FxHashMap;

/// The forward operators seen so far, by thread and sequence number, while a caller passes over the
/// events of a profile in start order.
///
/// Each operator has a value: its id for flow events, its stack for sources. A lookup table of the
/// whole profile would not do, because a later thread may get the id of an earlier one and start
/// its sequence numbers anew:
///
/// ```text
/// thread 7   |op 0|  |node 0|  |op 0|  |node 0|     each node belongs to the operator before it
/// ```
#[derive(Clone, Debug)]
pub(crate) struct Forwards<T> {
    by_thread: FxHashMap<(ThreadId, u32), Latest<T>>,
    /// By origin and sequence number, the only thread that uses the number, or `None` if several do.
    only_threads: FxHashMap<(usize, u32), Option<ThreadId>>,
}

/// The value for one thread and number, and whether a backward node has looked it up. If so, the
/// next operator starts anew.
#[derive(Clone, Copy, Debug)]
struct Latest<T> {
    value: T,
    had_node: bool,
}

impl<T> Default for Forwards<T> {
    fn default() -> Self {
        Self {
            by_thread: FxHashMap::default(),
            only_threads: FxHashMap::default(),
        }
    }
}

impl<T: Copy> Forwards<T> {
    /// Adds a forward operator. If several have the same number, `choose` picks the value to keep
    /// from the earlier and the later one.
    pub(crate) fn add(
        &mut self,
        profile: &Profile,
        (thread, sequence): (ThreadId, u32),
        value: T,
        choose: fn(T, T) -> T,
    ) {
        let fresh = Latest {
            value,
            had_node: false,
        };
        self.by_thread
            .entry((thread, sequence))
            .and_modify(|latest| {
                if latest.had_node {
                    *latest = fresh;
                } else {
                    latest.value = choose(latest.value, value);
                }
            })
            .or_insert(fresh);
        self.only_threads
            .entry((profile.origin(thread), sequence))
            .and_modify(|known| *known = known.filter(|known| *known == thread))
            .or_insert(Some(thread));
    }

    /// Returns the thread of a backward node's forward operator, and the operator's value.
    ///
    /// If the node does not name the thread, its own thread is tried first, then the only thread of
    /// its origin that uses the sequence number.
    pub(crate) fn find(&mut self, profile: &Profile, node: EventId) -> (ForwardThread, Option<T>) {
        let event = profile.event(node);
        let named = profile.links(node).unwrap_or_default().forward_thread();
        let Some(sequence) = event.sequence() else {
            return (named, None);
        };
        let forward = match named {
            ForwardThread::Unknown if self.by_thread.contains_key(&(event.thread, sequence)) => {
                ForwardThread::At(event.thread)
            }
            ForwardThread::Unknown => {
                let origin = profile.origin(event.thread);
                let only = self.only_threads.get(&(origin, sequence)).copied();
                only.flatten().map_or(named, ForwardThread::At)
            }
            ForwardThread::Elsewhere | ForwardThread::At(_) => named,
        };
        let ForwardThread::At(thread) = forward else {
            return (forward, None);
        };
        let latest = self.by_thread.get_mut(&(thread, sequence));
        let value = latest.map(|latest| {
            latest.had_node = true;
            latest.value
        });
        (forward, value)
    }
}
