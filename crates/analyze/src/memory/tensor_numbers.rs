//! Numbers for tensors and their storages, as torch's event tree shows them.
//!
//! Addresses are reused, so they identify nothing over time. A storage gets a new number each time
//! its address is allocated anew; a tensor keeps its number when it changes its storage.

use mindprof_model::{Nanos, Profile, TensorIdentity};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::Item;
use crate::tree::call_tree::CallTree;

/// torch's number for the CPU among the kinds of devices.
const CPU: u8 = 0;

/// torch's number for the device of tensors without data.
const META: u8 = 14;

/// The operators that give a tensor another storage, which may be any.
const REPLACING: [&str; 2] = ["aten::set_", "aten::set_data"];

/// The operators that give a tensor another storage if they allocate one.
const RESIZING: [&str; 3] = ["aten::resize_", "aten::resize_as_", "aten::_resize_output_"];

/// A tensor as it was seen: the object and the address of its storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenTensor {
    /// The object.
    pub identity: TensorIdentity,
    /// The address of its storage; zero if it has none in CPU memory.
    pub storage: u64,
}

impl SeenTensor {
    /// Returns whether the address of the storage is known. Those of other devices are not
    /// recorded.
    pub fn has_known_storage(&self) -> bool {
        matches!(self.identity.device(), CPU | META)
    }
}

/// The numbers of one tensor, or of one memory record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TensorNumbers {
    /// The number of the storage, counted from one; `None` if its address was not recorded.
    pub storage: Option<u32>,
    /// The number of the tensor, counted from zero; `None` for memory in which no tensor was seen.
    pub tensor: Option<u32>,
}

/// The tensor numbers of all nodes of a [`CallTree`], which callers build along with the tree.
#[derive(Clone, Debug, Default)]
pub struct NodeTensors {
    /// The position in `numbers` of each node's first tensor, with one more entry at the end.
    begins: Vec<u32>,
    numbers: Vec<TensorNumbers>,
}

impl NodeTensors {
    /// Numbers the tensors that operators were given, the blocks of memory records, and the tensors
    /// that modules and optimizers held: those of each node that `held` returns.
    ///
    /// A tensor that is seen with another storage is the same one if the operator that saw it last
    /// replaces storages, or resizes and has allocated that storage. Otherwise its object was freed,
    /// and a new tensor has the address.
    pub fn build<'a>(
        profile: &Profile,
        tree: &CallTree,
        held: impl Fn(usize) -> &'a [SeenTensor],
    ) -> Self {
        let mut sightings = Sightings::build(profile, tree, held);
        sightings.number_storages();
        sightings.number_tensors();
        let numbers = sightings.list.iter().map(|sighting| sighting.numbers);
        Self {
            numbers: numbers.collect(),
            begins: sightings.begins,
        }
    }

    /// Returns the numbers of a node: one pair per tensor of an operator's inputs, in their order,
    /// or one for a memory record. Empty if tensors were not recorded.
    ///
    /// # Panics
    /// If there are fewer nodes.
    pub fn of(&self, node: usize) -> &[TensorNumbers] {
        let [begin, end] = [node, node + 1].map(|at| self.begins[at] as usize);
        &self.numbers[begin..end]
    }
}

/// Everything that is numbered, in time order.
#[derive(Default)]
struct Sightings {
    list: Vec<Sighting>,
    begins: Vec<u32>,
}

struct Sighting {
    /// The address of the tensor's object; zero for a memory record.
    object: u64,
    /// The address and the device of the storage.
    storage: (u64, u8),
    kind: Kind,
    numbers: TensorNumbers,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An input of an operator, or a tensor that a module or an optimizer held.
    Tensor(Fate),
    /// An allocation at a time.
    Allocation(Nanos),
    Free,
    /// A tensor whose storage is unknown.
    Unknown,
}

/// The fate of a tensor's storage in an operator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    /// Any storage may replace it.
    Replaced,
    /// A storage that is allocated in the operator, which lasts from and until these times, may
    /// replace it.
    Resized(Nanos, Nanos),
}

impl Sightings {
    fn build<'a>(
        profile: &Profile,
        tree: &CallTree,
        held: impl Fn(usize) -> &'a [SeenTensor],
    ) -> Self {
        let names = profile.strings().iter();
        let is_in = |name| (REPLACING.contains(&name), RESIZING.contains(&name));
        let by_name: Vec<(bool, bool)> = names.map(is_in).collect();
        let mut sightings = Self::default();
        for node in 0..tree.len() {
            sightings.begins.push(sightings.list.len() as u32);
            match tree.item(node) {
                Item::Memory(record) => {
                    let record = profile.memory().at(record as usize);
                    sightings.list.push(Sighting {
                        object: 0,
                        storage: (record.address, CPU),
                        kind: if record.bytes < 0 {
                            Kind::Free
                        } else {
                            Kind::Allocation(record.time)
                        },
                        numbers: TensorNumbers::default(),
                    });
                }
                Item::Event(id) => {
                    let event = profile.event(id);
                    let fate = match by_name[event.name.index()] {
                        (true, _) => Fate::Replaced,
                        (_, true) => Fate::Resized(event.start, event.end()),
                        _ => Fate::Kept,
                    };
                    let storages = profile.storages().of(id.index());
                    let identities = profile.storages().identities(id.index());
                    let seen = identities
                        .zip(storages)
                        .map(|(identity, &storage)| SeenTensor { identity, storage });
                    for tensor in seen.chain(held(node).iter().copied()) {
                        sightings.add(tensor, fate);
                    }
                }
            }
        }
        sightings.begins.push(sightings.list.len() as u32);
        sightings
    }

    fn add(&mut self, tensor: SeenTensor, fate: Fate) {
        self.list.push(Sighting {
            object: tensor.identity.address(),
            storage: (tensor.storage, tensor.identity.device()),
            kind: if tensor.has_known_storage() {
                Kind::Tensor(fate)
            } else {
                Kind::Unknown
            },
            numbers: TensorNumbers::default(),
        });
    }

    /// Numbers the storages: an address denotes another one after each allocation and free.
    fn number_storages(&mut self) {
        let mut last = 0;
        let mut live: FxHashMap<(u64, u8), u32> = FxHashMap::default();
        for sighting in &mut self.list {
            if sighting.kind == Kind::Unknown {
                continue;
            }
            if matches!(sighting.kind, Kind::Allocation(_)) {
                live.remove(&sighting.storage);
            }
            let number = *live.entry(sighting.storage).or_insert_with(|| {
                last += 1;
                last
            });
            if sighting.kind == Kind::Free {
                live.remove(&sighting.storage);
            }
            sighting.numbers.storage = Some(number);
        }
    }

    /// Numbers the tensors: groups of storages that tensors share or had one after another.
    fn number_tensors(&mut self) {
        let mut pairs: Vec<(u32, u32)> = self.shared_storages().into_iter().collect();
        pairs.sort_unstable();
        let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
        let mut next = 0;
        for (first, other) in pairs {
            let number = *numbers.entry(first).or_insert_with(|| {
                next += 1;
                next - 1
            });
            numbers.entry(other).or_insert(number);
        }
        for sighting in &mut self.list {
            let storage = sighting.numbers.storage;
            sighting.numbers.tensor = storage.and_then(|it| numbers.get(&it).copied());
        }
    }

    /// Returns pairs of storages of the same tensor, the lower number first. A tensor that never
    /// changed its storage has one pair, of that storage with itself.
    fn shared_storages(&self) -> FxHashSet<(u32, u32)> {
        struct Object {
            first: u32,
            last: u32,
            fate: Fate,
        }
        let mut objects: FxHashMap<u64, Object> = FxHashMap::default();
        let mut created: FxHashMap<u32, Nanos> = FxHashMap::default();
        let mut pairs = FxHashSet::default();
        for sighting in &self.list {
            let Some(storage) = sighting.numbers.storage else {
                continue;
            };
            let fate = match sighting.kind {
                Kind::Tensor(fate) => fate,
                Kind::Allocation(time) => {
                    created.insert(storage, time);
                    continue;
                }
                Kind::Free | Kind::Unknown => continue,
            };
            let fresh = Object {
                first: storage,
                last: storage,
                fate,
            };
            let object = objects.entry(sighting.object).or_insert(fresh);
            let is_same = match object.fate {
                _ if object.last == storage => true,
                Fate::Kept => false,
                Fate::Replaced => true,
                Fate::Resized(begin, end) => {
                    let time = created.get(&storage);
                    time.is_some_and(|&time| begin <= time && time <= end)
                }
            };
            if !is_same {
                object.first = storage;
            }
            object.last = storage;
            object.fate = fate;
            pairs.insert((object.first.min(storage), object.first.max(storage)));
        }
        pairs
    }
}

#[cfg(test)]
mod tests {
    use mindprof_model::{
        Category, DeviceKind, Event, MemoryRecord, Part, StackId, StringTable, Thread, ThreadId,
    };

    use super::*;

    /// Records operators and memory one after another.
    struct Recorder {
        part: Part,
        thread: ThreadId,
        time: u64,
    }

    impl Recorder {
        fn new() -> Self {
            let mut part = Part::new();
            let thread = part.add_thread(Thread {
                process: 1,
                native: 1,
                name: StringTable::EMPTY,
                device: DeviceKind::Cpu,
            });
            Self {
                part,
                thread,
                time: 0,
            }
        }

        fn operator(self, name: &str, tensors: &[(u64, u64)]) -> Self {
            self.lasting(name, tensors, 5)
        }

        /// Records an operator that contains the next record.
        fn lasting_operator(self, name: &str, tensors: &[(u64, u64)]) -> Self {
            self.lasting(name, tensors, 15)
        }

        fn lasting(mut self, name: &str, tensors: &[(u64, u64)], duration: u64) -> Self {
            let name = self.part.strings.intern(name);
            let mut words: Vec<u64> = tensors.iter().map(|(_, storage)| *storage).collect();
            words.push(u64::MAX);
            let identities = tensors.iter().map(|(object, _)| object);
            words.extend(identities.map(|&object| TensorIdentity::new(object, CPU, 0).to_word()));
            self.time += 10;
            let start = Nanos(self.time);
            let duration = Nanos(duration);
            let event = Event::new(Category::Operator, name, self.thread, start, duration);
            self.part.set_storages(self.part.len(), &words);
            self.part.add_event(event);
            self
        }

        fn memory(mut self, address: u64, bytes: i64) -> Self {
            self.time += 10;
            self.part.add_memory(MemoryRecord {
                time: Nanos(self.time),
                address,
                bytes,
                total_allocated: 0,
                total_reserved: 0,
                thread: self.thread,
                stack: StackId::NONE,
                device: DeviceKind::Cpu,
                device_index: -1,
            });
            self
        }

        /// Returns the storage and the tensor of everything recorded.
        fn numbers(self) -> Vec<(Option<u32>, Option<u32>)> {
            let profile = self.part.into_profile().unwrap();
            let tree = CallTree::build(&profile, 1);
            let tensors = NodeTensors::build(&profile, &tree, |_| &[]);
            let nodes = (0..tree.len()).flat_map(|node| tensors.of(node));
            nodes
                .map(|numbers| (numbers.storage, numbers.tensor))
                .collect()
        }
    }

    #[test]
    fn an_address_that_is_allocated_again_is_another_storage() {
        let recorder = Recorder::new()
            .memory(64, 8)
            .operator("aten::neg", &[(1, 64)])
            .memory(64, -8)
            .memory(64, 8)
            .operator("aten::neg", &[(1, 64)]);
        let (first, second) = ((Some(1), Some(0)), (Some(2), Some(1)));
        assert_eq!(recorder.numbers(), [first, first, first, second, second]);
    }

    #[test]
    fn a_resized_tensor_keeps_its_number() {
        let recorder = Recorder::new()
            .operator("aten::neg", &[(1, 64)])
            .lasting_operator("aten::resize_", &[(1, 64)])
            .memory(96, 8)
            .operator("aten::neg", &[(1, 96)]);
        let expected = [(1, 0), (1, 0), (2, 0), (2, 0)].map(|(a, b)| (Some(a), Some(b)));
        assert_eq!(recorder.numbers(), expected);
    }

    #[test]
    fn a_tensor_after_a_resize_that_allocated_nothing_is_another_one() {
        let recorder = Recorder::new()
            .lasting_operator("aten::resize_", &[(1, 64)])
            .operator("aten::neg", &[(1, 96)]);
        let expected = [(1, 0), (2, 1)].map(|(a, b)| (Some(a), Some(b)));
        assert_eq!(recorder.numbers(), expected);
    }

    #[test]
    fn a_tensor_that_is_set_keeps_its_number_with_any_storage() {
        let recorder = Recorder::new()
            .operator("aten::set_", &[(1, 64)])
            .operator("aten::neg", &[(1, 96)]);
        let expected = [(1, 0), (2, 0)].map(|(a, b)| (Some(a), Some(b)));
        assert_eq!(recorder.numbers(), expected);
    }

    #[test]
    fn memory_without_a_tensor_has_no_tensor_number() {
        let recorder = Recorder::new().memory(64, 8).memory(64, -8);
        assert_eq!(recorder.numbers(), [(Some(1), None), (Some(1), None)]);
    }

    #[test]
    fn a_view_shares_the_number_of_its_base() {
        let recorder = Recorder::new().operator("aten::add", &[(1, 64), (2, 64), (3, 96)]);
        let expected = [(1, 0), (1, 0), (2, 1)].map(|(a, b)| (Some(a), Some(b)));
        assert_eq!(recorder.numbers(), expected);
    }
}
