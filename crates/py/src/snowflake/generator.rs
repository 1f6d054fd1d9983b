//! Generators of snowflakes.

use super::array::Array;
use super::layout::{Layout, chosen};
use crate::clock::Patience;
use crate::generator::{self, GeneratorState, NodeGenerator, generator};
use crate::leases::{Subject, Terms};
use crate::values::Defaulted;
use crate::{errors, hot, values};
use mintage_core::codec::as_chunks_mut;
use mintage_core::counting::{Counting, OnExhausted, OnRollback, Rules};
use mintage_core::given_time::GivenTimeCounter;
use mintage_core::schemes::snowflake::Stamp;
use mintage_core::step::{Refusal, Run};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::atomic::{AtomicU64, Ordering};

impl NodeGenerator for Generator {
    type Mint = Counting;
    type Minted = u64;
    type Origin = ();
    const TERM: &'static str = "node";
    const SIZE: usize = 8;

    #[inline(always)]
    fn state(&self) -> &GeneratorState<Counting> {
        &self.state
    }

    fn origin(&self, _: Python<'_>) -> PyResult<()> {
        Ok(())
    }

    fn own_node(&self, py: Python<'_>) -> PyResult<u64> {
        self.state.given().map_or_else(|| self.state.clock.random(py).map(|drawn| drawn & self.layout.0.max_node()), Ok)
    }

    fn set_node(&self, _: Python<'_>, node: u64, _: Option<()>) {
        self.node.store(node, Ordering::Relaxed);
        self.placed.store(self.layout.0.place_node(node), Ordering::Relaxed);
    }

    fn new_mint(&self) -> Counting {
        Counting::new(self.state.mint.rules().clone(), self.layout.0.window())
    }

    fn double(&self, _: Python<'_>, state: GeneratorState<Counting>) -> Self {
        let node = state.given().unwrap_or(0);
        Self::with(state, self.layout.clone(), node)
    }

    fn refused(&self, py: Python<'_>, patience: &mut Patience, why: Refusal) -> PyResult<()> {
        self.state.wait(py, patience, why)
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
        for place in as_chunks_mut(ids).0 {
            *place = id.to_ne_bytes();
            id = id.wrapping_add(self.stamp.stride());
        }
    }
}

impl Generator {
    fn with(state: GeneratorState<Counting>, layout: Layout, node: u64) -> Self {
        let (stamp, dated) = (Stamp::new(&layout.0), GivenTimeCounter::default());
        Self { state, layout, stamp, node: AtomicU64::new(node), placed: AtomicU64::new(0), dated }
    }
}

generator! {
    /// A generator of snowflakes, safe to share between threads.
    ///
    /// Generator(node=None, *, layout=DEFAULT, on_rollback="advance", on_exhausted="wait", store=None, nodes=None,
    /// never_used=False, pool=None, span_ms=None, on_lease_lost=None, clock=None, max_wait_ms=1000)
    ///
    /// >>> from mintage import snowflake
    /// >>> with snowflake.Generator(7) as generator:
    /// ...     id = generator.new()
    /// >>> snowflake.DEFAULT.parse(id).node
    /// 7
    ///
    /// :param node: a node number that fits the layout; without one it is leased, or drawn at random where there is a ``clock``
    ///     and no store, anew in every forked child.
    /// :param layout: what the bits of an ID mean.
    /// :param on_rollback: when the clock goes back: ``"advance"`` stays at the last tick and goes on from there until the
    ///     clock has caught up, ``"wait"`` waits until the clock is there again, ``"raise"`` raises.
    /// :param on_exhausted: when a tick's sequence numbers are used up: ``"wait"`` waits for the next tick, ``"advance"``
    ///     goes to it ahead of the clock, ``"raise"`` raises.
    pub struct Generator in "mintage.snowflake" {
        state: GeneratorState<Counting>,
        layout: Layout,
        stamp: Stamp,
        node: AtomicU64,
        placed: AtomicU64,
        /// The number of IDs of given times that were minted.
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
        let pool = layout.0.pool_layout();
        let subject = Subject::of("snowflake", &pool, given);
        let mint = Counting::new(rules, layout.0.window());
        let state = GeneratorState::new(py, mint, Terms::read(py, keywords)?, &subject, given)?;
        let made = Self::with(state, layout, given.unwrap_or(0));
        generator::attach_without_lease(&made, py)?;
        Ok(made)
    }

    /// Mint an ID: an int of the layout's bits, positive.
    ///
    /// >>> from mintage import snowflake
    /// >>> generator = snowflake.Generator(7)
    /// >>> generator.new() < generator.new()
    /// True
    ///
    /// :raises GenerationError: ``clock.rollback`` or ``sequence.exhausted`` where the policy says so or it would wait longer
    ///     than ``max_wait_ms``; ``clock.range``, ``fork.shared_node``, ``generator.closed``.
    #[pyo3(name = "new")]
    fn mint_one(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        hot::new_object_slow(slf, 0)
    }

    /// Mint an ID of a given time, for old rows: an aware datetime, or nanoseconds since the Unix epoch.
    ///
    /// One counter gives the sequence numbers of all times, and starts over after the layout's largest: so any :attr:`capacity`
    /// IDs in a row differ. It begins at the middle number: until half of the numbers are used, these IDs differ from the first half
    /// of a tick's IDs that :meth:`new` mints and :meth:`nth_at` returns.
    ///
    /// >>> from mintage import snowflake
    /// >>> snowflake.DEFAULT.parse(snowflake.Generator(7).new_at(1_700_000_000_000 * 10**6)).timestamp_ms
    /// 1700000000000
    ///
    /// :raises ArgumentError: ``time`` is neither.
    /// :raises FieldError: ``time.naive``, ``time.range``.
    /// :raises LeaseError: ``lease.history``: it leases its number from a store without ``never_used``, or the time is not
    ///     before its lease.
    /// :raises GenerationError: ``fork.shared_node``, ``generator.closed``.
    #[pyo3(signature = (time))]
    fn new_at(slf: &Bound<'_, Self>, time: &Bound<'_, PyAny>) -> PyResult<u64> {
        let (layout, time) = (&slf.get().layout.0, values::time(time)?);
        let tick = layout.tick(time.floor_ms()).map_err(errors::value)?;
        let composed = generator::mint_at(slf, time, tick, |this| {
            let sequence = this.dated.next(layout.ids_per_tick().into());
            layout.compose(time.floor_ms(), this.node.load(Ordering::Relaxed), sequence.into())
        })?;
        composed.map_err(errors::value)
    }

    /// Return the ``n``-th ID of a given time's tick, counted from 0. A tick has :attr:`capacity` IDs: the next numbers are
    /// those of the ticks after it. For old rows: of one node number, IDs that differ in tick or in ``n`` differ. They are
    /// the IDs that
    /// :meth:`new` mints in the tick: ask only for ticks in which it mints none.
    ///
    /// >>> from mintage import snowflake
    /// >>> snowflake.DEFAULT.parse(snowflake.Generator(7).nth_at(1_700_000_000_000 * 10**6, 5)).sequence
    /// 5
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
        let tick = layout.tick(time.floor_ms()).map_err(errors::value)?;
        let compose = |this: &Self| layout.compose(time.floor_ms(), this.node.load(Ordering::Relaxed), place.into());
        generator::mint_at(slf, time, tick, compose)?.map_err(errors::value)
    }

    /// The number of IDs in a tick.
    #[getter]
    fn capacity(&self) -> u32 {
        self.layout.0.ids_per_tick()
    }

    /// Mint ``n`` IDs, 0 to 2^31 - 1, into one :class:`Array`.
    ///
    /// >>> from mintage import snowflake
    /// >>> len(snowflake.Generator(7).batch(3))
    /// 3
    ///
    /// :raises ArgumentError: ``n`` is not an int.
    /// :raises FieldError: ``field.range``.
    /// :raises GenerationError: as :meth:`new`.
    #[pyo3(signature = (n))]
    fn batch(slf: &Bound<'_, Self>, n: &Bound<'_, PyAny>) -> PyResult<Array> {
        Ok(Array { data: generator::batch(slf, n, 0)?.unbind(), layout: slf.get().layout.clone() })
    }

    /// Fill a writable buffer with IDs, 8 bytes each in native order, and return their number.
    ///
    /// Its items are unsigned integers of 64 bits (``array.array("Q")``, numpy's uint64), bytes, or, for a layout of fewer than
    /// 64 bits, signed integers of 64 bits.
    ///
    /// >>> from mintage import snowflake
    /// >>> snowflake.Generator(7).fill(bytearray(24))
    /// 3
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
        Ok(generator::attach_to_read(slf)?.get().node.load(Ordering::Relaxed))
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

/// Puts the class into the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Generator>()?;
    generator::install::<Generator>(module.py(), "node=None, *, layout=..., on_rollback='advance', on_exhausted='wait'")
}
