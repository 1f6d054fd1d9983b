//! What the service hears and says on its hot paths: bytes in, values out. Pure: no clock, no I/O, no Python.
//!
//! Only the common case is known here. Whatever is not, however malformed, is left to the slow path.

#![forbid(unsafe_code)]

pub mod bucket;
pub mod http;
pub mod resp;
