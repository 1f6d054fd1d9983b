//! Raw C functions in place of PyO3's methods, and the code that installs them.

use super::READ_GENERATOR;
use super::free::{Object, Recycled, object, recycle};
use mintage_core::codec::as_chunks;
use mintage_core::id::Id;
use pyo3::exceptions::{PySystemError, PyTypeError};
use pyo3::ffi;
use pyo3::impl_::trampoline::{MethodDef, noargs};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::PyString;
use pyo3::{Borrowed, PyClass, PyTypeInfo};
use std::ffi::{CStr, CString, c_void};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A generator, as its raw methods see it.
pub trait Mints: PyClass<Frozen = True> + PyTypeInfo + Sync {
    /// An ID on its way to its object.
    type Minted;
    /// True if `new` takes a metabyte.
    const HAS_META: bool;
    /// Reads a metabyte.
    fn meta(_: &Bound<'_, PyAny>) -> PyResult<u8> {
        Ok(0)
    }
    /// The metabyte of a call that gives none.
    #[inline(always)]
    fn default_meta(&self) -> u8 {
        0
    }
    /// The ID for a hot call; `None` for a call that must take the slow path.
    fn fast(&self, py: Python<'_>, meta: u8) -> Option<Self::Minted>;
    /// The name of the method that mints one.
    const NEW: &'static CStr = c"new";
    /// The ID for any other call: waits, advances or refuses.
    fn slow(generator: &Bound<'_, Self>, meta: u8) -> PyResult<Self::Minted>;
    /// The object of an ID.
    fn object(py: Python<'_>, minted: Self::Minted) -> Object;
}

/// A new object of the next ID of a generator, on the slow path: for the methods that PyO3 makes.
pub fn new_object_slow<G: Mints>(generator: &Bound<'_, G>, meta: u8) -> PyResult<Py<PyAny>> {
    let minted = G::slow(generator, meta)?;
    // SAFETY: a new object of ours, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(generator.py(), G::object(generator.py(), minted)).map(Bound::unbind) }
}

/// The next ID of a generator, on the fast path where that is open.
pub fn mint_fast<G: Mints>(generator: &Bound<'_, G>, meta: u8) -> PyResult<G::Minted> {
    generator.get().fast(generator.py(), meta).map_or_else(|| G::slow(generator, meta), Ok)
}

/// A new object of the next ID of a generator, on the fast path where that is open.
pub fn new_object<G: Mints>(generator: &Bound<'_, G>, meta: u8) -> PyResult<Py<PyAny>> {
    let (py, minted) = (generator.py(), mint_fast(generator, meta)?);
    // SAFETY: a new object of ours, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, G::object(py, minted)).map(Bound::unbind) }
}

/// A class of generators, one of which a module's function `new` uses.
pub trait OfModule: Mints {
    /// That generator; null until the module is imported.
    fn of_module() -> &'static AtomicPtr<ffi::PyObject>;
}

/// The generator that a module's function `new` uses, if there is one.
#[inline(always)]
pub fn generator_of_module<G: OfModule>(py: Python<'_>) -> Option<Borrowed<'_, '_, G>> {
    let generator = G::of_module().load(READ_GENERATOR);
    // SAFETY: an object of class G is there, which is never freed.
    (!generator.is_null()).then(|| unsafe { Borrowed::from_ptr(py, generator).cast_unchecked::<G>() })
}

#[inline(always)]
unsafe fn mint<G: Mints>(generator: *mut ffi::PyObject, meta: Option<u8>) -> *mut ffi::PyObject {
    // SAFETY: called by the interpreter while attached and an object of class G.
    unsafe {
        let py = Python::assume_attached();
        let generator = Borrowed::from_ptr(py, generator).cast_unchecked::<G>();
        let meta = meta.unwrap_or_else(|| generator.get().default_meta());
        match generator.get().fast(py, meta) {
            Some(minted) => G::object(py, minted),
            None => mint_slowly(&generator, meta),
        }
    }
}

#[cold]
#[inline(never)]
unsafe fn mint_slowly<G: Mints>(generator: &Bound<'_, G>, meta: u8) -> *mut ffi::PyObject {
    // SAFETY: called by `mint`.
    unsafe { guarded(|py| G::slow(generator, meta).map(|minted| G::object(py, minted))) }
}

/// Runs Rust code that may fail or panic, and leaves the exception to the interpreter.
///
/// It uses a trampoline of PyO3, as PyO3's methods do. So PyO3 counts this thread as attached, and inner code does not
/// attach again. `Python::attach` would ask for the first thread state of this thread, which is not the one that runs in a
/// sub-interpreter: it would wait for itself.
///
/// # Safety
/// Called by the interpreter while attached.
pub(super) unsafe fn guarded<F>(run: F) -> *mut ffi::PyObject
where
    F: FnOnce(Python<'_>) -> PyResult<*mut ffi::PyObject>,
{
    struct Once<F>(PhantomData<F>);

    impl<F: FnOnce(Python<'_>) -> PyResult<*mut ffi::PyObject>> MethodDef<noargs::Func> for Once<F> {
        const METH: noargs::Func = call::<F>;
    }

    unsafe fn call<F>(py: Python<'_>, run: *mut ffi::PyObject) -> PyResult<*mut ffi::PyObject>
    where
        F: FnOnce(Python<'_>) -> PyResult<*mut ffi::PyObject>,
    {
        // SAFETY: what `guarded` passes, once.
        (unsafe { ManuallyDrop::take(&mut *run.cast::<ManuallyDrop<F>>()) })(py)
    }

    let mut run = ManuallyDrop::new(run);
    // SAFETY: the interpreter is attached; the trampoline hands its first argument on as it is, once.
    unsafe { noargs::<Once<F>>((&raw mut run).cast(), std::ptr::null_mut()) }
}

unsafe extern "C" fn next<G: Mints>(generator: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the slot of class G.
    unsafe { mint::<G>(generator, None) }
}

unsafe extern "C" fn new<G: Mints>(
    generator: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    if count == 0 && names.is_null() {
        // SAFETY: the descriptor has checked that this is an object of class G.
        return unsafe { mint::<G>(generator, None) };
    }
    let run = |py: Python<'_>| {
        // SAFETY: the interpreter passes `count` positional arguments, and then a value for each of the names.
        let (args, names) = unsafe {
            let names = Bound::from_borrowed_ptr_or_opt(py, names);
            let named = names.as_ref().map_or(Ok(0), |names| names.len())?;
            let args = std::slice::from_raw_parts(args, count as usize + named);
            (args.iter().map(|&arg| Bound::from_borrowed_ptr(py, arg)).collect::<Vec<_>>(), names)
        };
        let name = G::NEW.to_str().unwrap_or_default();
        let meta = G::meta(meta_argument(name, &args, count as usize, names.as_ref(), G::HAS_META)?)?;
        // SAFETY: as above.
        Ok(unsafe { mint::<G>(generator, Some(meta)) })
    };
    // SAFETY: called by the interpreter while attached.
    unsafe { guarded(run) }
}

unsafe extern "C" fn new_of_module<G: OfModule>(
    _: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    count: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: an object of class G is there, which is never freed. The rest is as the interpreter passed it.
    unsafe { new::<G>(G::of_module().load(READ_GENERATOR), args, count, names) }
}

/// The argument of `method(meta=0)`, or the interpreter's usual error.
fn meta_argument<'a, 'py>(
    method: &str,
    args: &'a [Bound<'py, PyAny>],
    positional: usize,
    names: Option<&Bound<'py, PyAny>>,
    allowed: bool,
) -> PyResult<&'a Bound<'py, PyAny>> {
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
        [meta] if allowed => Ok(meta),
        _ if positional <= most => {
            Err(PyTypeError::new_err(format!("{method}() got multiple values for argument 'meta'")))
        }
        _ => Err(PyTypeError::new_err(format!("{method}() takes at most {most} arguments ({} given)", args.len()))),
    }
}

/// A class of IDs, as its raw methods see it.
pub trait IdClass: Recycled {
    /// The ID of the core.
    type Id: Id;
    /// The value of an object.
    fn of(id: Self::Id) -> Self;
    /// The ID of the core.
    fn id(&self) -> Self::Id;
    /// Parse any text, or raise the error.
    fn parse_slow(text: &Bound<'_, PyAny>) -> PyResult<Self>;
}

unsafe extern "C" fn parse<C: IdClass>(_: *mut ffi::PyObject, text: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: called by the interpreter while attached and one object; the text's bytes are read at once.
    unsafe {
        if ffi::PyUnicode_CheckExact(text) != 0 && ffi::PyUnicode_GET_LENGTH(text) as usize == C::Id::TEXT {
            let mut bytes = 0;
            // The str's own bytes if it is ASCII; otherwise more bytes than characters.
            let characters = ffi::PyUnicode_AsUTF8AndSize(text, &mut bytes);
            if characters.is_null() {
                ffi::PyErr_Clear(); // a surrogate, or no memory: the slow path raises
            } else if bytes as usize == C::Id::TEXT {
                if let Ok(id) = C::Id::decode(std::slice::from_raw_parts(characters.cast(), C::Id::TEXT)) {
                    return object(Python::assume_attached(), C::of(id));
                }
            }
        }
    }
    // SAFETY: as above.
    unsafe { guarded(|py| Ok(object(py, C::parse_slow(&Bound::from_borrowed_ptr(py, text))?))) }
}

unsafe extern "C" fn str<C: IdClass>(id: *mut ffi::PyObject) -> *mut ffi::PyObject {
    // SAFETY: the slot of class C, called while attached.
    unsafe {
        let py = Python::assume_attached();
        let id = Borrowed::from_ptr(py, id).cast_unchecked::<C>();
        new_ascii(id.get().id().to_text().as_ref())
    }
}

/// A new str of ASCII bytes; null with an exception set if there is no memory.
///
/// # Safety
/// The interpreter is attached and the bytes are ASCII.
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
    // SAFETY: the token says that the interpreter is attached; generators write ASCII.
    unsafe { new_ascii(text) }
}

/// A str of what a codec wrote, which is always ASCII.
pub fn ascii<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyString>> {
    debug_assert!(text.is_ascii());
    // SAFETY: the token says that the interpreter is attached; codecs write ASCII.
    unsafe { Bound::from_owned_ptr_or_err(py, new_ascii(text)).map(|string| string.cast_into_unchecked()) }
}

/// A hash that spreads the bits of an ID; -1 means an error to the interpreter.
#[inline(always)]
pub fn hash(id: &[u8]) -> isize {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let (rest, words) = id.split_at(id.len() % 8);
    let first = rest.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
    let words = as_chunks(words).0;
    let mixed =
        words.iter().fold(first, |mixed, word| mixed ^ u64::from_be_bytes(*word).wrapping_mul(ODD).rotate_left(23));
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(ODD);
    let hash = (mixed ^ mixed >> 29) as isize;
    if hash == -1 { -2 } else { hash }
}

/// Replaces methods of an ID class by raw ones, and reuses its freed objects.
pub fn install_id<C: IdClass>(py: Python<'_>) -> PyResult<()> {
    recycle::<C>(py);
    let class = py.get_type::<C>();
    let parse = ffi::PyMethodDef {
        ml_name: c"parse".as_ptr(),
        ml_meth: ffi::PyMethodDefPointer { PyCFunction: parse::<C> },
        ml_flags: ffi::METH_O,
        ml_doc: documentation(class.as_any(), "parse", "(text, /)")?.as_ptr(),
    };
    let function = builtin(py, parse, None)?;
    // SAFETY: the class is ours and not in use yet.
    unsafe {
        let function = Bound::from_owned_ptr_or_err(py, ffi::PyStaticMethod_New(function.as_ptr()))?;
        class.setattr("parse", function)?;
        (*class.as_type_ptr()).tp_str = Some(str::<C>);
        ffi::PyType_Modified(class.as_type_ptr());
    }
    Ok(())
}

/// A property that the objects of a class have.
pub trait Property<C>: Copy + 'static {
    /// The value of the property in an object.
    fn get(self, py: Python<'_>, object: &C) -> PyResult<Py<PyAny>>;
}

/// Gives a class a property.
pub fn install_property<C: Recycled, P: Property<C>>(
    py: Python<'_>,
    name: &str,
    property: P,
    doc: &str,
) -> PyResult<()> {
    let class = py.get_type::<C>();
    let [text, doc] = [name, doc].map(|text| CString::new(text).unwrap_or_default().into_raw());
    let definition = ffi::PyGetSetDef {
        name: text,
        get: Some(get_property::<C, P>),
        set: None,
        doc,
        closure: Box::into_raw(Box::new(property)).cast(),
    };
    // SAFETY: the definition and what it points to are leaked, as the interpreter requires; the class is ours and not in use
    // yet.
    unsafe {
        let descriptor = ffi::PyDescr_NewGetSet(class.as_type_ptr(), Box::leak(Box::new(definition)));
        class.setattr(name, Bound::from_owned_ptr_or_err(py, descriptor)?)
    }
}

unsafe extern "C" fn get_property<C: Recycled, P: Property<C>>(
    object: *mut ffi::PyObject,
    property: *mut c_void,
) -> *mut ffi::PyObject {
    // SAFETY: called by the interpreter while attached. The descriptor has checked that this is an object of class C; the
    // closure is what `install_property` leaked.
    unsafe {
        guarded(|py| {
            let object = Borrowed::from_ptr(py, object).cast_unchecked::<C>();
            (*property.cast::<P>()).get(py, object.get()).map(Py::into_ptr)
        })
    }
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

/// Replaces methods of a generator class by raw ones.
pub fn install_generator<G: Mints>(py: Python<'_>) -> PyResult<()> {
    let class = py.get_type::<G>();
    let signature = if G::HAS_META { "($self, /, meta=...)" } else { "($self, /)" };
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
    G::of_module().store(generator.clone().into_ptr(), Ordering::Release);
    builtin(py, new, Some(module))
}

/// A function in C, of the module of a name.
pub(super) fn builtin<'py>(
    py: Python<'py>,
    definition: ffi::PyMethodDef,
    module: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let module = module.map_or(std::ptr::null_mut(), |name| PyString::new(py, name).into_ptr());
    // SAFETY: the definition is leaked, as the interpreter requires; and so is the name, as functions are never freed.
    unsafe {
        let function = ffi::PyCFunction_NewEx(Box::leak(Box::new(definition)), std::ptr::null_mut(), module);
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
