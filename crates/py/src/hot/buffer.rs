//! Memory that Python lends, and arrays that lend theirs.

use super::IS_PARALLEL;
use crate::errors;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyBytes, PyMemoryView};
use pyo3::{Borrowed, PyClass, PyTypeInfo};
use std::ffi::c_int;

/// The items that a buffer must have. IDs may overwrite plain bytes of any kind, but no items of another type, such as the
/// address of an object.
#[derive(Clone, Copy)]
pub enum Items {
    /// Bytes, or void items of this size, one an ID.
    Ids(usize),
    /// Bytes, or strings of this size, one a text.
    Texts(usize),
    /// Integers of 64 bits in this machine's byte order, or bytes.
    Words {
        /// True if the values fit signed ones.
        signed: bool,
    },
}

impl Items {
    /// The bytes of one ID or text.
    fn size(self) -> usize {
        match self {
            Self::Ids(size) | Self::Texts(size) => size,
            Self::Words { .. } => 8,
        }
    }

    /// Returns true if items of a format, in the notation of Python's struct module, are these.
    fn allow(self, format: &str, size: usize) -> bool {
        let foreign = if cfg!(target_endian = "little") { ['>', '!'] } else { ['<', '<'] };
        match (self, format.trim_start_matches(['@', '=', '<', '>', '!'])) {
            (_, "B" | "b" | "c") => size == 1,
            (Self::Ids(id), item) => size == id && item.strip_suffix('x') == Some(&id.to_string()),
            (Self::Texts(text), item) => size == text && item.strip_suffix('s') == Some(&text.to_string()),
            // The letters of long and size_t are as long as the platform's, so the size tells.
            (Self::Words { .. }, "Q" | "L" | "N") => size == 8 && !format.starts_with(foreign),
            (Self::Words { signed }, "q" | "l" | "n") => signed && size == 8 && !format.starts_with(foreign),
            _ => false,
        }
    }

    /// The description in an error.
    fn expected(self) -> String {
        match self {
            Self::Ids(size) => format!("bytes, or void items of {size}"),
            Self::Texts(size) => format!("bytes, or byte strings of {size}"),
            Self::Words { signed: false } => "unsigned 64-bit integers in native byte order, or bytes".into(),
            Self::Words { signed: true } => "64-bit integers in native byte order, or bytes".into(),
        }
    }

    /// The contiguous memory of an object, if it holds such items.
    fn of(self, object: &Bound<'_, PyAny>, what: &str) -> PyResult<PyUntypedBuffer> {
        let py = object.py();
        let refuse = |message: String| Err(errors::config(py, "config.buffer", &message));
        // ctypes leaves strides out; a memoryview puts them in.
        let lent = PyUntypedBuffer::get(object).or_else(|error| match error.is_instance_of::<PyBufferError>(py) {
            true => PyMemoryView::from(object).and_then(|view| PyUntypedBuffer::get(&view)),
            false => Err(error),
        });
        let buffer = match lent {
            Ok(buffer) => buffer,
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                return Err(errors::argument(what, "bytes or another buffer", object));
            }
            Err(error) if error.is_instance_of::<PyBufferError>(py) || error.is_instance_of::<PyValueError>(py) => {
                return refuse(format!("{what} cannot be used as a buffer: {}", error.value(py)));
            }
            Err(error) => return Err(error),
        };
        let format = buffer.format().to_string_lossy();
        if !self.allow(&format, buffer.item_size()) {
            let (format, size) = (format.chars().take(40).collect::<String>(), buffer.item_size());
            return refuse(format!(
                "{what} has items of format '{format}', {size} bytes each, must have {}",
                self.expected()
            ));
        }
        if !buffer.is_c_contiguous() {
            return refuse(format!("{what} is not contiguous"));
        }
        Ok(buffer)
    }
}

/// A contiguous buffer to read.
pub struct Readable(PyUntypedBuffer);

/// A contiguous buffer to write.
pub struct Writable(PyUntypedBuffer, Items);

impl Readable {
    /// The memory of an object with such items.
    pub fn new(object: &Bound<'_, PyAny>, what: &str, items: Items) -> PyResult<Self> {
        items.of(object, what).map(Self)
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.0.len_bytes()
    }

    /// A copy.
    pub fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, self.len(), |copy| {
            if !copy.is_empty() {
                // SAFETY: the view keeps its memory alive and of fixed size; the copy is as long, and new.
                unsafe { self.0.buf_ptr().cast::<u8>().copy_to_nonoverlapping(copy.as_mut_ptr(), copy.len()) };
            }
            Ok(())
        })
    }
}

impl Writable {
    /// A buffer for whole items.
    pub fn new(object: &Bound<'_, PyAny>, items: Items) -> PyResult<Self> {
        Self::checked(object, items, items.size())
    }

    /// A buffer of exactly this many bytes.
    pub fn exactly(object: &Bound<'_, PyAny>, items: Items, bytes: usize) -> PyResult<Self> {
        let buffer = Self::checked(object, items, 1)?;
        if buffer.0.len_bytes() != bytes {
            let message = format!("buffer has {} bytes, needs {bytes}", buffer.0.len_bytes());
            return Err(errors::config(object.py(), "config.buffer", &message));
        }
        Ok(buffer)
    }

    fn checked(object: &Bound<'_, PyAny>, items: Items, size: usize) -> PyResult<Self> {
        let buffer = items.of(object, "buffer")?;
        let py = object.py();
        if buffer.readonly() {
            return Err(errors::config(py, "config.buffer", "buffer is read-only"));
        }
        let bytes = buffer.len_bytes();
        if bytes % size != 0 {
            let message = format!("buffer has {bytes} bytes, which is no multiple of an ID's {size}");
            return Err(errors::config(py, "config.buffer", &message));
        }
        Ok(Self(buffer, items))
    }
}

/// Fills a buffer with IDs that `write` mints, some thousands at a time, and returns how many.
///
/// A generator may wait with the GIL released, and other threads then see the buffer: so it is written only in between.
pub fn fill(target: &Writable, mut write: impl FnMut(&mut [u8]) -> PyResult<()>) -> PyResult<usize> {
    const IDS: usize = 2048;
    let (bytes, size) = (target.0.len_bytes(), target.1.size());
    let mut chunk = vec![0; bytes.min(IDS * size)];
    let mut done = 0;
    while done < bytes {
        let part = (bytes - done).min(chunk.len());
        write(&mut chunk[..part])?;
        // SAFETY: `done + part` is within the buffer, which the view keeps alive, writable and of fixed size.
        unsafe {
            let to = target.0.buf_ptr().cast::<u8>().add(done);
            to.copy_from_nonoverlapping(chunk.as_ptr(), part);
        }
        done += part;
    }
    Ok(bytes / size)
}

/// A copy of memory that another thread may write meanwhile.
///
/// # Safety
/// So many bytes are there.
unsafe fn copied(from: *const u8, bytes: usize) -> Vec<u8> {
    let mut copy = Vec::with_capacity(bytes);
    // SAFETY: the caller says so, and there is room for them. No reference to them is made, as they may change.
    unsafe {
        from.copy_to_nonoverlapping(copy.as_mut_ptr(), bytes);
        copy.set_len(bytes);
    }
    copy
}

/// Runs a codec from one buffer to another; buffers that overlap, or that other threads may use meanwhile, are copied first.
pub fn transform<T>(_: Python<'_>, source: &Readable, target: &Writable, run: impl FnOnce(&[u8], &mut [u8]) -> T) -> T {
    let (from, to) = (source.0.buf_ptr().cast::<u8>().cast_const(), target.0.buf_ptr().cast::<u8>());
    let (from_len, to_len) = (source.0.len_bytes(), target.0.len_bytes());
    if from_len == 0 || to_len == 0 {
        return run(&[], &mut []);
    }
    if IS_PARALLEL {
        // SAFETY: the views keep both alive and of fixed size.
        unsafe {
            let mut written = copied(to, to_len);
            let result = run(&copied(from, from_len), &mut written);
            to.copy_from_nonoverlapping(written.as_ptr(), to_len);
            return result;
        }
    }
    let apart = from.addr() + from_len <= to.addr() || to.addr() + to_len <= from.addr();
    // SAFETY: the views keep both alive and of fixed size; they do not overlap where both are borrowed; the interpreter is attached
    // and the codec runs no Python, so nobody else touches them.
    unsafe {
        let target = std::slice::from_raw_parts_mut(to, to_len);
        if apart {
            run(std::slice::from_raw_parts(from, from_len), target)
        } else {
            run(&copied(from, from_len), target)
        }
    }
}

/// An array that lends the bytes it is made of.
pub trait Lends: PyClass<Frozen = True> + PyTypeInfo + Sync {
    /// Those bytes.
    fn bytes(&self) -> &Py<PyBytes>;

    /// The object whose buffer is the array's: the bytes, or a view of them as other items.
    fn lender<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.bytes().bind(py).clone().into_any())
    }
}

unsafe extern "C" fn get_buffer<A: Lends>(array: *mut ffi::PyObject, view: *mut ffi::Py_buffer, flags: c_int) -> c_int {
    // SAFETY: the slot of class A, called while attached; the view keeps the lender alive by its own reference, and has none
    // where there is an error.
    unsafe {
        let py = Python::assume_attached();
        match Borrowed::from_ptr(py, array).cast_unchecked::<A>().get().lender(py) {
            Ok(lender) => ffi::PyObject_GetBuffer(lender.as_ptr(), view, flags),
            Err(error) => {
                error.restore(py);
                (*view).obj = std::ptr::null_mut();
                -1
            }
        }
    }
}

/// Gives an array class the buffer protocol.
pub fn install_array<A: Lends>(py: Python<'_>) {
    // SAFETY: a class made at run time has a buffer table of its own; this one is ours and not in use yet.
    unsafe { (*(*A::type_object_raw(py)).tp_as_buffer).bf_getbuffer = Some(get_buffer::<A>) };
}
