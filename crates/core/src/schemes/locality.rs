//! **locality**: a UUID of "version b" whose first digits scatter or cluster.
//!
//! ```text
//! wwwwwwww-xxxx-byyy-yyyy-zzzzzzzzzzzz
//!   32 bits   16    4         28    48
//! ┌─────────┬─────┬─────────┬─────┬──────┐
//! │ counter │ pid │ version │ mac │ time │
//! └─────────┴─────┴─────────┴─────┴──────┘
//! ```
//!
//! - **text**: a UUID's; **version** b, **pid** modulo 65,536, **mac** the last 28 bits of a MAC address, **time** Unix
//!   ms.
//!
//! - **variable** mode: the counter grows by 198491317 modulo 2^32 and is written with its nibbles reversed, so that
//!   consecutive IDs differ in their first characters and scatter over shards;
//! - **sequential** mode: the counter grows by 1 and is written as it is. It starts from a hash of the current ten
//!   minutes, so that IDs cluster.
//!
//! The MAC fragment takes the bits of RFC 9562's variant, so these are no UUIDs of that RFC.
//!
//! Format after groupon/locality-uuid.java 1.1.1 and bakks/locality-uuid.rb 1.2.0. Both have defects that this module
//! does not: the signed shift in Java makes the seventh digit `f` for every counter from 2^31 on; Ruby wraps at 2^32 −
//! 1; both fix pid and counter when they are loaded, so that forked children repeat each other.

use super::uuid;
use crate::cell::Cell;
use crate::codec::Hex;
use crate::error::Error;
use crate::fence::Fence;
use crate::format::{Clock, Description, Format, Part, Rendering, Role};
use crate::id::bytes_id;
use crate::layout::{Field, PoolLayout};
use crate::mint;
use crate::step::{Refusal, Run, Window};
use crate::sync::{AtomicU64, Ordering};
use crate::units::{Tick, Timescale, UnixMs};
use md5::{Digest, Md5};

/// The version digit of this scheme.
pub const VERSION_B: u64 = 0xb;

/// The format.
pub const FORMAT: Format = Format::new(
    "locality",
    &[
        Part::new(Role::Sequence, "counter", 32, "")
            .rendered_as(Rendering::Reversed)
            .described_by(Description::Computed(in_sequential_mode)),
        Part::new(Role::Node, "pid", 16, "process id modulo 65,536"),
        Part::fixed("version", 4, VERSION_B as u128, "version b").rendered_as(Rendering::Hex),
        Part::new(Role::Node, "mac", 28, "the end of a MAC address").rendered_as(Rendering::Hex),
        Part::time("time", 48),
    ],
    1.0,
    "https://github.com/groupon/locality-uuid.java",
)
.with_clock(Clock::UNIX_MS)
.with_texts(uuid::TEXTS)
.integer()
.ending_at(UnixMs(WINDOW.until.0 as i64));

fn in_sequential_mode(counter: u64) -> String {
    format!("in variable mode; {counter} in sequential mode")
}

/// The counter, as its mode writes it.
pub const COUNTER: Field = FORMAT.field("counter");
/// The process id modulo 65,536.
pub const PID: Field = FORMAT.field("pid");
/// Returns the version digit.
pub const VERSION: Field = FORMAT.field("version");
/// The last 28 bits of a MAC address.
pub const MAC: Field = FORMAT.field("mac");
/// Milliseconds since the Unix epoch.
pub const TIME: Field = FORMAT.field("time");

/// The bytes of an ID.
pub const SIZE: usize = FORMAT.size();
/// The characters of an ID's text.
pub const TEXT: usize = FORMAT.length();
/// The increment of the counter in variable mode. It is odd, so that the counter visits all 2^32 values.
pub const STRIDE: u32 = 198_491_317;

/// The distribution of the first digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Scatter.
    Variable,
    /// Cluster.
    Sequential,
}

impl Mode {
    /// Returns the counter `by` IDs later.
    #[inline(always)]
    #[must_use]
    pub fn advance(self, counter: u32, by: u32) -> u32 {
        counter.wrapping_add(match self {
            Self::Variable => STRIDE.wrapping_mul(by),
            Self::Sequential => by,
        })
    }

    /// Returns the counter as the mode writes it. The function is its own inverse.
    ///
    /// ```
    /// use mintage_core::schemes::locality::Mode;
    /// assert_eq!(Mode::Variable.written(0x0000_1234), 0x4321_0000);
    /// ```
    #[inline(always)]
    #[must_use]
    pub fn written(self, counter: u32) -> u32 {
        match self {
            Self::Variable => reverse_nibbles(counter),
            Self::Sequential => counter,
        }
    }
}

#[inline(always)]
fn reverse_nibbles(n: u32) -> u32 {
    let n = n.swap_bytes();
    (n & 0x0f0f_0f0f) << 4 | (n & 0xf0f0_f0f0) >> 4
}

/// Returns the start of sequential mode in the ten minutes of a time: the first 4 bytes, little-endian, of the MD5 of
/// the UTC time as `yyyymmddhhmm` cut to 11 characters. Processes on many machines thus start close together.
#[must_use]
pub fn sequential_seed(time: UnixMs) -> u32 {
    let text: String = time.to_string().chars().filter(char::is_ascii_digit).take(11).collect();
    let digest = Md5::digest(text.as_bytes());
    u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]])
}

/// An ID: any UUID. Its fields except the version have a meaning in version b only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub u128);

impl Id {
    /// Composes an ID from values that fit.
    #[must_use]
    pub fn new(counter_written: u32, origin: Origin, time_ms: u64) -> Self {
        Self(COUNTER.put(counter_written.into()) | origin.0 | TIME.put(time_ms))
    }

    /// Returns the version digit.
    #[must_use]
    pub fn version(self) -> char {
        char::from_digit(VERSION.get(self.0) as u32, 16).unwrap_or('0')
    }

    /// Returns the value of a field.
    ///
    /// # Errors
    /// [`Error::Version`] unless the version is b.
    pub fn field(self, field: Field, name: &'static str) -> Result<u64, Error> {
        if VERSION.get(self.0) != VERSION_B {
            return Err(Error::Version { uuid: self.to_string(), version: self.version(), field: name });
        }
        Ok(field.get(self.0))
    }
}

bytes_id! {
    impl Id(FORMAT, "locality ID", "UUID text", SIZE, TEXT) by Hex,
    from bytes => Self(u128::from_be_bytes(bytes)), to id => id.0.to_be_bytes();
}

/// The pid, the version and the MAC fragment, in their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(u128);

impl Origin {
    /// Returns the origin of a process and the lower 28 bits of a MAC fragment.
    #[must_use]
    pub fn new(pid: u16, mac: u32) -> Self {
        Self(PID.put(pid.into()) | VERSION.put(VERSION_B) | MAC.put(u64::from(mac) & MAC.max()))
    }
}

/// The number of node numbers: pid and MAC fragment together.
pub const NODES: u64 = 1 << (PID.bits + MAC.bits);

/// The name of a pool of them, and of its layout.
pub const POOL: &str = FORMAT.scheme;

/// Returns the layout of a pool whose node numbers are those of [`node_of`].
#[must_use]
pub fn pool_layout() -> PoolLayout {
    PoolLayout { text: POOL.into(), nodes: NODES, ends: UnixMs(WINDOW.until.0 as i64) }
}

/// Returns the node number of a process and a MAC fragment.
#[must_use]
pub fn node_of(pid: u16, mac: u32) -> u64 {
    u64::from(pid) << MAC.bits | u64::from(mac) & MAC.max()
}

/// Returns the process and the MAC fragment of a node number.
#[must_use]
pub fn origin_of(node: u64) -> (u16, u32) {
    ((node >> MAC.bits) as u16, (node & MAC.max()) as u32)
}

/// Returns the last 28 bits of a MAC address, from all of it or from its last 7 hex digits.
///
/// # Errors
/// [`Error::Format`].
pub fn mac_fragment(mac: &str) -> Result<u32, Error> {
    let digits = if mac.len() == 7 && mac.bytes().all(|b| b.is_ascii_hexdigit()) {
        mac.to_owned()
    } else {
        super::snowflake::mac_digits(mac).map_err(|_| Error::Format {
            field: "mac",
            value: mac.chars().take(40).collect(),
            expected: "7 hex digits, or a MAC address of 12, optionally in pairs joined by : or -",
        })?
    };
    Ok(u32::from_str_radix(&digits[digits.len() - 7..], 16).unwrap_or_default())
}

/// The bits of a span, the unit of time in which laps of the counter are compared: 2048 ms, so that 32 bits of spans
/// last until 2248.
const SPAN_BITS: u32 = 11;

/// The scale of ticks: Unix milliseconds.
pub const SCALE: Timescale = Timescale { epoch_ms: 0, unit_ms: 1 };
/// The ticks in which a generator can mint.
pub const WINDOW: Window = Window { floor: Tick(0), until: Tick(1 << (32 + SPAN_BITS)) };

/// The state that threads must agree on, packed as `span 32 | count 32`.
///
/// The pair (counter, time) distinguishes the IDs of a generator. Counters repeat after a lap of 2^32, so each lap must
/// lie in later spans than the one before. Adding 1 to the packed word ensures that: a count that overflows carries
/// into the span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The highest span minted in.
    pub span: u32,
    /// The number of IDs minted, modulo 2^32.
    pub count: u32,
}

/// Returns the tick of a time, if a generator can mint in it.
///
/// # Errors
/// [`Error::Time`].
pub fn tick(time: UnixMs) -> Result<Tick, Error> {
    WINDOW.tick(SCALE, time)
}

impl State {
    #[inline(always)]
    fn unpack(word: u64) -> Self {
        Self { span: (word >> 32) as u32, count: word as u32 }
    }

    #[inline(always)]
    fn pack(self) -> u64 {
        u64::from(self.span) << 32 | u64::from(self.count)
    }
}

/// Mints up to `want` IDs. Pure. A clock below the highest span counts as that span's start, and a clock below the
/// window as its floor.
///
/// The first number of a run counts the IDs of the generator, from 1 and modulo 2^32. Its tick is in Unix milliseconds.
///
/// # Errors
/// [`Refusal::Outside`].
#[inline(always)]
pub fn step(state: State, now: Tick, want: u32, window: Window) -> Result<(State, Run), Refusal> {
    let now = now.max(window.floor);
    // A run ends with the lap: the next ID must lie in a later span.
    let count = want.min(u32::MAX - state.count).max(1);
    let Some(word) = state.pack().checked_add(u64::from(count)) else {
        return Err(Refusal::Outside { tick: WINDOW.until });
    };
    let mut next = State::unpack(word);
    next.span = next.span.max((now.0 >> SPAN_BITS) as u32);
    let time_ms = now.0.max(u64::from(next.span) << SPAN_BITS);
    if time_ms >= window.until.0 {
        return Err(Refusal::Outside { tick: Tick(time_ms) });
    }
    Ok((next, Run { tick: time_ms, first: state.count.wrapping_add(1), count }))
}

/// The state of a generator between calls.
#[derive(Debug)]
pub struct Mint {
    cell: Cell,
    floor: AtomicU64,
    fence: Fence,
}

impl Mint {
    /// Returns the state of a generator that has minted nothing.
    #[must_use]
    pub fn new(window: Window) -> Self {
        Self::at(State { span: 0, count: 0 }, window)
    }

    /// Returns a generator in a given state. Tests start near the end of a lap with it.
    #[must_use]
    pub fn at(state: State, window: Window) -> Self {
        Self { cell: Cell::new(state.pack()), floor: AtomicU64::new(window.floor.0), fence: Fence::new(window.until) }
    }

    /// Restarts the count, in a later span than any ID so far.
    pub fn restart(&self) {
        self.cell.reset(|word| {
            let span = if word == 0 { 0 } else { State::unpack(word).span.saturating_add(1) };
            State { span, count: 0 }.pack()
        });
    }

    fn used(&self, word: u64) -> Tick {
        let floor = self.floor.load(Ordering::Relaxed);
        let end = (u64::from(State::unpack(word).span) + 1) << SPAN_BITS;
        Tick(if word == 0 { floor } else { end.max(floor + 1) }).min(self.fence.until())
    }
}

impl mint::Mint for Mint {
    fn scale(&self) -> Timescale {
        SCALE
    }

    fn full_window(&self) -> Window {
        WINDOW
    }

    #[inline(always)]
    fn take(&self, now: Tick, want: u32) -> Result<Run, Refusal> {
        let window = Window { floor: Tick(self.floor.load(Ordering::Relaxed)), until: self.fence.until() };
        self.cell.update(|word| step(State::unpack(word), now, want, window).map(|(state, run)| (state.pack(), run)))
    }

    fn take_slow<E>(&self, want: u32, mut clock: impl FnMut() -> Result<Tick, E>) -> Result<Result<Run, Refusal>, E> {
        Ok(self.take(clock()?, want))
    }

    fn reset(&self, window: Window) {
        self.floor.store(window.floor.0, Ordering::Relaxed);
        self.fence.reset(window.until);
        self.cell.reset(|_| 0);
    }

    fn extend(&self, until: Tick) -> bool {
        self.fence.extend(until)
    }

    /// The state knows spans only, so the tick can be up to a span too late.
    fn close(&self) -> Tick {
        self.used(self.cell.close())
    }

    fn used_until(&self) -> Tick {
        self.used(self.cell.load_in_order())
    }
}
