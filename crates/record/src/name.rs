//! Names: each distinct text is interned once and travels as a small number from then on.
//!
//! A static [`Site`] holds its number after first sight, and a text of the program's own is looked
//! up by [`Name::intern`]: these names stay for the life of the process. A text that the user makes
//! is a name of the recording: charged to its budget, and freed when the last [`NameLease`] on the
//! recording is dropped, that of its last capture.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use mindprof_model::{Category, ScopeKind};
use rustc_hash::FxHashMap;

use crate::budget;

/// The bounds on names of functions and modules that stay. Scopes named beyond them are counted as
/// lost.
const MOST_NAMES: usize = 1 << 20;
const MOST_BYTES: usize = 64 << 20;

/// Names that one thread remembers without asking the table, and the longest of them.
const MOST_REMEMBERED: usize = 4096;
const LONGEST_REMEMBERED: usize = 256;

/// What a name of a recording takes beside its text: its entries in the table and in the index.
const ENTRY_BYTES: usize = 96;

/// What kind of scope a name belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameKind {
    /// An operator of the host.
    Operator,
    /// A node of the host's backward graph.
    Backward,
    /// A range that the user named.
    Annotation,
    /// A function of the host's language.
    Function,
    /// A module of the host: a function too, which is wanted more often than others.
    Module,
}

impl NameKind {
    /// Returns what a profile calls it.
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

/// A name in the recorder's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name(u32);

impl Name {
    /// Stands for names that the table refused.
    const REFUSED: Self = Self(u32::MAX >> 1);

    /// Returns the name of `text`, adding it to the table at first sight, where it stays: for texts
    /// that the program has so many of and no more.
    pub fn intern(text: &str, kind: NameKind) -> Self {
        Self::find(text, kind, 0)
    }

    /// Returns the name of `text` in recording `epoch`, for texts that there may be any number of.
    pub(crate) fn of_recording(text: &str, kind: NameKind, epoch: u32) -> Self {
        Self::find(text, kind, epoch)
    }

    /// Finds a name of a recording, or of the process if `epoch` is zero.
    fn find(text: &str, kind: NameKind, epoch: u32) -> Self {
        thread_local! {
            static MEMO: [RefCell<Memo>; 2] = Default::default();
        }
        // A scope in the destructor of another thread-local finds the memo gone: then the table is
        // asked.
        MEMO.try_with(|memos| {
            let mut memo = memos[usize::from(epoch != 0)].borrow_mut();
            memo.find(text, kind, epoch)
        })
        .unwrap_or_else(|_| table().add(text, kind, epoch))
    }

    /// Returns whether the table refused the name, because it is full.
    pub fn is_refused(self) -> bool {
        self == Self::REFUSED
    }

    /// Returns the number that a record holds.
    pub(crate) const fn raw(self) -> u32 {
        self.0
    }
}

/// The names that one thread remembers: of the process, or of one recording.
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

/// A place in the host's code that opens scopes of one name.
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
    /// Names an operator.
    pub const fn operator(text: &'static str) -> Self {
        Self::new(text, NameKind::Operator)
    }

    /// Names a node of the backward graph.
    pub const fn backward(text: &'static str) -> Self {
        Self::new(text, NameKind::Backward)
    }

    /// Names a range of the user.
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

    /// Returns the name, adding it to the table at first sight.
    #[inline]
    pub fn name(&self) -> Name {
        // Relaxed: whoever comes first finds the same number, and the table has its own lock.
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

/// Keeps the names of a recording. A capture that refers to them holds one.
#[derive(Debug)]
pub(crate) struct NameLease {
    epoch: u32,
}

impl NameLease {
    /// Begins recording `epoch`, whose names live as long as what is returned.
    pub(crate) fn begin(epoch: u32) -> Arc<Self> {
        table().begin_recording(epoch);
        Arc::new(Self { epoch })
    }
}

impl Drop for NameLease {
    fn drop(&mut self) {
        let freed = table().end_recording(self.epoch);
        // Without the lock: there may be many.
        drop(freed);
    }
}

type Entry = (Arc<str>, NameKind);

/// The numbers of texts, by kind.
type Index = [FxHashMap<Arc<str>, u32>; KINDS];

/// All names of the process. Number zero is never given out, so that it can mean "none".
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    /// By number less one; none where a name was freed.
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    /// The names that stay.
    index: Index,
    /// How many of them are bounded, and their bytes.
    bounded: usize,
    bounded_bytes: usize,
    /// The present recording, and its names.
    epoch: u32,
    recording: Index,
    /// The numbers that each recording has, until they are freed.
    leased: FxHashMap<u32, Vec<u32>>,
}

impl NameTable {
    /// Adds a name of recording `epoch`, or one that stays if that is zero.
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
        // What is told of a recording that is over is read by nobody.
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

    /// Gives back the memory behind the last name.
    fn shrink(&mut self) {
        let last = self.entries.iter().rposition(Option::is_some);
        let len = last.map_or(0, |last| last + 1);
        self.entries.truncate(len);
        self.entries.shrink_to(2 * len);
        self.free.retain(|&number| number as usize <= len);
        self.free.shrink_to(2 * len);
    }

    /// Returns the text and the kind of a name, given its number in a record.
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
