//! What a generator is made of, whatever its scheme: state that mints runs of IDs inside a window of ticks.

use crate::step::{Refusal, Run, Window};
use crate::units::{Tick, Timescale};

/// A generator's state between calls. No two of its runs have an ID in common, and none lies outside its window.
pub trait Mint: Send + Sync {
    /// What its ticks are.
    fn scale(&self) -> Timescale;

    /// The ticks that the layout has: the window of a generator that no lease narrows.
    fn full_window(&self) -> Window;

    /// Mints up to `want` IDs of one tick, in the cases that make up nearly all calls.
    ///
    /// # Errors
    /// [`Refusal`]: ask [`Mint::take_slow`].
    fn take(&self, now: Tick, want: u32) -> Result<Run, Refusal>;

    /// Mints up to `want` IDs of one tick. `clock` is read after the state is: only so is a reading below it a clock that went
    /// back, and not a caller that was slow.
    ///
    /// # Errors
    /// [`Refusal`], or what the clock fails with.
    fn take_slow<E>(&self, want: u32, clock: impl FnMut() -> Result<Tick, E>) -> Result<Result<Run, Refusal>, E>;

    /// Starts over in another rectangle of node × time: another number, or a later window. Nobody may mint meanwhile.
    fn reset(&self, window: Window);

    /// Moves the end of the window forward; says whether it moved.
    fn extend(&self, until: Tick) -> bool;

    /// Ends minting for good, and returns the first tick that was not minted in, and none after it was.
    fn close(&self) -> Tick;

    /// What [`Mint::close`] would return.
    fn used_until(&self) -> Tick;
}
