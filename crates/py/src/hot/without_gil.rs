//! State of threads on an interpreter without the GIL: each value has a lock or a version, or each thread has its own.
//! `with_gil` has the same names for an interpreter with it.
//!
//! No lock of these is held while Python runs, so the interpreter never stops a thread that holds one: neither a collection nor
//! a fork from Python finds it locked.

use mintage_core::ticked::SharedPrf;
use mintage_core::units::Tick;
use pyo3::ffi;
use pyo3::prelude::*;
use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// True if threads run at the same time.
pub const IS_PARALLEL: bool = true;

/// The order in which the pointer to a module's generator is read.
pub const READ_GENERATOR: Ordering = Ordering::Acquire;

/// A value that one thread at a time uses.
pub struct Exclusive<T>(Mutex<T>);

impl<T> Exclusive<T> {
    /// A value.
    pub const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Lends the value; `use_it` must neither run Python nor ask for the value again.
    #[inline(always)]
    pub fn with<R>(&self, _: Python<'_>, use_it: impl FnOnce(&mut T) -> R) -> R {
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A thread's own value: no other thread can name it, as it is in a thread-local variable.
pub struct PerThread<T>(UnsafeCell<T>);

impl<T> PerThread<T> {
    /// A value.
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// Lends the value; `use_it` must neither run Python nor ask for the value again.
    #[inline(always)]
    pub fn with<R>(&self, _: Python<'_>, use_it: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: this thread alone has the value, and does not ask for it again.
        use_it(unsafe { &mut *self.0.get() })
    }
}

/// Declares a value of which each thread has its own.
macro_rules! per_thread {
    ($(#[$doc:meta])* $name:ident: $type:ty = $value:expr) => {
        $(#[$doc])*
        #[allow(clippy::upper_case_acronyms, reason = "it is used as a static is")]
        struct $name;

        impl $name {
            #[inline(always)]
            fn with<R>(&self, py: pyo3::Python<'_>, use_it: impl FnOnce(&mut $type) -> R) -> R {
                std::thread_local! {
                    static VALUE: $crate::hot::PerThread<$type> = const { $crate::hot::PerThread::new($value) };
                }
                VALUE.with(|value| value.with(py, use_it))
            }
        }
    };
}
pub(crate) use per_thread;

/// The changes of a state that calls on the hot path read.
pub use mintage_core::version::Version as Changes;

/// The random bits of ticks under a key.
pub struct TickBits(SharedPrf);

impl TickBits {
    /// Those of a key that is replaced before the first ID.
    pub fn new() -> Self {
        Self(SharedPrf::new([0; 16]))
    }

    /// Replaces the key.
    pub fn set_key(&self, _: Python<'_>, key: [u8; 16]) {
        self.0.set_key(key);
    }

    /// The bits of a tick.
    #[inline(always)]
    pub fn of(&self, _: Python<'_>, tick: Tick) -> u128 {
        self.0.bits(tick)
    }
}

/// Adds to a count.
pub fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// Raises a number to at least another one.
pub fn raise(number: &AtomicU64, least: u64) {
    if least > number.load(Ordering::Relaxed) {
        number.fetch_max(least, Ordering::Relaxed);
    }
}

/// The index of the next item, which no other caller gets; `None` after the last one.
pub fn next_item(next: &AtomicUsize, items: usize) -> Option<usize> {
    if next.load(Ordering::Relaxed) >= items {
        return None;
    }
    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < items)
}

/// The bit of an object that the collector tracks.
const IS_TRACKED: u8 = 1;

/// The number of classes whose objects threads keep.
const CLASSES: usize = 16;

/// The freed objects of one class that one thread keeps.
struct Freed {
    objects: [*mut ffi::PyObject; Self::MOST],
    count: usize,
}

impl Freed {
    const MOST: usize = 64;
    const EMPTY: Self = Self { objects: [null_mut(); Self::MOST], count: 0 };
}

/// The freed objects that one thread keeps, by class. A capsule in the dict of the thread's state owns them.
struct OfThread {
    lists: [Freed; CLASSES],
    /// The thread, as objects name their owner.
    thread: usize,
}

thread_local! {
    /// Those of this thread; null before it first makes an object, and again when its state ends.
    static FREED: Cell<*mut OfThread> = const { Cell::new(null_mut()) };
}

/// The functions that really free the objects, by class.
static FREE: [AtomicPtr<c_void>; CLASSES] = [const { AtomicPtr::new(null_mut()) }; CLASSES];

/// Freed objects of one class, each with its type still referenced, for reuse by the thread that freed them.
pub struct FreeList {
    /// The index of the class.
    class: AtomicUsize,
    /// True if the collector tracks objects of the class.
    is_collected: AtomicBool,
}

unsafe extern "C" {
    /// Gives a freed object a single reference, which this thread owns.
    fn _Py_NewReference(object: *mut ffi::PyObject);
}

impl FreeList {
    /// An empty list.
    pub const fn new() -> Self {
        Self { class: AtomicUsize::new(0), is_collected: AtomicBool::new(false) }
    }

    /// Prepares a new class, whose objects this list will have.
    ///
    /// # Safety
    /// The interpreter is attached. The class has no objects yet but class attributes, which are never freed.
    pub(super) unsafe fn set_up(&self, class: *mut ffi::PyTypeObject) {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let index = NEXT.fetch_add(1, Ordering::Relaxed);
        assert!(index < CLASSES, "there are more classes of IDs than free lists");
        // SAFETY: the caller says so. No other thread uses the class yet, so none counts its references. The module is never
        // unloaded, so the class may be immortal. Threads that create its objects then write no shared count of references.
        unsafe {
            let free = (*class).tp_dealloc.map_or(null_mut(), |free| free as *mut c_void);
            FREE[index].store(free, Ordering::Release);
            let is_collected = ffi::PyType_HasFeature(class, ffi::Py_TPFLAGS_HAVE_GC) != 0;
            self.is_collected.store(is_collected, Ordering::Relaxed);
            let head = &mut (*class).ob_base.ob_base;
            head.ob_tid = 0;
            head.ob_ref_local.store(u32::MAX, Ordering::Relaxed);
            head.ob_ref_shared.store(0, Ordering::Relaxed);
        }
        self.class.store(index, Ordering::Release);
    }

    /// Takes an object that this thread freed, with one reference; null if there is none.
    ///
    /// # Safety
    /// The interpreter is attached.
    #[inline(always)]
    pub(super) unsafe fn take(&self) -> *mut ffi::PyObject {
        let of_thread = FREED.get();
        if of_thread.is_null() {
            // SAFETY: the caller says so.
            unsafe { keep_for_thread() };
            return null_mut();
        }
        // SAFETY: it is this thread's, and no Python code runs while it is borrowed.
        unsafe {
            let OfThread { lists, thread } = &mut *of_thread;
            let list = &mut lists[self.class.load(Ordering::Relaxed)];
            if list.count == 0 {
                return null_mut();
            }
            list.count -= 1;
            let object = list.objects[list.count];
            if (*object).ob_tid == *thread && (*object).ob_ref_shared.load(Ordering::Relaxed) == 0 {
                // The changes that `_Py_NewReference` would make, for an object that no other thread had a reference
                // to.
                (*object).ob_ref_local.store(1, Ordering::Relaxed);
            } else {
                _Py_NewReference(object);
            }
            object
        }
    }

    /// Keeps an object, or frees it if there is no room.
    ///
    /// # Safety
    /// The interpreter is attached; the object is of the class, and its last reference is gone.
    #[inline(always)]
    pub(super) unsafe fn give(&self, object: *mut ffi::PyObject) {
        let (of_thread, class) = (FREED.get(), self.class.load(Ordering::Relaxed));
        // SAFETY: the list is this thread's, and no Python code runs while it is borrowed; the rest the caller says.
        unsafe {
            if !of_thread.is_null() {
                let list = &mut (&mut *of_thread).lists[class];
                if list.count < Freed::MOST {
                    if self.is_collected.load(Ordering::Relaxed) && (*object).ob_gc_bits & IS_TRACKED != 0 {
                        ffi::PyObject_GC_UnTrack(object.cast());
                    }
                    list.objects[list.count] = object;
                    list.count += 1;
                    return;
                }
            }
            free(class, object);
        }
    }
}

/// Frees an object for good.
///
/// # Safety
/// The interpreter is attached; the object is of the class with this index, and has no reference.
#[cold]
unsafe fn free(class: usize, object: *mut ffi::PyObject) {
    let free = FREE[class].load(Ordering::Acquire);
    // SAFETY: `set_up` put the class's own function there.
    unsafe { std::mem::transmute::<*mut c_void, ffi::destructor>(free)(object) }
}

/// Gives this thread lists, which its state owns: the interpreter frees them, with their objects, when the thread ends, and in a
/// child that was forked by another thread.
///
/// # Safety
/// The interpreter is attached.
#[cold]
#[inline(never)]
unsafe fn keep_for_thread() {
    const NAME: &std::ffi::CStr = c"mintage._core.freed";

    unsafe extern "C" fn end(capsule: *mut ffi::PyObject) {
        // SAFETY: the destructor of the capsule made below. While the interpreter ends, its objects are left alone.
        unsafe {
            let of_thread = ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast::<OfThread>();
            if FREED.get() == of_thread {
                FREED.set(null_mut());
            }
            let mut freed = Box::from_raw(of_thread);
            if ffi::Py_IsFinalizing() != 0 {
                return;
            }
            for (class, list) in freed.lists.iter_mut().enumerate() {
                for object in &list.objects[..std::mem::take(&mut list.count)] {
                    free(class, *object);
                }
            }
        }
    }

    // SAFETY: the caller says so. Where a step fails, this thread has no lists, and allocates each object.
    unsafe {
        let dict = ffi::PyThreadState_GetDict();
        if dict.is_null() {
            return;
        }
        let of_thread = Box::into_raw(Box::new(OfThread { lists: [Freed::EMPTY; CLASSES], thread: 0 }));
        let capsule = ffi::PyCapsule_New(of_thread.cast(), NAME.as_ptr(), Some(end));
        if capsule.is_null() {
            drop(Box::from_raw(of_thread));
            ffi::PyErr_Clear();
            return;
        }
        if ffi::PyDict_SetItemString(dict, NAME.as_ptr(), capsule) == 0 {
            // A new object is its thread's.
            (*of_thread).thread = (*capsule).ob_tid;
            FREED.set(of_thread);
        } else {
            ffi::PyErr_Clear();
        }
        ffi::Py_DECREF(capsule);
    }
}
