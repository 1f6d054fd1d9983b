//! Other spellings of IDs: the parts of `mintage.opaque` and `mintage.text`.

use crate::{errors, hot, values};
use mintage_core::error::Error;
use mintage_core::views::opaque::{self, Opaque};
use mintage_core::views::text::{BASES, Base, MAX_BYTES};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

fn base(name: &Bound<'_, PyAny>) -> PyResult<&'static Base> {
    let words = values::text(name, "base")?;
    Base::named(&words).ok_or_else(|| {
        let names: Vec<_> = BASES.iter().map(|base| base.name).collect();
        let shown: String = words.chars().take(40).collect();
        let message = format!("base {shown:?} is not one of {}", names.join(", "));
        errors::config(name.py(), "config.policy", &message)
    })
}

fn size(size: usize) -> PyResult<usize> {
    let wrong = || errors::value(Error::range("size", size, 1, MAX_BYTES as u128));
    (1..=MAX_BYTES).contains(&size).then_some(size).ok_or_else(wrong)
}

/// Return the text of 1 to 24 bytes in a base.
///
/// :raises ArgumentError: an argument of the wrong type.
/// :raises ConfigError: ``config.policy``: no such base.
/// :raises FieldError: ``field.range``: more bytes, or none.
#[pyfunction]
#[pyo3(signature = (name, value, /))]
fn encode(name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let (base, bytes) = (base(name)?, values::bytes(value, "value", hot::Items::Ids(1))?);
    size(bytes.as_bytes().len())?;
    Ok(base.write(bytes.as_bytes()))
}

/// Return ``count`` bytes, from their text in a base.
///
/// :raises ArgumentError: an argument of the wrong type.
/// :raises ConfigError: ``config.policy``: no such base.
/// :raises FieldError: ``field.range``: the size.
/// :raises ParseError: ``parse.length``, or ``parse.character`` with its ``position``.
#[pyfunction]
#[pyo3(signature = (name, text, count, /))]
fn decode<'py>(
    name: &Bound<'_, PyAny>,
    text: &Bound<'py, PyAny>,
    count: &Bound<'_, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let (base, words) = (base(name)?, values::text(text, "text")?);
    let count = size(values::field(count, "size", u32::MAX.into())? as usize)?;
    PyBytes::new_with(text.py(), count, |bytes| base.read("text", &words, bytes).map_err(errors::value))
}

/// The permutations of a key.
#[pyclass(frozen, module = "mintage._core.views")]
pub struct Permutation(Opaque);

#[pymethods]
impl Permutation {
    #[new]
    #[pyo3(signature = (key, /))]
    fn py_new(key: &Bound<'_, PyAny>) -> PyResult<Self> {
        let bytes = values::bytes(key, "key", hot::Items::Ids(1))?;
        let bytes = bytes.as_bytes();
        let (actual, expected) = (bytes.len(), opaque::KEY);
        let wrong = |_| errors::value(Error::Length { what: "key", actual, expected, unit: "bytes" });
        <[u8; opaque::KEY]>::try_from(bytes).map_err(wrong).map(|key| Self(Opaque::new(&key)))
    }

    /// Permute 8, 10 or 16 bytes.
    #[pyo3(signature = (id, /))]
    fn hide<'py>(&self, id: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyBytes>> {
        permuted(id, |id| self.0.hide(id))
    }

    /// Return the bytes that :meth:`hide` permuted.
    #[pyo3(signature = (id, /))]
    fn reveal<'py>(&self, id: &Bound<'py, PyBytes>) -> PyResult<Bound<'py, PyBytes>> {
        permuted(id, |id| self.0.reveal(id))
    }
}

fn permuted<'py>(id: &Bound<'py, PyBytes>, permute: impl FnOnce(&mut [u8]) -> bool) -> PyResult<Bound<'py, PyBytes>> {
    let mut bytes = id.as_bytes().to_vec();
    let (actual, expected) = (bytes.len(), 16);
    if permute(&mut bytes) {
        return Ok(PyBytes::new(id.py(), &bytes));
    }
    Err(errors::value(Error::Length { what: "hidden ID", actual, expected, unit: "bytes" }))
}

/// Puts the functions into the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let bases = PyDict::new(module.py());
    for base in &BASES {
        bases.set_item(base.name, String::from_utf8_lossy(base.alphabet.characters()))?;
    }
    module.add("BASES", bases)?;
    module.add_class::<Permutation>()?;
    module.add_function(wrap_pyfunction!(encode, module)?)?;
    module.add_function(wrap_pyfunction!(decode, module)?)
}
