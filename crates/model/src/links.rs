//! Links between events, and the display numbers of threads.
//!
//! Sources set links as they find them, and only [`crate::ProfileBuilder`] changes them, when it
//! combines several parts. `mindprof-analyze` works out what they connect.

use crate::{Category, Event, StringId, StringTable, ThreadId};

/// The ids that link one event to others. Zero means "none".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// The external id: of a CPU scope its own, of device work and runtime calls that of the scope
    /// that launched them.
    pub external: u32,
    /// The correlation id, which a runtime call shares with the device work that it launched.
    pub correlation: u32,
    /// The id by which an execution trace refers to the scope.
    pub record_function: u32,
    /// See [`ForwardThread::to_raw`].
    pub(crate) forward: u32,
    /// See [`Links::overload`].
    pub(crate) overload: u32,
    /// See [`Links::module_hierarchy`].
    pub(crate) hierarchy: u32,
}

impl Links {
    /// Returns the links of an event that is not a backward node.
    pub const fn new(external: u32, correlation: u32) -> Self {
        Self {
            external,
            correlation,
            record_function: 0,
            forward: 0,
            overload: 0,
            hierarchy: 0,
        }
    }

    /// Returns the overload of an operator, such as `Tensor` of `aten::add`, if it was recorded.
    pub fn overload(&self) -> Option<StringId> {
        let overload = StringId::from_raw(self.overload);
        (overload != StringTable::EMPTY).then_some(overload)
    }

    /// Sets the overload of an operator; an empty string means none.
    pub const fn set_overload(&mut self, overload: StringId) {
        self.overload = overload.to_raw();
    }

    /// Returns the calls of `TorchScript` modules that an operator ran in, if they were recorded.
    pub fn module_hierarchy(&self) -> Option<StringId> {
        let hierarchy = StringId::from_raw(self.hierarchy);
        (hierarchy != StringTable::EMPTY).then_some(hierarchy)
    }

    /// Sets the calls of `TorchScript` modules; an empty string means none.
    pub const fn set_module_hierarchy(&mut self, hierarchy: StringId) {
        self.hierarchy = hierarchy.to_raw();
    }

    /// Returns the thread of a backward node's forward operator.
    pub const fn forward_thread(&self) -> ForwardThread {
        ForwardThread::from_raw(self.forward)
    }

    /// Sets the thread of a backward node's forward operator.
    pub const fn set_forward_thread(&mut self, thread: ForwardThread) {
        self.forward = thread.to_raw();
    }
}

/// The thread that ran the forward operator of a backward node. Sequence numbers are only unique
/// within a thread, so it takes both to find the operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardThread {
    /// It is unknown, or the event is not a backward node.
    #[default]
    Unknown,
    /// A thread that is not in the profile.
    Elsewhere,
    /// This thread.
    At(ThreadId),
}

impl ForwardThread {
    /// Returns it as a number: zero if unknown, the largest one if elsewhere, otherwise one more
    /// than the thread.
    pub(crate) const fn to_raw(self) -> u32 {
        match self {
            Self::Unknown => 0,
            Self::Elsewhere => u32::MAX,
            Self::At(thread) => thread.to_raw() + 1,
        }
    }

    pub(crate) const fn from_raw(raw: u32) -> Self {
        match raw {
            0 => Self::Unknown,
            u32::MAX => Self::Elsewhere,
            _ => Self::At(ThreadId::from_raw(raw - 1)),
        }
    }

    /// Translates the thread with `thread`.
    #[must_use]
    pub fn map(self, thread: impl FnOnce(ThreadId) -> Self) -> Self {
        match self {
            Self::Unknown | Self::Elsewhere => self,
            Self::At(of) => thread(of),
        }
    }
}

/// The numbers under which threads are shown: counted from one, first the CPU threads in the order
/// in which they began to work, then those that only called a device's runtime.
///
/// ```text
/// thread a        |--op--|   |--op--|        2
/// thread b   |--op--|                        1
/// thread c  |-cudaLaunch-|                   3, although it is the first
/// stream 7          |--kernel--|             1: device work counts as the first thread's
/// ```
#[derive(Clone, Debug, Default)]
pub struct ThreadNumbers {
    /// The number of each thread; one for streams.
    numbers: Vec<u32>,
    /// The CPU threads by their numbers.
    hosts: Vec<ThreadId>,
}

impl ThreadNumbers {
    /// Numbers the threads by events in start order; `is_host` says for each thread whether it is a
    /// CPU thread.
    pub fn build<'a>(is_host: &[bool], events: impl IntoIterator<Item = &'a Event>) -> Self {
        const NONE: u32 = 0;
        let mut numbers = vec![NONE; is_host.len()];
        let mut hosts = Vec::new();
        let count = is_host.iter().filter(|&&is_host| is_host).count();
        for event in events {
            let index = event.thread.index();
            if is_host[index] && numbers[index] == NONE && is_scope(event.category) {
                hosts.push(event.thread);
                numbers[index] = hosts.len() as u32;
                if hosts.len() == count {
                    break;
                }
            }
        }
        for (index, number) in numbers.iter_mut().enumerate() {
            if is_host[index] && *number == NONE {
                hosts.push(ThreadId::from_index(index));
                *number = hosts.len() as u32;
            }
            *number = (*number).max(1);
        }
        Self { numbers, hosts }
    }

    /// Returns the number of a thread. Streams have that of the first thread.
    ///
    /// # Panics
    /// Panics if `thread` belongs to another profile.
    pub fn number(&self, thread: ThreadId) -> u32 {
        self.numbers[thread.index()]
    }

    /// Returns the number of a forward operator's thread: zero if it is unknown, and a number that
    /// no thread has if it ran elsewhere.
    pub fn forward_number(&self, forward: ForwardThread) -> u32 {
        match forward {
            ForwardThread::Unknown => 0,
            ForwardThread::Elsewhere => self.hosts.len() as u32 + 1,
            ForwardThread::At(thread) => self.number(thread),
        }
    }

    /// Returns the thread with a number from a trace, the inverse of [`Self::forward_number`].
    pub fn forward_thread(&self, number: u32) -> ForwardThread {
        let Some(index) = number.checked_sub(1) else {
            return ForwardThread::Unknown;
        };
        let thread = self.hosts.get(index as usize);
        thread.map_or(ForwardThread::Elsewhere, |&thread| {
            ForwardThread::At(thread)
        })
    }
}

/// Returns whether an event of this category shows that the program itself runs on its thread.
const fn is_scope(category: Category) -> bool {
    match category {
        Category::Operator | Category::Annotation | Category::PythonFunction => true,
        Category::Runtime | Category::Kernel | Category::DeviceAnnotation | Category::Other => {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Nanos, StringTable};

    fn event(category: Category, thread: u32, start: u64) -> Event {
        let thread = ThreadId::from_raw(thread);
        Event::new(category, StringTable::EMPTY, thread, Nanos(start), Nanos(1))
    }

    #[test]
    fn threads_are_numbered_as_they_begin_to_work() {
        let events = [
            event(Category::Runtime, 2, 0),
            event(Category::Operator, 1, 1),
            event(Category::Kernel, 3, 2),
            event(Category::Operator, 0, 3),
        ];
        let numbers = ThreadNumbers::build(&[true, true, true, false], &events);
        let found = [0, 1, 2, 3].map(|thread| numbers.number(ThreadId::from_raw(thread)));
        assert_eq!(found, [2, 1, 3, 1]);
    }

    #[test]
    fn a_forward_threads_number_leads_back_to_it() {
        let events = [
            event(Category::Operator, 1, 1),
            event(Category::Operator, 0, 3),
        ];
        let numbers = ThreadNumbers::build(&[true, true], &events);
        let threads = [0, 1].map(|thread| ForwardThread::At(ThreadId::from_raw(thread)));
        let forwards = [
            ForwardThread::Unknown,
            ForwardThread::Elsewhere,
            threads[0],
            threads[1],
        ];
        for forward in forwards {
            let number = numbers.forward_number(forward);
            assert_eq!(numbers.forward_thread(number), forward);
            assert_eq!(ForwardThread::from_raw(forward.to_raw()), forward);
        }
    }
}
