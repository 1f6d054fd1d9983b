//! Classes of IDs of fixed size, and of arrays of them: the code that all schemes share.

use crate::hot::IdClass;
use crate::{errors, hot, values};
use mintage_core::error::Error;
use mintage_core::id::Id;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyAttributeError, PyImportError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

/// The ID of any text, or the error.
pub fn parse<C: IdClass>(text: &Bound<'_, PyAny>) -> PyResult<C> {
    C::Id::parse(&values::text(text, "text")?).map(C::of).map_err(errors::value)
}

/// The ID of a value of exactly an ID's bytes.
pub fn from_bytes<C: IdClass>(value: &Bound<'_, PyAny>) -> PyResult<C> {
    let size = C::Id::SIZE;
    if value.is_instance_of::<PyString>() {
        let expected = "bytes or another buffer (ID.parse() reads text)";
        return Err(errors::argument("value", expected, value));
    }
    let bytes = values::bytes(value, "value", hot::Items::Ids(size))?;
    let bytes = bytes.as_bytes();
    if bytes.len() == size {
        return Ok(C::of(C::Id::from_slice(bytes)));
    }
    Err(errors::value(Error::Length { what: C::Id::WHAT, actual: bytes.len(), expected: size, unit: "bytes" }))
}

/// The ID whose bits are this integer.
pub fn from_int<C: IdClass>(value: &Bound<'_, PyAny>) -> PyResult<C> {
    values::unsigned_bytes(&values::integer(value, "int")?, "int", C::Id::SIZE)
        .map(|bytes| C::of(C::Id::from_slice(&bytes)))
}

/// The bytes of packed IDs, from which an array is made.
pub fn packed<C: IdClass>(py: Python<'_>, data: &values::Defaulted<'_>) -> PyResult<Py<PyBytes>> {
    let size = C::Id::SIZE;
    let items = hot::Items::Ids(size);
    let data = data.given().map_or_else(|| Ok(PyBytes::new(py, b"")), |data| values::bytes(data, "data", items))?;
    values::check_multiple(data.as_bytes().len(), size, "data", "bytes")?;
    Ok(data.unbind())
}

/// The IDs of text without separators.
pub fn parse_many<C: IdClass>(text: &Bound<'_, PyAny>) -> PyResult<Py<PyBytes>> {
    let text_size = C::Id::TEXT;
    let (py, text) = (text.py(), values::characters(text, text_size)?);
    let text = text.as_bytes();
    values::check_multiple(text.len(), text_size, "text", "characters")?;
    let data = PyBytes::new_with(py, text.len() / text_size * C::Id::SIZE, |ids| {
        C::Id::decode_many(text, ids).map_err(|position| wrong_byte::<C>(text, position))
    })?;
    Ok(data.unbind())
}

/// The error for a byte of packed text.
pub fn wrong_byte<C: IdClass>(text: &[u8], position: usize) -> PyErr {
    errors::value(C::Id::bad_character(text.get(position).copied().map_or('\0', char::from), position))
}

/// The text of packed IDs, without separators.
pub fn encode_many<'py, C: IdClass>(py: Python<'py>, ids: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, ids.len() / C::Id::SIZE * C::Id::TEXT, |text| {
        C::Id::encode_many(ids, text);
        Ok(())
    })
}

/// The text of packed IDs, one a line.
pub fn lines<'py, C: IdClass>(py: Python<'py>, ids: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    const IDS: usize = 1024;
    let (size, width) = (C::Id::TEXT, C::Id::TEXT + 1);
    let mut text = vec![0; IDS * size];
    PyBytes::new_with(py, ids.len() / C::Id::SIZE * width, |lines| {
        for (lines, ids) in lines.chunks_mut(IDS * width).zip(ids.chunks(IDS * C::Id::SIZE)) {
            let text = &mut text[..lines.len() / width * size];
            C::Id::encode_many(ids, text);
            for (line, id) in lines.chunks_exact_mut(width).zip(text.chunks_exact(size)) {
                line[..size].copy_from_slice(id);
                line[size] = b'\n';
            }
        }
        Ok(())
    })
}

/// Calls a function of an adapter, whose module is imported when its framework asks.
pub fn adapter<'py>(
    py: Python<'py>,
    framework: &str,
    function: &str,
    arguments: impl PyCallArgs<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import(format!("mintage.ext.{framework}"))?.getattr(function)?.call1(arguments)
}

/// A marker in ``Annotated`` by which Pydantic reads and writes another type as IDs.
#[pyclass(subclass, frozen, module = "mintage._core")]
pub struct Annotation;

#[pymethods]
impl Annotation {
    #[new]
    #[pyo3(signature = (*_args, **_named))]
    fn new(_args: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> Self {
        Self
    }

    /// Return the schema by which Pydantic reads and writes such IDs: see :mod:`mintage.ext.pydantic`.
    ///
    /// :raises ModuleNotFoundError: pydantic is not installed.
    #[pyo3(signature = (source, handler, /))]
    fn __get_pydantic_core_schema__<'py>(
        slf: &Bound<'py, Self>,
        source: Bound<'py, PyAny>,
        handler: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        adapter(slf.py(), "pydantic", "core_schema_of", (slf, source, handler))
    }

    /// Return the JSON schema of the text of such IDs.
    ///
    /// :raises ModuleNotFoundError: pydantic is not installed.
    #[pyo3(signature = (schema, handler, /))]
    fn __get_pydantic_json_schema__<'py>(
        slf: &Bound<'py, Self>,
        schema: Bound<'py, PyAny>,
        handler: Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        adapter(slf.py(), "pydantic", "json_schema_of", (slf, schema, handler))
    }
}

/// The object by which a framework writes an ID that nothing describes; no attribute without the framework.
pub fn attribute<'py>(
    id: &Bound<'py, PyAny>,
    name: &str,
    framework: &str,
    function: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let py = id.py();
    adapter(py, framework, function, (id,)).map_err(|error| {
        let is_absent = error.is_instance_of::<PyImportError>(py) || error.is_instance_of::<PyAttributeError>(py);
        if is_absent { PyAttributeError::new_err(name.to_owned()) } else { error }
    })
}

/// Writes the methods of a class of IDs: its own, and those by which frameworks and copies take it.
macro_rules! id_methods {
    (impl $class:ident { $($own:tt)* }) => {
        #[pymethods]
        impl $class {
            $($own)*

            /// Return the schema by which Pydantic reads and writes IDs: see :mod:`mintage.ext.pydantic`.
            ///
            /// :raises ModuleNotFoundError: pydantic is not installed.
            #[classmethod]
            #[pyo3(signature = (source, handler, /))]
            fn __get_pydantic_core_schema__<'py>(
                cls: &Bound<'py, PyType>,
                source: Bound<'py, PyAny>,
                handler: Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                $crate::id::adapter(cls.py(), "pydantic", "core_schema_of", (cls, source, handler))
            }

            /// Return the JSON schema of an ID's text.
            ///
            /// :raises ModuleNotFoundError: pydantic is not installed.
            #[classmethod]
            #[pyo3(signature = (schema, handler, /))]
            fn __get_pydantic_json_schema__<'py>(
                cls: &Bound<'py, PyType>,
                schema: Bound<'py, PyAny>,
                handler: Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                $crate::id::adapter(cls.py(), "pydantic", "json_schema_of", (cls, schema, handler))
            }

            /// The serializer by which Pydantic writes an ID that no type describes.
            #[getter]
            fn __pydantic_serializer__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
                $crate::id::attribute(slf.as_any(), "__pydantic_serializer__", "pydantic", "serializer_of")
            }

            /// The type by which SQLAlchemy writes an ID that no column describes.
            #[getter]
            fn __sa_type_engine__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
                $crate::id::attribute(slf.as_any(), "__sa_type_engine__", "sqlalchemy", "type_of")
            }

            /// Return the text, formatted as ``str`` is: ``f"{id:>20}"``.
            fn __format__<'py>(
                &self,
                py: Python<'py>,
                format_spec: &Bound<'py, pyo3::types::PyString>,
            ) -> PyResult<Bound<'py, PyAny>> {
                $crate::values::formatted(self.__str__(py)?, format_spec)
            }

            fn __copy__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            #[pyo3(signature = (memo, /))]
            fn __deepcopy__(slf: Py<Self>, memo: &Bound<'_, PyAny>) -> Py<Self> {
                let _ = memo;
                slf
            }
        }
    };
}
pub(crate) use id_methods;

/// Makes the classes `ID`, `Array` and `ArrayIterator` of a scheme whose IDs are fixed bytes.
///
/// `id! { /// docs; Name(core::Id), module, word, size, text, "what parse reads"; { methods of its own } }`
macro_rules! id {
    (
        $(#[$doc:meta])*
        $class:ident($core:ty) in $module:literal, $word:literal, $size:literal bytes, $text:literal characters: $reads:literal
        { $($own:tt)* }
    ) => {
        $(#[$doc])*
        ///
        /// Makes the ID of bytes, or of the text that :meth:`parse` reads. IDs order as their bytes, their text and their
        /// integers do; they hash, pickle and copy.
        ///
        #[doc = concat!(">>> from mintage import ", $word)]
        #[doc = concat!(">>> id = ", $word, ".ID(bytes(", $size, "))")]
        #[doc = concat!(">>> str(id) == str(", $word, ".ID.from_int(0)), len(bytes(id))")]
        #[doc = concat!("(True, ", $size, ")")]
        ///
        /// :raises ArgumentError: ``value`` has no contiguous buffer.
        #[doc = concat!(":raises ParseError: ``parse.length``: not ", $size, " bytes; ``parse.character`` of a text.")]
        #[pyclass(frozen, eq, ord, name = "ID", module = $module)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $class(pub $core);

        impl $crate::hot::IdClass for $class {
            type Id = $core;

            #[inline(always)]
            fn of(id: $core) -> Self {
                Self(id)
            }

            #[inline(always)]
            fn id(&self) -> $core {
                self.0
            }

            fn parse_slow(text: &Bound<'_, PyAny>) -> PyResult<Self> {
                $crate::id::parse(text)
            }
        }

        impl $crate::hot::Recycled for $class {
            fn free_list() -> &'static $crate::hot::FreeList {
                static LIST: $crate::hot::FreeList = $crate::hot::FreeList::new();
                &LIST
            }
        }

        $crate::id::id_methods! {
            impl $class {
                $($own)*

                #[new]
                #[pyo3(signature = (value, /))]
                fn py_new(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                    if value.is_instance_of::<pyo3::types::PyString>() {
                        return $crate::id::parse(value);
                    }
                    $crate::id::from_bytes(value)
                }

                #[doc = $reads]
                ///
                #[doc = concat!(">>> from mintage import ", $word)]
                #[doc = concat!(">>> id = ", $word, ".ID(bytes(", $size, "))")]
                #[doc = concat!(">>> ", $word, ".ID.parse(str(id)) == id")]
                /// True
                ///
                /// :raises ArgumentError: ``text`` is not str.
                /// :raises ParseError: ``parse.length``, or ``parse.character`` with its ``position``.
                #[staticmethod]
                #[pyo3(signature = (text, /))]
                fn parse(text: &Bound<'_, PyAny>) -> PyResult<Self> {
                    $crate::id::parse(text)
                }

                #[doc = concat!("Return the ID of ", $size, " bytes; any ", $size, " bytes are an ID.")]
                ///
                #[doc = concat!(">>> from mintage import ", $word)]
                #[doc = concat!(">>> int(", $word, ".ID.from_bytes(bytes(", $size, ")))")]
                /// 0
                ///
                /// :raises ArgumentError: ``value`` has no buffer.
                /// :raises ConfigError: ``config.buffer``: its items are no bytes, or it is not contiguous.
                #[doc = concat!(":raises ParseError: ``parse.length``: not ", $size, " bytes.")]
                #[staticmethod]
                #[pyo3(signature = (value, /))]
                fn from_bytes(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                    $crate::id::from_bytes(value)
                }

                #[doc = concat!("Return the ID whose ", $size, " bytes are those of this integer, big-endian; 0 or more.")]
                ///
                #[doc = concat!(">>> from mintage import ", $word)]
                #[doc = concat!(">>> int(", $word, ".ID.from_int(7))")]
                /// 7
                ///
                /// :raises ArgumentError: ``value`` is no integer, such as a float or a bool.
                /// :raises FieldError: ``field.range``.
                #[staticmethod]
                #[pyo3(signature = (value, /))]
                fn from_int(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                    $crate::id::from_int(value)
                }

                fn __str__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyString>> {
                    $crate::hot::ascii(py, mintage_core::id::Id::to_text(self.0).as_ref())
                }

                fn __repr__(&self) -> String {
                    format!(concat!($word, ".ID.parse('{}')"), self.0)
                }

                fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
                    PyBytes::new(py, mintage_core::id::Id::to_array(self.0).as_ref())
                }

                fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                    $crate::values::int(py, mintage_core::id::Id::to_array(self.0).as_ref())
                }

                fn __hash__(&self) -> isize {
                    $crate::hot::hash(mintage_core::id::Id::to_array(self.0).as_ref())
                }

                fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (Bound<'py, PyBytes>,)) {
                    (slf.get_type(), (slf.get().__bytes__(slf.py()),))
                }
            }
        }

        $crate::array::array! {
            /// IDs packed one behind the other in one contiguous, read-only buffer.
            ///
            /// Array(data=b"")
            ///
            /// ``data`` holds whole IDs. Indexing gives an ID, slicing an Array; the buffer protocol gives the bytes, so
            /// ``memoryview(array)`` and ``numpy.frombuffer(array, ...)`` copy nothing.
            ///
            #[doc = concat!(">>> from mintage import ", $word)]
            #[doc = concat!(">>> array = ", $word, ".Array(bytes(2 * ", $word, ".Array.SIZE))")]
            #[doc = concat!(">>> len(array), array[0] == array[1] == ", $word, ".ID.from_int(0)")]
            /// (2, True)
            ///
            /// :raises ArgumentError: ``data`` has no contiguous buffer.
            /// :raises ParseError: ``parse.length``: not a whole number of IDs.
            Array of $class, $size bytes, in $module
            {
                #[new]
                #[pyo3(signature = (data = Defaulted::OUT, /), text_signature = "(data=b'', /)")]
                fn py_new(py: Python<'_>, data: Defaulted<'_>) -> PyResult<Self> {
                    $crate::id::packed::<$class>(py, &data).map(|data| Self { data })
                }

                /// Parse text without separators, as :meth:`encode` returns it: a str, or a buffer of ASCII.
                ///
                #[doc = concat!(">>> from mintage import ", $word)]
                #[doc = concat!(">>> array = ", $word, ".Array(bytes(2 * ", $word, ".Array.SIZE))")]
                #[doc = concat!(">>> ", $word, ".Array.parse(array.encode()) == array")]
                /// True
                ///
                /// :raises ParseError: ``parse.length``, or ``parse.character`` with the position in the whole text.
                #[staticmethod]
                #[pyo3(signature = (text, /))]
                fn parse(text: &Bound<'_, PyAny>) -> PyResult<Self> {
                    $crate::id::parse_many::<$class>(text).map(|data| Self { data })
                }

                /// Return the text of all IDs without separators, as ASCII bytes.
                ///
                #[doc = concat!(">>> from mintage import ", $word)]
                #[doc = concat!(">>> len(", $word, ".Array(bytes(", $size, ")).encode())")]
                #[doc = concat!($text)]
                fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                    $crate::id::encode_many::<$class>(py, self.data.as_bytes(py))
                }

                /// Return the text of all IDs, one a line, as ASCII bytes.
                ///
                #[doc = concat!(">>> from mintage import ", $word)]
                #[doc = concat!(">>> len(", $word, ".Array(bytes(2 * ", $size, ")).to_lines().splitlines())")]
                /// 2
                fn to_lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                    $crate::id::lines::<$class>(py, self.data.as_bytes(py))
                }
            }
        }

        impl $crate::hot::Lends for Array {
            fn bytes(&self) -> &Py<PyBytes> {
                &self.data
            }
        }

        impl $crate::array::ArrayClass for Array {
            type Item = $class;
            const SIZE: usize = $size;
            const WORD: &'static str = $word;

            #[inline(always)]
            fn item(bytes: &[u8]) -> $class {
                $class(mintage_core::id::Id::from_slice(bytes))
            }

            fn text(bytes: &[u8]) -> String {
                Self::item(bytes).0.to_string()
            }

            fn bytes_of(value: &Bound<'_, PyAny>) -> Option<impl AsRef<[u8]>> {
                value.cast::<$class>().ok().map(|id| mintage_core::id::Id::to_array(id.get().0))
            }

            fn column(&self) -> $crate::arrow::Ids<'_> {
                $crate::arrow::Ids::of::<$class>($word, &self.data)
            }

            fn with_data(&self, data: Py<PyBytes>) -> Self {
                Self { data }
            }
        }
    };
}
pub(crate) use id;

/// Makes the functions `min_at` and `max_at` of a scheme's module: `bounds! { Class in word, "ID of the tick", by function }`, where the
/// function takes a time and whether it is the upper bound.
macro_rules! bounds {
    ($class:ident in $word:literal, $of:literal, by $bound:path) => {
        #[doc = concat!("Return the smallest ", $of, " that a time lies in: the lower bound of a range query.")]
        ///
        #[doc = concat!(">>> from mintage import ", $word)]
        #[doc = concat!(">>> id = ", $word, ".new()")]
        #[doc = concat!(">>> ", $word, ".min_at(id.timestamp_ns) <= id")]
        /// True
        ///
        /// :raises ArgumentError: ``time`` is neither an aware datetime nor an int of nanoseconds.
        /// :raises FieldError: ``time.naive`` or ``time.range``.
        #[pyfunction]
        #[pyo3(signature = (time, /))]
        fn min_at(time: &Bound<'_, PyAny>) -> PyResult<$class> {
            $bound(time, false)
        }

        #[doc = concat!("Return the largest ", $of, " that a time lies in: the upper bound of a range query.")]
        ///
        #[doc = concat!(">>> from mintage import ", $word)]
        #[doc = concat!(">>> id = ", $word, ".new()")]
        #[doc = concat!(">>> id <= ", $word, ".max_at(id.timestamp_ns)")]
        /// True
        ///
        /// :raises ArgumentError: ``time`` is neither an aware datetime nor an int of nanoseconds.
        /// :raises FieldError: ``time.naive`` or ``time.range``.
        #[pyfunction]
        #[pyo3(signature = (time, /))]
        fn max_at(time: &Bound<'_, PyAny>) -> PyResult<$class> {
            $bound(time, true)
        }
    };
}
pub(crate) use bounds;
