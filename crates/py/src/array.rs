//! Arrays of packed items: the code that arrays of IDs and of integers share.

use crate::arrow::Ids;
use crate::{hot, values};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::types::{PyBytes, PyList, PySlice};
use pyo3::{IntoPyObject, IntoPyObjectExt};

/// A class of arrays, as the shared code sees it.
pub trait ArrayClass: hot::Lends {
    /// An item, as Python gets it.
    type Item: for<'py> IntoPyObject<'py>;
    /// Bytes of an item.
    const SIZE: usize;
    /// The name of the module, for `repr`.
    const WORD: &'static str;

    /// The item of these bytes.
    fn item(bytes: &[u8]) -> Self::Item;

    /// The text of the item of these bytes.
    fn text(bytes: &[u8]) -> String;

    /// The bytes of a value that may be an item; `None` if it is none.
    fn bytes_of(value: &Bound<'_, PyAny>) -> Option<impl AsRef<[u8]>>;

    /// The items as a column of Arrow.
    fn column(&self) -> Ids<'_>;

    /// An array of these items, with the other properties of this one.
    fn with_data(&self, data: Py<PyBytes>) -> Self;

    /// The result of a comparison with an object; `None` lets the object decide.
    fn equals(&self, other: &Bound<'_, PyAny>) -> PyResult<Option<bool>> {
        let (py, own) = (other.py(), self.bytes());
        Ok(Some(other.cast::<Self>().is_ok_and(|other| other.get().bytes().as_bytes(py) == own.as_bytes(py))))
    }
}

/// The items of an array, packed.
fn packed<'py, A: ArrayClass>(array: &'py A, py: Python<'py>) -> impl ExactSizeIterator<Item = &'py [u8]> {
    array.bytes().as_bytes(py).chunks_exact(A::SIZE)
}

/// The bytes of the item at an index; `None` after the last one.
pub fn bytes_at<'py, A: ArrayClass>(array: &'py A, py: Python<'py>, index: usize) -> Option<&'py [u8]> {
    array.bytes().as_bytes(py).get(index * A::SIZE..)?.get(..A::SIZE)
}

/// The number of items.
pub fn len<A: ArrayClass>(array: &A, py: Python<'_>) -> usize {
    array.bytes().as_bytes(py).len() / A::SIZE
}

/// The item at an index, or an array of those in a slice.
pub fn get<'py, A>(array: &A, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>
where
    A: ArrayClass + Into<pyo3::PyClassInitializer<A>>,
{
    let py = index.py();
    let items = array.bytes().as_bytes(py);
    if let Ok(slice) = index.cast::<PySlice>() {
        let data = sliced(items, A::SIZE, slice)?.unbind();
        return Ok(Bound::new(py, array.with_data(data))?.into_any());
    }
    let at = values::index(index, items.len() / A::SIZE)? * A::SIZE;
    A::item(&items[at..][..A::SIZE]).into_bound_py_any(py)
}

/// The packed items in a slice.
fn sliced<'py>(items: &[u8], size: usize, slice: &Bound<'py, PySlice>) -> PyResult<Bound<'py, PyBytes>> {
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

/// A list of the items.
pub fn list<'py, A: ArrayClass>(array: &A, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, packed(array, py).map(A::item))
}

/// Returns true if a value is one of the items.
pub fn contains<A: ArrayClass>(array: &A, value: &Bound<'_, PyAny>) -> bool {
    let Some(wanted) = A::bytes_of(value) else { return false };
    packed(array, value.py()).any(|item| item == wanted.as_ref())
}

/// The result of `==` and `!=`; other comparisons are not defined.
pub fn compare<A: ArrayClass>(array: &A, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
    let py = other.py();
    match (array.equals(other)?, op) {
        (Some(is_equal), CompareOp::Eq) => is_equal.into_py_any(py),
        (Some(is_equal), CompareOp::Ne) => (!is_equal).into_py_any(py),
        _ => Ok(py.NotImplemented()),
    }
}

/// The `repr` of an array: its first few items.
pub fn shown<A: ArrayClass>(array: &A, py: Python<'_>) -> String {
    let count = len(array, py);
    let shown: Vec<_> = packed(array, py).take(3).map(A::text).collect();
    let more = if count > 3 { ", …" } else { "" };
    format!("<{}.Array of {count}: {}{more}>", A::WORD, shown.join(", "))
}

/// Makes the classes `Array` and `ArrayIterator` of a scheme: `array! { /// docs; Array of Item, 8 bytes, in module; with more
/// than its data { layout: Layout }; { methods of its own } }`. The scheme implements [`ArrayClass`] for it.
macro_rules! array {
    (
        $(#[$doc:meta])*
        Array of $item:ty, $size:literal bytes, in $module:literal $(, with { $($field:ident: $type:ty),* })?
        { $($own:tt)* }
    ) => {
        $(#[$doc])*
        #[pyclass(frozen, sequence, module = $module)]
        pub struct Array {
            pub(super) data: Py<PyBytes>,
            $($(pub(super) $field: $type,)*)?
        }

        #[pymethods]
        impl Array {
            $($own)*

            /// Bytes of one ID.
            #[classattr]
            const SIZE: usize = $size;

            /// Return a list of the IDs.
            ///
            #[doc = concat!(">>> from ", $module, " import Array")]
            /// >>> len(Array(bytes(2 * Array.SIZE)).tolist())
            /// 2
            fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyList>> {
                $crate::array::list(self, py)
            }

            /// Return the bytes of all IDs, as the buffer has them.
            ///
            #[doc = concat!(">>> from ", $module, " import Array")]
            /// >>> Array(bytes(2 * Array.SIZE)).tobytes() == bytes(2 * Array.SIZE)
            /// True
            fn tobytes(&self, py: Python<'_>) -> Py<PyBytes> {
                self.data.clone_ref(py)
            }

            fn __len__(&self, py: Python<'_>) -> usize {
                $crate::array::len(self, py)
            }

            fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                $crate::array::get(self, index)
            }

            fn __iter__(slf: &Bound<'_, Self>) -> ArrayIterator {
                ArrayIterator { array: slf.clone().unbind(), next: std::sync::atomic::AtomicUsize::new(0) }
            }

            fn __contains__(&self, value: &Bound<'_, PyAny>) -> bool {
                $crate::array::contains(self, value)
            }

            fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: pyo3::pyclass::CompareOp) -> PyResult<Py<PyAny>> {
                $crate::array::compare(self, other, op)
            }

            fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
                self.data.bind(py).hash()
            }

            fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (Py<PyBytes>, $($($type,)*)?)) {
                let this = slf.get();
                (slf.get_type(), (this.data.clone_ref(slf.py()), $($(this.$field.clone(),)*)?))
            }

            fn __repr__(&self, py: Python<'_>) -> String {
                $crate::array::shown(self, py)
            }

            /// Return the type of these IDs as a column of Arrow, in a capsule.
            fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                $crate::array::ArrayClass::column(self).schema(py)
            }

            /// Return the IDs as a column of Arrow: the capsules of its type and of its values, which are not copied.
            ///
            /// ``requested_schema``, a capsule as well, may ask for another type of the same values: text of any kind; for
            /// IDs of bytes also binary of any kind, for integers also unsigned ones.
            ///
            /// :raises ArgumentError: ``requested_schema`` is no such capsule.
            /// :raises ValueError: the capsule was used up before.
            #[pyo3(signature = (requested_schema = None))]
            fn __arrow_c_array__<'py>(
                &self,
                py: Python<'py>,
                requested_schema: Option<&Bound<'py, PyAny>>,
            ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
                $crate::array::ArrayClass::column(self).array(py, requested_schema)
            }

            /// Return the same as a stream of one piece, for consumers that take nothing else.
            ///
            /// :raises ArgumentError: ``requested_schema`` is no such capsule.
            /// :raises ValueError: the capsule was used up before.
            #[pyo3(signature = (requested_schema = None))]
            fn __arrow_c_stream__<'py>(
                &self,
                py: Python<'py>,
                requested_schema: Option<&Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                $crate::array::ArrayClass::column(self).stream(py, requested_schema)
            }
        }

        /// An iterator over an Array.
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

            fn __next__(&self, py: Python<'_>) -> Option<$item> {
                let at = $crate::hot::next_item(&self.next, $crate::array::len(self.array.get(), py))?;
                $crate::array::bytes_at(self.array.get(), py, at).map(<Array as $crate::array::ArrayClass>::item)
            }
        }
    };
}
pub(crate) use array;
