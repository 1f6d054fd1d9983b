//! Forks, noticed for free: each child lives in a later epoch than its parent, and a generator remembers its own.
//!
//! The epoch stands in a word that is 0 after a fork ([`kernel::epoch_word`]), and 0 opens no gate. The first to ask
//! for it in the child draws the next one. A fork in the middle of that does no harm: all who ask hold the GIL, and a
//! child whose only thread did not hold it never gets it.

use crate::{errors, kernel};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The epoch drawn last by this process or its ancestors; outside the word, so that a fork copies it.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The first epoch of this process. Written before anybody can be told of that epoch, as who asks holds the GIL.
static BIRTH: AtomicU64 = AtomicU64::new(0);

/// The process that drew it. Compared only where the kernel wipes no pages.
static DRAWN_BY: AtomicU32 = AtomicU32::new(0);

/// No epoch: a generator born in it takes the slow path for ever. Not 0, which is what the word holds after a fork.
const NEVER: u64 = u64::MAX;

/// This process's epoch: above 0, and no ancestor's when it was forked.
pub fn epoch() -> u64 {
    match kernel::epoch_word().load(Ordering::Acquire) {
        0 => begin(0),
        epoch if kernel::is_wiped() || DRAWN_BY.load(Ordering::Relaxed) == std::process::id() => epoch,
        parents => begin(parents),
    }
}

/// Whether it still is that epoch, for a hot call.
#[inline(always)]
pub fn is_in(epoch: u64) -> bool {
    epoch == kernel::epoch_word().load(Ordering::Acquire)
        && (kernel::is_wiped() || DRAWN_BY.load(Ordering::Relaxed) == std::process::id())
}

/// The epoch in which this process began: unlike [`epoch`], it changes by a fork alone, and so do those whom a lock may keep
/// out for good because its holder stayed behind.
pub fn birth() -> u64 {
    epoch();
    BIRTH.load(Ordering::Acquire)
}

/// Moves this process to a later epoch, as a fork does: all gates are shut.
pub fn start_epoch() -> u64 {
    draw(epoch())
}

#[cold]
fn begin(before: u64) -> u64 {
    let first = draw(before);
    BIRTH.store(first, Ordering::Release);
    first
}

#[cold]
fn draw(before: u64) -> u64 {
    let next = LAST.fetch_add(1, Ordering::AcqRel) + 1;
    DRAWN_BY.store(std::process::id(), Ordering::Relaxed);
    // Of threads that come together in a child the first names the epoch.
    match kernel::epoch_word().compare_exchange(before, next, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => next,
        Err(epoch) => epoch,
    }
}

/// Whether a generator may use the hot path: one compare, for fork, close and clock together.
pub struct Gate {
    fast: AtomicU64,
    made: u64,
    born: AtomicU64,
    turn: AtomicU64,
    closed: AtomicBool,
}

/// How a generator on the slow path stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// It has its seat in this process.
    Seated,
    /// It was never seated.
    First,
    /// It was seated in a parent of this process, and may have a seat of its own here.
    Forked,
}

impl Gate {
    /// A gate without a seat yet.
    pub fn new() -> Self {
        Self {
            fast: AtomicU64::new(NEVER),
            made: epoch(),
            born: AtomicU64::new(NEVER),
            turn: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// Whether the hot path is open.
    #[inline(always)]
    pub fn is_fast(&self) -> bool {
        self.fast.load(Ordering::Acquire) == kernel::epoch_word().load(Ordering::Relaxed)
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Whether it has its seat in this process, and is not closed. To be asked again after anything that may run Python, such
    /// as a user's clock: that can fork, or close.
    pub fn is_seated(&self) -> bool {
        !self.is_closed() && self.stands() == Entry::Seated
    }

    fn stands(&self) -> Entry {
        match self.born.load(Ordering::Acquire) {
            NEVER => Entry::First,
            born if born == epoch() => Entry::Seated,
            _ => Entry::Forked,
        }
    }

    /// Lets a call in on the slow path. `given` is what the user gave the generator for its own: its name and value.
    ///
    /// `GenerationError`: `generator.closed`; `fork.shared_node` in a child, where what was given is the parent's.
    pub fn enter(&self, py: Python<'_>, given: Option<(&str, u64)>) -> PyResult<Entry> {
        if self.is_closed() {
            return Err(errors::generation(py, "generator.closed", "the generator is closed", None));
        }
        match given {
            // What was given belongs to the process that it was given in, whether or not it was used there.
            Some((name, value)) if self.made != epoch() => {
                let message = format!(
                    "this process is a fork or a copy of the one that made the generator for {name} {value}; both would mint the \
                     same IDs: make a new generator here, with a {name} of its own"
                );
                Err(errors::generation(py, "fork.shared_node", &message, None))
            }
            _ => Ok(self.stands()),
        }
    }

    /// Opens the gate in this process; the hot path only where the clock is the system's.
    pub fn seat(&self, fast: bool) {
        let epoch = epoch();
        self.born.store(epoch, Ordering::Release);
        self.fast.store(if fast { epoch } else { NEVER }, Ordering::Release);
    }

    /// Shuts it until its generator is seated anew, by its next call.
    pub fn unseat(&self) {
        self.turn.fetch_add(1, Ordering::AcqRel);
        self.fast.store(NEVER, Ordering::Release);
        self.born.store(NEVER, Ordering::Release);
    }

    /// How often it was shut: what was granted in an earlier turn opens it no more.
    pub fn turn(&self) -> u64 {
        self.turn.load(Ordering::Acquire)
    }

    /// Closes it for good, and says how it stood; `None` where it was closed before.
    pub fn close(&self) -> Option<Entry> {
        self.fast.store(NEVER, Ordering::Release);
        (!self.closed.swap(true, Ordering::AcqRel)).then(|| self.stands())
    }
}
