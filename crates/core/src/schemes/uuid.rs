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
//! - **text**: hexadecimal, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, written in lower case and read in either; elsewhere also
//!   without hyphens, in braces, or after `urn:uuid:`.

use crate::codec::positional::{BASE16, Digits};
use crate::format::{Clock, Format, Part, Role, SECOND, Says, Show, Text};

/// The texts of 128 bits as a UUID, the canonical one first.
pub const DIGITS: [&Digits; 4] = [
    &Digits::template(BASE16, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"),
    &Digits::template(BASE16, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    &Digits::template(BASE16, "{xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx}"),
    &Digits::template(BASE16, "urn:uuid:xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"),
];
/// The texts of a UUID.
pub const TEXTS: &[Text] =
    &[Text::Digits(DIGITS[0]), Text::Digits(DIGITS[1]), Text::Digits(DIGITS[2]), Text::Digits(DIGITS[3])];

/// Ticks of 100 ns since the first day of the Gregorian calendar, 1582-10-15, in three parts.
const GREGORIAN: Clock =
    Clock::new(-12_219_292_800 * SECOND as i128, 100).counted_by(&["time_high", "time_mid", "time_low"]);

const VARIANT: Part = Part::fixed("variant", 2, 2, "the variant of RFC 9562");
const CLOCK_SEQ: Part = Part::new(Role::Meta, "clock_seq", 14, "changes when the clock goes back or the node changes");
const NODE: Part = Part::new(Role::Node, "node", 48, "").shown(Show::Hex).says(Says::By(address));

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
    Part::new(Role::Meta, name, bits, "the application's").shown(Show::Hex)
}

const fn layout(name: &'static str, parts: &'static [Part<'static>], weight: f64) -> Format<'static> {
    Format::new("uuid", parts, weight, "RFC 9562").of_layout(name).written(TEXTS).integer()
}

/// Version 1.
pub const V1: Format = layout(
    "v1",
    &[
        time("time_low", 32, "the low 32 bits of the time"),
        time("time_mid", 16, "the middle 16 bits of the time"),
        version(1, "version 1: Gregorian time and node"),
        time("time_high", 12, "").says(Says::OfClock("the high 12 bits of the time")),
        VARIANT,
        CLOCK_SEQ,
        NODE,
    ],
    1.0,
)
.timed(GREGORIAN);

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
        time("time_high", 32, "").says(Says::OfClock("the high 32 bits of the time")),
        time("time_mid", 16, "the middle 16 bits of the time"),
        version(6, "version 6: Gregorian time and node, sortable"),
        time("time_low", 12, "the low 12 bits of the time"),
        VARIANT,
        CLOCK_SEQ,
        NODE,
    ],
    1.0,
)
.timed(GREGORIAN);

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
.timed(Clock::UNIX_MS);

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
    layout("nil", &[Part::fixed("value", 128, 0, "the nil UUID: every bit is 0").shown(Show::Hex)], 1.0);

/// The max UUID.
pub const MAX: Format =
    layout("max", &[Part::fixed("value", 128, u128::MAX, "the max UUID: every bit is 1").shown(Show::Hex)], 1.0);

/// What else is written so.
pub const OTHER: Format = Format {
    raw: false,
    integer: false,
    ..layout(
        "other",
        &[Part::new(Role::Meta, "value", 128, "of no version and variant that RFC 9562 defines").shown(Show::Hex)],
        0.3,
    )
};

/// All with a structure of their own.
pub const FORMATS: [Format; 10] = [V1, V2, V3, V4, V5, V6, V7, V8, NIL, MAX];
