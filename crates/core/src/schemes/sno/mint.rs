//! The state of a generator between calls.

use super::snapshot::Snapshot;
use super::step::{Bounds, Drift, State, step, tick_tock};
use super::{TIME, TIMESCALE, WINDOW};
use crate::cell::Cell;
use crate::error::Error;
use crate::fence::Fence;
use crate::mint;
use crate::step::{Refusal, Run, Window};
use crate::sync::{AtomicU32, Mutex, Ordering, lock};
use crate::units::{Tick, Timescale};

/// The state of a generator between calls: one word, and the drift beside it.
#[derive(Debug)]
pub struct Mint {
    cell: Cell,
    drift: Mutex<Drift>,
    fence: Fence,
    bounds: AtomicU32,
    /// The earliest floor of any window of a resumed generator.
    resumed: Tick,
}

impl Mint {
    /// Returns the state of a generator that has minted nothing.
    #[must_use]
    pub fn new(bounds: Bounds, window: Window) -> Self {
        Self::at(State::first(bounds, window.floor), Drift::first(window.floor), bounds, window.until)
    }

    fn at(state: State, drift: Drift, bounds: Bounds, until: Tick) -> Self {
        Self {
            cell: Cell::new(state.pack()),
            drift: Mutex::new(drift),
            fence: Fence::new(until),
            bounds: AtomicU32::new(bounds.pack()),
            resumed: Tick(0),
        }
    }

    /// Returns a generator that mints after the last unit of a snapshot, on both timelines, in every window of
    /// [`mint::Mint::reset`].
    ///
    /// # Errors
    /// As [`Mint::restore`].
    pub fn resume(snapshot: &Snapshot) -> Result<Self, Error> {
        let restored = Self::restore(snapshot)?;
        let resumed = mint::Mint::used_until(&restored);
        Ok(Self { resumed, ..restored })
    }

    /// Returns a generator that continues after a snapshot.
    ///
    /// # Errors
    /// [`Error::Snapshot`]: its units do not fit the layout, or its sequence number lies below its bounds.
    pub fn restore(snapshot: &Snapshot) -> Result<Self, Error> {
        let bounds = Bounds::new(snapshot.sequence_min, snapshot.sequence_max)?;
        for (name, unit) in [("wallHi", snapshot.wall_hi), ("wallSafe", snapshot.wall_safe)] {
            if unit > TIME.max() {
                return Err(Error::Snapshot(format!("{name} {unit} is outside 0..{}", TIME.max())));
            }
        }
        let min = u32::from(bounds.min);
        if snapshot.sequence != 0 && snapshot.sequence < min {
            return Err(Error::Snapshot(format!("sequence {} is below sequenceMin {min}", snapshot.sequence)));
        }
        // A number above the bounds is kept: it may be valid in other bounds.
        let next = snapshot.sequence.clamp(min, State::MAX_NEXT - 1) + 1;
        let timeline = snapshot.wall_hi << 1 | u64::from(snapshot.drifts & 1);
        let drift = Drift { safe: Tick(snapshot.wall_safe), count: snapshot.drifts };
        Ok(Self::at(State { timeline, next }, drift, bounds, WINDOW.until))
    }

    /// Applies [`tick_tock`]; `None` if the state has changed since it was read.
    fn flip(&self, word: u64, now: Tick, want: u32) -> Result<Option<Run>, Refusal> {
        // The drift changes only under this lock, together with the word.
        let mut drift = lock(&self.drift);
        if self.cell.load() != word {
            return Ok(None);
        }
        // On either timeline.
        if word == Cell::CLOSED {
            return Err(Refusal::Rollback { until: WINDOW.until });
        }
        let (bounds, until) = (self.bounds(), self.fence.until());
        let (next, changed, run) = tick_tock(State::unpack(word), *drift, now, want, bounds, until)?;
        if !self.cell.try_set(word, next.pack()) {
            return Ok(None);
        }
        *drift = changed;
        Ok(Some(run))
    }

    /// Sets other bounds, which hold from the next [`mint::Mint::reset`] on.
    pub fn bind(&self, bounds: Bounds) {
        self.bounds.store(bounds.pack(), Ordering::Relaxed);
    }

    fn used(&self, state: State, drift: Drift) -> Tick {
        let minted = state.next > u32::from(self.bounds().min);
        Tick((state.unit().0 + u64::from(minted)).max(drift.safe.0 + 1))
    }

    /// Returns the bounds.
    #[inline(always)]
    #[must_use]
    pub fn bounds(&self) -> Bounds {
        Bounds::unpack(self.bounds.load(Ordering::Relaxed))
    }

    /// Returns a consistent pair of state and drift.
    #[must_use]
    pub fn view(&self) -> (State, Drift) {
        let drift = lock(&self.drift);
        (State::unpack(self.cell.load()), *drift)
    }

    /// Returns the data from which another generator, or a later one, continues.
    #[must_use]
    pub fn snapshot(&self, partition: u16, now: Tick) -> Snapshot {
        let (state, drift) = self.view();
        let bounds = self.bounds();
        Snapshot {
            partition,
            sequence_min: bounds.min,
            sequence_max: bounds.max,
            sequence: state.next.saturating_sub(1).max(u32::from(bounds.min)),
            now: now.0,
            wall_hi: state.unit().0,
            wall_safe: drift.safe.0,
            drifts: drift.count,
            leased: None,
        }
    }
}

impl mint::Mint for Mint {
    #[inline(always)]
    fn scale(&self) -> Timescale {
        TIMESCALE
    }

    fn full_window(&self) -> Window {
        WINDOW
    }

    #[inline(always)]
    fn take(&self, now: Tick, want: u32) -> Result<Run, Refusal> {
        self.cell.update(|word| {
            step(State::unpack(word), now, want, self.bounds(), self.fence.until())
                .map(|(state, run)| (state.pack(), run))
        })
    }

    fn take_slow<E>(&self, want: u32, mut clock: impl FnMut() -> Result<Tick, E>) -> Result<Result<Run, Refusal>, E> {
        loop {
            let word = self.cell.load();
            let now = clock()?;
            let state = State::unpack(word);
            let minted = match step(state, now, want, self.bounds(), self.fence.until()) {
                Err(Refusal::Rollback { .. }) => self.flip(word, now, want),
                other => other.map(|(next, run)| self.cell.try_set(word, next.pack()).then_some(run)),
            };
            match minted {
                Ok(Some(run)) => return Ok(Ok(run)),
                Ok(None) => {}
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
    }

    fn reset(&self, window: Window) {
        let floor = window.floor.max(self.resumed);
        *lock(&self.drift) = Drift::first(floor);
        self.fence.reset(window.until);
        self.cell.reset(|_| State::first(self.bounds(), floor).pack());
    }

    fn extend(&self, until: Tick) -> bool {
        self.fence.extend(until)
    }

    /// On either timeline.
    fn close(&self) -> Tick {
        let drift = lock(&self.drift);
        self.used(State::unpack(self.cell.close()), *drift)
    }

    fn used_until(&self) -> Tick {
        let drift = lock(&self.drift);
        self.used(State::unpack(self.cell.load_in_order()), *drift)
    }
}
