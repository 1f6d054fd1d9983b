//! `mintage.snowflake`: layouts and generators. IDs are plain ints, many of them an array.

use crate::clock::Patience;
use crate::generator::{self, Seat, Seated, generator};
use crate::leases::{Subject, Terms};
use crate::values::Defaulted;
use crate::{arrow, errors, hot, id, values};
use mintage_core::advice;
use mintage_core::counting::{Counting, OnExhausted, OnRollback, Rules};
use mintage_core::error::Error;
use mintage_core::given_time::GivenTimeCounter;
use mintage_core::schemes::snowflake::{self as scheme, Stamp};
use mintage_core::step::{Refusal, Run};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDateTime, PyDict, PyList, PyMemoryView, PySlice, PyType};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// How the 64 bits of an ID are laid out.
///
/// Layout(fields, *, epoch_ms, unit_ms=1)
///
/// ``fields`` names each field and its bits, high to low: ``"time:41 node:10 sequence:12"``, at most 64 bits in all. Fields
/// other than ``time`` and ``sequence`` (or ``increment``) make up the node number together, the first being its high
/// bits. ``epoch_ms`` is the start of tick 0 in milliseconds since the Unix epoch, ``unit_ms`` the length of a tick.
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
    fn max(&self) -> u64 {
        u64::MAX >> (64 - self.0.bits())
    }

    fn declaration(&self) -> String {
        self.0.declaration()
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
        // A million years either way: more than any clock, and no sum overflows.
        const FAR: i128 = 1 << 55;
        let epoch = i64::try_from(epoch)
            .ok()
            .filter(|&ms| i128::from(ms).abs() <= FAR)
            .ok_or_else(|| errors::value(wrong(format!("epoch_ms {epoch} is outside -{FAR}..{FAR}"))))?;
        let unit = unit_ms.given().map_or(Ok(1), |unit| {
            let outside = |value| wrong(format!("unit_ms {value} is outside 1..{}", u32::MAX));
            values::bounded(unit, "unit_ms", 1, u32::MAX.into(), outside).map(|n| n as u32)
        })?;
        scheme::Layout::declare(&text, epoch, unit).map(Self::of).map_err(errors::value)
    }

    /// A layout that is enough for a need, and what each of its widths buys: the finest tick that fits, and what is left of the
    /// bits for the sequence number.
    ///
    /// ``ids_per_second`` is how many IDs one node mints in a second at most, ``nodes`` how many mint at the same time, 1 to 2^63 - 1
    /// each; ``years``, 1 to 10,000, count from ``epoch_ms``, by default 2025-01-01. With ``js_safe`` an ID has 53 bits, which
    /// JavaScript's numbers hold exactly, else 63.
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
        let at_least_1 = |value: &Bound<'_, PyAny>, name: &str, max: u64| {
            let outside = |value| Error::Range { field: name.into(), value, min: 1, max: max.into() };
            values::bounded(value, name, 1, max.into(), outside).map(|n| n as u64)
        };
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

    /// Every field, high to low: its name, its bits, and how many bits lie below it.
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

    /// All bits of an ID, 64 at most.
    #[getter]
    fn bits(&self) -> u32 {
        self.0.bits()
    }

    /// How many node numbers there are.
    #[getter]
    fn nodes(&self) -> u64 {
        self.0.max_node() + 1
    }

    /// The first instant that does not fit any more: an aware datetime, ``datetime.max`` where that is after year 9999.
    #[getter]
    fn expires<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDateTime>> {
        values::datetime_or_max(py, self.0.expires())
    }

    /// How many IDs one node can mint in a second.
    #[getter]
    fn ids_per_second(&self) -> u64 {
        u64::from(self.0.ids_per_tick()) * 1000 / u64::from(self.0.timescale.unit_ms)
    }

    /// Composes an ID. ``timestamp_ms`` is in milliseconds since the Unix epoch, floored to the layout's tick.
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

    /// Takes an ID apart.
    ///
    /// :raises ArgumentError: ``id`` is not an int.
    /// :raises FieldError: ``field.range``: negative, or wider than the layout.
    #[pyo3(signature = (id, /))]
    fn parse(&self, id: &Bound<'_, PyAny>) -> PyResult<Parts> {
        let id = values::field(id, "id", (1 << self.0.bits()) - 1)?;
        self.0.parse(id as u64).map(Parts).map_err(errors::value)
    }

    /// The smallest ID of a time's tick: the lower bound of a range query.
    ///
    /// :raises ArgumentError: ``time`` is neither an aware datetime nor an int of nanoseconds.
    /// :raises FieldError: ``time.naive`` or ``time.range``.
    #[pyo3(signature = (time, /))]
    fn min_at(&self, time: &Bound<'_, PyAny>) -> PyResult<u64> {
        self.0.min_at(values::time(time)?.floor_ms()).map_err(errors::value)
    }

    /// The largest ID of a time's tick: the upper bound of a range query.
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
        Ok(((self.declaration(),), kwargs))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (memo, /))]
    fn __deepcopy__(slf: Py<Self>, memo: &Bound<'_, PyAny>) -> Py<Self> {
        let _ = memo;
        slf
    }

    fn __repr__(&self) -> String {
        let (epoch, unit) = (self.epoch_ms(), self.unit_ms());
        format!("Layout('{}', epoch_ms={epoch}, unit_ms={unit})", self.declaration())
    }
}

/// A layout that is enough for a need, as :meth:`Layout.advise` finds it.
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
}

/// A snowflake taken apart.
#[pyclass(frozen, eq, hash, module = "mintage.snowflake")]
#[derive(PartialEq, Eq, Hash)]
pub struct Parts(scheme::Parts);

#[pymethods]
impl Parts {
    /// When the ID's tick began, in milliseconds since the Unix epoch.
    #[getter]
    fn timestamp_ms(&self) -> i64 {
        self.0.time.0
    }

    /// When the ID's tick began: an aware UTC datetime.
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

    fn __repr__(&self) -> String {
        let p = &self.0;
        format!("Parts(time={}, node={}, sequence={})", p.time, p.node, p.sequence)
    }
}

impl Seated for Generator {
    type Mint = Counting;
    type Minted = u64;
    type Origin = ();
    const TERM: &'static str = "node";
    const SIZE: usize = 8;

    #[inline(always)]
    fn seat(&self) -> &Seat<Counting> {
        &self.seat
    }

    fn origin(&self, _: Python<'_>) -> PyResult<()> {
        Ok(())
    }

    fn own_node(&self, py: Python<'_>) -> PyResult<u64> {
        self.seat.given.map_or_else(|| self.seat.clock.random(py).map(|drawn| drawn & self.layout.0.max_node()), Ok)
    }

    fn occupy(&self, _: Python<'_>, node: u64, _: Option<()>) {
        self.node.store(node, Ordering::Relaxed);
        self.placed.store(self.layout.0.place_node(node), Ordering::Relaxed);
    }

    fn refused(&self, py: Python<'_>, patience: &mut Patience, why: Refusal) -> PyResult<()> {
        self.seat.wait(py, patience, why)
    }

    #[inline(always)]
    fn first(&self, _: Python<'_>, run: Run, _: u8) -> u64 {
        self.stamp.first(run, self.placed.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn object(py: Python<'_>, minted: u64) -> hot::Object {
        hot::int(py, minted)
    }

    fn write(&self, _: Python<'_>, run: Run, _: u8, ids: &mut [u8]) {
        let mut id = self.stamp.first(run, self.placed.load(Ordering::Relaxed));
        for place in ids.as_chunks_mut::<8>().0 {
            *place = id.to_ne_bytes();
            id = id.wrapping_add(self.stamp.stride());
        }
    }
}

generator! {
    /// Mints snowflakes; safe to share between threads.
    ///
    /// Generator(node=None, *, layout=DEFAULT, on_rollback="advance", on_exhausted="wait", store=None, nodes=None,
    /// never_used=False, pool=None, span_ms=None, on_lease_lost=None, clock=None, max_wait_ms=1000)
    ///
    /// :param node: a node number that fits the layout; without one it is leased, or drawn at random where there is a ``clock``
    ///     and no store, anew in every forked child.
    /// :param layout: what the bits of an ID mean.
    /// :param on_rollback: when the clock goes back: ``"advance"`` stays at the last tick and goes on from there until the clock
    ///     has caught up, ``"wait"`` waits until the clock is there again, ``"raise"`` raises.
    /// :param on_exhausted: when a tick's sequence numbers are used up: ``"wait"`` waits for the next tick, ``"advance"`` goes to it
    ///     ahead of the clock, ``"raise"`` raises.
    pub struct Generator in "mintage.snowflake" {
        seat: Seat<Counting>,
        layout: Layout,
        stamp: Stamp,
        node: AtomicU64,
        placed: AtomicU64,
        /// How many IDs of given times it minted.
        dated: GivenTimeCounter,
    }

    #[new]
    #[pyo3(signature = (node = None, *, layout = None, on_rollback = Defaulted::OUT, on_exhausted = Defaulted::OUT, **keywords))]
    fn py_new(
        py: Python<'_>,
        node: Option<&Bound<'_, PyAny>>,
        layout: Option<&Bound<'_, PyAny>>,
        on_rollback: Defaulted<'_>,
        on_exhausted: Defaulted<'_>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let layout = chosen(layout)?;
        let given = node.map(|node| values::node(node, "node", layout.0.max_node())).transpose()?;
        let rollbacks = [("advance", OnRollback::Advance), ("wait", OnRollback::Wait), ("raise", OnRollback::Raise)];
        let exhaustions =
            [("wait", OnExhausted::Wait), ("advance", OnExhausted::Advance), ("raise", OnExhausted::Raise)];
        let rules = Rules {
            scale: layout.0.timescale,
            full_window: layout.0.window(),
            sequence_bits: layout.0.ids_per_tick().ilog2(),
            on_rollback: values::policy(on_rollback.given(), "on_rollback", &rollbacks)?,
            on_exhausted: values::policy(on_exhausted.given(), "on_exhausted", &exhaustions)?,
        };
        let subject = Subject {
            scheme: "snowflake",
            layout: &layout.0.pool_layout().text,
            size: layout.0.max_node() + 1,
            node: given,
            choices: 1,
            own_mac: None,
        };
        let mint = Counting::new(rules, layout.0.window());
        let made = Self {
            seat: Seat::new(py, mint, Terms::read(py, keywords)?, &subject, given)?,
            stamp: Stamp::new(&layout.0),
            layout,
            node: AtomicU64::new(given.unwrap_or(0)),
            placed: AtomicU64::new(0),
            dated: GivenTimeCounter::default(),
        };
        generator::draw(&made, py)?;
        Ok(made)
    }

    /// Mints an ID: an int of the layout's bits, positive.
    ///
    /// :raises GenerationError: ``clock.rollback`` or ``sequence.exhausted`` where the policy says so or it would wait longer
    ///     than ``max_wait_ms``; ``clock.range``, ``fork.shared_node``, ``generator.closed``.
    #[pyo3(name = "new")]
    fn mint_one(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        hot::minted(slf, 0)
    }

    /// Mints an ID of a given time, for old rows: an aware datetime, or nanoseconds since the Unix epoch.
    ///
    /// Its sequence number is 1 more than that of the last such ID, whatever that one's time, and 0 again after the layout's
    /// largest: so any :attr:`capacity` IDs in a row differ. The first one has the middle number: until half of them are used,
    /// they differ from the first half of a tick's that :meth:`new` mints and :meth:`nth_at` makes.
    ///
    /// :raises ArgumentError: ``time`` is neither.
    /// :raises FieldError: ``time.naive``, ``time.range``.
    /// :raises LeaseError: ``lease.history``: it leases its number from a store without ``never_used``, or the time is not
    ///     before its lease.
    /// :raises GenerationError: ``fork.shared_node``, ``generator.closed``.
    #[pyo3(signature = (time))]
    fn new_at(slf: &Bound<'_, Self>, time: &Bound<'_, PyAny>) -> PyResult<u64> {
        let (this, time) = (slf.get(), values::time(time)?);
        let layout = &this.layout.0;
        generator::seat_at(slf, time, layout.tick(time.floor_ms()).map_err(errors::value)?)?;
        let sequence = this.dated.next(layout.ids_per_tick().into());
        layout.compose(time.floor_ms(), this.node.load(Ordering::Relaxed), sequence.into()).map_err(errors::value)
    }

    /// The ``n``-th ID of a given time's tick, counted from 0 and on into the ticks after it, which have :attr:`capacity` of
    /// them each. For old rows: of one node number, IDs that differ in tick or in ``n`` differ. They are the very IDs that
    /// :meth:`new` mints of the tick: ask only for ticks in which it mints none.
    ///
    /// :raises ArgumentError: an argument of the wrong type.
    /// :raises FieldError: ``field.range``: ``n`` is outside 0..2^32 - 1; ``time.naive``, ``time.range``.
    /// :raises LeaseError: as :meth:`new_at`.
    /// :raises GenerationError: as :meth:`new_at`.
    #[pyo3(signature = (time, n))]
    fn nth_at(slf: &Bound<'_, Self>, time: &Bound<'_, PyAny>, n: &Bound<'_, PyAny>) -> PyResult<u64> {
        let this = slf.get();
        let layout = &this.layout.0;
        let (time, place) = generator::nth(time, n, this.capacity().into(), layout.timescale.unit_ms)?;
        generator::seat_at(slf, time, layout.tick(time.floor_ms()).map_err(errors::value)?)?;
        layout.compose(time.floor_ms(), this.node.load(Ordering::Relaxed), place.into()).map_err(errors::value)
    }

    /// How many IDs a tick has.
    #[getter]
    fn capacity(&self) -> u32 {
        self.layout.0.ids_per_tick()
    }

    /// Mints ``n`` IDs, 0 to 2^31 - 1, into one :class:`Array`.
    ///
    /// :raises ArgumentError: ``n`` is not an int.
    /// :raises FieldError: ``field.range``.
    /// :raises GenerationError: as :meth:`new`.
    #[pyo3(signature = (n))]
    fn batch(slf: &Bound<'_, Self>, n: &Bound<'_, PyAny>) -> PyResult<Array> {
        Ok(Array { data: generator::batch(slf, n, 0)?.unbind(), layout: slf.get().layout.clone() })
    }

    /// Fills a writable buffer with IDs, 8 bytes each in native order, and returns how many.
    ///
    /// Its items are unsigned integers of 64 bits (``array.array("Q")``, numpy's uint64), bytes, or, for a layout of fewer than
    /// 64 bits, signed integers of 64 bits.
    ///
    /// :raises ArgumentError: ``buffer`` has no buffer.
    /// :raises ConfigError: ``config.buffer``: other items, read-only, not contiguous, or not a whole number of IDs.
    /// :raises GenerationError: as :meth:`new`; what was minted until then is in the buffer.
    #[pyo3(signature = (buffer))]
    fn fill(slf: &Bound<'_, Self>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let target = hot::Writable::new(buffer, hot::Items::Words { signed: slf.get().layout.0.bits() < 64 })?;
        hot::fill(&target, |ids| generator::write(slf, ids, 0))
    }

    /// The node number.
    #[getter]
    fn node(slf: &Bound<'_, Self>) -> PyResult<u64> {
        generator::seat_to_look(slf)?;
        Ok(slf.get().node.load(Ordering::Relaxed))
    }

    /// The layout.
    #[getter]
    fn layout(&self) -> Layout {
        self.layout.clone()
    }

    fn __repr__(&self) -> String {
        format!("<snowflake.Generator node={} {}>", self.node.load(Ordering::Relaxed), self.layout.__repr__())
    }
}

/// The layout that was given, or the usual one.
fn chosen(layout: Option<&Bound<'_, PyAny>>) -> PyResult<Layout> {
    let Some(layout) = layout else { return declared(0) };
    let expected = |_| errors::argument("layout", "a snowflake.Layout", layout);
    Ok(layout.cast::<Layout>().map_err(expected)?.get().clone())
}

fn declared(index: usize) -> PyResult<Layout> {
    Ok(Layout::of(scheme::Layout::of(&scheme::FORMATS[index])))
}

/// The node number that the Java class of the callicoder article derives from a host's MAC addresses, 0 to 1023.
///
/// Each is 12 hex digits, optionally in pairs joined by ``:`` or ``-``, in the order of the interfaces. For reading a
/// fleet that uses this rule: half of all fleets of 38 hosts have two with the same number.
///
/// :raises ArgumentError: not an iterable of str.
/// :raises FieldError: ``field.format``.
#[pyfunction]
#[pyo3(signature = (macs, /))]
pub fn node_from_macs(macs: &Bound<'_, PyAny>) -> PyResult<u16> {
    // A single str is an iterable of str as well, but never meant.
    if macs.is_instance_of::<pyo3::types::PyString>() {
        return Err(errors::argument("macs", "an iterable of str", macs));
    }
    let items = macs.try_iter().map_err(|_| errors::argument("macs", "an iterable of str", macs))?;
    let texts =
        items.map(|mac| values::text(&mac?, "mac").map(|text| text.into_owned())).collect::<PyResult<Vec<_>>>()?;
    scheme::node_from_macs(&texts).map_err(errors::value)
}

/// IDs of one layout in one contiguous, read-only buffer: 8 bytes each, in native order.
///
/// Array(data=b"", /, layout=DEFAULT)
///
/// Indexing gives an int, slicing an Array. The buffer protocol gives unsigned integers of 64 bits, format ``Q``, so
/// ``memoryview(array)`` and ``numpy.asarray(array)`` copy nothing. An Array equals another of the same integers, and an
/// ``array.array("Q")`` of them.
///
/// ``data`` holds unsigned integers of 64 bits (``array.array("Q")``, numpy's uint64), bytes, or, for a layout of fewer than 64
/// bits, signed integers of 64 bits.
///
/// :raises ArgumentError: ``data`` has no buffer, ``layout`` is no Layout.
/// :raises ConfigError: ``config.buffer``: other items, or not contiguous.
/// :raises ParseError: ``parse.length``: not a whole number of IDs.
/// :raises FieldError: ``field.range``: an ID that is wider than the layout.
#[pyclass(frozen, sequence, module = "mintage.snowflake")]
pub struct Array {
    data: Py<PyBytes>,
    layout: Layout,
}

impl hot::Lends for Array {
    fn bytes(&self) -> &Py<PyBytes> {
        &self.data
    }

    fn lender<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        PyMemoryView::from(self.data.bind(py))?.call_method1("cast", ("Q",))
    }
}

impl Array {
    fn ids<'py>(&'py self, py: Python<'py>) -> &'py [[u8; 8]] {
        self.data.as_bytes(py).as_chunks().0
    }

    fn column(&self) -> arrow::Ids<'_> {
        arrow::Ids::integers(self.layout.0.bits() < 64, &self.data)
    }
}

#[pymethods]
impl Array {
    /// Bytes of one ID.
    #[classattr]
    const SIZE: usize = 8;

    #[new]
    #[pyo3(signature = (data = Defaulted::OUT, /, layout = None), text_signature = "(data=b'', /, layout=...)")]
    fn py_new(py: Python<'_>, data: Defaulted<'_>, layout: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let layout = chosen(layout)?;
        let items = hot::Items::Words { signed: layout.0.bits() < 64 };
        let data = data.given().map_or_else(|| Ok(Vec::new()), |data| values::bytes(data, "data", items))?;
        values::whole(data.len(), 8, "data", "bytes")?;
        let max = layout.max();
        if let Some(id) = data.as_chunks().0.iter().map(|id| u64::from_ne_bytes(*id)).find(|&id| id > max) {
            let (field, value) = ("ID".into(), id.to_string());
            return Err(errors::value(Error::Range { field, value, min: 0, max: max.into() }));
        }
        Ok(Self { data: PyBytes::new(py, &data).unbind(), layout })
    }

    /// The layout.
    #[getter]
    fn layout(&self) -> Layout {
        self.layout.clone()
    }

    /// The decimal text of all IDs, one a line, as ASCII bytes.
    fn to_lines<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        lines(py, self.data.as_bytes(py))
    }

    /// A list of the IDs.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, self.ids(py).iter().map(|id| u64::from_ne_bytes(*id)))
    }

    /// The bytes of all IDs, in native order.
    fn tobytes(&self, py: Python<'_>) -> Py<PyBytes> {
        self.data.clone_ref(py)
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.ids(py).len()
    }

    fn __getitem__<'py>(&self, index: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = index.py();
        if let Ok(slice) = index.cast::<PySlice>() {
            let data = id::sliced(self.data.as_bytes(py), 8, slice)?.unbind();
            return Ok(Bound::new(py, Self { data, layout: self.layout.clone() })?.into_any());
        }
        let ids = self.ids(py);
        Ok(u64::from_ne_bytes(ids[values::index(index, ids.len())?]).into_pyobject(py)?.into_any())
    }

    fn __iter__(slf: &Bound<'_, Self>) -> ArrayIterator {
        ArrayIterator { array: slf.clone().unbind(), next: AtomicUsize::new(0) }
    }

    fn __contains__(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> bool {
        value.extract::<u64>().is_ok_and(|id| self.ids(py).contains(&id.to_ne_bytes()))
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        static PLAIN: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let py = other.py();
        let (own, words) = (self.data.as_bytes(py), hot::Items::Words { signed: false });
        let equal = match other.cast::<Self>() {
            Ok(other) => other.get().data.as_bytes(py) == own,
            Err(_) if other.is_instance(PLAIN.import(py, "array", "array")?)? => {
                values::bytes(other, "other", words).is_ok_and(|other| other == own)
            }
            Err(_) => return Ok(py.NotImplemented()),
        };
        Ok(match op {
            CompareOp::Eq => equal.into_pyobject(py)?.to_owned().into_any().unbind(),
            CompareOp::Ne => (!equal).into_pyobject(py)?.to_owned().into_any().unbind(),
            _ => py.NotImplemented(),
        })
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.data.bind(py).hash()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (Py<PyBytes>, Layout)) {
        let this = slf.get();
        (slf.get_type(), (this.data.clone_ref(slf.py()), this.layout.clone()))
    }

    /// The type of these IDs as a column of Arrow, in a capsule: signed integers of 64 bits, unsigned for a layout of 64.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.column().schema(py)
    }

    /// The IDs as a column of Arrow: the capsules of its type and of its values, which are not copied.
    ///
    /// ``requested_schema``, a capsule as well, may ask for unsigned integers, or text of any kind.
    ///
    /// :raises ArgumentError: ``requested_schema`` is no such capsule.
    /// :raises ValueError: it was used up before.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
        self.column().array(py, requested_schema)
    }

    /// The same as a stream of one piece, for consumers that take nothing else.
    ///
    /// :raises ArgumentError: ``requested_schema`` is no such capsule.
    /// :raises ValueError: it was used up before.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.column().stream(py, requested_schema)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let ids = self.ids(py);
        let shown: Vec<_> = ids.iter().take(3).map(|id| u64::from_ne_bytes(*id).to_string()).collect();
        let more = if ids.len() > 3 { ", …" } else { "" };
        format!("<snowflake.Array of {}: {}{more}>", ids.len(), shown.join(", "))
    }
}

/// Walks an Array.
#[pyclass(frozen, module = "mintage.snowflake")]
pub struct ArrayIterator {
    array: Py<Array>,
    next: AtomicUsize,
}

#[pymethods]
impl ArrayIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Option<u64> {
        let at = self.next.load(Ordering::Relaxed);
        self.array.get().ids(py).get(at).map(|id| {
            self.next.store(at + 1, Ordering::Relaxed);
            u64::from_ne_bytes(*id)
        })
    }
}

/// The most digits of an ID.
pub const DIGITS: usize = 20;

/// Calls `use_it` with the decimal text of each of packed IDs.
pub fn decimals(ids: &[u8], mut use_it: impl FnMut(&[u8])) {
    let mut decimal = itoa::Buffer::new();
    for id in ids.as_chunks::<8>().0 {
        use_it(decimal.format(u64::from_ne_bytes(*id)).as_bytes());
    }
}

fn lines<'py>(py: Python<'py>, ids: &[u8]) -> Bound<'py, PyBytes> {
    let mut lines = Vec::with_capacity(ids.len() / 8 * DIGITS);
    decimals(ids, |text| {
        lines.extend_from_slice(text);
        lines.push(b'\n');
    });
    PyBytes::new(py, &lines)
}

/// The decimal text of IDs of 8 bytes each in native order, one a line, as ASCII bytes; signed ones are taken as unsigned.
///
/// :raises ArgumentError: ``ids`` has no buffer.
/// :raises ConfigError: ``config.buffer``: other items than :meth:`Generator.fill` writes, or not contiguous.
/// :raises ParseError: ``parse.length``: not a whole number of IDs.
#[pyfunction]
#[pyo3(signature = (ids, /))]
pub fn to_lines<'py>(ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let bytes = values::bytes(ids, "ids", hot::Items::Words { signed: true })?;
    values::whole(bytes.len(), 8, "ids", "bytes")?;
    Ok(lines(ids.py(), &bytes))
}

/// Puts the classes and functions into the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Advice>()?;
    module.add_class::<Array>()?;
    module.add_class::<ArrayIterator>()?;
    module.add_class::<Layout>()?;
    module.add_class::<Parts>()?;
    module.add_class::<Generator>()?;
    module.add_function(wrap_pyfunction!(node_from_macs, module)?)?;
    module.add_function(wrap_pyfunction!(to_lines, module)?)?;
    for (index, format) in scheme::FORMATS.iter().enumerate() {
        module.add(format.layout.unwrap_or_default().to_ascii_uppercase(), declared(index)?)?;
    }
    module.add("JS_SAFE", Layout::of(scheme::Layout::of(&scheme::JS_SAFE)))?;
    hot::install_array::<Array>(module.py());
    generator::install::<Generator>(module.py(), "node=None, *, layout=..., on_rollback='advance', on_exhausted='wait'")
}
