//! Random bytes that nobody can guess, cheap enough for one ID: ChaCha20 with fast key erasure.
//!
//! Each stretch of key stream begins with the key of the next one, which overwrites the present key at once; bytes are wiped
//! as they are handed out. So this memory tells nothing of what was drawn before (Bernstein, *Fast-key-erasure
//! random-number generators*, 2017). Seeds come from the kernel: when is the shell's to decide.

use chacha20::ChaCha20;
use chacha20::cipher::{Array, KeyIvInit, StreamCipher};
use std::fmt;

const KEY: usize = 32;
const STRETCH: usize = 1024;

/// A generator of random bytes.
pub struct Entropy {
    key: [u8; KEY],
    ready: [u8; STRETCH],
    at: usize,
    left: u64,
}

impl Entropy {
    /// How many bytes one seed is good for.
    pub const BYTES_PER_SEED: u64 = 1 << 20;

    /// A generator that has to be seeded before it gives anything.
    #[must_use]
    pub const fn new() -> Self {
        Self { key: [0; KEY], ready: [0; STRETCH], at: STRETCH, left: 0 }
    }

    /// Begins anew: nothing that was drawn, or known, before matters to what comes.
    pub fn seed(&mut self, seed: [u8; KEY]) {
        *self = Self { key: seed, left: Self::BYTES_PER_SEED, ..Self::new() };
    }

    /// Has the next draw refused until there is a new seed.
    pub fn forget(&mut self) {
        *self = Self::new();
    }

    /// Fills `bytes`; `false`, with nothing drawn, where it needs a new seed first.
    #[inline(always)]
    #[must_use]
    pub fn fill(&mut self, bytes: &mut [u8]) -> bool {
        let end = self.at + bytes.len();
        if end > STRETCH {
            return self.fill_slowly(bytes);
        }
        let drawn = &mut self.ready[self.at..end];
        bytes.copy_from_slice(drawn);
        drawn.fill(0);
        self.at = end;
        true
    }

    #[cold]
    #[inline(never)]
    fn fill_slowly(&mut self, bytes: &mut [u8]) -> bool {
        let Some(left) = self.left.checked_sub(bytes.len() as u64 + STRETCH as u64) else { return false };
        self.left = left;
        if bytes.len() > STRETCH / 2 {
            // A key of its own for all of it, which nobody has afterwards.
            let mut key = [0; KEY];
            if !self.fill(&mut key) {
                return false;
            }
            bytes.fill(0);
            cipher(&key).apply_keystream(bytes);
            return true;
        }
        self.stretch();
        self.fill(bytes)
    }

    /// Key stream behind the next key, of whole blocks in one go.
    fn stretch(&mut self) {
        self.ready.fill(0);
        cipher(&self.key).apply_keystream(&mut self.ready);
        self.key.copy_from_slice(&self.ready[..KEY]);
        self.ready[..KEY].fill(0);
        self.at = KEY;
    }
}

impl Default for Entropy {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy(..)")
    }
}

fn cipher(key: &[u8; KEY]) -> ChaCha20 {
    // A key is used once, so its nonce does not matter.
    ChaCha20::new(&Array::from(*key), &Array::from([0; 12]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(entropy: &mut Entropy, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        assert!(entropy.fill(&mut bytes));
        bytes
    }

    fn seeded(byte: u8) -> Entropy {
        let mut entropy = Entropy::new();
        entropy.seed([byte; KEY]);
        entropy
    }

    /// RFC 8439, appendix A.1, test vector 1: the first 32 bytes are the next key, the rest is handed out.
    #[test]
    fn what_is_drawn_is_the_key_stream_behind_the_next_key() {
        let block = "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586";
        let hex: String = drawn(&mut seeded(0), 32).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, block);
    }

    #[test]
    fn of_another_seed_other_bytes_are_drawn() {
        assert_ne!(drawn(&mut seeded(1), 32), drawn(&mut seeded(2), 32));
    }

    #[test]
    fn nothing_is_drawn_without_a_seed_nor_beyond_what_one_is_good_for() {
        let mut bytes = [7; 16];
        assert!(!Entropy::new().fill(&mut bytes));
        assert_eq!(bytes, [7; 16]);
        let mut entropy = seeded(1);
        let mut total = 0;
        let mut chunk = vec![0; 1 << 14];
        while entropy.fill(&mut chunk) {
            total += chunk.len() as u64;
        }
        assert!(total <= Entropy::BYTES_PER_SEED && total > Entropy::BYTES_PER_SEED / 2);
        entropy.seed([2; KEY]);
        assert!(entropy.fill(&mut chunk));
        entropy.forget();
        assert!(!entropy.fill(&mut chunk));
    }

    #[test]
    fn no_bytes_are_drawn_twice_however_much_is_drawn_at_once() {
        let mut entropy = seeded(3);
        let mut seen = std::collections::HashSet::new();
        for length in [16, 17, 500, 1008, 1024, 1025, 4096, 16, 16].repeat(20) {
            for part in drawn(&mut entropy, length).as_chunks::<16>().0 {
                assert!(seen.insert(*part));
            }
        }
    }

    #[test]
    fn what_was_drawn_is_no_longer_in_memory() {
        let mut entropy = seeded(4);
        let first = drawn(&mut entropy, 64);
        assert!(!entropy.ready.windows(16).any(|window| window == &first[..16]));
        assert_ne!(entropy.key, [4; KEY]);
    }
}
