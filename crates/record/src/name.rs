//! Names: each distinct one is put into a process-wide table once and travels as a small number
//! from then on.
//!
//! A static [`Site`] holds its number after first sight; a name made at run time is looked up by
//! [`Name::intern`]. The table only grows, up to a bound that keeps a program that makes names
//! without end from filling the memory.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

use mindprof_model::{Category, ScopeKind};
use rustc_hash::FxHashMap;

/// The table's bounds. Scopes named beyond them are counted as lost.
const MOST_NAMES: usize = 1 << 20;
const MOST_BYTES: usize = 64 << 20;

/// Names that one thread remembers without asking the table.
const MOST_REMEMBERED: usize = 4096;

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

/// A name in the recorder's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name(u32);

impl Name {
    /// Stands for names that the full table refused.
    const REFUSED: Self = Self(u32::MAX >> 1);

    /// Returns the name of `text`, adding it to the table at first sight.
    pub fn intern(text: &str, kind: NameKind) -> Self {
        thread_local! {
            static REMEMBERED: RefCell<FxHashMap<Box<str>, [Option<Name>; 5]>> = RefCell::default();
        }
        let find = |names: &RefCell<FxHashMap<Box<str>, [Option<Self>; 5]>>| {
            let mut names = names.borrow_mut();
            if let Some(name) = names.get(text).and_then(|kinds| kinds[kind as usize]) {
                return name;
            }
            if names.len() == MOST_REMEMBERED {
                names.clear();
            }
            let name = table().add(text, kind);
            names.entry(text.into()).or_default()[kind as usize] = Some(name);
            name
        };
        // A scope in the destructor of another thread-local finds the memory gone: then the table
        // is asked.
        REMEMBERED
            .try_with(find)
            .unwrap_or_else(|_| table().add(text, kind))
    }

    /// Returns whether the full table refused the name.
    pub(crate) fn is_refused(self) -> bool {
        self == Self::REFUSED
    }

    /// Returns the number that a record holds.
    pub(crate) const fn raw(self) -> u32 {
        self.0
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
        let name = table().add(self.text, self.kind);
        self.number.store(name.0, Ordering::Relaxed);
        name
    }
}

/// All names of the process. Number zero is never given out, so that it can mean "none".
#[derive(Debug, Default)]
pub(crate) struct NameTable {
    names: Vec<(Box<str>, NameKind)>,
    numbers: FxHashMap<(Box<str>, NameKind), u32>,
    bytes: usize,
}

impl NameTable {
    fn add(&mut self, text: &str, kind: NameKind) -> Name {
        let key = (Box::from(text), kind);
        if let Some(&number) = self.numbers.get(&key) {
            return Name(number);
        }
        if self.names.len() == MOST_NAMES || self.bytes + text.len() > MOST_BYTES {
            return Name::REFUSED;
        }
        self.names.push(key.clone());
        self.bytes += text.len();
        let number = self.names.len() as u32;
        self.numbers.insert(key, number);
        Name(number)
    }

    /// Returns the text and the kind of a name, given its number in a record.
    pub(crate) fn get(&self, number: u32) -> Option<(&str, NameKind)> {
        let (text, kind) = self.names.get((number as usize).checked_sub(1)?)?;
        Some((text, *kind))
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
    fn a_full_table_refuses_new_names_and_keeps_the_known() {
        let mut table = NameTable::default();
        let known = table.add("known", NameKind::Operator);
        let long = "x".repeat(MOST_BYTES);
        assert!(table.add(&long, NameKind::Operator).is_refused());
        assert_eq!(table.add("known", NameKind::Operator), known);
        assert_eq!(table.get(1), Some(("known", NameKind::Operator)));
        assert_eq!(table.get(0), None);
    }
}
