//! Thread-local variables that are found without a call.
//!
//! In a library that is loaded at run time a thread-local variable is reached by a call that costs
//! a tenth of a scope, and a scope needs several. With the feature `loaded` a direct-mapped cache
//! has their addresses, by thread pointer: a thread owns the line that its pointer maps to, if it
//! was free. A thread without a line makes the call.

#![expect(
    unsafe_code,
    reason = "the address of a thread's variable is cached, and the thread pointer is read by an \
              instruction of its own"
)]

use std::cell::Cell;
use std::ptr::NonNull;
use std::thread::{AccessError, LocalKey};

pub use self::cache::CacheColumn;

/// Makes a thread-local variable, a [`FastThreadLocal`].
#[macro_export]
macro_rules! fast_thread_local {
    ($(#[$attribute:meta])* static $name:ident: $type:ty = $value:expr) => {
        $(#[$attribute])*
        const $name: $crate::FastThreadLocal<$type> = {
            static COLUMN: $crate::CacheColumn = $crate::CacheColumn::new();
            ::std::thread_local! {
                static VARIABLE: $crate::ThreadValue<$type> =
                    const { $crate::ThreadValue::new($value) };
            }
            $crate::FastThreadLocal::new(&VARIABLE, &COLUMN)
        };
    };
}

/// A thread-local variable. Made by [`fast_thread_local!`](crate::fast_thread_local!).
#[derive(Debug)]
pub struct FastThreadLocal<T: 'static> {
    key: &'static LocalKey<ThreadValue<T>>,
    column: &'static CacheColumn,
}

/// The variable of one thread.
#[derive(Debug)]
pub struct ThreadValue<T> {
    value: T,
    /// The column of the cache that has its address; zero if none has.
    column: Cell<usize>,
}

impl<T> ThreadValue<T> {
    /// Makes the variable.
    pub const fn new(value: T) -> Self {
        Self {
            value,
            column: Cell::new(0),
        }
    }
}

// Nothing is to be undone where there is no cache: a variable that need not be dropped is cheaper.
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
    /// Returns the variable that `key` and `column` make up.
    pub const fn new(key: &'static LocalKey<ThreadValue<T>>, column: &'static CacheColumn) -> Self {
        Self { key, column }
    }

    /// Calls `action` with the variable of this thread.
    ///
    /// # Errors
    /// When the thread is ending and has dropped it.
    #[inline]
    pub fn try_with<R>(&self, action: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let value = match self.find() {
            Some(value) => value,
            None => self.find_slowly()?,
        };
        // SAFETY: it is this thread's, which drops it only when it ends, and forgets it then.
        Ok(action(unsafe { value.as_ref() }))
    }

    /// Returns the address of the variable of this thread, if it is known without a call. It is
    /// valid until the thread drops the variable.
    #[inline]
    pub(crate) fn find(&self) -> Option<NonNull<T>> {
        if cache::IS_THERE {
            return cache::get(self.column).map(NonNull::cast);
        }
        let find = |variable: &ThreadValue<T>| NonNull::from(&variable.value);
        self.key.try_with(find).ok()
    }

    /// Finds the variable by a call and caches its address, if the thread has or gets a line.
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

    /// Columns of a line: a power of two, so that a number is made to fit in one instruction.
    /// The first column is of no variable and always empty.
    const COLUMNS: usize = 8;

    /// The line of a thread is written by that thread alone from when it is claimed until it is
    /// free again, which is before the thread ends and its pointer can become another thread's.
    /// Relaxed everywhere: what a thread reads under its own pointer it has written itself.
    #[repr(align(128))]
    struct Line {
        /// The pointer of the owner; zero while there is none.
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

    /// The last column that a variable has.
    static LAST: Mutex<usize> = Mutex::new(0);

    /// Whether forked children forget the lines of threads that they do not have.
    static IS_WATCHED: OnceLock<bool> = OnceLock::new();

    /// The number of a variable's column; that of the first one until some thread asks for it, and
    /// for ever if there are too many.
    #[derive(Debug)]
    pub struct CacheColumn(AtomicUsize);

    impl CacheColumn {
        /// Makes the column of a variable that nothing has asked for.
        #[expect(clippy::new_without_default, reason = "made by a macro, in a static")]
        pub const fn new() -> Self {
            Self(AtomicUsize::new(0))
        }

        #[inline]
        fn number(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }

        fn claim(&self) -> usize {
            // Never waits: whoever comes in vain, now or in a child that was forked meanwhile,
            // makes the call.
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
        /// Stacks, at whose ends these pointers lie, are an odd number of pages apart.
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
            // Looked at first: threads that come in vain do so again and again.
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

    /// Returns the thread pointer, which no other living thread has.
    #[inline]
    fn own_pointer() -> usize {
        let pointer;
        // SAFETY: by the system's ABI the first word behind this register is its own address; the
        // instruction reads it and does nothing else.
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

    /// Returns the number of the column; zero if the address is not in the cache.
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

    /// Empties a column of this thread's line, which is free when all are empty.
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

    /// Has the lines of lost threads freed in every forked child. Returns false if the system
    /// refuses.
    fn is_watched() -> bool {
        // SAFETY: the hook stores to statics, which a child may do.
        let watch = || unsafe { libc::pthread_atfork(None, None, Some(forget_others)) } == 0;
        *IS_WATCHED.get_or_init(watch)
    }

    /// Frees the lines of other threads, in a forked child: it has none of them, and its own new
    /// ones can get their pointers.
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

    /// Nothing, where there is no cache.
    #[derive(Debug)]
    pub struct CacheColumn;

    impl CacheColumn {
        /// Makes the column of a variable.
        #[expect(clippy::new_without_default, reason = "made by a macro, in a static")]
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
        // Of those that have ended nothing is left, though their lines are taken again.
        let next = thread::spawn(|| NUMBER.try_with(Cell::get).unwrap());
        assert_eq!(next.join().unwrap(), 0);
    }

    /// Notes, when it is dropped, whether the variable can still be reached.
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
