//! **snowflake**: one 64-bit integer.
//!
//! ```text
//!   1 bits   41     10     12
//! ┌────────┬──────┬──────┬──────────┐
//! │ unused │ time │ node │ sequence │
//! └────────┴──────┴──────┴──────────┘
//! ```
//!
//! This is the default layout, of milliseconds since 2015. The other named layouts are those of Twitter, Discord,
//! Instagram and Sonyflake:
//! ```text
//!   1 bits   41     5            5        12
//! ┌────────┬──────┬────────────┬────────┬──────────┐
//! │ unused │ time │ datacenter │ worker │ sequence │
//! └────────┴──────┴────────────┴────────┴──────────┘
//!   42 bits   5        5         12
//! ┌─────────┬────────┬─────────┬───────────┐
//! │ time    │ worker │ process │ increment │
//! └─────────┴────────┴─────────┴───────────┘
//!   41 bits   13      10
//! ┌─────────┬───────┬──────────┐
//! │ time    │ shard │ sequence │
//! └─────────┴───────┴──────────┘
//!   1 bits   39     8          16
//! ┌────────┬──────┬──────────┬─────────┐
//! │ unused │ time │ sequence │ machine │
//! └────────┴──────┴──────────┴─────────┘
//! ```
//!
//! Users choose widths, order, epoch and the length of a tick. A [`Layout`] is declared as `"time:41 node:10
//! sequence:12"`, high to low. Fields other than `time` and `sequence` make up the node number; the first one is its
//! high bits (datacenter and worker in Twitter's).
//!
//! The layouts follow Twitter's service, Discord's documentation, Instagram's article, sony/sonyflake v1, and the Java
//! class of the callicoder article (the default). That class waits in `waitNextMillis` while the clock is *equal*, so
//! it repeats IDs if the clock steps back meanwhile. Here a step compares order, never equality.

use crate::error::Error;
use crate::format::{Clock, Format, Part, Role, str_eq};
use crate::layout::{Field, PoolLayout};
use crate::step::{Run, Window};
use crate::units::{Tick, Timescale, UnixMs};

/// The known names of fields, with role and meaning. A field of any other name is part of the node number.
const TERMS: [(&str, Role, &str); 8] = [
    ("sequence", Role::Sequence, "counts within a tick"),
    ("increment", Role::Sequence, "counts within a tick"),
    ("node", Role::Node, "which node minted it"),
    ("datacenter", Role::Node, "which data centre"),
    ("worker", Role::Node, "which worker"),
    ("process", Role::Node, "which process of the worker"),
    ("shard", Role::Node, "which logical shard"),
    ("machine", Role::Node, "which machine"),
];

/// Declares a field as a part of a format.
const fn part(name: &str, bits: u32) -> Part<'_> {
    let mut i = 0;
    while i < TERMS.len() {
        if str_eq(TERMS[i].0, name) {
            return Part::new(TERMS[i].1, name, bits, TERMS[i].2);
        }
        i += 1;
    }
    if str_eq(name, "time") {
        Part::time(name, bits)
    } else {
        Part::new(Role::Node, name, bits, "part of the node number")
    }
}

/// Declares the bits above the fields.
const fn unused<'a>(bits: u32) -> Part<'a> {
    Part::fixed("unused", bits, 0, "always 0, so that signed integers hold it")
}

const fn named(
    name: &'static str,
    parts: &'static [Part<'static>],
    epoch_ms: i64,
    unit_ms: u32,
    weight: f64,
    source: &'static str,
) -> Format<'static> {
    Format::new("snowflake", parts, weight, source)
        .with_layout(name)
        .with_clock(Clock::of_ms(epoch_ms, unit_ms))
        .integer()
}

/// The named layouts, the default one first.
pub const FORMATS: [Format; 5] = [
    named(
        "default",
        &[unused(1), part("time", 41), part("node", 10), part("sequence", 12)],
        1_420_070_400_000,
        1,
        1.0,
        "https://www.callicoder.com/distributed-unique-id-sequence-number-generator/",
    ),
    named(
        "twitter",
        &[unused(1), part("time", 41), part("datacenter", 5), part("worker", 5), part("sequence", 12)],
        1_288_834_974_657,
        1,
        0.7,
        "https://github.com/twitter-archive/snowflake",
    ),
    named(
        "discord",
        &[part("time", 42), part("worker", 5), part("process", 5), part("increment", 12)],
        1_420_070_400_000,
        1,
        0.7,
        "https://discord.com/developers/docs/reference#snowflakes",
    ),
    named(
        "instagram",
        &[part("time", 41), part("shard", 13), part("sequence", 10)],
        1_314_220_021_721,
        1,
        0.5,
        "https://instagram-engineering.com/sharding-ids-at-instagram-1cf5a71e5a5c",
    ),
    named(
        "sonyflake",
        &[unused(1), part("time", 39), part("sequence", 8), part("machine", 16)],
        1_409_529_600_000,
        10,
        0.5,
        "https://github.com/sony/sonyflake",
    ),
];

/// The layout of 53 bits, which a number of JavaScript holds exactly: 64 nodes, and 64,000 IDs a second on each, until
/// 2094. Any small number would fit, so no reading proposes this layout unless the caller names it.
pub const JS_SAFE: Format = named(
    "js_safe",
    &[unused(11), part("time", 41), part("node", 6), part("sequence", 6)],
    1_735_689_600_000,
    1,
    0.0,
    "https://developer.mozilla.org/docs/Web/JavaScript/Reference/Global_Objects/Number/MAX_SAFE_INTEGER",
);

/// The names of a sequence number.
const SEQUENCE_TERMS: [&str; 2] = ["sequence", "increment"];

/// The largest distance of an epoch from 1970, a million years, so that no sum overflows.
const MAX_EPOCH_MS: u64 = 1 << 55;
/// The most characters of a layout's fields in a text.
const MAX_DECLARATION: usize = 1000;

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// A layout of bit fields in at most 64 bits.
///
/// ```
/// use mintage_core::schemes::snowflake::Layout;
/// let parts = Layout::named("discord").unwrap().parse(175_928_847_299_117_063).unwrap();
/// assert_eq!((parts.time.0, parts.node, parts.sequence), (1_462_015_105_796, 32, 7));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The fields, high to low.
    pub fields: Vec<(String, Field)>,
    /// Epoch and tick.
    pub timescale: Timescale,
    time: Field,
    sequence: Option<Field>,
}

impl Layout {
    /// Reads a declaration such as `"time:41 node:10 sequence:12"`.
    ///
    /// # Errors
    /// [`Error::Layout`] unless there is exactly one `time`, at most one sequence number, no name twice, at most 64
    /// bits in all, and at most 63 in time and sequence together.
    ///
    /// ```
    /// use mintage_core::schemes::snowflake::Layout;
    /// let layout = Layout::declare("time:41 node:10 sequence:12", 1_735_689_600_000, 1).unwrap();
    /// assert_eq!((layout.max_node(), layout.ids_per_tick()), (1023, 4096));
    /// assert!(Layout::declare("node:10 sequence:12", 0, 1).is_err());
    /// ```
    pub fn declare(text: &str, epoch_ms: i128, unit_ms: u32) -> Result<Self, Error> {
        let shown = |text: &str| format!("{:?}", text.chars().take(40).collect::<String>());
        let wrong = |reason: String| Error::Layout { layout: text.chars().take(100).collect(), reason };
        let far = || wrong(format!("epoch_ms {epoch_ms} is outside -{MAX_EPOCH_MS}..{MAX_EPOCH_MS}"));
        let epoch_ms = i64::try_from(epoch_ms).ok().filter(|ms| ms.unsigned_abs() <= MAX_EPOCH_MS).ok_or_else(far)?;
        if unit_ms == 0 {
            return Err(wrong("unit_ms 0 is outside 1..4294967295".into()));
        }
        let mut fields: Vec<(String, Field)> = Vec::new();
        for part in text.split_whitespace() {
            let (name, bits) =
                part.split_once(':').ok_or_else(|| wrong(format!("{} is not name:bits", shown(part))))?;
            if !name.chars().all(is_of_name) || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
                return Err(wrong(format!("{} is not a name", shown(name))));
            }
            let bits = match bits.parse() {
                Ok(bits @ 1..=63) => bits,
                _ => return Err(wrong(format!("{} has {} bits, must be 1..63", shown(name), shown(bits)))),
            };
            if fields.iter().any(|(known, _)| known == name) {
                return Err(wrong(format!("{} occurs twice", shown(name))));
            }
            if fields.len() == 64 {
                return Err(wrong("more than 64 fields".into()));
            }
            fields.push((name.to_owned(), Field { bits, shift: 0 }));
        }
        let total: u32 = fields.iter().map(|(_, f)| f.bits).sum();
        if total > 64 {
            return Err(wrong(format!("its fields take {total} bits, at most 64 fit")));
        }
        let mut left = total;
        for (_, field) in &mut fields {
            left -= field.bits;
            field.shift = left;
        }
        let named = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, f)| *f);
        let time = named("time").ok_or_else(|| wrong("it has no field named time".into()))?;
        let mut sequences = SEQUENCE_TERMS.iter().filter_map(|term| named(term));
        let sequence = sequences.next();
        if sequences.next().is_some() {
            return Err(wrong("it has both a sequence and an increment".into()));
        }
        let sequence_bits = sequence.map_or(0, |f| f.bits);
        if time.bits + sequence_bits > 63 || sequence_bits > 31 {
            return Err(wrong(format!(
                "time has {} bits and sequence {sequence_bits}: at most 63 together, and 31 for sequence",
                time.bits
            )));
        }
        Ok(Self { fields, timescale: Timescale { epoch_ms, unit_ms }, time, sequence })
    }

    /// Returns the layout of a format of [`FORMATS`].
    #[must_use]
    pub fn of(format: &Format<'_>) -> Self {
        let parts = format.placed().filter(|(part, _)| part.role != Role::Fixed);
        let fields = parts.map(|(part, shift)| (part.name.into(), Field { bits: part.bits, shift })).collect();
        let sequence = format.parts.iter().find(|part| part.role == Role::Sequence);
        let sequence = sequence.map(|part| format.field(part.name));
        Self { fields, timescale: format.timescale(), time: format.field("time"), sequence }
    }

    /// Returns the layout of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        FORMATS.iter().chain([&JS_SAFE]).find(|format| format.layout == Some(name)).map(Self::of)
    }

    /// Calls a function with the layout as a format of 64 bits; the bits above the layout are 0.
    pub fn with_format<R>(&self, name: Option<&str>, then: impl FnOnce(&Format<'_>) -> R) -> R {
        let unused = [64 - self.bits()].into_iter().filter(|&bits| bits > 0).map(unused);
        let fields = self.fields.iter().map(|(name, field)| part(name, field.bits));
        let parts: Vec<_> = unused.chain(fields).collect();
        let Timescale { epoch_ms, unit_ms } = self.timescale;
        let format = Format::new("snowflake", &parts, 1.0, "").integer();
        then(&Format { layout: name, ..format.with_clock(Clock::of_ms(epoch_ms, unit_ms)) })
    }

    /// Returns the declaration of the fields: `time:41 node:10 sequence:12`.
    #[must_use]
    pub fn declaration(&self) -> String {
        self.fields.iter().map(|(name, field)| format!("{name}:{}", field.bits)).collect::<Vec<_>>().join(" ")
    }

    /// Returns the layout as stores keep it: `time:41 node:10 sequence:12 @1420070400000 1ms`.
    #[must_use]
    pub fn text(&self) -> String {
        let Timescale { epoch_ms, unit_ms } = self.timescale;
        format!("{} @{epoch_ms} {unit_ms}ms", self.declaration())
    }

    /// Reads the [`Self::text`] or the name of a layout; `None` if it is neither.
    ///
    /// # Errors
    /// [`Error::Layout`]: it declares fields that do not fit.
    pub fn read(text: &str) -> Result<Option<Self>, Error> {
        if let Some(named) = Self::named(text) {
            return Ok(Some(named));
        }
        let parts = text.rsplit_once(" @").and_then(|(fields, rest)| {
            let (epoch, unit) = rest.strip_suffix("ms")?.split_once(' ')?;
            let is_whole = |text: &str| (1..=18).contains(&text.len()) && text.bytes().all(|c| c.is_ascii_digit());
            let is_text = is_whole(epoch.strip_prefix('-').unwrap_or(epoch)) && is_whole(unit);
            let is_short =
                fields.len() <= MAX_DECLARATION && fields.chars().all(|c| c == ' ' || c == ':' || is_of_name(c));
            (is_text && is_short && !fields.is_empty()).then_some((fields, epoch.parse().ok()?, unit.parse().ok()?))
        });
        let Some((fields, epoch_ms, unit_ms)) = parts else { return Ok(None) };
        let wrong = |reason| Error::Layout { layout: text.chars().take(100).collect(), reason };
        let unit_ms: u64 = unit_ms;
        let unit_ms =
            u32::try_from(unit_ms).map_err(|_| wrong(format!("unit_ms {unit_ms} is outside 1..{}", u32::MAX)))?;
        Self::declare(fields, epoch_ms, unit_ms).map(Some)
    }

    /// Returns the layout of a pool of its node numbers.
    #[must_use]
    pub fn pool_layout(&self) -> PoolLayout {
        PoolLayout { text: format!("snowflake {}", self.text()), nodes: self.max_node() + 1, ends: self.expires() }
    }

    /// Reads the layout of a pool as [`Self::pool_layout`] writes it, or the name of a layout; `snowflake` alone means
    /// the default.
    ///
    /// # Errors
    /// [`Error::Layout`]: it declares fields that do not fit.
    pub fn of_pool(text: &str) -> Result<Option<Self>, Error> {
        match text.strip_prefix("snowflake") {
            Some("") => Ok(Some(Self::of(&FORMATS[0]))),
            Some(rest) => rest.strip_prefix(' ').map_or(Ok(None), Self::read),
            None => Ok(Self::named(text)),
        }
    }

    /// Returns the number of all bits.
    #[must_use]
    pub fn bits(&self) -> u32 {
        self.fields.iter().map(|(_, f)| f.bits).sum()
    }

    /// Returns the ticks that fit.
    #[must_use]
    pub fn window(&self) -> Window {
        Window { floor: Tick(0), until: Tick(self.time.max() + 1) }
    }

    /// Returns the first instant that does not fit.
    #[must_use]
    pub fn expires(&self) -> UnixMs {
        self.timescale.start(self.window().until)
    }

    /// Returns the number of IDs of one node in a tick.
    #[must_use]
    pub fn ids_per_tick(&self) -> u32 {
        1 << self.sequence.map_or(0, |f| f.bits)
    }

    fn node_fields(&self) -> impl DoubleEndedIterator<Item = Field> + '_ {
        let known = [Some(self.time), self.sequence];
        self.fields.iter().map(|(_, f)| *f).filter(move |f| !known.contains(&Some(*f)))
    }

    /// Returns the bits of the node number.
    #[must_use]
    pub fn node_bits(&self) -> u32 {
        self.node_fields().map(|f| f.bits).sum()
    }

    /// Returns the largest node number.
    #[must_use]
    pub fn max_node(&self) -> u64 {
        (1 << self.node_bits()) - 1
    }

    /// Returns the bits of a node number in their places.
    #[must_use]
    pub fn place_node(&self, mut node: u64) -> u64 {
        let mut placed = 0;
        for field in self.node_fields().rev() {
            placed |= (node & field.max()) << field.shift;
            node >>= field.bits;
        }
        placed
    }

    fn read_node(&self, id: u64) -> u64 {
        self.node_fields().fold(0, |node, field| node << field.bits | field.get(id.into()))
    }

    /// Composes an ID.
    ///
    /// # Errors
    /// [`Error::Time`], [`Error::Range`].
    pub fn compose(&self, time: UnixMs, node: u64, sequence: u64) -> Result<u64, Error> {
        let tick = self.tick(time)?;
        let max_sequence = u64::from(self.ids_per_tick() - 1);
        for (field, value, max) in [("node", node, self.max_node()), ("sequence", sequence, max_sequence)] {
            if value > max {
                return Err(Error::range(field, value, 0, max.into()));
            }
        }
        let sequence = self.sequence.map_or(0, |f| sequence << f.shift);
        Ok(tick.0 << self.time.shift | self.place_node(node) | sequence)
    }

    /// Returns the tick of a time.
    ///
    /// # Errors
    /// [`Error::Time`] outside the layout.
    pub fn tick(&self, time: UnixMs) -> Result<Tick, Error> {
        self.window().tick(self.timescale, time)
    }

    /// Parses an ID into its fields. Bits above the layout are an error.
    ///
    /// # Errors
    /// [`Error::Range`].
    pub fn parse(&self, id: u64) -> Result<Parts, Error> {
        let max = u64::MAX >> (64 - self.bits());
        if id > max {
            return Err(Error::range("id", id, 0, max.into()));
        }
        let tick = Tick(self.time.get(id.into()));
        Ok(Parts {
            time: self.timescale.start(tick),
            tick,
            node: self.read_node(id),
            sequence: self.sequence.map_or(0, |f| f.get(id.into())),
            fields: self.fields.iter().map(|(name, f)| (name.clone(), f.get(id.into()))).collect(),
        })
    }

    /// Returns the smallest ID of a time's tick.
    ///
    /// # Errors
    /// [`Error::Time`].
    pub fn min_at(&self, time: UnixMs) -> Result<u64, Error> {
        // Fields above the time are 0: such a layout does not sort by time across them.
        Ok(self.tick(time)?.0 << self.time.shift)
    }

    /// Returns the largest ID of a time's tick.
    ///
    /// # Errors
    /// [`Error::Time`].
    pub fn max_at(&self, time: UnixMs) -> Result<u64, Error> {
        let others = (u64::MAX >> (64 - self.bits())) & !(self.time.max() << self.time.shift);
        Ok(self.min_at(time)? | others)
    }
}

/// The fields of an ID.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Parts {
    /// The start of the tick.
    pub time: UnixMs,
    /// The number of ticks since the layout's epoch.
    pub tick: Tick,
    /// The node number.
    pub node: u64,
    /// The sequence number.
    pub sequence: u64,
    /// The fields, high to low.
    pub fields: Vec<(String, u64)>,
}

/// The places of tick and sequence number in an ID.
#[derive(Clone, Copy, Debug)]
pub struct Stamp {
    time_shift: u32,
    sequence_shift: u32,
}

impl Stamp {
    /// Returns the stamp of a layout.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        Self { time_shift: layout.time.shift, sequence_shift: layout.sequence.map_or(0, |f| f.shift) }
    }

    /// Returns the first ID of a run, with a node number from [`Layout::place_node`].
    #[inline(always)]
    #[must_use]
    pub fn first(self, run: Run, node: u64) -> u64 {
        run.tick << self.time_shift | node | u64::from(run.first) << self.sequence_shift
    }

    /// Returns the distance between two IDs of a run.
    #[inline(always)]
    #[must_use]
    pub fn stride(self) -> u64 {
        1 << self.sequence_shift
    }
}

/// Returns the node number as the Java class computes it: the low 10 bits of `String.hashCode` over the MAC addresses
/// of all interfaces in upper-case hex, joined.
///
/// # Errors
/// [`Error::Format`] unless each is 12 hex digits, optionally in pairs joined by `:` or `-`.
pub fn node_from_macs<S: AsRef<str>>(macs: &[S]) -> Result<u16, Error> {
    let mut hash = 0_u32;
    for mac in macs {
        for digit in mac_digits(mac.as_ref())?.bytes() {
            hash = hash.wrapping_mul(31).wrapping_add(u32::from(digit.to_ascii_uppercase()));
        }
    }
    Ok((hash & 0x3ff) as u16)
}

/// Returns the 12 lower-case hex digits of a MAC address.
///
/// # Errors
/// [`Error::Format`].
pub fn mac_digits(mac: &str) -> Result<String, Error> {
    let digits: String = match mac.len() {
        17 if [":", "-"].iter().any(|sep| mac.split(sep).count() == 6 && mac.split(sep).all(|p| p.len() == 2)) => {
            mac.replace([':', '-'], "")
        }
        _ => mac.to_owned(),
    };
    if digits.len() != 12 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(Error::Format {
            field: "mac",
            value: mac.chars().take(40).collect(),
            expected: "12 hex digits, optionally in pairs joined by : or -",
        });
    }
    Ok(digits.to_ascii_lowercase())
}
