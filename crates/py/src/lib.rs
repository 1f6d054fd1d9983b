//! The binding: a thin shell of Python around `mintage-core`.
//!
//! - **Schemes**: `sno`, `snowflake`, `locality` and `uuid` are modules of their own. `ticked` makes a module of each row in
//!   `schemes`; `text` has those whose IDs are text alone. `schemes` lists them all.
//! - **Classes**: `id` makes the class of a scheme's IDs, with their `fields`; `array` the class of packed IDs, which `arrow`
//!   exports; `generator` and `ticked` the classes of generators.
//! - **Minting**: `clock` reads time and waits, `entropy` draws random bits, `fork` detects forks, `leases` asks Python for
//!   node numbers.
//! - **Python**: `values` reads arguments and makes results, `errors` raises.
//! - **Threads**: `locks` holds Python's locks, `ending` counts the calls that the end of the interpreter waits for.
//! - **Beside them**: `formats` (the formats that the core declares), `sequence`, `lane` (the service's hot paths), `typeid`
//!   and `views`.
//!
//! Unsafe code is in `hot` and `kernel`, which use no other module but `errors`. No two modules use each other.

#![deny(unsafe_code)]
#![allow(missing_docs, reason = "pyo3 makes undocumented items; what Python sees is documented")]

mod array;
mod arrow;
mod clock;
mod decimal;
mod doubles;
mod ending;
mod entropy;
mod errors;
mod fields;
mod fork;
mod formats;
mod generator;
mod hot;
mod id;
mod kernel;
mod lane;
mod leases;
mod locality;
mod locks;
mod schemes;
mod sequence;
mod sno;
mod snowflake;
mod text;
mod ticked;
mod typeid;
mod uuid;
mod values;
mod views;

use pyo3::prelude::*;

/// mintage's core. A free-threaded interpreter leaves its GIL off when it loads the module.
#[pymodule(gil_used = false)]
mod _core {
    use super::*;
    use ::sha1::{Digest, Sha1};
    use pyo3::exceptions::PyTypeError;
    use pyo3::types::{PyBytes, PyDict};
    use sha3::Sha3_256;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Return facts of the cached tick: cycles a second (0: nothing is cached), and the largest age in ns.
    #[pyfunction]
    fn clock_facts<'py>(py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (cycles, age) = hot::clock_facts();
        let facts = PyDict::new(py);
        facts.set_item("cycles_per_second", cycles)?;
        facts.set_item("max_age_ns", age)?;
        Ok(facts)
    }

    /// Return the millisecond that the hot path would stamp now.
    #[pyfunction]
    fn cached_ms() -> i64 {
        hot::now().0
    }

    /// Return the kernel's clocks in nanoseconds, even if a test replaces Python's functions: real time, monotonic time,
    /// monotonic time with the time that the machine slept (0 if that is not known); and the duration of the call.
    #[pyfunction]
    fn clocks() -> (i64, i64, i64, i64) {
        kernel::clocks().into()
    }

    /// Return the first of :func:`clocks`.
    #[pyfunction]
    fn system_ns() -> i64 {
        kernel::clocks()[0]
    }

    /// Return the time for waits and deadlines, in seconds, which never goes back. It passes even if a test stops the clocks of
    /// Python.
    #[pyfunction]
    fn monotonic_s() -> f64 {
        kernel::monotonic_s()
    }

    #[pymodule_export]
    use crate::locks::hold;

    /// Return the time at which the file at ``path`` was created, in nanoseconds since the Unix epoch; None if that is
    /// not known. A copy that replaces the file was created later, even if it gets the same inode.
    #[pyfunction]
    #[pyo3(signature = (path, /))]
    fn created_ns(path: PathBuf) -> Option<i64> {
        kernel::created_ns(&path)
    }

    /// Return the generation of this process: a number above 0 that no ancestor had when it was forked, however that was done.
    #[pyfunction]
    fn generation() -> u64 {
        fork::generation()
    }

    /// Return the generation in which this process began; forks alone change it.
    #[pyfunction]
    fn fork_generation() -> u64 {
        fork::fork_generation()
    }

    /// Start a later generation in this process, as a fork does, and return it: every generator starts over at its next ID.
    #[pyfunction]
    fn start_generation() -> u64 {
        fork::start_generation()
    }

    /// Return ``count`` random bytes, 0 to 65,536, that the kernel draws now: none comes from this process's memory, which a
    /// clone shares.
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

    /// Return the SHA-1 of bytes, for data that depends on it, such as the serials that Redis computes.
    #[pyfunction]
    #[pyo3(signature = (data, /))]
    fn sha1<'py>(py: Python<'py>, data: &[u8]) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &Sha1::digest(data))
    }

    /// Return the SHA3-256 of bytes. The import of ``hashlib`` would load OpenSSL, which takes milliseconds.
    #[pyfunction]
    #[pyo3(signature = (data, /))]
    fn sha3_256<'py>(py: Python<'py>, data: &[u8]) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &Sha3_256::digest(data))
    }

    /// Return a generator's bound method ``new`` as a function of the module of this name. It has a module and a qualified
    /// name, so that it can be pickled, and written into a migration. A function in Python around the method would slow
    /// down the hot path.
    ///
    /// :raises TypeError: ``method`` is not the method of a generator.
    #[pyfunction]
    #[pyo3(signature = (method, module, /))]
    fn as_function<'py>(method: &Bound<'py, PyAny>, module: &str) -> PyResult<Bound<'py, PyAny>> {
        let generator = method.getattr("__self__")?;
        let other = || PyTypeError::new_err("method is not the method of a generator");
        schemes::function_of(&generator, module).unwrap_or_else(|| Err(other()))
    }

    /// Return the generators that the module-level functions of the imported schemes use.
    #[pyfunction]
    fn defaults(py: Python<'_>) -> Vec<Bound<'_, PyAny>> {
        schemes::defaults(py)
    }

    /// Make every generator on the system's clock ask ``mintage.testing`` for its double, or mint itself again.
    #[pyfunction]
    #[pyo3(signature = (is_on, /))]
    fn use_doubles(is_on: bool) {
        fork::close_gates(is_on);
    }

    /// True once the module was imported. A second copy, such as one in a sandbox of workflows, shares the process's state:
    /// another word of the generation would look like a fork.
    static IS_INITIALIZED: AtomicBool = AtomicBool::new(false);

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // This comes first: classes that are made for a sub-interpreter would outlive it.
        hot::refuse_sub_interpreter(module.py())?;
        module.add_class::<clock::FollowingClock>()?;
        module.add_class::<clock::ManualClock>()?;
        module.add_class::<id::Annotation>()?;
        module.add_class::<locks::Held>()?;
        module.add_class::<locks::Condition>()?;
        module.add_class::<locks::Turns>()?;
        module.add_class::<locks::Turn>()?;
        module.add("build_profile", if cfg!(debug_assertions) { "debug" } else { "release" })?;
        if !IS_INITIALIZED.load(Ordering::Relaxed) {
            kernel::watch_forks()?;
            kernel::share_word();
            let end_calls = wrap_pyfunction!(ending::end_calls, module)?;
            module.py().import("atexit")?.call_method1("register", (end_calls,))?;
            IS_INITIALIZED.store(true, Ordering::Relaxed);
        }
        schemes::add_modules(module)
    }
}
