//! The refusal of sub-interpreters.

use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Refuses every interpreter but the process's main one.
///
/// Classes, free lists and default generators are the process's, so a second interpreter would share objects with the first;
/// and a thread that attaches by itself gets the main one. The message is that of interpreters that refuse by themselves, as
/// 3.12 and later do for one with a GIL of its own; `mintage.installation` adds the remedy.
pub fn refuse_sub_interpreter(_: Python<'_>) -> PyResult<()> {
    // SAFETY: the token says that an interpreter is attached. The number of the main one is 0, or -1 with an exception set.
    match unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) } {
        0 => Ok(()),
        _ => Err(PyImportError::new_err("module mintage._core does not support loading in subinterpreters")),
    }
}
