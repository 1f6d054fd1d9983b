//! Generators of IDs that are text and have no binary form: nanoid, cuid, cuid2.
//!
//! They lease nothing. Randomness keeps the IDs of processes apart: it is drawn anew after a fork and a restore.

pub mod cuid;
pub mod cuid2;
pub mod nanoid;

use crate::{clock::Clock, doubles, errors, hot, values};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyList, PyString};
use pyo3::{PyClass, PyTypeInfo};

/// The longest text that is written without an allocation.
pub const LONGEST_FAST: usize = 64;

/// A class of generators of text.
pub trait TextClass: PyClass<Frozen = True> + PyTypeInfo + Sync {
    /// Returns true if the generator has a double while a test's clock is in force.
    fn has_double(&self) -> bool;

    /// A generator like this one, with a test's clock.
    fn double(&self, clock: Clock) -> Self;

    /// Writes an ID of ASCII, and returns its length; `None` if it needs Python or the kernel.
    fn write_fast(&self, py: Python<'_>, text: &mut [u8; LONGEST_FAST]) -> Option<usize>;

    /// Appends an ID, or refuses.
    fn write(&self, py: Python<'_>, text: &mut String) -> PyResult<()>;

    /// Bytes of each ID in a buffer.
    fn width(&self, py: Python<'_>) -> PyResult<usize>;
}

/// The ID for a hot call.
#[inline(always)]
pub fn fast<G: TextClass>(generator: &G, py: Python<'_>) -> Option<hot::Object> {
    let mut text = [0; LONGEST_FAST];
    let length = generator.write_fast(py, &mut text)?;
    Some(hot::ascii_object(py, &text[..length]))
}

/// The ID for any other call.
pub fn slow<G: TextClass>(generator: &Bound<'_, G>) -> PyResult<hot::Object> {
    let mut text = String::new();
    let generator = doubles::acting(generator, generator.get().has_double())?;
    generator.get().write(generator.py(), &mut text)?;
    Ok(PyString::new(generator.py(), &text).into_ptr())
}

/// A list of `n` IDs.
pub fn batch<'py, G: TextClass + hot::Mints>(
    slf: &Bound<'py, G>,
    n: &Bound<'_, PyAny>,
) -> PyResult<Bound<'py, PyList>> {
    let (py, ids) = (slf.py(), PyList::empty(slf.py()));
    for i in 0..values::count(n)? {
        if i % 4096 == 0 {
            py.check_signals()?;
        }
        ids.append(hot::new_object(slf, 0)?)?;
    }
    Ok(ids)
}

/// Fills a buffer with text of fixed width.
pub fn fill<G: TextClass>(slf: &Bound<'_, G>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
    let slf = &doubles::acting(slf, slf.get().has_double())?;
    let (this, py) = (slf.get(), slf.py());
    let width = this.width(py)?;
    let target = hot::Writable::new(buffer, hot::Items::Texts(width))?;
    let (mut text, mut slow_text) = ([0; LONGEST_FAST], String::new());
    hot::fill(&target, |texts| {
        py.check_signals()?;
        for place in texts.chunks_exact_mut(width) {
            let id = match this.write_fast(py, &mut text) {
                Some(length) => &text[..length],
                None => {
                    slow_text.clear();
                    this.write(py, &mut slow_text)?;
                    slow_text.as_bytes()
                }
            };
            if id.len() != width {
                let message =
                    format!("IDs have {} characters from now on, the buffer is of items of {width}", id.len());
                return Err(errors::generation(py, "clock.range", &message, None));
            }
            place.copy_from_slice(id);
        }
        Ok(())
    })
}

/// Makes the class of such generators. This macro writes the methods that all of them share; the format writes its own,
/// among them the constructor, and has a field `is_closed`.
macro_rules! texts {
    (
        $(#[$doc:meta])*
        pub struct Generator in $module:literal { $($fields:tt)* }
        $($own:tt)*
    ) => {
        $(#[$doc])*
        #[pyclass(frozen, weakref, module = $module)]
        pub struct Generator { $($fields)* }

        impl $crate::hot::Mints for Generator {
            type Minted = $crate::hot::Object;
            const HAS_META: bool = false;

            #[inline(always)]
            fn fast(&self, py: Python<'_>, _: u8) -> Option<$crate::hot::Object> {
                $crate::text::fast(self, py)
            }

            fn slow(generator: &Bound<'_, Self>, _: u8) -> PyResult<$crate::hot::Object> {
                $crate::text::slow(generator)
            }

            #[inline(always)]
            fn object(_: Python<'_>, minted: $crate::hot::Object) -> $crate::hot::Object {
                minted
            }
        }

        impl $crate::hot::OfModule for Generator {
            fn of_module() -> &'static std::sync::atomic::AtomicPtr<pyo3::ffi::PyObject> {
                static GENERATOR: std::sync::atomic::AtomicPtr<pyo3::ffi::PyObject> =
                    std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());
                &GENERATOR
            }
        }

        #[pymethods]
        impl Generator {
            $($own)*

            /// Mint an ID: a str.
            ///
            #[doc = concat!(">>> from ", $module, " import Generator")]
            /// >>> type(Generator().new())
            /// <class 'str'>
            ///
            /// :raises GenerationError: ``generator.closed``, ``system.random``; where there is a clock, ``clock.range``.
            #[pyo3(name = "new")]
            fn mint_one(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
                $crate::hot::new_object_slow(slf, 0)
            }

            /// Mint ``n`` IDs, 0 to 2^31 - 1, into a list of str. :meth:`fill` packs them.
            ///
            #[doc = concat!(">>> from ", $module, " import Generator")]
            /// >>> len(Generator().batch(3))
            /// 3
            ///
            /// :raises ArgumentError: ``n`` is not an int.
            /// :raises FieldError: ``field.range``.
            /// :raises GenerationError: as :meth:`new`.
            #[pyo3(signature = (n))]
            fn batch<'py>(slf: &Bound<'py, Self>, n: &Bound<'_, PyAny>) -> PyResult<Bound<'py, pyo3::types::PyList>> {
                $crate::text::batch(slf, n)
            }

            /// Fill a writable buffer of bytes, or of byte strings of an ID's length (numpy's ``S21``), with IDs, and return
            /// their number.
            ///
            #[doc = concat!(">>> from ", $module, " import Generator")]
            /// >>> generator = Generator()
            /// >>> generator.fill(bytearray(3 * len(generator.new())))
            /// 3
            ///
            /// :raises ArgumentError: ``buffer`` has no buffer.
            /// :raises ConfigError: ``config.buffer``: other items, read-only, not contiguous, not a whole number of IDs; or
            ///     the IDs are not ASCII.
            /// :raises GenerationError: as :meth:`new`; what was minted until then is in the buffer.
            #[pyo3(signature = (buffer))]
            fn fill(slf: &Bound<'_, Self>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
                $crate::text::fill(slf, buffer)
            }

            /// End minting for good. Closing twice does nothing.
            ///
            #[doc = concat!(">>> from ", $module, " import Generator")]
            /// >>> generator = Generator()
            /// >>> generator.close()
            fn close(&self) {
                self.is_closed.store(true, Ordering::Relaxed);
            }

            /// Return a generator like this one, with a test's clock; IDs have no node number.
            fn _double(&self, clock: &Bound<'_, PyAny>, node: i64, generation: u64) -> PyResult<Self> {
                let _ = (node, generation);
                Ok($crate::text::TextClass::double(self, $crate::clock::Clock::from_argument(Some(clock))?))
            }

            fn __traverse__(&self, visit: pyo3::gc::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
                self.clock.visit(&visit)
            }

            fn __iter__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __next__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
                $crate::hot::new_object_slow(slf, 0)
            }

            fn __enter__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            #[pyo3(signature = (*exc))]
            fn __exit__(&self, exc: &Bound<'_, PyAny>) {
                let _ = exc;
                self.close();
            }

            fn __repr__(&self) -> String {
                format!("<{}.Generator>", $module.trim_start_matches("mintage."))
            }
        }

        /// Puts the class into the format's module.
        pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
            module.add_class::<Generator>()?;
            $crate::hot::install_generator::<Generator>(module.py())
        }
    };
}
pub(crate) use texts;
