//! `mintage.Sequence`: integers from the segments of a namespace.

use crate::ending::Call;
use crate::fork::{Entry, Gate};
use crate::values::Defaulted;
use crate::{doubles, errors, fork, hot, leases, values};
use mintage_core::buffer::{Buffer as Core, Segment};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyRange};

/// The buffered integers of a sequence: those of its current segment, and of the next one.
#[pyclass(frozen, module = "mintage._core.sequence")]
pub struct Buffer {
    core: Core,
    /// One thread at a time adds and removes segments; all threads take integers meanwhile.
    segments: hot::Exclusive<()>,
}

impl Buffer {
    /// Goes on to the next segment, if that has `want` integers and the current one has fewer.
    fn advance(&self, py: Python<'_>, want: u32) -> bool {
        self.segments.with(py, |()| self.core.advance(want))
    }
}

#[pymethods]
impl Buffer {
    #[new]
    fn empty() -> Self {
        Self { core: Core::empty(), segments: hot::Exclusive::new(()) }
    }

    /// Add a segment as the next one, and return True; or return False where there is one.
    fn offer(&self, py: Python<'_>, first: u64, count: u32, stride: u32) -> bool {
        self.segments.with(py, |()| self.core.offer(Segment { first, count, stride }).is_ok())
    }

    /// Return True if there is a next segment.
    fn has_next(&self) -> bool {
        self.core.has_next()
    }

    /// Return the number of integers that can be taken now, without and with the next segment.
    fn level(&self) -> (u64, u64) {
        self.core.level()
    }

    /// Empty the buffer, and return the remaining integers as (first, count, stride), in their order.
    fn drain(&self, py: Python<'_>) -> Vec<(u64, u32, u32)> {
        let drained = self.segments.with(py, |()| self.core.drain());
        drained.into_iter().flatten().map(|rest| (rest.first, rest.count, rest.stride)).collect()
    }
}

/// Integers of a namespace: each is handed out once, whatever happens. Those of one process grow from segment to segment.
///
/// Sequence(namespace, store=None, *, step=None, min_step=100, max_step=1_000_000, target_ms=10_000, max_wait_ms=1000)
///
/// ``store`` is a URL or a Store; by default ``MINTAGE_STORE``, or else the machine-local registry. Segments are reserved
/// there before their first integer is handed out, and fetched ahead, so that one lasts about ``target_ms`` milliseconds: from
/// ``min_step`` to ``max_step`` integers, 1 to 2^31 - 1, or always ``step``. Integers that are reserved and not handed out are
/// skipped, unless :meth:`close` can give them back. No call waits longer than ``max_wait_ms`` milliseconds for the store.
/// Threads may share one; a forked child fetches segments of its own.
///
/// >>> from mintage import Sequence
/// >>> from mintage.store.memory import MemoryStore
/// >>> with Sequence("orders", MemoryStore()) as orders:
/// ...     numbers = [orders.next(), orders.next()]
/// >>> numbers
/// [1, 2]
///
/// :raises ArgumentError: an argument of the wrong type.
/// :raises FieldError: ``field.range``.
/// :raises ConfigError: ``config.name``, ``config.store``, ``config.driver``, ``config.wait``.
#[pyclass(frozen, module = "mintage")]
pub struct Sequence {
    gate: Gate,
    buffer: Py<Buffer>,
    client: Py<PyAny>,
    namespace: String,
    max_wait_ms: u64,
}

impl hot::Mints for Sequence {
    type Minted = u64;
    const HAS_META: bool = false;
    const NEW: &'static std::ffi::CStr = c"next";

    #[inline(always)]
    fn fast(&self, _: Python<'_>, _: u8) -> Option<u64> {
        if !self.gate.is_open() {
            return None;
        }
        self.buffer.get().core.take(1).map(|taken| taken.first)
    }

    fn slow(slf: &Bound<'_, Self>, _: u8) -> PyResult<u64> {
        Self::take(slf, 1).map(|taken| taken.first)
    }

    #[inline(always)]
    fn object(py: Python<'_>, minted: u64) -> hot::Object {
        hot::int(py, minted)
    }
}

impl Sequence {
    /// Returns the sequence that hands out integers in place of this one: itself, or its double.
    fn acting<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, Self>> {
        doubles::acting(slf, !slf.get().gate.is_closed())
    }

    /// Takes up to `want` integers, fetching a segment if need be.
    fn take(slf: &Bound<'_, Self>, want: u32) -> PyResult<Segment> {
        let slf = &Self::acting(slf)?;
        let (this, py) = (slf.get(), slf.py());
        let _call = Call::begin(py)?;
        loop {
            if let Some(taken) = this.take_buffered(py, want)? {
                return Ok(taken);
            }
            this.client.call_method1(py, "wait", (this.max_wait_ms,))?;
        }
    }

    /// Takes up to `want` buffered integers; `None` if none are buffered.
    #[inline]
    pub fn take_buffered(&self, py: Python<'_>, want: u32) -> PyResult<Option<Segment>> {
        let buffer = &self.buffer.get().core;
        loop {
            self.attach(py)?;
            if let Some(taken) = buffer.take(want) {
                return Ok(Some(taken));
            }
            if !self.move_on(py, 1)? {
                return Ok(None);
            }
        }
    }

    /// Takes `want` buffered integers in a row, and skips the tail of a segment that has fewer.
    pub fn take_row(&self, py: Python<'_>, want: u32) -> PyResult<Option<Segment>> {
        let buffer = &self.buffer.get().core;
        loop {
            self.attach(py)?;
            if let Some(taken) = buffer.take_exactly(want) {
                return Ok(Some(taken));
            }
            if !self.move_on(py, want)? {
                return Ok(None);
            }
        }
    }

    /// Goes on to the next segment, and makes the client fetch another one.
    fn move_on(&self, py: Python<'_>, want: u32) -> PyResult<bool> {
        let moved = self.buffer.get().advance(py, want);
        if moved {
            self.client.call_method0(py, "advanced")?;
        }
        Ok(moved)
    }

    /// The number of buffered integers.
    pub fn level(&self) -> u64 {
        self.buffer.get().core.level().1
    }

    /// Returns true if there is a next segment.
    pub fn has_next(&self) -> bool {
        self.buffer.get().core.has_next()
    }

    /// The client that fetches the segments.
    pub fn client(&self) -> &Py<PyAny> {
        &self.client
    }

    /// Makes sure that this process reserved the buffered integers, and not a parent: the client empties the buffer
    /// once a generation.
    fn attach(&self, py: Python<'_>) -> PyResult<()> {
        while self.gate.enter(py, None)? != Entry::Attached {
            let generation = fork::generation();
            self.client.call_method0(py, "attach")?;
            if fork::generation() == generation {
                self.gate.open(true);
            }
        }
        Ok(())
    }
}

/// The range of a number of integers.
pub fn as_range<'py>(py: Python<'py>, first: u64, count: u64, stride: u64) -> PyResult<Bound<'py, PyAny>> {
    let stop = u128::from(first) + u128::from(count) * u128::from(stride);
    // Only a plain call of the class goes past 2^63.
    py.get_type::<PyRange>().call1((first, stop, stride))
}

fn limit(value: &Defaulted<'_>, name: &str, default: u32) -> PyResult<u32> {
    let within = |value| values::within(value, name, 1, i32::MAX as u128).map(|n| n as u32);
    value.given().map_or(Ok(default), within)
}

#[pymethods]
impl Sequence {
    #[new]
    #[pyo3(signature = (namespace, store = None, *, step = None, min_step = Defaulted::OUT, max_step = Defaulted::OUT, target_ms = Defaulted::OUT,
                        max_wait_ms = Defaulted::OUT))]
    #[pyo3(
        text_signature = "(namespace, store=None, *, step=None, min_step=100, max_step=1_000_000, target_ms=10_000, \
                             max_wait_ms=1000)"
    )]
    #[expect(clippy::too_many_arguments, reason = "keywords of the public constructor")]
    fn py_new(
        py: Python<'_>,
        namespace: &Bound<'_, PyAny>,
        store: Option<&Bound<'_, PyAny>>,
        step: Option<Bound<'_, PyAny>>,
        min_step: Defaulted<'_>,
        max_step: Defaulted<'_>,
        target_ms: Defaulted<'_>,
        max_wait_ms: Defaulted<'_>,
    ) -> PyResult<Self> {
        let namespace = values::text(namespace, "namespace")?.into_owned();
        let (mut least, mut most) = (limit(&min_step, "min_step", 100)?, limit(&max_step, "max_step", 1_000_000)?);
        if let Some(step) = step {
            let step = limit(&Defaulted::of(step), "step", 1)?;
            (least, most) = (step, step);
        }
        if least > most {
            let message = format!("min_step {least} is above max_step {most}");
            return Err(errors::field(py, "field.range", &message));
        }
        let _call = Call::begin(py)?;
        let buffer = Py::new(py, Buffer::empty())?;
        let arguments = PyDict::new(py);
        arguments.set_item("min_step", least)?;
        arguments.set_item("max_step", most)?;
        arguments.set_item("target_ms", limit(&target_ms, "target_ms", 10_000)?)?;
        let client = leases::request_module(py)?.call_method(
            "segment_client",
            (&namespace, store, &buffer),
            Some(&arguments),
        )?;
        Ok(Self {
            gate: Gate::new(),
            buffer,
            client: client.unbind(),
            namespace,
            max_wait_ms: max_wait_ms.given().map_or(Ok(1000), values::max_wait_ms)?,
        })
    }

    /// Return the next integer, 0 to 2^63 - 1.
    ///
    /// >>> from mintage import Sequence
    /// >>> from mintage.store.memory import MemoryStore
    /// >>> Sequence("orders", MemoryStore()).next()
    /// 1
    ///
    /// :raises StoreError: the store is away and no integer is buffered: ``store.unavailable`` with ``retry_after_ms``.
    /// :raises GenerationError: ``namespace.exhausted``: the namespace is at its maximum; ``generator.closed``.
    #[pyo3(name = "next")]
    fn next_one(slf: &Bound<'_, Self>) -> PyResult<u64> {
        hot::Mints::slow(slf, 0)
    }

    /// Return the next ``n`` integers, 0 to 2^31 - 1, as few ranges in order.
    ///
    /// >>> from mintage import Sequence
    /// >>> from mintage.store.memory import MemoryStore
    /// >>> Sequence("orders", MemoryStore()).batch(7)
    /// [range(1, 8)]
    ///
    /// :raises ArgumentError: ``n`` is not an int.
    /// :raises FieldError: ``field.range``.
    /// :raises StoreError: as :meth:`next`; the integers that were taken until then are skipped.
    /// :raises GenerationError: as :meth:`next`.
    #[pyo3(signature = (n))]
    fn batch<'py>(slf: &Bound<'py, Self>, n: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let py = slf.py();
        let mut left = values::count(n)? as u64;
        let mut ranges: Vec<(u64, u64, u64)> = Vec::new();
        while left > 0 {
            let part = Self::take(slf, u32::try_from(left).unwrap_or(u32::MAX))?;
            let (first, count, stride) = (part.first, u64::from(part.count), u64::from(part.stride));
            left -= count;
            match ranges.last_mut() {
                Some(last) if last.2 == stride && last.0 + last.1 * stride == first => last.1 += count,
                _ => ranges.push((first, count, stride)),
            }
            py.check_signals()?;
        }
        let ranges = ranges.into_iter().map(|(first, count, stride)| as_range(py, first, count, stride));
        PyList::new(py, ranges.collect::<PyResult<Vec<_>>>()?)
    }

    /// Return the next ``n`` integers in a row, 1 to 2^31 - 1: buffered ones where those are enough, else from the store.
    ///
    /// >>> from mintage import Sequence
    /// >>> from mintage.store.memory import MemoryStore
    /// >>> Sequence("orders", MemoryStore()).reserve(7)
    /// range(1, 8)
    ///
    /// :raises ArgumentError: ``n`` is not an int.
    /// :raises FieldError: ``field.range``.
    /// :raises StoreError: as :meth:`next`.
    /// :raises GenerationError: ``namespace.exhausted``: fewer are left; ``generator.closed``.
    #[pyo3(signature = (n))]
    fn reserve<'py>(slf: &Bound<'py, Self>, n: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let slf = &Self::acting(slf)?;
        let (this, py) = (slf.get(), slf.py());
        let n = limit(&Defaulted::of(n.clone()), "n", 1)?;
        let _call = Call::begin(py)?;
        this.attach(py)?;
        if let Some(part) = this.buffer.get().core.take_exactly(n) {
            return as_range(py, part.first, part.count.into(), part.stride.into());
        }
        let segment = this.client.call_method1(py, "reserve", (n,))?;
        segment.call_method0(py, "as_range").map(|range| range.into_bound(py))
    }

    /// Return ``n`` integers, all or none, in ranges as large as the store gives.
    fn _reserve_all<'py>(slf: &Bound<'py, Self>, n: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let slf = &Self::acting(slf)?;
        let (this, py) = (slf.get(), slf.py());
        let _call = Call::begin(py)?;
        this.attach(py)?;
        this.client.call_method1(py, "reserve_all", (n,)).map(|ranges| ranges.into_bound(py))
    }

    /// End handing out integers. The remaining ones go back to the store, if nothing was reserved after them. Closing twice
    /// does nothing.
    ///
    /// >>> from mintage import Sequence
    /// >>> from mintage.store.memory import MemoryStore
    /// >>> orders = Sequence("orders", MemoryStore())
    /// >>> orders.close()
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let is_attached = self.gate.is_attached();
        self.gate.close();
        if !is_attached {
            return Ok(());
        }
        let _call = Call::begin(py)?;
        self.client.call_method0(py, "close").map(drop)
    }

    /// The name of the namespace.
    #[getter]
    fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The number of integers that can be handed out without the store.
    #[getter]
    fn buffered(&self) -> u64 {
        self.level()
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(slf: &Bound<'_, Self>) -> PyResult<u64> {
        hot::Mints::slow(slf, 0)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*exc))]
    fn __exit__(&self, exc: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(exc.py())
    }

    fn __repr__(&self) -> String {
        format!("<Sequence {:?}>", self.namespace)
    }
}

/// Puts the classes and functions into the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Buffer>()?;
    module.add_class::<Sequence>()?;
    hot::install_generator::<Sequence>(module.py())
}
