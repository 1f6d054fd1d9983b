//! `mintage._core.formats`: the formats that the core declares. IDs are ints here, of any width.

use crate::snowflake::Layout;
use crate::{errors, values};
use mintage_core::format::{self, Constraint, Value};
use mintage_core::schemes::{self, locality, sno, snowflake};
use mintage_core::units::UnixNs;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDateTime, PyInt, PyTuple};

/// One format, or one layout of a scheme.
#[pyclass(frozen, module = "mintage._core.formats")]
pub struct Format(Declared);

enum Declared {
    Here(&'static format::Format<'static>),
    /// By a user: a snowflake layout, and its name if it has one.
    Elsewhere(snowflake::Layout, Option<String>),
}

/// One field of a format, below the parts before it.
#[pyclass(frozen, get_all, module = "mintage._core.formats")]
pub struct Part {
    /// Its name.
    name: String,
    /// Its width.
    bits: u32,
    /// Its lowest bit; bit 0 is the least significant of the ID.
    low: u32,
    /// ``time``, ``node``, ``sequence``, ``meta``, ``random`` or ``fixed``.
    role: &'static str,
    /// True if the format allows some values only.
    is_checked: bool,
    /// The meaning of the field; ``None`` if that depends on its bits.
    says: Option<String>,
}

impl Format {
    fn with<R>(&self, then: impl FnOnce(&format::Format<'_>) -> R) -> R {
        match &self.0 {
            Declared::Here(format) => then(format),
            Declared::Elsewhere(layout, name) => layout.with_format(name.as_deref(), then),
        }
    }
}

fn id_of(number: &Bound<'_, PyInt>, format: &format::Format<'_>) -> PyResult<Vec<u8>> {
    Ok(number.call_method1("to_bytes", (format.size(), "big"))?.cast::<PyBytes>()?.as_bytes().to_vec())
}

#[pymethods]
impl Format {
    #[getter]
    fn scheme(&self) -> String {
        self.with(|format| format.scheme.into())
    }

    /// The name of the layout; ``None`` if the scheme has one only.
    #[getter]
    fn layout(&self) -> Option<String> {
        self.with(|format| format.layout.map(Into::into))
    }

    /// The name: ``uuid v7``, ``snowflake discord``, ``sno``.
    #[getter]
    fn name(&self) -> String {
        self.with(|format| format.name())
    }

    /// Its fields, the most significant first.
    #[getter]
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.with(|format| {
            let part = |(part, low): (&format::Part<'_>, u32)| Part {
                name: part.name.into(),
                bits: part.bits,
                low,
                role: part.role.as_str(),
                is_checked: part.constraint != Constraint::Any,
                says: format.describe(part),
            };
            PyTuple::new(py, format.placed().map(part).collect::<Vec<_>>())
        })
    }

    #[getter]
    fn bits(&self) -> u32 {
        self.with(|format| format.bits())
    }

    /// The unit and the epoch of its time, in words; ``None`` if it has no time.
    #[getter]
    fn clock(&self) -> Option<String> {
        self.with(|format| format.clock.map(|clock| clock.to_string()))
    }

    /// The epoch of its time, in nanoseconds since 1970.
    #[getter]
    fn epoch_ns(&self) -> Option<i128> {
        self.with(|format| format.clock.map(|clock| clock.epoch_ns))
    }

    /// The number of characters of its texts, the canonical one first; empty for plain decimal integers.
    #[getter]
    fn lengths<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.with(|format| format.texts.iter().map(|text| text.length()).collect::<Vec<_>>()))
    }

    /// True if it is also kept as big-endian bytes.
    #[getter]
    fn raw(&self) -> bool {
        self.with(|format| format.raw)
    }

    /// True if it is also used as an integer.
    #[getter]
    fn integer(&self) -> bool {
        self.with(|format| format.integer)
    }

    /// The prior likelihood of the format, before the time of an ID is read, from 0 to 1.
    #[getter]
    fn weight(&self) -> f64 {
        self.with(|format| format.weight)
    }

    /// The address of its specification.
    #[getter]
    fn source(&self) -> String {
        self.with(|format| format.source.into())
    }

    /// The number of nodes that can mint at the same time; ``None`` if it does not tell nodes apart.
    #[getter]
    fn nodes(&self) -> Option<u64> {
        self.with(|format| format.nodes())
    }

    /// The number of IDs that one node can mint in a second; ``None`` where chance, not counting, keeps them apart.
    #[getter]
    fn ids_per_second(&self) -> Option<u128> {
        self.with(|format| format.ids_per_second())
    }

    /// The first instant that it cannot hold; ``None`` if that is after year 9999, or it has no time.
    #[getter]
    fn expires<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyDateTime>> {
        values::datetime_ns(py, UnixNs(self.with(|format| format.expires_ns())?))
    }

    /// The end of its generators: :attr:`expires`, or earlier.
    #[getter]
    fn ends<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyDateTime>> {
        let ends = self.with(|format| format.ends.map(|ends| ends.start_ns().0).or_else(|| format.expires_ns()));
        values::datetime_ns(py, UnixNs(ends?))
    }

    /// Return a diagram of its bits.
    fn diagram(&self) -> String {
        self.with(|format| format.diagram())
    }

    /// Parse a text: return the ID, and its spelling, ``text``, ``variant``, ``held`` or ``borrowed``; or ``None`` if it is
    /// none.
    fn read<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Option<(Bound<'py, PyAny>, &'static str)>> {
        let Some((id, form)) = self.with(|format| format.read(text)) else { return Ok(None) };
        let number = py.get_type::<PyInt>().call_method1("from_bytes", (PyBytes::new(py, &id), "big"))?;
        Ok(Some((number, form.as_str())))
    }

    /// A regular expression, without anchors, of exactly the texts that its class parses: the canonical one in all its
    /// spellings, for any bits.
    #[getter]
    fn pattern(&self) -> String {
        self.with(|format| format.pattern())
    }

    /// Return the canonical text of an ID.
    fn write(&self, id: &Bound<'_, PyInt>) -> PyResult<String> {
        self.with(|format| Ok(format.write(&id_of(id, format)?)))
    }

    /// Return True if a number is narrow enough, and every part has a value that the format allows.
    fn fits(&self, number: &Bound<'_, PyInt>) -> PyResult<bool> {
        self.with(|format| match id_of(number, format) {
            Ok(id) => Ok(format.fits(&id)),
            Err(error) if error.is_instance_of::<PyOverflowError>(number.py()) => Ok(false),
            Err(error) => Err(error),
        })
    }

    /// Return the time of an ID in nanoseconds since 1970; ``None`` if the format has no time.
    fn time_ns(&self, id: &Bound<'_, PyInt>) -> PyResult<Option<i128>> {
        self.with(|format| Ok(format.time_ns(&id_of(id, format)?)))
    }

    /// Return every field of an ID, the most significant first: name, role, highest and lowest bit, value, meaning.
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

/// Puts the classes, the functions and the formats into the module.
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
    module.add("AMBIGUOUS_FORMATS", here(module.py(), schemes::ambiguous_formats())?)
}

/// Return a snowflake layout as a format of 64 bits, under a name or none.
#[pyfunction]
#[pyo3(signature = (layout, name = None))]
pub fn of_layout(layout: &Bound<'_, Layout>, name: Option<String>) -> Format {
    Format(Declared::Elsewhere((*layout.get().0).clone(), name))
}

/// Return a snowflake layout by its name, or by its text, such as ``time:41 node:10 sequence:12 @1735689600000 1ms``;
/// ``None`` if the text is neither.
///
/// :raises ConfigError: ``config.layout``: it declares fields that do not fit.
#[pyfunction]
pub fn read_layout(text: &str) -> PyResult<Option<Layout>> {
    Ok(snowflake::Layout::read(text).map_err(errors::value)?.map(Layout::of))
}

/// Return the text of a snowflake layout.
#[pyfunction]
pub fn write_layout(layout: &Bound<'_, Layout>) -> String {
    layout.get().0.text()
}

type PoolFacts<'py> = (String, u64, Option<Bound<'py, PyDateTime>>);

/// Return the layout of a pool by the text that generators write, or by a short name: that text, the number of node numbers,
/// and the end of its generators (``None`` after year 9999). ``None`` if the text is neither.
///
/// :raises ConfigError: ``config.layout``: it declares fields that do not fit.
#[pyfunction]
pub fn read_pool_layout<'py>(py: Python<'py>, text: &str) -> PyResult<Option<PoolFacts<'py>>> {
    let read = schemes::read_pool_layout(text).map_err(errors::value)?;
    Ok(read.map(|layout| (layout.text, layout.nodes, values::datetime_ns(py, layout.ends.start_ns()))))
}

/// Return locality's node number of a process id and a MAC address, of which the last 16 and 28 bits count.
#[pyfunction]
pub fn locality_node(pid: &Bound<'_, PyAny>, mac: &Bound<'_, PyAny>) -> PyResult<u64> {
    let [pid, mac] = [values::field(pid, "pid", u64::MAX.into())?, values::field(mac, "mac", u64::MAX.into())?];
    Ok(locality::node_of(pid as u16, mac as u32))
}
