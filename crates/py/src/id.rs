//! The classes of IDs and of arrays of them: all that is the same whatever the scheme.

use crate::{errors, hot, values};
use mintage_core::error::Error;
use mintage_core::id::Id;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PySlice, PyType};

/// A class of IDs, as the shared code sees it.
pub trait Class: hot::Reborn {
    type Id: Id;
    fn of(id: Self::Id) -> Self;
    fn id(&self) -> Self::Id;
}

/// The ID of so many bytes.
pub fn from_bytes<C: Class>(value: &Bound<'_, PyAny>) -> PyResult<C> {
    let size = C::Id::SIZE;
    let bytes = values::bytes(value, "value", hot::Items::Ids(size))?;
    if bytes.len() == size {
        return Ok(C::of(C::Id::from_slice(&bytes)));
    }
    Err(errors::value(Error::Length { what: C::Id::WHAT, actual: bytes.len(), expected: size, unit: "bytes" }))
}

/// The ID whose bits are this integer.
pub fn from_int<C: Class>(value: &Bound<'_, PyAny>) -> PyResult<C> {
    values::unsigned_bytes(value, "int", C::Id::SIZE).map(|bytes| C::of(C::Id::from_slice(&bytes)))
}

/// IDs packed in a buffer, as an array is made of them.
pub fn packed<C: Class>(py: Python<'_>, data: &values::Defaulted<'_>) -> PyResult<Py<PyBytes>> {
    let size = C::Id::SIZE;
    let data =
        data.given().map_or_else(|| Ok(Vec::new()), |data| values::bytes(data, "data", hot::Items::Ids(size)))?;
    values::whole(data.len(), size, "data", "bytes")?;
    Ok(PyBytes::new(py, &data).unbind())
}

/// The IDs of text without separators.
pub fn parse_many<C: Class>(text: &Bound<'_, PyAny>) -> PyResult<Py<PyBytes>> {
    let text_size = C::Id::TEXT;
    let (py, text) = (text.py(), values::characters(text, text_size)?);
    values::whole(text.len(), text_size, "text", "characters")?;
    let data = PyBytes::new_with(py, text.len() / text_size * C::Id::SIZE, |ids| {
        C::Id::decode_many(&text, ids).map_err(|position| wrong_byte::<C>(&text, position))
    })?;
    Ok(data.unbind())
}

/// The error for a byte of packed text.
pub fn wrong_byte<C: Class>(text: &[u8], position: usize) -> PyErr {
    errors::value(C::Id::bad_character(text.get(position).copied().map_or('\0', char::from), position))
}

/// The text of packed IDs, without separators.
pub fn encode_many<'py, C: Class>(py: Python<'py>, ids: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, ids.len() / C::Id::SIZE * C::Id::TEXT, |text| {
        C::Id::encode_many(ids, text);
        Ok(())
    })
}

/// The text of packed IDs, one a line.
pub fn lines<'py, C: Class>(py: Python<'py>, ids: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let size = C::Id::TEXT;
    let mut text = vec![0; ids.len() / C::Id::SIZE * size];
    C::Id::encode_many(ids, &mut text);
    PyBytes::new_with(py, text.len() / size * (size + 1), |lines| {
        for (line, id) in lines.chunks_exact_mut(size + 1).zip(text.chunks_exact(size)) {
            line[..size].copy_from_slice(id);
            line[size] = b'\n';
        }
        Ok(())
    })
}

/// One of packed IDs.
pub fn at<C: Class>(ids: &[u8], index: usize) -> C {
    C::of(C::Id::from_slice(&ids[index * C::Id::SIZE..][..C::Id::SIZE]))
}

/// What an array's brackets give: an ID, or other packed IDs.
pub enum Item<'py, C> {
    One(C),
    Many(Bound<'py, PyBytes>),
}

/// What a function of `mintage.ext.pydantic` answers: imported when Pydantic asks, and not before.
pub fn pydantic<'py>(
    class: &Bound<'py, PyType>,
    function: &str,
    first: Bound<'py, PyAny>,
    second: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    class.py().import("mintage.ext.pydantic")?.getattr(function)?.call1((class, first, second))
}

/// What lies at an index or in a slice of packed IDs.
pub fn item<'py, C: Class>(ids: &[u8], index: &Bound<'py, PyAny>) -> PyResult<Item<'py, C>> {
    let count = ids.len() / C::Id::SIZE;
    match index.cast::<PySlice>() {
        Ok(slice) => sliced(ids, C::Id::SIZE, slice).map(Item::Many),
        Err(_) => values::index(index, count).map(|i| Item::One(at(ids, i))),
    }
}

/// What lies in a slice of packed items of a size.
pub fn sliced<'py>(items: &[u8], size: usize, slice: &Bound<'py, PySlice>) -> PyResult<Bound<'py, PyBytes>> {
    let range = slice.indices((items.len() / size) as isize)?;
    PyBytes::new_with(slice.py(), range.slicelength * size, |out| {
        let start = range.start as usize * size;
        if range.step == 1 {
            out.copy_from_slice(&items[start..][..out.len()]);
        } else {
            for (i, item) in out.chunks_exact_mut(size).enumerate() {
                let at = (range.start + i as isize * range.step) as usize * size;
                item.copy_from_slice(&items[at..][..size]);
            }
        }
        Ok(())
    })
}

/// A list of packed IDs.
pub fn list<'py, C: Class + IntoPyObject<'py>>(py: Python<'py>, ids: &[u8]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, (0..ids.len() / C::Id::SIZE).map(|i| at::<C>(ids, i)))
}

/// The first few of packed IDs, for people.
pub fn shown<C: Class>(word: &str, ids: &[u8]) -> String {
    let count = ids.len() / C::Id::SIZE;
    let shown: Vec<_> = (0..count.min(3)).map(|i| at::<C>(ids, i).id().to_string()).collect();
    let more = if count > 3 { ", …" } else { "" };
    format!("<{word}.Array of {count}: {}{more}>", shown.join(", "))
}

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
        /// IDs order as their bytes, their text and their integers do; they hash, pickle and copy.
        ///
        /// :raises ArgumentError: ``value`` has no contiguous buffer.
        #[doc = concat!(":raises ParseError: ``parse.length``: not ", $size, " bytes.")]
        #[pyclass(frozen, name = "ID", module = $module)]
        #[derive(Clone, Copy)]
        pub struct $class(pub $core);

        impl $crate::id::Class for $class {
            type Id = $core;

            #[inline(always)]
            fn of(id: $core) -> Self {
                Self(id)
            }

            #[inline(always)]
            fn id(&self) -> $core {
                self.0
            }
        }

        impl $crate::hot::Reborn for $class {
            fn free_list() -> &'static $crate::hot::FreeList {
                static LIST: $crate::hot::FreeList = $crate::hot::FreeList::new();
                &LIST
            }
        }

        #[pymethods]
        impl $class {
            $($own)*

            #[new]
            #[pyo3(signature = (value, /))]
            fn py_new(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                $crate::id::from_bytes(value)
            }

            #[doc = $reads]
            ///
            /// :raises ArgumentError: ``text`` is not str.
            /// :raises ParseError: ``parse.length``, or ``parse.character`` with its ``position``.
            #[staticmethod]
            #[pyo3(signature = (text, /))]
            fn parse(text: &Bound<'_, PyAny>) -> PyResult<Self> {
                $crate::hot::read_text(text)
            }

            #[doc = concat!("Reads ", $size, " bytes; any ", $size, " bytes are an ID.")]
            ///
            /// :raises ArgumentError: ``value`` has no buffer.
            /// :raises ConfigError: ``config.buffer``: its items are no bytes, or it is not contiguous.
            #[doc = concat!(":raises ParseError: ``parse.length``: not ", $size, " bytes.")]
            #[staticmethod]
            #[pyo3(signature = (value, /))]
            fn from_bytes(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                $crate::id::from_bytes(value)
            }

            #[doc = concat!("The ID whose ", $size, " bytes are those of this integer, big-endian; 0 or more.")]
            ///
            /// :raises ArgumentError: ``value`` is not an int.
            /// :raises FieldError: ``field.range``.
            #[staticmethod]
            #[pyo3(signature = (value, /))]
            fn from_int(value: &Bound<'_, PyAny>) -> PyResult<Self> {
                $crate::id::from_int(value)
            }

            fn __str__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyString>> {
                $crate::hot::ascii(py, mintage_core::id::Id::to_text(self.0).as_ref())
            }

            /// The text, formatted as ``str`` formats its own: ``f"{id:>20}"``.
            fn __format__<'py>(
                &self,
                py: Python<'py>,
                format_spec: &Bound<'py, pyo3::types::PyString>,
            ) -> PyResult<Bound<'py, PyAny>> {
                $crate::values::formatted(self.__str__(py)?, format_spec)
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

            fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
                let py = other.py();
                match other.cast::<Self>() {
                    Ok(other) => Ok(op.matches(self.0.cmp(&other.get().0)).into_pyobject(py)?.to_owned().into_any().unbind()),
                    Err(_) => Ok(py.NotImplemented()),
                }
            }

            fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (Bound<'py, PyBytes>,)) {
                (slf.get_type(), (slf.get().__bytes__(slf.py()),))
            }

            /// How Pydantic reads and writes IDs: see :mod:`mintage.ext.pydantic`.
            ///
            /// :raises ModuleNotFoundError: pydantic is not installed.
            #[classmethod]
            #[pyo3(signature = (source, handler, /))]
            fn __get_pydantic_core_schema__<'py>(
                cls: &Bound<'py, PyType>,
                source: Bound<'py, PyAny>,
                handler: Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                $crate::id::pydantic(cls, "core_schema_of", source, handler)
            }

            /// The JSON schema of an ID's text.
            ///
            /// :raises ModuleNotFoundError: pydantic is not installed.
            #[classmethod]
            #[pyo3(signature = (schema, handler, /))]
            fn __get_pydantic_json_schema__<'py>(
                cls: &Bound<'py, PyType>,
                schema: Bound<'py, PyAny>,
                handler: Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyAny>> {
                $crate::id::pydantic(cls, "json_schema_of", schema, handler)
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

        /// IDs packed one behind the other in one contiguous, read-only buffer.
        ///
        /// Array(data=b"")
        ///
        /// ``data`` holds whole IDs. Indexing gives an ID, slicing an Array; the buffer protocol gives the bytes, so
        /// ``memoryview(array)`` and ``numpy.frombuffer(array, ...)`` copy nothing.
        ///
        /// :raises ArgumentError: ``data`` has no contiguous buffer.
        /// :raises ParseError: ``parse.length``: not a whole number of IDs.
        #[pyclass(frozen, sequence, module = $module)]
        pub struct Array {
            data: Py<PyBytes>,
        }

        impl $crate::hot::Lends for Array {
            fn bytes(&self) -> &Py<PyBytes> {
                &self.data
            }
        }

        #[pymethods]
        impl Array {
            /// Bytes of one ID.
            #[classattr]
            const SIZE: usize = $size;

            #[new]
            #[pyo3(signature = (data = Defaulted::OUT, /), text_signature = "(data=b'', /)")]
            fn py_new(py: Python<'_>, data: Defaulted<'_>) -> PyResult<Self> {
                $crate::id::packed::<$class>(py, &data).map(|data| Self { data })
            }

            /// Reads IDs from text without separators, as :meth:`encode` writes it: str, or a buffer of ASCII.
            ///
            /// :raises ParseError: ``parse.length``, or ``parse.character`` with the position in the whole text.
            #[staticmethod]
            #[pyo3(signature = (text, /))]
            fn parse(text: &Bound<'_, PyAny>) -> PyResult<Self> {
                $crate::id::parse_many::<$class>(text).map(|data| Self { data })
            }

            /// The text of all IDs without separators, as ASCII bytes.
            fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                $crate::id::encode_many::<$class>(py, self.data.as_bytes(py))
            }

            /// The text of all IDs, one a line, as ASCII bytes.
            fn to_lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                $crate::id::lines::<$class>(py, self.data.as_bytes(py))
            }

            /// A list of the IDs.
            fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyList>> {
                $crate::id::list::<$class>(py, self.data.as_bytes(py))
            }

            /// The bytes of all IDs.
            fn tobytes(&self, py: Python<'_>) -> Py<PyBytes> {
                self.data.clone_ref(py)
            }

            fn __len__(&self, py: Python<'_>) -> usize {
                self.data.as_bytes(py).len() / $size
            }

            fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let py = index.py();
                Ok(match $crate::id::item::<$class>(self.data.as_bytes(py), index)? {
                    $crate::id::Item::One(id) => Bound::new(py, id)?.into_any(),
                    $crate::id::Item::Many(data) => Bound::new(py, Self { data: data.unbind() })?.into_any(),
                })
            }

            fn __iter__(slf: &Bound<'_, Self>) -> ArrayIterator {
                ArrayIterator { array: slf.clone().unbind(), next: std::sync::atomic::AtomicUsize::new(0) }
            }

            fn __contains__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> bool {
                let Ok(id) = value.cast::<$class>() else { return false };
                let wanted = mintage_core::id::Id::to_array(id.get().0);
                self.data.as_bytes(py).chunks_exact($size).any(|bytes| bytes == AsRef::<[u8]>::as_ref(&wanted))
            }

            fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
                let py = other.py();
                let equal = other.cast::<Self>().is_ok_and(|o| o.get().data.as_bytes(py) == self.data.as_bytes(py));
                Ok(match op {
                    CompareOp::Eq => equal.into_pyobject(py)?.to_owned().into_any().unbind(),
                    CompareOp::Ne => (!equal).into_pyobject(py)?.to_owned().into_any().unbind(),
                    _ => py.NotImplemented(),
                })
            }

            fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
                self.data.bind(py).hash()
            }

            fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (Py<PyBytes>,)) {
                (slf.get_type(), (slf.get().data.clone_ref(slf.py()),))
            }

            /// The type of these IDs as a column of Arrow: fixed-size binary, in a capsule.
            fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                $crate::arrow::Ids::of::<$class>($word, &self.data).schema(py)
            }

            /// The IDs as a column of Arrow: the capsules of its type and of its values, which are not copied.
            ///
            /// ``requested_schema``, a capsule as well, may ask for binary or text of any kind in place of fixed-size binary.
            ///
            /// :raises ArgumentError: ``requested_schema`` is no such capsule.
            /// :raises ValueError: it was used up before.
            #[pyo3(signature = (requested_schema = None))]
            fn __arrow_c_array__<'py>(
                &self,
                py: Python<'py>,
                requested_schema: Option<&Bound<'py, PyAny>>,
            ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
                $crate::arrow::Ids::of::<$class>($word, &self.data).array(py, requested_schema)
            }

            /// The same as a stream of one piece, for consumers that take nothing else.
            ///
            /// :raises ArgumentError: ``requested_schema`` is no such capsule.
            /// :raises ValueError: it was used up before.
            #[pyo3(signature = (requested_schema = None))]
            fn __arrow_c_stream__<'py>(
                &self,
                py: Python<'py>,
                requested_schema: Option<&Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                $crate::arrow::Ids::of::<$class>($word, &self.data).stream(py, requested_schema)
            }

            fn __repr__(&self, py: Python<'_>) -> String {
                $crate::id::shown::<$class>($word, self.data.as_bytes(py))
            }
        }

        /// Walks an Array.
        #[pyclass(frozen, module = $module)]
        pub struct ArrayIterator {
            array: Py<Array>,
            next: std::sync::atomic::AtomicUsize,
        }

        #[pymethods]
        impl ArrayIterator {
            fn __iter__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __next__(&self, py: Python<'_>) -> Option<$class> {
                let ids = self.array.get().data.as_bytes(py);
                let at = self.next.load(std::sync::atomic::Ordering::Relaxed);
                (at < ids.len() / $size).then(|| {
                    self.next.store(at + 1, std::sync::atomic::Ordering::Relaxed);
                    $crate::id::at(ids, at)
                })
            }
        }
    };
}
pub(crate) use id;
