//! The end of the interpreter, before which all other threads must be out of calls that may run Python.
//!
//! CPython before 3.14 ends a daemon thread that asks for the GIL while the interpreter is finalized, with `pthread_exit`. That
//! unwinds the thread's stack, and a frame of Rust's in it makes the process abort. So a handler of `atexit`, which runs before
//! that, refuses all further calls of other threads that may run Python, and waits for those that are in one. The refusal itself
//! runs no Python code: it is made by C alone.

use crate::fork;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// The longest wait for calls of other threads, which wait for a store.
const LONGEST: Duration = Duration::from_secs(2);

/// The number of calls that may run Python now, in the lower half; the upper half identifies the process. It is no lock, as a
/// fork in C could copy a lock that is held.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// The thread that ends the interpreter, and the class of the error for all others.
static ENDING: PyOnceLock<(ThreadId, Py<PyType>)> = PyOnceLock::new();

/// Returns the value of `CALLS` of a process without calls.
fn none() -> u64 {
    fork::fork_generation() << 32
}

/// A call that may run Python.
pub struct Call {
    none: u64,
}

impl Call {
    /// Begins a call.
    ///
    /// `GenerationError`: ``generator.closed``: another thread ends the interpreter.
    pub fn begin(py: Python<'_>) -> PyResult<Self> {
        if let Some((thread, class)) = ENDING.get(py) {
            if *thread != std::thread::current().id() {
                return Err(refusal(class.bind(py)).unwrap_or_else(|error| error));
            }
        }
        let none = none();
        // A child does not end the calls of its parent's other threads.
        let begin = |calls: u64| Some(if calls >> 32 == none >> 32 { calls } else { none } + 1);
        let _ = CALLS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, begin);
        Ok(Self { none })
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let end = |calls: u64| (calls > self.none && calls >> 32 == self.none >> 32).then(|| calls - 1);
        let _ = CALLS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end);
    }
}

/// The error of a call that comes too late. Its class has a constructor in Python, which must not run.
fn refusal(class: &Bound<'_, PyType>) -> PyResult<PyErr> {
    let message = "this process ends: mint before that, or start another";
    let error = class.call_method1("__new__", (class, message))?;
    error.setattr("code", "generator.closed")?;
    error.setattr("retry_after_ms", class.py().None())?;
    Ok(PyErr::from_value(error))
}

/// Refuses the calls of all other threads from now on, and waits for those that have begun.
#[pyfunction]
pub fn end_calls(py: Python<'_>) -> PyResult<()> {
    let class = py.import("mintage.errors")?.getattr("GenerationError")?.cast_into::<PyType>()?;
    let _ = ENDING.set(py, (std::thread::current().id(), class.unbind()));
    let until = Instant::now() + LONGEST;
    while CALLS.load(Ordering::Relaxed) > none() && Instant::now() < until {
        py.detach(|| std::thread::sleep(Duration::from_millis(1)));
    }
    Ok(())
}
