//! Python values in, checked; Python values out.

use crate::{errors, hot, kernel};
use chrono::{Datelike, Timelike};
use mintage_core::error::Error;
use mintage_core::units::{UnixMs, UnixNs};
use pyo3::Borrowed;
use pyo3::exceptions::{PyIndexError, PyOverflowError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDateTime, PyDelta, PyDeltaAccess, PyInt, PyString, PyTzInfo, PyTzInfoAccess};

/// An argument with a default. None is a value, and not the default.
pub struct Defaulted<'py>(Option<Bound<'py, PyAny>>);

impl<'py> Defaulted<'py> {
    /// The argument was left out.
    pub const OUT: Self = Self(None);

    /// An argument that was passed.
    pub fn of(value: Bound<'py, PyAny>) -> Self {
        Self(Some(value))
    }

    /// The argument that was passed, if any.
    pub fn given(&self) -> Option<&Bound<'py, PyAny>> {
        self.0.as_ref()
    }
}

impl<'py> FromPyObject<'_, 'py> for Defaulted<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(Some(object.to_owned())))
    }
}

/// A text as `format` makes it: an ID is padded and aligned as its text is.
pub fn formatted<'py>(text: Bound<'py, PyString>, format_spec: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
    if format_spec.len()? == 0 { Ok(text.into_any()) } else { text.call_method1("__format__", (format_spec,)) }
}

/// The int of anything that counts as an integral ID: see `integer_of`, which decides for the adapters too.
pub fn integer<'py>(value: &Bound<'py, PyAny>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    if value.is_exact_instance_of::<PyInt>() {
        return Ok(value.clone());
    }
    static INTEGER_OF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let found = INTEGER_OF.import(value.py(), "mintage.formats.values", "integer_of")?.call1((value,))?;
    if found.is_none() { Err(errors::argument(name, "an int", value)) } else { Ok(found) }
}

/// A whole number within `min..=max`; `raise` makes the error from the number in words.
pub fn bounded(
    value: &Bound<'_, PyAny>,
    what: &str,
    min: i128,
    max: u128,
    raise: impl FnOnce(String) -> Error,
) -> PyResult<u128> {
    // Anything with `__index__` counts as an int, numpy's integers among them.
    if value.cast::<PyInt>().is_err() && !value.hasattr("__index__")? {
        return Err(errors::argument(what, "an int", value));
    }
    let words = match value.extract::<i128>() {
        Ok(n) if n >= min && (n < 0 || n as u128 <= max) => return Ok(n as u128),
        Ok(n) => n.to_string(),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => large(value)?,
        Err(error) => return Err(error),
    };
    Err(errors::value(raise(words)))
}

/// An int that no machine word holds, in words.
fn large(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let number = value.py().import("operator")?.call_method1("index", (value,))?;
    let bits: u64 = number.call_method0("bit_length")?.extract()?;
    // Python refuses to print an int of thousands of digits, and so does the message.
    if bits <= 256 { number.str()?.extract() } else { Ok(format!("of {bits} bits")) }
}

/// A whole number within `min..=max`.
pub fn within(value: &Bound<'_, PyAny>, name: &str, min: i128, max: u128) -> PyResult<u128> {
    bounded(value, name, min, max, |value| Error::range(name, value, min, max))
}

/// A field's value within `0..=max`.
pub fn field(value: &Bound<'_, PyAny>, name: &str, max: u128) -> PyResult<u128> {
    within(value, name, 0, max)
}

/// A number of a generator's configuration within `0..=max`.
fn configured(value: &Bound<'_, PyAny>, name: &str, max: u64, code: &'static str) -> PyResult<u64> {
    let wrong = |value| Error::Range { code, field: name.into(), value, min: 0, max: max.into() };
    bounded(value, name, 0, max.into(), wrong).map(|n| n as u64)
}

/// An optional field's value.
pub fn field_or<T: TryFrom<u128>>(value: Option<&Bound<'_, PyAny>>, name: &str, max: T, default: T) -> PyResult<T>
where
    u128: From<T>,
{
    match value {
        Some(value) => Ok(T::try_from(field(value, name, max.into())?).unwrap_or(default)),
        None => Ok(default),
    }
}

/// A node number within `0..=max`. Errors name it by the scheme's own term.
pub fn node(value: &Bound<'_, PyAny>, term: &str, max: u64) -> PyResult<u64> {
    configured(value, term, max, "config.node")
}

/// A whole number of any sign that fits 127 bits.
pub fn signed(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i128> {
    within(value, name, i128::MIN, i128::MAX as u128).map(|n| n as i128)
}

/// A whole number of any size; one of more than 127 bits becomes the nearest of 127.
pub fn saturated(value: &Bound<'_, PyAny>, name: &str) -> PyResult<i128> {
    match value.extract::<i128>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
            Ok(if value.lt(0)? { i128::MIN } else { i128::MAX })
        }
        _ => signed(value, name),
    }
}

/// The big-endian bytes of a whole number of 0 or more; 20 bytes at most.
pub fn unsigned_bytes(value: &Bound<'_, PyAny>, name: &str, size: usize) -> PyResult<Vec<u8>> {
    if size > 16 {
        let (py, wrong) = (value.py(), |value| Error::Wide { field: name.into(), value, bits: 8 * size as u32 });
        if value.cast::<PyInt>().is_err() && !value.hasattr("__index__")? {
            return Err(errors::argument(name, "an int", value));
        }
        let number = py.import("operator")?.call_method1("index", (value,))?;
        return match number.call_method1("to_bytes", (size, "big")) {
            Ok(bytes) => Ok(bytes.cast::<PyBytes>()?.as_bytes().to_vec()),
            Err(error) if error.is_instance_of::<PyOverflowError>(py) => Err(errors::value(wrong(large(value)?))),
            Err(error) => Err(error),
        };
    }
    let max = u128::MAX >> (128 - 8 * size);
    // An int of 128 bits does not fit `i128`, which needs one bit for the sign.
    let number = match value.extract::<u128>() {
        Ok(number) if number <= max => number,
        _ => field(value, name, max)?,
    };
    Ok(number.to_be_bytes()[16 - size..].to_vec())
}

/// The int of big-endian bytes.
pub fn int<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    if bytes.len() > 16 {
        return py.get_type::<PyInt>().call_method1("from_bytes", (PyBytes::new(py, bytes), "big"));
    }
    let number = bytes.iter().fold(0_u128, |number, &byte| number << 8 | u128::from(byte));
    Ok(number.into_pyobject(py)?.into_any())
}

/// The number of milliseconds that a generator may wait.
pub fn max_wait_ms(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    configured(value, "max_wait_ms", u32::MAX.into(), "config.wait")
}

/// Text.
pub fn text<'a>(value: &'a Bound<'_, PyAny>, what: &str) -> PyResult<std::borrow::Cow<'a, str>> {
    let string = value.cast::<PyString>().map_err(|_| errors::argument(what, "str", value))?;
    if let Ok(text) = string.to_str() {
        return Ok(text.into());
    }
    // Lone surrogates have no UTF-8 form; each becomes a question mark, which no alphabet has.
    let bytes = string.call_method1("encode", ("utf-8", "replace"))?;
    Ok(String::from_utf8_lossy(bytes.cast::<PyBytes>()?.as_bytes()).into_owned().into())
}

/// The bytes of a buffer with items of this kind.
pub fn bytes<'py>(value: &Bound<'py, PyAny>, what: &str, items: hot::Items) -> PyResult<Bound<'py, PyBytes>> {
    match value.cast_exact::<PyBytes>() {
        Ok(bytes) => Ok(bytes.clone()),
        Err(_) => hot::Readable::new(value, what, items)?.to_bytes(value.py()),
    }
}

/// A time: an aware datetime, or an int of nanoseconds since the Unix epoch.
pub fn time(value: &Bound<'_, PyAny>) -> PyResult<UnixNs> {
    if value.is_instance_of::<PyDateTime>() {
        return aware(value, "time");
    }
    if value.cast::<PyInt>().is_err() && !value.hasattr("__index__")? {
        return Err(errors::argument("time", "an aware datetime or an int of nanoseconds", value));
    }
    saturated(value, "time").map(UnixNs)
}

/// The time of an aware datetime.
pub fn aware(value: &Bound<'_, PyAny>, name: &str) -> PyResult<UnixNs> {
    let py = value.py();
    let datetime = value.cast::<PyDateTime>().map_err(|_| errors::argument(name, "an aware datetime", value))?;
    if datetime.get_tzinfo().is_none() || datetime.call_method0("utcoffset")?.is_none() {
        let message = format!("{name} {} has no time zone", datetime.str()?);
        return Err(errors::field(py, "time.naive", &message));
    }
    let delta = datetime.sub(epoch(py)?)?;
    let delta = delta.cast::<PyDelta>()?;
    let seconds = i128::from(delta.get_days()) * 86_400 + i128::from(delta.get_seconds());
    Ok(UnixNs((seconds * 1_000_000 + i128::from(delta.get_microseconds())) * 1_000))
}

fn epoch(py: Python<'_>) -> PyResult<Bound<'_, PyDateTime>> {
    static EPOCH: PyOnceLock<Py<PyDateTime>> = PyOnceLock::new();
    EPOCH.get_or_try_init(py, || datetime(py, UnixMs(0)).map(Bound::unbind)).map(|epoch| epoch.bind(py).clone())
}

/// An aware UTC datetime.
pub fn datetime(py: Python<'_>, ms: UnixMs) -> PyResult<Bound<'_, PyDateTime>> {
    let out_of_range =
        || errors::field(py, "time.range", &format!("time {ms} is outside what a datetime can hold (years 1..9999)"));
    datetime_ns(py, ms.start_ns()).ok_or_else(out_of_range)
}

/// An aware UTC datetime, floored to microseconds; `None` outside the years 1 to 9999.
pub fn datetime_ns(py: Python<'_>, ns: UnixNs) -> Option<Bound<'_, PyDateTime>> {
    let (at, utc) = (ns.utc()?, PyTzInfo::utc(py).ok()?);
    let [month, day, hour, minute, second] =
        [at.month(), at.day(), at.hour(), at.minute(), at.second()].map(|part| part as u8);
    let micros = at.timestamp_subsec_micros();
    PyDateTime::new(py, at.year(), month, day, hour, minute, second, micros, Some(&utc)).ok()
}

/// `datetime.max`, aware: the result for an instant after the year 9999.
pub fn datetime_or_max(py: Python<'_>, ms: UnixMs) -> PyResult<Bound<'_, PyDateTime>> {
    datetime(py, ms)
        .or_else(|_| PyDateTime::new(py, 9999, 12, 31, 23, 59, 59, 999_999, Some(&PyTzInfo::utc(py)?.to_owned())))
}

/// The bytes of a `uuid.UUID`.
pub fn uuid_bytes(value: &Bound<'_, PyAny>) -> PyResult<[u8; 16]> {
    if value.is_instance(&hot::uuid_type(value.py())?)? {
        if let Ok(bytes) = value.getattr("bytes")?.extract::<[u8; 16]>() {
            return Ok(bytes);
        }
    }
    Err(errors::argument("value", "a uuid.UUID", value))
}

/// A `uuid.UUID` of these bytes.
pub fn uuid(py: Python<'_>, bytes: [u8; 16]) -> PyResult<Bound<'_, PyAny>> {
    hot::uuid(py, u128::from_be_bytes(bytes))
}

/// Random bits for a node number or a counter that was not given.
pub fn random(py: Python<'_>) -> PyResult<u64> {
    let mut bytes = [0; 8];
    draw(py, &mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Fills `bytes` with random bits of the kernel.
pub fn draw(py: Python<'_>, bytes: &mut [u8]) -> PyResult<()> {
    kernel::random(bytes).map_err(|error| {
        errors::generation(py, "system.random", &format!("the system has no randomness: {error}"), None)
    })
}

/// Refuses a length that is no multiple of an item's.
pub fn check_multiple(actual: usize, size: usize, what: &'static str, unit: &'static str) -> PyResult<()> {
    if actual % size == 0 {
        return Ok(());
    }
    let expected = actual.next_multiple_of(size);
    Err(errors::value(Error::Length { what, actual, expected, unit }))
}

/// The number of IDs that a caller asks for: 0 to 2^31 - 1.
pub fn count(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    field(value, "n", i32::MAX as u128).map(|n| n as usize)
}

/// Reads one of the known words; the default is the first.
pub fn policy<T: Copy>(value: Option<&Bound<'_, PyAny>>, what: &str, known: &[(&str, T)]) -> PyResult<T> {
    let Some(value) = value else { return Ok(known[0].1) };
    let text = text(value, what)?;
    known.iter().find(|(name, _)| *name == text).map(|&(_, policy)| policy).ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|(name, _)| format!("'{name}'")).collect();
        let shown: String = text.chars().take(40).collect();
        let message = format!("{what} {shown:?} is not one of {}", names.join(", "));
        errors::config(value.py(), "config.policy", &message)
    })
}

/// Reads packed text: a buffer of ASCII, or a str. In a str any other character becomes a question mark, which no
/// alphabet has.
pub fn characters<'py>(value: &Bound<'py, PyAny>, size: usize) -> PyResult<Bound<'py, PyBytes>> {
    if !value.is_instance_of::<PyString>() {
        return bytes(value, "text", hot::Items::Texts(size));
    }
    // Of the class, as a subclass may have another method.
    let encoded = value.py().get_type::<PyString>().call_method1("encode", (value, "ascii", "replace"))?;
    Ok(encoded.cast_into()?)
}

/// Reads an index into `count` items. As in a list, a negative one counts from the end.
pub fn index(index: &Bound<'_, PyAny>, count: usize) -> PyResult<usize> {
    let at = index.extract::<isize>();
    if let Err(error) = &at {
        if !error.is_instance_of::<PyOverflowError>(index.py()) {
            return Err(at.unwrap_err());
        }
    }
    at.ok()
        .map(|at| if at < 0 { at + count as isize } else { at })
        .and_then(|at| usize::try_from(at).ok())
        .filter(|&at| at < count)
        .ok_or_else(|| PyIndexError::new_err(format!("index is outside an Array of {count}")))
}
