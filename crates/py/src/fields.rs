//! The fields of IDs, as their format declares them: getters, `from_parts` and `replace`.

use crate::hot::IdClass;
use crate::{errors, hot, values};
use mintage_core::error::Error;
use mintage_core::format::{self, Format, MS, Part, Rendering, Role, Value};
use mintage_core::id::Id;
use mintage_core::units::{UnixMs, UnixNs};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

/// A property of an ID.
#[derive(Clone, Copy)]
pub enum Field {
    /// A part's value.
    Part(&'static str),
    /// Its time, as an aware datetime.
    Time,
    /// The same in milliseconds since the Unix epoch.
    TimestampMs,
    /// The same in nanoseconds.
    TimestampNs,
}

/// The fields of a format with their docstrings: its time in three units, and its parts in order, but for those that are the
/// same in every ID.
pub fn of(format: &Format<'static>) -> Vec<(&'static str, Field, String)> {
    let mut fields = Vec::new();
    if format.clock.is_some() {
        fields.push((
            "time",
            Field::Time,
            "The time at which it was minted: an aware UTC datetime, floored to milliseconds.".into(),
        ));
        let said = |unit| format!("The time at which it was minted, in {unit} since the Unix epoch.");
        fields.push(("timestamp_ms", Field::TimestampMs, said("milliseconds")));
        fields.push(("timestamp_ns", Field::TimestampNs, said("nanoseconds")));
    }
    let is_named = |part: &&Part<'_>| part.role != Role::Fixed && !(format.clock.is_some() && part.name == "time");
    for part in format.parts.iter().filter(is_named) {
        let says = format.describe(part).unwrap_or_default();
        let unit = if part.rendering == Rendering::Hex { "as hexadecimal digits" } else { "as a number" };
        let bits = if part.bits == 1 { "1 bit".into() } else { format!("{} bits", part.bits) };
        let says = if says.is_empty() { "." } else { &format!(": {says}.") };
        fields.push((part.name, Field::Part(part.name), format!("{bits}, {unit}{says}")));
    }
    fields
}

fn placed(format: &Format<'static>, name: &str) -> Option<(&'static Part<'static>, u32)> {
    format.placed().find(|(part, _)| part.name == name)
}

/// A class of IDs that have the fields of a format.
pub trait HasFields: IdClass {
    /// Refuses an ID that has no fields of its format, as it is of another version.
    fn check_version(&self, _: &'static str) -> PyResult<()> {
        Ok(())
    }

    /// The number of a part, from a value that Python gives.
    fn number(part: &Part<'_>, value: &Bound<'_, PyAny>) -> PyResult<u128> {
        number(part, value)
    }
}

impl<C: HasFields> hot::Property<C> for Field {
    fn get(self, py: Python<'_>, id: &C) -> PyResult<Py<PyAny>> {
        let (format, bytes) = (id.id().format(), id.id().to_array());
        let missing = |name: &str| {
            let message = format!("{} {} is a {}, which has no {name}", C::Id::WHAT, id.id(), format.name());
            errors::field(py, "field.version", &message)
        };
        let ns = |name| {
            id.check_version(name)?;
            format.time_ns(bytes.as_ref()).ok_or_else(|| missing(name))
        };
        Ok(match self {
            Self::Time => values::datetime(py, UnixNs(ns("time")?).floor_ms())?.into_any().unbind(),
            Self::TimestampMs => ns("timestamp_ms")?.div_euclid(MS.into()).into_pyobject(py)?.into_any().unbind(),
            Self::TimestampNs => ns("timestamp_ns")?.into_pyobject(py)?.into_any().unbind(),
            Self::Part(name) => {
                id.check_version(name)?;
                let (part, low) = placed(&format, name).ok_or_else(|| missing(name))?;
                match part.value(low, bytes.as_ref()) {
                    Value::Number(number) => number.into_pyobject(py)?.into_any().unbind(),
                    Value::Text(text) => PyString::new(py, &text).into_any().unbind(),
                }
            }
        })
    }
}

/// Gives an ID class its fields, of all the formats that its IDs can have.
pub fn install<C: HasFields>(py: Python<'_>, formats: &[Format<'static>]) -> PyResult<()> {
    let mut known: Vec<(_, _, Vec<String>)> = Vec::new();
    for (name, field, says) in formats.iter().flat_map(of) {
        match known.iter_mut().find(|(other, ..)| *other == name) {
            Some((.., said)) if said.contains(&says) => {}
            Some((.., said)) => said.push(says),
            None => known.push((name, field, vec![says])),
        }
    }
    known.iter().try_for_each(|(name, field, said)| hot::install_property::<C, _>(py, name, *field, &said.join(" Or ")))
}

/// The ID of a format that has these fields.
pub fn from_parts<C: HasFields>(fields: Option<&Bound<'_, PyDict>>, format: Format<'static>) -> PyResult<C> {
    let mut bytes = vec![0; format.size()];
    for (part, low) in format.placed() {
        if let format::Constraint::Equals(value) = part.constraint {
            format::put_bits(&mut bytes, low, value);
        }
    }
    let is_timed = put::<C>(&format, &mut bytes, fields)?;
    if format.clock.is_some() && !is_timed {
        let message = "from_parts() needs time, timestamp_ms or timestamp_ns";
        return Err(PyTypeError::new_err(message));
    }
    Ok(C::of(C::Id::from_slice(&bytes)))
}

/// The same ID with these fields.
///
/// It refuses others than named ones: `uuid.UUID(id)` takes an ID for a text, and calls this method as that of a str.
pub fn replace<C: HasFields>(id: C, unnamed: &Bound<'_, PyTuple>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<C> {
    if !unnamed.is_empty() {
        let message = "ID.replace() takes fields by name; mintage.cast(id, uuid.UUID) returns the uuid.UUID of an ID";
        return Err(PyTypeError::new_err(message));
    }
    id.check_version("fields")?;
    let mut bytes = id.id().to_array().as_ref().to_vec();
    put::<C>(&id.id().format(), &mut bytes, fields)?;
    Ok(C::of(C::Id::from_slice(&bytes)))
}

/// Puts fields in their places; returns true if a time was among them.
fn put<C: HasFields>(format: &Format<'static>, bytes: &mut [u8], fields: Option<&Bound<'_, PyDict>>) -> PyResult<bool> {
    let mut is_timed = false;
    for (name, value) in fields.into_iter().flatten() {
        let name: String = name.extract()?;
        match (name.as_str(), format.clock) {
            ("time" | "timestamp_ms" | "timestamp_ns", Some(_)) => {
                if is_timed {
                    let message = "time, timestamp_ms and timestamp_ns are the same field: give one of them";
                    return Err(PyTypeError::new_err(message));
                }
                let ns = match name.as_str() {
                    "time" => values::aware(&value, "time")?.0,
                    "timestamp_ms" => values::saturated(&value, &name)?.saturating_mul(MS.into()),
                    _ => values::saturated(&value, &name)?,
                };
                put_time(format, bytes, ns)?;
                is_timed = true;
            }
            (name, clock) => {
                let settable =
                    |part: &Part<'_>| part.role != Role::Fixed && !(clock.is_some() && part.role == Role::Time);
                let Some((part, low)) = placed(format, name).filter(|(part, _)| settable(part)) else {
                    return Err(PyTypeError::new_err(format!("there is no field '{name}' to give")));
                };
                clear_bits(bytes, low, part.bits);
                format::put_bits(bytes, low, bits_of(part, C::number(part, &value)?));
            }
        }
    }
    Ok(is_timed)
}

fn clear_bits(bytes: &mut [u8], low: u32, bits: u32) {
    let size = bytes.len() * 8;
    for bit in low..low + bits {
        bytes[(size - 1 - bit as usize) / 8] &= !(1 << (bit % 8));
    }
}

fn put_time(format: &Format<'static>, bytes: &mut [u8], ns: i128) -> PyResult<()> {
    let Some(clock) = format.clock else { return Ok(()) };
    let mut values = format.ticks();
    let ticks = ns.saturating_sub(clock.epoch_ns).div_euclid(clock.tick_ns.into());
    let ms_at = |tick: i128| UnixNs(clock.epoch_ns + tick * i128::from(clock.tick_ns)).floor_ms();
    if !(0..values).contains(&ticks) {
        let last = UnixMs(ms_at(values).0.saturating_sub(1));
        return Err(errors::value(Error::Time { time: UnixNs(ns).floor_ms(), first: ms_at(0), last }));
    }
    for (part, low) in clock.parts.iter().filter_map(|name| placed(format, name)) {
        values /= part.values();
        clear_bits(bytes, low, part.bits);
        format::put_bits(bytes, low, (ticks / values % part.values()) as u128);
    }
    Ok(())
}

/// The bits of a part that stand for a number.
fn bits_of(part: &Part<'_>, number: u128) -> u128 {
    match part.rendering {
        // Reversing is its own inverse.
        Rendering::Reversed => (0..part.bits / 4).fold(0, |bits, i| bits << 4 | number >> (4 * i) & 0xf),
        _ => number,
    }
}

/// The number of a part, from an int, or from hexadecimal digits where it is shown as such.
pub fn number(part: &Part<'_>, value: &Bound<'_, PyAny>) -> PyResult<u128> {
    let max = u128::MAX >> (128 - part.bits);
    if part.rendering != Rendering::Hex || value.cast::<PyString>().is_err() {
        return match value.extract::<u128>() {
            Ok(number) if number <= max => Ok(number),
            _ => values::field(value, part.name, max),
        };
    }
    let (text, digits) = (values::text(value, part.name)?, part.bits.div_ceil(4) as usize);
    let is_hex = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u128::from_str_radix(&text, 16).ok().filter(|&number| is_hex && number <= max).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        let message = format!("{} {shown:?} is not {digits} hex digits of {} bits", part.name, part.bits);
        errors::field(value.py(), "field.format", &message)
    })
}
