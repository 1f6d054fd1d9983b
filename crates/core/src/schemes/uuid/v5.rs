//! Version 5: the SHA-1 of a namespace and a name.
//!
//! ```text
//!   48 bits     4         12         2         62
//! ┌───────────┬─────────┬──────────┬─────────┬──────────┐
//! │ sha1_high │ version │ sha1_mid │ variant │ sha1_low │
//! └───────────┴─────────┴──────────┴─────────┴──────────┘
//! ```

use super::id::Id;
use super::parts::{VARIANT, layout, version};
use crate::format::{Format, Part};
use sha1::{Digest, Sha1};

/// The format.
pub const FORMAT: Format = layout(
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

impl Id {
    /// Returns version 5 of a namespace and a name: the first 128 bits of the hash.
    #[must_use]
    pub fn v5(namespace: [u8; 16], name: &[u8]) -> Self {
        let hash: [u8; 20] = Sha1::new().chain_update(namespace).chain_update(name).finalize().into();
        let mut bits = [0; 16];
        bits.copy_from_slice(&hash[..16]);
        Self::stamped(u128::from_be_bytes(bits), 5)
    }
}
