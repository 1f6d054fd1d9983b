//! The hot path: nearly all of the binding's unsafe code; the rest is in `kernel`.
//!
//! A call that mints one ID costs less than a clock reading and an allocation do, so both are avoided here:
//! - the **cached tick** keeps the present millisecond behind the processor's cycle counter;
//! - the **free list** keeps a few dead ID objects of each class to be born again;
//! - the methods `new` and `__next__` of the generators, and `parse` and `__str__` of the IDs, are raw C functions in place
//!   of PyO3's. They handle the common case and hand anything else to the plain PyO3 methods.
//!
//! Everything here runs with the GIL held: the module declares `gil_used`, so that a free-threaded interpreter keeps it.

#![allow(unsafe_code)]

use crate::fields::Field;
use crate::id::Class;
use crate::{errors, fields, values};
use mintage_core::id::Id as _;
use mintage_core::units::UnixMs;
use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PySystemError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::{PyBytes, PyMemoryView, PyString};
use pyo3::{Borrowed, PyClass, PyTypeInfo};
use std::cell::{Cell, UnsafeCell};
use std::ffi::{CStr, CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

// ---------------------------------------------------------------------------------------------------- the cached tick

/// How old a cached millisecond may be.
///
/// It ends at the next millisecond anyway, so it is only ever wrong when the clock is stepped; then for this long. The
/// documented bound is 50 µs, and leaves room for the error of the calibration.
const MAX_AGE_NS: u64 = 40_000;

#[derive(Clone, Copy)]
struct Cached {
    /// Cycle counter when the clock was read.
    since: u64,
    /// For how many cycles the reading holds.
    cycles: u64,
    ms: i64,
}

thread_local! {
    static TICK: Cell<Cached> = const { Cell::new(Cached { since: 0, cycles: 0, ms: 0 }) };
}

/// The present millisecond, from the cache where that is younger than 50 µs.
#[inline(always)]
pub fn now() -> UnixMs {
    let cycles = cycles();
    let cached = TICK.get();
    // A counter that went back, on another core or after a restore, is far ahead in wrapping arithmetic.
    if cycles.wrapping_sub(cached.since) < cached.cycles { UnixMs(cached.ms) } else { read_clock(cycles) }
}

/// Makes the next [`now`] read the clock.
pub fn forget_tick() {
    TICK.set(Cached { since: 0, cycles: 0, ms: 0 });
}

#[cold]
#[inline(never)]
fn read_clock(since: u64) -> UnixMs {
    let Ok(now) = SystemTime::now().duration_since(UNIX_EPOCH) else { return UnixMs(-1) };
    let ms = now.as_millis() as i64;
    let left_ns = 1_000_000 - u64::from(now.subsec_nanos() % 1_000_000);
    // The counter was read before the clock, so the age counts from before the reading.
    let cycles = (u128::from(left_ns.min(MAX_AGE_NS)) * u128::from(cycles_per_second()) / 1_000_000_000) as u64;
    TICK.set(Cached { since, cycles, ms });
    UnixMs(ms)
}

/// Cycles a second, measured over the first milliseconds of use; 0, so that nothing is cached, until then and where the
/// counter is not known to run at one speed.
fn cycles_per_second() -> u64 {
    static RATE: AtomicU64 = AtomicU64::new(0);
    static START: OnceLock<Option<(u64, Instant)>> = OnceLock::new();
    static MEASURING: Mutex<()> = Mutex::new(());
    const ENOUGH: Duration = Duration::from_millis(2);

    let rate = RATE.load(Ordering::Relaxed);
    if rate != 0 {
        return rate;
    }
    let Some((cycles, instant)) = *START.get_or_init(|| counter_is_steady().then(steady_pair)) else { return 0 };
    if instant.elapsed() < ENOUGH {
        return 0;
    }
    let _guard = MEASURING.lock().unwrap_or_else(PoisonError::into_inner);
    let (cycles_now, instant_now) = steady_pair();
    let ns = instant_now.duration_since(instant).as_nanos().max(1);
    let rate = u128::from(cycles_now.wrapping_sub(cycles)) * 1_000_000_000 / ns;
    RATE.store(rate as u64, Ordering::Relaxed);
    rate as u64
}

/// Cycle counter and time of one moment: the closest of a few readings, so that a preemption in between does not count.
fn steady_pair() -> (u64, Instant) {
    let read = || {
        let before = cycles();
        let instant = Instant::now();
        (cycles().wrapping_sub(before), before, instant)
    };
    let closest = [read(), read(), read(), read()].into_iter().min_by_key(|&(gap, ..)| gap);
    closest.map_or_else(|| (cycles(), Instant::now()), |(_, cycles, instant)| (cycles, instant))
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has the counter, and no operating system that runs Python forbids it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Whether the processor promises a counter of constant rate that no sleep stops ("invariant TSC").
#[cfg(target_arch = "x86_64")]
fn counter_is_steady() -> bool {
    use std::arch::x86_64::__cpuid;
    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    __cpuid(0x8000_0000).eax >= POWER_MANAGEMENT && __cpuid(POWER_MANAGEMENT).edx & (1 << 8) != 0
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn cycles() -> u64 {
    let count: u64;
    // SAFETY: reads the virtual counter, which Linux and macOS let user programs read.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
    count
}

#[cfg(target_arch = "aarch64")]
fn counter_is_steady() -> bool {
    true
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn cycles() -> u64 {
    0
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn counter_is_steady() -> bool {
    false
}

/// What the tests and benchmarks want to know: cycles a second (0: nothing is cached) and the largest age in ns.
pub fn clock_facts() -> (u64, u64) {
    (cycles_per_second(), MAX_AGE_NS)
}

// ---------------------------------------------------------------------------------------------------- under the GIL

/// A value that whoever holds the GIL may change.
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

// ------------------------------------------------------------------------------------------------------ the free list

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
                // Or whoever asks the collector for all objects would get it, and let it die a second time.
                ffi::PyObject_GC_UnTrack(object.cast());
            }
            dead.objects[dead.count] = object;
            dead.count += 1;
        } else if let Some(free) = dead.free {
            free(object);
        }
    }
}

fn keep_dead<T: Reborn>(py: Python<'_>) {
    // SAFETY: the GIL is held, and the class has no objects yet but class attributes, which are never freed.
    unsafe {
        let class = T::type_object_raw(py);
        let dead = &mut *T::free_list().0.get();
        dead.free = (*class).tp_dealloc;
        dead.is_collected = ffi::PyType_HasFeature(class, ffi::Py_TPFLAGS_HAVE_GC) != 0;
        (*class).tp_dealloc = Some(dealloc::<T>);
    }
}

// ------------------------------------------------------------------------------------------------- new() and __next__

/// A generator, as its raw methods see it.
pub trait Mints: PyClass<Frozen = True> + PyTypeInfo + Sync {
    /// An ID on its way to its object.
    type Minted;
    /// Whether `new` takes a metabyte.
    const HAS_META: bool;
    /// The ID for a hot call: `None` sends it the slow way.
    fn quick(&self, py: Python<'_>, meta: u8) -> Option<Self::Minted>;
    /// The name of the method that mints one.
    const NEW: &'static CStr = c"new";
    /// The ID for any other call: waits, advances, refuses.
    fn slow(generator: &Bound<'_, Self>, meta: u8) -> PyResult<Self::Minted>;
    /// The object of an ID.
    fn object(py: Python<'_>, minted: Self::Minted) -> Object;
}

/// The next ID of a generator, as Python gets it from the methods that PyO3 makes.
pub fn minted<G: Mints>(generator: &Bound<'_, G>, meta: u8) -> PyResult<Py<PyAny>> {
    let minted = G::slow(generator, meta)?;
    // SAFETY: a new object of ours, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(generator.py(), G::object(generator.py(), minted)).map(Bound::unbind) }
}

/// The same, in the quick way where that can be.
pub fn minted_quickly<G: Mints>(generator: &Bound<'_, G>, meta: u8) -> PyResult<Py<PyAny>> {
    let py = generator.py();
    let Some(minted) = generator.get().quick(py, meta) else { return minted(generator, meta) };
    // SAFETY: a new object of ours, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, G::object(py, minted)).map(Bound::unbind) }
}

/// A class of which one generator's `new` is a function of a module.
pub trait OfModule: Mints {
    /// That generator; null until there is one.
    fn of_module() -> &'static AtomicPtr<ffi::PyObject>;
}

/// That generator, if there is one.
#[inline(always)]
pub fn generator_of_module<G: OfModule>(py: Python<'_>) -> Option<Borrowed<'_, '_, G>> {
    let generator = G::of_module().load(Ordering::Relaxed);
    // SAFETY: `function_of_module` has put an object of class G there, which is never freed.
    (!generator.is_null()).then(|| unsafe { Borrowed::from_ptr(py, generator).cast_unchecked::<G>() })
}

#[inline(always)]
unsafe fn mint<G: Mints>(generator: *mut ffi::PyObject, meta: u8) -> *mut ffi::PyObject {
    // SAFETY: called by the interpreter with the GIL held and an object of class G.
    let (py, generator) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr(py, generator).cast_unchecked::<G>())
    };
    match generator.get().quick(py, meta) {
        Some(minted) => G::object(py, minted),
        None => mint_slowly(&generator, meta),
    }
}

#[cold]
#[inline(never)]
fn mint_slowly<G: Mints>(generator: &Bound<'_, G>, meta: u8) -> *mut ffi::PyObject {
    guarded(|py| G::slow(generator, meta).map(|minted| G::object(py, minted)))
}

/// Runs Rust that may fail, or even panic, and leaves the exception to the interpreter.
fn guarded(run: impl FnOnce(Python<'_>) -> PyResult<*mut ffi::PyObject>) -> *mut ffi::PyObject {
    Python::attach(|py| {
        let result = catch_unwind(AssertUnwindSafe(|| run(py)));
        let error = match result {
            Ok(Ok(object)) => return object,
            Ok(Err(error)) => error,
            Err(_) => PySystemError::new_err("mintage panicked; please report this"),
        };
        error.restore(py);
        std::ptr::null_mut()
    })
}

unsafe extern "C" fn next<G: Mints>(generator: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the slot of class G.
    unsafe { mint::<G>(generator, 0) }
}

unsafe extern "C" fn new<G: Mints>(
    generator: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    if count == 0 && names.is_null() {
        // SAFETY: the descriptor has checked that this is an object of class G.
        return unsafe { mint::<G>(generator, 0) };
    }
    guarded(|py| {
        // SAFETY: the interpreter passes `count` positional arguments, and then a value for each of the names.
        let (args, names) = unsafe {
            let names = Bound::from_borrowed_ptr_or_opt(py, names);
            let named = names.as_ref().map_or(Ok(0), |names| names.len())?;
            let args = std::slice::from_raw_parts(args, count as usize + named);
            (args.iter().map(|&arg| Bound::from_borrowed_ptr(py, arg)).collect::<Vec<_>>(), names)
        };
        let name = G::NEW.to_str().unwrap_or_default();
        let meta = meta_argument(name, &args, count as usize, names.as_ref(), G::HAS_META)?;
        // SAFETY: as above.
        Ok(unsafe { mint::<G>(generator, meta) })
    })
}

unsafe extern "C" fn new_of_module<G: OfModule>(
    _: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: `function_of_module` has put an object of class G there, which is never freed; the rest is as the interpreter
    // passed it.
    unsafe { new::<G>(G::of_module().load(Ordering::Relaxed), args, count, names) }
}

/// The argument of `method(meta=0)`, or the interpreter's usual complaint.
fn meta_argument(
    method: &str,
    args: &[Bound<'_, PyAny>],
    positional: usize,
    names: Option<&Bound<'_, PyAny>>,
    allowed: bool,
) -> PyResult<u8> {
    if let Some(names) = names {
        for name in names.try_iter()? {
            let name = name?;
            if !allowed || !name.eq("meta")? {
                return Err(PyTypeError::new_err(format!(
                    "{method}() got an unexpected keyword argument {}",
                    name.repr()?
                )));
            }
        }
    }
    let most = usize::from(allowed);
    match args {
        [meta] if allowed => values::field_or(Some(meta), "meta", u8::MAX, 0),
        _ if positional <= most => {
            Err(PyTypeError::new_err(format!("{method}() got multiple values for argument 'meta'")))
        }
        _ => Err(PyTypeError::new_err(format!("{method}() takes at most {most} arguments ({} given)", args.len()))),
    }
}

// ------------------------------------------------------------------------------------------- the standard uuid.UUID

/// What objects of `uuid.UUID` are made of without its constructor, which takes a microsecond. The class has two slots and
/// forbids to set them; their descriptors set them all the same, as its own methods do.
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

// SAFETY: never changed, and what it points to is never freed; used with the GIL held.
unsafe impl Send for UuidClass {}
// SAFETY: as above.
unsafe impl Sync for UuidClass {}

/// Not one of PyO3's cells, which let go of the GIL while they are filled.
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

fn uuid_class(py: Python<'_>) -> PyResult<&'static UuidClass> {
    if let Some(known) = UUID_CLASS.get() {
        return Ok(known);
    }
    let class = values::uuid_class(py)?;
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
        // SAFETY: the token says that the GIL is held. The class has no constructor of its own below `__init__`, so an
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

/// What a function of no arguments returns as `uuid.UUID`s.
pub trait Uuids: 'static {
    /// The function's name.
    const NAME: &'static CStr;
    /// Its docstring, behind its signature.
    const DOC: &'static CStr;
    /// The bits for a hot call: `None` sends it the slow way.
    fn quick(py: Python<'_>) -> Option<u128>;
    /// The bits for any other call.
    fn slow(py: Python<'_>) -> PyResult<u128>;
}

unsafe extern "C" fn new_uuid<U: Uuids>(_: *mut ffi::PyObject, _: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: called by the interpreter with the GIL held.
    let py = unsafe { Python::assume_attached() };
    if let Some(class) = UUID_CLASS.get()
        && let Some(bits) = U::quick(py)
    {
        return class.object(py, bits);
    }
    guarded(|py| Ok(uuid_class(py)?.object(py, U::slow(py)?)))
}

/// Such a function, of the module of this name.
pub fn function_of_uuids<'py, U: Uuids>(py: Python<'py>, module: &str) -> PyResult<Bound<'py, PyAny>> {
    let function = ffi::PyMethodDef {
        ml_name: U::NAME.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: new_uuid::<U> },
        ml_flags: ffi::METH_NOARGS,
        ml_doc: U::DOC.as_ptr(),
    };
    let module = PyString::new(py, module);
    // SAFETY: the definition is leaked, as the interpreter requires.
    unsafe {
        let function = ffi::PyCFunction_NewEx(Box::leak(Box::new(function)), std::ptr::null_mut(), module.as_ptr());
        Bound::from_owned_ptr_or_err(py, function)
    }
}

// ------------------------------------------------------------------------------------------------ parse() and __str__

/// The ID of any text, or the error.
pub fn read_text<C: Class>(text: &Bound<'_, PyAny>) -> PyResult<C> {
    C::Id::parse(&values::text(text, "text")?).map(C::of).map_err(errors::value)
}

unsafe extern "C" fn parse<C: Class>(_: *mut ffi::PyObject, text: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: called by the interpreter with the GIL held and one object; the text's bytes are read at once.
    unsafe {
        if ffi::PyUnicode_CheckExact(text) != 0 && ffi::PyUnicode_IS_COMPACT_ASCII(text) != 0 {
            let length = ffi::PyUnicode_GET_LENGTH(text) as usize;
            let characters = std::slice::from_raw_parts(ffi::PyUnicode_DATA(text).cast(), length);
            if characters.len() == C::Id::TEXT
                && let Ok(id) = C::Id::decode(characters)
            {
                return object(Python::assume_attached(), C::of(id));
            }
        }
    }
    guarded(|py| {
        // SAFETY: as above.
        let text = unsafe { Bound::from_borrowed_ptr(py, text) };
        Ok(object(py, read_text::<C>(&text)?))
    })
}

unsafe extern "C" fn str<C: Class>(id: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the slot of class C, called with the GIL held.
    unsafe {
        let py = Python::assume_attached();
        let id = Borrowed::from_ptr(py, id).cast_unchecked::<C>();
        new_ascii(id.get().id().to_text().as_ref())
    }
}

/// A new str of ASCII bytes; null with an exception set when there is no memory.
///
/// # Safety
/// The GIL is held and the bytes are ASCII.
#[inline(always)]
unsafe fn new_ascii(text: &[u8]) -> *mut ffi::PyObject {
    // SAFETY: a fresh str of this length has room for so many bytes, and nobody else sees it yet.
    unsafe {
        let string = ffi::PyUnicode_New(text.len() as ffi::Py_ssize_t, 127);
        if !string.is_null() {
            ffi::PyUnicode_DATA(string).cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
        }
        string
    }
}

/// A new str of what a generator wrote, which is always ASCII, on its way to the interpreter.
#[inline(always)]
pub fn ascii_object(_: Python<'_>, text: &[u8]) -> Object {
    debug_assert!(text.is_ascii());
    // SAFETY: the token says that the GIL is held; generators write ASCII.
    unsafe { new_ascii(text) }
}

/// A str of what a codec wrote, which is always ASCII.
pub fn ascii<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyString>> {
    debug_assert!(text.is_ascii());
    // SAFETY: the token says that the GIL is held; codecs write ASCII.
    unsafe { Bound::from_owned_ptr_or_err(py, new_ascii(text)).map(|string| string.cast_into_unchecked()) }
}

/// A hash that spreads the bits of an ID; -1 means an error to the interpreter.
#[inline(always)]
pub fn hash(id: &[u8]) -> isize {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let (rest, words) = id.as_rchunks::<8>();
    let first = rest.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
    let mixed =
        words.iter().fold(first, |mixed, word| mixed ^ u64::from_be_bytes(*word).wrapping_mul(ODD).rotate_left(23));
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(ODD);
    let hash = (mixed ^ mixed >> 29) as isize;
    if hash == -1 { -2 } else { hash }
}

// ------------------------------------------------------------------------------------------------------- installation

/// Puts raw methods in the place of an ID class's own, and keeps its dead.
pub fn install_id<C: Class>(py: Python<'_>) -> PyResult<()> {
    keep_dead::<C>(py);
    let class = py.get_type::<C>();
    let parse = ffi::PyMethodDef {
        ml_name: c"parse".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: parse::<C> },
        ml_flags: ffi::METH_O,
        ml_doc: documentation(class.as_any(), "parse", "(text, /)")?.as_ptr(),
    };
    // SAFETY: the definition is leaked, as the interpreter requires; the class is ours and not in use yet.
    unsafe {
        let function = ffi::PyCFunction_NewEx(Box::leak(Box::new(parse)), std::ptr::null_mut(), std::ptr::null_mut());
        let function = Bound::from_owned_ptr_or_err(py, function)?;
        let function = Bound::from_owned_ptr_or_err(py, ffi::PyStaticMethod_New(function.as_ptr()))?;
        class.setattr("parse", function)?;
        (*class.as_type_ptr()).tp_str = Some(str::<C>);
        ffi::PyType_Modified(class.as_type_ptr());
    }
    Ok(())
}

/// Gives an ID class a property.
pub fn install_field<C: Class>(py: Python<'_>, name: &str, field: Field, says: &str) -> PyResult<()> {
    let class = py.get_type::<C>();
    let [text, doc] = [name, says].map(|text| CString::new(text).unwrap_or_default().into_raw());
    let property = ffi::PyGetSetDef {
        name: text,
        get: Some(get_field::<C>),
        set: None,
        doc,
        closure: Box::into_raw(Box::new(field)).cast(),
    };
    // SAFETY: the definition and what it points to are leaked, as the interpreter requires; the class is ours and not in use
    // yet.
    unsafe {
        let descriptor = ffi::PyDescr_NewGetSet(class.as_type_ptr(), Box::leak(Box::new(property)));
        class.setattr(name, Bound::from_owned_ptr_or_err(py, descriptor)?)
    }
}

unsafe extern "C" fn get_field<C: Class>(id: *mut ffi::PyObject, field: *mut c_void) -> *mut ffi::PyObject {
    guarded(|py| {
        // SAFETY: the descriptor has checked that this is an object of class C; the closure is what `install_field` leaked.
        let (id, field) =
            unsafe { (Borrowed::from_ptr(py, id).cast_unchecked::<C>(), *field.cast::<Field>().cast_const()) };
        fields::get(py, id.get(), field).map(Py::into_ptr)
    })
}

/// Gives a class the signature that `inspect.signature` finds.
pub fn sign<T: PyTypeInfo>(py: Python<'_>, signature: &str) -> PyResult<()> {
    let class = py.get_type::<T>();
    let text = format!("{}{signature}\n--\n\n", class.name()?);
    let text = CString::new(text).map_err(|_| PySystemError::new_err("a signature holds a NUL"))?;
    // SAFETY: the text is leaked, as the class is never freed; that is ours and not in use yet. Its docstring is elsewhere.
    unsafe { (*class.as_type_ptr()).tp_doc = text.into_raw() };
    Ok(())
}

/// Puts raw methods in the place of a generator class's own.
pub fn install_generator<G: Mints>(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<G>();
    let signature = if G::HAS_META { "($self, /, meta=0)" } else { "($self, /)" };
    let name = G::NEW.to_str().unwrap_or_default();
    let new = ffi::PyMethodDef {
        ml_name: G::NEW.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: new::<G> },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: documentation(class.as_any(), name, signature)?.as_ptr(),
    };
    // SAFETY: the definition is leaked, as the interpreter requires; the class is ours and not in use yet.
    unsafe {
        let descriptor = ffi::PyDescr_NewMethod(class.as_type_ptr(), Box::leak(Box::new(new)));
        class.setattr(name, Bound::from_owned_ptr_or_err(py, descriptor)?)?;
        (*class.as_type_ptr()).tp_iternext = Some(next::<G>);
        ffi::PyType_Modified(class.as_type_ptr());
    }
    Ok(())
}

/// A generator's `new` as a function of a module, which has a name of its own there: so it can be pickled, and named in a
/// migration. The generator lives for ever.
pub fn function_of_module<'py, G: OfModule>(generator: &Bound<'py, G>, module: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = generator.py();
    let signature = if G::HAS_META { "(meta=0)" } else { "()" };
    let new = ffi::PyMethodDef {
        ml_name: G::NEW.as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: new_of_module::<G> },
        ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
        ml_doc: documentation(py.get_type::<G>().as_any(), G::NEW.to_str().unwrap_or_default(), signature)?.as_ptr(),
    };
    G::of_module().store(generator.clone().into_ptr(), Ordering::Relaxed);
    let module = PyString::new(py, module);
    // SAFETY: the definition is leaked, as the interpreter requires.
    unsafe {
        let function = ffi::PyCFunction_NewEx(Box::leak(Box::new(new)), std::ptr::null_mut(), module.as_ptr());
        Bound::from_owned_ptr_or_err(py, function)
    }
}

/// The docstring of the method being replaced, in the interpreter's form with a signature.
fn documentation(class: &Bound<'_, PyAny>, method: &str, signature: &str) -> PyResult<&'static CStr> {
    let text: Option<String> = class.getattr(method)?.getattr("__doc__")?.extract()?;
    let text = format!("{method}{signature}\n--\n\n{}\0", text.unwrap_or_default());
    CStr::from_bytes_with_nul(Box::leak(text.into_boxed_str()).as_bytes())
        .map_err(|_| PySystemError::new_err("a docstring holds a NUL"))
}

// ------------------------------------------------------------------------------------------------------------ buffers

/// What the items of a buffer must be. Anything may be written over plain bytes; nothing but this over items of a type,
/// or an object's address would become an ID.
#[derive(Clone, Copy)]
pub enum Items {
    /// Bytes, or void items of so many, an ID each.
    Ids(usize),
    /// Bytes, or strings of so many, a text each.
    Texts(usize),
    /// Integers of 64 bits in this machine's byte order, or bytes.
    Words {
        /// Whether the values fit signed ones.
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

    /// Whether items of a format, in the notation of Python's struct module, are these.
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

    /// In words.
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

    /// How many bytes.
    pub fn len(&self) -> usize {
        self.0.len_bytes()
    }

    /// A copy.
    pub fn to_vec(&self, _: Python<'_>) -> Vec<u8> {
        let len = self.len();
        if len == 0 {
            return Vec::new();
        }
        // SAFETY: the view keeps its memory alive and of fixed size; the GIL is held, and no Python runs meanwhile.
        unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast::<u8>(), len) }.to_vec()
    }
}

impl Writable {
    /// A buffer for whole items.
    pub fn new(object: &Bound<'_, PyAny>, items: Items) -> PyResult<Self> {
        Self::whole(object, items, items.size())
    }

    /// A buffer of exactly so many bytes.
    pub fn exactly(object: &Bound<'_, PyAny>, items: Items, bytes: usize) -> PyResult<Self> {
        let buffer = Self::whole(object, items, 1)?;
        if buffer.0.len_bytes() != bytes {
            let message = format!("buffer has {} bytes, needs {bytes}", buffer.0.len_bytes());
            return Err(errors::config(object.py(), "config.buffer", &message));
        }
        Ok(buffer)
    }

    fn whole(object: &Bound<'_, PyAny>, items: Items, size: usize) -> PyResult<Self> {
        let buffer = items.of(object, "buffer")?;
        let py = object.py();
        if buffer.readonly() {
            return Err(errors::config(py, "config.buffer", "buffer is read-only"));
        }
        let bytes = buffer.len_bytes();
        if !bytes.is_multiple_of(size) {
            let message = format!("buffer has {bytes} bytes, which is no multiple of an ID's {size}");
            return Err(errors::config(py, "config.buffer", &message));
        }
        Ok(Self(buffer, items))
    }
}

/// Fills a buffer with IDs that `write` mints, some thousands at a time, and returns how many.
///
/// Minting may wait with the GIL released, and other threads then see the buffer: so it is written only in between.
pub fn fill(target: &Writable, mut write: impl FnMut(&mut [u8]) -> PyResult<()>) -> PyResult<usize> {
    const IDS: usize = 2048;
    let (bytes, size) = (target.0.len_bytes(), target.1.size());
    let mut chunk = vec![0; bytes.min(IDS * size)];
    let mut done = 0;
    while done < bytes {
        let part = (bytes - done).min(chunk.len());
        write(&mut chunk[..part])?;
        // SAFETY: `done + part` is within the buffer, which the view keeps alive, writable and of fixed size; the GIL is
        // held.
        unsafe {
            let to = target.0.buf_ptr().cast::<u8>().add(done);
            to.copy_from_nonoverlapping(chunk.as_ptr(), part);
        }
        done += part;
    }
    Ok(bytes / size)
}

/// Runs a codec from one buffer to another; buffers that overlap are copied first.
pub fn transform<T>(
    py: Python<'_>,
    source: &Readable,
    target: &Writable,
    run: impl FnOnce(&[u8], &mut [u8]) -> T,
) -> T {
    let (from, to) = (source.0.buf_ptr().cast::<u8>().cast_const(), target.0.buf_ptr().cast::<u8>());
    let (from_len, to_len) = (source.0.len_bytes(), target.0.len_bytes());
    if from_len == 0 || to_len == 0 {
        return run(&[], &mut []);
    }
    let apart = from.addr() + from_len <= to.addr() || to.addr() + to_len <= from.addr();
    // SAFETY: the views keep both alive and of fixed size; they do not overlap where both are borrowed; the GIL is held
    // and the codec runs no Python, so nobody else touches them.
    unsafe {
        let target = std::slice::from_raw_parts_mut(to, to_len);
        if apart { run(std::slice::from_raw_parts(from, from_len), target) } else { run(&source.to_vec(py), target) }
    }
}

/// An array that lends the bytes it is made of.
pub trait Lends: PyClass<Frozen = True> + PyTypeInfo + Sync {
    /// Those bytes.
    fn bytes(&self) -> &Py<PyBytes>;
}

unsafe extern "C" fn get_buffer<A: Lends>(array: *mut ffi::PyObject, view: *mut ffi::Py_buffer, flags: c_int) -> c_int {
    // SAFETY: the slot of class A, called with the GIL held; the view keeps the bytes alive by its own reference.
    unsafe {
        let array = Borrowed::from_ptr(Python::assume_attached(), array).cast_unchecked::<A>();
        ffi::PyObject_GetBuffer(array.get().bytes().as_ptr(), view, flags)
    }
}

/// Gives an array class the buffer protocol.
pub fn install_array<A: Lends>(py: Python<'_>) {
    // SAFETY: a class made at run time has a buffer table of its own; this one is ours and not in use yet.
    unsafe { (*(*A::type_object_raw(py)).tp_as_buffer).bf_getbuffer = Some(get_buffer::<A>) };
}
