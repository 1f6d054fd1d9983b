//! sno's IDs and arrays of them.

use crate::id::{self, bounds, id};
use crate::values::Defaulted;
use crate::{errors, fields, hot, values};
use mintage_core::codec::Base32;
use mintage_core::format::Part;
use mintage_core::id::Id as _;
use mintage_core::schemes::sno as scheme;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};

id! {
    /// A sno ID: 10 bytes that sort by time, with a metabyte of your own.
    ///
    /// ID(value)
    ///
    /// ``value`` is 10 bytes.
    SnoId(scheme::Id) in "mintage.sno", "sno", 10 bytes, 16 characters:
    "Parse canonical text strictly: 16 characters of ``23456789abcdefghijklmnopqrstuvwx``, lower case."
    {
        /// The ID of all zero bits.
        #[classattr]
        const ZERO: Self = Self(scheme::Id::ZERO);
        /// The ID of all one bits.
        #[classattr]
        const MAX: Self = Self(scheme::Id::MAX);

        /// Return the ID of a UUID that :meth:`as_uuid` made: its 16 bytes are the 16 characters of the text.
        ///
        /// >>> from mintage import sno
        /// >>> id = sno.ID.parse("brpk4q72xwf2m63l")
        /// >>> sno.ID.from_uuid(id.as_uuid()) == id
        /// True
        ///
        /// :raises ArgumentError: ``value`` is not a uuid.UUID.
        /// :raises ParseError: ``parse.character``: a byte is outside the alphabet.
        #[staticmethod]
        #[pyo3(signature = (value, /))]
        fn from_uuid(value: &Bound<'_, PyAny>) -> PyResult<Self> {
            let text = values::uuid_bytes(value)?;
            Base32::decode(&text)
                .map(|bytes| Self(scheme::Id::from_bytes(bytes)))
                .map_err(|position| id::wrong_byte::<Self>(&text, position))
        }

        /// Parse what :meth:`as_json` returns: the text, or None for the zero ID.
        ///
        /// >>> from mintage import sno
        /// >>> sno.ID.from_json(None) == sno.ID.ZERO
        /// True
        ///
        /// :raises ArgumentError: ``value`` is neither str nor None.
        /// :raises ParseError: as :meth:`parse`.
        #[staticmethod]
        #[pyo3(signature = (value, /))]
        fn from_json(value: &Bound<'_, PyAny>) -> PyResult<Self> {
            if value.is_none() { Ok(Self::ZERO) } else { id::parse(value) }
        }

        /// Compose an ID from its fields, by name: its time, 2010-01-01 to 2079-09-07, floored to 4 ms, as ``time``, an aware
        /// datetime, or as ``timestamp_ms`` or ``timestamp_ns`` since the Unix epoch; ``tick``, 0 or 1; ``meta``, 0 to 255;
        /// ``partition``, 0 to 65535, or its two bytes, such as ``b"A\n"`` or ``(65, 10)``; ``sequence``, 0 to 65535. All
        /// but the time are 0 where they are left out.
        ///
        /// >>> from mintage import sno
        /// >>> id = sno.ID.from_parts(timestamp_ms=1_700_000_000_000, meta=7, partition=(65, 10))
        /// >>> id.meta, id.partition, id.timestamp_ms
        /// (7, 16650, 1700000000000)
        ///
        /// :raises ArgumentError: a value of the wrong type.
        /// :raises FieldError: ``time.naive``, ``time.range`` or ``field.range``.
        #[staticmethod]
        #[pyo3(signature = (**fields))]
        fn from_parts(fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
            fields::from_parts(fields, scheme::FORMAT)
        }

        /// Return the same ID with other fields, as :meth:`from_parts` takes them.
        ///
        /// >>> from mintage import sno
        /// >>> sno.ID.ZERO.replace(meta=7, sequence=3).sequence
        /// 3
        ///
        /// :raises ArgumentError: a value of the wrong type.
        /// :raises FieldError: ``time.naive``, ``time.range`` or ``field.range``.
        #[pyo3(signature = (*unnamed, **fields), text_signature = "($self, **fields)")]
        fn replace(&self, unnamed: &Bound<'_, PyTuple>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
            fields::replace(*self, unnamed, fields)
        }

        /// True if all bits are zero.
        #[getter]
        fn is_zero(&self) -> bool {
            self.0 == scheme::Id::ZERO
        }

        /// Return a UUID whose 16 bytes are the 16 characters of the text, for databases that have a UUID type.
        ///
        /// It sorts as the ID does, but is not an RFC 9562 UUID.
        ///
        /// >>> from mintage import sno
        /// >>> sno.ID.parse("brpk4q72xwf2m63l").as_uuid().bytes
        /// b'brpk4q72xwf2m63l'
        fn as_uuid<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
            values::uuid(py, self.0.to_text())
        }

        /// Return the text, or None for the zero ID, as JSON has them.
        ///
        /// >>> from mintage import sno
        /// >>> sno.ID.parse("brpk4q72xwf2m63l").as_json()
        /// 'brpk4q72xwf2m63l'
        fn as_json(&self) -> Option<String> {
            (!self.is_zero()).then(|| self.0.to_string())
        }
    }
}

/// The number of a partition: an int that `number` reads, or its two bytes, high first: ``b"A\n"`` or ``(65, 10)``.
pub(super) fn partition<'py, T: From<u16>>(
    value: &Bound<'py, PyAny>,
    number: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<T> {
    let bytes = match (value.cast::<PyBytes>(), value.cast::<PyTuple>()) {
        (Ok(bytes), _) => <[u8; 2]>::try_from(bytes.as_bytes()).ok(),
        (_, Ok(pair)) if pair.len() == 2 => {
            let byte = |at| values::field_or(Some(&pair.get_item(at)?), "byte of partition", u8::MAX, 0);
            Some([byte(0)?, byte(1)?])
        }
        (_, Ok(_)) => None,
        _ => return number(value),
    };
    let wrong = || errors::argument("partition", "an int, two bytes, or a pair of ints of a byte each", value);
    bytes.map(|bytes| u16::from_be_bytes(bytes).into()).ok_or_else(wrong)
}

impl fields::HasFields for SnoId {
    fn number(part: &Part<'_>, value: &Bound<'_, PyAny>) -> PyResult<u128> {
        let number = |value: &Bound<'_, PyAny>| fields::number(part, value);
        if part.name == "partition" { partition(value, number) } else { number(value) }
    }
}

bounds! { SnoId in "sno", "ID of the 4 ms unit", by bound }

fn bound(time: &Bound<'_, PyAny>, is_high: bool) -> PyResult<SnoId> {
    scheme::bound(values::time(time)?, is_high).map(SnoId).map_err(errors::value)
}

/// Write the text of packed IDs, 16 characters each, into a buffer of exactly that size, and return the number of IDs.
///
/// Both are buffers of bytes, or of items of one ID or text: numpy's ``V10`` and ``S16``.
///
/// >>> from mintage import sno
/// >>> text = bytearray(32)
/// >>> sno.encode_into(sno.Generator(7).batch(2), text)
/// 2
///
/// :raises ArgumentError: an argument has no buffer.
/// :raises ParseError: ``parse.length``: ``ids`` is not a whole number of IDs.
/// :raises ConfigError: ``config.buffer``.
#[pyfunction]
#[pyo3(signature = (ids, text, /))]
pub fn encode_into(ids: &Bound<'_, PyAny>, text: &Bound<'_, PyAny>) -> PyResult<usize> {
    let source = hot::Readable::new(ids, "ids", hot::Items::Ids(scheme::SIZE))?;
    values::check_multiple(source.len(), scheme::SIZE, "ids", "bytes")?;
    let count = source.len() / scheme::SIZE;
    let target = hot::Writable::exactly(text, hot::Items::Texts(scheme::TEXT), count * scheme::TEXT)?;
    hot::transform(ids.py(), &source, &target, Base32::encode_many);
    Ok(count)
}

/// Parse packed text, 16 characters an ID, into a buffer of exactly 10 bytes an ID, and return the number of IDs.
///
/// Both are buffers of bytes, or of items of one text or ID: numpy's ``S16`` and ``V10``.
///
/// >>> from mintage import sno
/// >>> ids = bytearray(20)
/// >>> sno.parse_into(sno.Generator(7).batch(2).encode(), ids)
/// 2
///
/// :raises ArgumentError: an argument has no buffer.
/// :raises ParseError: ``parse.length``, or ``parse.character`` with the position in the whole text; the buffer's content
///     is then unspecified.
/// :raises ConfigError: ``config.buffer``.
#[pyfunction]
#[pyo3(signature = (text, ids, /))]
pub fn parse_into(text: &Bound<'_, PyAny>, ids: &Bound<'_, PyAny>) -> PyResult<usize> {
    let source = hot::Readable::new(text, "text", hot::Items::Texts(scheme::TEXT))?;
    values::check_multiple(source.len(), scheme::TEXT, "text", "characters")?;
    let count = source.len() / scheme::TEXT;
    let target = hot::Writable::exactly(ids, hot::Items::Ids(scheme::SIZE), count * scheme::SIZE)?;
    hot::transform(ids.py(), &source, &target, Base32::decode_many)
        .or_else(|position| Err(id::wrong_byte::<SnoId>(source.to_bytes(ids.py())?.as_bytes(), position)))?;
    Ok(count)
}

/// Puts the classes and functions into the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<SnoId>()?;
    module.add_class::<Array>()?;
    module.add_function(wrap_pyfunction!(min_at, module)?)?;
    module.add_function(wrap_pyfunction!(max_at, module)?)?;
    module.add_function(wrap_pyfunction!(encode_into, module)?)?;
    module.add_function(wrap_pyfunction!(parse_into, module)?)?;
    hot::install_id::<SnoId>(py)?;
    fields::install::<SnoId>(py, &[scheme::FORMAT])?;
    hot::install_array::<Array>(py);
    Ok(())
}
