//! `mintage.sno`: IDs, generators, snapshots.

mod generator;
mod id;
mod snapshot;

pub use generator::Generator;

use pyo3::prelude::*;

/// Puts the classes and functions into the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    id::add(module)?;
    generator::add(module)?;
    module.add_class::<snapshot::Snapshot>()
}
