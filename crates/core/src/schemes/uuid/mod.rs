//! **uuid**: 16 bytes, of the versions of RFC 9562; one file a version.
//!
//! All versions have the version and the variant in the same places.
//!
//! - **text**: hexadecimal, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`, written in lower case and read in either.
//!   [`Id::parse_any`] also reads it without hyphens, in braces, or after `urn:uuid:`.

mod formats;
mod gregorian;
mod id;
mod parts;
mod special;
pub mod v1;
pub mod v2;
pub mod v3;
pub mod v4;
pub mod v5;
pub mod v6;
pub mod v7;
pub mod v8;
mod version;

pub use formats::FORMATS;
pub use gregorian::{GREGORIAN_SEQUENCE_BITS, multicast, ticks_at};
pub use id::Id;
pub use parts::{DIGITS, TEXTS};
pub use special::{MAX, NIL, OTHER};
pub use version::{POOL_LAYOUTS, Version, gregorian};
