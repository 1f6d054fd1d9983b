//! Parsers and writers of the service's hot paths: bytes in, values out. Pure: no clock, no I/O, no Python.
//!
//! This crate parses the common case only. It leaves every other request, malformed ones too, to the slow path.

#![forbid(unsafe_code)]

pub mod bucket;
pub mod http;
pub mod resp;
