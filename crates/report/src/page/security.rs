//! The content security policy of a page: nothing may load or run but the page's own style and
//! script, which it names by their SHA-256 hashes.

use super::base64::base64;

/// Returns the policy of a page with this style and these scripts.
pub(super) fn policy(style: &str, scripts: [&str; 2]) -> String {
    let hash = |text: &str| format!("'sha256-{}'", base64(&sha256(text.as_bytes())));
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        scripts.map(hash).join(" "),
        hash(style)
    )
}

/// The fractional parts of the square roots of the first primes.
const START: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// Returns the SHA-256 hash of some bytes, as FIPS 180-4 defines it. The page hashes a few kilobytes
/// of its own text, which is no reason for a dependency.
fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut message = bytes.to_vec();
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend((bytes.len() as u64 * 8).to_be_bytes());
    let constants = constants();
    let mut state = START;
    for block in message.chunks_exact(64) {
        compress(&mut state, block, &constants);
    }
    let mut hash = [0; 32];
    for (bytes, word) in hash.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    hash
}

fn compress(state: &mut [u32; 8], block: &[u8], constants: &[u32; 64]) {
    let mut words = [0_u32; 64];
    for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
        *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    for index in 16..64 {
        let (early, late) = (words[index - 15], words[index - 2]);
        let small = early.rotate_right(7) ^ early.rotate_right(18) ^ (early >> 3);
        let large = late.rotate_right(17) ^ late.rotate_right(19) ^ (late >> 10);
        let sum = words[index - 16].wrapping_add(small);
        words[index] = sum.wrapping_add(words[index - 7]).wrapping_add(large);
    }
    let mut at = *state;
    for (word, constant) in words.iter().zip(constants) {
        let rotated = at[4].rotate_right(6) ^ at[4].rotate_right(11) ^ at[4].rotate_right(25);
        let choice = (at[4] & at[5]) ^ (!at[4] & at[6]);
        let first = at[7].wrapping_add(rotated).wrapping_add(choice);
        let first = first.wrapping_add(*constant).wrapping_add(*word);
        let rotated = at[0].rotate_right(2) ^ at[0].rotate_right(13) ^ at[0].rotate_right(22);
        let majority = (at[0] & at[1]) ^ (at[0] & at[2]) ^ (at[1] & at[2]);
        at.rotate_right(1);
        at[4] = at[4].wrapping_add(first);
        at[0] = first.wrapping_add(rotated.wrapping_add(majority));
    }
    for (word, new) in state.iter_mut().zip(at) {
        *word = word.wrapping_add(new);
    }
}

/// Returns the fractional parts of the cube roots of the first 64 primes, to 32 bits.
fn constants() -> [u32; 64] {
    let primes = (2_u128..).filter(|number| (2..*number).all(|divisor| number % divisor != 0));
    let mut constants = [0; 64];
    for (constant, prime) in constants.iter_mut().zip(primes) {
        *constant = cube_root(prime << 96) as u32;
    }
    constants
}

/// Returns the largest number whose cube is not larger than `value`.
fn cube_root(value: u128) -> u128 {
    let (mut low, mut high) = (0_u128, 1 << 36);
    while high - low > 1 {
        let middle = u128::midpoint(low, high);
        if middle * middle * middle <= value {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    fn hex(bytes: &[u8]) -> String {
        let mut text = String::new();
        for byte in sha256(bytes) {
            write!(text, "{byte:02x}").unwrap();
        }
        text
    }

    #[test]
    fn the_examples_of_the_standard() {
        let examples = [
            (
                "",
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            ),
            (
                "abc",
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            ),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
            ),
        ];
        for (text, hash) in examples {
            assert_eq!(hex(text.as_bytes()), hash);
        }
    }
}
