//! The texts of UUIDs, and the parts that several versions have.

use crate::codec::positional::{BASE16, Digits};
use crate::format::{Format, Part, Role, Text};

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

/// The variant.
pub(super) const VARIANT: Part = Part::fixed("variant", 2, 2, "the variant of RFC 9562");

/// Declares the version.
pub(super) const fn version(number: u128, description: &'static str) -> Part<'static> {
    Part::fixed("version", 4, number, description)
}

/// Declares a part of the time.
pub(super) const fn time(name: &'static str, bits: u32, description: &'static str) -> Part<'static> {
    Part::new(Role::Time, name, bits, description)
}

/// Declares a layout.
pub(super) const fn layout(name: &'static str, parts: &'static [Part<'static>], weight: f64) -> Format<'static> {
    Format::new("uuid", parts, weight, "RFC 9562").with_layout(name).with_texts(TEXTS).integer()
}
