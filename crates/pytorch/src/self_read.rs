//! Reads this process's memory with errors instead of faults, for code that follows words that may
//! not be addresses: the probe, and the search in the interpreter's state.

#![expect(
    unsafe_code,
    reason = "the kernel is asked to copy from an address that may be wrong"
)]

/// Returns the words at `address`, or `None` if some of them cannot be read.
pub fn read_words<const N: usize>(address: u64) -> Option<[u64; N]> {
    let mut words = [0_u64; N];
    read_many(address, &mut words).then_some(words)
}

/// Fills `words` from `address` on. Returns whether all of them could be read.
#[cfg(target_os = "linux")]
pub(crate) fn read_many(address: u64, words: &mut [u64]) -> bool {
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

#[cfg(not(target_os = "linux"))]
pub(crate) fn read_many(_address: u64, _words: &mut [u64]) -> bool {
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
        for nowhere in [0, 8, u64::MAX - 7, 1 << 60] {
            assert_eq!(read_words::<1>(nowhere), None);
        }
    }
}
