//! The version of a state of several words, which threads read without a lock.
//!
//! A generator mints with its word, but its node number and the end of its window are beside it. A thread that mints
//! while another thread replaces them could stamp the new node number on a sequence number of the old window. So it
//! reads the version before and after, and discards the ID if the version has changed: a sequence number may be lost,
//! and none is used twice.

use crate::sync::{AtomicU64, Ordering, fence, yield_now};

/// The number of changes of a state, twice; odd during a change.
#[derive(Debug, Default)]
pub struct Version(AtomicU64);

impl Version {
    /// Returns the version of a state that never changed.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Returns the version to compare with later; `None` during a change.
    #[inline(always)]
    #[must_use]
    pub fn seen(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Acquire)).filter(|version| version & 1 == 0)
    }

    /// Returns true if all that this thread read since it saw a version is of that version.
    #[inline(always)]
    #[must_use]
    pub fn is_still(&self, seen: u64) -> bool {
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == seen
    }

    /// Changes the state. Changes of several threads follow one another, so `change` must take moments, and must not
    /// change the state within itself.
    pub fn change<T>(&self, change: impl FnOnce() -> T) -> T {
        /// Ends the change, also after a panic.
        struct End<'a>(&'a AtomicU64, u64);

        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.store(self.1, Ordering::Release);
            }
        }

        let version = loop {
            let seen = self.0.load(Ordering::Relaxed);
            if seen & 1 == 0
                && self.0.compare_exchange_weak(seen, seen + 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                break seen;
            }
            yield_now();
        };
        let _end = End(&self.0, version + 2);
        // A thread that reads a part of the change also reads the odd version.
        fence(Ordering::Release);
        change()
    }
}
