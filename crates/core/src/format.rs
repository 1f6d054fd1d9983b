//! What a format says of itself: its parts, its clock, its texts. One constant a format, from which the core takes its
//! [`Field`]s, `inspect` its readings, and the documentation its diagrams.
//!
//! An ID is an unsigned number of fixed width, kept as big-endian bytes: some are wider than any integer of the machine's.
//! Formats without a binary form (cuid, cuid2, nanoid) are the bytes of their ASCII text.

use crate::codec::positional::{Alphabet, BASE10, Digits, LONGEST, MOST_BYTES, class, repeated};
use crate::layout::Field;
use crate::units::{Timescale, UnixMs};
use std::fmt;

/// What a part is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Counts time.
    Time,
    /// Tells one minter from another.
    Node,
    /// Counts within a tick.
    Sequence,
    /// Says something else.
    Meta,
    /// Is random, or as good as that.
    Random,
    /// Is the same in every ID.
    Fixed,
}

impl Role {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::Node => "node",
            Self::Sequence => "sequence",
            Self::Meta => "meta",
            Self::Random => "random",
            Self::Fixed => "fixed",
        }
    }
}

/// How a part's bits are read as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// A number.
    Number,
    /// A number whose hexadecimal digits stand in reverse.
    Reversed,
    /// A number whose digits, of base 36, are characters of 8 bits each.
    Base36,
    /// Hexadecimal digits, as the bits count nothing.
    Hex,
    /// Characters of 8 bits each.
    Letters,
}

/// The values that a format allows in a part; anything else is not of this format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// Any.
    Any,
    /// This one.
    Is(u128),
    /// From the first one to before the second.
    Within(u128, u128),
}

/// What a part says, in a sentence.
#[derive(Clone, Copy, Debug)]
pub enum Says<'a> {
    /// What the clock counts.
    Clock,
    /// This, and what the clock counts.
    OfClock(&'a str),
    /// This.
    Text(&'a str),
    /// What comes of its bits.
    By(fn(u64) -> String),
}

/// One field of a format, below the parts that are declared before it.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its width.
    pub bits: u32,
    /// What it is for.
    pub role: Role,
    /// How its bits are read.
    pub show: Show,
    /// What may stand there.
    pub only: Only,
    /// What it says.
    pub says: Says<'a>,
}

impl<'a> Part<'a> {
    /// A number.
    #[must_use]
    pub const fn new(role: Role, name: &'a str, bits: u32, says: &'a str) -> Self {
        Self { name, bits, role, show: Show::Number, only: Only::Any, says: Says::Text(says) }
    }

    /// All of a time, which needs no words of its own.
    #[must_use]
    pub const fn time(name: &'a str, bits: u32) -> Self {
        Self { says: Says::Clock, ..Self::new(Role::Time, name, bits, "") }
    }

    /// Random bits.
    #[must_use]
    pub const fn random(name: &'a str, bits: u32, says: &'a str) -> Self {
        Self::new(Role::Random, name, bits, says).shown(Show::Hex)
    }

    /// Bits that are the same in every ID.
    #[must_use]
    pub const fn fixed(name: &'a str, bits: u32, value: u128, says: &'a str) -> Self {
        Self::new(Role::Fixed, name, bits, says).only(Only::Is(value))
    }

    /// The same part, whose bits are read so.
    #[must_use]
    pub const fn shown(self, show: Show) -> Self {
        Self { show, ..self }
    }

    /// The same part, of which only these values are allowed.
    #[must_use]
    pub const fn only(self, only: Only) -> Self {
        Self { only, ..self }
    }

    /// The same part, which says so.
    #[must_use]
    pub const fn says(self, says: Says<'a>) -> Self {
        Self { says, ..self }
    }

    /// The number that its bits stand for, if they do.
    fn number(&self, raw: u128) -> Option<u128> {
        match self.show {
            Show::Number | Show::Hex | Show::Letters => Some(raw),
            Show::Reversed => Some((0..self.bits / 4).fold(0, |number, i| number << 4 | raw >> (4 * i) & 0xf)),
            Show::Base36 => (0..self.bits / 8).rev().try_fold(0, |number, i| {
                Some(number * 36 + u128::from(char::from((raw >> (8 * i)) as u8).to_digit(36)?))
            }),
        }
    }

    fn allows(&self, raw: u128) -> bool {
        match self.only {
            Only::Any => true,
            Only::Is(value) => self.number(raw) == Some(value),
            Only::Within(first, end) => self.number(raw).is_some_and(|number| (first..end).contains(&number)),
        }
    }

    /// A regular expression of each of its characters. What is allowed of a number of several is told by the first.
    fn patterns(&self, alphabet: &Alphabet) -> Vec<String> {
        let (below, characters) = (self.bits - 8, alphabet.characters());
        let lowest = (0..below / 8).fold(0, |lowest, _| lowest << 8 | u128::from(characters[0]));
        let mut sorted = characters.to_vec();
        sorted.sort_unstable();
        let mut patterns = vec![class(&sorted); self.bits as usize / 8];
        if self.only != Only::Any {
            sorted.retain(|&first| self.allows(u128::from(first) << below | lowest));
            patterns[0] = class(&sorted);
        }
        patterns
    }

    /// How many values it can have.
    #[must_use]
    pub const fn values(&self) -> i128 {
        match self.only {
            Only::Within(_, end) => end as i128,
            _ => 1 << self.bits,
        }
    }
}

/// What the time parts count: ticks of `tick_ns` nanoseconds since `epoch_ns`, in nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct Clock<'a> {
    /// When tick 0 begins.
    pub epoch_ns: i128,
    /// How long a tick is.
    pub tick_ns: u64,
    /// The names of the parts that hold the count, the most significant first.
    pub parts: &'a [&'a str],
}

/// Nanoseconds of a millisecond.
pub const MS: u64 = 1_000_000;
/// Nanoseconds of a second.
pub const SECOND: u64 = 1_000 * MS;

impl<'a> Clock<'a> {
    /// Milliseconds since 1970.
    pub const UNIX_MS: Self = Self::new(0, MS);
    /// Seconds since 1970.
    pub const UNIX_S: Self = Self::new(0, SECOND);

    /// Ticks that a part called `time` counts.
    #[must_use]
    pub const fn new(epoch_ns: i128, tick_ns: u64) -> Self {
        Self { epoch_ns, tick_ns, parts: &["time"] }
    }

    /// Ticks of so many milliseconds since an epoch in milliseconds since 1970.
    #[must_use]
    pub const fn of_ms(epoch_ms: i64, unit_ms: u32) -> Self {
        Self::new(epoch_ms as i128 * MS as i128, unit_ms as u64 * MS)
    }

    /// The same, counted by several parts, the most significant first.
    #[must_use]
    pub const fn counted_by(self, parts: &'a [&'a str]) -> Self {
        Self { parts, ..self }
    }
}

impl fmt::Display for Clock<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tick_ns {
            SECOND => f.write_str("seconds")?,
            MS => f.write_str("milliseconds")?,
            tick if tick.is_multiple_of(MS) => write!(f, "ticks of {} ms", tick / MS)?,
            tick => write!(f, "ticks of {tick} ns")?,
        }
        match time::OffsetDateTime::from_unix_timestamp_nanos(self.epoch_ns) {
            Ok(t) if t.year() >= 1 => {
                write!(f, " since {:04}-{:02}-{:02}", t.year(), u8::from(t.month()), t.day())?;
                let (hour, minute, second, micros) = (t.hour(), t.minute(), t.second(), t.microsecond());
                match (hour, minute, second, micros) {
                    (0, 0, 0, 0) => return Ok(()),
                    _ => write!(f, "T{hour:02}:{minute:02}:{second:02}")?,
                }
                match (micros, micros % 1_000) {
                    (0, _) => f.write_str("Z"),
                    (_, 0) => write!(f, ".{:03}Z", micros / 1_000),
                    _ => write!(f, ".{micros:06}Z"),
                }
            }
            _ => write!(f, " since {} ns from 1970", self.epoch_ns),
        }
    }
}

/// One way to write an ID, in characters of a fixed number.
#[derive(Clone, Copy, Debug)]
pub enum Text {
    /// Its number, in digits.
    Digits(&'static Digits),
    /// Its number, in the digits of another format that may hold its bits.
    Borrowed(&'static Digits),
    /// As the bytes of another ID, the characters of its text: for databases with a UUID type and no other fixed bytes.
    Held(&'static Digits, &'static Digits),
    /// Its only form: so many characters of an alphabet.
    Characters(usize, &'static Alphabet),
}

impl Text {
    /// Characters of a text.
    #[must_use]
    pub const fn length(&self) -> usize {
        match self {
            Self::Digits(digits) | Self::Borrowed(digits) | Self::Held(digits, _) => digits.length(),
            Self::Characters(length, _) => *length,
        }
    }

    /// Reads a text of this length into a number of the format's width, and says whether it is written so.
    fn read(&self, text: &[u8], id: &mut [u8]) -> bool {
        match self {
            Self::Digits(digits) | Self::Borrowed(digits) => digits.read(text, id).is_ok(),
            Self::Held(outer, inner) => {
                let mut held = [0; LONGEST];
                let held = &mut held[..inner.length()];
                outer.read(text, held).is_ok() && inner.read(held, id).is_ok()
            }
            Self::Characters(_, alphabet) => {
                id.copy_from_slice(text);
                text.iter().all(|&character| alphabet.value(character).is_some())
            }
        }
    }

    fn write(&self, id: &[u8]) -> String {
        let mut text = [0; LONGEST];
        let text = &mut text[..self.length()];
        match self {
            Self::Digits(digits) | Self::Borrowed(digits) => digits.write(id, text),
            Self::Held(outer, inner) => {
                let mut held = [0; LONGEST];
                let held = &mut held[..inner.length()];
                inner.write(id, held);
                outer.write(held, text);
            }
            Self::Characters(..) => text.copy_from_slice(id),
        }
        String::from_utf8_lossy(text).into_owned()
    }
}

/// How a text was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Canonically.
    Text,
    /// Readably, though not canonically.
    Variant,
    /// As another ID whose bytes are its text.
    Held,
    /// As an ID of another format that may hold its bits.
    Borrowed,
}

impl Form {
    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Variant => "variant",
            Self::Held => "held",
            Self::Borrowed => "borrowed",
        }
    }
}

/// A part's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(u128),
    /// Hexadecimal digits, or characters.
    Text(String),
}

/// One format, or one layout of a scheme.
#[derive(Clone, Copy, Debug)]
pub struct Format<'a> {
    /// The scheme's word.
    pub scheme: &'a str,
    /// Which of the scheme's layouts, where it has several.
    pub layout: Option<&'a str>,
    /// Its fields, the most significant first.
    pub parts: &'a [Part<'a>],
    /// What its time parts count.
    pub clock: Option<Clock<'a>>,
    /// How it is written, the canonical text first; none for plain decimal integers of 64 bits.
    pub texts: &'a [Text],
    /// Whether it is also kept as big-endian bytes.
    pub raw: bool,
    /// Whether it is also used as an integer.
    pub integer: bool,
    /// When its generators stop, where that is before its last time.
    pub ends: Option<UnixMs>,
    /// How much speaks for it before its time is looked at, from 0 to 1: how common it is, and how much of it an arbitrary
    /// value would have to match by chance.
    pub weight: f64,
    /// Where it is described.
    pub source: &'a str,
}

impl<'a> Format<'a> {
    /// A format that is kept as bytes only.
    #[must_use]
    pub const fn new(scheme: &'a str, parts: &'a [Part<'a>], weight: f64, source: &'a str) -> Self {
        let (layout, clock, ends) = (None, None, None);
        Self { scheme, layout, parts, clock, texts: &[], raw: true, integer: false, ends, weight, source }
    }

    /// The same, of a scheme with several layouts.
    #[must_use]
    pub const fn of_layout(self, layout: &'a str) -> Self {
        Self { layout: Some(layout), ..self }
    }

    /// The same, with a time.
    #[must_use]
    pub const fn timed(self, clock: Clock<'a>) -> Self {
        Self { clock: Some(clock), ..self }
    }

    /// The same, with texts.
    #[must_use]
    pub const fn written(self, texts: &'a [Text]) -> Self {
        Self { texts, ..self }
    }

    /// The same, also used as an integer.
    #[must_use]
    pub const fn integer(self) -> Self {
        Self { integer: true, ..self }
    }

    /// The same, never kept as bytes.
    #[must_use]
    pub const fn text_only(self) -> Self {
        Self { raw: false, ..self }
    }

    /// The same, whose generators stop then.
    #[must_use]
    pub const fn ending(self, ends: UnixMs) -> Self {
        Self { ends: Some(ends), ..self }
    }

    /// All bits.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        let (mut bits, mut i) = (0, 0);
        while i < self.parts.len() {
            bits += self.parts[i].bits;
            i += 1;
        }
        bits
    }

    /// Bytes of an ID.
    #[must_use]
    pub const fn size(&self) -> usize {
        assert!(self.bits().is_multiple_of(8), "an ID is whole bytes");
        self.bits() as usize / 8
    }

    /// Characters of its canonical text.
    ///
    /// # Panics
    /// Where it has none; used for constants, so at compile time.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.texts[0].length()
    }

    /// The part of a name.
    const fn part(&self, name: &str) -> &Part<'a> {
        let mut i = 0;
        while i < self.parts.len() {
            if same(self.parts[i].name, name) {
                return &self.parts[i];
            }
            i += 1;
        }
        panic!("the format has no such part")
    }

    /// The width of a part.
    ///
    /// # Panics
    /// Where there is no such part; used for constants, so at compile time.
    #[must_use]
    pub const fn width_of(&self, name: &str) -> u32 {
        self.part(name).bits
    }

    /// A part's place in a word of 128 bits.
    ///
    /// # Panics
    /// Where there is no such part, or it is wider than 64 bits or beyond the word; used for constants, so at compile time.
    #[must_use]
    pub const fn field(&self, name: &str) -> Field {
        let (mut shift, mut i) = (self.bits(), 0);
        while i < self.parts.len() {
            let bits = self.parts[i].bits;
            shift -= bits;
            if same(self.parts[i].name, name) {
                assert!(bits <= 64 && shift + bits <= 128, "a field has 64 bits at most, of the lower 128");
                return Field { bits, shift };
            }
            i += 1;
        }
        panic!("the format has no such part")
    }

    /// Epoch and tick, where both are whole milliseconds.
    ///
    /// # Panics
    /// Where they are not, or it has no time; used for constants, so at compile time.
    #[must_use]
    pub const fn timescale(&self) -> Timescale {
        let Some(Clock { epoch_ns, tick_ns, .. }) = self.clock else { panic!("the format has no time") };
        assert!(epoch_ns % MS as i128 == 0 && tick_ns.is_multiple_of(MS), "epoch and tick are whole milliseconds");
        Timescale { epoch_ms: (epoch_ns / MS as i128) as i64, unit_ms: (tick_ns / MS) as u32 }
    }

    /// How many ticks its time parts count.
    ///
    /// # Panics
    /// Where it has no time; used for constants, so at compile time.
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

    /// `uuid v7`, `snowflake discord`, `sno`.
    #[must_use]
    pub fn name(&self) -> String {
        self.layout.map_or_else(|| self.scheme.into(), |layout| format!("{} {layout}", self.scheme))
    }

    /// Every part with the number of its lowest bit; bit 0 is the least significant of the ID.
    pub fn placed(&self) -> impl Iterator<Item = (&'a Part<'a>, u32)> {
        self.parts.iter().scan(self.bits(), |low, part| {
            *low -= part.bits;
            Some((part, *low))
        })
    }

    /// Whether an ID of the format's size has in every part what is allowed there.
    #[must_use]
    pub fn fits(&self, id: &[u8]) -> bool {
        id.len() * 8 == self.bits() as usize
            && self.placed().all(|(part, low)| part.only == Only::Any || part.allows(bits_of(id, low, part.bits)))
    }

    /// Reads a text in any form that the format has; `None` where it is not an ID of this format.
    #[must_use]
    pub fn read(&self, text: &str) -> Option<(Vec<u8>, Form)> {
        let written = self.texts.iter().find(|written| written.length() == text.len())?;
        let mut id = vec![0; self.size()];
        if !written.read(text.as_bytes(), &mut id) || !self.fits(&id) {
            return None;
        }
        let form = match written {
            Text::Borrowed(_) => Form::Borrowed,
            Text::Held(..) => Form::Held,
            _ if self.write(&id) == text => Form::Text,
            _ => Form::Variant,
        };
        Some((id, form))
    }

    /// The canonical text of an ID of the format's size.
    #[must_use]
    pub fn write(&self, id: &[u8]) -> String {
        self.texts.first().map_or_else(|| bits_of(id, 0, self.bits()).to_string(), |text| text.write(id))
    }

    /// A regular expression of exactly what its class's parser takes, without anchors: its canonical text in any way of writing
    /// that, whatever the bits. Where IDs are text alone, there is no such class, and it is what [`Self::read`] takes.
    #[must_use]
    pub fn pattern(&self) -> String {
        match self.texts.first() {
            Some(Text::Digits(digits) | Text::Borrowed(digits) | Text::Held(digits, _)) => {
                digits.pattern(&[0xff; MOST_BYTES][..self.size()])
            }
            Some(Text::Characters(_, alphabet)) => {
                repeated(&self.parts.iter().flat_map(|part| part.patterns(alphabet)).collect::<Vec<_>>())
            }
            None => {
                let unused: u32 =
                    self.parts.iter().take_while(|part| part.only == Only::Is(0)).map(|part| part.bits).sum();
                let largest = u64::MAX >> (64 - self.bits() + unused);
                let count = largest.to_string().len();
                let widest = Digits::new(BASE10, count).pattern(&largest.to_be_bytes());
                if count == 1 { widest } else { format!("(?:[0-9]{{1,{}}}|{widest})", count - 1) }
            }
        }
    }

    /// Nanoseconds since 1970, where the format has a time.
    #[must_use]
    pub fn time_ns(&self, id: &[u8]) -> Option<i128> {
        let clock = self.clock?;
        let mut ticks = 0;
        for name in clock.parts {
            for (part, low) in self.placed().filter(|(part, _)| part.name == *name) {
                ticks = ticks * part.values() + part.number(bits_of(id, low, part.bits))? as i128;
            }
        }
        Some(clock.epoch_ns + ticks * i128::from(clock.tick_ns))
    }

    /// A part's value in an ID of the format's size, and what it says there.
    #[must_use]
    pub fn explain(&self, part: &Part<'_>, low: u32, id: &[u8]) -> (Value, String) {
        let letters = || {
            let (first, end) = (id.len() - (low + part.bits) as usize / 8, id.len() - low as usize / 8);
            Value::Text(String::from_utf8_lossy(&id[first..end]).into_owned())
        };
        if part.show == Show::Letters {
            return (letters(), self.says(part).unwrap_or_default());
        }
        let raw = bits_of(id, low, part.bits);
        let value = match part.show {
            Show::Hex => Value::Text(format!("{raw:0width$x}", width = part.bits.div_ceil(4) as usize)),
            _ => part.number(raw).map_or_else(letters, Value::Number),
        };
        let says = match part.says {
            Says::By(says) => says(raw as u64),
            _ => self.says(part).unwrap_or_default(),
        };
        (value, says)
    }

    /// What a part says of any ID; `None` where that depends on its bits.
    #[must_use]
    pub fn says(&self, part: &Part<'_>) -> Option<String> {
        let clock = || self.clock.map_or_else(String::new, |clock| clock.to_string());
        match part.says {
            Says::Clock => Some(clock()),
            Says::OfClock(text) => Some(format!("{text}: {}", clock())),
            Says::Text(text) => Some(text.into()),
            Says::By(_) => None,
        }
    }

    fn width(&self, role: Role) -> u32 {
        self.parts.iter().filter(|part| part.role == role).map(|part| part.bits).sum()
    }

    /// How many nodes can mint at the same time, where the format tells nodes apart.
    #[must_use]
    pub fn nodes(&self) -> Option<u64> {
        let width = self.width(Role::Node);
        (width > 0 && self.raw).then(|| 1 << width)
    }

    /// How many IDs one node can mint in a second, where counting keeps them apart, not chance.
    #[must_use]
    pub fn ids_per_second(&self) -> Option<u128> {
        let clock = self.clock.filter(|_| self.width(Role::Random) == 0 && self.width(Role::Node) > 0)?;
        Some((u128::from(SECOND) << self.width(Role::Sequence)) / u128::from(clock.tick_ns))
    }

    /// The first nanosecond since 1970 that it cannot hold, where it has a time.
    #[must_use]
    pub fn expires_ns(&self) -> Option<i128> {
        self.clock.map(|clock| clock.epoch_ns + i128::from(clock.tick_ns) * self.ticks())
    }

    /// The bits, drawn:
    /// ```text
    ///   39 bits   1      8      16          16
    /// ┌─────────┬──────┬──────┬───────────┬──────────┐
    /// │ time    │ tick │ meta │ partition │ sequence │
    /// └─────────┴──────┴──────┴───────────┴──────────┘
    /// ```
    #[must_use]
    pub fn diagram(&self) -> String {
        let mut rows = [" ", "┌", "│", "└"].map(String::from);
        for (i, part) in self.parts.iter().enumerate() {
            let bits = format!("{}{}", part.bits, if i == 0 { " bits" } else { "" });
            let width = bits.len().max(part.name.len());
            let end = if i + 1 == self.parts.len() { ["", "┐", "│", "┘"] } else { [" ", "┬", "│", "┴"] };
            let line = "─".repeat(width + 2);
            let cells = [format!(" {bits:width$} "), line.clone(), format!(" {:width$} ", part.name), line];
            for ((row, cell), end) in rows.iter_mut().zip(cells).zip(end) {
                *row += &cell;
                *row += end;
            }
        }
        rows.map(|row| row.trim_end().to_owned() + "\n").concat()
    }
}

/// Sets up to 128 bits of a big-endian number, from bit `low` on, which were 0.
pub fn put_bits(id: &mut [u8], low: u32, value: u128) {
    let (skip, shift) = (low as usize / 8, low % 8);
    for (i, byte) in id.iter_mut().rev().skip(skip).take(17).enumerate() {
        let at = 8 * i as u32;
        *byte |= if at < shift { value << shift } else { value.checked_shr(at - shift).unwrap_or(0) } as u8;
    }
}

/// `str`s cannot be compared at compile time.
pub(crate) const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// Up to 128 bits of a big-endian number, from bit `low` on.
fn bits_of(id: &[u8], low: u32, bits: u32) -> u128 {
    let (skip, shift) = (low as usize / 8, low % 8);
    let mut word = 0;
    for (i, &byte) in id.iter().rev().skip(skip).take((shift + bits).div_ceil(8) as usize).enumerate() {
        let at = 8 * i as u32;
        word |= if at < shift { u128::from(byte) >> shift } else { u128::from(byte) << (at - shift) };
    }
    word & (u128::MAX >> (128 - bits))
}
