//! Whether a thread runs or waits, as the kernel tells it.

use std::fs::File;
use std::io::Read;

/// Returns whether a thread of this process sleeps, or waits for a lock, a file or another process.
/// The kernel's number of the thread tells which one. Returns `false` if the kernel does not say.
pub fn is_waiting(thread: u64) -> bool {
    // The file is opened for each question: a program may close descriptors that it did not open.
    let mut text = [0; 128];
    let read = File::open(format!("/proc/self/task/{thread}/stat"))
        .and_then(|mut file| file.read(&mut text));
    read.is_ok_and(|length| is_waiting_state(&text[..length]))
}

/// The state follows the name of the thread, which may itself contain parentheses.
fn is_waiting_state(text: &[u8]) -> bool {
    let name_end = text.iter().rposition(|&byte| byte == b')');
    let state = name_end.and_then(|end| text.get(end + 2));
    matches!(state, Some(b'S' | b'D'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_follows_the_name() {
        assert!(is_waiting_state(b"12 (python) S 1 12 12"));
        assert!(is_waiting_state(b"12 (a) R (b) D 1 12 12"));
        assert!(!is_waiting_state(b"12 (pool) S) R 1 12 12"));
        assert!(!is_waiting_state(b"12 (python)"));
        assert!(!is_waiting_state(b""));
    }

    #[test]
    fn a_thread_that_asks_does_not_wait() {
        let own = std::fs::read_link("/proc/thread-self").ok();
        let own = own.as_ref().and_then(|path| path.file_name()?.to_str());
        if let Some(own) = own.and_then(|number| number.parse().ok()) {
            assert!(!is_waiting(own));
        }
        assert!(!is_waiting(0), "there is no such thread");
    }
}
