//! Random bytes for IDs and keys: one generator a process, which all threads share under the GIL; without it, one a thread.
//!
//! It is seeded by the kernel at first use and again in a later generation (a fork, or `mintage.after_restore()`), after 64
//! KiB, and after a second. So a copy of the process that no call announces draws the same bytes for a second at most. The
//! vDSO's `getrandom` has the same limit: its state is in this memory too, and no call tells it of a restore.

use crate::{fork, hot, values};
use mintage_core::entropy::Entropy;
use mintage_core::units::UnixMs;
use pyo3::prelude::*;

const LONGEST_MS: i64 = 1000;

struct Source {
    entropy: Entropy,
    generation: u64,
    seeded: UnixMs,
}

hot::per_thread! {
    SOURCE: Source = Source { entropy: Entropy::unseeded(), generation: fork::NEVER, seeded: UnixMs(0) }
}

/// Fills `bytes`; returns false if it needs a new seed of the kernel first, or all gates are closed.
#[inline(always)]
pub fn fill_fast(py: Python<'_>, bytes: &mut [u8]) -> bool {
    SOURCE.with(py, |source| {
        let age_ms = hot::now().0 - source.seeded.0;
        fork::is_open_in(source.generation) && (0..LONGEST_MS).contains(&age_ms) && source.entropy.fill(bytes)
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
                (source.generation, source.seeded) = (fork::generation(), hot::now());
            });
            // A clock that was set in between does not end a seed that is this new.
            let is_filled = SOURCE.with(py, |source| source.entropy.fill(part));
            assert!(is_filled, "a seed is good for more than that");
        }
    }
    Ok(())
}
