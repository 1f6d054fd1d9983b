//! One file a scheme; each reads as its specification.

pub mod locality;
pub mod sno;
pub mod snowflake;
