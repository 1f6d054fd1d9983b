//! The state of a generator of any scheme, which mints runs of IDs inside a window of ticks.

use crate::step::{Refusal, Run, Window};
use crate::units::{Tick, Timescale};

/// The state of a generator between calls. No two of its runs share an ID, and no run lies outside its window.
pub trait Mint: Send + Sync {
    /// Returns epoch and length of its ticks.
    fn scale(&self) -> Timescale;

    /// Returns all ticks of the layout: the window of a generator without a lease.
    fn full_window(&self) -> Window;

    /// Mints up to `want` IDs of one tick on the fast path, which serves nearly all calls.
    ///
    /// # Errors
    /// [`Refusal`]: call [`Mint::take_slow`].
    fn take(&self, now: Tick, want: u32) -> Result<Run, Refusal>;

    /// Mints up to `want` IDs of one tick on the slow path. It reads `clock` after the state: only then does a reading
    /// below the state mean a clock that went back, and not a slow caller.
    ///
    /// # Errors
    /// [`Refusal`], or the error of the clock.
    fn take_slow<E>(&self, want: u32, clock: impl FnMut() -> Result<Tick, E>) -> Result<Result<Run, Refusal>, E>;

    /// Starts over in another rectangle of node × time: another node number, or a later window. No thread may mint
    /// meanwhile.
    fn reset(&self, window: Window);

    /// Moves the end of the window forward; returns whether it moved.
    fn extend(&self, until: Tick) -> bool;

    /// Ends minting for good, and returns the end of the used ticks: no ID has this tick or a later one.
    fn close(&self) -> Tick;

    /// Returns the tick that [`Mint::close`] would return. A thread that mints later sees all earlier writes of the caller.
    fn used_until(&self) -> Tick;
}
