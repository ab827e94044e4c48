//! The tree of everything that a process recorded: operators, ranges, Python calls, allocations
//! and frees, as torch's `experimental_event_tree` shows it.
//!
//! Unlike [`crate::Tree`], it has a node for each memory record, merges no duplicates, and lets a
//! backward node of another thread lie inside the forward thread's open event.

use mindprof_model::{
    DeviceKind, Event, EventId, Flags, ForwardThread, MemoryRecord, Nanos, Profile, ThreadId,
};

use crate::analysis::Item;

const NONE: u32 = u32::MAX;

/// The tree of the events and memory records of one process, which callers build when they need it.
/// Nodes are numbered in time order.
#[derive(Clone, Debug, Default)]
pub struct CallTree {
    items: Vec<Item>,
    parents: Vec<u32>,
    /// The position in `children` of each node's first child, with one more entry at the end.
    begins: Vec<u32>,
    children: Vec<u32>,
}

impl CallTree {
    /// Builds the tree of a process in time linear in the number of events.
    ///
    /// The parent of a node is the innermost event of its thread that is open when the node starts,
    /// even if it ends before the node does. The end of an event also ends everything inside it, so
    /// a range that was never left lasts as long as the event around it:
    ///
    /// ```text
    /// a    |--------------|              root
    /// b      |------------------- …      in a, unfinished
    /// c         |--|                     in b
    /// d                     |--|         root: the end of a has ended b
    /// ```
    pub fn build(profile: &Profile, process: u64) -> Self {
        let mut builder = Builder {
            profile,
            tree: Self::default(),
            open: vec![Vec::new(); profile.threads().len()],
        };
        let is_ours = |thread: ThreadId| {
            let thread = &profile.threads()[thread.index()];
            thread.device == DeviceKind::Cpu && thread.process == process
        };
        let records = profile.memory().iter().enumerate();
        let mut records = records
            .filter(|(_, record)| is_ours(record.thread))
            .peekable();
        for (index, event) in profile.events().iter().enumerate() {
            if event.flags.contains(Flags::HIDDEN) || !is_ours(event.thread) {
                continue;
            }
            while let Some((index, record)) = records.next_if(|(_, it)| it.time < event.start) {
                builder.memory(index, &record);
            }
            builder.event(EventId::from_index(index), event);
        }
        for (index, record) in records {
            builder.memory(index, &record);
        }
        builder.tree.index_children();
        builder.tree
    }

    /// Returns the number of nodes.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether there are no nodes.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the event or memory record of a node.
    ///
    /// # Panics
    /// If there are fewer nodes.
    pub fn item(&self, node: usize) -> Item {
        self.items[node]
    }

    /// Returns the node around a node, or `None` for a root.
    ///
    /// # Panics
    /// If there are fewer nodes.
    pub fn parent(&self, node: usize) -> Option<usize> {
        let parent = self.parents[node];
        (parent != NONE).then_some(parent as usize)
    }

    /// Returns the nodes directly inside a node, in time order.
    ///
    /// # Panics
    /// If there are fewer nodes.
    pub fn children(&self, node: usize) -> &[u32] {
        let [begin, end] = [node, node + 1].map(|at| self.begins[at] as usize);
        &self.children[begin..end]
    }

    /// Iterates over the nodes without a parent, in time order.
    pub fn roots(&self) -> impl Iterator<Item = usize> {
        (0..self.len()).filter(|&node| self.parents[node] == NONE)
    }

    fn index_children(&mut self) {
        let mut begins = vec![0_u32; self.len() + 1];
        for &parent in self.parents.iter().filter(|&&parent| parent != NONE) {
            begins[parent as usize + 1] += 1;
        }
        for node in 0..self.len() {
            begins[node + 1] += begins[node];
        }
        let mut next = begins.clone();
        self.children = vec![0; begins[self.len()] as usize];
        for (node, &parent) in (0..).zip(&self.parents) {
            if parent != NONE {
                let place = &mut next[parent as usize];
                self.children[*place as usize] = node;
                *place += 1;
            }
        }
        self.begins = begins;
    }
}

struct Builder<'a> {
    profile: &'a Profile,
    tree: CallTree,
    /// By thread, the events that are open at the current time, outermost first.
    open: Vec<Vec<Open>>,
}

#[derive(Clone, Copy)]
struct Open {
    node: u32,
    /// The time at which it or an event around it ends.
    end: Nanos,
}

impl Builder<'_> {
    fn event(&mut self, id: EventId, event: &Event) {
        let around = self.innermost(event.thread, event.start);
        let around = around.or_else(|| self.innermost_forward(id, event.start));
        let node = self.push(Item::Event(id), around);
        let is_unfinished = event.flags.contains(Flags::UNFINISHED);
        if event.duration == Nanos::ZERO && !is_unfinished {
            return;
        }
        let open = &mut self.open[event.thread.index()];
        let end = if is_unfinished {
            Nanos(u64::MAX)
        } else {
            event.end()
        };
        let outer_end = open.last().map_or(Nanos(u64::MAX), |outer| outer.end);
        open.push(Open {
            node,
            end: end.min(outer_end),
        });
    }

    fn memory(&mut self, index: usize, record: &MemoryRecord) {
        let around = self.innermost(record.thread, record.time);
        self.push(Item::Memory(index as u32), around);
    }

    fn push(&mut self, item: Item, around: Option<u32>) -> u32 {
        self.tree.items.push(item);
        self.tree.parents.push(around.unwrap_or(NONE));
        self.tree.items.len() as u32 - 1
    }

    /// Returns the innermost open event of a thread, after closing those that have ended.
    fn innermost(&mut self, thread: ThreadId, time: Nanos) -> Option<u32> {
        let open = &mut self.open[thread.index()];
        while open.pop_if(|event| event.end <= time).is_some() {}
        open.last().map(|event| event.node)
    }

    /// Returns the innermost open event of the thread that ran a backward node's forward operator.
    fn innermost_forward(&mut self, id: EventId, time: Nanos) -> Option<u32> {
        match self.profile.links(id)?.forward_thread() {
            ForwardThread::At(thread) => self.innermost(thread, time),
            ForwardThread::Unknown | ForwardThread::Elsewhere => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::{Category, Part, StackId, StringTable, Thread};

    use super::*;

    fn thread(part: &mut Part) -> ThreadId {
        part.add_thread(Thread {
            process: 1,
            native: 1,
            name: StringTable::EMPTY,
            device: DeviceKind::Cpu,
        })
    }

    fn event(part: &mut Part, name: &str, thread: ThreadId, (start, end): (u64, u64)) -> Event {
        let name = part.strings.intern(name);
        Event::new(
            Category::Operator,
            name,
            thread,
            Nanos(start),
            Nanos(end - start),
        )
    }

    fn memory(thread: ThreadId, time: u64) -> MemoryRecord {
        MemoryRecord {
            time: Nanos(time),
            address: 16,
            bytes: 8,
            total_allocated: 8,
            total_reserved: 0,
            thread,
            stack: StackId::NONE,
            device: DeviceKind::Cpu,
            device_index: -1,
        }
    }

    fn draw(part: Part) -> Vec<String> {
        let profile = part.into_profile().unwrap();
        let tree = CallTree::build(&profile, 1);
        let mut lines = Vec::new();
        let mut left: Vec<(usize, usize)> = tree.roots().map(|node| (node, 0)).collect();
        left.reverse();
        while let Some((node, depth)) = left.pop() {
            let name = match tree.item(node) {
                Item::Event(id) => profile.name(profile.event(id)),
                Item::Memory(_) => "memory",
            };
            lines.push(format!("{}{name}", ". ".repeat(depth)));
            let inside = tree.children(node).iter().rev();
            left.extend(inside.map(|&child| (child as usize, depth + 1)));
        }
        lines
    }

    // mul    |---------------|        0..50
    // mul      |-----------|          5..40
    // memory      x      x     x      10, 30, 60
    // neg            |-|              20..25
    #[test]
    fn an_operator_around_its_like_keeps_it_and_its_memory() {
        let mut part = Part::new();
        let main = thread(&mut part);
        for (name, times) in [("mul", (0, 50)), ("mul", (5, 40)), ("neg", (20, 25))] {
            let event = event(&mut part, name, main, times);
            part.add_event(event);
        }
        for time in [10, 30, 60] {
            part.add_memory(memory(main, time));
        }
        let expected = [
            "mul",
            ". mul",
            ". . memory",
            ". . neg",
            ". . memory",
            "memory",
        ];
        assert_eq!(draw(part), expected);
    }

    // outer  |---------------|             0..50
    // left     |-------------------------  10.., unfinished
    // inner       |--|                     20..30
    // next                      |--|       60..70
    #[test]
    fn a_range_that_was_never_left_ends_with_the_one_around_it() {
        let mut part = Part::new();
        let main = thread(&mut part);
        for (name, times) in [
            ("outer", (0, 50)),
            ("left", (10, 100)),
            ("inner", (20, 30)),
            ("next", (60, 70)),
        ] {
            let mut event = event(&mut part, name, main, times);
            if name == "left" {
                event.flags = Flags::UNFINISHED;
            }
            part.add_event(event);
        }
        assert_eq!(draw(part), ["outer", ". left", ". . inner", "next"]);
    }
}
