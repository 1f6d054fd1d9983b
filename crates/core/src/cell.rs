//! One atomic word for a generator's state.
//!
//! The Go original of sno keeps tick and sequence in two words, and so mints duplicates: a caller that stalls between
//! the two stamps an old tick on a number of the new one. Here a mint is a single compare-and-set of the full state. It
//! takes effect on exactly the state that the step saw, or not at all.

use crate::sync::{AtomicU64, Ordering};

/// The state of a generator, which its scheme packs into 64 bits.
#[derive(Debug)]
pub struct Cell(AtomicU64);

impl Cell {
    /// The word of a closed generator. The step of every scheme refuses on it, and no update replaces it.
    pub const CLOSED: u64 = u64::MAX;

    /// Returns a cell with `word` in it.
    #[must_use]
    pub fn new(word: u64) -> Self {
        Self(AtomicU64::new(word))
    }

    /// Returns the current word.
    #[inline(always)]
    #[must_use]
    pub fn load(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Returns the current word, in one order with all updates: an update that is not in it sees all earlier writes of
    /// this thread.
    #[must_use]
    pub fn load_in_order(&self) -> u64 {
        self.0.fetch_add(0, Ordering::AcqRel)
    }

    /// Replaces the word by a function of it, unless the cell is closed.
    pub fn reset(&self, make: impl Fn(u64) -> u64) {
        let _ = self.update(|word| if word == Self::CLOSED { Err(()) } else { Ok((make(word), ())) });
    }

    /// Closes the cell for good, and returns its last word. A thread in the middle of a step sees the change.
    pub fn close(&self) -> u64 {
        self.0.swap(Self::CLOSED, Ordering::AcqRel)
    }

    /// Applies a pure step until it takes effect on exactly the word that it saw; returns the step's result.
    ///
    /// # Errors
    /// The step's refusal; the word is unchanged.
    ///
    /// ```
    /// use mintage_core::cell::Cell;
    /// let cell = Cell::new(7);
    /// assert_eq!(cell.update(|word| Ok::<_, ()>((word + 1, word))), Ok(7));
    /// assert_eq!(cell.update(|_| Err::<(u64, ()), _>("refused")), Err("refused"));
    /// assert_eq!(cell.load(), 8);
    /// ```
    #[inline(always)]
    pub fn update<T, E>(&self, mut step: impl FnMut(u64) -> Result<(u64, T), E>) -> Result<T, E> {
        let mut word = self.load();
        loop {
            let (next, result) = step(word)?;
            match self.0.compare_exchange_weak(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(result),
                Err(seen) => word = seen,
            }
        }
    }

    /// Sets the word to `next` if it is still `seen`; returns whether it was.
    #[must_use]
    pub fn try_set(&self, seen: u64, next: u64) -> bool {
        self.0.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}
