//! Conversions between IDs and text: [`Base32`] for sno, [`Hex`] for UUIDs, [`positional`] for every other format.
//!
//! The alphabets of [`Base32`] and [`Hex`] are digits followed by letters, in ASCII order, so that texts sort as their
//! bytes do. `swar` converts the eight characters of a `u64` at once; `simd` does the same in wider registers. Of many
//! IDs, a [`Path`] converts whole blocks until it meets an error, and the code for a single ID converts the rest: only
//! that code ever finds *where* a text is wrong.

#![deny(unsafe_code)]

mod base32;
mod fixed;
mod hex;
pub mod positional;
mod simd;
mod swar;

pub use base32::Base32;
pub use hex::Hex;
pub use simd::{Path, as_chunks, as_chunks_mut};
