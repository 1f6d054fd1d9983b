//! Compact arrays of IDs over one `bytes` object.

/// Makes the `Array` class of a scheme whose IDs are fixed bytes.
///
/// The scheme gives its ID class, the bytes and characters of an ID, and its bulk codec.
macro_rules! array {
    ($module:literal, $id:ident, $size:expr, $text:expr, $encode:path, $decode:path, $what:literal, $bad:expr) => {
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

        impl hot::Lends for Array {
            fn bytes(&self) -> &Py<PyBytes> {
                &self.data
            }
        }

        impl Array {
            fn at(&self, py: Python<'_>, index: usize) -> $id {
                let bytes = &self.data.as_bytes(py)[index * $size..][..$size];
                $id::from_slice(bytes)
            }

            fn count(&self, py: Python<'_>) -> usize {
                self.data.as_bytes(py).len() / $size
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
                let data = data
                    .given()
                    .map_or_else(|| Ok(Vec::new()), |data| values::bytes(data, "data", hot::Items::Ids($size)))?;
                values::whole(data.len(), $size, "data", "bytes")?;
                Ok(Self { data: PyBytes::new(py, &data).unbind() })
            }

            /// Reads IDs from text without separators, as :meth:`encode` writes it: str, or a buffer of ASCII.
            ///
            /// :raises ParseError: ``parse.length``, or ``parse.character`` with the position in the whole text.
            #[staticmethod]
            #[pyo3(signature = (text, /))]
            fn parse(py: Python<'_>, text: &Bound<'_, PyAny>) -> PyResult<Self> {
                let text = values::characters(text, $text)?;
                values::whole(text.len(), $text, "text", "characters")?;
                let data = PyBytes::new_with(py, text.len() / $text * $size, |ids| {
                    $decode(&text, ids).map_err(|position| errors::value($bad(&text, position)))
                })?;
                Ok(Self { data: data.unbind() })
            }

            /// The text of all IDs without separators, as ASCII bytes.
            fn encode<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                let ids = self.data.as_bytes(py);
                PyBytes::new_with(py, ids.len() / $size * $text, |text| {
                    $encode(ids, text);
                    Ok(())
                })
            }

            /// The text of all IDs, one a line, as ASCII bytes.
            fn to_lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                let ids = self.data.as_bytes(py);
                let mut text = vec![0; ids.len() / $size * $text];
                $encode(ids, &mut text);
                PyBytes::new_with(py, ids.len() / $size * ($text + 1), |lines| {
                    for (line, id) in lines.chunks_exact_mut($text + 1).zip(text.chunks_exact($text)) {
                        line[..$text].copy_from_slice(id);
                        line[$text] = b'\n';
                    }
                    Ok(())
                })
            }

            /// A list of the IDs.
            fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
                PyList::new(py, (0..self.count(py)).map(|i| self.at(py, i)))
            }

            /// The bytes of all IDs.
            fn tobytes(&self, py: Python<'_>) -> Py<PyBytes> {
                self.data.clone_ref(py)
            }

            fn __len__(&self, py: Python<'_>) -> usize {
                self.count(py)
            }

            fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                let py = index.py();
                let count = self.count(py);
                if let Ok(slice) = index.cast::<PySlice>() {
                    let range = slice.indices(count as isize)?;
                    let ids = self.data.as_bytes(py);
                    let data = PyBytes::new_with(py, range.slicelength * $size, |out| {
                        let start = range.start as usize * $size;
                        if range.step == 1 {
                            out.copy_from_slice(&ids[start..][..out.len()]);
                        } else {
                            for (i, id) in out.chunks_exact_mut($size).enumerate() {
                                let at = (range.start + i as isize * range.step) as usize * $size;
                                id.copy_from_slice(&ids[at..][..$size]);
                            }
                        }
                        Ok(())
                    })?;
                    return Ok(Bound::new(py, Self { data: data.unbind() })?.into_any());
                }
                let at = values::index(index, count)?;
                Ok(Bound::new(py, self.at(py, at))?.into_any())
            }

            fn __iter__(slf: &Bound<'_, Self>) -> ArrayIterator {
                ArrayIterator { array: slf.clone().unbind(), next: AtomicUsize::new(0) }
            }

            fn __contains__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> bool {
                let Ok(id) = value.cast::<$id>() else { return false };
                let wanted = id.get().to_array();
                self.data.as_bytes(py).chunks_exact($size).any(|bytes| bytes == wanted)
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

            fn __repr__(&self, py: Python<'_>) -> String {
                let count = self.count(py);
                let shown: Vec<_> = (0..count.min(3)).map(|i| self.at(py, i).0.to_string()).collect();
                let more = if count > 3 { ", …" } else { "" };
                format!("<{}.Array of {count}: {}{more}>", $what, shown.join(", "))
            }
        }

        /// Walks an Array.
        #[pyclass(frozen, module = $module)]
        pub struct ArrayIterator {
            array: Py<Array>,
            next: AtomicUsize,
        }

        #[pymethods]
        impl ArrayIterator {
            fn __iter__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __next__(&self, py: Python<'_>) -> Option<$id> {
                let array = self.array.get();
                let at = self.next.load(Ordering::Relaxed);
                (at < array.count(py)).then(|| {
                    self.next.store(at + 1, Ordering::Relaxed);
                    array.at(py, at)
                })
            }
        }
    };
}
pub(crate) use array;
