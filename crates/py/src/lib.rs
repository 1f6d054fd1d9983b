//! The binding: a thin shell of Python around `mintage-core`. Each scheme's module is one file; what they share is
//! `clock` (reading and waiting), `fork`, `leases`, `values` (what comes in), `errors` (what goes out) and `array`. Unsafe code is in
//! `hot` alone.

#![deny(unsafe_code)]
#![allow(missing_docs, reason = "pyo3 makes undocumented items; what Python sees is documented")]

mod array;
mod clock;
mod errors;
mod fork;
mod hot;
mod leases;
mod locality;
mod sequence;
mod service;
mod sno;
mod snowflake;
mod values;

use pyo3::prelude::*;

/// mintage's core.
#[pymodule(gil_used = true)]
mod _core {
    use super::*;
    use pyo3::types::PyDict;

    #[pymodule_export]
    use clock::ManualClock;

    #[pymodule(gil_used = true)]
    mod sno {
        #[pymodule_export]
        use crate::sno::{
            Array, ArrayIterator, Generator, Overflow, Snapshot, SnoId, encode_into, max_at, min_at, parse_into,
        };
    }

    #[pymodule(gil_used = true)]
    mod snowflake {
        #[pymodule_export]
        use crate::snowflake::{Generator, Layout, Parts, node_from_macs, to_lines};
        use pyo3::prelude::*;

        #[pymodule_init]
        fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
            crate::snowflake::add_layouts(module)
        }
    }

    #[pymodule(gil_used = true)]
    mod locality {
        #[pymodule_export]
        use crate::locality::{Array, ArrayIterator, Generator, LocalityId};
    }

    #[pymodule(gil_used = true)]
    mod sequence {
        #[pymodule_export]
        use crate::sequence::{Pool, Sequence};
    }

    #[pymodule(gil_used = true)]
    mod service {
        #[pymodule_export]
        use crate::service::{Bucket, HttpSession, Lane, RespSession};
    }

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

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        module.add("build_profile", if cfg!(debug_assertions) { "debug" } else { "release" })?;
        // Submodules of an extension are importable by name only where they are registered.
        let modules = py.import("sys")?.getattr("modules")?;
        for name in ["sno", "snowflake", "locality", "sequence", "service"] {
            modules.set_item(format!("mintage._core.{name}"), module.getattr(name)?)?;
        }
        hot::notice_forks()?;
        super::sno::install(py)?;
        super::snowflake::install(py)?;
        super::locality::install(py)?;
        super::sequence::install(py)
    }
}
