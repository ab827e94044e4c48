//! Ways to read the memory of this process: through the kernel, with errors instead of faults, for
//! words that may not be addresses; and directly, for addresses that are known to be alive.

#![expect(
    unsafe_code,
    reason = "the kernel is asked to copy from an address that may be wrong"
)]

/// The most words that are gathered from one structure.
const BLOCK: usize = 24;

/// A way to read memory.
pub trait Memory {
    /// Returns the words with these indices from `address` on, or `None` if some cannot be read.
    fn gather<const N: usize>(&self, address: u64, indices: [usize; N]) -> Option<[u64; N]>;
}

/// Reads through the kernel: an address that cannot be read is refused.
#[derive(Clone, Copy, Debug)]
pub struct Checked;

impl Memory for Checked {
    fn gather<const N: usize>(&self, address: u64, indices: [usize; N]) -> Option<[u64; N]> {
        let mut block = [0; BLOCK];
        let words = block.get_mut(..=*indices.iter().max()?)?;
        read_many(address, words).then(|| indices.map(|index| block[index]))
    }
}

/// A copy of one stretch of memory, taken at once. The rest is read through the kernel.
#[derive(Debug)]
pub(crate) struct Snapshot<'a> {
    pub(crate) begin: u64,
    pub(crate) words: &'a [u64],
}

impl Memory for Snapshot<'_> {
    fn gather<const N: usize>(&self, address: u64, indices: [usize; N]) -> Option<[u64; N]> {
        let first = address
            .checked_sub(self.begin)
            .map(|offset| offset as usize / 8);
        let last = *indices.iter().max()?;
        match first {
            Some(first) if address.is_multiple_of(8) && first + last < self.words.len() => {
                Some(indices.map(|index| self.words[first + index]))
            }
            Some(_) | None => Checked.gather(address, indices),
        }
    }
}

/// Reads directly, as fast as the memory is.
#[derive(Clone, Copy, Debug)]
pub struct Direct(());

impl Direct {
    /// Allows direct reads.
    ///
    /// # Safety
    /// While the value is in use, every address that it is asked for must be readable. Frames of
    /// the calling thread are, and their code with its name: the thread waits in a call that they
    /// made.
    pub const unsafe fn new() -> Self {
        Self(())
    }
}

impl Memory for Direct {
    #[inline]
    fn gather<const N: usize>(&self, address: u64, indices: [usize; N]) -> Option<[u64; N]> {
        let words = address as *const u64;
        // SAFETY: the creator of this value guarantees that the words can be read. Frames lie at
        // addresses that are multiples of eight.
        Some(indices.map(|index| unsafe { words.add(index).read() }))
    }
}

/// Returns the bytes at `address`, or `None` if some of them cannot be read.
pub(crate) fn read_bytes(address: u64, length: usize) -> Option<Vec<u8>> {
    let start = address & !7;
    let skipped = (address - start) as usize;
    let mut words = vec![0; (skipped + length).div_ceil(8)];
    if !read_many(start, &mut words) {
        return None;
    }
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    Some(bytes.skip(skipped).take(length).collect())
}

/// Returns the words at `address`, or `None` if some of them cannot be read.
pub fn read_words<const N: usize>(address: u64) -> Option<[u64; N]> {
    let mut words = [0_u64; N];
    read_many(address, &mut words).then_some(words)
}

/// Fills `words` from `address` on. Returns whether all of them could be read.
#[cfg(target_os = "linux")]
pub fn read_many(address: u64, words: &mut [u64]) -> bool {
    if address < 4096 || !address.is_multiple_of(8) {
        return false;
    }
    let bytes = size_of_val(words);
    let local = libc::iovec {
        iov_base: words.as_mut_ptr().cast(),
        iov_len: bytes,
    };
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: bytes,
    };
    // SAFETY: the kernel writes only into `words`, whose length is passed, and reports unreadable
    // memory as an error.
    let copied = unsafe {
        libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0)
    };
    usize::try_from(copied) == Ok(bytes)
}

/// Refuses every address: there is no such system call here.
#[cfg(not(target_os = "linux"))]
pub fn read_many(_address: u64, _words: &mut [u64]) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_read_and_what_is_not_is_refused() {
        let words = [3_u64, 5];
        let address = words.as_ptr() as u64;
        assert_eq!(read_words::<2>(address), Some([3, 5]));
        assert_eq!(read_words::<1>(address + 4), None, "between two words");
        assert_eq!(read_bytes(address + 7, 2), Some(vec![0, 5]));
        assert_eq!(Checked.gather(address, [1, 0]), Some([5, 3]));
        for nowhere in [0, 8, u64::MAX - 7, 1 << 60] {
            assert_eq!(read_words::<1>(nowhere), None);
        }
    }
}
