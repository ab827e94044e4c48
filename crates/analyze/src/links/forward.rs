//! Which forward operator a backward node belongs to: the one with its sequence number on the
//! thread that its forward ran on.
//!
//! Sequence numbers count on each thread by itself, so a number alone names one operator per
//! thread. Arrows (`flows`) and the stacks that are shown (`source`) ask here.

use mindprof_model::{EventId, ForwardThread, Profile, ThreadId};
use rustc_hash::FxHashMap;

/// What there is to know of forward operators, by thread and sequence number, while the events of a
/// profile come by in start order.
///
/// A thread's id may be used again by a later thread, whose numbers begin anew:
///
/// ```text
/// thread 7   |op 0|  |node 0|  |op 0|  |node 0|     each node is of the operator before it
/// ```
#[derive(Clone, Debug)]
pub(crate) struct Forwards<T> {
    by_thread: FxHashMap<(ThreadId, u32), Latest<T>>,
    /// By origin and sequence number, the thread; none where several have the number.
    only_threads: FxHashMap<(usize, u32), Option<ThreadId>>,
}

/// The operators of one thread and number since the last node of theirs.
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
    /// Takes a forward operator; of several with one number `choose` takes one, given the earlier
    /// and the later.
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

    /// Returns where the forward operator of a backward node ran, and what is known of it. Where
    /// the node does not tell, its own thread is asked first, then the only one of its process that
    /// has the number.
    pub(crate) fn find(&mut self, profile: &Profile, node: EventId) -> (ForwardThread, Option<T>) {
        let event = profile.event(node);
        let told = profile.links(node).unwrap_or_default().forward_thread();
        let Some(sequence) = event.sequence() else {
            return (told, None);
        };
        let forward = match told {
            ForwardThread::Unknown if self.by_thread.contains_key(&(event.thread, sequence)) => {
                ForwardThread::At(event.thread)
            }
            ForwardThread::Unknown => {
                let origin = profile.origin(event.thread);
                let only = self.only_threads.get(&(origin, sequence)).copied();
                only.flatten().map_or(told, ForwardThread::At)
            }
            ForwardThread::Elsewhere | ForwardThread::At(_) => told,
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
