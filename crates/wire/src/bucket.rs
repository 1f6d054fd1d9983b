//! A token bucket in one atomic word: the generic cell rate algorithm (ITU-T I.371).
//!
//! The word is the theoretical arrival time: the time at which the bucket is full again. A request moves it one
//! interval on. The bucket refuses a request that would move it further ahead of now than the burst allows.

use std::sync::atomic::{AtomicU64, Ordering};

/// A rate, and the state of the caller that it limits.
#[derive(Debug)]
pub struct Bucket {
    interval_ns: u64,
    /// The most that the word may be ahead of now.
    tolerance_ns: u64,
    full_at_ns: AtomicU64,
}

impl Bucket {
    /// Returns a full bucket, which admits `rate` requests a second in the long run and `burst` at once. Both are above
    /// 0.
    #[must_use]
    pub fn new(rate: f64, burst: u32) -> Self {
        let interval_ns = (1e9 / rate.max(1e-6)) as u64;
        let interval_ns = interval_ns.max(1);
        let tolerance_ns = interval_ns.saturating_mul(u64::from(burst.max(1)) - 1);
        Self { interval_ns, tolerance_ns, full_at_ns: AtomicU64::new(0) }
    }

    /// Admits one request at `now_ns`, a reading of any clock that does not go back.
    ///
    /// # Errors
    /// The nanoseconds until the next request can pass.
    #[inline]
    pub fn take(&self, now_ns: u64) -> Result<(), u64> {
        let mut seen = self.full_at_ns.load(Ordering::Relaxed);
        loop {
            let from = seen.max(now_ns);
            let ahead = from - now_ns;
            if ahead > self.tolerance_ns {
                return Err(ahead - self.tolerance_ns);
            }
            let next = from.saturating_add(self.interval_ns);
            match self.full_at_ns.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
    }

    /// Returns the token of a request that was admitted and not served.
    pub fn put_back(&self) {
        self.full_at_ns.fetch_sub(self.interval_ns, Ordering::Relaxed);
    }
}
