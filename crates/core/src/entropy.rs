//! Unpredictable random bytes, cheap enough for one ID: ChaCha20 with fast key erasure.
//!
//! Each block of key stream begins with the key of the next block, which overwrites the present key at once. Bytes are
//! wiped when they are handed out. An attacker who reads this memory thus learns no earlier bytes (Bernstein,
//! *Fast-key-erasure random-number generators*, 2017). Seeds come from the kernel; the caller decides when.

use chacha20::ChaCha20;
use chacha20::cipher::{Array, KeyIvInit, StreamCipher};
use std::fmt;

const KEY_BYTES: usize = 32;
const BLOCK_BYTES: usize = 1024;

/// A generator of random bytes.
pub struct Entropy {
    key: [u8; KEY_BYTES],
    ready: [u8; BLOCK_BYTES],
    at: usize,
    bytes_left: u64,
}

impl Entropy {
    /// The most bytes from one seed.
    pub const BYTES_PER_SEED: u64 = 1 << 20;

    /// Returns a generator without a seed, which fills no bytes.
    #[must_use]
    pub const fn unseeded() -> Self {
        Self { key: [0; KEY_BYTES], ready: [0; BLOCK_BYTES], at: BLOCK_BYTES, bytes_left: 0 }
    }

    /// Replaces the state by a seed. Later bytes do not depend on anything drawn or known before.
    pub fn seed(&mut self, seed: [u8; KEY_BYTES]) {
        *self = Self { key: seed, bytes_left: Self::BYTES_PER_SEED, ..Self::unseeded() };
    }

    /// Fills `bytes`; returns false, with nothing drawn, if it needs a new seed first.
    #[inline(always)]
    #[must_use]
    pub fn fill(&mut self, bytes: &mut [u8]) -> bool {
        let end = self.at + bytes.len();
        if end > BLOCK_BYTES {
            return self.fill_slow(bytes);
        }
        let drawn = &mut self.ready[self.at..end];
        bytes.copy_from_slice(drawn);
        drawn.fill(0);
        self.at = end;
        true
    }

    #[cold]
    #[inline(never)]
    fn fill_slow(&mut self, bytes: &mut [u8]) -> bool {
        let Some(left) = self.bytes_left.checked_sub(bytes.len() as u64 + BLOCK_BYTES as u64) else { return false };
        self.bytes_left = left;
        if bytes.len() > BLOCK_BYTES / 2 {
            // A long draw has a key of its own, which is gone afterwards.
            let mut key = [0; KEY_BYTES];
            if !self.fill(&mut key) {
                return false;
            }
            bytes.fill(0);
            cipher(&key).apply_keystream(bytes);
            return true;
        }
        self.refill();
        self.fill(bytes)
    }

    /// Replaces key and bytes by the next block of key stream.
    fn refill(&mut self) {
        self.ready.fill(0);
        cipher(&self.key).apply_keystream(&mut self.ready);
        self.key.copy_from_slice(&self.ready[..KEY_BYTES]);
        self.ready[..KEY_BYTES].fill(0);
        self.at = KEY_BYTES;
    }
}

impl fmt::Debug for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Entropy(..)")
    }
}

fn cipher(key: &[u8; KEY_BYTES]) -> ChaCha20 {
    // Each key is used once, so the nonce does not matter.
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
        let mut entropy = Entropy::unseeded();
        entropy.seed([byte; KEY_BYTES]);
        entropy
    }

    /// RFC 8439, appendix A.1, test vector 1. The first 32 bytes are the next key, the rest is handed out.
    #[test]
    fn random_bytes_are_the_key_stream_behind_the_next_key() {
        let block = "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586";
        let hex: String = drawn(&mut seeded(0), 32).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, block);
    }

    #[test]
    fn another_seed_gives_other_bytes() {
        assert_ne!(drawn(&mut seeded(1), 32), drawn(&mut seeded(2), 32));
    }

    #[test]
    fn no_bytes_are_drawn_without_a_seed_or_beyond_its_limit() {
        let mut bytes = [7; 16];
        assert!(!Entropy::unseeded().fill(&mut bytes));
        assert_eq!(bytes, [7; 16]);
        let mut entropy = seeded(1);
        let mut total = 0;
        let mut chunk = vec![0; 1 << 14];
        while entropy.fill(&mut chunk) {
            total += chunk.len() as u64;
        }
        assert!(total <= Entropy::BYTES_PER_SEED && total > Entropy::BYTES_PER_SEED / 2);
        entropy.seed([2; KEY_BYTES]);
        assert!(entropy.fill(&mut chunk));
    }

    #[test]
    fn no_bytes_repeat_whatever_the_lengths_of_draws() {
        let mut entropy = seeded(3);
        let mut seen = std::collections::HashSet::new();
        for length in [16, 17, 500, 1008, 1024, 1025, 4096, 16, 16].repeat(20) {
            for part in drawn(&mut entropy, length).chunks_exact(16) {
                assert!(seen.insert(part.to_vec()));
            }
        }
    }

    #[test]
    fn bytes_that_were_drawn_are_wiped_from_memory() {
        let mut entropy = seeded(4);
        let first = drawn(&mut entropy, 64);
        assert!(!entropy.ready.windows(16).any(|window| window == &first[..16]));
        assert_ne!(entropy.key, [4; KEY_BYTES]);
    }
}
