//! Doubles: the generators that mint in place of others while a test's clock is in force.
//!
//! `mintage.testing` makes and keeps them. All gates are closed meanwhile, so that every call takes the slow path, which asks here.

use crate::ending::Call;
use crate::fork;
use pyo3::prelude::*;
use pyo3::{PyClass, PyTypeInfo};

/// Returns the generator or sequence that mints in place of this one: itself, or its double while a test's clock is in
/// force. A generator that is closed, or has a clock of its own, has no double.
pub fn acting<'py, T: PyClass + PyTypeInfo>(slf: &Bound<'py, T>, has_double: bool) -> PyResult<Bound<'py, T>> {
    if !has_double || !fork::are_gates_closed() {
        return Ok(slf.clone());
    }
    let _call = Call::begin(slf.py())?;
    Ok(slf.py().import("mintage.testing")?.call_method1("_double_of", (slf,))?.cast_into::<T>()?)
}
