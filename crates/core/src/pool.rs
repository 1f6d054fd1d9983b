//! The pool of a sequence: a current segment that callers take integers from, and the next one that waits beside it.
//!
//! One word says which segment is current and how many of its integers are taken, so taking is one atomic addition. A
//! segment lies in the slot of its generation's parity. A caller that stalls after its addition finds, by the slot's
//! generation, whether the slot still holds the segment that it counted in. If not, what it took is skipped: an integer
//! may be lost so, never handed out twice.

use crate::sync::{AtomicU64, Ordering, fence};

/// Integers in a row, each `stride` after the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The first.
    pub first: u64,
    /// How many, at least 1.
    pub count: u32,
    /// How far apart, at least 1.
    pub stride: u32,
}

impl Segment {
    /// The integers from `skip` on, as many as there are up to `want`; `None` if there are none.
    fn part(self, skip: u32, want: u32) -> Option<Self> {
        let count = self.count.checked_sub(skip).filter(|&left| left > 0)?.min(want);
        Some(Self { first: self.first + u64::from(skip) * u64::from(self.stride), count, ..self })
    }
}

/// `generation 32 | taken 32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    generation: u32,
    taken: u32,
}

impl State {
    #[inline(always)]
    fn unpack(word: u64) -> Self {
        Self { generation: (word >> 32) as u32, taken: word as u32 }
    }

    #[inline(always)]
    fn pack(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.taken)
    }
}

/// A segment and its generation, which is written first and last, so that no reader takes half of one for a whole.
#[derive(Debug)]
struct Slot {
    generation: AtomicU64,
    first: AtomicU64,
    /// `count 32 | stride 32`.
    shape: AtomicU64,
}

impl Slot {
    const NONE: u64 = u64::MAX;

    fn new() -> Self {
        Self { generation: AtomicU64::new(Self::NONE), first: AtomicU64::new(0), shape: AtomicU64::new(0) }
    }

    #[inline(always)]
    fn read(&self, generation: u32) -> Option<Segment> {
        if self.generation.load(Ordering::Acquire) != u64::from(generation) {
            return None;
        }
        let first = self.first.load(Ordering::Relaxed);
        let shape = self.shape.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let same = self.generation.load(Ordering::Relaxed) == u64::from(generation);
        same.then_some(Segment { first, count: (shape >> 32) as u32, stride: shape as u32 })
    }

    fn write(&self, generation: u32, segment: Segment) {
        self.generation.store(Self::NONE, Ordering::Relaxed);
        fence(Ordering::Release);
        self.first.store(segment.first, Ordering::Relaxed);
        self.shape.store(u64::from(segment.count) << 32 | u64::from(segment.stride), Ordering::Relaxed);
        self.generation.store(u64::from(generation), Ordering::Release);
    }

    fn clear(&self) {
        self.generation.store(Self::NONE, Ordering::Release);
    }
}

/// The current segment and the next. Any thread may take; one at a time may [`offer`](Self::offer),
/// [`advance`](Self::advance) and [`drain`](Self::drain).
#[derive(Debug)]
pub struct Pool {
    word: AtomicU64,
    slots: [Slot; 2],
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

impl Pool {
    /// The most that one [`take`](Self::take) takes: many threads may ask at once, and 32 bits count them all.
    pub const AT_ONCE: u32 = 1 << 20;

    /// A pool without integers.
    #[must_use]
    pub fn new() -> Self {
        Self { word: AtomicU64::new(0), slots: [Slot::new(), Slot::new()] }
    }

    #[inline(always)]
    fn slot(&self, generation: u32) -> &Slot {
        &self.slots[(generation & 1) as usize]
    }

    /// Takes up to `want` integers from the current segment; `None` when it is used up. Wait-free: a second round is only
    /// needed when the segment changed meanwhile.
    #[inline(always)]
    pub fn take(&self, want: u32) -> Option<Segment> {
        let want = want.min(Self::AT_ONCE);
        loop {
            // A pool that is used up is not counted in: its count would overflow one day.
            let seen = State::unpack(self.word.load(Ordering::Acquire));
            if let Some(segment) = self.slot(seen.generation).read(seen.generation)
                && seen.taken < segment.count
            {
                let mine = State::unpack(self.word.fetch_add(u64::from(want), Ordering::AcqRel));
                if let Some(segment) = self.slot(mine.generation).read(mine.generation) {
                    return segment.part(mine.taken, want);
                }
            } else if State::unpack(self.word.load(Ordering::Acquire)).generation == seen.generation {
                return None;
            }
        }
    }

    /// Takes exactly `want` integers in a row from the current segment, or none.
    pub fn take_exactly(&self, want: u32) -> Option<Segment> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let State { generation, taken } = State::unpack(word);
            let part = self.slot(generation).read(generation)?.part(taken, want).filter(|part| part.count == want)?;
            let next = State { generation, taken: taken + want }.pack();
            match self.word.compare_exchange(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(part),
                Err(seen) => word = seen,
            }
        }
    }

    /// Whether a next segment waits.
    #[must_use]
    pub fn has_next(&self) -> bool {
        let next = State::unpack(self.word.load(Ordering::Acquire)).generation.wrapping_add(1);
        self.slot(next).read(next).is_some()
    }

    /// How many integers can be taken now, without and with the next segment.
    #[must_use]
    pub fn level(&self) -> (u64, u64) {
        let State { generation, taken } = State::unpack(self.word.load(Ordering::Acquire));
        let next = generation.wrapping_add(1);
        let count = |generation| self.slot(generation).read(generation).map_or(0, |segment| segment.count);
        let current = u64::from(count(generation).saturating_sub(taken));
        (current, current + u64::from(count(next)))
    }

    /// Puts a segment beside the current one.
    ///
    /// # Errors
    /// The segment, when one is there already.
    pub fn offer(&self, segment: Segment) -> Result<(), Segment> {
        if self.has_next() {
            return Err(segment);
        }
        let next = State::unpack(self.word.load(Ordering::Acquire)).generation.wrapping_add(1);
        self.slot(next).write(next, segment);
        Ok(())
    }

    /// Makes the next segment the current one, if it has `want` integers and the current one has not; says whether it did.
    /// What is left of the current one is skipped.
    pub fn advance(&self, want: u32) -> bool {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let State { generation, taken } = State::unpack(word);
            let next = generation.wrapping_add(1);
            let holds = |generation, taken| {
                self.slot(generation)
                    .read(generation)
                    .is_some_and(|segment| segment.count.saturating_sub(taken) >= want)
            };
            if holds(generation, taken) || !holds(next, 0) {
                return false;
            }
            let moved = State { generation: next, taken: 0 }.pack();
            match self.word.compare_exchange(word, moved, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(seen) => word = seen,
            }
        }
    }

    /// Empties the pool, and returns what nobody took: of the current segment, then of the next.
    pub fn drain(&self) -> [Option<Segment>; 2] {
        let generation = State::unpack(self.word.load(Ordering::Acquire)).generation;
        let next = generation.wrapping_add(1);
        let (current, waiting) = (self.slot(generation).read(generation), self.slot(next).read(next));
        // All is taken, and then nothing is there.
        let taken =
            State::unpack(self.word.swap(State { generation, taken: u32::MAX >> 1 }.pack(), Ordering::AcqRel)).taken;
        self.slot(next).clear();
        self.slot(generation).clear();
        [current.and_then(|segment| segment.part(taken, u32::MAX)), waiting]
    }
}
