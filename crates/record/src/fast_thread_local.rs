//! Thread-local variables that a loaded library finds without a call.
//!
//! In a library that is loaded at run time, every access to a thread-local variable calls
//! `__tls_get_addr`. With the feature `loaded`, a direct-mapped cache keyed by the thread pointer
//! holds the addresses of a thread's variables instead. A thread claims the cache line its pointer
//! maps to if that is free; a thread without a line makes the call.
//!
//! The cache saves 37 of 220 instructions of a plain scope, and 56 of 456 of one with inputs and
//! memory: 1 % and 4 % of the time where reading the clock takes most of it
//! (`examples/loaded_scopes.rs` has the command).

#![expect(
    unsafe_code,
    reason = "cached addresses are dereferenced, and the thread pointer is read with inline assembly"
)]

use std::cell::Cell;
use std::ptr::NonNull;
use std::thread::{AccessError, LocalKey};

pub use self::cache::CacheColumn;

/// Declares a thread-local variable that a loaded library finds without a call. It expands to a
/// constant whose `try_with` works like that of [`std::thread::LocalKey`].
#[macro_export]
macro_rules! fast_thread_local {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr) => {
        $(#[$attribute])*
        const $name: $crate::expansion::FastThreadLocal<$type> = {
            static COLUMN: $crate::expansion::CacheColumn = $crate::expansion::CacheColumn::new();
            ::std::thread_local! {
                static VARIABLE: $crate::expansion::ThreadValue<$type> =
                    const { $crate::expansion::ThreadValue::new($value) };
            }
            $crate::expansion::FastThreadLocal::new(&VARIABLE, &COLUMN)
        };
    };
}

/// A thread-local variable, declared by [`fast_thread_local!`](crate::fast_thread_local!). It pairs
/// the standard library's variable, which owns the value, with the column of the cache that may
/// hold its address.
#[derive(Debug)]
pub struct FastThreadLocal<T: 'static> {
    key: &'static LocalKey<ThreadValue<T>>,
    column: &'static CacheColumn,
}

/// The value of one thread. It remembers whether its address is cached, so that dropping it when
/// the thread exits also clears the cache.
#[derive(Debug)]
pub struct ThreadValue<T> {
    value: T,
    /// The cache column that holds its address; zero if none does.
    column: Cell<usize>,
}

impl<T> ThreadValue<T> {
    /// Wraps the initial value of a thread.
    pub const fn new(value: T) -> Self {
        Self {
            value,
            column: Cell::new(0),
        }
    }
}

// Without a cache there is nothing to clear, and a variable without a destructor is cheaper.
#[cfg(all(
    feature = "loaded",
    target_arch = "x86_64",
    target_os = "linux",
    not(loom)
))]
impl<T> Drop for ThreadValue<T> {
    fn drop(&mut self) {
        cache::unset(self.column.get());
    }
}

impl<T: 'static> FastThreadLocal<T> {
    /// Combines the standard library's variable with its cache column.
    pub const fn new(key: &'static LocalKey<ThreadValue<T>>, column: &'static CacheColumn) -> Self {
        Self { key, column }
    }

    /// Calls `action` with the value of this thread.
    ///
    /// # Errors
    /// Fails if the thread is exiting and has dropped the value.
    #[inline]
    pub fn try_with<R>(&self, action: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let value = match self.find() {
            Some(value) => value,
            None => self.find_slowly()?,
        };
        // SAFETY: the address is that of this thread's own value. The thread drops it only when it
        // exits, and `ThreadValue::drop` removes it from the cache first.
        Ok(action(unsafe { value.as_ref() }))
    }

    /// Returns the address of this thread's value, if it is known without a call. The address is
    /// valid until the thread drops the value.
    #[inline]
    pub(crate) fn find(&self) -> Option<NonNull<T>> {
        if cache::IS_THERE {
            return cache::get(self.column).map(NonNull::cast);
        }
        let find = |variable: &ThreadValue<T>| NonNull::from(&variable.value);
        self.key.try_with(find).ok()
    }

    /// Finds the value by a call and caches its address if the thread has or gets a cache line.
    #[cold]
    #[inline(never)]
    fn find_slowly(&self) -> Result<NonNull<T>, AccessError> {
        self.key.try_with(|variable| {
            let value = NonNull::from(&variable.value);
            variable.column.set(cache::set(self.column, value.cast()));
            value
        })
    }
}

#[cfg(all(
    feature = "loaded",
    target_arch = "x86_64",
    target_os = "linux",
    not(loom)
))]
mod cache {
    use std::arch::asm;
    use std::ptr::{self, NonNull};
    use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
    use std::sync::{Mutex, OnceLock};

    pub(super) const IS_THERE: bool = true;

    /// The columns of a line; a power of two, so that reducing an index takes one instruction. No
    /// variable uses the first column, which stays empty.
    const COLUMNS: usize = 8;

    /// The cached addresses of one thread. Only the owner writes the line, from the time it claims
    /// the line until it frees it, which is before the thread exits and its pointer can be reused.
    /// Relaxed everywhere: a thread only uses what it has stored itself under its own pointer.
    #[repr(align(128))]
    struct Line {
        /// The thread pointer of the owner; zero if there is none.
        owner: AtomicUsize,
        values: [AtomicPtr<()>; COLUMNS],
    }

    const LINES: usize = 64;

    static CACHE: [Line; LINES] = [const {
        Line {
            owner: AtomicUsize::new(0),
            values: [const { AtomicPtr::new(ptr::null_mut()) }; COLUMNS],
        }
    }; LINES];

    /// The last column that was given to a variable.
    static LAST: Mutex<usize> = Mutex::new(0);

    /// Whether the fork hook that clears the lines of other threads is installed.
    static IS_WATCHED: OnceLock<bool> = OnceLock::new();

    /// The column of a variable. It is zero until a thread first asks for it, and stays zero if
    /// there are more variables than columns.
    #[derive(Debug)]
    pub struct CacheColumn(AtomicUsize);

    impl CacheColumn {
        /// Creates the column of a variable that no thread has used yet.
        #[expect(
            clippy::new_without_default,
            reason = "only a macro creates it, in a static"
        )]
        pub const fn new() -> Self {
            Self(AtomicUsize::new(0))
        }

        #[inline]
        fn number(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }

        fn claim(&self) -> usize {
            // Never waits: a thread that fails to lock, also in a child forked while the lock was
            // held, makes the call.
            if self.number() == 0
                && let Ok(mut last) = LAST.try_lock()
                && self.number() == 0
                && *last + 1 < COLUMNS
            {
                *last += 1;
                self.0.store(*last, Ordering::Relaxed);
            }
            self.number()
        }
    }

    impl Line {
        /// Thread pointers lie at the ends of stacks, which are an odd number of pages apart.
        #[inline]
        fn of(pointer: usize) -> &'static Self {
            &CACHE[pointer / 4096 % LINES]
        }

        #[inline]
        fn is_of(&self, pointer: usize) -> bool {
            self.owner.load(Ordering::Relaxed) == pointer
        }

        fn claim(&self, pointer: usize) -> bool {
            let (order, found) = (Ordering::Relaxed, Ordering::Relaxed);
            // Checked first: threads without a line try again and again.
            self.is_of(0)
                && (self.owner)
                    .compare_exchange(0, pointer, order, found)
                    .is_ok()
        }

        fn is_empty(&self) -> bool {
            let is_null = |value: &AtomicPtr<()>| value.load(Ordering::Relaxed).is_null();
            self.values.iter().all(is_null)
        }

        fn clear(&self) {
            for value in &self.values {
                value.store(ptr::null_mut(), Ordering::Relaxed);
            }
            self.owner.store(0, Ordering::Relaxed);
        }
    }

    /// Returns the thread pointer, which no other living thread shares.
    #[inline]
    fn own_pointer() -> usize {
        let pointer;
        // SAFETY: the x86-64 Linux ABI stores the thread pointer's own address in the first word
        // behind `fs`; the instruction only reads it.
        unsafe {
            asm!(
                "mov {}, qword ptr fs:[0]",
                out(reg) pointer,
                options(nostack, preserves_flags, readonly)
            );
        }
        pointer
    }

    #[inline]
    pub(super) fn get(column: &CacheColumn) -> Option<NonNull<()>> {
        let pointer = own_pointer();
        let line = Line::of(pointer);
        if !line.is_of(pointer) {
            return None;
        }
        let value = &line.values[column.number() % COLUMNS];
        NonNull::new(value.load(Ordering::Relaxed))
    }

    /// Caches an address and returns its column, or zero if it could not be cached.
    pub(super) fn set(column: &CacheColumn, value: NonNull<()>) -> usize {
        let pointer = own_pointer();
        let line = Line::of(pointer);
        let number = column.claim();
        let is_own = line.is_of(pointer) || (is_watched() && line.claim(pointer));
        if number == 0 || !is_own {
            return 0;
        }
        line.values[number].store(value.as_ptr(), Ordering::Relaxed);
        number
    }

    /// Clears a column of this thread's line, and frees the line if all columns are empty.
    pub(super) fn unset(number: usize) {
        let pointer = own_pointer();
        let line = Line::of(pointer);
        if number == 0 || !line.is_of(pointer) {
            return;
        }
        line.values[number].store(ptr::null_mut(), Ordering::Relaxed);
        if line.is_empty() {
            line.clear();
        }
    }

    /// Installs the fork hook at the first call. Returns false if the system refuses it.
    fn is_watched() -> bool {
        // SAFETY: the hook is an `extern "C"` function that never unwinds and only stores to
        // atomics in statics, which is safe in a forked child.
        let watch = || unsafe { libc::pthread_atfork(None, None, Some(forget_others)) } == 0;
        *IS_WATCHED.get_or_init(watch)
    }

    /// Frees the lines of other threads in a forked child, where those threads do not exist and new
    /// ones may get their pointers.
    extern "C" fn forget_others() {
        let own = own_pointer();
        let others = CACHE.iter().filter(|line| !line.is_of(own));
        others.for_each(Line::clear);
    }
}

#[cfg(not(all(
    feature = "loaded",
    target_arch = "x86_64",
    target_os = "linux",
    not(loom)
)))]
mod cache {
    use std::ptr::NonNull;

    pub(super) const IS_THERE: bool = false;

    /// An empty stand-in on platforms without the cache.
    #[derive(Debug)]
    pub struct CacheColumn;

    impl CacheColumn {
        /// Creates the stand-in.
        #[expect(
            clippy::new_without_default,
            reason = "only a macro creates it, in a static"
        )]
        pub const fn new() -> Self {
            Self
        }
    }

    #[inline]
    pub(super) fn get(_column: &CacheColumn) -> Option<NonNull<()>> {
        None
    }

    pub(super) fn set(_column: &CacheColumn, _value: NonNull<()>) -> usize {
        0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::cell::Cell;
    use std::sync::{Arc, Barrier, Mutex, PoisonError};
    use std::thread;

    fast_thread_local! {
        static NUMBER: Cell<u32> = Cell::new(0)
    }

    /// More threads than the cache has lines.
    const THREADS: u32 = 150;

    #[test]
    fn each_thread_has_a_variable_of_its_own() {
        let barrier = Arc::new(Barrier::new(THREADS as usize));
        let threads: Vec<_> = (1..=THREADS)
            .map(|own| {
                let barrier = Arc::clone(&barrier);
                thread::spawn(move || {
                    let before = NUMBER.try_with(|number| number.replace(own)).unwrap();
                    barrier.wait();
                    (before, own, NUMBER.try_with(Cell::get).unwrap())
                })
            })
            .collect();
        for thread in threads {
            let (before, own, after) = thread.join().unwrap();
            assert_eq!((before, after), (0, own));
        }
        // Nothing is left of threads that have exited, although their lines are reused.
        let next = thread::spawn(|| NUMBER.try_with(Cell::get).unwrap());
        assert_eq!(next.join().unwrap(), 0);
    }

    /// Notes, when dropped, whether the variable can still be reached.
    struct Witness;

    static SEEN: Mutex<Vec<bool>> = Mutex::new(Vec::new());

    impl Drop for Witness {
        fn drop(&mut self) {
            let seen = LAST.try_with(|_| ()).is_ok();
            SEEN.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(seen);
        }
    }

    fast_thread_local! {
        static LAST: Cell<Option<Witness>> = Cell::new(None)
    }

    #[test]
    fn a_thread_that_is_ending_has_none() {
        let end = || LAST.try_with(|last| last.set(Some(Witness))).unwrap();
        thread::spawn(end).join().unwrap();
        let seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(*seen, [false]);
    }
}
