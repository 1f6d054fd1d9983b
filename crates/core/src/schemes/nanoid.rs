//! **nanoid**: text of random characters, which has no binary form.
//!
//! ```text
//!   168 bits
//! ┌──────────┐
//! │ random   │
//! └──────────┘
//! ```
//!
//! - **text**: 21 characters of `A-Za-z0-9_-`, 8 bits each. Users choose other alphabets and sizes, which nothing tells.
//!
//! Format after <https://github.com/ai/nanoid>.

use crate::codec::positional::BASE64_URL;
use crate::format::{Format, Part, Show, Text};

/// The format, of the usual alphabet and size.
pub const FORMAT: Format = Format::new(
    "nanoid",
    &[Part::random("random", 168, "random, in any order of the alphabet").shown(Show::Letters)],
    0.1,
    "https://github.com/ai/nanoid",
)
.written(&[Text::Characters(21, &BASE64_URL)])
.text_only();
