//! `mintage.typeid`: a prefix that names a type, before an ID of 128 bits.

use crate::id::id_methods;
use crate::{errors, hot, uuid, values};
use mintage_core::error::Error;
use mintage_core::id::Id;
use mintage_core::units::UnixNs;
use mintage_core::views::typeid;
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDateTime, PyList, PyString, PyTuple, PyType};
use std::sync::Arc;

/// A prefix and 16 bytes. TypeIDs order as their text does; they hash, pickle and copy.
///
/// ID(prefix, id)
///
/// >>> from mintage import typeid, ulid
/// >>> typeid.ID("user", ulid.new()).prefix
/// 'user'
///
/// ``ID(text)`` is :meth:`parse` of a text, so the class is a type of argparse and others.
///
/// :param prefix: up to 63 characters of ``a-z``, with ``_`` inside; it may be empty.
/// :param id: any ID of 128 bits, or 16 bytes.
/// :raises ArgumentError: an argument of the wrong type.
/// :raises FieldError: ``field.format``: the prefix is none.
/// :raises ParseError: ``parse.length``: the ID has other than 16 bytes; or as :meth:`parse`.
// The order is that of the text: the separator is below every letter, and a digit follows it.
#[pyclass(frozen, eq, ord, hash, name = "ID", module = "mintage.typeid")]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TypeId {
    prefix: Arc<str>,
    bytes: [u8; 16],
}

id_methods! {
    impl TypeId {
        #[new]
        #[pyo3(signature = (prefix, id = values::Defaulted::OUT))]
        fn py_new(prefix: &Bound<'_, PyAny>, id: values::Defaulted<'_>) -> PyResult<Self> {
            match id.given() {
                Some(id) => Ok(Self { prefix: checked(prefix)?, bytes: sixteen(id)? }),
                None => Self::parse(prefix, None),
            }
        }

        /// Parse a TypeID strictly, of any prefix, or of this one alone.
        ///
        /// >>> from mintage import typeid
        /// >>> typeid.ID.parse("user_01arz3ndektsv4rrffq69g5fav").prefix
        /// 'user'
        ///
        /// :raises ArgumentError: ``text`` or ``prefix`` is not str.
        /// :raises ParseError: ``parse.length``, or ``parse.character`` with its ``position``; ``parse.unknown``: it has
        ///     another prefix.
        #[staticmethod]
        #[pyo3(signature = (text, prefix = None))]
        fn parse(text: &Bound<'_, PyAny>, prefix: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
            let words = values::text(text, "text")?;
            let prefix = prefix.map(|prefix| values::text(prefix, "prefix")).transpose()?;
            let (found, bytes) = typeid::read(&words).map_err(errors::value)?;
            if let Some(wanted) = prefix.filter(|wanted| *wanted != found) {
                let wanted: String = wanted.chars().take(typeid::MAX_PREFIX + 1).collect();
                let message = format!("typeid text has the prefix {found:?}, needs {wanted:?}");
                return Err(errors::parse(text.py(), "parse.unknown", &message));
            }
            Ok(Self { prefix: found.into(), bytes })
        }

        /// The prefix, which names a type; it may be empty.
        #[getter]
        fn prefix(&self) -> &str {
            &self.prefix
        }

        /// Return the ``uuid.UUID`` of the same 128 bits. :func:`mintage.cast` has the other classes.
        ///
        /// >>> from mintage import typeid
        /// >>> typeid.ID("user", bytes(16)).as_uuid()
        /// UUID('00000000-0000-0000-0000-000000000000')
        fn as_uuid<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
            values::uuid(py, self.bytes)
        }

        fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
            PyBytes::new(py, &self.bytes)
        }

        fn __int__(&self) -> u128 {
            u128::from_be_bytes(self.bytes)
        }

        fn __str__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
            hot::ascii(py, typeid::write(&self.prefix, self.bytes).as_bytes())
        }

        fn __repr__(&self) -> String {
            format!("typeid.ID.parse('{}')", typeid::write(&self.prefix, self.bytes))
        }

        fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (String, Bound<'py, PyBytes>)) {
            let this = slf.get();
            (slf.get_type(), (this.prefix.to_string(), this.__bytes__(slf.py())))
        }

        /// The time at which the UUID of version 7 below the prefix was minted: an aware UTC datetime; None for any other ID.
        ///
        /// >>> from mintage import typeid
        /// >>> typeid.ID.parse("user_01jsnxqge0e7sb8n4zyh1tw9wa").time.year
        /// 2025
        #[getter]
        fn time<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDateTime>>> {
            let id = mintage_core::schemes::uuid::Id(self.bytes);
            let ns = if id.version() == Some(7) { Id::format(&id).time_ns(&self.bytes) } else { None };
            ns.map(|ns| values::datetime(py, UnixNs(ns).floor_ms())).transpose()
        }
    }
}

/// Reads a valid prefix.
fn checked(prefix: &Bound<'_, PyAny>) -> PyResult<Arc<str>> {
    let prefix = values::text(prefix, "prefix")?;
    typeid::check(&prefix).map_err(errors::value)?;
    Ok(prefix.as_ref().into())
}

/// The bytes of any ID of 128 bits.
fn sixteen(id: &Bound<'_, PyAny>) -> PyResult<[u8; 16]> {
    if let Ok(id) = id.cast_exact::<uuid::UuidId>() {
        return Ok(id.get().0.0);
    }
    static RAW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let raw = RAW.import(id.py(), "mintage.formats.values", "raw")?.call1((id,))?;
    let bytes = raw.cast::<PyBytes>()?.as_bytes();
    let (actual, expected) = (bytes.len(), 16);
    let wrong = |_| errors::value(Error::Length { what: "ID of a TypeID", actual, expected, unit: "bytes" });
    bytes.try_into().map_err(wrong)
}

/// A generator of TypeIDs of one prefix, from the IDs of another generator.
///
/// Generator(prefix, of=None)
///
/// Threads may share it if they may share the other generator.
///
/// >>> from mintage import typeid, ulid
/// >>> with typeid.Generator("user", ulid.Generator()) as generator:
/// ...     id = generator.new()
/// >>> id.prefix
/// 'user'
///
/// :param prefix: up to 63 characters of ``a-z``, with ``_`` inside; it may be empty.
/// :param of: a generator of IDs of 128 bits, such as ``ulid.Generator()``, which is closed with this one; by default
///     one of UUIDs of version 7, for which the specification asks.
/// :raises ArgumentError: an argument of the wrong type.
/// :raises FieldError: ``field.format``: the prefix is none.
#[pyclass(frozen, module = "mintage.typeid")]
pub struct Generator {
    prefix: Arc<str>,
    of: Py<PyAny>,
}

#[pymethods]
impl Generator {
    #[new]
    #[pyo3(signature = (prefix, of = None))]
    fn py_new(prefix: &Bound<'_, PyAny>, of: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let (py, prefix) = (prefix.py(), checked(prefix)?);
        let of = match of {
            None => py.get_type::<uuid::Generator>().call0()?,
            Some(of) if of.getattr_opt("new")?.is_some_and(|new| new.is_callable()) => of.clone(),
            Some(other) => return Err(errors::argument("of", "a generator", other)),
        };
        Ok(Self { prefix, of: of.unbind() })
    }

    /// The prefix of its IDs.
    #[getter]
    fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Mint a TypeID.
    ///
    /// >>> from mintage import typeid
    /// >>> str(typeid.Generator("user").new())[:5]
    /// 'user_'
    ///
    /// :raises ParseError: ``parse.length``: the generator's IDs have other than 16 bytes.
    /// :raises MintError: as the ``new`` of the other generator.
    #[pyo3(name = "new")]
    fn mint_one(&self, py: Python<'_>) -> PyResult<TypeId> {
        let of = self.of.bind(py);
        let bytes = match of.cast_exact::<uuid::Generator>() {
            Ok(uuids) => hot::mint_fast(uuids, 0)?.to_array(),
            Err(_) => sixteen(&of.call_method0("new")?)?,
        };
        Ok(TypeId { prefix: self.prefix.clone(), bytes })
    }

    /// Mint ``n`` TypeIDs, 0 to 2^31 - 1, into a list.
    ///
    /// >>> from mintage import typeid
    /// >>> len(typeid.Generator("user").batch(3))
    /// 3
    ///
    /// :raises ArgumentError: ``n`` is not an int.
    /// :raises FieldError: ``field.range``.
    /// :raises MintError: as :meth:`new`.
    #[pyo3(signature = (n))]
    fn batch<'py>(&self, n: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let (py, ids) = (n.py(), PyList::empty(n.py()));
        for i in 0..values::count(n)? {
            if i % 4096 == 0 {
                py.check_signals()?;
            }
            ids.append(self.mint_one(py)?)?;
        }
        Ok(ids)
    }

    /// End minting for good, and close the other generator.
    ///
    /// >>> from mintage import typeid
    /// >>> generator = typeid.Generator("user")
    /// >>> generator.close()
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.of.call_method0(py, "close").map(drop)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<TypeId> {
        self.mint_one(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*exc))]
    fn __exit__(&self, exc: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(exc.py())
    }

    fn __repr__(&self) -> String {
        format!("<typeid.Generator '{}'>", self.prefix)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.of)
    }
}

/// Refuse a text that is no prefix of a TypeID.
///
/// :raises ArgumentError: ``prefix`` is not str.
/// :raises FieldError: ``field.format``.
#[pyfunction]
#[pyo3(signature = (prefix, /))]
fn check_prefix(prefix: &Bound<'_, PyAny>) -> PyResult<()> {
    checked(prefix).map(drop)
}

/// Return a regular expression, without anchors, of the TypeIDs of a prefix, or of any; and their smallest and largest
/// number of characters.
#[pyfunction]
#[pyo3(signature = (prefix = None, /))]
fn pattern(prefix: Option<&str>) -> (String, usize, usize) {
    let length = |prefix: usize| typeid::SUFFIX + prefix + usize::from(prefix > 0);
    let (least, most) = prefix.map_or((0, typeid::MAX_PREFIX), |prefix| (prefix.len(), prefix.len()));
    (typeid::pattern(prefix), length(least), length(most))
}

/// Puts the classes and functions into the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<TypeId>()?;
    module.add_class::<Generator>()?;
    module.add_function(wrap_pyfunction!(check_prefix, module)?)?;
    module.add_function(wrap_pyfunction!(pattern, module)?)
}
