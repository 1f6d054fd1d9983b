//! What may be touched because the GIL is held: values of the process, and dead objects that are born again.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::{Borrowed, PyClass, PyTypeInfo};
use std::cell::UnsafeCell;

/// A value that a thread with the GIL may change.
pub struct Held<T>(UnsafeCell<T>);

// SAFETY: touched only with the GIL held.
unsafe impl<T: Send> Sync for Held<T> {}

impl<T> Held<T> {
    /// Holds a value.
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

/// Dead objects of one class, each with its type still referenced, to be born again.
pub struct FreeList(UnsafeCell<Dead>);

struct Dead {
    objects: [*mut ffi::PyObject; Self::MOST],
    count: usize,
    /// What really frees one.
    free: Option<ffi::destructor>,
    /// Whether the collector knows the class's objects.
    is_collected: bool,
}

impl Dead {
    const MOST: usize = 64;
}

// SAFETY: touched only with the GIL held.
unsafe impl Sync for FreeList {}

impl FreeList {
    /// An empty list.
    pub const fn new() -> Self {
        Self(UnsafeCell::new(Dead {
            objects: [std::ptr::null_mut(); Dead::MOST],
            count: 0,
            free: None,
            is_collected: false,
        }))
    }
}

/// A frozen class without destructor, dict or weak references, whose objects may be born again with another value.
pub trait Reborn: PyClass<Frozen = True> + PyTypeInfo + Sync + Copy + Into<PyClassInitializer<Self>> {
    /// The class's own list.
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
pub fn object<T: Reborn>(py: Python<'_>, value: T) -> Object {
    // SAFETY: the GIL is held and no Python code runs while the list is borrowed. A listed object is a whole object of
    // class T that nothing refers to; its value is Copy, so overwriting it drops nothing.
    unsafe {
        let dead = &mut *T::free_list().0.get();
        if dead.count > 0 {
            dead.count -= 1;
            let object = dead.objects[dead.count];
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

unsafe extern "C" fn dealloc<T: Reborn>(object: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter with the GIL held and an object of class T whose last reference is gone.
    unsafe {
        let dead = &mut *T::free_list().0.get();
        if dead.count < Dead::MOST {
            if dead.is_collected {
                // Or code that asks the collector for all objects would get it, and let it die a second time.
                ffi::PyObject_GC_UnTrack(object.cast());
            }
            dead.objects[dead.count] = object;
            dead.count += 1;
        } else if let Some(free) = dead.free {
            free(object);
        }
    }
}

pub(super) fn keep_dead<T: Reborn>(py: Python<'_>) {
    // SAFETY: the GIL is held, and the class has no objects yet but class attributes, which are never freed.
    unsafe {
        let class = T::type_object_raw(py);
        let dead = &mut *T::free_list().0.get();
        dead.free = (*class).tp_dealloc;
        dead.is_collected = ffi::PyType_HasFeature(class, ffi::Py_TPFLAGS_HAVE_GC) != 0;
        (*class).tp_dealloc = Some(dealloc::<T>);
    }
}
