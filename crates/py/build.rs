//! Tells the binding which interpreter it is built for: `cfg(Py_GIL_DISABLED)` is one without the GIL.

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
