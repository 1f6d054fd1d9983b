//! Objects of the standard module's `uuid.UUID`, made without its constructor.

use super::free::Object;
use super::methods::{builtin, guarded};
use pyo3::exceptions::PyTypeError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::ffi::CStr;
use std::sync::OnceLock;

/// The parts of `uuid.UUID` that make its objects without its constructor, which needs a microsecond. The class has two slots and
/// forbids setting them; their descriptors set them all the same, as its own methods do.
struct UuidClass {
    class: *mut ffi::PyTypeObject,
    allocate: ffi::allocfunc,
    int: Slot,
    is_safe: Slot,
    /// `SafeUUID.unknown`.
    unknown: *mut ffi::PyObject,
}

#[derive(Clone, Copy)]
struct Slot {
    descriptor: *mut ffi::PyObject,
    set: ffi::descrsetfunc,
}

// SAFETY: never changed, and what it points to is never freed; used while attached.
unsafe impl Send for UuidClass {}
// SAFETY: as above.
unsafe impl Sync for UuidClass {}

/// This is no cell of PyO3, which would release the GIL while it is filled.
static UUID_CLASS: OnceLock<UuidClass> = OnceLock::new();

impl Slot {
    fn of(class: &Bound<'_, PyAny>, name: &str) -> PyResult<Self> {
        let descriptor = class.getattr(name)?;
        // SAFETY: every object has a type.
        let set = unsafe { (*ffi::Py_TYPE(descriptor.as_ptr())).tp_descr_set };
        let set = set.ok_or_else(|| PyTypeError::new_err(format!("uuid.UUID.{name} is no slot")))?;
        Ok(Self { descriptor: descriptor.into_ptr(), set })
    }
}

/// The class `uuid.UUID`, imported when it is first needed: that takes as long as all of mintage.
pub fn uuid_type(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let class = CLASS.get_or_try_init(py, || py.import("uuid")?.getattr("UUID").map(Bound::unbind))?;
    Ok(class.bind(py).clone())
}

fn uuid_class(py: Python<'_>) -> PyResult<&'static UuidClass> {
    if let Some(known) = UUID_CLASS.get() {
        return Ok(known);
    }
    let class = uuid_type(py)?;
    let (int, is_safe) = (Slot::of(&class, "int")?, Slot::of(&class, "is_safe")?);
    let unknown = py.import("uuid")?.getattr("SafeUUID")?.getattr("unknown")?.into_ptr();
    let class = class.into_ptr().cast::<ffi::PyTypeObject>();
    // SAFETY: `uuid.UUID` is a type.
    let allocate = unsafe { (*class).tp_alloc }.ok_or_else(|| PyTypeError::new_err("uuid.UUID cannot be made"))?;
    Ok(UUID_CLASS.get_or_init(|| UuidClass { class, allocate, int, is_safe, unknown }))
}

impl UuidClass {
    /// A new `uuid.UUID`; null with an exception set when there is no memory.
    #[inline(always)]
    fn object(&self, py: Python<'_>, bits: u128) -> Object {
        let Ok(int) = bits.into_pyobject(py);
        // SAFETY: the token says that the interpreter is attached. The class has no constructor of its own below `__init__`, so an
        // allocated object is whole once its slots are set, and the descriptors check that it is of their class.
        unsafe {
            let object = (self.allocate)(self.class, 0);
            if !object.is_null()
                && ((self.int.set)(self.int.descriptor, object, int.as_ptr()) < 0
                    || (self.is_safe.set)(self.is_safe.descriptor, object, self.unknown) < 0)
            {
                ffi::Py_DECREF(object);
                return std::ptr::null_mut();
            }
            object
        }
    }
}

/// The `uuid.UUID` of these bits.
pub fn uuid(py: Python<'_>, bits: u128) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: a new object of ours, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, uuid_class(py)?.object(py, bits)) }
}

/// A function without arguments that returns `uuid.UUID`s.
pub trait Uuids: 'static {
    /// The function's name.
    const NAME: &'static CStr;
    /// Its docstring, behind its signature.
    const DOC: &'static CStr;
    /// The bits for a hot call; `None` for a call that must take the slow path.
    fn fast(py: Python<'_>) -> Option<u128>;
    /// The bits for any other call.
    fn slow(py: Python<'_>) -> PyResult<u128>;
}

unsafe extern "C" fn new_uuid<U: Uuids>(_: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: called by the interpreter while attached.
    let py = unsafe { Python::assume_attached() };
    if let Some(class) = UUID_CLASS.get() {
        if let Some(bits) = U::fast(py) {
            return class.object(py, bits);
        }
    }
    // SAFETY: the same.
    unsafe { guarded(|py| Ok(uuid_class(py)?.object(py, U::slow(py)?))) }
}

/// Makes such a function, of the module of this name.
pub fn function_of_uuids<'py, U: Uuids>(py: Python<'py>, module: &str) -> PyResult<Bound<'py, PyAny>> {
    let function = ffi::PyMethodDef {
        ml_name: U::NAME.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: new_uuid::<U> },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: U::DOC.as_ptr(),
    };
    builtin(py, function, Some(module))
}
