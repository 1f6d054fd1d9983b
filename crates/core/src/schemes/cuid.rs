//! **cuid** and **cuid2**: text, which has no binary form.
//!
//! A cuid's time is not padded, so that the text grows with it: 8 digits from 1972 to 2059, then 9 until 5188.
//! ```text
//!   8 bits   64     32        32            64
//! ┌────────┬──────┬─────────┬─────────────┬────────┐
//! │ prefix │ time │ counter │ fingerprint │ random │
//! └────────┴──────┴─────────┴─────────────┴────────┘
//! ```
//! ```text
//!   8 bits   72     32        32            64
//! ┌────────┬──────┬─────────┬─────────────┬────────┐
//! │ prefix │ time │ counter │ fingerprint │ random │
//! └────────┴──────┴─────────┴─────────────┴────────┘
//! ```
//! A cuid2 is a letter and part of a hash:
//! ```text
//!   8 bits   184
//! ┌────────┬──────┐
//! │ letter │ hash │
//! └────────┴──────┘
//! ```
//!
//! - **time**: milliseconds since 1970, in base 36.
//! - **counter**: counts modulo 1,679,616, in base 36.
//! - **fingerprint**: of process id and host name, which a cuid so tells to everybody.
//! - **text**: characters of `0-9a-z`, 8 bits each.
//!
//! Formats after <https://github.com/paralleldrive/cuid> and <https://github.com/paralleldrive/cuid2>.

use crate::codec::positional::BASE36;
use crate::format::{Clock, Format, Only, Part, Role, Show, Text};

const PREFIX: Part = Part::fixed("prefix", 8, b'c' as u128, "always c").shown(Show::Letters);
const COUNTER: Part = Part::new(Role::Sequence, "counter", 32, "counts modulo 1,679,616").shown(Show::Base36);
const FINGERPRINT: Part = Part::new(Role::Node, "fingerprint", 32, "of process id and host name").shown(Show::Letters);
const RANDOM: Part = Part::random("random", 64, "random").shown(Show::Letters);

const fn time(digits: u32) -> Part<'static> {
    let base: u128 = 36;
    Part::time("time", 8 * digits).shown(Show::Base36).only(Only::Within(base.pow(digits - 1), base.pow(digits)))
}

const fn cuid(parts: &'static [Part<'static>], texts: &'static [Text]) -> Format<'static> {
    Format::new("cuid", parts, 0.9, "https://github.com/paralleldrive/cuid")
        .timed(Clock::UNIX_MS)
        .written(texts)
        .text_only()
}

/// A cuid of a time of 8 digits, and one of 9.
pub const FORMATS: [Format; 2] = [
    cuid(&[PREFIX, time(8), COUNTER, FINGERPRINT, RANDOM], &[Text::Characters(25, &BASE36)]),
    cuid(&[PREFIX, time(9), COUNTER, FINGERPRINT, RANDOM], &[Text::Characters(26, &BASE36)]),
];

/// A cuid2 of the usual 24 characters.
pub const CUID2: Format = Format::new(
    "cuid2",
    &[
        Part::random("letter", 8, "a random letter")
            .shown(Show::Letters)
            .only(Only::Within(b'a' as u128, b'z' as u128 + 1)),
        Part::random("hash", 184, "of time, counter, fingerprint and randomness").shown(Show::Letters),
    ],
    0.2,
    "https://github.com/paralleldrive/cuid2",
)
.written(&[Text::Characters(24, &BASE36)])
.text_only();
