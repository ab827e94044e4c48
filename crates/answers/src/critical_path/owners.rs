//! The operator, function of the user's, module and kernel that the time of each event belongs to.

use mindprof_analyze::Analysis;
use mindprof_model::{Category, EventId, Profile, StringId};
use rustc_hash::FxHashMap;

use crate::called::module_class;
use crate::functions::{CallNames, Definitions, is_comprehension};
use crate::own_code::OwnCode;
use crate::step_split::NameKind;
use crate::top_operators::CodePlace;
use crate::work::Work;

/// The number that no owner has.
pub(super) const NONE: u32 = u32::MAX;

/// The kinds of owners, each of which has a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerKind {
    Operator,
    Function,
    Module,
    Kernel,
}

impl OwnerKind {
    pub(super) const ALL: [Self; 4] = [Self::Operator, Self::Function, Self::Module, Self::Kernel];
}

/// The owners of the time of each event.
pub(super) struct Owners {
    /// By kind of owner and event, the number of the owner.
    of_events: [Vec<u32>; OwnerKind::ALL.len()],
    /// By kind of owner and number, the name.
    names: [Vec<OwnerName>; OwnerKind::ALL.len()],
    /// By event, whether the loop gets its next batch.
    is_loading: Vec<bool>,
}

/// The name of an owner, and the place of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnerName {
    pub(super) name: String,
    pub(super) place: Option<CodePlace>,
}

impl Owners {
    /// Finds the owners of all events in time linear in the number of events and stacks.
    pub(super) fn build(analysis: &Analysis, own: &OwnCode) -> Self {
        let profile = analysis.profile();
        let mut names = NameTable::new(profile.strings().len());
        let frames = FrameOwners::build(analysis, own, &mut names);
        let is_batch: Vec<bool> = (profile.strings().iter())
            .map(|name| NameKind::of(name) == NameKind::Batch)
            .collect();
        let count = profile.events().len();
        let mut owners = Self {
            of_events: OwnerKind::ALL.map(|_| Vec::with_capacity(count)),
            names: OwnerKind::ALL.map(|_| Vec::new()),
            is_loading: Vec::with_capacity(count),
        };
        // Parents precede their children.
        for (index, event) in profile.events().iter().enumerate() {
            let id = EventId::from_index(index);
            let parent = analysis.tree().parent(id).map(EventId::index);
            let is_python = event.category == Category::PythonFunction;
            let outer = |owners: &Self, kind: OwnerKind| {
                parent.map_or(NONE, |parent| owners.of(kind, EventId::from_index(parent)))
            };
            let operator = match event.category {
                Category::Operator => names.operator(profile, event.name),
                _ => outer(&owners, OwnerKind::Operator),
            };
            let kernel = match event.category {
                Category::Kernel => names.kernel(profile, event.name),
                _ => NONE,
            };
            let (function, module) = frames.of(analysis, id, is_python.then_some(event.name));
            let found = [operator, function, module, kernel];
            for (owners, found) in owners.of_events.iter_mut().zip(found) {
                owners.push(found);
            }
            let is_around = parent.is_some_and(|parent| owners.is_loading[parent]);
            owners
                .is_loading
                .push(is_around || is_batch[event.name.index()]);
        }
        owners.follow_launches(analysis);
        owners.names = names.names;
        owners
    }

    /// Returns the number of the owner of an event.
    pub(super) fn of(&self, kind: OwnerKind, event: EventId) -> u32 {
        self.of_events[kind as usize][event.index()]
    }

    pub(super) fn name(&self, kind: OwnerKind, owner: u32) -> &OwnerName {
        &self.names[kind as usize][owner as usize]
    }

    /// Returns the number of events.
    pub(super) fn events(&self) -> usize {
        self.is_loading.len()
    }

    /// Returns the number of owners of a kind.
    pub(super) fn count(&self, kind: OwnerKind) -> usize {
        self.names[kind as usize].len()
    }

    pub(super) fn is_loading(&self, event: EventId) -> bool {
        self.is_loading[event.index()]
    }

    /// Gives device work to the owners of the operator that launched it, which may come later in
    /// the list of events.
    fn follow_launches(&mut self, analysis: &Analysis) {
        let profile = analysis.profile();
        for (index, event) in profile.events().iter().enumerate() {
            let id = EventId::from_index(index);
            if event.category != Category::Kernel {
                continue;
            }
            let correlation = analysis.correlation();
            let launch = correlation.owner(id);
            let Some(launch) = launch.or_else(|| correlation.launch(profile, id)) else {
                continue;
            };
            for kind in [OwnerKind::Operator, OwnerKind::Function, OwnerKind::Module] {
                let owners = &mut self.of_events[kind as usize];
                owners[index] = owners[launch.index()];
            }
        }
    }
}

/// The function of the user's and the module of each stack and of each Python call.
struct FrameOwners {
    by_stack: Vec<(u32, u32)>,
    by_name: Vec<(u32, u32)>,
    is_comprehension: Vec<bool>,
}

impl FrameOwners {
    fn build(analysis: &Analysis, own: &OwnCode, names: &mut NameTable) -> Self {
        let profile = analysis.profile();
        let calls = CallNames::build(analysis, &Work::of(analysis));
        let definitions = Definitions::build(profile, own, &calls);
        let strings = profile.strings();
        let mut by_name = vec![(NONE, NONE); strings.len()];
        let mut comprehensions = vec![false; strings.len()];
        for (index, text) in strings.iter().enumerate() {
            let id = StringId::from_index(index);
            if let Some(place) = definitions.place(id) {
                let (function, definition) = definitions.function(&place);
                let place = CodePlace {
                    file: place.file.into(),
                    line: definition.unwrap_or(place.line),
                    function: function.into(),
                };
                comprehensions[index] = is_comprehension(&place.function);
                by_name[index].0 = names.function(place, definition);
            }
            if let Some(class) = module_class(text) {
                by_name[index].1 = names.module(class);
            }
        }
        let mut by_stack = vec![(NONE, NONE)];
        for (caller, frame) in profile.stacks().nodes() {
            let outer = by_stack[caller.index()];
            let is_part = comprehensions[frame.index()];
            by_stack.push(inner(outer, by_name[frame.index()], is_part));
        }
        Self {
            by_stack,
            by_name,
            is_comprehension: comprehensions,
        }
    }

    /// Returns the function and the module of an event. A Python call of that name belongs to
    /// itself.
    fn of(&self, analysis: &Analysis, id: EventId, call: Option<StringId>) -> (u32, u32) {
        let outer = self.by_stack[analysis.charged_stack(id).index()];
        let Some(call) = call else {
            return outer;
        };
        let is_part = self.is_comprehension[call.index()];
        inner(outer, self.by_name[call.index()], is_part)
    }
}

/// Returns the owners inside of a frame. A comprehension is part of the function that it is in.
const fn inner(outer: (u32, u32), frame: (u32, u32), is_part: bool) -> (u32, u32) {
    let function = if frame.0 == NONE || (is_part && outer.0 != NONE) {
        outer.0
    } else {
        frame.0
    };
    let module = if frame.1 == NONE { outer.1 } else { frame.1 };
    (function, module)
}

/// The names of owners while they are numbered.
struct NameTable {
    /// By string, the number of the operator and of the kernel.
    by_string: [Vec<u32>; 2],
    functions: FxHashMap<(String, String, Option<u32>), u32>,
    modules: FxHashMap<String, u32>,
    names: [Vec<OwnerName>; OwnerKind::ALL.len()],
}

impl NameTable {
    fn new(strings: usize) -> Self {
        Self {
            by_string: [vec![NONE; strings], vec![NONE; strings]],
            functions: FxHashMap::default(),
            modules: FxHashMap::default(),
            names: OwnerKind::ALL.map(|_| Vec::new()),
        }
    }

    fn add(&mut self, kind: OwnerKind, name: &str, place: Option<CodePlace>) -> u32 {
        let names = &mut self.names[kind as usize];
        names.push(OwnerName {
            name: name.into(),
            place,
        });
        names.len() as u32 - 1
    }

    fn operator(&mut self, profile: &Profile, name: StringId) -> u32 {
        self.of_string(OwnerKind::Operator, 0, profile, name)
    }

    fn kernel(&mut self, profile: &Profile, name: StringId) -> u32 {
        self.of_string(OwnerKind::Kernel, 1, profile, name)
    }

    fn of_string(
        &mut self,
        kind: OwnerKind,
        list: usize,
        profile: &Profile,
        name: StringId,
    ) -> u32 {
        let known = self.by_string[list][name.index()];
        if known != NONE {
            return known;
        }
        let number = self.add(kind, profile.strings().text(name), None);
        self.by_string[list][name.index()] = number;
        number
    }

    /// Returns the number of a function. The lines of its calls do not matter, but the line of its
    /// definition does: a file may define several functions of one name.
    fn function(&mut self, place: CodePlace, definition: Option<u32>) -> u32 {
        let key = (place.file.clone(), place.function.clone(), definition);
        if let Some(&known) = self.functions.get(&key) {
            return known;
        }
        let name = place.function.clone();
        let number = self.add(OwnerKind::Function, &name, Some(place));
        self.functions.insert(key, number);
        number
    }

    fn module(&mut self, class: &str) -> u32 {
        if let Some(&known) = self.modules.get(class) {
            return known;
        }
        let number = self.add(OwnerKind::Module, class, None);
        self.modules.insert(class.into(), number);
        number
    }
}
