//! The declaration of a format: its parts, its clock and its texts, in one constant.
//!
//! The core takes its [`Field`]s from it, `inspect` its readings, and the documentation its diagrams.
//!
//! An ID is an unsigned number of fixed width, kept as big-endian bytes: some IDs are wider than any integer of the
//! machine. The IDs of formats without a binary form (cuid, cuid2, nanoid) are the bytes of their ASCII text.

mod bits;
mod clock;
mod diagram;
mod part;
mod pattern;
mod text;

pub use bits::put_bits;
pub use clock::{Clock, MS, SECOND};
pub use part::{Constraint, Description, Part, Rendering, Role};
pub use text::{Spelling, Text};

use crate::layout::Field;
use crate::units::{Timescale, UnixMs};
use bits::get_bits;

/// The value of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(u128),
    /// Hexadecimal digits, or characters.
    Text(String),
}

impl Part<'_> {
    /// Returns the value of the part in an ID of its format's size; `low` is its lowest bit there.
    #[must_use]
    pub fn value(&self, low: u32, id: &[u8]) -> Value {
        let letters = || {
            let (first, end) = (id.len() - (low + self.bits) as usize / 8, id.len() - low as usize / 8);
            Value::Text(String::from_utf8_lossy(&id[first..end]).into_owned())
        };
        match self.rendering {
            Rendering::Letters => letters(),
            Rendering::Hex => {
                let digits = self.bits.div_ceil(4) as usize;
                Value::Text(format!("{:0digits$x}", get_bits(id, low, self.bits)))
            }
            _ => self.number(get_bits(id, low, self.bits)).map_or_else(letters, Value::Number),
        }
    }
}

/// One format, or one layout of a scheme.
#[derive(Clone, Copy, Debug)]
pub struct Format<'a> {
    /// The name of its scheme.
    pub scheme: &'a str,
    /// The name of its layout, if the scheme has several.
    pub layout: Option<&'a str>,
    /// Its fields, the most significant first.
    pub parts: &'a [Part<'a>],
    /// The clock that its time parts count.
    pub clock: Option<Clock<'a>>,
    /// Its texts, the canonical one first; none for plain decimal integers of 64 bits.
    pub texts: &'a [Text],
    /// True if its IDs are also stored as big-endian bytes.
    pub raw: bool,
    /// True if its IDs are also used as integers.
    pub integer: bool,
    /// The end of its generators' time, if that is before the end of its clock.
    pub ends: Option<UnixMs>,
    /// Its prior weight in a reading, from 0 to 1, before the time is considered: how common it is, and how many of its
    /// bits an arbitrary value would have to match by chance.
    pub weight: f64,
    /// The source of its specification.
    pub source: &'a str,
}

impl<'a> Format<'a> {
    /// Declares a format whose IDs are stored as bytes only.
    #[must_use]
    pub const fn new(scheme: &'a str, parts: &'a [Part<'a>], weight: f64, source: &'a str) -> Self {
        let (layout, clock, ends) = (None, None, None);
        Self { scheme, layout, parts, clock, texts: &[], raw: true, integer: false, ends, weight, source }
    }

    /// Names the layout, of a scheme with several.
    #[must_use]
    pub const fn with_layout(self, layout: &'a str) -> Self {
        Self { layout: Some(layout), ..self }
    }

    /// Sets the clock.
    #[must_use]
    pub const fn with_clock(self, clock: Clock<'a>) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// Sets the texts.
    #[must_use]
    pub const fn with_texts(self, texts: &'a [Text]) -> Self {
        Self { texts, ..self }
    }

    /// Declares that IDs are also used as integers.
    #[must_use]
    pub const fn integer(self) -> Self {
        Self { integer: true, ..self }
    }

    /// Declares that IDs are never stored as bytes.
    #[must_use]
    pub const fn text_only(self) -> Self {
        Self { raw: false, ..self }
    }

    /// Sets the end of the generators' time.
    #[must_use]
    pub const fn ending_at(self, ends: UnixMs) -> Self {
        Self { ends: Some(ends), ..self }
    }

    /// Returns the number of all bits.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        let (mut bits, mut i) = (0, 0);
        while i < self.parts.len() {
            bits += self.parts[i].bits;
            i += 1;
        }
        bits
    }

    /// Returns the bytes of an ID.
    #[must_use]
    pub const fn size(&self) -> usize {
        assert!(self.bits() % 8 == 0, "an ID is a multiple of 8 bits");
        self.bits() as usize / 8
    }

    /// Returns the characters of the canonical text.
    ///
    /// # Panics
    /// If it has none; constants use it, so at compile time.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.texts[0].length()
    }

    /// Returns the part of a name.
    const fn part(&self, name: &str) -> &Part<'a> {
        let mut i = 0;
        while i < self.parts.len() {
            if str_eq(self.parts[i].name, name) {
                return &self.parts[i];
            }
            i += 1;
        }
        panic!("the format has no such part")
    }

    /// Returns the place of a part in a word of 128 bits.
    ///
    /// # Panics
    /// If there is no such part, or it is wider than 64 bits or beyond the word; constants use it, so at compile time.
    #[must_use]
    pub const fn field(&self, name: &str) -> Field {
        let (mut shift, mut i) = (self.bits(), 0);
        while i < self.parts.len() {
            let bits = self.parts[i].bits;
            shift -= bits;
            if str_eq(self.parts[i].name, name) {
                assert!(bits <= 64 && shift + bits <= 128, "a field has 64 bits at most, of the lower 128");
                return Field { bits, shift };
            }
            i += 1;
        }
        panic!("the format has no such part")
    }

    /// Returns epoch and tick in milliseconds.
    ///
    /// # Panics
    /// If they are not multiples of a millisecond, or there is no time; constants use it, so at compile time.
    #[must_use]
    pub const fn timescale(&self) -> Timescale {
        let Some(Clock { epoch_ns, tick_ns, .. }) = self.clock else { panic!("the format has no time") };
        assert!(epoch_ns % MS as i128 == 0 && tick_ns % MS == 0, "epoch and tick are multiples of a millisecond");
        Timescale { epoch_ms: (epoch_ns / MS as i128) as i64, unit_ms: (tick_ns / MS) as u32 }
    }

    /// Returns the number of ticks that the time parts count.
    ///
    /// # Panics
    /// If there is no time; constants use it, so at compile time.
    #[must_use]
    pub const fn ticks(&self) -> i128 {
        let Some(Clock { parts: counting, .. }) = self.clock else { panic!("the format has no time") };
        let (mut ticks, mut i) = (1, 0);
        while i < counting.len() {
            ticks *= self.part(counting[i]).values();
            i += 1;
        }
        ticks
    }

    /// Returns the name of scheme and layout: `uuid v7`, `snowflake discord`, `sno`.
    #[must_use]
    pub fn name(&self) -> String {
        self.layout.map_or_else(|| self.scheme.into(), |layout| format!("{} {layout}", self.scheme))
    }

    /// Iterates over the parts, each with the number of its lowest bit; bit 0 is the least significant of the ID.
    pub fn placed(&self) -> impl Iterator<Item = (&'a Part<'a>, u32)> {
        self.parts.iter().scan(self.bits(), |low, part| {
            *low -= part.bits;
            Some((part, *low))
        })
    }

    /// Returns whether an ID of the format's size satisfies the constraint of every part.
    #[must_use]
    pub fn fits(&self, id: &[u8]) -> bool {
        id.len() * 8 == self.bits() as usize
            && self
                .placed()
                .all(|(part, low)| part.constraint == Constraint::Any || part.allows(get_bits(id, low, part.bits)))
    }

    /// Reads a text in any spelling of the format; `None` if it is not an ID of this format.
    #[must_use]
    pub fn read(&self, text: &str) -> Option<(Vec<u8>, Spelling)> {
        let written = self.texts.iter().find(|written| written.length() == text.len())?;
        let mut id = vec![0; self.size()];
        if !written.read(text.as_bytes(), &mut id) || !self.fits(&id) {
            return None;
        }
        let spelling = match written.spelling {
            Spelling::Canonical if self.write(&id) != text => Spelling::Variant,
            spelling => spelling,
        };
        Some((id, spelling))
    }

    /// Returns the canonical text of an ID of the format's size.
    #[must_use]
    pub fn write(&self, id: &[u8]) -> String {
        self.texts.first().map_or_else(|| get_bits(id, 0, self.bits()).to_string(), |text| text.write(id))
    }

    /// Returns the ID's time in nanoseconds since 1970; `None` if the format has no time.
    ///
    /// ```
    /// use mintage_core::schemes::ulid;
    /// let (id, _) = ulid::FORMAT.read("01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap();
    /// assert_eq!(ulid::FORMAT.time_ns(&id), Some(1_469_922_850_259_000_000));
    /// ```
    #[must_use]
    pub fn time_ns(&self, id: &[u8]) -> Option<i128> {
        let clock = self.clock?;
        let mut ticks = 0;
        for name in clock.parts {
            for (part, low) in self.placed().filter(|(part, _)| part.name == *name) {
                ticks = ticks * part.values() + part.number(get_bits(id, low, part.bits))? as i128;
            }
        }
        Some(clock.epoch_ns + ticks * i128::from(clock.tick_ns))
    }

    /// Returns the value of a part in an ID of the format's size, and its meaning there.
    #[must_use]
    pub fn explain(&self, part: &Part<'_>, low: u32, id: &[u8]) -> (Value, String) {
        let description = match part.description {
            Description::Computed(describe) if part.rendering != Rendering::Letters => {
                describe(get_bits(id, low, part.bits) as u64)
            }
            _ => self.describe(part).unwrap_or_default(),
        };
        (part.value(low, id), description)
    }

    /// Describes a part of any ID; `None` if its meaning depends on its bits.
    #[must_use]
    pub fn describe(&self, part: &Part<'_>) -> Option<String> {
        let clock = || self.clock.map_or_else(String::new, |clock| clock.to_string());
        match part.description {
            Description::Clock => Some(clock()),
            Description::TextAndClock(text) => Some(format!("{text}: {}", clock())),
            Description::Text(text) => Some(text.into()),
            Description::Computed(_) => None,
        }
    }

    fn width(&self, role: Role) -> u32 {
        self.parts.iter().filter(|part| part.role == role).map(|part| part.bits).sum()
    }

    /// Returns the number of nodes that can mint at the same time; `None` if the format has no node number.
    #[must_use]
    pub fn nodes(&self) -> Option<u64> {
        let width = self.width(Role::Node);
        (width > 0 && self.raw).then(|| 1 << width)
    }

    /// Returns the number of IDs that one node can mint in a second; `None` if chance, not a counter, keeps IDs apart.
    #[must_use]
    pub fn ids_per_second(&self) -> Option<u128> {
        let clock = self.clock.filter(|_| self.width(Role::Random) == 0 && self.width(Role::Node) > 0)?;
        Some((u128::from(SECOND) << self.width(Role::Sequence)) / u128::from(clock.tick_ns))
    }

    /// Returns the first nanosecond since 1970 that the format cannot hold; `None` if it has no time.
    #[must_use]
    pub fn expires_ns(&self) -> Option<i128> {
        self.clock.map(|clock| clock.epoch_ns + i128::from(clock.tick_ns) * self.ticks())
    }
}

/// Compares strings at compile time, when `==` is not available.
pub(crate) const fn str_eq(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}
