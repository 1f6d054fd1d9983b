//! Objects of ID classes, which are reused after their last reference is gone.

use super::FreeList;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::{Borrowed, PyClass, PyTypeInfo};

/// A frozen class without destructor, dict or weak references: a freed object may be reused with another value.
pub trait Recycled: PyClass<Frozen = True> + PyTypeInfo + Sync + Copy + Into<PyClassInitializer<Self>> {
    /// The free list of the class.
    fn free_list() -> &'static FreeList;
}

/// A new object on its way to the interpreter; null with an exception set.
pub type Object = *mut ffi::PyObject;

/// A new int.
#[inline(always)]
pub fn int(_: Python<'_>, value: u64) -> Object {
    // SAFETY: the token says that the interpreter is attached.
    unsafe { ffi::PyLong_FromUnsignedLongLong(value) }
}

/// A new object with this value.
#[inline(always)]
pub fn object<T: Recycled>(py: Python<'_>, value: T) -> Object {
    // SAFETY: the interpreter is attached. A listed object is a whole object of class T that nothing refers to; its value is
    // Copy, so overwriting it drops nothing.
    unsafe {
        let object = T::free_list().take();
        if !object.is_null() {
            let place = std::ptr::from_ref(Borrowed::from_ptr(py, object).cast_unchecked::<T>().get()).cast_mut();
            place.write(value);
            return object;
        }
    }
    match Py::new(py, value) {
        Ok(object) => object.into_ptr(),
        Err(error) => {
            error.restore(py);
            std::ptr::null_mut()
        }
    }
}

unsafe extern "C" fn dealloc<T: Recycled>(object: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter, attached, with an object of class T whose last reference is gone.
    unsafe { T::free_list().give(object) }
}

/// Makes a class put its freed objects into its free list.
pub(super) fn recycle<T: Recycled>(py: Python<'_>) {
    // SAFETY: the interpreter is attached, and the class has no objects yet but class attributes, which are never freed.
    unsafe {
        let class = T::type_object_raw(py);
        T::free_list().set_up(class);
        (*class).tp_dealloc = Some(dealloc::<T>);
    }
}
