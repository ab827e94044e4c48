//! Which forward operator a backward node belongs to: the one with its sequence number on the
//! thread that its forward ran on.
//!
//! Sequence numbers count on each thread by itself, so a number alone names one operator per
//! thread. Arrows (`flows`) and the stacks that are shown (`source`) ask here.

use mindprof_model::{EventId, ForwardThread, Profile, ThreadId};
use rustc_hash::FxHashMap;

/// How torch names the scope around a backward node; the node's own name follows.
const BACKWARD_WRAPPER: &str = "autograd::engine::evaluate_function";

/// Returns whether an event is the wrapper around a node of the backward graph.
pub fn is_backward_wrapper(name: &str) -> bool {
    name.starts_with(BACKWARD_WRAPPER)
}

/// Returns the name of the node that a wrapper of this name is around.
pub fn wrapped_node(name: &str) -> Option<&str> {
    name.strip_prefix(BACKWARD_WRAPPER)?.strip_prefix(": ")
}

/// What there is to know of forward operators, by thread and sequence number.
#[derive(Clone, Debug)]
pub(crate) struct Forwards<T> {
    by_thread: FxHashMap<(ThreadId, u32), T>,
    /// By origin and sequence number, the thread; none where several have the number.
    only_threads: FxHashMap<(usize, u32), Option<ThreadId>>,
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
    /// Adds an operator; of several with one number on one thread `choose` takes one, given the
    /// earlier and the later.
    pub(crate) fn add(
        &mut self,
        profile: &Profile,
        thread: ThreadId,
        sequence: u32,
        value: T,
        choose: impl FnOnce(T, T) -> T,
    ) {
        let mut choose = Some(choose);
        self.by_thread
            .entry((thread, sequence))
            .and_modify(|known| {
                if let Some(choose) = choose.take() {
                    *known = choose(*known, value);
                }
            })
            .or_insert(value);
        self.only_threads
            .entry((profile.origin(thread), sequence))
            .and_modify(|known| *known = known.filter(|known| *known == thread))
            .or_insert(Some(thread));
    }

    /// Returns where the forward operator of a backward node ran. Where the node does not tell, its
    /// own thread is asked first, then the only one of its process that has the number.
    pub(crate) fn thread(&self, profile: &Profile, node: EventId) -> ForwardThread {
        let links = profile.links(node).unwrap_or_default();
        let told = links.forward_thread();
        let event = profile.event(node);
        let (ForwardThread::Unknown, Some(sequence)) = (told, event.sequence()) else {
            return told;
        };
        if self.by_thread.contains_key(&(event.thread, sequence)) {
            return ForwardThread::At(event.thread);
        }
        let origin = profile.origin(event.thread);
        let only = self.only_threads.get(&(origin, sequence)).copied();
        only.flatten()
            .map_or(ForwardThread::Unknown, ForwardThread::At)
    }

    /// Returns what is known of the forward operator of a backward node.
    pub(crate) fn of(&self, profile: &Profile, node: EventId) -> Option<T> {
        let sequence = profile.event(node).sequence()?;
        match self.thread(profile, node) {
            ForwardThread::Unknown | ForwardThread::Elsewhere => None,
            ForwardThread::At(thread) => self.by_thread.get(&(thread, sequence)).copied(),
        }
    }
}
