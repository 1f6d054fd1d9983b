//! Snapshots of sno's generators.

use super::id;
use crate::values::Defaulted;
use crate::{errors, values};
use mintage_core::error::Error;
use mintage_core::schemes::sno as scheme;
use pyo3::prelude::*;

/// The number of shards that an argument names: a power of two, 1 by default.
pub(super) fn shards_of(shards: Option<&Bound<'_, PyAny>>) -> PyResult<u32> {
    let Some(given) = shards else { return Ok(1) };
    let shards = values::field(given, "shards", scheme::MAX_SHARDS.into())? as u32;
    if !shards.is_power_of_two() {
        let message = format!("shards {shards} is not a power of two in 1..{}", scheme::MAX_SHARDS);
        return Err(errors::config(given.py(), "config.bounds", &message));
    }
    Ok(shards)
}

/// The state of a generator, in the Go library's JSON.
///
/// Snapshot(partition, sequence_min=0, sequence_max=65535, sequence=0, now=0, wall_hi=0, wall_safe=0, drifts=0, pool=None,
/// shards=1)
///
/// ``partition`` is 0 to 65535, or its two bytes, such as ``b"A\n"`` or ``(65, 10)``; the bounds are 0 to 65535, and an
/// upper one of 0 means 65535; ``sequence`` is 0 to 2^32 - 1 as in Go; ``now``, ``wall_hi`` (the highest unit seen) and
/// ``wall_safe`` are units of 4 ms since 2010, 0 to 2^39 - 1; ``drifts``, 0 to 2^32 - 1, counts how often the clock
/// went back. ``sequence`` is the number handed out last in ``wall_hi``. ``pool`` is the name of the pool that the
/// partition was leased from, and ``shards`` the number of parts into which that pool divides a partition. The Go
/// library does not know these two.
///
/// >>> from mintage import sno
/// >>> sno.Snapshot(b"A\n", wall_hi=9).partition
/// 16650
///
/// :raises ArgumentError: a value is not an int, or ``pool`` is not str.
/// :raises FieldError: ``field.range``.
/// :raises ConfigError: ``config.bounds``: ``shards`` is not a power of two up to 8192; ``config.snapshot``: ``shards`` without
///     ``pool``.
#[pyclass(frozen, eq, hash, module = "mintage.sno")]
#[derive(PartialEq, Eq, Hash)]
pub struct Snapshot(pub(super) scheme::Snapshot);

/// The Go library's JSON: the partition is two bytes, high first.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Json {
    partition: [u8; 2],
    sequence_min: u16,
    sequence_max: u16,
    sequence: u32,
    now: i64,
    wall_hi: u64,
    wall_safe: u64,
    drifts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    leased: Option<JsonLeased>,
}

/// A key of mintage's, which the Go library ignores.
#[derive(serde::Serialize, serde::Deserialize)]
struct JsonLeased {
    pool: String,
    shards: u32,
}

#[pymethods]
impl Snapshot {
    #[new]
    #[pyo3(signature = (partition, sequence_min = Defaulted::OUT, sequence_max = Defaulted::OUT, sequence = Defaulted::OUT, now = Defaulted::OUT, wall_hi = Defaulted::OUT,
                        wall_safe = Defaulted::OUT, drifts = Defaulted::OUT, pool = None, shards = None))]
    #[pyo3(
        text_signature = "(partition, sequence_min=0, sequence_max=65535, sequence=0, now=0, wall_hi=0, wall_safe=0, \
                             drifts=0, pool=None, shards=1)"
    )]
    #[expect(clippy::too_many_arguments, reason = "one for each field of the format")]
    fn py_new(
        partition: &Bound<'_, PyAny>,
        sequence_min: Defaulted<'_>,
        sequence_max: Defaulted<'_>,
        sequence: Defaulted<'_>,
        now: Defaulted<'_>,
        wall_hi: Defaulted<'_>,
        wall_safe: Defaulted<'_>,
        drifts: Defaulted<'_>,
        pool: Option<&Bound<'_, PyAny>>,
        shards: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let shards = shards_of(shards)?;
        let leased = match pool {
            Some(pool) => Some(scheme::Leased { pool: values::text(pool, "pool")?.into_owned(), shards }),
            None if shards > 1 => {
                let what = format!("shards {shards} without the pool that the partition was leased from");
                return Err(errors::value(Error::Snapshot(what)));
            }
            None => None,
        };
        let unit = |value: &Defaulted<'_>, name| {
            value.given().map_or(Ok(0), |value| values::field(value, name, scheme::TIME.max().into()).map(|n| n as u64))
        };
        Ok(Self(scheme::Snapshot {
            partition: id::partition(partition, |value| values::field_or(Some(value), "partition", u16::MAX, 0))?,
            sequence_min: values::field_or(sequence_min.given(), "sequence_min", u16::MAX, 0)?,
            sequence_max: values::field_or(sequence_max.given(), "sequence_max", u16::MAX, u16::MAX)?,
            sequence: values::field_or(sequence.given(), "sequence", u32::MAX, 0)?,
            now: unit(&now, "now")?,
            wall_hi: unit(&wall_hi, "wall_hi")?,
            wall_safe: unit(&wall_safe, "wall_safe")?,
            drifts: values::field_or(drifts.given(), "drifts", u32::MAX, 0)?,
            leased,
        }))
    }

    /// Return the JSON that the Go library reads and writes; for a leased partition, with a key ``leased`` that names the pool.
    ///
    /// >>> from mintage import sno
    /// >>> sno.Snapshot(16650).to_json()
    /// '{"partition":[65,10],"sequenceMin":0,"sequenceMax":65535,"sequence":0,"now":0,"wallHi":0,"wallSafe":0,"drifts":0}'
    fn to_json(&self) -> String {
        let s = &self.0;
        let json = Json {
            partition: s.partition.to_be_bytes(),
            sequence_min: s.sequence_min,
            sequence_max: s.sequence_max,
            sequence: s.sequence,
            now: s.now as i64,
            wall_hi: s.wall_hi,
            wall_safe: s.wall_safe,
            drifts: s.drifts,
            leased: s.leased.as_ref().map(|leased| JsonLeased { pool: leased.pool.clone(), shards: leased.shards }),
        };
        serde_json::to_string(&json).unwrap_or_default()
    }

    /// Parse the JSON that :meth:`to_json` returns, or the Go library writes.
    ///
    /// >>> from mintage import sno
    /// >>> sno.Snapshot.from_json(sno.Snapshot(7).to_json()) == sno.Snapshot(7)
    /// True
    ///
    /// :raises ArgumentError: ``text`` is not str.
    /// :raises ConfigError: ``config.snapshot``: it is malformed or out of range.
    #[staticmethod]
    #[pyo3(signature = (text, /))]
    fn from_json(text: &Bound<'_, PyAny>) -> PyResult<Self> {
        let wrong = |reason: String| errors::value(Error::Snapshot(reason));
        let json: Json =
            serde_json::from_str(&values::text(text, "text")?).map_err(|error| wrong(error.to_string()))?;
        let now = u64::try_from(json.now).map_err(|_| wrong(format!("now {} is negative", json.now)))?;
        let leased = json.leased.map(|leased| scheme::Leased { pool: leased.pool, shards: leased.shards });
        if let Some(scheme::Leased { shards, .. }) = leased {
            if !(shards.is_power_of_two() && shards <= scheme::MAX_SHARDS) {
                return Err(wrong(format!("shards {shards} is not a power of two in 1..{}", scheme::MAX_SHARDS)));
            }
        }
        Ok(Self(scheme::Snapshot {
            partition: u16::from_be_bytes(json.partition),
            sequence_min: json.sequence_min,
            sequence_max: json.sequence_max,
            sequence: json.sequence,
            now,
            wall_hi: json.wall_hi,
            wall_safe: json.wall_safe,
            drifts: json.drifts,
            leased,
        }))
    }

    /// The partition, 0 to 65535.
    #[getter]
    fn partition(&self) -> u16 {
        self.0.partition
    }

    /// The lower sequence bound.
    #[getter]
    fn sequence_min(&self) -> u16 {
        self.0.sequence_min
    }

    /// The upper sequence bound.
    #[getter]
    fn sequence_max(&self) -> u16 {
        self.0.sequence_max
    }

    /// The sequence number that was handed out last in ``wall_hi``.
    #[getter]
    fn sequence(&self) -> u32 {
        self.0.sequence
    }

    /// The unit in which the snapshot was taken; informative.
    #[getter]
    fn now(&self) -> u64 {
        self.0.now
    }

    /// The highest unit seen.
    #[getter]
    fn wall_hi(&self) -> u64 {
        self.0.wall_hi
    }

    /// The safe unit: at or below it a clock that goes back has to wait.
    #[getter]
    fn wall_safe(&self) -> u64 {
        self.0.wall_safe
    }

    /// The number of times that the clock went back.
    #[getter]
    fn drifts(&self) -> u32 {
        self.0.drifts
    }

    /// True if the partition was leased, so that :meth:`Generator.restore` needs a store.
    #[getter]
    fn leased(&self) -> bool {
        self.0.leased.is_some()
    }

    /// The pool that the partition was leased from; None if it was not.
    #[getter]
    fn pool(&self) -> Option<&str> {
        self.0.leased.as_ref().map(|leased| leased.pool.as_str())
    }

    /// The number of parts into which that pool divides a partition's sequence numbers.
    #[getter]
    fn shards(&self) -> u32 {
        self.0.leased.as_ref().map_or(1, |leased| leased.shards)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_json")?, (slf.get().to_json(),)))
    }

    fn __repr__(&self) -> String {
        let s = &self.0;
        let leased = match &s.leased {
            Some(leased) => format!(", pool={:?}, shards={}", leased.pool, leased.shards),
            None => String::new(),
        };
        format!(
            "Snapshot(partition={}, sequence_min={}, sequence_max={}, sequence={}, now={}, wall_hi={}, wall_safe={}, drifts={}{leased})",
            s.partition, s.sequence_min, s.sequence_max, s.sequence, s.now, s.wall_hi, s.wall_safe, s.drifts
        )
    }
}
