//! Source files: how frames name them, which are ours, and which are the user's own.
//!
//! Threads ask for names at any time, with and without the GIL, and a fork must not find a lock held
//! by one of them. Nothing here is locked, therefore: lists are leaked when they change, which is
//! rare.

#![expect(unsafe_code, reason = "reads lists that were leaked")]

use std::collections::BTreeMap;
use std::path::MAIN_SEPARATOR;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use mindprof_answers::{OwnCode, Sources};
use pyo3::prelude::*;

/// The prefixes that are removed from the names of files.
// Acquire and release, here and below: a list is written before its address.
static ROOTS: AtomicPtr<Vec<String>> = AtomicPtr::new(ptr::null_mut());

/// The folder of our own package with a trailing separator.
static OUR_FOLDER: OnceLock<String> = OnceLock::new();

/// The last of the user's own files that were seen.
static LAST_OWN: AtomicPtr<OwnFile> = AtomicPtr::new(ptr::null_mut());

/// A file of the user's own, in a list that only grows.
struct OwnFile {
    /// Its name in frames, and its path.
    name: String,
    path: String,
    previous: *const OwnFile,
}

/// Sets the prefixes that are removed from the names of files.
pub(crate) fn set_roots(mut roots: Vec<String>) {
    // A longer root is tried before its own prefix.
    roots.sort_unstable_by(|a, b| b.cmp(a));
    if *self::roots() != roots {
        ROOTS.store(Box::leak(Box::new(roots)), Ordering::Release);
    }
}

fn roots() -> &'static [String] {
    let roots = ROOTS.load(Ordering::Acquire);
    // SAFETY: the pointer is null or that of a list that was leaked and is never written again.
    unsafe { roots.as_ref() }.map_or(&[], Vec::as_slice)
}

/// Sets the folder of mindprof's own package. Calls of its functions are left out of recordings, and
/// so are the C functions that they call; functions of the user that they call are recorded.
#[pyfunction]
pub(crate) fn name_own_folder(folder: &str) {
    let folder = folder.trim_end_matches(MAIN_SEPARATOR);
    let _ = OUR_FOLDER.set(format!("{folder}{MAIN_SEPARATOR}"));
}

/// Returns whether a file is part of our own package.
pub(crate) fn is_ours(file: &str) -> bool {
    OUR_FOLDER
        .get()
        .is_some_and(|ours| file.starts_with(ours.as_str()))
}

/// Returns the name of a file in frames, and notes it if it is the user's own.
pub(crate) fn shortened(file: &str) -> &str {
    let mut rests = roots()
        .iter()
        .filter_map(|root| file.strip_prefix(root.as_str()));
    let name = rests.next().unwrap_or(file);
    if OwnCode::is_own_file(name, file) {
        note(name, file);
    }
    name
}

/// Adds a file to the list of the user's own, unless it is there.
fn note(name: &str, file: &str) {
    if own_files().any(|known| known.name == name) {
        return;
    }
    let path = if file.starts_with('<') {
        None
    } else {
        std::path::absolute(file).ok()
    };
    let path = path.map_or_else(
        || file.to_owned(),
        |path| path.to_string_lossy().into_owned(),
    );
    let own = Box::leak(Box::new(OwnFile {
        name: name.to_owned(),
        path,
        previous: ptr::null(),
    }));
    let mut last = LAST_OWN.load(Ordering::Acquire);
    loop {
        own.previous = last;
        let added = LAST_OWN.compare_exchange(last, own, Ordering::Release, Ordering::Acquire);
        match added {
            Ok(_) => return,
            Err(other) => last = other,
        }
    }
}

fn own_files() -> impl Iterator<Item = &'static OwnFile> {
    let last = LAST_OWN.load(Ordering::Acquire).cast_const();
    // SAFETY: each pointer is null or that of a file that was leaked before it was published and is
    // never written again.
    std::iter::successors(unsafe { last.as_ref() }, |own| unsafe {
        own.previous.as_ref()
    })
}

/// Returns the user's own files that were seen, as JSON for the metadata.
pub(crate) fn own_sources() -> Option<String> {
    let own: BTreeMap<_, _> = own_files()
        .map(|own| (own.name.clone(), own.path.clone()))
        .collect();
    let own: Vec<_> = own.into_iter().collect();
    (!own.is_empty()).then(|| Sources { own }.json())
}
