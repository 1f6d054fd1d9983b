//! Version 3: the MD5 of a namespace and a name.
//!
//! ```text
//!   48 bits    4         12        2         62
//! ┌──────────┬─────────┬─────────┬─────────┬─────────┐
//! │ md5_high │ version │ md5_mid │ variant │ md5_low │
//! └──────────┴─────────┴─────────┴─────────┴─────────┘
//! ```

use super::id::Id;
use super::parts::{VARIANT, layout, version};
use crate::format::{Format, Part};
use md5::{Digest, Md5};

/// The format.
pub const FORMAT: Format = layout(
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

impl Id {
    /// Returns version 3 of a namespace and a name.
    #[must_use]
    pub fn v3(namespace: [u8; 16], name: &[u8]) -> Self {
        let hash = Md5::new().chain_update(namespace).chain_update(name).finalize();
        Self::stamped(u128::from_be_bytes(hash.into()), 3)
    }
}
