//! Forks, noticed for free: each child lives in a later epoch than its parent, and a generator remembers its own.

use crate::errors;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

static EPOCH: AtomicU32 = AtomicU32::new(1);

/// No epoch is 0: a generator born in it takes the slow path for ever.
const NEVER: u32 = 0;

/// Called in the child by the C library, so that a process forked by no Python code notices as well.
pub extern "C" fn after_fork_in_child() {
    EPOCH.fetch_add(1, Ordering::Release);
}

/// Whether a generator may use the hot path: one compare, for fork, close and clock together.
pub struct Gate {
    fast: AtomicU32,
    made: u32,
    born: AtomicU32,
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
        let made = EPOCH.load(Ordering::Acquire);
        Self { fast: AtomicU32::new(NEVER), made, born: AtomicU32::new(NEVER), closed: AtomicBool::new(false) }
    }

    /// Whether the hot path is open.
    #[inline(always)]
    pub fn is_fast(&self) -> bool {
        self.fast.load(Ordering::Acquire) == EPOCH.load(Ordering::Relaxed)
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Whether it has its seat in this process.
    pub fn is_seated(&self) -> bool {
        self.born.load(Ordering::Acquire) == EPOCH.load(Ordering::Acquire)
    }

    /// Lets a call in on the slow path. `given` is what the user gave the generator for its own: its name and value.
    ///
    /// `GenerationError`: `generator.closed`; `fork.shared_node` in a child, where what was given is the parent's.
    pub fn enter(&self, py: Python<'_>, given: Option<(&str, u64)>) -> PyResult<Entry> {
        if self.is_closed() {
            return Err(errors::generation(py, "generator.closed", "the generator is closed", None));
        }
        let epoch = EPOCH.load(Ordering::Acquire);
        match given {
            // What was given belongs to the process that it was given in, whether or not it was used there.
            Some((name, value)) if self.made != epoch => {
                let message = format!(
                    "this process is a fork of the one that made the generator for {name} {value}; both would mint the \
                     same IDs: make a new generator here, with a {name} of its own"
                );
                Err(errors::generation(py, "fork.shared_node", &message, None))
            }
            _ => Ok(match self.born.load(Ordering::Acquire) {
                NEVER => Entry::First,
                born if born == epoch => Entry::Seated,
                _ => Entry::Forked,
            }),
        }
    }

    /// Opens the gate in this process; the hot path only where the clock is the system's.
    pub fn seat(&self, fast: bool) {
        let epoch = EPOCH.load(Ordering::Acquire);
        self.born.store(epoch, Ordering::Release);
        self.fast.store(if fast { epoch } else { NEVER }, Ordering::Release);
    }

    /// Closes it for good.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.fast.store(NEVER, Ordering::Release);
    }
}
