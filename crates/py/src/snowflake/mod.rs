//! `mintage.snowflake`: layouts, generators and arrays. IDs are plain ints.

mod array;
mod generator;
mod layout;

pub use generator::Generator;
pub use layout::Layout;

use pyo3::prelude::*;

/// Puts the classes and functions into the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    layout::add(module)?;
    array::add(module)?;
    generator::add(module)
}
