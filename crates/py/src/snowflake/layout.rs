//! Layouts of snowflakes, and the parts that they read in an ID.

use crate::values::Defaulted;
use crate::{errors, values};
use mintage_core::advice;
use mintage_core::error::Error;
use mintage_core::schemes::snowflake as scheme;
use mintage_core::units::{Tick, UnixMs};
use pyo3::prelude::*;
use pyo3::types::{PyDateTime, PyDict, PyTuple};
use std::sync::Arc;

/// A layout of the 64 bits of an ID.
///
/// Layout(fields, *, epoch_ms, unit_ms=1)
///
/// ``fields`` names each field and its bits, high to low: ``"time:41 node:10 sequence:12"``, at most 64 bits in all. Fields
/// other than ``time`` and ``sequence`` (or ``increment``) make up the node number together, the first being its high
/// bits. ``epoch_ms`` is the start of tick 0 in milliseconds since the Unix epoch, ``unit_ms`` the length of a tick.
///
/// >>> from mintage import snowflake
/// >>> layout = snowflake.Layout("time:41 node:10 sequence:12", epoch_ms=1_735_689_600_000)
/// >>> layout.bits, layout.nodes
/// (63, 1024)
///
/// :raises ArgumentError: an argument of the wrong type.
/// :raises ConfigError: ``config.layout``.
#[pyclass(frozen, eq, hash, module = "mintage.snowflake")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Layout(pub(crate) Arc<scheme::Layout>);

impl Layout {
    /// The class's object.
    pub fn of(layout: scheme::Layout) -> Self {
        Self(Arc::new(layout))
    }

    /// The largest ID.
    pub fn max(&self) -> u64 {
        u64::MAX >> (64 - self.0.bits())
    }
}

#[pymethods]
impl Layout {
    #[new]
    #[pyo3(signature = (fields, *, epoch_ms, unit_ms = Defaulted::OUT), text_signature = "(fields, *, epoch_ms, unit_ms=1)")]
    fn py_new(fields: &Bound<'_, PyAny>, epoch_ms: &Bound<'_, PyAny>, unit_ms: Defaulted<'_>) -> PyResult<Self> {
        let text = values::text(fields, "fields")?;
        let epoch = values::saturated(epoch_ms, "epoch_ms")?;
        let wrong = |reason| Error::Layout { layout: text.chars().take(100).collect(), reason };
        let unit = unit_ms.given().map_or(Ok(1), |unit| {
            let outside = |value| wrong(format!("unit_ms {value} is outside 1..{}", u32::MAX));
            values::bounded(unit, "unit_ms", 1, u32::MAX.into(), outside).map(|n| n as u32)
        })?;
        scheme::Layout::declare(&text, epoch, unit).map(Self::of).map_err(errors::value)
    }

    /// Return a layout that meets a need, and the effect of each width. It has the finest tick that fits; the remaining
    /// bits go to the sequence number.
    ///
    /// ``ids_per_second`` is the most IDs that one node mints in a second, ``nodes`` the number of nodes that mint at the
    /// same time, 1 to 2^63 - 1 each; ``years``, 1 to 10,000, count from ``epoch_ms``, by default 2025-01-01. With
    /// ``js_safe`` an ID has 53 bits, which JavaScript's numbers hold exactly, else 63.
    ///
    /// >>> from mintage import snowflake
    /// >>> advice = snowflake.Layout.advise(ids_per_second=1000, nodes=100, years=50, js_safe=True)
    /// >>> advice.layout.bits
    /// 53
    ///
    /// :raises ArgumentError: a value is not an int.
    /// :raises FieldError: ``field.range``.
    /// :raises ConfigError: ``config.layout``: no layout of so many bits is enough.
    #[staticmethod]
    #[pyo3(signature = (*, ids_per_second, nodes, years, js_safe = false, epoch_ms = Defaulted::OUT))]
    #[pyo3(text_signature = "(*, ids_per_second, nodes, years, js_safe=False, epoch_ms=1735689600000)")]
    fn advise(
        ids_per_second: &Bound<'_, PyAny>,
        nodes: &Bound<'_, PyAny>,
        years: &Bound<'_, PyAny>,
        js_safe: bool,
        epoch_ms: Defaulted<'_>,
    ) -> PyResult<Advice> {
        let at_least_1 =
            |value: &Bound<'_, PyAny>, name, max: u64| values::within(value, name, 1, max.into()).map(|n| n as u64);
        let epoch_ms = match epoch_ms.given() {
            Some(epoch) => values::saturated(epoch, "epoch_ms")?.clamp(i64::MIN.into(), i64::MAX.into()) as i64,
            None => scheme::JS_SAFE.timescale().epoch_ms,
        };
        let need = advice::Need {
            ids_per_second: at_least_1(ids_per_second, "ids_per_second", i64::MAX as u64)?,
            nodes: at_least_1(nodes, "nodes", i64::MAX as u64)?,
            years: at_least_1(years, "years", 10_000)? as u32,
            bits: if js_safe { 53 } else { 63 },
            epoch_ms,
        };
        advice::advise(&need).map(Advice).map_err(errors::value)
    }

    /// Every field, high to low: its name, its bits, and the number of bits below it.
    #[getter]
    fn fields(&self) -> Vec<(String, u32, u32)> {
        self.0.fields.iter().map(|(name, field)| (name.clone(), field.bits, field.shift)).collect()
    }

    /// The start of tick 0, in milliseconds since the Unix epoch.
    #[getter]
    fn epoch_ms(&self) -> i64 {
        self.0.timescale.epoch_ms
    }

    /// The length of a tick in milliseconds.
    #[getter]
    fn unit_ms(&self) -> u32 {
        self.0.timescale.unit_ms
    }

    /// The number of bits of an ID, 64 at most.
    #[getter]
    fn bits(&self) -> u32 {
        self.0.bits()
    }

    /// The number of node numbers.
    #[getter]
    fn nodes(&self) -> u64 {
        self.0.max_node() + 1
    }

    /// The first instant that does not fit any more: an aware datetime, ``datetime.max`` where that is after year 9999.
    #[getter]
    fn expires<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDateTime>> {
        values::datetime_or_max(py, self.0.expires())
    }

    /// The number of IDs that one node can mint in a second.
    #[getter]
    fn ids_per_second(&self) -> u64 {
        u64::from(self.0.ids_per_tick()) * 1000 / u64::from(self.0.timescale.unit_ms)
    }

    /// Compose an ID. ``timestamp_ms`` is in milliseconds since the Unix epoch, floored to the layout's tick.
    ///
    /// >>> from mintage import snowflake
    /// >>> snowflake.DEFAULT.parse(snowflake.DEFAULT.compose(timestamp_ms=1_700_000_000_000, node=7)).node
    /// 7
    ///
    /// :raises ArgumentError: a value is not an int.
    /// :raises FieldError: ``time.range`` or ``field.range``.
    #[pyo3(signature = (*, timestamp_ms, node = Defaulted::OUT, sequence = Defaulted::OUT))]
    #[pyo3(text_signature = "($self, *, timestamp_ms, node=0, sequence=0)")]
    fn compose(&self, timestamp_ms: &Bound<'_, PyAny>, node: Defaulted<'_>, sequence: Defaulted<'_>) -> PyResult<u64> {
        let ms = values::saturated(timestamp_ms, "timestamp_ms")?;
        let time = mintage_core::units::UnixNs(ms.saturating_mul(1_000_000)).floor_ms();
        let node = values::field_or(node.given(), "node", self.0.max_node(), 0)?;
        let sequence = values::field_or(sequence.given(), "sequence", u64::from(self.0.ids_per_tick()) - 1, 0)?;
        self.0.compose(time, node, sequence).map_err(errors::value)
    }

    /// Return the parts of an ID.
    ///
    /// >>> from mintage import snowflake
    /// >>> snowflake.TWITTER.parse(1541815603606036480).timestamp_ms
    /// 1656432460105
    ///
    /// :param id: an int, or an integral ``Decimal`` or integer of NumPy.
    /// :raises ArgumentError: ``id`` is no integer, such as a float or a bool.
    /// :raises FieldError: ``field.range``: negative, or wider than the layout.
    #[pyo3(signature = (id, /))]
    fn parse(&self, id: &Bound<'_, PyAny>) -> PyResult<Parts> {
        let id = values::field(&values::integer(id, "id")?, "id", (1 << self.0.bits()) - 1)?;
        self.0.parse(id as u64).map(Parts).map_err(errors::value)
    }

    /// Return the smallest ID of a time's tick: the lower bound of a range query.
    ///
    /// >>> from mintage import snowflake
    /// >>> id = snowflake.new()
    /// >>> time = snowflake.DEFAULT.parse(id).time
    /// >>> snowflake.DEFAULT.min_at(time) <= id
    /// True
    ///
    /// :raises ArgumentError: ``time`` is neither an aware datetime nor an int of nanoseconds.
    /// :raises FieldError: ``time.naive`` or ``time.range``.
    #[pyo3(signature = (time, /))]
    fn min_at(&self, time: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.0.min_at(values::time(time)?.floor_ms()).map_err(errors::value)
    }

    /// Return the largest ID of a time's tick: the upper bound of a range query.
    ///
    /// >>> from mintage import snowflake
    /// >>> id = snowflake.new()
    /// >>> time = snowflake.DEFAULT.parse(id).time
    /// >>> id <= snowflake.DEFAULT.max_at(time)
    /// True
    ///
    /// :raises ArgumentError: ``time`` is neither an aware datetime nor an int of nanoseconds.
    /// :raises FieldError: ``time.naive`` or ``time.range``.
    #[pyo3(signature = (time, /))]
    fn max_at(&self, time: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.0.max_at(values::time(time)?.floor_ms()).map_err(errors::value)
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((String,), Bound<'py, PyDict>)> {
        let kwargs = PyDict::new(py);
        kwargs.set_item("epoch_ms", self.epoch_ms())?;
        kwargs.set_item("unit_ms", self.unit_ms())?;
        Ok(((self.0.declaration(),), kwargs))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (memo, /))]
    fn __deepcopy__(slf: Py<Self>, memo: &Bound<'_, PyAny>) -> Py<Self> {
        let _ = memo;
        slf
    }

    pub fn __repr__(&self) -> String {
        let (epoch, unit) = (self.epoch_ms(), self.unit_ms());
        format!("Layout('{}', epoch_ms={epoch}, unit_ms={unit})", self.0.declaration())
    }
}

/// A layout that meets a need, from :meth:`Layout.advise`.
///
/// >>> from mintage import snowflake
/// >>> advice = snowflake.Layout.advise(ids_per_second=1000, nodes=100, years=50)
/// >>> [field for field, bits, buys in advice.widths]
/// ['time', 'node', 'sequence']
#[pyclass(frozen, module = "mintage.snowflake")]
pub struct Advice(advice::Advice);

#[pymethods]
impl Advice {
    /// The layout.
    #[getter]
    fn layout(&self) -> Layout {
        Layout::of(self.0.layout.clone())
    }

    /// Every field, high to low: its name, its bits, and what they buy.
    #[getter]
    fn widths(&self) -> Vec<(&'static str, u32, String)> {
        self.0.widths.iter().map(|width| (width.field, width.bits, width.buys.clone())).collect()
    }

    fn __str__(&self) -> String {
        let lines =
            self.0.widths.iter().map(|width| format!("{:8} {:>2} bits: {}", width.field, width.bits, width.buys));
        lines.collect::<Vec<_>>().join("\n")
    }

    fn __repr__(&self) -> String {
        format!("<snowflake.Advice {}>", self.layout().__repr__())
    }

    /// Return the widths for Jupyter. They have no character that HTML escapes.
    fn _repr_html_(&self) -> String {
        format!("<pre>{}</pre>", self.__str__())
    }
}

/// The parts of a snowflake.
///
/// >>> from mintage import snowflake
/// >>> parts = snowflake.TWITTER.parse(1541815603606036480)
/// >>> parts.node, parts.sequence
/// (378, 0)
#[pyclass(frozen, eq, hash, module = "mintage.snowflake")]
#[derive(PartialEq, Eq, Hash)]
pub struct Parts(scheme::Parts);

#[pymethods]
impl Parts {
    /// The start of the ID's tick, in milliseconds since the Unix epoch.
    #[getter]
    fn timestamp_ms(&self) -> i64 {
        self.0.time.0
    }

    /// The start of the ID's tick: an aware UTC datetime.
    ///
    /// :raises FieldError: ``time.range``: after year 9999.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDateTime>> {
        values::datetime(py, self.0.time)
    }

    /// The node number.
    #[getter]
    fn node(&self) -> u64 {
        self.0.node
    }

    /// The sequence number.
    #[getter]
    fn sequence(&self) -> u64 {
        self.0.sequence
    }

    /// Every field's value by name, high to low.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        self.0.fields.iter().try_for_each(|(name, value)| fields.set_item(name, value))?;
        Ok(fields)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let p = &self.0;
        let given = (p.time.0, p.tick.0, p.node, p.sequence, self.fields(py)?).into_pyobject(py)?;
        Ok((py.get_type::<Self>().getattr("_restore")?, given))
    }

    #[staticmethod]
    fn _restore(time: i64, tick: u64, node: u64, sequence: u64, fields: &Bound<'_, PyDict>) -> PyResult<Self> {
        let fields =
            fields.iter().map(|(name, value)| Ok((name.extract()?, value.extract()?))).collect::<PyResult<_>>()?;
        Ok(Self(scheme::Parts { time: UnixMs(time), tick: Tick(tick), node, sequence, fields }))
    }

    fn __repr__(&self) -> String {
        let p = &self.0;
        format!("Parts(time={}, node={}, sequence={})", p.time, p.node, p.sequence)
    }
}

/// The layout that was given, or the default one.
pub fn chosen(layout: Option<&Bound<'_, PyAny>>) -> PyResult<Layout> {
    let Some(layout) = layout else { return declared(0) };
    let expected = |_| errors::argument("layout", "a snowflake.Layout", layout);
    Ok(layout.cast::<Layout>().map_err(expected)?.get().clone())
}

/// The named layout at an index.
pub fn declared(index: usize) -> PyResult<Layout> {
    Ok(Layout::of(scheme::Layout::of(&scheme::FORMATS[index])))
}

/// Return the node number that the Java class of the callicoder article derives from a host's MAC addresses, 0 to 1023.
///
/// Each is 12 hex digits, optionally in pairs joined by ``:`` or ``-``, in the order of the interfaces. Use it to read
/// the IDs of a fleet with this rule. In half of all fleets of 38 hosts, two hosts have the same number.
///
/// >>> from mintage import snowflake
/// >>> 0 <= snowflake.node_from_macs(["02:42:ac:11:00:03"]) < 1024
/// True
///
/// :raises ArgumentError: not an iterable of str.
/// :raises FieldError: ``field.format``.
#[pyfunction]
#[pyo3(signature = (macs, /))]
pub fn node_from_macs(macs: &Bound<'_, PyAny>) -> PyResult<u16> {
    // A str is an iterable of str too, but no list of addresses.
    if macs.is_instance_of::<pyo3::types::PyString>() {
        return Err(errors::argument("macs", "an iterable of str", macs));
    }
    let items = macs.try_iter().map_err(|_| errors::argument("macs", "an iterable of str", macs))?;
    let texts =
        items.map(|mac| values::text(&mac?, "mac").map(|text| text.into_owned())).collect::<PyResult<Vec<_>>>()?;
    scheme::node_from_macs(&texts).map_err(errors::value)
}

/// Puts the classes, the function and the layouts into the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Advice>()?;
    module.add_class::<Layout>()?;
    module.add_class::<Parts>()?;
    module.add_function(wrap_pyfunction!(node_from_macs, module)?)?;
    for (index, format) in scheme::FORMATS.iter().enumerate() {
        module.add(format.layout.unwrap_or_default().to_ascii_uppercase(), declared(index)?)?;
    }
    module.add("JS_SAFE", Layout::of(scheme::Layout::of(&scheme::JS_SAFE)))
}
