//! Forks, noticed at no cost: a forked child has another generation than its parent, and a generator remembers its own.
//!
//! The generation is in a word that is 0 after a fork ([`kernel::generation_word`]), and 0 opens no gate. The first call that
//! needs it in the child starts the next generation. A fork in the middle of that does no harm: every caller holds the GIL, and
//! a child whose only thread did not hold the GIL never gets it.

use crate::{errors, kernel};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The generation that this process or its ancestors started last; outside the word, so that a fork copies it.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The first generation of this process. Written before any caller learns that generation, as callers hold the GIL.
static FORK_GENERATION: AtomicU64 = AtomicU64::new(0);

/// The process that started the generation. Compared only where the kernel wipes no pages.
static STARTED_BY: AtomicU32 = AtomicU32::new(0);

/// No generation: a gate with it never opens. Not 0, which is what the word holds after a fork.
const NEVER: u64 = u64::MAX;

/// The generation of this process: above 0, and of no ancestor when it was forked.
pub fn generation() -> u64 {
    match kernel::generation_word().load(Ordering::Acquire) {
        0 => start_first(0),
        generation if kernel::is_wiped() || STARTED_BY.load(Ordering::Relaxed) == std::process::id() => generation,
        parents => start_first(parents),
    }
}

/// Whether a generation is still that of this process, for a hot call.
#[inline(always)]
pub fn is_current(generation: u64) -> bool {
    generation == kernel::generation_word().load(Ordering::Acquire)
        && (kernel::is_wiped() || STARTED_BY.load(Ordering::Relaxed) == std::process::id())
}

/// The generation in which this process began. Unlike [`generation`], it changes by forks alone: after a change, a lock may be
/// held for good, because the thread that holds it stayed in the parent.
pub fn fork_generation() -> u64 {
    generation();
    FORK_GENERATION.load(Ordering::Acquire)
}

/// Starts a later generation in this process, as a fork does: all gates close.
pub fn start_generation() -> u64 {
    start_after(generation())
}

#[cold]
fn start_first(before: u64) -> u64 {
    let first = start_after(before);
    FORK_GENERATION.store(first, Ordering::Release);
    first
}

#[cold]
fn start_after(before: u64) -> u64 {
    let next = LAST.fetch_add(1, Ordering::AcqRel) + 1;
    STARTED_BY.store(std::process::id(), Ordering::Relaxed);
    // Where several threads of a child start one, the first of them decides.
    match kernel::generation_word().compare_exchange(before, next, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => next,
        Err(current) => current,
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
            made: generation(),
            born: AtomicU64::new(NEVER),
            turn: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        }
    }

    /// Whether the hot path is open.
    #[inline(always)]
    pub fn is_fast(&self) -> bool {
        self.fast.load(Ordering::Acquire) == kernel::generation_word().load(Ordering::Relaxed)
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
            born if born == generation() => Entry::Seated,
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
            Some((name, value)) if self.made != generation() => {
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
        let generation = generation();
        self.born.store(generation, Ordering::Release);
        self.fast.store(if fast { generation } else { NEVER }, Ordering::Release);
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
