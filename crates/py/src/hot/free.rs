//! Values of the process and free lists of objects: only a thread with the GIL uses them.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::{Borrowed, PyClass, PyTypeInfo};
use std::cell::UnsafeCell;

/// A value that a thread may change while it has the GIL.
pub struct GilCell<T>(UnsafeCell<T>);

// SAFETY: used only with the GIL held.
unsafe impl<T: Send> Sync for GilCell<T> {}

impl<T> GilCell<T> {
    /// A cell with a value.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Lends the value; `use_it` must neither run Python nor ask for the value again.
    #[inline(always)]
    pub fn with<R>(&self, _: Python<'_>, use_it: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the token says that the GIL is held, and no Python runs that another could take it by.
        use_it(unsafe { &mut *self.0.get() })
    }
}

/// Freed objects of one class, each with its type still referenced, for reuse.
pub struct FreeList(UnsafeCell<Freed>);

struct Freed {
    objects: [*mut ffi::PyObject; Self::MOST],
    count: usize,
    /// The function that really frees an object.
    free: Option<ffi::destructor>,
    /// True if the collector tracks objects of the class.
    is_collected: bool,
}

impl Freed {
    const MOST: usize = 64;
}

// SAFETY: used only with the GIL held.
unsafe impl Sync for FreeList {}

impl FreeList {
    /// An empty list.
    pub const fn new() -> Self {
        Self(UnsafeCell::new(Freed {
            objects: [std::ptr::null_mut(); Freed::MOST],
            count: 0,
            free: None,
            is_collected: false,
        }))
    }
}

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
    // SAFETY: the token says that the GIL is held.
    unsafe { ffi::PyLong_FromUnsignedLongLong(value) }
}

/// A new object with this value.
#[inline(always)]
pub fn object<T: Recycled>(py: Python<'_>, value: T) -> Object {
    // SAFETY: the GIL is held and no Python code runs while the list is borrowed. A listed object is a whole object of
    // class T that nothing refers to; its value is Copy, so overwriting it drops nothing.
    unsafe {
        let list = &mut *T::free_list().0.get();
        if list.count > 0 {
            list.count -= 1;
            let object = list.objects[list.count];
            ffi::Py_INCREF(object);
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
    // SAFETY: called by the interpreter with the GIL held and an object of class T whose last reference is gone.
    unsafe {
        let list = &mut *T::free_list().0.get();
        if list.count < Freed::MOST {
            if list.is_collected {
                // Or code that asks the collector for all objects would get it, and let it die a second time.
                ffi::PyObject_GC_UnTrack(object.cast());
            }
            list.objects[list.count] = object;
            list.count += 1;
        } else if let Some(free) = list.free {
            free(object);
        }
    }
}

/// Makes a class put its freed objects into its free list.
pub(super) fn recycle<T: Recycled>(py: Python<'_>) {
    // SAFETY: the GIL is held, and the class has no objects yet but class attributes, which are never freed.
    unsafe {
        let class = T::type_object_raw(py);
        let list = &mut *T::free_list().0.get();
        list.free = (*class).tp_dealloc;
        list.is_collected = ffi::PyType_HasFeature(class, ffi::Py_TPFLAGS_HAVE_GC) != 0;
        (*class).tp_dealloc = Some(dealloc::<T>);
    }
}
