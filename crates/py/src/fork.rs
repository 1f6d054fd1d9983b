//! Forks, noticed for free: each child lives in a later epoch than its parent, and a generator remembers its own.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

static EPOCH: AtomicU32 = AtomicU32::new(1);

/// No epoch is 0: a generator born in it takes the slow path for ever.
const NEVER: u32 = 0;

/// Called in the child, by `os.register_at_fork`.
pub fn after_fork_in_child() {
    EPOCH.fetch_add(1, Ordering::Release);
}

/// Whether a generator may use the hot path: one compare, for fork, close and clock together.
pub struct Gate {
    fast: AtomicU32,
    born: AtomicU32,
    closed: AtomicBool,
}

/// What a generator on the slow path finds.
pub enum Passage {
    /// Nothing in the way.
    Open,
    /// The process is a child of the one that the generator was made in, or it was never seated.
    Unseated,
    /// The generator was closed.
    Closed,
}

impl Gate {
    /// A gate without a seat yet.
    pub fn new() -> Self {
        Self { fast: AtomicU32::new(NEVER), born: AtomicU32::new(NEVER), closed: AtomicBool::new(false) }
    }

    /// Whether the hot path is open.
    #[inline(always)]
    pub fn is_fast(&self) -> bool {
        self.fast.load(Ordering::Acquire) == EPOCH.load(Ordering::Relaxed)
    }

    /// What the slow path has to do first.
    pub fn passage(&self) -> Passage {
        if self.closed.load(Ordering::Acquire) {
            Passage::Closed
        } else if self.born.load(Ordering::Acquire) == EPOCH.load(Ordering::Acquire) {
            Passage::Open
        } else {
            Passage::Unseated
        }
    }

    /// Whether it ever had a seat: if so, and it has none now, the process was forked.
    pub fn was_seated(&self) -> bool {
        self.born.load(Ordering::Acquire) != NEVER
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
