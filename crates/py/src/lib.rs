//! The binding: a thin shell of Python around `mintage-core`. Each scheme's module is one file; what they share is
//! `clock` (reading and waiting), `fork`, `leases`, `values` (what comes in), `errors` (what goes out) and `array`. Unsafe code is in
//! `hot` and `kernel`.

#![deny(unsafe_code)]
#![allow(missing_docs, reason = "pyo3 makes undocumented items; what Python sees is documented")]

mod arrow;
mod clock;
mod entropy;
mod errors;
mod fields;
mod fork;
mod formats;
mod generator;
mod hot;
mod id;
mod kernel;
mod leases;
mod locality;
mod schemes;
mod sequence;
mod service;
mod sno;
mod snowflake;
mod text;
mod ticked;
mod uuid;
mod values;
mod views;

use pyo3::prelude::*;

/// mintage's core.
#[pymodule(gil_used = true)]
mod _core {
    use super::*;
    use pyo3::exceptions::PyTypeError;
    use pyo3::types::{PyBytes, PyDict};

    #[pymodule_export]
    use clock::ManualClock;

    /// What the cached tick knows of this machine: cycles a second (0: nothing is cached) and the largest age in ns.
    #[pyfunction]
    fn clock_facts<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (cycles, age) = hot::clock_facts();
        let facts = PyDict::new(py);
        facts.set_item("cycles_per_second", cycles)?;
        facts.set_item("max_age_ns", age)?;
        Ok(facts)
    }

    /// The millisecond that the hot path would stamp now.
    #[pyfunction]
    fn cached_ms() -> i64 {
        hot::now().0
    }

    /// Which process this is: a number above 0 that no ancestor had when it was forked, however that was done.
    #[pyfunction]
    fn epoch() -> u64 {
        fork::epoch()
    }

    /// The epoch in which this process began: it changes by forks alone.
    #[pyfunction]
    fn birth() -> u64 {
        fork::birth()
    }

    /// Moves this process to a later epoch, as a fork does: every generator starts over at its next ID.
    #[pyfunction]
    fn start_epoch() -> u64 {
        fork::start_epoch()
    }

    /// ``count`` random bytes, 0 to 65,536, that the kernel draws now; nothing of them comes from this process's memory,
    /// which a clone shares.
    ///
    /// :raises ArgumentError: ``count`` is not an int.
    /// :raises FieldError: ``field.range``.
    /// :raises GenerationError: ``system.random``.
    #[pyfunction]
    #[pyo3(signature = (count, /))]
    fn kernel_random<'py>(count: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let (py, count) = (count.py(), values::field(count, "count", 1 << 16)? as usize);
        PyBytes::new_with(py, count, |bytes| values::draw(py, bytes))
    }

    /// A generator's bound method ``new`` as a function of the module of this name, for good: with a module and a qualified
    /// name, so that it can be pickled, and written into a migration.
    ///
    /// :raises TypeError: ``method`` is not the method of a generator.
    #[pyfunction]
    #[pyo3(signature = (method, module, /))]
    fn as_function<'py>(method: &Bound<'py, PyAny>, module: &str) -> PyResult<Bound<'py, PyAny>> {
        let generator = method.getattr("__self__")?;
        let other = || PyTypeError::new_err("method is not the method of a generator");
        schemes::function_of(&generator, module).unwrap_or_else(|| Err(other()))
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("build_profile", if cfg!(debug_assertions) { "debug" } else { "release" })?;
        kernel::watch_forks()?;
        schemes::add_modules(module)
    }
}
