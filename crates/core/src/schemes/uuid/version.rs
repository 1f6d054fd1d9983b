//! The versions that generators mint.

use super::gregorian::{CLOCK_SEQ, GREGORIAN, GREGORIAN_SEQUENCE_BITS, TICKS_PER_MS, ticks_at};
use super::id::Id;
use super::v1;
use crate::counting::Counting;
use crate::error::Error;
use crate::given_time::nth_from;
use crate::layout::PoolLayout;
use crate::step::Window;
use crate::ticked::{Ticked, counting_in};
use crate::units::{Tick, UnixMs, UnixNs};

/// A version that generators mint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Gregorian time and node.
    V1 = 1,
    /// Random.
    V4 = 4,
    /// Gregorian time and node, sortable.
    V6 = 6,
    /// Unix time, then random.
    V7 = 7,
}

impl Version {
    /// Every version that generators mint.
    pub const ALL: [Self; 4] = [Self::V1, Self::V4, Self::V6, Self::V7];

    /// Returns its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self as u64
    }

    /// Returns the name of the pool from which its node numbers are leased, and of their layout.
    #[must_use]
    pub const fn pool(self) -> &'static str {
        match self {
            Self::V1 => "uuid.v1",
            Self::V4 => "uuid.v4",
            Self::V6 => "uuid.v6",
            Self::V7 => <Id as Ticked>::POOL,
        }
    }

    /// Returns the bits of a node number: for v1 and v6 those of the node without its multicast bit.
    #[must_use]
    pub const fn node_bits(self) -> u32 {
        match self {
            Self::V4 => 0,
            Self::V1 | Self::V6 => v1::FORMAT.field("node").bits - 1,
            Self::V7 => <Id as Ticked>::NODE_BITS,
        }
    }

    /// Returns how many numbers distinguish the IDs of one millisecond: those of [`Ticked::mint`], or for v1 and v6 the
    /// clock sequence above the count within the millisecond.
    #[must_use]
    pub const fn numbers(self) -> u64 {
        match self {
            Self::V4 | Self::V7 => <Id as Ticked>::NUMBERS,
            Self::V1 | Self::V6 => 1 << (CLOCK_SEQ.bits + GREGORIAN_SEQUENCE_BITS),
        }
    }

    /// Returns the number of the `n`-th ID of a given millisecond.
    #[must_use]
    pub const fn nth(self, n: u32) -> u32 {
        let capacity = match self {
            Self::V4 | Self::V7 => 1 << <Id as Ticked>::SEQUENCE_BITS,
            Self::V1 | Self::V6 => 1 << GREGORIAN_SEQUENCE_BITS,
        };
        nth_from(self.numbers(), capacity) + n
    }

    /// Returns the state of a generator that has minted nothing. Generators of v4 do not use it.
    #[must_use]
    pub fn counting(self) -> Counting {
        if matches!(self, Self::V4 | Self::V7) {
            return Id::counting();
        }
        let full_window = Window { floor: Tick(0), until: Tick(GREGORIAN_END_MS - Id::EPOCH_OFFSET) };
        counting_in(Id::SCALE, full_window, GREGORIAN_SEQUENCE_BITS)
    }

    /// Returns the layout of a pool of its node numbers.
    #[must_use]
    pub fn pool_layout(self) -> PoolLayout {
        let counting = self.counting();
        let ends = Id::SCALE.start(counting.rules().full_window.until);
        PoolLayout { text: self.pool().into(), nodes: 1 << self.node_bits(), ends }
    }

    /// Converts an instant to milliseconds since 1970.
    ///
    /// # Errors
    /// [`Error::Time`]: the version cannot hold it.
    pub fn units_at(self, time: UnixNs) -> Result<u64, Error> {
        let units = Id::units_at(time)?;
        if self == Self::V7 || units < GREGORIAN_END_MS {
            return Ok(units);
        }
        Err(Error::Time { time: time.floor_ms(), first: UnixMs(0), last: UnixMs(GREGORIAN_END_MS as i64 - 1) })
    }
}

/// The layouts of the pools of the versions that have node numbers.
pub const POOL_LAYOUTS: [fn() -> PoolLayout; 3] =
    [|| Version::V1.pool_layout(), || Version::V6.pool_layout(), || Version::V7.pool_layout()];

/// The bits of the whole time of versions 1 and 6.
const V1_TIME_BITS: u32 =
    v1::FORMAT.field("time_low").bits + v1::FORMAT.field("time_mid").bits + v1::FORMAT.field("time_high").bits;
/// The first millisecond since 1970 that they do not hold to its end.
const GREGORIAN_END_MS: u64 = (1 << V1_TIME_BITS) / TICKS_PER_MS - ticks_at(0) / TICKS_PER_MS;

/// Returns the ticks of 100 ns since 1582 at an instant.
///
/// # Errors
/// [`Error::Time`]: it is before 1970, or the versions cannot hold it.
pub fn gregorian(time: UnixNs) -> Result<u64, Error> {
    let unix_ms = Version::V1.units_at(time)?;
    let below = time.0.rem_euclid(UnixNs::PER_MS) / i128::from(GREGORIAN.tick_ns);
    Ok(ticks_at(unix_ms) + below as u64)
}
