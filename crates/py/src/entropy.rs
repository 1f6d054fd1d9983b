//! Random bytes for IDs and keys: one generator a process, which all threads share under the GIL; without it, one a thread.
//!
//! It is seeded by the kernel at first use and again in a later generation (a fork, or `mintage.after_restore()`), after so
//! many bytes, and after a second: so a copy of the process that is not announced draws the same bytes for a second at most.
//! The vDSO's `getrandom` is no way around it: its state is in this memory as well, and no call tells it of a restore.

use crate::{fork, hot, values};
use mintage_core::entropy::Entropy;
use mintage_core::units::UnixMs;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

const LONGEST_MS: i64 = 1000;

struct Source {
    entropy: Entropy,
    /// `NEVER` while the fast path is closed.
    generation: u64,
    seeded: UnixMs,
}

/// A generation that no process ever has.
const NEVER: u64 = u64::MAX;

hot::per_thread! {
    SOURCE: Source = Source { entropy: Entropy::new(), generation: NEVER, seeded: UnixMs(0) }
}

/// True while every draw takes the slow path.
static IS_SLOW: AtomicBool = AtomicBool::new(false);

/// Makes every draw take the slow path, where a test can replace it; or opens the fast path again.
pub fn force_slow_path(py: Python<'_>, is_slow: bool) {
    IS_SLOW.store(is_slow, Ordering::Relaxed);
    // Other threads that have a source of their own ask each time.
    SOURCE.with(py, |source| source.generation = NEVER);
}

/// Fills `bytes`; `false` where the kernel has to be asked first.
#[inline(always)]
pub fn fill_fast(py: Python<'_>, bytes: &mut [u8]) -> bool {
    if hot::IS_PARALLEL && IS_SLOW.load(Ordering::Relaxed) {
        return false;
    }
    SOURCE.with(py, |source| {
        let age_ms = hot::now().0 - source.seeded.0;
        fork::is_current(source.generation) && (0..LONGEST_MS).contains(&age_ms) && source.entropy.fill(bytes)
    })
}

/// Fills `bytes`.
///
/// `GenerationError`: `system.random`.
pub fn fill(py: Python<'_>, bytes: &mut [u8]) -> PyResult<()> {
    for part in bytes.chunks_mut(1 << 16) {
        if !fill_fast(py, part) {
            let mut seed = [0; 32];
            values::draw(py, &mut seed)?;
            SOURCE.with(py, |source| {
                source.entropy.seed(seed);
                let generation = if IS_SLOW.load(Ordering::Relaxed) { NEVER } else { fork::generation() };
                (source.generation, source.seeded) = (generation, hot::now());
            });
            // The clock may have been stepped in between: that ends no seed that is as new as this one.
            let is_filled = SOURCE.with(py, |source| source.entropy.fill(part));
            assert!(is_filled, "a seed is good for more than that");
        }
    }
    Ok(())
}

/// An array of random bytes.
pub fn bytes<const N: usize>(py: Python<'_>) -> PyResult<[u8; N]> {
    let mut bytes = [0; N];
    fill(py, &mut bytes)?;
    Ok(bytes)
}
