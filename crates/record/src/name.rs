//! Names: each distinct text is interned once and is a small number from then on.
//!
//! A static [`Site`] remembers its number after the first use, and [`Name::intern`] looks a text
//! up; both kinds of names live as long as the process. A text that the user makes up becomes a
//! name of the recording: it is charged to the budget and freed with the last [`NameLease`] of the
//! recording, which its last capture holds.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use mindprof_model::{Category, ScopeKind};
use rustc_hash::FxHashMap;

use crate::budget;

/// The limits on process-wide names of functions and modules. Scopes with further names are counted
/// as lost.
const MOST_NAMES: usize = 1 << 20;
const MOST_BYTES: usize = 64 << 20;

/// How many names a thread caches, and the longest text it caches.
const MOST_REMEMBERED: usize = 4096;
const LONGEST_REMEMBERED: usize = 256;

/// The memory that a name of a recording takes beside its text: its entries in the table and the
/// index.
const ENTRY_BYTES: usize = 96;

/// Separates an operator's text from its overload in the table. Names of operators come from C
/// strings, which do not contain it.
const OVERLOAD_SEPARATOR: char = '\0';

/// Splits the text of a name from the table into what profiles show and the overload, which may be
/// empty.
pub(crate) fn split_overload(text: &str, kind: NameKind) -> (&str, &str) {
    let found = text.split_once(OVERLOAD_SEPARATOR);
    match kind {
        NameKind::Operator => found.unwrap_or((text, "")),
        NameKind::Backward | NameKind::Annotation | NameKind::Function | NameKind::Module => {
            (text, "")
        }
    }
}

/// The kind of scope that a name belongs to. It decides the category and the scope kind of the
/// event, and equal texts of different kinds are different names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameKind {
    /// An operator of the framework.
    Operator,
    /// An autograd node of the backward pass.
    Backward,
    /// A range that the user named.
    Annotation,
    /// A function of the program's language.
    Function,
    /// A module call (`torch.nn.Module` and its like). It is a function too, but windows can ask
    /// for modules alone.
    Module,
}

impl NameKind {
    /// Returns the category and the scope kind of such events.
    pub(crate) const fn describe(self) -> (Category, ScopeKind) {
        match self {
            Self::Operator => (Category::Operator, ScopeKind::Function),
            Self::Backward => (Category::Operator, ScopeKind::Backward),
            Self::Annotation => (Category::Annotation, ScopeKind::User),
            Self::Function | Self::Module => (Category::PythonFunction, ScopeKind::Function),
        }
    }
}

const KINDS: usize = 5;

/// The number of a text in the recorder's table of names. Looking a name up once and opening scopes
/// by it keeps hashing and allocation off the hot path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name(u32);

impl Name {
    /// Stands for names that the table refused for lack of room.
    const REFUSED: Self = Self(u32::MAX >> 1);

    /// Returns the name of `text`, adding it to the table if it is new. Such a name lives as long
    /// as the process, so use it only for texts that are bounded in number.
    pub fn intern(text: &str, kind: NameKind) -> Self {
        Self::find(text, kind, 0)
    }

    /// Returns the name of an operator whose schema has several overloads. Profiles show `text`, and
    /// the overload if they are asked to.
    pub fn intern_overload(text: &str, overload: &str) -> Self {
        if overload.is_empty() {
            return Self::intern(text, NameKind::Operator);
        }
        let text = format!("{text}{OVERLOAD_SEPARATOR}{overload}");
        Self::intern(&text, NameKind::Operator)
    }

    /// Returns the name of `text` in recording `epoch`, for texts that may be unbounded in number.
    pub(crate) fn of_recording(text: &str, kind: NameKind, epoch: u32) -> Self {
        Self::find(text, kind, epoch)
    }

    /// Returns a name of recording `epoch`, or a process-wide one if `epoch` is zero.
    fn find(text: &str, kind: NameKind, epoch: u32) -> Self {
        thread_local! {
            static MEMO: [RefCell<Memo>; 2] = Default::default();
        }
        // A scope in the destructor of another thread-local may find the cache gone; ask the table
        // then.
        MEMO.try_with(|memos| {
            let mut memo = memos[usize::from(epoch != 0)].borrow_mut();
            memo.find(text, kind, epoch)
        })
        .unwrap_or_else(|_| table().add(text, kind, epoch))
    }

    /// Returns whether the table refused the name because it is full.
    pub fn is_refused(self) -> bool {
        self == Self::REFUSED
    }

    /// Returns the number that a record holds.
    pub(crate) const fn raw(self) -> u32 {
        self.0
    }
}

/// The names that one thread caches, either process-wide ones or those of one recording.
#[derive(Default)]
struct Memo {
    epoch: u32,
    names: FxHashMap<Box<str>, [Option<Name>; KINDS]>,
}

impl Memo {
    fn find(&mut self, text: &str, kind: NameKind, epoch: u32) -> Name {
        if self.epoch != epoch || self.names.len() == MOST_REMEMBERED {
            self.names.clear();
            self.epoch = epoch;
        }
        if let Some(name) = self.names.get(text).and_then(|kinds| kinds[kind as usize]) {
            return name;
        }
        let name = table().add(text, kind, epoch);
        if text.len() <= LONGEST_REMEMBERED && !name.is_refused() {
            self.names.entry(text.into()).or_default()[kind as usize] = Some(name);
        }
        name
    }
}

/// A place in the code that opens scopes under one fixed name. It is meant to be a `static`: it
/// looks its name up once and then opens scopes without touching the table.
///
/// ```
/// use mindprof_record::{Site, scope};
///
/// static ADD: Site = Site::operator("aten::add");
/// let _scope = scope(&ADD);
/// ```
#[derive(Debug)]
pub struct Site {
    text: &'static str,
    kind: NameKind,
    number: AtomicU32,
}

impl Site {
    /// Creates a site for an operator.
    pub const fn operator(text: &'static str) -> Self {
        Self::new(text, NameKind::Operator)
    }

    /// Creates a site for an autograd node.
    pub const fn backward(text: &'static str) -> Self {
        Self::new(text, NameKind::Backward)
    }

    /// Creates a site for a range that the user named.
    pub const fn annotation(text: &'static str) -> Self {
        Self::new(text, NameKind::Annotation)
    }

    const fn new(text: &'static str, kind: NameKind) -> Self {
        Self {
            text,
            kind,
            number: AtomicU32::new(0),
        }
    }

    /// Returns the name, adding it to the table at the first call.
    #[inline]
    pub fn name(&self) -> Name {
        // Relaxed: every thread stores the same number, and the table has its own lock.
        match self.number.load(Ordering::Relaxed) {
            0 => self.intern(),
            number => Name(number),
        }
    }

    #[cold]
    fn intern(&self) -> Name {
        let name = table().add(self.text, self.kind, 0);
        self.number.store(name.0, Ordering::Relaxed);
        name
    }
}

/// Keeps the names of a recording alive. Every capture whose records refer to them holds one, and
/// the last drop frees them.
#[derive(Debug)]
pub(crate) struct NameLease {
    epoch: u32,
}

impl NameLease {
    /// Begins recording `epoch`. Its names live as long as the returned lease.
    pub(crate) fn begin(epoch: u32) -> Arc<Self> {
        table().begin_recording(epoch);
        Arc::new(Self { epoch })
    }
}

impl Drop for NameLease {
    fn drop(&mut self) {
        let freed = table().end_recording(self.epoch);
        // Freed after the lock is released: there may be many.
        drop(freed);
    }
}

type Entry = (Arc<str>, NameKind);

/// Maps texts to numbers, by kind.
type Index = [FxHashMap<Arc<str>, u32>; KINDS];

/// All names of the process. Number zero is never given out, so that it can mean "none".
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    /// Indexed by number minus one; `None` if the name was freed.
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    /// The process-wide names.
    index: Index,
    /// How many of them are subject to the limits, and their bytes.
    bounded: usize,
    bounded_bytes: usize,
    /// The current recording and its names.
    epoch: u32,
    recording: Index,
    /// The numbers that each recording holds until they are freed.
    leased: FxHashMap<u32, Vec<u32>>,
}

impl NameTable {
    /// Adds a name of recording `epoch`, or a process-wide one if `epoch` is zero.
    fn add(&mut self, text: &str, kind: NameKind, epoch: u32) -> Name {
        if let Some(&number) = self.index[kind as usize].get(text) {
            return Name(number);
        }
        if epoch == 0 {
            return self.add_for_good(text, kind);
        }
        if let Some(&number) = self.recording[kind as usize].get(text)
            && self.epoch == epoch
        {
            return Name(number);
        }
        let bytes = text.len() + ENTRY_BYTES;
        // Nobody reads the records of a recording that is over.
        if self.epoch != epoch || budget::charge(bytes, bytes) == 0 {
            return Name::REFUSED;
        }
        let (text, number) = self.push(text, kind);
        self.recording[kind as usize].insert(text, number);
        self.leased.entry(epoch).or_default().push(number);
        Name(number)
    }

    fn add_for_good(&mut self, text: &str, kind: NameKind) -> Name {
        if matches!(kind, NameKind::Function | NameKind::Module) {
            if self.bounded == MOST_NAMES || self.bounded_bytes + text.len() > MOST_BYTES {
                return Name::REFUSED;
            }
            self.bounded += 1;
            self.bounded_bytes += text.len();
        }
        let (text, number) = self.push(text, kind);
        self.index[kind as usize].insert(text, number);
        Name(number)
    }

    fn push(&mut self, text: &str, kind: NameKind) -> (Arc<str>, u32) {
        let text: Arc<str> = text.into();
        let entry = Some((Arc::clone(&text), kind));
        let number = if let Some(number) = self.free.pop() {
            self.entries[number as usize - 1] = entry;
            number
        } else {
            self.entries.push(entry);
            self.entries.len() as u32
        };
        (text, number)
    }

    fn begin_recording(&mut self, epoch: u32) {
        self.epoch = epoch;
        self.recording = Index::default();
    }

    /// Frees the names of a recording and returns them.
    fn end_recording(&mut self, epoch: u32) -> (Option<Index>, Vec<Entry>) {
        let is_present = self.epoch == epoch;
        let index = is_present.then(|| std::mem::take(&mut self.recording));
        if is_present {
            self.epoch = 0;
        }
        let numbers = self.leased.remove(&epoch).unwrap_or_default();
        let entry = |number: &u32| self.entries[*number as usize - 1].take();
        let entries = numbers.iter().filter_map(entry).collect();
        self.free.extend(numbers);
        self.shrink();
        (index, entries)
    }

    /// Releases the memory behind the last name.
    fn shrink(&mut self) {
        let last = self.entries.iter().rposition(Option::is_some);
        let len = last.map_or(0, |last| last + 1);
        self.entries.truncate(len);
        self.entries.shrink_to(2 * len);
        self.free.retain(|&number| number as usize <= len);
        self.free.shrink_to(2 * len);
    }

    /// Returns the text and the kind of a name by its number.
    pub(crate) fn get(&self, number: u32) -> Option<(&str, NameKind)> {
        let entry = self.entries.get((number as usize).checked_sub(1)?)?;
        entry.as_ref().map(|(text, kind)| (&**text, *kind))
    }
}

/// Locks the table of names.
pub(crate) fn table() -> std::sync::MutexGuard<'static, NameTable> {
    static TABLE: LazyLock<Mutex<NameTable>> = LazyLock::new(Mutex::default);
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_and_a_text_of_one_kind_share_a_name() {
        static SITE: Site = Site::operator("name::shared");
        assert_eq!(
            SITE.name(),
            Name::intern("name::shared", NameKind::Operator)
        );
        assert_ne!(
            SITE.name(),
            Name::intern("name::shared", NameKind::Annotation)
        );
    }

    #[test]
    fn functions_are_bounded_and_operators_never_refused() {
        let mut table = NameTable::default();
        let known = table.add("known", NameKind::Function, 0);
        let long = "x".repeat(MOST_BYTES);
        assert!(table.add(&long, NameKind::Function, 0).is_refused());
        assert_eq!(table.add("known", NameKind::Function, 0), known);
        assert!(!table.add(&long, NameKind::Operator, 0).is_refused());
        assert_eq!(table.get(1), Some(("known", NameKind::Function)));
        assert_eq!(table.get(0), None);
    }

    #[test]
    fn the_names_of_a_recording_are_freed_with_it() {
        let mut table = NameTable::default();
        budget::set_limit(1_000);
        table.begin_recording(1);
        let first = table.add("first", NameKind::Annotation, 1);
        assert_eq!(table.add("first", NameKind::Annotation, 1), first);
        table.begin_recording(2);
        let second = table.add("first", NameKind::Annotation, 2);
        assert_ne!(second, first, "a capture may still refer to the first");
        assert!(table.add("late", NameKind::Annotation, 1).is_refused());
        table.end_recording(1);
        assert_eq!(table.get(first.raw()), None);
        assert_eq!(table.add("second", NameKind::Annotation, 2), first);
        assert_eq!(
            table.get(second.raw()),
            Some(("first", NameKind::Annotation))
        );
        table.end_recording(2);
        assert!(table.entries.is_empty() && table.free.is_empty());
    }

    #[test]
    fn long_texts_are_not_remembered() {
        let mut memo = Memo::default();
        for length in [LONGEST_REMEMBERED, LONGEST_REMEMBERED + 1] {
            memo.find(&"y".repeat(length), NameKind::Annotation, 0);
        }
        assert_eq!(memo.names.len(), 1);
    }
}
