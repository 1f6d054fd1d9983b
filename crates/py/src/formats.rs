//! `mintage._core.formats`: what the core's formats say of themselves. IDs are ints here, of any width.

use crate::snowflake::Layout;
use crate::{errors, values};
use mintage_core::format::{self, Constraint, Value};
use mintage_core::schemes::{self, locality, sno, snowflake};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDateTime, PyInt, PyTuple, PyTzInfo};

/// One format, or one layout of a scheme.
#[pyclass(frozen, module = "mintage._core.formats")]
pub struct Format(Declared);

enum Declared {
    Here(&'static format::Format<'static>),
    /// By a user: a snowflake layout, and what it is called.
    Elsewhere(snowflake::Layout, String),
}

/// One field of a format, below the parts before it.
#[pyclass(frozen, get_all, module = "mintage._core.formats")]
pub struct Part {
    /// Its name.
    name: String,
    /// Its width.
    bits: u32,
    /// ``time``, ``node``, ``sequence``, ``meta``, ``random`` or ``fixed``.
    role: &'static str,
    /// Whether the format allows some values only.
    is_checked: bool,
    /// What it says of any ID; ``None`` where that depends on its bits.
    says: Option<String>,
}

impl Format {
    fn with<R>(&self, then: impl FnOnce(&format::Format<'_>) -> R) -> R {
        match &self.0 {
            Declared::Here(format) => then(format),
            Declared::Elsewhere(layout, name) => layout.with_format(name, then),
        }
    }
}

fn id_of(number: &Bound<'_, PyInt>, format: &format::Format<'_>) -> PyResult<Vec<u8>> {
    Ok(number.call_method1("to_bytes", (format.size(), "big"))?.cast::<PyBytes>()?.as_bytes().to_vec())
}

/// An instant, floored to microseconds; `None` outside the years 1 to 9999.
fn datetime(py: Python<'_>, ns: Option<i128>) -> Option<Bound<'_, PyDateTime>> {
    let t = time::OffsetDateTime::from_unix_timestamp_nanos(ns?).ok()?;
    let (utc, micros) = (PyTzInfo::utc(py).ok()?, t.microsecond());
    PyDateTime::new(py, t.year(), t.month().into(), t.day(), t.hour(), t.minute(), t.second(), micros, Some(&utc)).ok()
}

#[pymethods]
impl Format {
    #[getter]
    fn scheme(&self) -> String {
        self.with(|format| format.scheme.into())
    }

    /// Which of the scheme's layouts; ``None`` where it has one only.
    #[getter]
    fn layout(&self) -> Option<String> {
        self.with(|format| format.layout.map(Into::into))
    }

    /// ``uuid v7``, ``snowflake discord``, ``sno``.
    #[getter]
    fn name(&self) -> String {
        self.with(|format| format.name())
    }

    /// Its fields, the most significant first.
    #[getter]
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.with(|format| {
            let part = |part: &format::Part<'_>| Part {
                name: part.name.into(),
                bits: part.bits,
                role: part.role.as_str(),
                is_checked: part.constraint != Constraint::Any,
                says: format.describe(part),
            };
            PyTuple::new(py, format.parts.iter().map(part).collect::<Vec<_>>())
        })
    }

    #[getter]
    fn bits(&self) -> u32 {
        self.with(|format| format.bits())
    }

    /// What its time counts, in words; ``None`` where it has no time.
    #[getter]
    fn clock(&self) -> Option<String> {
        self.with(|format| format.clock.map(|clock| clock.to_string()))
    }

    /// When its time begins, in nanoseconds since 1970.
    #[getter]
    fn epoch_ns(&self) -> Option<i128> {
        self.with(|format| format.clock.map(|clock| clock.epoch_ns))
    }

    /// How many characters its texts have, the canonical one first; empty for plain decimal integers.
    #[getter]
    fn lengths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.with(|format| format.texts.iter().map(|text| text.length()).collect::<Vec<_>>()))
    }

    /// Whether it is also kept as big-endian bytes.
    #[getter]
    fn raw(&self) -> bool {
        self.with(|format| format.raw)
    }

    /// Whether it is also used as an integer.
    #[getter]
    fn integer(&self) -> bool {
        self.with(|format| format.integer)
    }

    /// How much speaks for it before its time is looked at, from 0 to 1.
    #[getter]
    fn weight(&self) -> f64 {
        self.with(|format| format.weight)
    }

    /// Where it is described.
    #[getter]
    fn source(&self) -> String {
        self.with(|format| format.source.into())
    }

    /// How many nodes can mint at the same time, or ``None`` where it does not tell nodes apart.
    #[getter]
    fn nodes(&self) -> Option<u64> {
        self.with(|format| format.nodes())
    }

    /// How many IDs one node can mint in a second, or ``None`` where chance, not counting, keeps them apart.
    #[getter]
    fn ids_per_second(&self) -> Option<u128> {
        self.with(|format| format.ids_per_second())
    }

    /// The first instant that it cannot hold, or ``None`` where that is later than year 9999 or it has no time.
    #[getter]
    fn expires<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyDateTime>> {
        datetime(py, self.with(|format| format.expires_ns()))
    }

    /// When its generators can mint no more: :attr:`expires`, or earlier.
    #[getter]
    fn ends<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyDateTime>> {
        let ends = self.with(|format| format.ends.map(|ends| ends.start_ns().0).or_else(|| format.expires_ns()));
        datetime(py, ends)
    }

    /// Its bits, drawn.
    fn diagram(&self) -> String {
        self.with(|format| format.diagram())
    }

    /// An ID of its text, and how that is written: ``text``, ``variant``, ``held`` or ``borrowed``; ``None`` if it is none.
    fn read<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Option<(Bound<'py, PyAny>, &'static str)>> {
        let Some((id, form)) = self.with(|format| format.read(text)) else { return Ok(None) };
        let number = py.get_type::<PyInt>().call_method1("from_bytes", (PyBytes::new(py, &id), "big"))?;
        Ok(Some((number, form.as_str())))
    }

    /// A regular expression of exactly the canonical texts, in any way of writing that its class's parser takes, whatever the
    /// bits; without anchors.
    #[getter]
    fn pattern(&self) -> String {
        self.with(|format| format.pattern())
    }

    /// The canonical text of an ID.
    fn write(&self, id: &Bound<'_, PyInt>) -> PyResult<String> {
        self.with(|format| Ok(format.write(&id_of(id, format)?)))
    }

    /// Whether a number is narrow enough, and every part holds what the format allows there.
    fn fits(&self, number: &Bound<'_, PyInt>) -> PyResult<bool> {
        self.with(|format| match id_of(number, format) {
            Ok(id) => Ok(format.fits(&id)),
            Err(error) if error.is_instance_of::<PyOverflowError>(number.py()) => Ok(false),
            Err(error) => Err(error),
        })
    }

    /// Nanoseconds since 1970, or ``None`` where the format has no time.
    fn time_ns(&self, id: &Bound<'_, PyInt>) -> PyResult<Option<i128>> {
        self.with(|format| Ok(format.time_ns(&id_of(id, format)?)))
    }

    /// Every field of an ID, the most significant first: name, role, its highest and its lowest bit, value, meaning.
    fn fields<'py>(&self, id: &Bound<'py, PyInt>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let py = id.py();
        self.with(|format| {
            let id = id_of(id, format)?;
            let field = |(part, low): (&format::Part<'_>, u32)| {
                let (value, says) = format.explain(part, low, &id);
                let value = match value {
                    Value::Number(number) => number.into_pyobject(py)?.into_any(),
                    Value::Text(text) => text.into_pyobject(py)?.into_any(),
                };
                (part.name, part.role.as_str(), (low + part.bits - 1, low), value, says).into_pyobject(py)
            };
            format.placed().map(field).collect()
        })
    }
}

fn here(py: Python<'_>, formats: impl Iterator<Item = &'static format::Format<'static>>) -> PyResult<Py<PyTuple>> {
    let formats = formats.map(|format| Format(Declared::Here(format)));
    Ok(PyTuple::new(py, formats.collect::<Vec<_>>())?.unbind())
}

/// Puts the classes and functions into the module, and what is declared.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Format>()?;
    module.add_class::<Part>()?;
    module.add_function(wrap_pyfunction!(locality_node, module)?)?;
    module.add_function(wrap_pyfunction!(of_layout, module)?)?;
    module.add_function(wrap_pyfunction!(read_layout, module)?)?;
    module.add_function(wrap_pyfunction!(read_pool_layout, module)?)?;
    module.add_function(wrap_pyfunction!(write_layout, module)?)?;
    module.add("FORMATS", here(module.py(), schemes::formats())?)?;
    module.add("MAX_SHARDS", sno::MAX_SHARDS)?;
    module.add("MAC_FRAGMENTS", locality::MAC.max() + 1)?;
    module.add("LAST_RESORTS", here(module.py(), schemes::fallback_formats())?)
}

/// A snowflake layout as a format of 64 bits, under a name.
#[pyfunction]
pub fn of_layout(layout: &Bound<'_, Layout>, name: String) -> Format {
    Format(Declared::Elsewhere((*layout.get().0).clone(), name))
}

/// A snowflake layout of its name, or of its text: ``time:41 node:10 sequence:12 @1735689600000 1ms``. ``None`` if it is
/// neither.
///
/// :raises ConfigError: ``config.layout``: it declares fields that do not fit.
#[pyfunction]
pub fn read_layout(text: &str) -> PyResult<Option<Layout>> {
    Ok(snowflake::Layout::read(text).map_err(errors::value)?.map(Layout::of))
}

/// The text of a snowflake layout.
#[pyfunction]
pub fn write_layout(layout: &Bound<'_, Layout>) -> String {
    layout.get().0.text()
}

type PoolFacts<'py> = (String, u64, Option<Bound<'py, PyDateTime>>);

/// What a pool's node numbers mean, of the text that generators write or a short name: that text, how many node numbers
/// there are, and when generators can mint no more (``None`` after year 9999). ``None`` if it is neither.
///
/// :raises ConfigError: ``config.layout``: it declares fields that do not fit.
#[pyfunction]
pub fn read_pool_layout<'py>(py: Python<'py>, text: &str) -> PyResult<Option<PoolFacts<'py>>> {
    let read = schemes::read_pool_layout(text).map_err(errors::value)?;
    Ok(read.map(|layout| (layout.text, layout.nodes, datetime(py, Some(layout.ends.start_ns().0)))))
}

/// locality's node number of a process id and a MAC address, of which the last 16 and 28 bits count.
#[pyfunction]
pub fn locality_node(pid: &Bound<'_, PyAny>, mac: &Bound<'_, PyAny>) -> PyResult<u64> {
    let [pid, mac] = [values::field(pid, "pid", u64::MAX.into())?, values::field(mac, "mac", u64::MAX.into())?];
    Ok(locality::node_of(pid as u16, mac as u32))
}
