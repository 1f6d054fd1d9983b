//! Exceptions of `mintage.errors`, from errors of the core and from the binding's own.

use mintage_core::error::Error;
use pyo3::prelude::*;
use pyo3::types::PyDict;

fn class<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("mintage.errors")?.getattr(name)
}

fn raise(py: Python<'_>, name: &str, code: &str, message: &str, extra: Option<(&str, Option<u64>)>) -> PyErr {
    let build = || {
        let kwargs = PyDict::new(py);
        kwargs.set_item("code", code)?;
        if let Some((key, value)) = extra {
            kwargs.set_item(key, value)?;
        }
        class(py, name)?.call((message,), Some(&kwargs))
    };
    build().map_or_else(|error| error, PyErr::from_value)
}

/// A value that does not fit a scheme.
pub fn value(error: Error) -> PyErr {
    Python::attach(|py| {
        let code = error.code();
        let message = error.to_string();
        match (&error, code.split_once('.').map_or(code, |(family, _)| family)) {
            (Error::Character { position, .. }, _) => {
                raise(py, "ParseError", code, &message, Some(("position", Some(*position as u64))))
            }
            (_, "parse") => raise(py, "ParseError", code, &message, None),
            (_, "config") => raise(py, "ConfigError", code, &message, None),
            _ => raise(py, "FieldError", code, &message, None),
        }
    })
}

/// An argument of the wrong type: `what must be expected, not int`.
pub fn argument(what: &str, expected: &str, got: &Bound<'_, PyAny>) -> PyErr {
    let kind = got.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    raise(got.py(), "ArgumentError", "argument.type", &format!("{what} must be {expected}, not {kind}"), None)
}

/// A field's value of a form that no error of the core describes.
pub fn field(py: Python<'_>, code: &str, message: &str) -> PyErr {
    raise(py, "FieldError", code, message, None)
}

/// A well-formed text of another kind than the caller asked for.
pub fn parse(py: Python<'_>, code: &str, message: &str) -> PyErr {
    raise(py, "ParseError", code, message, None)
}

/// A configuration that cannot work.
pub fn config(py: Python<'_>, code: &str, message: &str) -> PyErr {
    raise(py, "ConfigError", code, message, None)
}

/// An ID that cannot be minted now.
pub fn generation(py: Python<'_>, code: &str, message: &str, retry_after_ms: Option<u64>) -> PyErr {
    raise(py, "GenerationError", code, message, Some(("retry_after_ms", retry_after_ms)))
}

/// A generator that was closed.
pub fn closed(py: Python<'_>) -> PyErr {
    generation(py, "generator.closed", "the generator is closed", None)
}

/// A store that is unavailable; another try after `retry_after_ms` may succeed.
pub fn store(py: Python<'_>, code: &str, message: &str, retry_after_ms: u64) -> PyErr {
    raise(py, "StoreError", code, message, Some(("retry_after_ms", Some(retry_after_ms))))
}

/// A request that the lease does not allow.
pub fn lease(py: Python<'_>, code: &str, message: &str) -> PyErr {
    raise(py, "LeaseError", code, message, None)
}
