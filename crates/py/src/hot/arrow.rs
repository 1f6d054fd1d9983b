//! Columns in the structures of [Arrow's C data interface](https://arrow.apache.org/docs/format/CDataInterface.html), and the
//! [capsules](https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html) that carry them through Python.
//!
//! A structure is *released* when its callback `release` is null. A taker *moves* it: copies it, and marks the source
//! released. Any thread may release what it took, whether it holds the GIL or not, and as late as it likes.

use crate::errors;
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::critical_section::with_critical_section;
use pyo3::types::PyBytes;
use std::any::Any;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::Arc;

/// The type of a column.
#[repr(C)]
struct ArrowSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Self,
    dictionary: *mut Self,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// The values of a column.
#[repr(C)]
struct ArrowArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Self,
    dictionary: *mut Self,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// Columns of one type, one after another.
#[repr(C)]
struct ArrowArrayStream {
    get_schema: Option<unsafe extern "C" fn(*mut Self, *mut ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Self, *mut ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Self) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Self)>,
    private_data: *mut c_void,
}

/// A structure of the three, which a capsule carries.
trait Structure: 'static {
    /// The name of the capsule.
    const NAME: &'static CStr;
}

macro_rules! structure {
    ($($class:ident = $name:literal)*) => {
        $(
            impl Structure for $class {
                const NAME: &'static CStr = $name;
            }

            impl Drop for $class {
                fn drop(&mut self) {
                    if let Some(release) = self.release {
                        // SAFETY: it is not released, and this is the one place that owns it: it was made here, or moved here.
                        unsafe { release(self) };
                    }
                }
            }
        )*
    };
}
structure! { ArrowSchema = c"arrow_schema" ArrowArray = c"arrow_array" ArrowArrayStream = c"arrow_array_stream" }

/// The type of a column, and its name.
#[derive(Clone, Default)]
pub struct Field {
    /// [The letters](https://arrow.apache.org/docs/format/CDataInterface.html#data-type-description-format-strings) of its
    /// type.
    pub format: CString,
    /// The name, if it is one of several.
    pub name: CString,
    /// Pairs of a key and a value.
    pub metadata: Vec<(Vec<u8>, Vec<u8>)>,
    /// The types of its parts.
    pub children: Vec<Field>,
    flags: i64,
    dictionary: Option<Box<Field>>,
}

const NULLABLE: i64 = 2;
/// The deepest nesting of a type that another library describes.
const DEEPEST: u32 = 64;

impl Field {
    /// A field without a name, of a type that may have nulls, as is usual.
    pub fn new(format: &str, children: Vec<Self>) -> Self {
        Self { format: CString::new(format).unwrap_or_default(), children, flags: NULLABLE, ..Self::default() }
    }

    /// A table of these columns, none of whose rows is null.
    pub fn of_struct(children: Vec<Self>) -> Self {
        Self { flags: 0, ..Self::new("+s", children) }
    }

    /// The type that a capsule describes, which stays as it is.
    pub fn read(capsule: &Bound<'_, PyAny>, what: &str) -> PyResult<Self> {
        // SAFETY: a capsule of this name has a pointer to such a structure, which lives as long as the capsule.
        let schema = unsafe { &*pointer::<ArrowSchema>(capsule, what)? };
        let found = if schema.release.is_some() { Self::of(schema, DEEPEST) } else { None };
        found.ok_or_else(|| PyValueError::new_err(format!("{what} is released, or nested too deep")))
    }

    fn of(schema: &ArrowSchema, depth: u32) -> Option<Self> {
        let depth = depth.checked_sub(1)?;
        // SAFETY: by the interface, of a structure that is not released: the strings end in a zero byte or are null, there are
        // so many children, and all live as long as it does.
        unsafe {
            let text =
                |at: *const c_char| if at.is_null() { CString::default() } else { CStr::from_ptr(at).to_owned() };
            let children = (0..schema.n_children.max(0) as usize).map(|i| Self::of(&**schema.children.add(i), depth));
            let dictionary = match schema.dictionary.as_ref() {
                Some(dictionary) => Some(Box::new(Self::of(dictionary, depth)?)),
                None => None,
            };
            Some(Self {
                format: text(schema.format),
                name: text(schema.name),
                metadata: read_metadata(schema.metadata.cast()),
                children: children.collect::<Option<_>>()?,
                flags: schema.flags,
                dictionary,
            })
        }
    }

    fn export(&self) -> ArrowSchema {
        struct Held {
            texts: (CString, CString, Option<Vec<u8>>),
            children: Vec<*mut ArrowSchema>,
            dictionary: *mut ArrowSchema,
        }

        unsafe extern "C" fn release(schema: *mut ArrowSchema) {
            // SAFETY: `private_data` is the box of below, and so are the children; only this takes them, once, as it marks the
            // structure as released. A child that was moved is marked as well.
            unsafe {
                let held = Box::from_raw((*schema).private_data.cast::<Held>());
                free_all(&held.children);
                free_all(if held.dictionary.is_null() { &[] } else { std::slice::from_ref(&held.dictionary) });
                (*schema).release = None;
            }
        }

        let mut held = Box::new(Held {
            texts: (self.format.clone(), self.name.clone(), written_metadata(&self.metadata)),
            children: self.children.iter().map(|child| Box::into_raw(Box::new(child.export()))).collect(),
            dictionary: self.dictionary.as_ref().map_or(ptr::null_mut(), |it| Box::into_raw(Box::new(it.export()))),
        });
        ArrowSchema {
            format: held.texts.0.as_ptr(),
            name: held.texts.1.as_ptr(),
            metadata: held.texts.2.as_ref().map_or(ptr::null(), |bytes| bytes.as_ptr().cast()),
            flags: self.flags,
            n_children: held.children.len() as i64,
            children: held.children.as_mut_ptr(),
            dictionary: held.dictionary,
            release: Some(release),
            private_data: Box::into_raw(held).cast(),
        }
    }

    /// The type in a capsule.
    pub fn capsule<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        capsule(py, self.export())
    }
}

/// # Safety
/// Each is a box that nobody else frees.
unsafe fn free_all<T: Structure>(boxes: &[*mut T]) {
    for &each in boxes {
        // SAFETY: the caller says so. A structure that is not released releases itself.
        drop(unsafe { Box::from_raw(each) });
    }
}

/// A count, then the keys and values, each after its length, as integers of 32 bits in native order.
fn written_metadata(pairs: &[(Vec<u8>, Vec<u8>)]) -> Option<Vec<u8>> {
    let count = |n: usize| (n as i32).to_ne_bytes();
    let mut bytes = count(pairs.len()).to_vec();
    for text in pairs.iter().flat_map(|(key, value)| [key, value]) {
        bytes.extend(count(text.len()));
        bytes.extend(text);
    }
    (!pairs.is_empty()).then_some(bytes)
}

/// # Safety
/// Unless it is null, metadata begins there as [`written_metadata`] writes it.
unsafe fn read_metadata(mut at: *const u8) -> Vec<(Vec<u8>, Vec<u8>)> {
    /// # Safety
    /// This many bytes begin there.
    unsafe fn take(at: &mut *const u8, bytes: usize) -> Vec<u8> {
        // SAFETY: the caller says so.
        unsafe {
            let taken = std::slice::from_raw_parts(*at, bytes).to_vec();
            *at = at.add(bytes);
            taken
        }
    }
    // SAFETY: the caller says so.
    unsafe {
        let count = |at: &mut _| take(at, 4).try_into().map_or(0, i32::from_ne_bytes).max(0) as usize;
        let text = |at: &mut _| {
            let bytes = count(at);
            take(at, bytes)
        };
        if at.is_null() { Vec::new() } else { (0..count(&mut at)).map(|_| (text(&mut at), text(&mut at))).collect() }
    }
}

/// Memory that a column lends.
pub struct Buffer {
    at: *const c_void,
    keeps: Keeps,
}

#[allow(dead_code, reason = "held, and dropped")]
enum Keeps {
    Nothing,
    Bytes(Lent),
    Made(Arc<dyn Any + Send + Sync>),
}

impl Buffer {
    /// No buffer: that of the nulls, in a column without nulls.
    pub const fn absent() -> Self {
        Self { at: ptr::null(), keeps: Keeps::Nothing }
    }

    /// Python's bytes, from one of them on.
    pub fn lent(py: Python<'_>, bytes: &Py<PyBytes>, start: usize) -> Self {
        let at = bytes.as_bytes(py)[start..].as_ptr().cast();
        Self { at, keeps: Keeps::Bytes(Lent(ManuallyDrop::new(bytes.clone_ref(py)))) }
    }

    /// Items that were made for this column.
    pub fn made<T: Send + Sync + 'static>(items: Vec<T>) -> Self {
        Self::part(&Arc::new(items), 0)
    }

    /// Items that several buffers share, from one of them on.
    pub fn part<T: Send + Sync + 'static>(items: &Arc<Vec<T>>, start: usize) -> Self {
        Self { at: items[start..].as_ptr().cast(), keeps: Keeps::Made(items.clone()) }
    }
}

/// Room for a number of items. For a large one it asks the kernel for huge pages: otherwise to find a page for each 4 KiB costs
/// several times as much as to write to it.
///
/// `MemoryError`: there is none.
pub fn room<T>(count: usize) -> PyResult<Vec<T>> {
    let mut room = Vec::<T>::new();
    room.try_reserve_exact(count).map_err(|_| PyMemoryError::new_err(()))?;
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 4096;
        const LARGE: usize = 4 << 20;
        let (from, bytes) = (room.as_ptr().cast::<u8>(), count * size_of::<T>());
        if bytes >= LARGE {
            let skipped = from.align_offset(PAGE);
            // SAFETY: whole pages within memory that is the vector's; the advice changes nothing of what lies there, and an
            // error means that it was not taken.
            unsafe { libc::madvise(from.add(skipped).cast_mut().cast(), bytes - skipped, libc::MADV_HUGEPAGE) };
        }
    }
    Ok(room)
}

/// A reference to bytes that any thread may drop.
struct Lent(ManuallyDrop<Py<PyBytes>>);

impl Drop for Lent {
    fn drop(&mut self) {
        extern "C" fn attach(_: *mut c_void) -> c_int {
            Python::try_attach(|_| ());
            0
        }

        // SAFETY: taken once, as this is the end of it. Asking which thread state is this thread's needs none. Where it is the
        // one that runs, this thread may touch objects, though PyO3 was not asked. Where not, PyO3 keeps the reference until a
        // thread attaches, and a pending call makes that soon; if Python's list of calls is full, it happens later.
        // After the interpreter's end there is nothing to give back.
        unsafe {
            let bytes = ManuallyDrop::take(&mut self.0);
            if ffi::Py_IsInitialized() == 0 {
                std::mem::forget(bytes);
                return;
            }
            let own = ffi::PyGILState_GetThisThreadState();
            if !own.is_null() && own == ffi::compat::PyThreadState_GetUnchecked() {
                bytes.drop_ref(Python::assume_attached());
            } else {
                drop(bytes);
                ffi::Py_AddPendingCall(Some(attach), ptr::null_mut());
            }
        }
    }
}

/// The values of a column.
pub enum Data {
    /// Ours: how many, where, and its parts.
    Ours(usize, Vec<Buffer>, Vec<Data>),
    /// Another library's.
    Given(Given),
}

/// Values that another library lent.
pub struct Given(ArrowArray);

impl Data {
    fn export(self) -> ArrowArray {
        struct Held {
            at: Vec<*const c_void>,
            _keeps: Vec<Keeps>,
            children: Vec<*mut ArrowArray>,
        }

        unsafe extern "C" fn release(array: *mut ArrowArray) {
            // SAFETY: as of a schema.
            unsafe {
                let held = Box::from_raw((*array).private_data.cast::<Held>());
                free_all(&held.children);
                (*array).release = None;
            }
        }

        let (length, buffers, children) = match self {
            Self::Ours(length, buffers, children) => (length, buffers, children),
            Self::Given(given) => return given.0,
        };
        let (at, keeps) = buffers.into_iter().map(|buffer| (buffer.at, buffer.keeps)).unzip();
        let children = children.into_iter().map(|child| Box::into_raw(Box::new(child.export()))).collect();
        let mut held = Box::new(Held { at, _keeps: keeps, children });
        ArrowArray {
            length: length as i64,
            null_count: 0,
            offset: 0,
            n_buffers: held.at.len() as i64,
            n_children: held.children.len() as i64,
            buffers: held.at.as_mut_ptr(),
            children: held.children.as_mut_ptr(),
            dictionary: ptr::null_mut(),
            release: Some(release),
            private_data: Box::into_raw(held).cast(),
        }
    }

    /// The values in a capsule.
    pub fn capsule<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        capsule(py, self.export())
    }

    /// The values in a stream of this one column, in a capsule.
    pub fn stream<'py>(self, py: Python<'py>, field: Field) -> PyResult<Bound<'py, PyAny>> {
        struct Held {
            field: Field,
            data: Option<Data>,
        }

        unsafe extern "C" fn get_schema(stream: *mut ArrowArrayStream, out: *mut ArrowSchema) -> c_int {
            // SAFETY: the caller has a stream that is not released, and room for a schema that holds none.
            unsafe { out.write((*(*stream).private_data.cast::<Held>()).field.export()) };
            0
        }

        unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, out: *mut ArrowArray) -> c_int {
            // SAFETY: the same. A released array says that there is no more.
            unsafe {
                let held = &mut *(*stream).private_data.cast::<Held>();
                out.write(held.data.take().map_or_else(ArrowArray::released, Data::export));
            }
            0
        }

        unsafe extern "C" fn get_last_error(_: *mut ArrowArrayStream) -> *const c_char {
            ptr::null()
        }

        unsafe extern "C" fn release(stream: *mut ArrowArrayStream) {
            // SAFETY: as of a schema.
            unsafe {
                drop(Box::from_raw((*stream).private_data.cast::<Held>()));
                (*stream).release = None;
            }
        }

        let stream = ArrowArrayStream {
            get_schema: Some(get_schema),
            get_next: Some(get_next),
            get_last_error: Some(get_last_error),
            release: Some(release),
            private_data: Box::into_raw(Box::new(Held { field, data: Some(self) })).cast(),
        };
        capsule(py, stream)
    }

    /// Takes the values out of a capsule.
    pub fn take(capsule: &Bound<'_, PyAny>, what: &str) -> PyResult<Self> {
        let at = pointer::<ArrowArray>(capsule, what)?;
        // SAFETY: a capsule of this name has a pointer to such a structure, which lives as long as the capsule. With the GIL, or
        // the lock of the capsule, no other thread takes it. What is left behind is marked as released.
        let taken = with_critical_section(capsule, || unsafe { at.replace(ArrowArray::released()) });
        if taken.release.is_none() {
            return Err(PyValueError::new_err(format!("{what} is released")));
        }
        Ok(Self::Given(Given(taken)))
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::Ours(length, ..) => *length,
            Self::Given(given) => given.0.length.max(0) as usize,
        }
    }
}

impl ArrowArray {
    const fn released() -> Self {
        Self {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: ptr::null_mut(),
            children: ptr::null_mut(),
            dictionary: ptr::null_mut(),
            release: None,
            private_data: ptr::null_mut(),
        }
    }
}

/// A capsule that releases the structure unless a consumer took it.
fn capsule<T: Structure>(py: Python<'_>, structure: T) -> PyResult<Bound<'_, PyAny>> {
    unsafe extern "C" fn free<T: Structure>(capsule: *mut ffi::PyObject) {
        // SAFETY: the destructor of a capsule made below; it has the box's pointer, whatever name it was given since.
        unsafe {
            let at = ffi::PyCapsule_GetPointer(capsule, ffi::PyCapsule_GetName(capsule));
            free_all(&[at.cast::<T>()]);
        }
    }

    let at = Box::into_raw(Box::new(structure));
    // SAFETY: the name lives forever, and the pointer until the destructor; where no capsule is made, nobody else frees it.
    unsafe {
        let made = ffi::PyCapsule_New(at.cast(), T::NAME.as_ptr(), Some(free::<T>));
        if made.is_null() {
            free_all(&[at]);
        }
        Bound::from_owned_ptr_or_err(py, made)
    }
}

/// The structure that a capsule points to.
fn pointer<T: Structure>(capsule: &Bound<'_, PyAny>, what: &str) -> PyResult<*mut T> {
    // SAFETY: any object may be asked; the interpreter is attached.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), T::NAME.as_ptr()) == 0 {
            let name = T::NAME.to_string_lossy();
            return Err(errors::argument(what, &format!("a capsule of the name {name}"), capsule));
        }
        Ok(ffi::PyCapsule_GetPointer(capsule.as_ptr(), T::NAME.as_ptr()).cast())
    }
}
