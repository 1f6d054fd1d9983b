//! Arrays of snowflakes.

use super::layout::{Layout, chosen};
use crate::array::{ArrayClass, array};
use crate::decimal::{DIGITS, decimals};
use crate::values::Defaulted;
use crate::{arrow, errors, hot, values};
use mintage_core::codec::as_chunks;
use mintage_core::error::Error;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyMemoryView, PyType};

array! {
    /// IDs of one layout in one contiguous, read-only buffer: 8 bytes each, in native order.
    ///
    /// Array(data=b"", /, layout=DEFAULT)
    ///
    /// Indexing gives an int, slicing an Array. The buffer protocol gives unsigned integers of 64 bits, format ``Q``, so
    /// ``memoryview(array)`` and ``numpy.asarray(array)`` copy nothing. An Array equals another of the same integers, and an
    /// ``array.array("Q")`` of them.
    ///
    /// ``data`` holds unsigned integers of 64 bits (``array.array("Q")``, numpy's uint64), bytes, or, for a layout of fewer
    /// than 64 bits, signed integers of 64 bits.
    ///
    /// >>> from mintage import snowflake
    /// >>> array = snowflake.Array(bytes(16))
    /// >>> len(array), array[0]
    /// (2, 0)
    ///
    /// :raises ArgumentError: ``data`` has no buffer, ``layout`` is no Layout.
    /// :raises ConfigError: ``config.buffer``: other items, or not contiguous.
    /// :raises ParseError: ``parse.length``: not a whole number of IDs.
    /// :raises FieldError: ``field.range``: an ID that is wider than the layout.
    Array of u64, 8 bytes, in "mintage.snowflake", with { layout: Layout }
    {
        #[new]
        #[pyo3(signature = (data = Defaulted::OUT, /, layout = None), text_signature = "(data=b'', /, layout=...)")]
        fn py_new(py: Python<'_>, data: Defaulted<'_>, layout: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
            let layout = chosen(layout)?;
            let items = hot::Items::Words { signed: layout.0.bits() < 64 };
            let data = data.given().map_or_else(|| Ok(PyBytes::new(py, b"")), |data| values::bytes(data, "data", items))?;
            values::check_multiple(data.as_bytes().len(), 8, "data", "bytes")?;
            let max = layout.max();
            if let Some(id) = as_chunks(data.as_bytes()).0.iter().map(|id| u64::from_ne_bytes(*id)).find(|&id| id > max) {
                return Err(errors::value(Error::range("ID", id, 0, max.into())));
            }
            Ok(Self { data: data.unbind(), layout })
        }

        /// The layout.
        #[getter]
        fn layout(&self) -> Layout {
            self.layout.clone()
        }

        /// Return the decimal text of all IDs, one a line, as ASCII bytes.
        ///
        /// >>> from mintage import snowflake
        /// >>> snowflake.Array(bytes(16)).to_lines()
        /// b'0\n0\n'
        fn to_lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
            lines(py, self.data.as_bytes(py))
        }
    }
}

impl hot::Lends for Array {
    fn bytes(&self) -> &Py<PyBytes> {
        &self.data
    }

    fn lender<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        PyMemoryView::from(self.data.bind(py))?.call_method1("cast", ("Q",))
    }
}

impl ArrayClass for Array {
    type Item = u64;
    const SIZE: usize = 8;
    const WORD: &'static str = "snowflake";

    fn item(bytes: &[u8]) -> u64 {
        u64::from_ne_bytes(bytes.try_into().unwrap_or_default())
    }

    fn text(bytes: &[u8]) -> String {
        Self::item(bytes).to_string()
    }

    fn bytes_of(value: &Bound<'_, PyAny>) -> Option<impl AsRef<[u8]>> {
        value.extract::<u64>().ok().map(u64::to_ne_bytes)
    }

    fn column(&self) -> arrow::Ids<'_> {
        arrow::Ids::integers(self.layout.0.bits() < 64, &self.data)
    }

    fn with_data(&self, data: Py<PyBytes>) -> Self {
        Self { data, layout: self.layout.clone() }
    }

    fn equals(&self, other: &Bound<'_, PyAny>) -> PyResult<Option<bool>> {
        static PLAIN: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let py = other.py();
        let (own, words) = (self.data.as_bytes(py), hot::Items::Words { signed: false });
        Ok(match other.cast::<Self>() {
            Ok(other) => Some(other.get().data.as_bytes(py) == own),
            Err(_) if other.is_instance(PLAIN.import(py, "array", "array")?)? => {
                Some(values::bytes(other, "other", words).is_ok_and(|other| other.as_bytes() == own))
            }
            Err(_) => None,
        })
    }
}

fn lines<'py>(py: Python<'py>, ids: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let mut lines = hot::room(ids.len() / 8 * (DIGITS + 1))?;
    decimals(ids, |text| {
        lines.extend_from_slice(text);
        lines.push(b'\n');
    });
    PyBytes::new_with(py, lines.len(), |text| {
        text.copy_from_slice(&lines);
        Ok(())
    })
}

/// Return the decimal text of IDs of 8 bytes each in native order, one a line, as ASCII bytes. Signed integers count as
/// unsigned.
///
/// >>> from mintage import snowflake
/// >>> snowflake.to_lines(bytes(16))
/// b'0\n0\n'
///
/// :raises ArgumentError: ``ids`` has no buffer.
/// :raises ConfigError: ``config.buffer``: other items than :meth:`Generator.fill` writes, or not contiguous.
/// :raises ParseError: ``parse.length``: not a whole number of IDs.
#[pyfunction]
#[pyo3(signature = (ids, /))]
pub fn to_lines<'py>(ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = values::bytes(ids, "ids", hot::Items::Words { signed: true })?;
    values::check_multiple(bytes.as_bytes().len(), 8, "ids", "bytes")?;
    lines(ids.py(), bytes.as_bytes())
}

/// Puts the classes and the function into the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Array>()?;
    module.add_function(wrap_pyfunction!(to_lines, module)?)?;
    hot::install_array::<Array>(module.py());
    Ok(())
}
