//! Forks, noticed at no cost: a forked child has another generation than its parent, and a generator remembers its own.
//!
//! The generation is in a word that is 0 after a fork ([`kernel::generation_word`]), and 0 opens no gate. The first call that
//! needs it in the child starts the next generation. A fork in the middle of that does no harm: every caller is attached to the
//! interpreter, and a fork from Python stops all other threads first, or happens with the GIL held. A child of a fork in C whose
//! only thread did not hold the GIL never gets it.

use crate::{errors, hot, kernel};
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The generation that this process or its ancestors started last; outside the word, so that a fork copies it.
static LAST: AtomicU64 = AtomicU64::new(0);

/// The first generation of this process. Written before that generation is published.
static FORK_GENERATION: AtomicU64 = AtomicU64::new(0);

/// The process that started the generation. Compared only where the kernel wipes no pages.
static STARTED_BY: AtomicU32 = AtomicU32::new(0);

/// The bit of the word that closes all gates. No generation has it.
const CLOSED: u64 = 1 << 63;

/// That bit while a test's clock is in force, or 0; outside the word, so that a fork copies it.
static GATES: AtomicU64 = AtomicU64::new(0);

/// No generation: a gate with it never opens. It is not 0, as the word is 0 after a fork.
pub const NEVER: u64 = u64::MAX;

/// The generation of this process: above 0, and of no ancestor when it was forked.
pub fn generation() -> u64 {
    match kernel::generation_word().load(Ordering::Acquire) & !CLOSED {
        0 => start_first(0),
        generation if kernel::is_wiped() || STARTED_BY.load(Ordering::Relaxed) == std::process::id() => generation,
        parents => start_first(parents),
    }
}

/// Closes all gates, so that every call takes the slow path, or opens them again.
pub fn close_gates(is_closed: bool) {
    generation();
    GATES.store(if is_closed { CLOSED } else { 0 }, Ordering::SeqCst);
    let word = kernel::generation_word();
    if is_closed {
        word.fetch_or(CLOSED, Ordering::SeqCst)
    } else {
        word.fetch_and(!CLOSED, Ordering::SeqCst)
    };
}

/// Returns true while all gates are closed.
#[inline(always)]
pub fn are_gates_closed() -> bool {
    GATES.load(Ordering::Acquire) != 0
}

/// Returns true if a generation is that of this process and the gates are not closed, for a hot call.
#[inline(always)]
pub fn is_open_in(generation: u64) -> bool {
    is_in(generation, kernel::generation_word().load(Ordering::Acquire))
}

/// Returns true if a generation is that of this process.
#[inline(always)]
pub fn is_current(generation: u64) -> bool {
    is_in(generation, kernel::generation_word().load(Ordering::Acquire) & !CLOSED)
}

#[inline(always)]
fn is_in(generation: u64, word: u64) -> bool {
    generation == word && (kernel::is_wiped() || STARTED_BY.load(Ordering::Relaxed) == std::process::id())
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

/// Starts the first generation of a process. Several threads of a child that call it get the same generation.
#[cold]
fn start_first(before: u64) -> u64 {
    /// The process, one of whose threads starts its first generation; a child finds its parent here, or 0.
    static STARTING: AtomicU32 = AtomicU32::new(0);

    let here = std::process::id();
    loop {
        let other = STARTING.load(Ordering::Relaxed);
        if other != here && STARTING.compare_exchange(other, here, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            break;
        }
        std::thread::yield_now();
    }
    let word = kernel::generation_word();
    let mut current = word.load(Ordering::Acquire) & !CLOSED;
    if current == before {
        current = LAST.fetch_add(1, Ordering::AcqRel) + 1;
        STARTED_BY.store(here, Ordering::Relaxed);
        FORK_GENERATION.store(current, Ordering::Relaxed);
        word.store(current | GATES.load(Ordering::SeqCst), Ordering::Release);
    }
    STARTING.store(0, Ordering::Release);
    current
}

/// Starts a later generation of this process. If several threads do, the first one decides.
#[cold]
fn start_after(before: u64) -> u64 {
    let next = LAST.fetch_add(1, Ordering::AcqRel) + 1;
    let replace = |word: u64| (word & !CLOSED == before).then(|| next | GATES.load(Ordering::SeqCst));
    match kernel::generation_word().fetch_update(Ordering::SeqCst, Ordering::SeqCst, replace) {
        Ok(_) => next,
        Err(current) => current & !CLOSED,
    }
}

/// The gate of a generator to the hot path: one comparison, for fork, close and clock together.
pub struct Gate {
    /// The generation in which the hot path is open.
    open_in: AtomicU64,
    /// The generation in which the generator was created.
    pub created_in: u64,
    /// The generation in which the generator was attached last.
    attached_in: AtomicU64,
    detach_count: AtomicU64,
    closed: AtomicBool,
    /// The changes of what the generator mints with: its number, its window, and whether the gate is open.
    changes: hot::Changes,
}

/// A generation, and the number of times that a generator was detached. A grant that was requested at another moment must not
/// attach it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Moment(u64, u64);

/// The state in which a call on the slow path finds a generator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// It is attached in this process.
    Attached,
    /// It was never attached.
    First,
    /// It was attached in a parent of this process, and may be attached anew here.
    Forked,
}

impl Gate {
    /// A gate of a generator that is not attached yet.
    pub fn new() -> Self {
        Self::created_in(generation())
    }

    /// The same, of a generator that counts as created in a generation.
    pub fn created_in(generation: u64) -> Self {
        Self {
            open_in: AtomicU64::new(NEVER),
            created_in: generation,
            attached_in: AtomicU64::new(NEVER),
            detach_count: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            changes: hot::Changes::new(),
        }
    }

    /// Begins to mint; `None` while another thread changes the generator.
    #[inline(always)]
    pub fn seen(&self) -> Option<u64> {
        self.changes.seen()
    }

    /// Returns true if no other thread has changed the generator since. Otherwise the caller discards its ID.
    #[inline(always)]
    pub fn is_still(&self, seen: u64) -> bool {
        self.changes.is_still(seen)
    }

    /// Changes what the generator mints with, one thread after another; `change` must not run Python.
    pub fn change<T>(&self, change: impl FnOnce() -> T) -> T {
        self.changes.change(change)
    }

    /// Returns what `read` reads of the generator, all of it between two changes.
    pub fn read<T>(&self, read: impl Fn() -> T) -> T {
        loop {
            if let Some(seen) = self.seen() {
                let value = read();
                if self.is_still(seen) {
                    return value;
                }
            }
            std::thread::yield_now();
        }
    }

    /// Returns the present moment.
    pub fn moment(&self) -> Moment {
        Moment(generation(), self.detach_count.load(Ordering::Acquire))
    }

    /// Returns true if a grant that was requested at this moment may attach the generator. Call it within a change, as other
    /// threads request grants too.
    pub fn may_attach(&self, asked: Moment) -> bool {
        !self.is_closed() && self.entry() != Entry::Attached && self.moment() == asked
    }

    /// Returns true if the hot path is open.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.open_in.load(Ordering::Acquire) == kernel::generation_word().load(Ordering::Relaxed)
    }

    /// Returns true if the generator was closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Returns true if the generator is attached in this process, and not closed. Ask again after anything that may run
    /// Python, such as a user's clock: that can fork, or close.
    pub fn is_attached(&self) -> bool {
        !self.is_closed() && self.entry() == Entry::Attached
    }

    fn entry(&self) -> Entry {
        match self.attached_in.load(Ordering::Acquire) {
            NEVER => Entry::First,
            attached_in if attached_in == generation() => Entry::Attached,
            _ => Entry::Forked,
        }
    }

    /// Admits a call on the slow path. `given` is the name and the value of the node number that the user gave the generator.
    ///
    /// `GenerationError`: `generator.closed`; `fork.shared_node` in a child, where that number is the parent's.
    pub fn enter(&self, py: Python<'_>, given: Option<(&str, u64)>) -> PyResult<Entry> {
        if self.is_closed() {
            return Err(errors::closed(py));
        }
        match given {
            // A given number belongs to the process that created the generator, even if no ID used it there.
            Some((name, value)) if self.created_in != generation() => {
                let message = format!(
                    "this process is a fork or a copy of the one that made the generator for {name} {value}; both would mint the \
                     same IDs: make a new generator here, with a {name} of its own"
                );
                Err(errors::generation(py, "fork.shared_node", &message, None))
            }
            _ => Ok(self.entry()),
        }
    }

    /// Attaches the generator in this process; opens the hot path if the clock is the system's. A Linux that wipes no pages
    /// keeps it closed, and the slow path compares the process id. Other systems fork by the C library alone.
    pub fn open(&self, is_hot: bool) {
        let generation = generation();
        self.attached_in.store(generation, Ordering::Release);
        let is_open = is_hot && (kernel::is_wiped() || cfg!(not(target_os = "linux")));
        self.open_in.store(if is_open { generation } else { NEVER }, Ordering::Release);
    }

    /// Detaches the generator, until its next call attaches it anew.
    pub fn detach(&self) {
        self.detach_count.fetch_add(1, Ordering::AcqRel);
        self.open_in.store(NEVER, Ordering::Release);
        self.attached_in.store(NEVER, Ordering::Release);
    }

    /// Closes the gate for good, and returns its entry; `None` if it was closed already.
    pub fn close(&self) -> Option<Entry> {
        self.open_in.store(NEVER, Ordering::Release);
        (!self.closed.swap(true, Ordering::AcqRel)).then(|| self.entry())
    }
}
