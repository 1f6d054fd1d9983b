//! **sno**: 10 bytes, sortable, with a metabyte for the user.
//!
//! ```text
//!   39 bits   1      8      16          16
//! ┌─────────┬──────┬──────┬───────────┬──────────┐
//! │ time    │ tick │ meta │ partition │ sequence │
//! └─────────┴──────┴──────┴───────────┴──────────┘
//! ```
//!
//! Big-endian: bytes, text and integer sort alike.
//!
//! - **time**: units of 4 ms since 2010-01-01T00:00:00Z, floored; the last one begins at 2079-09-07T15:47:35.548Z.
//! - **tick**: the tick-tock bit, which selects one of two timelines. When the clock goes back, a generator flips it
//!   and continues at once.
//! - **sequence**: a counter that restarts at the generator's lower bound in every unit.
//! - **text**: 16 characters of base 32, alphabet `23456789abcdefghijklmnopqrstuvwx`; characters 8 and 9 carry the
//!   metabyte.
//!
//! Format and behaviour after the Go library `muyo/sno` 1.1; comments note every difference.

use super::uuid;
use crate::cell::Cell;
use crate::codec::Base32;
use crate::codec::positional::{BASE32_SNO, Digits};
use crate::error::Error;
use crate::fence::Fence;
use crate::format::{Clock, Description, Format, Part, Role, Text};
use crate::id::bytes_id;
use crate::layout::{Field, PoolLayout};
use crate::mint;
use crate::step::{Refusal, Run, Window};
use crate::sync::{AtomicU32, Mutex, Ordering, lock};
use crate::units::{Tick, Timescale, UnixMs, UnixNs};

/// The text.
pub const DIGITS: &Digits = &Digits::new(BASE32_SNO, 16);

/// The format. Its text is also stored as the bytes of a UUID.
pub const FORMAT: Format = Format::new(
    "sno",
    &[
        Part::time("time", 39),
        Part::new(Role::Meta, "tick", 1, "").described_by(Description::Computed(timeline)),
        Part::new(Role::Meta, "meta", 8, "the user's byte"),
        Part::new(Role::Node, "partition", 16, "where it was minted"),
        Part::new(Role::Sequence, "sequence", 16, "counts within a tick"),
    ],
    1.0,
    "https://github.com/muyo/sno",
)
.with_clock(Clock::of_ms(1_262_304_000_000, 4))
.with_texts(&[
    Text::digits(DIGITS),
    Text::held(uuid::DIGITS[0], DIGITS),
    Text::held(uuid::DIGITS[1], DIGITS),
    Text::held(uuid::DIGITS[2], DIGITS),
    Text::held(uuid::DIGITS[3], DIGITS),
])
.integer();

fn timeline(tick: u64) -> String {
    if tick == 1 { "timeline 1, after the clock went back" } else { "timeline 0" }.into()
}

/// The units of 4 ms since the epoch.
pub const TIME: Field = FORMAT.field("time");
/// The tick-tock bit.
pub const TICK: Field = FORMAT.field("tick");
/// The user's byte.
pub const META: Field = FORMAT.field("meta");
/// The partition.
pub const PARTITION: Field = FORMAT.field("partition");
/// The sequence number.
pub const SEQUENCE: Field = FORMAT.field("sequence");

/// The bytes of an ID.
pub const SIZE: usize = FORMAT.size();
/// The characters of an ID's text.
pub const TEXT: usize = FORMAT.length();
/// The scale of units: 4 ms since 2010-01-01T00:00:00Z.
pub const TIMESCALE: Timescale = FORMAT.timescale();
/// All of the layout: the window of a generator without a lease.
pub const WINDOW: Window = Window { floor: Tick(0), until: Tick(TIME.max() + 1) };

/// The most parts into which generators divide the sequence numbers of a partition.
pub const MAX_SHARDS: u32 = 1 << 13;

/// Returns the layout of a pool whose node numbers are partitions, each divided into a number of shards.
#[must_use]
pub fn pool_layout(shards: u32) -> PoolLayout {
    let nodes = (PARTITION.max() + 1) * u64::from(shards);
    PoolLayout { text: format!("sno/{shards}"), nodes, ends: TIMESCALE.start(WINDOW.until) }
}

/// Returns the number of shards of a pool's layout, as [`pool_layout`] writes it; `sno` alone means one. `None` if the
/// text is not such a layout.
#[must_use]
pub fn read_shards(text: &str) -> Option<u32> {
    let shards = if text == "sno" { 1 } else { text.strip_prefix("sno/")?.parse().ok()? };
    let is_canonical = text == "sno" || pool_layout(shards).text == text;
    (is_canonical && shards.is_power_of_two() && shards <= MAX_SHARDS).then_some(shards)
}

/// An ID. Its order is that of its bytes, its text and its integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// Time, tick, meta and partition.
    head: u64,
    /// Sequence.
    sequence: u16,
}

impl Id {
    /// The smallest ID.
    pub const ZERO: Self = Self { head: 0, sequence: 0 };
    /// The largest ID.
    pub const MAX: Self = Self { head: u64::MAX, sequence: u16::MAX };

    /// Composes an ID from a timeline (unit and tick-tock bit, 40 bits) and the rest.
    #[inline(always)]
    #[must_use]
    pub const fn new(timeline: u64, meta: u8, partition: u16, sequence: u16) -> Self {
        let [timeline, meta] =
            [timeline << (TICK.shift - SEQUENCE.bits), (meta as u64) << (META.shift - SEQUENCE.bits)];
        Self { head: timeline | meta | partition as u64, sequence }
    }

    /// Composes an ID from a time and the rest.
    ///
    /// # Errors
    /// [`Error::Time`] outside 2010-01-01 … 2079-09-07.
    pub fn from_parts(time: UnixMs, tick: bool, meta: u8, partition: u16, sequence: u16) -> Result<Self, Error> {
        Ok(Self::new(unit(time)?.0 << 1 | u64::from(tick), meta, partition, sequence))
    }

    /// Returns the ID of 10 bytes. All bytes are an ID.
    #[inline(always)]
    #[must_use]
    pub fn from_bytes(bytes: [u8; SIZE]) -> Self {
        let [a, b, c, d, e, f, g, h, i, j] = bytes;
        Self { head: u64::from_be_bytes([a, b, c, d, e, f, g, h]), sequence: u16::from_be_bytes([i, j]) }
    }

    /// Returns the 10 bytes.
    #[inline(always)]
    #[must_use]
    pub fn to_bytes(self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..8].copy_from_slice(&self.head.to_be_bytes());
        bytes[8..].copy_from_slice(&self.sequence.to_be_bytes());
        bytes
    }

    /// Returns the canonical text.
    #[inline(always)]
    #[must_use]
    pub fn encode(self) -> [u8; TEXT] {
        Base32::encode(self.to_bytes())
    }

    /// Returns all 80 bits.
    #[must_use]
    pub fn to_u128(self) -> u128 {
        u128::from(self.head) << SEQUENCE.bits | u128::from(self.sequence)
    }

    /// Returns the ID of the lower 80 bits.
    #[must_use]
    pub fn from_u128(value: u128) -> Self {
        Self { head: (value >> SEQUENCE.bits) as u64, sequence: value as u16 }
    }

    /// The units of 4 ms since the epoch.
    #[must_use]
    pub fn unit(self) -> Tick {
        Tick(TIME.get(self.to_u128()))
    }

    /// Returns the start of the unit.
    #[must_use]
    pub fn time(self) -> UnixMs {
        TIMESCALE.start(self.unit())
    }

    /// The tick-tock bit.
    #[must_use]
    pub fn tick(self) -> bool {
        TICK.get(self.to_u128()) == 1
    }

    /// The user's byte.
    #[must_use]
    pub fn meta(self) -> u8 {
        META.get(self.to_u128()) as u8
    }

    /// Returns the partition.
    #[must_use]
    pub fn partition(self) -> u16 {
        PARTITION.get(self.to_u128()) as u16
    }

    /// Returns the sequence number.
    #[must_use]
    pub fn sequence(self) -> u16 {
        self.sequence
    }
}

bytes_id! {
    impl Id(FORMAT, "sno ID", "sno text", SIZE, TEXT) by Base32,
    from bytes => Self::from_bytes(bytes), to id => id.to_bytes();
}

/// Returns the unit of a time.
///
/// # Errors
/// [`Error::Time`] outside the layout; the original wraps silently.
pub fn unit(time: UnixMs) -> Result<Tick, Error> {
    TIMESCALE.tick(time).filter(|&unit| WINDOW.contains(unit)).ok_or(Error::Time {
        time,
        first: TIMESCALE.start(Tick(0)),
        last: UnixMs(TIMESCALE.start(Tick(TIME.max())).0 + 3),
    })
}

/// The sequence numbers `min..=max` of one generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The first.
    pub min: u16,
    /// The last.
    pub max: u16,
}

impl Bounds {
    const NEEDED: u32 = 6;

    /// Returns bounds, given in either order. A maximum of 0 means 65535 unless the minimum is 65535.
    ///
    /// # Errors
    /// [`Error::Bounds`]: they hold fewer than 6 numbers. The original documents 4 and requires 6.
    pub fn new(min: u16, max: u16) -> Result<Self, Error> {
        let max = if max == 0 && min != u16::MAX { u16::MAX } else { max };
        let (min, max) = (min.min(max), min.max(max));
        let bounds = Self { min, max };
        if bounds.capacity() < Self::NEEDED {
            return Err(Error::Bounds { min, max, count: bounds.capacity(), needed: Self::NEEDED });
        }
        Ok(bounds)
    }

    /// Returns the bounds of one of `shards` equal parts of a partition's sequence numbers. `shards` is a power of two
    /// up to 8192.
    #[must_use]
    pub fn shard(shard: u32, shards: u32) -> Self {
        let capacity = (1 << 16) / shards;
        let min = shard * capacity;
        Self { min: min as u16, max: (min + capacity - 1) as u16 }
    }

    /// Returns the number of IDs that a unit can hold.
    #[must_use]
    pub fn capacity(self) -> u32 {
        u32::from(self.max) - u32::from(self.min) + 1
    }

    #[inline(always)]
    fn pack(self) -> u32 {
        u32::from(self.min) << 16 | u32::from(self.max)
    }

    #[inline(always)]
    fn unpack(word: u32) -> Self {
        Self { min: (word >> 16) as u16, max: word as u16 }
    }
}

/// The state that threads must agree on, packed as `unit 39 | tick 1 | next 24`.
///
/// The upper 40 bits are those of an ID, so composing an ID takes a mask and an or. `next` is the next sequence number,
/// with room for "one past 65535".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The highest unit seen and the timeline, as an ID has them.
    pub timeline: u64,
    /// The next sequence number, up to `max + 1`.
    pub next: u32,
}

impl State {
    const NEXT_BITS: u32 = 24;
    const MAX_NEXT: u32 = (1 << Self::NEXT_BITS) - 1;

    #[inline(always)]
    fn unpack(word: u64) -> Self {
        Self { timeline: word >> Self::NEXT_BITS, next: word as u32 & Self::MAX_NEXT }
    }

    #[inline(always)]
    fn pack(self) -> u64 {
        self.timeline << Self::NEXT_BITS | u64::from(self.next)
    }

    /// Returns the state of a generator that has minted nothing.
    fn first(bounds: Bounds, floor: Tick) -> Self {
        Self { timeline: floor.0 << 1, next: u32::from(bounds.min) }
    }

    /// Returns the highest unit seen.
    #[must_use]
    pub fn unit(self) -> Tick {
        Tick(self.timeline >> 1)
    }
}

/// The state that only a clock that goes back changes. The fast path neither reads nor writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// The highest unit of the other timeline. At or below it, that timeline may be used up.
    pub safe: Tick,
    /// The number of times that the clock went back. Its lowest bit is the timeline.
    pub count: u32,
}

impl Drift {
    /// Returns the drift of a clock that never went back. On both timelines, the units below the floor belong to other
    /// holders.
    fn first(floor: Tick) -> Self {
        Self { safe: Tick(floor.0.saturating_sub(1)), count: 0 }
    }
}

/// Mints up to `want` IDs at a time at or after the highest unit seen. Pure.
///
/// # Errors
/// [`Refusal::Exhausted`], [`Refusal::Outside`]; [`Refusal::Rollback`] if [`tick_tock`] must decide.
#[inline(always)]
pub fn step(state: State, now: Tick, want: u32, bounds: Bounds, until: Tick) -> Result<(State, Run), Refusal> {
    let unit = state.unit();
    if now >= until {
        return Err(Refusal::Outside { tick: now });
    }
    let (timeline, first) = if now == unit {
        (state.timeline, state.next)
    } else if now > unit {
        (now.0 << 1 | (state.timeline & 1), u32::from(bounds.min))
    } else {
        return Err(Refusal::Rollback { until: unit });
    };
    let free = (u32::from(bounds.max) + 1).saturating_sub(first);
    if free == 0 {
        return Err(Refusal::Exhausted { until: Tick(now.0 + 1) });
    }
    let count = want.min(free);
    Ok((State { timeline, next: first + count }, Run { tick: timeline, first, count }))
}

/// Applies the tick-tock rule, for a clock below the highest unit seen. Pure.
///
/// Above the safe unit the other timeline is unused: flip to it, and continue at the earlier time without waiting. At
/// or below the safe unit, wait until the clock has passed it.
///
/// # Errors
/// As [`step`].
pub fn tick_tock(
    state: State,
    drift: Drift,
    now: Tick,
    want: u32,
    bounds: Bounds,
    until: Tick,
) -> Result<(State, Drift, Run), Refusal> {
    if now <= drift.safe {
        return Err(Refusal::Rollback { until: Tick(drift.safe.0 + 1) });
    }
    let drift = Drift { safe: state.unit(), count: drift.count.wrapping_add(1) };
    // Nothing has been minted yet in this unit on the other timeline.
    let flipped = State { timeline: now.0 << 1 | u64::from(drift.count & 1), next: u32::from(bounds.min) };
    step(flipped, now, want, bounds, until).map(|(state, run)| (state, drift, run))
}

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
        let (state, drift) = self.view();
        self.used(state, drift)
    }
}

/// The state of a generator as the Go library writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Snapshot {
    /// The partition.
    pub partition: u16,
    /// The lower sequence bound.
    pub sequence_min: u16,
    /// The upper sequence bound; 0 means 65535.
    pub sequence_max: u16,
    /// The last sequence number of `wall_hi`. A number above the bounds means that the unit is used up.
    pub sequence: u32,
    /// The unit in which the snapshot was taken; informative.
    pub now: u64,
    /// Returns the highest unit seen.
    pub wall_hi: u64,
    /// The safe unit.
    pub wall_safe: u64,
    /// The number of times that the clock went back.
    pub drifts: u32,
    /// The pool from which the partition was leased; the Go library has none.
    pub leased: Option<Leased>,
}

/// A pool of partitions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leased {
    /// Its name.
    pub pool: String,
    /// The number of parts into which it divides the sequence numbers of a partition.
    pub shards: u32,
}

impl Snapshot {
    /// Returns the node number of its generator in a pool.
    ///
    /// # Errors
    /// [`Error::Snapshot`]: its bounds are not those of one of its pool's shards.
    pub fn node(&self) -> Result<u64, Error> {
        let shards = self.leased.as_ref().map_or(1, |leased| leased.shards);
        let (min, max) = (self.sequence_min, self.sequence_max);
        let shard = (u32::from(min) * shards) >> 16;
        if shards > 1 && Bounds::shard(shard, shards) != (Bounds { min, max }) {
            return Err(Error::Snapshot(format!(
                "sequence bounds {min}..{max} are not those of one of {shards} shards"
            )));
        }
        Ok(u64::from(self.partition) * u64::from(shards) + u64::from(shard))
    }
}

/// The counter of `new_at`. It rolls over within the bounds, outside the tick-tock rule.
#[derive(Debug)]
pub struct PortingCounter(Cell);

impl PortingCounter {
    /// Returns a counter that starts at the lower bound. Snapshots do not contain it.
    #[must_use]
    pub fn new(bounds: Bounds) -> Self {
        Self(Cell::new(bounds.min.into()))
    }

    fn after(sequence: u16, bounds: Bounds) -> u16 {
        if sequence >= bounds.max { bounds.min } else { sequence + 1 }
    }

    /// Returns an ID of a given time, on timeline 0.
    ///
    /// # Errors
    /// [`Error::Time`] outside the layout.
    pub fn mint(&self, time: UnixMs, meta: u8, partition: u16, bounds: Bounds) -> Result<Id, Error> {
        let unit = unit(time)?;
        let Ok(sequence) = self.0.update(|next| {
            let next = next as u16;
            Ok::<_, std::convert::Infallible>((u64::from(Self::after(next, bounds)), next))
        });
        Ok(Id::new(unit.0 << 1, meta, partition, sequence))
    }
}

/// Returns the smallest ID of a time's unit: the lower bound of a range query.
///
/// # Errors
/// [`Error::Time`] outside the layout.
pub fn min_at(time: UnixNs) -> Result<Id, Error> {
    Ok(Id::new(unit(time.floor_ms())?.0 << 1, 0, 0, 0))
}

/// Returns the largest ID of a time's unit: the upper bound of a range query.
///
/// # Errors
/// [`Error::Time`] outside the layout.
pub fn max_at(time: UnixNs) -> Result<Id, Error> {
    Ok(Id::new(unit(time.floor_ms())?.0 << 1 | 1, u8::MAX, u16::MAX, u16::MAX))
}
