//! State of threads on an interpreter with the GIL: a thread that holds it has all of it. `without_gil` has the same names for
//! an interpreter without it.

use mintage_core::ticked::CachedPrf;
use mintage_core::units::Tick;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// True if threads run at the same time.
pub const IS_PARALLEL: bool = false;

/// The order in which the pointer to a module's generator is read.
pub const READ_GENERATOR: Ordering = Ordering::Relaxed;

/// A value that one thread at a time uses.
pub struct Exclusive<T>(UnsafeCell<T>);

// SAFETY: used only with the GIL held.
unsafe impl<T: Send> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    /// A value.
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

/// Declares a value that threads need not share: here they do, as one at a time has the GIL.
macro_rules! per_thread {
    ($(#[$doc:meta])* $name:ident: $type:ty = $value:expr) => {
        $(#[$doc])*
        static $name: $crate::hot::Exclusive<$type> = $crate::hot::Exclusive::new($value);
    };
}
pub(crate) use per_thread;

/// The changes of a state that calls on the hot path read: none happens during one.
pub struct Changes;

impl Changes {
    /// No changes yet.
    pub fn new() -> Self {
        Self
    }

    /// Begins a call that reads the state.
    #[inline(always)]
    pub fn seen(&self) -> Option<u64> {
        Some(0)
    }

    /// Returns true if the state is the one that the call began with.
    #[inline(always)]
    pub fn is_still(&self, _: u64) -> bool {
        true
    }

    /// Changes the state; `change` must not run Python.
    #[inline(always)]
    pub fn change<T>(&self, change: impl FnOnce() -> T) -> T {
        change()
    }
}

/// The random bits of ticks under a key.
pub struct TickBits(Exclusive<CachedPrf>);

impl TickBits {
    /// Those of a key that is replaced before the first ID.
    pub fn new() -> Self {
        Self(Exclusive::new(CachedPrf::new([0; 16])))
    }

    /// Replaces the key.
    pub fn set_key(&self, py: Python<'_>, key: [u8; 16]) {
        self.0.with(py, |prf| *prf = CachedPrf::new(key));
    }

    /// The bits of a tick.
    #[inline(always)]
    pub fn of(&self, py: Python<'_>, tick: Tick) -> u128 {
        self.0.with(py, |prf| prf.bits(tick))
    }
}

/// Adds to a count.
#[inline(always)]
pub fn count(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

/// Raises a number to at least another one.
#[inline(always)]
pub fn raise(number: &AtomicU64, least: u64) {
    if least > number.load(Ordering::Relaxed) {
        number.store(least, Ordering::Relaxed);
    }
}

/// The index of the next item, which no other caller gets; `None` after the last one.
#[inline(always)]
pub fn next_item(next: &AtomicUsize, items: usize) -> Option<usize> {
    let at = next.load(Ordering::Relaxed);
    (at < items).then(|| {
        next.store(at + 1, Ordering::Relaxed);
        at
    })
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

    /// Prepares a new class, whose objects this list will have.
    ///
    /// # Safety
    /// The GIL is held. The class has no objects yet but class attributes, which are never freed.
    pub(super) unsafe fn set_up(&self, class: *mut ffi::PyTypeObject) {
        // SAFETY: the caller says so.
        unsafe {
            let list = &mut *self.0.get();
            list.free = (*class).tp_dealloc;
            list.is_collected = ffi::PyType_HasFeature(class, ffi::Py_TPFLAGS_HAVE_GC) != 0;
        }
    }

    /// Takes a freed object out, with one reference; null if there is none.
    ///
    /// # Safety
    /// The GIL is held.
    #[inline(always)]
    pub(super) unsafe fn take(&self) -> *mut ffi::PyObject {
        // SAFETY: the caller says so, and no Python code runs while the list is borrowed.
        unsafe {
            let list = &mut *self.0.get();
            if list.count == 0 {
                return std::ptr::null_mut();
            }
            list.count -= 1;
            let object = list.objects[list.count];
            ffi::Py_INCREF(object);
            object
        }
    }

    /// Keeps an object, or frees it if there is no room.
    ///
    /// # Safety
    /// The GIL is held; the object is of the class, and its last reference is gone.
    #[inline(always)]
    pub(super) unsafe fn give(&self, object: *mut ffi::PyObject) {
        // SAFETY: the caller says so, and no Python code runs while the list is borrowed.
        unsafe {
            let list = &mut *self.0.get();
            if list.count < Freed::MOST {
                if list.is_collected {
                    // Otherwise code that asks the collector for all objects would get it, and free it a second time.
                    ffi::PyObject_GC_UnTrack(object.cast());
                }
                list.objects[list.count] = object;
                list.count += 1;
            } else if let Some(free) = list.free {
                free(object);
            }
        }
    }
}
