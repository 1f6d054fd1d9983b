//! The parts of a format: the bit fields that it declares.

/// The purpose of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Counts time.
    Time,
    /// Distinguishes nodes.
    Node,
    /// Counts within a tick.
    Sequence,
    /// Carries other data.
    Meta,
    /// Is random, or indistinguishable from it.
    Random,
    /// Is the same in every ID.
    Fixed,
}

impl Role {
    /// Returns the role's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
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

/// The way in which a part's bits become a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rendering {
    /// A number.
    Number,
    /// A number whose hexadecimal digits are stored in reverse order.
    Reversed,
    /// A number stored as digits of base 36, in characters of 8 bits each.
    Base36,
    /// Hexadecimal digits, as the bits count nothing.
    Hex,
    /// Characters of 8 bits each.
    Letters,
}

/// The values that a format allows in a part. A number with any other value is not an ID of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Constraint {
    /// Any value.
    Any,
    /// This value.
    Equals(u128),
    /// From the first value to before the second.
    Within(u128, u128),
}

/// The meaning of a part, in a sentence.
#[derive(Clone, Copy, Debug)]
pub enum Description<'a> {
    /// The description of the format's clock.
    Clock,
    /// This text, followed by the description of the clock.
    TextAndClock(&'a str),
    /// This text.
    Text(&'a str),
    /// A text computed from the part's bits.
    Computed(fn(u64) -> String),
}

/// One field of a format, below the parts that are declared before it.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its width.
    pub bits: u32,
    /// Its purpose.
    pub role: Role,
    /// The way in which its bits become a value.
    pub rendering: Rendering,
    /// The values that it may have.
    pub constraint: Constraint,
    /// Its meaning.
    pub description: Description<'a>,
}

impl<'a> Part<'a> {
    /// Declares a number.
    #[must_use]
    pub const fn new(role: Role, name: &'a str, bits: u32, description: &'a str) -> Self {
        let (rendering, constraint, description) = (Rendering::Number, Constraint::Any, Description::Text(description));
        Self { name, bits, role, rendering, constraint, description }
    }

    /// Declares all of a time, which the clock describes.
    #[must_use]
    pub const fn time(name: &'a str, bits: u32) -> Self {
        Self { description: Description::Clock, ..Self::new(Role::Time, name, bits, "") }
    }

    /// Declares random bits.
    #[must_use]
    pub const fn random(name: &'a str, bits: u32, description: &'a str) -> Self {
        Self::new(Role::Random, name, bits, description).rendered_as(Rendering::Hex)
    }

    /// Declares bits that are the same in every ID.
    #[must_use]
    pub const fn fixed(name: &'a str, bits: u32, value: u128, description: &'a str) -> Self {
        Self::new(Role::Fixed, name, bits, description).constrained_to(Constraint::Equals(value))
    }

    /// Sets the rendering.
    #[must_use]
    pub const fn rendered_as(self, rendering: Rendering) -> Self {
        Self { rendering, ..self }
    }

    /// Sets the constraint.
    #[must_use]
    pub const fn constrained_to(self, constraint: Constraint) -> Self {
        Self { constraint, ..self }
    }

    /// Sets the description.
    #[must_use]
    pub const fn described_by(self, description: Description<'a>) -> Self {
        Self { description, ..self }
    }

    /// Returns the number that the part's bits stand for; `None` if they stand for none.
    pub(super) fn number(&self, raw: u128) -> Option<u128> {
        match self.rendering {
            Rendering::Number | Rendering::Hex | Rendering::Letters => Some(raw),
            Rendering::Reversed => Some((0..self.bits / 4).fold(0, |number, i| number << 4 | raw >> (4 * i) & 0xf)),
            Rendering::Base36 => (0..self.bits / 8).rev().try_fold(0, |number, i| {
                Some(number * 36 + u128::from(char::from((raw >> (8 * i)) as u8).to_digit(36)?))
            }),
        }
    }

    /// Returns whether the constraint allows these bits.
    pub(super) fn allows(&self, raw: u128) -> bool {
        match self.constraint {
            Constraint::Any => true,
            Constraint::Equals(value) => self.number(raw) == Some(value),
            Constraint::Within(first, end) => self.number(raw).is_some_and(|number| (first..end).contains(&number)),
        }
    }

    /// Returns the number of values that the part can have.
    #[must_use]
    pub const fn values(&self) -> i128 {
        match self.constraint {
            Constraint::Within(_, end) => end as i128,
            _ => 1 << self.bits,
        }
    }
}
