//! The buffer of a sequence: a current segment, from which callers take integers, and a next one.
//!
//! One word has the index of the current segment and the number of integers taken from it, so a take is one atomic
//! addition. The parity of a segment's index selects its slot. A caller that stalls after its addition compares the
//! slot's index with its own. If another segment is in the slot by then, the caller skips the integers that it counted:
//! an integer may be lost, and none is handed out twice.

use crate::sync::{AtomicU64, Ordering, fence};

/// Integers in a row, each `stride` after its predecessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The first integer.
    pub first: u64,
    /// The number of integers, at least 1.
    pub count: u32,
    /// The distance between two integers, at least 1.
    pub stride: u32,
}

impl Segment {
    /// Returns up to `want` integers from the `skip`-th on; `None` if none remain.
    fn slice(self, skip: u32, want: u32) -> Option<Self> {
        let count = self.count.checked_sub(skip).filter(|&left| left > 0)?.min(want);
        Some(Self { first: self.first + u64::from(skip) * u64::from(self.stride), count, ..self })
    }
}

/// `index 32 | taken 32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    index: u32,
    taken: u32,
}

impl State {
    #[inline(always)]
    fn unpack(word: u64) -> Self {
        Self { index: (word >> 32) as u32, taken: word as u32 }
    }

    #[inline(always)]
    fn pack(self) -> u64 {
        u64::from(self.index) << 32 | u64::from(self.taken)
    }
}

/// A segment and its index. The index is invalid while the segment is written, so no reader sees half a segment.
#[derive(Debug)]
struct Slot {
    index: AtomicU64,
    first: AtomicU64,
    /// `count 32 | stride 32`.
    shape: AtomicU64,
}

impl Slot {
    const NONE: u64 = u64::MAX;

    fn new() -> Self {
        Self { index: AtomicU64::new(Self::NONE), first: AtomicU64::new(0), shape: AtomicU64::new(0) }
    }

    #[inline(always)]
    fn read(&self, index: u32) -> Option<Segment> {
        if self.index.load(Ordering::Acquire) != u64::from(index) {
            return None;
        }
        let first = self.first.load(Ordering::Relaxed);
        let shape = self.shape.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let is_unchanged = self.index.load(Ordering::Relaxed) == u64::from(index);
        is_unchanged.then_some(Segment { first, count: (shape >> 32) as u32, stride: shape as u32 })
    }

    fn write(&self, index: u32, segment: Segment) {
        self.index.store(Self::NONE, Ordering::Relaxed);
        fence(Ordering::Release);
        self.first.store(segment.first, Ordering::Relaxed);
        self.shape.store(u64::from(segment.count) << 32 | u64::from(segment.stride), Ordering::Relaxed);
        self.index.store(u64::from(index), Ordering::Release);
    }

    fn clear(&self) {
        self.index.store(Self::NONE, Ordering::Release);
    }
}

/// A current segment and a next one. Any thread may take integers. One thread at a time may [`offer`](Self::offer),
/// [`advance`](Self::advance) and [`drain`](Self::drain).
///
/// ```
/// use mintage_core::buffer::{Buffer, Segment};
/// let buffer = Buffer::empty();
/// buffer.offer(Segment { first: 1, count: 10, stride: 1 }).unwrap();
/// assert!(buffer.advance(1));
/// assert_eq!(buffer.take(3).map(|taken| (taken.first, taken.count)), Some((1, 3)));
/// assert_eq!(buffer.level(), (7, 7));
/// ```
#[derive(Debug)]
pub struct Buffer {
    word: AtomicU64,
    slots: [Slot; 2],
}

impl Buffer {
    /// The most integers of one [`take`](Self::take). Many threads may ask at once, and 32 bits must count for them
    /// all.
    pub const MAX_TAKE: u32 = 1 << 20;

    /// Returns a buffer without segments.
    #[must_use]
    pub fn empty() -> Self {
        Self { word: AtomicU64::new(0), slots: [Slot::new(), Slot::new()] }
    }

    #[inline(always)]
    fn slot(&self, index: u32) -> &Slot {
        &self.slots[(index & 1) as usize]
    }

    /// Takes up to `want` integers from the current segment; `None` if it is used up. Wait-free: only a change of the
    /// segment makes a second round necessary.
    #[inline(always)]
    pub fn take(&self, want: u32) -> Option<Segment> {
        let want = want.min(Self::MAX_TAKE);
        loop {
            // A used-up segment counts no further: its count would overflow one day.
            let seen = State::unpack(self.word.load(Ordering::Acquire));
            let segment = self.slot(seen.index).read(seen.index);
            if segment.is_some_and(|segment| seen.taken < segment.count) {
                let mine = State::unpack(self.word.fetch_add(u64::from(want), Ordering::AcqRel));
                if let Some(segment) = self.slot(mine.index).read(mine.index) {
                    return segment.slice(mine.taken, want);
                }
            } else if State::unpack(self.word.load(Ordering::Acquire)).index == seen.index {
                return None;
            }
        }
    }

    /// Takes exactly `want` integers in a row from the current segment; `None` if it has fewer.
    pub fn take_exactly(&self, want: u32) -> Option<Segment> {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let State { index, taken } = State::unpack(word);
            let part = self.slot(index).read(index)?.slice(taken, want).filter(|part| part.count == want)?;
            let next = State { index, taken: taken + want }.pack();
            match self.word.compare_exchange(word, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Some(part),
                Err(seen) => word = seen,
            }
        }
    }

    /// Returns whether there is a next segment.
    #[must_use]
    pub fn has_next(&self) -> bool {
        let next = State::unpack(self.word.load(Ordering::Acquire)).index.wrapping_add(1);
        self.slot(next).read(next).is_some()
    }

    /// Returns the number of buffered integers: those of the current segment, and those of both.
    #[must_use]
    pub fn level(&self) -> (u64, u64) {
        let State { index, taken } = State::unpack(self.word.load(Ordering::Acquire));
        let next = index.wrapping_add(1);
        let count = |index| self.slot(index).read(index).map_or(0, |segment| segment.count);
        let current = u64::from(count(index).saturating_sub(taken));
        (current, current + u64::from(count(next)))
    }

    /// Adds a segment as the next one.
    ///
    /// # Errors
    /// The segment, if there is a next one already.
    pub fn offer(&self, segment: Segment) -> Result<(), Segment> {
        if self.has_next() {
            return Err(segment);
        }
        let next = State::unpack(self.word.load(Ordering::Acquire)).index.wrapping_add(1);
        self.slot(next).write(next, segment);
        Ok(())
    }

    /// Makes the next segment the current one if it has `want` integers and the current one has fewer; returns whether
    /// it did. The remainder of the current segment is skipped.
    pub fn advance(&self, want: u32) -> bool {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            let State { index, taken } = State::unpack(word);
            let next = index.wrapping_add(1);
            let has_enough = |index, taken| {
                self.slot(index).read(index).is_some_and(|segment| segment.count.saturating_sub(taken) >= want)
            };
            if has_enough(index, taken) || !has_enough(next, 0) {
                return false;
            }
            let moved = State { index: next, taken: 0 }.pack();
            match self.word.compare_exchange(word, moved, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(seen) => word = seen,
            }
        }
    }

    /// Empties the buffer, and returns the remaining integers: those of the current segment, then those of the next.
    pub fn drain(&self) -> [Option<Segment>; 2] {
        let index = State::unpack(self.word.load(Ordering::Acquire)).index;
        let next = index.wrapping_add(1);
        let (current, waiting) = (self.slot(index).read(index), self.slot(next).read(next));
        // Counts everything as taken first, so that no caller takes an integer that is returned here.
        let taken = State::unpack(self.word.swap(State { index, taken: u32::MAX >> 1 }.pack(), Ordering::AcqRel)).taken;
        self.slot(next).clear();
        self.slot(index).clear();
        [current.and_then(|segment| segment.slice(taken, u32::MAX)), waiting]
    }
}
