//! **uuid**: 16 bytes, of the versions of RFC 9562.
//!
//! All versions share the places of the version and of the variant.
//!
//! **v1**, Gregorian time and node; the time is in ticks of 100 ns since 1582-10-15, its low bits first:
//! ```text
//!   32 bits    16         4         12          2         14          48
//! ┌──────────┬──────────┬─────────┬───────────┬─────────┬───────────┬──────┐
//! │ time_low │ time_mid │ version │ time_high │ variant │ clock_seq │ node │
//! └──────────┴──────────┴─────────┴───────────┴─────────┴───────────┴──────┘
//! ```
//! **v2**, DCE Security, of which the low bits of the time are lost:
//! ```text
//!   32 bits    16         4         12          2         6           8        48
//! ┌──────────┬──────────┬─────────┬───────────┬─────────┬───────────┬────────┬──────┐
//! │ local_id │ time_mid │ version │ time_high │ variant │ clock_seq │ domain │ node │
//! └──────────┴──────────┴─────────┴───────────┴─────────┴───────────┴────────┴──────┘
//! ```
//! **v3** and **v5**, the MD5 and the SHA-1 of a namespace and a name:
//! ```text
//!   48 bits    4         12        2         62
//! ┌──────────┬─────────┬─────────┬─────────┬─────────┐
//! │ md5_high │ version │ md5_mid │ variant │ md5_low │
//! └──────────┴─────────┴─────────┴─────────┴─────────┘
//!   48 bits     4         12         2         62
//! ┌───────────┬─────────┬──────────┬─────────┬──────────┐
//! │ sha1_high │ version │ sha1_mid │ variant │ sha1_low │
//! └───────────┴─────────┴──────────┴─────────┴──────────┘
//! ```
//! **v4**, random:
//! ```text
//!   48 bits    4         12         2         62
//! ┌──────────┬─────────┬──────────┬─────────┬──────────┐
//! │ random_a │ version │ random_b │ variant │ random_c │
//! └──────────┴─────────┴──────────┴─────────┴──────────┘
//! ```
//! **v6**, v1 in an order that sorts:
//! ```text
//!   32 bits     16         4         12         2         14          48
//! ┌───────────┬──────────┬─────────┬──────────┬─────────┬───────────┬──────┐
//! │ time_high │ time_mid │ version │ time_low │ variant │ clock_seq │ node │
//! └───────────┴──────────┴─────────┴──────────┴─────────┴───────────┴──────┘
//! ```
//! **v7**, Unix milliseconds, then random bits, a counter, or the fraction of the millisecond:
//! ```text
//!   48 bits   4         12       2         62
//! ┌─────────┬─────────┬────────┬─────────┬────────┐
//! │ time    │ version │ rand_a │ variant │ rand_b │
//! └─────────┴─────────┴────────┴─────────┴────────┘
//! ```
//! **v8**, the application's own:
//! ```text
//!   48 bits    4         12         2         62
//! ┌──────────┬─────────┬──────────┬─────────┬──────────┐
//! │ custom_a │ version │ custom_b │ variant │ custom_c │
//! └──────────┴─────────┴──────────┴─────────┴──────────┘
//! ```
//! **nil** and **max**, all bits 0 and all bits 1, and whatever else has 128 bits:
//! ```text
//!   128 bits
//! ┌──────────┐
//! │ value    │
//! └──────────┘
//! ```
//! - **generated v7**: without a node number, 74 random bits of which the highest is 0, and 1 more in each later ID of a
//!   millisecond; with one, a counter of 22 bits (rand_a and the top of rand_b), the node number in 24 bits, and 28 random bits.
//! - **generated v1 and v6**: the clock sequence is random for each generator and process, and so is the node, with its
//!   multicast bit, where no address or number is given. The time is that of the millisecond, and counts on from there.
//! - **text**: hexadecimal, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, written in lower case and read in either; elsewhere also
//!   without hyphens, in braces, or after `urn:uuid:`.

use crate::codec::positional::{BASE16, Digits};
use crate::codec::{Codec as _, Hex};
use crate::counting::{Counting, OnExhausted, OnRollback, Rules};
use crate::dated::nth_from;
use crate::error::Error;
use crate::format::{Clock, Description, Format, Part, Rendering, Role, SECOND, Text};
use crate::id;
use crate::layout::{Field, PoolLayout};
use crate::step::Window;
use crate::ticked::{ENDS, Ticked, low};
use crate::units::{Tick, UnixMs, UnixNs};
use md5::Md5;
use sha1::{Digest, Sha1};
use std::fmt;

/// The texts of 128 bits as a UUID, the canonical one first.
pub const DIGITS: [&Digits; 4] = [
    &Digits::template(BASE16, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"),
    &Digits::template(BASE16, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    &Digits::template(BASE16, "{xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx}"),
    &Digits::template(BASE16, "urn:uuid:xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"),
];
/// The texts of a UUID.
pub const TEXTS: &[Text] =
    &[Text::digits(DIGITS[0]), Text::digits(DIGITS[1]), Text::digits(DIGITS[2]), Text::digits(DIGITS[3])];

/// Ticks of 100 ns since the first day of the Gregorian calendar, 1582-10-15, in three parts.
const GREGORIAN: Clock =
    Clock::new(-12_219_292_800 * SECOND as i128, 100).counted_by(&["time_high", "time_mid", "time_low"]);

const VARIANT: Part = Part::fixed("variant", 2, 2, "the variant of RFC 9562");
const CLOCK_SEQ: Part = Part::new(Role::Meta, "clock_seq", 14, "changes when the clock goes back or the node changes");
const NODE: Part =
    Part::new(Role::Node, "node", 48, "").rendered_as(Rendering::Hex).described_by(Description::Computed(address));

fn address(node: u64) -> String {
    let [_, _, bytes @ ..] = node.to_be_bytes();
    let address = bytes.map(|byte| format!("{byte:02x}")).join(":");
    if bytes[0] & 1 == 1 {
        format!("{address}, random as its multicast bit tells")
    } else {
        format!("MAC address {address}")
    }
}

const fn version(number: u128, says: &'static str) -> Part<'static> {
    Part::fixed("version", 4, number, says)
}

const fn time(name: &'static str, bits: u32, says: &'static str) -> Part<'static> {
    Part::new(Role::Time, name, bits, says)
}

const fn custom(name: &'static str, bits: u32) -> Part<'static> {
    Part::new(Role::Meta, name, bits, "the application's").rendered_as(Rendering::Hex)
}

const fn layout(name: &'static str, parts: &'static [Part<'static>], weight: f64) -> Format<'static> {
    Format::new("uuid", parts, weight, "RFC 9562").with_layout(name).with_texts(TEXTS).integer()
}

/// Version 1.
pub const V1: Format = layout(
    "v1",
    &[
        time("time_low", 32, "the low 32 bits of the time"),
        time("time_mid", 16, "the middle 16 bits of the time"),
        version(1, "version 1: Gregorian time and node"),
        time("time_high", 12, "").described_by(Description::TextAndClock("the high 12 bits of the time")),
        VARIANT,
        CLOCK_SEQ,
        NODE,
    ],
    1.0,
)
.with_clock(GREGORIAN);

/// Version 2.
pub const V2: Format = layout(
    "v2",
    &[
        Part::new(Role::Meta, "local_id", 32, "a POSIX user or group id"),
        time("time_mid", 16, "bits 32 to 47 of the Gregorian time; the lower ones are lost"),
        version(2, "version 2: DCE Security"),
        time("time_high", 12, "the high 12 bits of the Gregorian time"),
        VARIANT,
        Part::new(Role::Meta, "clock_seq", 6, "changes when the clock goes back"),
        Part::new(Role::Meta, "domain", 8, "0 for a person, 1 for a group, 2 for an organisation"),
        NODE,
    ],
    0.3,
);

/// Version 3.
pub const V3: Format = layout(
    "v3",
    &[
        Part::random("md5_high", 48, "the first 48 bits of the md5 hash of a namespace and a name"),
        version(3, "version 3: MD5 of a name"),
        Part::random("md5_mid", 12, "12 bits of the md5 hash of a namespace and a name"),
        VARIANT,
        Part::random("md5_low", 62, "62 bits of the md5 hash of a namespace and a name"),
    ],
    1.0,
);

/// Version 4.
pub const V4: Format = layout(
    "v4",
    &[
        Part::random("random_a", 48, "random"),
        version(4, "version 4: random"),
        Part::random("random_b", 12, "random"),
        VARIANT,
        Part::random("random_c", 62, "random"),
    ],
    1.0,
);

/// Version 5.
pub const V5: Format = layout(
    "v5",
    &[
        Part::random("sha1_high", 48, "the first 48 bits of the sha1 hash of a namespace and a name"),
        version(5, "version 5: SHA-1 of a name"),
        Part::random("sha1_mid", 12, "12 bits of the sha1 hash of a namespace and a name"),
        VARIANT,
        Part::random("sha1_low", 62, "62 bits of the sha1 hash of a namespace and a name"),
    ],
    1.0,
);

/// Version 6.
pub const V6: Format = layout(
    "v6",
    &[
        time("time_high", 32, "").described_by(Description::TextAndClock("the high 32 bits of the time")),
        time("time_mid", 16, "the middle 16 bits of the time"),
        version(6, "version 6: Gregorian time and node, sortable"),
        time("time_low", 12, "the low 12 bits of the time"),
        VARIANT,
        CLOCK_SEQ,
        NODE,
    ],
    1.0,
)
.with_clock(GREGORIAN);

/// Version 7.
pub const V7: Format = layout(
    "v7",
    &[
        Part::time("time", 48),
        version(7, "version 7: Unix time, then random"),
        Part::random("rand_a", 12, "random, a counter, or the fraction of the millisecond"),
        VARIANT,
        Part::random("rand_b", 62, "random, or a counter"),
    ],
    1.0,
)
.with_clock(Clock::UNIX_MS)
.ending_at(ENDS);

/// Version 8.
pub const V8: Format = layout(
    "v8",
    &[
        custom("custom_a", 48),
        version(8, "version 8: the application's own"),
        custom("custom_b", 12),
        VARIANT,
        custom("custom_c", 62),
    ],
    0.9,
);

/// The nil UUID.
pub const NIL: Format =
    layout("nil", &[Part::fixed("value", 128, 0, "the nil UUID: every bit is 0").rendered_as(Rendering::Hex)], 1.0);

/// The max UUID.
pub const MAX: Format = layout(
    "max",
    &[Part::fixed("value", 128, u128::MAX, "the max UUID: every bit is 1").rendered_as(Rendering::Hex)],
    1.0,
);

/// What else is written so.
pub const OTHER: Format = Format {
    raw: false,
    integer: false,
    ..layout(
        "other",
        &[Part::new(Role::Meta, "value", 128, "of no version and variant that RFC 9562 defines")
            .rendered_as(Rendering::Hex)],
        0.3,
    )
};

/// All with a structure of their own.
pub const FORMATS: [Format; 10] = [V1, V2, V3, V4, V5, V6, V7, V8, NIL, MAX];

/// A UUID, as its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub [u8; 16]);

const VERSION: Field = V4.field("version");
const VARIANT_BITS: Field = V4.field("variant");
const TIME: Field = V7.field("time");
const RAND_A: Field = V7.field("rand_a");
const RAND_B: Field = V7.field("rand_b");

impl Id {
    /// All bits 0.
    pub const NIL: Self = Self([0; 16]);
    /// All bits 1.
    pub const MAX: Self = Self([0xff; 16]);

    /// These bits, but for the places of version and variant.
    #[inline(always)]
    #[must_use]
    pub const fn stamped(bits: u128, version: u64) -> Self {
        let places = VERSION.put(VERSION.max()) | VARIANT_BITS.put(VARIANT_BITS.max());
        Self((bits & !places | VERSION.put(version) | VARIANT_BITS.put(2)).to_be_bytes())
    }

    /// The bits as a number.
    #[inline(always)]
    #[must_use]
    pub const fn bits(self) -> u128 {
        u128::from_be_bytes(self.0)
    }

    /// The version, 0 to 15, where the variant is that of RFC 9562.
    #[must_use]
    pub fn version(self) -> Option<u64> {
        (VARIANT_BITS.get(self.bits()) == 2).then(|| VERSION.get(self.bits()))
    }

    /// The variant, in words.
    #[must_use]
    pub fn variant(self) -> &'static str {
        match self.0[8] >> 5 {
            0..=3 => "ncs",
            4 | 5 => "rfc9562",
            6 => "microsoft",
            _ => "future",
        }
    }

    /// Reads any of the texts of a UUID: with or without hyphens, in braces, or after `urn:uuid:`.
    ///
    /// # Errors
    /// [`Error::Length`] or [`Error::Character`].
    pub fn parse_any(text: &str) -> Result<Self, Error> {
        const WHAT: &str = "UUID text";
        let lower = text.to_ascii_lowercase();
        let Some(digits) = DIGITS.iter().find(|digits| digits.length() == lower.len()) else {
            let expected = DIGITS[0].length();
            return Err(Error::Length { what: WHAT, actual: text.chars().count(), expected, unit: "characters" });
        };
        let mut id = [0; 16];
        match digits.read(lower.as_bytes(), &mut id) {
            Ok(()) => Ok(Self(id)),
            Err(at) => {
                let position = text.char_indices().position(|(from, c)| from + c.len_utf8() > at).unwrap_or(0);
                let found = text.chars().nth(position).unwrap_or('\0');
                let expected = "what stands there in the text of a UUID";
                Err(Error::Character { what: WHAT, found, position, expected })
            }
        }
    }

    /// Version 3: the MD5 of a namespace and a name.
    #[must_use]
    pub fn v3(namespace: [u8; 16], name: &[u8]) -> Self {
        let hash = Md5::new().chain_update(namespace).chain_update(name).finalize();
        Self::stamped(u128::from_be_bytes(hash.into()), 3)
    }

    /// Version 5: the SHA-1 of a namespace and a name, cut.
    #[must_use]
    pub fn v5(namespace: [u8; 16], name: &[u8]) -> Self {
        let hash: [u8; 20] = Sha1::new().chain_update(namespace).chain_update(name).finalize().into();
        let mut bits = [0; 16];
        bits.copy_from_slice(&hash[..16]);
        Self::stamped(u128::from_be_bytes(bits), 5)
    }

    /// Version 1, of ticks of 100 ns since 1582.
    #[inline(always)]
    #[must_use]
    pub fn v1(ticks: u64, clock_seq: u64, node: u64) -> Self {
        const FORMAT: Format = V1;
        let time = const { FORMAT.field("time_low") }.put(ticks & 0xffff_ffff)
            | const { FORMAT.field("time_mid") }.put(ticks >> 32 & 0xffff)
            | const { FORMAT.field("time_high") }.put(ticks >> 48 & 0xfff);
        Self::stamped(time | origin(clock_seq, node), 1)
    }

    /// Version 6, of the same.
    #[inline(always)]
    #[must_use]
    pub fn v6(ticks: u64, clock_seq: u64, node: u64) -> Self {
        const FORMAT: Format = V6;
        let time = const { FORMAT.field("time_high") }.put(ticks >> 28 & 0xffff_ffff)
            | const { FORMAT.field("time_mid") }.put(ticks >> 12 & 0xffff)
            | const { FORMAT.field("time_low") }.put(ticks & 0xfff);
        Self::stamped(time | origin(clock_seq, node), 6)
    }
}

#[inline(always)]
fn origin(clock_seq: u64, node: u64) -> u128 {
    const CLOCK: Field = V1.field("clock_seq");
    const PLACE: Field = V1.field("node");
    CLOCK.put(clock_seq & CLOCK.max()) | PLACE.put(node & PLACE.max())
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Hex::encode(self.0).iter().try_for_each(|&c| fmt::Write::write_char(f, char::from(c)))
    }
}

impl id::Id for Id {
    const FORMAT: Format<'static> = V7;
    const WHAT: &'static str = "UUID";
    const TEXT_WHAT: &'static str = "UUID text";
    const SIZE: usize = 16;
    const TEXT: usize = 36;
    type Bytes = [u8; 16];
    type Text = [u8; 36];

    fn format(&self) -> Format<'static> {
        match (*self, self.version()) {
            (Self::NIL, _) => NIL,
            (Self::MAX, _) => MAX,
            (_, Some(version @ 1..=8)) => FORMATS[version as usize - 1],
            _ => OTHER,
        }
    }

    #[inline(always)]
    fn from_slice(bytes: &[u8]) -> Self {
        let mut id = [0; 16];
        id.copy_from_slice(bytes);
        Self(id)
    }

    #[inline(always)]
    fn to_array(self) -> Self::Bytes {
        self.0
    }

    #[inline(always)]
    fn to_text(self) -> Self::Text {
        Hex::encode(self.0)
    }

    /// Hex digits of either case, hyphens where they belong.
    #[inline(always)]
    fn decode(text: &[u8]) -> Result<Self, usize> {
        Hex::decode(text.try_into().map_err(|_| text.len())?).map(Self)
    }

    fn expected(at: usize) -> &'static str {
        Hex::expected(at)
    }

    fn encode_many(ids: &[u8], text: &mut [u8]) {
        Hex::encode_many(ids, text);
    }

    fn decode_many(text: &[u8], ids: &mut [u8]) -> Result<(), usize> {
        Hex::decode_many(text, ids)
    }
}

/// Of a version 7 with a node number.
const COUNT_BITS: u32 = 22;
/// The upper bits of its number, which are added to the uppermost of its random bits.
const ABOVE_BITS: u32 = 2;

/// Version 7. Of the 22 bits that count, `new` uses 21: so the ticks that a generator has last until 2149.
impl Ticked for Id {
    const POOL: &'static str = Version::V7.pool();
    const TERM: &'static str = "node";
    const NODE_BITS: u32 = 24;
    const HAS_NODE: bool = false;
    const SEQUENCE_BITS: u32 = 21;
    const NUMBERS: u64 = 1 << (COUNT_BITS + ABOVE_BITS);

    #[inline(always)]
    fn mint(units: u64, random: u128, node: Option<u64>, n: u32) -> Self {
        const BITS: u32 = RAND_A.bits + RAND_B.bits;
        let counting = match node {
            None => low(random, BITS - 1) + u128::from(n),
            Some(node) => {
                let below = BITS - COUNT_BITS - Self::NODE_BITS;
                let random = random.wrapping_add(u128::from(n >> COUNT_BITS) << (below - ABOVE_BITS));
                low(n.into(), COUNT_BITS) << (BITS - COUNT_BITS) | u128::from(node) << below | low(random, below)
            }
        };
        let (a, b) = ((counting >> RAND_B.bits) as u64, low(counting, RAND_B.bits) as u64);
        Self::stamped(TIME.put(units) | RAND_A.put(a) | RAND_B.put(b), 7)
    }

    fn bound(units: u64, is_high: bool) -> Self {
        Self::stamped(TIME.put(units) | if is_high { low(u128::MAX, TIME.shift) } else { 0 }, 7)
    }
}

/// A version that generators mint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Gregorian time and node.
    V1,
    /// Random.
    V4,
    /// Gregorian time and node, sortable.
    V6,
    /// Unix time, then random.
    V7,
}

impl Version {
    /// All.
    pub const ALL: [Self; 4] = [Self::V1, Self::V4, Self::V6, Self::V7];

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Self::V1 => 1,
            Self::V4 => 4,
            Self::V6 => 6,
            Self::V7 => 7,
        }
    }

    /// The name of the pool that its node numbers are leased from, and of their layout.
    #[must_use]
    pub const fn pool(self) -> &'static str {
        match self {
            Self::V1 => "uuid.v1",
            Self::V4 => "uuid.v4",
            Self::V6 => "uuid.v6",
            Self::V7 => "uuid.v7",
        }
    }

    /// The bits of a node number: for v1 and v6 those of the node beside its multicast bit.
    #[must_use]
    pub const fn node_bits(self) -> u32 {
        match self {
            Self::V4 => 0,
            Self::V1 | Self::V6 => V1.field("node").bits - 1,
            Self::V7 => <Id as Ticked>::NODE_BITS,
        }
    }

    /// How many numbers tell IDs of one millisecond apart: those of [`Ticked::mint`], or for v1 and v6 the clock sequence above
    /// what counts below the millisecond.
    #[must_use]
    pub const fn numbers(self) -> u64 {
        match self {
            Self::V4 | Self::V7 => <Id as Ticked>::NUMBERS,
            Self::V1 | Self::V6 => 1 << (CLOCK_SEQ.bits + GREGORIAN_SEQUENCE_BITS),
        }
    }

    /// The number of the `n`-th ID that is asked for of a millisecond.
    #[must_use]
    pub const fn nth(self, n: u32) -> u32 {
        let capacity = match self {
            Self::V4 | Self::V7 => 1 << <Id as Ticked>::SEQUENCE_BITS,
            Self::V1 | Self::V6 => 1 << GREGORIAN_SEQUENCE_BITS,
        };
        nth_from(self.numbers(), capacity) + n
    }

    /// The state of a generator that has minted nothing; of v4, which has none, it is not used.
    #[must_use]
    pub fn counting(self) -> Counting {
        if matches!(self, Self::V4 | Self::V7) {
            return Id::counting();
        }
        let whole = Window { floor: Tick(0), until: Tick(GREGORIAN_END_MS - Id::AHEAD) };
        let rules = Rules {
            scale: Id::SCALE,
            whole,
            sequence_bits: GREGORIAN_SEQUENCE_BITS,
            on_rollback: OnRollback::Advance,
            on_exhausted: OnExhausted::Wait,
        };
        Counting::new(rules, whole)
    }

    /// The layout of a pool of its node numbers.
    #[must_use]
    pub fn pool_layout(self) -> PoolLayout {
        let counting = self.counting();
        let ends = Id::SCALE.start(counting.rules().whole.until);
        PoolLayout { text: self.pool().into(), nodes: 1 << self.node_bits(), ends }
    }

    /// An instant in milliseconds since 1970, where the version has a time that can be it.
    ///
    /// # Errors
    /// [`Error::Time`].
    pub fn units_at(self, time: UnixNs) -> Result<u64, Error> {
        let units = Id::units_at(time)?;
        if self == Self::V7 || units < GREGORIAN_END_MS {
            return Ok(units);
        }
        Err(Error::Time { time: time.floor_ms(), first: UnixMs(0), last: UnixMs(GREGORIAN_END_MS as i64 - 1) })
    }
}

/// All of the time of v1 and v6.
const V1_TIME_BITS: u32 = V1.width_of("time_low") + V1.width_of("time_mid") + V1.width_of("time_high");
const TICKS_PER_MS: u64 = 10_000;
/// The first millisecond since 1970 that it does not hold whole.
const GREGORIAN_END_MS: u64 = (1 << V1_TIME_BITS) / TICKS_PER_MS - ticks_at(0) / TICKS_PER_MS;

/// So many IDs of v1 or v6 a generator mints in a millisecond, 2 to this power: each takes one of its 10,000 ticks.
pub const GREGORIAN_SEQUENCE_BITS: u32 = 13;

const _: () = assert!(1 << GREGORIAN_SEQUENCE_BITS <= TICKS_PER_MS);

/// The ticks of 100 ns since 1582 at the start of a millisecond since 1970.
#[inline(always)]
#[must_use]
pub const fn ticks_at(unix_ms: u64) -> u64 {
    const BEFORE: u64 = (-GREGORIAN.epoch_ns / GREGORIAN.tick_ns as i128) as u64;
    BEFORE + unix_ms * TICKS_PER_MS
}

/// The ticks of 100 ns since 1582 at an instant.
///
/// # Errors
/// [`Error::Time`]: it is before 1970, or the versions cannot hold it.
pub fn gregorian(time: UnixNs) -> Result<u64, Error> {
    let unix_ms = Version::V1.units_at(time)?;
    let below = time.0.rem_euclid(UnixNs::PER_MS) / i128::from(GREGORIAN.tick_ns);
    Ok(ticks_at(unix_ms) + below as u64)
}

/// The node that stands for a number of 47 bits: its address has the multicast bit, as none of a machine's has.
#[inline(always)]
#[must_use]
pub const fn multicast(number: u64) -> u64 {
    const BIT: u32 = 40;
    (number >> BIT) << (BIT + 1) | 1 << BIT | number & ((1 << BIT) - 1)
}
