//! sno's generators.

use super::id::{self, Array, SnoId};
use super::snapshot::{Snapshot, shards_of};
use crate::clock::{Patience, Reason};
use crate::generator::{self, GeneratorState, NodeGenerator, generator};
use crate::leases::{self, Subject, Terms};
use crate::locks::locked;
use crate::values::Defaulted;
use crate::{errors, hot, values};
use mintage_core::given_time::GivenTimeCounter;
use mintage_core::schemes::sno::{self as scheme, Bounds, Mint};
use mintage_core::step::{Refusal, Run};
use mintage_core::units::{Tick, UnixMs};
use pyo3::PyTraverseError;
use pyo3::exceptions::PyTypeError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::{PyDateTime, PyDict};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, Ordering};

/// The argument of ``on_overflow``: callers wait, because a unit's sequence numbers are used up.
///
/// >>> from mintage import sno
/// >>> from mintage.testing import ManualClock
/// >>> overflows = []
/// >>> clock = ManualClock(1_700_000_000 * 10**9)
/// >>> generator = sno.Generator(7, on_overflow=overflows.append, clock=clock)
/// >>> len(generator.batch(65_537)), len(overflows)
/// (65537, 1)
#[pyclass(frozen, module = "mintage.sno")]
pub struct Overflow {
    now: UnixMs,
    /// The number of callers that wait.
    #[pyo3(get)]
    count: u32,
    /// Milliseconds since the overflow began, counted from 1.
    #[pyo3(get)]
    ticks: u64,
}

#[pymethods]
impl Overflow {
    /// The time of the overflow: an aware UTC datetime.
    #[getter]
    fn now<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDateTime>> {
        values::datetime(py, self.now)
    }

    fn __repr__(&self) -> String {
        format!("Overflow(now={}, count={}, ticks={})", self.now, self.count, self.ticks)
    }
}

/// The callers that wait for the next unit, and the overflow that `on_overflow` was called with.
#[derive(Default)]
struct Waiting {
    callers: u32,
    told: Option<(Tick, UnixMs)>,
}

impl NodeGenerator for Generator {
    type Mint = Mint;
    type Minted = scheme::Id;
    type Origin = ();
    const TERM: &'static str = "partition";
    const SIZE: usize = scheme::SIZE;
    const HAS_META: bool = true;

    fn meta(value: &Bound<'_, PyAny>) -> PyResult<u8> {
        values::field_or(Some(value), "meta", u8::MAX, 0)
    }

    #[inline(always)]
    fn default_meta(&self) -> u8 {
        self.meta
    }

    #[inline(always)]
    fn state(&self) -> &GeneratorState<Mint> {
        &self.state
    }

    fn origin(&self, _: Python<'_>) -> PyResult<()> {
        Ok(())
    }

    fn own_node(&self, py: Python<'_>) -> PyResult<u64> {
        self.state.given().map_or_else(|| self.state.clock.random(py).map(|drawn| drawn & scheme::PARTITION.max()), Ok)
    }

    fn set_node(&self, _: Python<'_>, node: u64, _: Option<()>) {
        let shards = u64::from(if self.state.leases.is_some() { self.shards } else { 1 });
        if shards > 1 {
            self.state.mint.bind(Bounds::shard((node % shards) as u32, self.shards));
        }
        self.partition.store((node / shards) as u16, Ordering::Relaxed);
    }

    fn new_mint(&self) -> Mint {
        let bounds = if self.shards > 1 { Bounds::shard(0, 1) } else { self.state.mint.bounds() };
        Mint::new(bounds, scheme::WINDOW)
    }

    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.state.clock.visit(visit)?;
        visit.call(&self.on_overflow)
    }

    fn double(&self, py: Python<'_>, state: GeneratorState<Mint>) -> Self {
        Self {
            dated: GivenTimeCounter::default(),
            meta: self.meta,
            shards: 1,
            partition: AtomicU16::new(state.given().unwrap_or(0) as u16),
            on_overflow: self.on_overflow.as_ref().map(|callback| callback.clone_ref(py)),
            waiting: Mutex::default(),
            state,
        }
    }

    fn refused(&self, py: Python<'_>, patience: &mut Patience, why: Refusal) -> PyResult<()> {
        match why {
            Refusal::Rollback { until } => {
                let now = self.state.clock.now(py)?.floor_ms();
                let safe = scheme::TIMESCALE.start(until);
                let what = format!("the clock went back to {now}, where both timelines may be used up to {safe}");
                patience.wait(py, &self.state.clock, safe, Reason { code: "clock.rollback", what })
            }
            Refusal::Exhausted { until } | Refusal::Outside { tick: until } => self.overflow(py, patience, until),
        }
    }

    #[inline(always)]
    fn first(&self, _: Python<'_>, run: Run, meta: u8) -> scheme::Id {
        scheme::Id::new(run.tick, meta, self.partition.load(Ordering::Relaxed), run.first as u16)
    }

    #[inline(always)]
    fn object(py: Python<'_>, minted: scheme::Id) -> hot::Object {
        hot::object(py, SnoId(minted))
    }

    fn write(&self, _: Python<'_>, run: Run, meta: u8, ids: &mut [u8]) {
        let partition = self.partition.load(Ordering::Relaxed);
        for (sequence, id) in (run.first..).zip(ids.chunks_exact_mut(scheme::SIZE)) {
            id.copy_from_slice(&scheme::Id::new(run.tick, meta, partition, sequence as u16).to_bytes());
        }
    }
}

impl Generator {
    fn overflow(&self, py: Python<'_>, patience: &mut Patience, until: Tick) -> PyResult<()> {
        let now = self.state.clock.now(py)?.floor_ms();
        let told = {
            let mut waiting = locked(&self.waiting);
            waiting.callers += 1;
            let began = match waiting.told {
                Some((unit, _)) if unit == until => None,
                // The unit before overflowed too, so it is the same overflow.
                Some((unit, began)) if unit.0 + 1 == until.0 => Some(began),
                _ => Some(now),
            };
            began.map(|began| {
                waiting.told = Some((until, began));
                Overflow {
                    now,
                    count: waiting.callers,
                    ticks: u64::try_from(now.0.saturating_sub(began.0)).unwrap_or(0) + 1,
                }
            })
        };
        let tell = || match (told, &self.on_overflow) {
            (Some(overflow), Some(callback)) => callback.call1(py, (Bound::new(py, overflow)?,)).map(drop),
            _ => Ok(()),
        };
        let what = format!("all {} sequence numbers of this 4 ms are used", self.state.mint.bounds().capacity());
        let waited = tell().and_then(|()| {
            let reason = Reason { code: "sequence.exhausted", what };
            patience.wait(py, &self.state.clock, scheme::TIMESCALE.start(until), reason)
        });
        locked(&self.waiting).callers -= 1;
        waited
    }

    fn with(
        state: GeneratorState<Mint>,
        partition: Option<u16>,
        shards: u32,
        meta: &Defaulted<'_>,
        on_overflow: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        if let Some(callback) = on_overflow.as_ref().filter(|callback| !callback.is_callable()) {
            return Err(errors::argument("on_overflow", "a callable", callback));
        }
        Ok(Self {
            dated: GivenTimeCounter::default(),
            state,
            meta: values::field_or(meta.given(), "meta", u8::MAX, 0)?,
            shards,
            partition: AtomicU16::new(partition.unwrap_or(0)),
            on_overflow: on_overflow.map(Bound::unbind),
            waiting: Mutex::default(),
        })
    }

    /// The sequence number that was handed out last, and the number of used ones, both of the present unit.
    fn position(slf: &Bound<'_, Self>) -> PyResult<(u32, u32)> {
        let (slf, now) = generator::attached_now(slf)?;
        let mint = &slf.get().state.mint;
        let (state, _) = mint.view();
        let bounds = mint.bounds();
        let min = u32::from(bounds.min);
        let used = if now == state.unit() { state.next.saturating_sub(min).min(bounds.capacity()) } else { 0 };
        Ok((min + used.saturating_sub(1), used))
    }

    /// The metabyte that a call gives, or the generator's own.
    fn meta_of(&self, meta: &Defaulted<'_>) -> PyResult<u8> {
        values::field_or(meta.given(), "meta", u8::MAX, self.meta)
    }
}

generator! {
    /// A generator of sno IDs, safe to share between threads.
    ///
    /// Generator(partition=None, *, meta=0, sequence_min=0, sequence_max=65535, on_overflow=None, store=None, nodes=None,
    /// shards=1, never_used=False, pool=None, span_ms=None, on_lease_lost=None, clock=None, max_wait_ms=1000)
    ///
    /// >>> from mintage import sno
    /// >>> with sno.Generator(b"A\n", meta=7) as generator:
    /// ...     id = generator.new()
    /// >>> id.partition, id.meta
    /// (16650, 7)
    ///
    /// :param partition: 0 to 65535, or its two bytes, such as ``b"A\n"`` or ``(65, 10)``; without one it is leased, or
    ///     drawn at random where there is a ``clock`` and no store, anew in every forked child.
    /// :param meta: the metabyte of the IDs for which a call gives none, 0 to 255.
    /// :param sequence_min: with ``sequence_max`` the sequence numbers to use, 0 to 65535 in either order and at least 6, so
    ///     that generators can share a partition.
    /// :param sequence_max: see ``sequence_min``; 0 means 65535, as in the Go library.
    /// :param on_overflow: is called with an Overflow once per 4 ms unit while callers wait for the next one; what it raises
    ///     reaches them.
    /// :param shards: a power of two: divides each partition's sequence numbers into as many node numbers.
    pub struct Generator in "mintage.sno" {
        state: GeneratorState<Mint>,
        /// The metabyte of IDs for which a call gives none.
        meta: u8,
        shards: u32,
        partition: AtomicU16,
        dated: GivenTimeCounter,
        on_overflow: Option<Py<PyAny>>,
        waiting: Mutex<Waiting>,
    }

    #[new]
    #[pyo3(signature = (partition = None, *, meta = Defaulted::OUT, sequence_min = Defaulted::OUT, sequence_max = Defaulted::OUT, on_overflow = None,
                        shards = None, **keywords))]
    #[expect(clippy::too_many_arguments, reason = "keywords of the public constructor")]
    fn py_new(
        py: Python<'_>,
        partition: Option<&Bound<'_, PyAny>>,
        meta: Defaulted<'_>,
        sequence_min: Defaulted<'_>,
        sequence_max: Defaulted<'_>,
        on_overflow: Option<Bound<'_, PyAny>>,
        shards: Option<&Bound<'_, PyAny>>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let number = |value: &Bound<'_, PyAny>| values::node(value, "partition", u16::MAX.into());
        let partition = partition.map(|value| id::partition(value, number)).transpose()?;
        let bounds = Bounds::new(
            values::field_or(sequence_min.given(), "sequence_min", u16::MAX, 0)?,
            values::field_or(sequence_max.given(), "sequence_max", u16::MAX, u16::MAX)?,
        )
        .map_err(errors::value)?;
        let shards = shards_of(shards)?;
        if shards > 1 && bounds.capacity() < 1 << 16 {
            let message = "sequence bounds and shards cannot both be given: shards divide the whole range";
            return Err(errors::config(py, "config.bounds", message));
        }
        let (pool, node) = (scheme::pool_layout(shards), partition.map(|partition| partition * u64::from(shards)));
        let subject = Subject { choices: shards, ..Subject::of("sno", &pool, node) };
        let mint = Mint::new(bounds, scheme::WINDOW);
        let state = GeneratorState::new(py, mint, Terms::read(py, keywords)?, &subject, partition)?;
        if shards > 1 && state.leases.is_some() {
            // The capacity counts before the first lease: `nth_at` divides by it.
            state.mint.bind(Bounds::shard(0, shards));
        }
        let made = Self::with(state, partition.map(|p| p as u16), shards, &meta, on_overflow)?;
        generator::attach_without_lease(&made, py)?;
        Ok(made)
    }

    /// Return a generator that continues after a snapshot, in this process or another.
    ///
    /// With a store it leases the node number of the snapshot, and begins after the last unit of the snapshot, or when the
    /// lease begins, if that is later. A snapshot of a leased generator needs the store that its generator leased from, in
    /// ``store`` or in ``MINTAGE_STORE``. While that generator or another one has the number, the first ID raises LeaseError
    /// ``lease.none_free``.
    ///
    /// A snapshot that is not leased needs no store. The new generator continues exactly where the old one stopped.
    /// Make only one: two would mint the same IDs.
    ///
    /// >>> from mintage import sno
    /// >>> snapshot = sno.Generator(7).snapshot()
    /// >>> sno.Generator.restore(snapshot).partition
    /// 7
    ///
    /// :param meta: see :class:`Generator`: a snapshot holds none.
    /// :param store: a URL or a Store where the number is leased, as the next three.
    /// :param pool: the name of the pool; by default the snapshot's, or else ``"sno"``.
    /// :param span_ms: see :class:`Generator`, as for all others.
    /// :raises ArgumentError: an argument of the wrong type.
    /// :raises ConfigError: ``config.snapshot``: it is leased, and no store is named; or its numbers fit no generator;
    ///     ``config.bounds``, ``config.policy``, ``config.wait``, ``config.store``.
    #[staticmethod]
    #[pyo3(signature = (snapshot, *, meta = Defaulted::OUT, on_overflow = None, **keywords))]
    #[pyo3(text_signature = "(snapshot, *, meta=0, on_overflow=None, store=None, pool=None, span_ms=None, on_lease_lost=None, \
                             clock=None, max_wait_ms=1000)")]
    fn restore(
        snapshot: &Bound<'_, PyAny>,
        meta: Defaulted<'_>,
        on_overflow: Option<Bound<'_, PyAny>>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let py = snapshot.py();
        let snapshot =
            snapshot.cast::<Snapshot>().map_err(|_| errors::argument("snapshot", "a sno.Snapshot", snapshot))?;
        let snapshot = &snapshot.get().0;
        let keywords = keywords.map_or_else(|| Ok(PyDict::new(py)), |keywords| keywords.copy())?;
        for name in ["nodes", "never_used"] {
            if keywords.contains(name)? {
                let message = format!("Generator.restore() got an unexpected keyword argument '{name}'");
                return Err(PyTypeError::new_err(message));
            }
        }
        if let Some(leased) = &snapshot.leased {
            if keywords.get_item("pool")?.is_none_or(|pool| pool.is_none()) {
                keywords.set_item("pool", &leased.pool)?;
            }
        }
        let terms = Terms::read(py, Some(&keywords))?;
        if !terms.is_given() {
            let mut state = GeneratorState::without_lease(Mint::restore(snapshot).map_err(errors::value)?, terms.clock, terms.max_wait_ms);
            state.asked = Some(snapshot.partition.into());
            let made = Self::with(state, Some(snapshot.partition), 1, &meta, on_overflow)?;
            made.state.open();
            return Ok(made);
        }
        let mint = Mint::resume(snapshot).map_err(errors::value)?;
        if snapshot.leased.is_some() {
            leases::check_store(py, keywords.get_item("store")?)?;
        }
        let shards = snapshot.leased.as_ref().map_or(1, |leased| leased.shards);
        let pool = scheme::pool_layout(shards);
        let node = Some(snapshot.node().map_err(errors::value)?);
        let subject = Subject::of("sno", &pool, node);
        let state = GeneratorState::new(py, mint, terms, &subject, Some(snapshot.partition.into()))?;
        Self::with(state, Some(snapshot.partition), shards, &meta, on_overflow)
    }

    /// Mint an ID with a metabyte of 0 to 255.
    ///
    /// >>> from mintage import sno
    /// >>> generator = sno.Generator(7)
    /// >>> generator.new(meta=3).meta
    /// 3
    ///
    /// :raises ArgumentError: ``meta`` is not an int.
    /// :raises FieldError: ``field.range``: ``meta`` is outside 0..255.
    /// :raises GenerationError: ``clock.rollback`` or ``sequence.exhausted`` when it would wait longer than
    ///     ``max_wait_ms``; ``clock.range``, ``fork.shared_node``, ``generator.closed``.
    #[pyo3(signature = (meta = Defaulted::OUT), text_signature = "($self, meta=...)")]
    #[pyo3(name = "new")]
    fn mint_one(slf: &Bound<'_, Self>, meta: Defaulted<'_>) -> PyResult<Py<PyAny>> {
        hot::new_object_slow(slf, slf.get().meta_of(&meta)?)
    }

    /// Mint the ID of a given time, for old rows: an aware datetime, or nanoseconds since the Unix epoch.
    ///
    /// One sequence counter serves all times, and starts over within the bounds: any :attr:`capacity` IDs in a row differ. They
    /// are of timeline 0, and may be those that :meth:`new` mints in the same unit.
    ///
    /// >>> from mintage import sno
    /// >>> sno.Generator(7).new_at(1_700_000_000_000 * 10**6).timestamp_ms
    /// 1700000000000
    ///
    /// :raises ArgumentError: an argument of the wrong type.
    /// :raises FieldError: ``time.naive``, ``time.range`` outside 2010-01-01 to 2079-09-07, ``field.range``.
    /// :raises LeaseError: ``lease.history``: it leases its partition from a store without ``never_used``, or the time is not
    ///     before its lease.
    /// :raises GenerationError: ``fork.shared_node``, ``generator.closed``.
    #[pyo3(signature = (time, meta = Defaulted::OUT), text_signature = "($self, time, meta=...)")]
    fn new_at(slf: &Bound<'_, Self>, time: &Bound<'_, PyAny>, meta: Defaulted<'_>) -> PyResult<SnoId> {
        let this = slf.get();
        let (time, meta) = (values::time(time)?, this.meta_of(&meta)?);
        let unit = scheme::unit(time.floor_ms()).map_err(errors::value)?;
        let minted = generator::mint_at(slf, time, unit, |this| {
            let partition = this.partition.load(Ordering::Relaxed);
            scheme::ported(time.floor_ms(), this.dated.count(), meta, partition, this.state.mint.bounds())
        })?;
        minted.map(SnoId).map_err(errors::value)
    }

    /// Return the ``n``-th ID of a given time's tick, counted from 0. A tick has :attr:`capacity` IDs: the next numbers are
    /// those of the ticks after it. For old rows: of one partition, IDs that differ in tick or in ``n`` differ. They are
    /// always of timeline 1, so they differ from those of :meth:`new_at`, and from those of :meth:`new` unless its clock
    /// went back.
    ///
    /// >>> from mintage import sno
    /// >>> sno.Generator(7).nth_at(1_700_000_000_000 * 10**6, 5).sequence
    /// 5
    ///
    /// :raises ArgumentError: an argument of the wrong type.
    /// :raises FieldError: ``field.range``: ``n`` is outside 0..2^32 - 1; ``time.naive``, ``time.range``.
    /// :raises LeaseError: as :meth:`new_at`.
    /// :raises GenerationError: as :meth:`new_at`.
    #[pyo3(signature = (time, n, meta = Defaulted::OUT), text_signature = "($self, time, n, meta=...)")]
    fn nth_at(
        slf: &Bound<'_, Self>,
        time: &Bound<'_, PyAny>,
        n: &Bound<'_, PyAny>,
        meta: Defaulted<'_>,
    ) -> PyResult<SnoId> {
        let this = slf.get();
        let meta = this.meta_of(&meta)?;
        let (time, place) = generator::nth(time, n, this.capacity().into(), scheme::TIMESCALE.unit_ms)?;
        let unit = scheme::unit(time.floor_ms()).map_err(errors::value)?;
        generator::mint_at(slf, time, unit, |this| {
            let (partition, first) = (this.partition.load(Ordering::Relaxed), this.sequence_min());
            SnoId(scheme::Id::new(unit.0 << 1 | 1, meta, partition, first + place as u16))
        })
    }

    /// Mint ``n`` IDs, 0 to 2^31 - 1, into one :class:`Array`.
    ///
    /// >>> from mintage import sno
    /// >>> len(sno.Generator(7).batch(3))
    /// 3
    ///
    /// :raises ArgumentError: an argument is not an int.
    /// :raises FieldError: ``field.range``.
    /// :raises GenerationError: as :meth:`new`.
    #[pyo3(signature = (n, meta = Defaulted::OUT), text_signature = "($self, n, meta=...)")]
    fn batch(slf: &Bound<'_, Self>, n: &Bound<'_, PyAny>, meta: Defaulted<'_>) -> PyResult<Array> {
        Ok(Array { data: generator::batch(slf, n, slf.get().meta_of(&meta)?)?.unbind() })
    }

    /// Fill a writable buffer of bytes, or of void items of 10 (numpy's ``V10``), with IDs, and return their number.
    ///
    /// >>> from mintage import sno
    /// >>> sno.Generator(7).fill(bytearray(30))
    /// 3
    ///
    /// :raises ArgumentError: ``buffer`` has no buffer.
    /// :raises ConfigError: ``config.buffer``: other items, read-only, not contiguous, or not a whole number of IDs.
    /// :raises GenerationError: as :meth:`new`; what was minted until then is in the buffer.
    #[pyo3(signature = (buffer, meta = Defaulted::OUT), text_signature = "($self, buffer, meta=...)")]
    fn fill(slf: &Bound<'_, Self>, buffer: &Bound<'_, PyAny>, meta: Defaulted<'_>) -> PyResult<usize> {
        generator::fill(slf, buffer, slf.get().meta_of(&meta)?)
    }

    /// Return the state that a generator needs to continue elsewhere or later; see :meth:`restore`.
    ///
    /// >>> from mintage import sno
    /// >>> sno.Generator(7).snapshot().partition
    /// 7
    ///
    /// :raises GenerationError: ``clock.range``, ``fork.shared_node``, ``generator.closed``.
    fn snapshot(slf: &Bound<'_, Self>) -> PyResult<Snapshot> {
        let (slf, now) = generator::attached_now(slf)?;
        let this = slf.get();
        let snapshot =
            this.state.gate.read(|| this.state.mint.snapshot(this.partition.load(Ordering::Relaxed), now));
        let leased = match &this.state.leases {
            Some(leases) => Some(scheme::Leased { pool: leases.pool(slf.py())?, shards: this.shards }),
            None => None,
        };
        Ok(Snapshot(scheme::Snapshot { leased, ..snapshot }))
    }

    /// The partition, 0 to 65535.
    #[getter]
    fn partition(slf: &Bound<'_, Self>) -> PyResult<u16> {
        Ok(generator::attach_to_read(slf)?.get().partition.load(Ordering::Relaxed))
    }

    /// The metabyte of the IDs for which a call gives none, 0 to 255.
    #[getter(meta)]
    fn own_meta(&self) -> u8 {
        self.meta
    }

    /// The sequence number that was handed out last in the present unit; the lower bound before the first.
    ///
    /// :raises GenerationError: ``clock.range``, ``fork.shared_node``, ``generator.closed``.
    #[getter]
    fn sequence(slf: &Bound<'_, Self>) -> PyResult<u32> {
        Ok(Self::position(slf)?.0)
    }

    /// The lower sequence bound.
    #[getter]
    fn sequence_min(&self) -> u16 {
        self.state.mint.bounds().min
    }

    /// The upper sequence bound.
    #[getter]
    fn sequence_max(&self) -> u16 {
        self.state.mint.bounds().max
    }

    /// The number of used sequence numbers of the present unit.
    ///
    /// :raises GenerationError: ``clock.range``, ``fork.shared_node``, ``generator.closed``.
    #[getter]
    fn used(slf: &Bound<'_, Self>) -> PyResult<u32> {
        Ok(Self::position(slf)?.1)
    }

    /// The number of IDs in a unit.
    #[getter]
    fn capacity(&self) -> u32 {
        self.state.mint.bounds().capacity()
    }

    /// The number of times that the clock went back; the lowest bit is the timeline.
    #[getter]
    fn drifts(&self) -> u32 {
        self.state.mint.view().1.count
    }

    fn __repr__(&self) -> String {
        let bounds = self.state.mint.bounds();
        let partition = self.partition.load(Ordering::Relaxed);
        format!("<sno.Generator partition={partition} sequence={}..{}>", bounds.min, bounds.max)
    }
}

/// Puts the classes into the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Generator>()?;
    module.add_class::<Overflow>()?;
    generator::install::<Generator>(
        module.py(),
        "partition=None, *, meta=0, sequence_min=0, sequence_max=65535, on_overflow=None, shards=1",
    )
}
