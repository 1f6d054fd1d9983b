//! `mintage.sno`: IDs, generators, snapshots.

use crate::clock::{Patience, Reason};
use crate::generator::{self, Seat, Seated, generator};
use crate::id::{self, id};
use crate::leases::{self, Subject, Terms};
use crate::values::Defaulted;
use crate::{errors, hot, values};
use mintage_core::codec::Base32;
use mintage_core::error::Error;
use mintage_core::schemes::sno::{self as scheme, Bounds, Mint, PortingCounter};
use mintage_core::step::{Refusal, Run};
use mintage_core::units::{Tick, UnixMs, UnixNs};
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDateTime, PyDict, PyType};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

id! {
    /// A sno ID: 10 bytes that sort by time, with a metabyte of your own.
    ///
    /// ID(value)
    ///
    /// ``value`` is 10 bytes.
    SnoId(scheme::Id) in "mintage.sno", "sno", 10 bytes, 16 characters:
    "Reads canonical text strictly: 16 characters of ``23456789abcdefghijklmnopqrstuvwx``, lower case."
    {
        /// The ID of all zero bits.
        #[classattr]
        const ZERO: Self = Self(scheme::Id::ZERO);
        /// The ID of all one bits.
        #[classattr]
        const MAX: Self = Self(scheme::Id::MAX);

        /// Reads the ID back from a UUID made by :meth:`as_uuid`: its 16 bytes are the 16 characters of the text.
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

        /// Reads what :meth:`as_json` gives: the text, or None for the zero ID.
        ///
        /// :raises ArgumentError: ``value`` is neither str nor None.
        /// :raises ParseError: as :meth:`parse`.
        #[staticmethod]
        #[pyo3(signature = (value, /))]
        fn from_json(value: &Bound<'_, PyAny>) -> PyResult<Self> {
            if value.is_none() { Ok(Self::ZERO) } else { hot::read_text(value) }
        }

        /// Composes an ID from its fields.
        ///
        /// ``timestamp_ns`` is in nanoseconds since the Unix epoch, 2010-01-01 to 2079-09-07, floored to 4 ms. ``tick`` is 0 or
        /// 1, ``meta`` 0 to 255, ``partition`` and ``sequence`` 0 to 65535.
        ///
        /// :raises ArgumentError: a value is not an int.
        /// :raises FieldError: ``time.range`` or ``field.range``.
        #[staticmethod]
        #[pyo3(signature = (*, timestamp_ns, tick = Defaulted::OUT, meta = Defaulted::OUT, partition = Defaulted::OUT, sequence = Defaulted::OUT))]
        #[pyo3(text_signature = "(*, timestamp_ns, tick=0, meta=0, partition=0, sequence=0)")]
        fn from_parts(
            timestamp_ns: &Bound<'_, PyAny>,
            tick: Defaulted<'_>,
            meta: Defaulted<'_>,
            partition: Defaulted<'_>,
            sequence: Defaulted<'_>,
        ) -> PyResult<Self> {
            let time = UnixNs(values::saturated(timestamp_ns, "timestamp_ns")?).floor_ms();
            scheme::Id::from_parts(
                time,
                bit(tick.given())?,
                values::field_or(meta.given(), "meta", u8::MAX, 0)?,
                values::field_or(partition.given(), "partition", u16::MAX, 0)?,
                values::field_or(sequence.given(), "sequence", u16::MAX, 0)?,
            )
            .map(Self)
            .map_err(errors::value)
        }

        /// When the ID's 4 ms unit began: an aware UTC datetime.
        #[getter]
        fn time<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDateTime>> {
            values::datetime(py, self.0.time())
        }

        /// When the ID's 4 ms unit began, in nanoseconds since the Unix epoch.
        #[getter]
        fn timestamp_ns(&self) -> i128 {
            self.0.time().start_ns().0
        }

        /// The tick-tock bit, 0 or 1: which of two timelines.
        #[getter]
        fn tick(&self) -> u8 {
            self.0.tick().into()
        }

        /// The user's byte, 0 to 255.
        #[getter]
        fn meta(&self) -> u8 {
            self.0.meta()
        }

        /// Where it was minted, 0 to 65535.
        #[getter]
        fn partition(&self) -> u16 {
            self.0.partition()
        }

        /// Which of its unit it is, 0 to 65535.
        #[getter]
        fn sequence(&self) -> u16 {
            self.0.sequence()
        }

        /// Whether all bits are zero.
        #[getter]
        fn is_zero(&self) -> bool {
            self.0 == scheme::Id::ZERO
        }

        /// A UUID whose 16 bytes are the 16 characters of the text, for databases that have a UUID type.
        ///
        /// It sorts as the ID does, but is not an RFC 9562 UUID.
        fn as_uuid<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
            values::uuid(py, self.0.encode())
        }

        /// The text, or None for the zero ID: what JSON holds.
        fn as_json(&self) -> Option<String> {
            (!self.is_zero()).then(|| self.0.to_string())
        }

        /// The same ID with other fields: ``meta`` 0 to 255, ``partition`` and ``sequence`` 0 to 65535, ``tick`` 0 or 1.
        ///
        /// :raises ArgumentError: a value is not an int.
        /// :raises FieldError: ``field.range``.
        #[pyo3(signature = (*, meta = None, partition = None, sequence = None, tick = None))]
        fn replace(
            &self,
            meta: Option<&Bound<'_, PyAny>>,
            partition: Option<&Bound<'_, PyAny>>,
            sequence: Option<&Bound<'_, PyAny>>,
            tick: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let id = self.0;
            let tick = if tick.is_some() { bit(tick)? } else { id.tick() };
            Ok(Self(scheme::Id::new(
                id.unit().0 << 1 | u64::from(tick),
                values::field_or(meta, "meta", u8::MAX, id.meta())?,
                values::field_or(partition, "partition", u16::MAX, id.partition())?,
                values::field_or(sequence, "sequence", u16::MAX, id.sequence())?,
            )))
        }
    }
}

fn bit(value: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
    value.map_or(Ok(false), |value| values::field(value, "tick", 1).map(|n| n == 1))
}

/// What ``on_overflow`` receives while callers wait because a unit's sequence numbers are used up.
#[pyclass(frozen, module = "mintage.sno")]
pub struct Overflow {
    now: UnixMs,
    /// How many callers are waiting.
    #[pyo3(get)]
    count: u32,
    /// Milliseconds since the overflow began, counted from 1.
    #[pyo3(get)]
    ticks: u64,
}

#[pymethods]
impl Overflow {
    /// When it happened: an aware UTC datetime.
    #[getter]
    fn now<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDateTime>> {
        values::datetime(py, self.now)
    }

    fn __repr__(&self) -> String {
        format!("Overflow(now={}, count={}, ticks={})", self.now, self.count, self.ticks)
    }
}

/// The callers that wait for the next unit, and what `on_overflow` was told of them.
#[derive(Default)]
struct Waiting {
    callers: u32,
    told: Option<(Tick, UnixMs)>,
}

impl Seated for Generator {
    type Mint = Mint;
    type Minted = scheme::Id;
    type Origin = ();
    const TERM: &'static str = "partition";
    const SIZE: usize = scheme::SIZE;
    const HAS_META: bool = true;

    #[inline(always)]
    fn seat(&self) -> &Seat<Mint> {
        &self.seat
    }

    fn origin(&self, _: Python<'_>) -> PyResult<()> {
        Ok(())
    }

    fn own_node(&self, py: Python<'_>) -> PyResult<u64> {
        self.seat.given.map_or_else(|| self.seat.clock.random(py).map(|drawn| drawn & scheme::PARTITION.max()), Ok)
    }

    fn occupy(&self, _: Python<'_>, node: u64, _: Option<()>) {
        let shards = u64::from(if self.seat.leases.is_some() { self.shards } else { 1 });
        if shards > 1 {
            self.seat.mint.bind(Bounds::shard((node % shards) as u32, self.shards));
        }
        self.partition.store((node / shards) as u16, Ordering::Relaxed);
    }

    fn refused(&self, py: Python<'_>, patience: &mut Patience, why: Refusal) -> PyResult<()> {
        match why {
            Refusal::Rollback { until } => {
                let now = self.seat.clock.now(py)?.floor_ms();
                let safe = scheme::TIMESCALE.start(until);
                let what = format!("the clock went back to {now}, where both timelines may be used up to {safe}");
                patience.wait(py, &self.seat.clock, safe, Reason { code: "clock.rollback", what })
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
        let now = self.seat.clock.now(py)?.floor_ms();
        let told = {
            let mut waiting = lock(&self.waiting);
            waiting.callers += 1;
            let began = match waiting.told {
                Some((unit, _)) if unit == until => None,
                // The unit before overflowed as well: it is the same overflow.
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
        let what = format!("all {} sequence numbers of this 4 ms are used", self.seat.mint.bounds().capacity());
        let waited = tell().and_then(|()| {
            let reason = Reason { code: "sequence.exhausted", what };
            patience.wait(py, &self.seat.clock, scheme::TIMESCALE.start(until), reason)
        });
        lock(&self.waiting).callers -= 1;
        waited
    }

    fn with(
        seat: Seat<Mint>,
        partition: Option<u16>,
        shards: u32,
        on_overflow: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        if let Some(callback) = on_overflow.as_ref().filter(|callback| !callback.is_callable()) {
            return Err(errors::argument("on_overflow", "a callable", callback));
        }
        Ok(Self {
            porter: PortingCounter::new(seat.mint.bounds()),
            seat,
            shards,
            partition: AtomicU16::new(partition.unwrap_or(0)),
            on_overflow: on_overflow.map(Bound::unbind),
            waiting: Mutex::default(),
        })
    }

    /// The sequence number handed out last and how many are used, both of the unit that it is now.
    fn position(slf: &Bound<'_, Self>) -> PyResult<(u32, u32)> {
        let (mint, now) = (&slf.get().seat.mint, generator::seated_now(slf)?);
        let (state, _) = mint.view();
        let bounds = mint.bounds();
        let min = u32::from(bounds.min);
        let used = if now == state.unit() { state.next.saturating_sub(min).min(bounds.capacity()) } else { 0 };
        Ok((min + used.saturating_sub(1), used))
    }
}

/// Held for moments only, and never while Python may run: its holder could not get the GIL back.
fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

fn shards_of(shards: Option<&Bound<'_, PyAny>>) -> PyResult<u32> {
    let Some(given) = shards else { return Ok(1) };
    let shards = values::field(given, "shards", scheme::MAX_SHARDS.into())? as u32;
    if !shards.is_power_of_two() {
        let message = format!("shards {shards} is not a power of two in 1..{}", scheme::MAX_SHARDS);
        return Err(errors::config(given.py(), "config.bounds", &message));
    }
    Ok(shards)
}

fn meta_of(meta: &Defaulted<'_>) -> PyResult<u8> {
    values::field_or(meta.given(), "meta", u8::MAX, 0)
}

generator! {
    /// Mints sno IDs; safe to share between threads.
    ///
    /// Generator(partition=None, *, sequence_min=0, sequence_max=65535, on_overflow=None, store=None, nodes=None, shards=1,
    /// never_used=False, pool=None, span_ms=None, on_lease_lost=None, clock=None, max_wait_ms=1000)
    ///
    /// :param partition: 0 to 65535; without one it is leased, or drawn at random where there is a ``clock`` and no store, anew in
    ///     every forked child.
    /// :param sequence_min: with ``sequence_max`` the sequence numbers to use, 0 to 65535 in either order and at least 6, so that
    ///     generators can share a partition.
    /// :param sequence_max: see ``sequence_min``.
    /// :param on_overflow: is called with an Overflow once per 4 ms unit while callers wait for the next one; what it raises
    ///     reaches them.
    /// :param shards: a power of two: divides each partition's sequence numbers into as many node numbers.
    pub struct Generator in "mintage.sno" {
        seat: Seat<Mint>,
        shards: u32,
        partition: AtomicU16,
        porter: PortingCounter,
        on_overflow: Option<Py<PyAny>>,
        waiting: Mutex<Waiting>,
    }

    #[new]
    #[pyo3(signature = (partition = None, *, sequence_min = Defaulted::OUT, sequence_max = Defaulted::OUT, on_overflow = None,
                        shards = None, **keywords))]
    fn py_new(
        py: Python<'_>,
        partition: Option<&Bound<'_, PyAny>>,
        sequence_min: Defaulted<'_>,
        sequence_max: Defaulted<'_>,
        on_overflow: Option<Bound<'_, PyAny>>,
        shards: Option<&Bound<'_, PyAny>>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let partition = partition.map(|p| values::node(p, "partition", u16::MAX.into())).transpose()?;
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
        let subject = Subject {
            scheme: "sno",
            layout: &scheme::pool_layout(shards).text,
            size: scheme::pool_layout(shards).nodes,
            node: partition.map(|partition| partition * u64::from(shards)),
            choices: shards,
            own_mac: None,
        };
        let mint = Mint::new(bounds, scheme::WINDOW);
        let seat = Seat::new(py, mint, Terms::read(py, keywords)?, &subject, partition)?;
        let made = Self::with(seat, partition.map(|p| p as u16), shards, on_overflow)?;
        generator::draw(&made, py)?;
        Ok(made)
    }

    /// Makes a generator that goes on after a snapshot, here or in another process.
    ///
    /// With a store it leases the snapshot's very node number, and begins after the last unit of the snapshot, or later where the
    /// lease does. A snapshot of a leased generator needs that: the store that its generator leased from, in ``store`` or in
    /// ``MINTAGE_STORE``. While that generator or another has the number, the first ID raises LeaseError ``lease.none_free``.
    ///
    /// A snapshot that is not leased needs no store. Then it goes on exactly where its generator stopped, and only one generator
    /// may: two would mint the same IDs.
    ///
    /// :param store: a URL or a Store where the number is leased, as the next three.
    /// :param pool: the name of the pool; by default the snapshot's, or else ``"sno"``.
    /// :param span_ms: see :class:`Generator`, as for all others.
    /// :raises ArgumentError: an argument of the wrong type.
    /// :raises ConfigError: ``config.snapshot``: it is leased, and no store is named; or its numbers fit no generator;
    ///     ``config.bounds``, ``config.policy``, ``config.wait``, ``config.store``.
    #[staticmethod]
    #[pyo3(signature = (snapshot, *, on_overflow = None, **keywords))]
    #[pyo3(text_signature = "(snapshot, *, on_overflow=None, store=None, pool=None, span_ms=None, on_lease_lost=None, \
                             clock=None, max_wait_ms=1000)")]
    fn restore(
        snapshot: &Bound<'_, PyAny>,
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
        if let Some(leased) = &snapshot.leased
            && keywords.get_item("pool")?.is_none_or(|pool| pool.is_none())
        {
            keywords.set_item("pool", &leased.pool)?;
        }
        let terms = Terms::read(py, Some(&keywords))?;
        if !terms.is_given() {
            let mut seat = Seat::free(Mint::restore(snapshot).map_err(errors::value)?, terms.clock, terms.max_wait_ms);
            seat.given = Some(snapshot.partition.into());
            let made = Self::with(seat, Some(snapshot.partition), 1, on_overflow)?;
            made.seat.open();
            return Ok(made);
        }
        let mint = Mint::resume(snapshot).map_err(errors::value)?;
        if snapshot.leased.is_some() {
            leases::check_store(py, keywords.get_item("store")?)?;
        }
        let shards = snapshot.leased.as_ref().map_or(1, |leased| leased.shards);
        let pool = scheme::pool_layout(shards);
        let node = Some(snapshot.node().map_err(errors::value)?);
        let subject =
            Subject { scheme: "sno", layout: &pool.text, size: pool.nodes, node, choices: 1, own_mac: None };
        Self::with(Seat::new(py, mint, terms, &subject, None)?, Some(snapshot.partition), shards, on_overflow)
    }

    /// Mints an ID with a metabyte of 0 to 255.
    ///
    /// :raises ArgumentError: ``meta`` is not an int.
    /// :raises FieldError: ``field.range``: ``meta`` is outside 0..255.
    /// :raises GenerationError: ``clock.rollback`` or ``sequence.exhausted`` when it would wait longer than
    ///     ``max_wait_ms``; ``clock.range``, ``fork.shared_node``, ``generator.closed``.
    #[pyo3(signature = (meta = Defaulted::OUT), text_signature = "($self, meta=0)")]
    #[pyo3(name = "new")]
    fn mint_one(slf: &Bound<'_, Self>, meta: Defaulted<'_>) -> PyResult<Py<PyAny>> {
        hot::minted(slf, meta_of(&meta)?)
    }

    /// Mints the ID of a given time, for porting old rows: an aware datetime, or nanoseconds since the Unix epoch.
    ///
    /// It has a sequence counter of its own, whatever the times are, that rolls over silently within the bounds, and is always of
    /// timeline 0: any :attr:`capacity` IDs in a row differ. They may be those that :meth:`new` mints in the same unit.
    ///
    /// :raises ArgumentError: an argument of the wrong type.
    /// :raises FieldError: ``time.naive``, ``time.range`` outside 2010-01-01 to 2079-09-07, ``field.range``.
    /// :raises LeaseError: ``lease.history``: it leases its partition from a store without ``never_used``, or the time is not
    ///     before its lease.
    /// :raises GenerationError: ``fork.shared_node``, ``generator.closed``.
    #[pyo3(signature = (time, meta = Defaulted::OUT), text_signature = "($self, time, meta=0)")]
    fn new_at(slf: &Bound<'_, Self>, time: &Bound<'_, PyAny>, meta: Defaulted<'_>) -> PyResult<SnoId> {
        let this = slf.get();
        let (time, meta) = (values::time(time)?, meta_of(&meta)?);
        generator::seat_at(slf, time, scheme::unit(time.floor_ms()).map_err(errors::value)?)?;
        let partition = this.partition.load(Ordering::Relaxed);
        let bounds = this.seat.mint.bounds();
        this.porter.mint(time.floor_ms(), meta, partition, bounds).map(SnoId).map_err(errors::value)
    }

    /// The ``n``-th ID of a given time's tick, counted from 0 and on into the ticks after it, which have :attr:`capacity` of
    /// them each. For old rows: of one partition, IDs that differ in tick or in ``n`` differ. They are always of timeline 1, so
    /// they differ from those of :meth:`new_at`, and from those of :meth:`new` unless its clock went back.
    ///
    /// :raises ArgumentError: an argument of the wrong type.
    /// :raises FieldError: ``field.range``: ``n`` is outside 0..2^32 - 1; ``time.naive``, ``time.range``.
    /// :raises LeaseError: as :meth:`new_at`.
    /// :raises GenerationError: as :meth:`new_at`.
    #[pyo3(signature = (time, n, meta = Defaulted::OUT), text_signature = "($self, time, n, meta=0)")]
    fn nth_at(
        slf: &Bound<'_, Self>,
        time: &Bound<'_, PyAny>,
        n: &Bound<'_, PyAny>,
        meta: Defaulted<'_>,
    ) -> PyResult<SnoId> {
        let (this, meta) = (slf.get(), meta_of(&meta)?);
        let (time, place) = generator::nth(time, n, this.capacity().into(), scheme::TIMESCALE.unit_ms)?;
        let unit = scheme::unit(time.floor_ms()).map_err(errors::value)?;
        generator::seat_at(slf, time, unit)?;
        let (partition, first) = (this.partition.load(Ordering::Relaxed), this.sequence_min());
        Ok(SnoId(scheme::Id::new(unit.0 << 1 | 1, meta, partition, first + place as u16)))
    }

    /// Mints ``n`` IDs, 0 to 2^31 - 1, into one :class:`Array`.
    ///
    /// :raises ArgumentError: an argument is not an int.
    /// :raises FieldError: ``field.range``.
    /// :raises GenerationError: as :meth:`new`.
    #[pyo3(signature = (n, meta = Defaulted::OUT), text_signature = "($self, n, meta=0)")]
    fn batch(slf: &Bound<'_, Self>, n: &Bound<'_, PyAny>, meta: Defaulted<'_>) -> PyResult<Array> {
        Ok(Array { data: generator::batch(slf, n, meta_of(&meta)?)?.unbind() })
    }

    /// Fills a writable buffer of bytes, or of void items of 10 (numpy's ``V10``), with IDs, and returns how many.
    ///
    /// :raises ArgumentError: ``buffer`` has no buffer.
    /// :raises ConfigError: ``config.buffer``: other items, read-only, not contiguous, or not a whole number of IDs.
    /// :raises GenerationError: as :meth:`new`; what was minted until then is in the buffer.
    #[pyo3(signature = (buffer, meta = Defaulted::OUT), text_signature = "($self, buffer, meta=0)")]
    fn fill(slf: &Bound<'_, Self>, buffer: &Bound<'_, PyAny>, meta: Defaulted<'_>) -> PyResult<usize> {
        generator::fill(slf, buffer, meta_of(&meta)?)
    }

    /// Everything that a generator needs to go on elsewhere or later; see :meth:`restore`.
    ///
    /// :raises GenerationError: ``clock.range``, ``fork.shared_node``, ``generator.closed``.
    fn snapshot(slf: &Bound<'_, Self>) -> PyResult<Snapshot> {
        let (this, now) = (slf.get(), generator::seated_now(slf)?);
        let snapshot = this.seat.mint.snapshot(this.partition.load(Ordering::Relaxed), now);
        let leased = match &this.seat.leases {
            Some(leases) => Some(scheme::Leased { pool: leases.pool(slf.py())?, shards: this.shards }),
            None => None,
        };
        Ok(Snapshot(scheme::Snapshot { leased, ..snapshot }))
    }

    /// Where it mints, 0 to 65535.
    #[getter]
    fn partition(slf: &Bound<'_, Self>) -> PyResult<u16> {
        generator::seat_to_look(slf)?;
        Ok(slf.get().partition.load(Ordering::Relaxed))
    }

    /// The sequence number handed out last in the present unit; the lower bound where there is none.
    ///
    /// :raises GenerationError: ``clock.range``, ``fork.shared_node``, ``generator.closed``.
    #[getter]
    fn sequence(slf: &Bound<'_, Self>) -> PyResult<u32> {
        Ok(Self::position(slf)?.0)
    }

    /// The lower sequence bound.
    #[getter]
    fn sequence_min(&self) -> u16 {
        self.seat.mint.bounds().min
    }

    /// The upper sequence bound.
    #[getter]
    fn sequence_max(&self) -> u16 {
        self.seat.mint.bounds().max
    }

    /// How many sequence numbers of the present unit are used.
    ///
    /// :raises GenerationError: ``clock.range``, ``fork.shared_node``, ``generator.closed``.
    #[getter]
    fn used(slf: &Bound<'_, Self>) -> PyResult<u32> {
        Ok(Self::position(slf)?.1)
    }

    /// How many IDs fit in a unit.
    #[getter]
    fn capacity(&self) -> u32 {
        self.seat.mint.bounds().capacity()
    }

    /// How often the clock went back; the lowest bit is the timeline.
    #[getter]
    fn drifts(&self) -> u32 {
        self.seat.mint.view().1.count
    }

    fn __repr__(&self) -> String {
        let bounds = self.seat.mint.bounds();
        let partition = self.partition.load(Ordering::Relaxed);
        format!("<sno.Generator partition={partition} sequence={}..{}>", bounds.min, bounds.max)
    }
}

/// A generator's state, in the Go library's JSON.
///
/// Snapshot(partition, sequence_min=0, sequence_max=65535, sequence=0, now=0, wall_hi=0, wall_safe=0, drifts=0, pool=None, shards=1)
///
/// ``partition`` and the bounds are 0 to 65535, ``sequence`` 0 to 2^32 - 1 as in Go; ``now``, ``wall_hi`` (the highest unit seen) and
/// ``wall_safe`` are units of 4 ms since 2010, 0 to 2^39 - 1; ``drifts``, 0 to 2^32 - 1, counts how often the clock went
/// back. ``sequence`` is the number handed out last in ``wall_hi``. ``pool`` is the name of the pool that the partition was leased
/// from, and ``shards`` into how many parts that divides a partition: these two the Go library does not know.
///
/// :raises ArgumentError: a value is not an int, or ``pool`` is not str.
/// :raises FieldError: ``field.range``.
/// :raises ConfigError: ``config.bounds``: ``shards`` is not a power of two up to 8192; ``config.snapshot``: ``shards`` without
///     ``pool``.
#[pyclass(frozen, eq, hash, module = "mintage.sno")]
#[derive(PartialEq, Eq, Hash)]
pub struct Snapshot(scheme::Snapshot);

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

/// A key of our own, which the Go library passes over.
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
            partition: values::field_or(Some(partition), "partition", u16::MAX, 0)?,
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

    /// The JSON that the Go library reads and writes; where it is leased, with a key ``leased`` that says from which pool.
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

    /// Reads that JSON.
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
        if let Some(scheme::Leased { shards, .. }) = leased
            && !(shards.is_power_of_two() && shards <= scheme::MAX_SHARDS)
        {
            return Err(wrong(format!("shards {shards} is not a power of two in 1..{}", scheme::MAX_SHARDS)));
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

    /// Where, 0 to 65535.
    #[getter]
    fn partition(&self) -> u16 {
        self.0.partition
    }

    /// Lower sequence bound.
    #[getter]
    fn sequence_min(&self) -> u16 {
        self.0.sequence_min
    }

    /// Upper sequence bound.
    #[getter]
    fn sequence_max(&self) -> u16 {
        self.0.sequence_max
    }

    /// Sequence number handed out last in ``wall_hi``.
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

    /// How often the clock went back.
    #[getter]
    fn drifts(&self) -> u32 {
        self.0.drifts
    }

    /// Whether the partition was leased, so that :meth:`Generator.restore` needs a store.
    #[getter]
    fn leased(&self) -> bool {
        self.0.leased.is_some()
    }

    /// The pool that the partition was leased from; None where it was not.
    #[getter]
    fn pool(&self) -> Option<&str> {
        self.0.leased.as_ref().map(|leased| leased.pool.as_str())
    }

    /// Into how many parts that pool divides a partition's sequence numbers.
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

/// The smallest ID of the 4 ms unit that a time lies in: the lower bound of a range query.
///
/// :raises ArgumentError: ``time`` is neither an aware datetime nor an int of nanoseconds.
/// :raises FieldError: ``time.naive`` or ``time.range``.
#[pyfunction]
#[pyo3(signature = (time, /))]
pub fn min_at(time: &Bound<'_, PyAny>) -> PyResult<SnoId> {
    scheme::min_at(values::time(time)?).map(SnoId).map_err(errors::value)
}

/// The largest ID of the 4 ms unit that a time lies in: the upper bound of a range query.
///
/// :raises ArgumentError: ``time`` is neither an aware datetime nor an int of nanoseconds.
/// :raises FieldError: ``time.naive`` or ``time.range``.
#[pyfunction]
#[pyo3(signature = (time, /))]
pub fn max_at(time: &Bound<'_, PyAny>) -> PyResult<SnoId> {
    scheme::max_at(values::time(time)?).map(SnoId).map_err(errors::value)
}

/// Writes the text of packed IDs, 16 characters each, into a buffer of exactly that size; returns how many IDs.
///
/// Both are buffers of bytes, or of items of one ID or text: numpy's ``V10`` and ``S16``.
///
/// :raises ArgumentError: an argument has no buffer.
/// :raises ParseError: ``parse.length``: ``ids`` is not a whole number of IDs.
/// :raises ConfigError: ``config.buffer``.
#[pyfunction]
#[pyo3(signature = (ids, text, /))]
pub fn encode_into(ids: &Bound<'_, PyAny>, text: &Bound<'_, PyAny>) -> PyResult<usize> {
    let source = hot::Readable::new(ids, "ids", hot::Items::Ids(scheme::SIZE))?;
    values::whole(source.len(), scheme::SIZE, "ids", "bytes")?;
    let count = source.len() / scheme::SIZE;
    let target = hot::Writable::exactly(text, hot::Items::Texts(scheme::TEXT), count * scheme::TEXT)?;
    hot::transform(ids.py(), &source, &target, Base32::encode_many);
    Ok(count)
}

/// Reads packed text, 16 characters an ID, into a buffer of exactly 10 bytes an ID; returns how many IDs.
///
/// Both are buffers of bytes, or of items of one text or ID: numpy's ``S16`` and ``V10``.
///
/// :raises ArgumentError: an argument has no buffer.
/// :raises ParseError: ``parse.length``, or ``parse.character`` with the position in the whole text; the buffer's content
///     is then unspecified.
/// :raises ConfigError: ``config.buffer``.
#[pyfunction]
#[pyo3(signature = (text, ids, /))]
pub fn parse_into(text: &Bound<'_, PyAny>, ids: &Bound<'_, PyAny>) -> PyResult<usize> {
    let source = hot::Readable::new(text, "text", hot::Items::Texts(scheme::TEXT))?;
    values::whole(source.len(), scheme::TEXT, "text", "characters")?;
    let count = source.len() / scheme::TEXT;
    let target = hot::Writable::exactly(ids, hot::Items::Ids(scheme::SIZE), count * scheme::SIZE)?;
    hot::transform(ids.py(), &source, &target, Base32::decode_many)
        .map_err(|position| id::wrong_byte::<SnoId>(&source.to_vec(ids.py()), position))?;
    Ok(count)
}

/// Puts the classes and functions into the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<SnoId>()?;
    module.add_class::<Array>()?;
    module.add_class::<ArrayIterator>()?;
    module.add_class::<Generator>()?;
    module.add_class::<Overflow>()?;
    module.add_class::<Snapshot>()?;
    module.add_function(wrap_pyfunction!(min_at, module)?)?;
    module.add_function(wrap_pyfunction!(max_at, module)?)?;
    module.add_function(wrap_pyfunction!(encode_into, module)?)?;
    module.add_function(wrap_pyfunction!(parse_into, module)?)?;
    hot::install_id::<SnoId>(py)?;
    hot::install_array::<Array>(py);
    generator::install::<Generator>(
        py,
        "partition=None, *, sequence_min=0, sequence_max=65535, on_overflow=None, shards=1",
    )
}
