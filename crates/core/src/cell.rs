//! State and sequence in **one** atomic word.
//!
//! sno's Go original keeps them in two, and so mints duplicates: a caller that stalls between reading the one and
//! taking from the other stamps an old tick on a new tick's number. Here a mint is a single compare-and-set of the
//! whole state: it either happened on exactly the state that the step saw, or not at all.

use crate::sync::{AtomicU64, Ordering};

/// One generator's state, packed by its scheme into 64 bits.
#[derive(Debug)]
pub struct Cell(AtomicU64);

impl Cell {
    /// The word of a generator that is closed. Every scheme's step refuses on it, whatever it is asked, and nothing replaces
    /// it.
    pub const CLOSED: u64 = u64::MAX;

    /// A cell that holds `word`.
    #[must_use]
    pub fn new(word: u64) -> Self {
        Self(AtomicU64::new(word))
    }

    /// The word as it is now.
    #[inline(always)]
    #[must_use]
    pub fn load(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Replaces the word by another one made of it, unless it is closed.
    pub fn reset(&self, make: impl Fn(u64) -> u64) {
        let _ = self.update(|word| if word == Self::CLOSED { Err(()) } else { Ok((make(word), ())) });
    }

    /// Ends minting for good, and returns the word as it was left: a thread in the middle of a step sees the change.
    pub fn close(&self) -> u64 {
        self.0.swap(Self::CLOSED, Ordering::AcqRel)
    }

    /// Applies a pure step until it takes effect on exactly the word it saw, and returns what it made.
    ///
    /// # Errors
    /// The step's refusal, with the word unchanged.
    #[inline(always)]
    pub fn update<T, E>(&self, mut step: impl FnMut(u64) -> Result<(u64, T), E>) -> Result<T, E> {
        let mut word = self.load();
        loop {
            let (next, made) = step(word)?;
            match self.0.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(made),
                Err(seen) => word = seen,
            }
        }
    }

    /// Sets the word to `next` if it still is `seen`.
    #[must_use]
    pub fn try_set(&self, seen: u64, next: u64) -> bool {
        self.0.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
