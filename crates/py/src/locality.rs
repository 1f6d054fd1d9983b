//! `mintage.locality`: UUIDs of version b.

use crate::clock::Patience;
use crate::generator::{self, GeneratorState, MintsAt, NodeGenerator, packed_generator};
use crate::id::id;
use crate::leases::{Subject, Terms};
use crate::values::Defaulted;
use crate::{errors, fields, hot, values};
use mintage_core::codec::as_chunks_mut;
use mintage_core::format::Part;
use mintage_core::given_time::GivenTimeCounter;
use mintage_core::schemes::locality::{self as scheme, Mint, Mode, Origin};
use mintage_core::step::{Refusal, Run};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple, PyType};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

id! {
    /// A UUID of version b: its first digits scatter or cluster, and its fields tell counter, process, host and time.
    ///
    /// ID(value)
    ///
    /// ``value`` is 16 bytes. Any UUID can be held; the fields other than ``version`` are those of version b alone. They are
    /// not RFC 9562 UUIDs: the bits of its variant belong to the MAC fragment.
    LocalityId(scheme::Id) in "mintage.locality", "locality", 16 bytes, 36 characters:
    "Parse the text of any UUID: 36 characters, hex digits of either case with hyphens where they belong."
    {
        /// Return the ID of a ``uuid.UUID``.
        ///
        /// >>> from mintage import locality
        /// >>> id = locality.new()
        /// >>> locality.ID.from_uuid(id.as_uuid()) == id
        /// True
        ///
        /// :raises ArgumentError: ``value`` is not a uuid.UUID.
        #[staticmethod]
        #[pyo3(signature = (value, /))]
        fn from_uuid(value: &Bound<'_, PyAny>) -> PyResult<Self> {
            Ok(Self(scheme::Id(u128::from_be_bytes(values::uuid_bytes(value)?))))
        }

        /// Compose an ID from its fields, by name: its time, 1970 to the year 10889, as ``time``, an aware datetime, or as
        /// ``timestamp_ms`` or ``timestamp_ns`` since the Unix epoch; ``counter``, 0 to 2^32 - 1, written as ``mode`` writes
        /// it: ``"variable"`` (nibbles reversed) or ``"sequential"``; ``pid``, 0 to 65535; ``mac``, 7 hex digits, or a whole
        /// MAC address of which the last 7 count. All but the time are 0 where they are left out.
        ///
        /// >>> from mintage import locality
        /// >>> id = locality.ID.from_parts(timestamp_ms=1_700_000_000_000, pid=7, mac="0abcdef")
        /// >>> id.pid, id.mac, id.timestamp_ms
        /// (7, '0abcdef', 1700000000000)
        ///
        /// :raises ArgumentError: a value of the wrong type.
        /// :raises FieldError: ``time.naive``, ``time.range``, ``field.range`` or ``field.format``.
        /// :raises ConfigError: ``config.policy``: an unknown mode.
        #[staticmethod]
        #[pyo3(signature = (*, mode = Defaulted::OUT, **fields), text_signature = "(*, mode='variable', **fields)")]
        fn from_parts(mode: Defaulted<'_>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
            let (mode, id) = (mode_of(mode.given())?, fields::from_parts::<Self>(fields, scheme::FORMAT)?);
            Ok(id.counted_in(mode))
        }

        /// Return the same ID with other fields, as :meth:`from_parts` takes them; ``mode`` applies to ``counter`` alone.
        ///
        /// >>> from mintage import locality
        /// >>> locality.new().replace(pid=7).pid
        /// 7
        ///
        /// :raises ArgumentError: a value of the wrong type.
        /// :raises FieldError: ``time.naive``, ``time.range``, ``field.range`` or ``field.format``; ``field.version`` unless
        ///     the version is b.
        /// :raises ConfigError: ``config.policy``: an unknown mode.
        #[pyo3(signature = (*unnamed, mode = Defaulted::OUT, **fields), text_signature = "($self, *, mode='variable', **fields)")]
        fn replace(
            &self,
            unnamed: &Bound<'_, PyTuple>,
            mode: Defaulted<'_>,
            fields: Option<&Bound<'_, PyDict>>,
        ) -> PyResult<Self> {
            let (mode, id) = (mode_of(mode.given())?, fields::replace(*self, unnamed, fields)?);
            let is_counted = fields.is_some_and(|fields| fields.contains("counter").unwrap_or(false));
            Ok(if is_counted { id.counted_in(mode) } else { id })
        }

        /// The version digit: ``"b"`` for this scheme.
        #[getter]
        fn version(&self) -> char {
            self.0.version()
        }

        /// The counter, 0 to 2^32 - 1, read as sequential mode writes it: the first 8 digits as they stand.
        ///
        /// :raises FieldError: ``field.version`` unless the version is b.
        #[getter]
        fn sequential_counter(&self) -> PyResult<u64> {
            self.0.field(scheme::COUNTER, "sequential_counter").map_err(errors::value)
        }

        /// Return the ``uuid.UUID`` of the same 128 bits.
        ///
        /// >>> from mintage import locality
        /// >>> id = locality.new()
        /// >>> str(id.as_uuid()) == str(id)
        /// True
        fn as_uuid<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
            values::uuid(py, self.0.0.to_be_bytes())
        }
    }
}

impl LocalityId {
    /// The same ID with its counter written as a mode writes it, from an ID that variable mode wrote.
    fn counted_in(self, mode: Mode) -> Self {
        let written = scheme::COUNTER.get(self.0.0);
        match mode {
            Mode::Variable => self,
            Mode::Sequential => {
                let counter = u64::from(Mode::Variable.written(written as u32));
                Self(scheme::Id(self.0.0 ^ scheme::COUNTER.put(written ^ counter)))
            }
        }
    }
}

impl fields::HasFields for LocalityId {
    fn check_version(&self, field: &'static str) -> PyResult<()> {
        self.0.field(scheme::VERSION, field).map(drop).map_err(errors::value)
    }

    fn number(part: &Part<'_>, value: &Bound<'_, PyAny>) -> PyResult<u128> {
        if part.name != "mac" {
            return fields::number(part, value);
        }
        scheme::mac_fragment(&values::text(value, "mac")?).map(u128::from).map_err(errors::value)
    }
}

fn mode_of(value: Option<&Bound<'_, PyAny>>) -> PyResult<Mode> {
    values::policy(value, "mode", &[("variable", Mode::Variable), ("sequential", Mode::Sequential)])
}

impl NodeGenerator for Generator {
    type Mint = Mint;
    type Minted = scheme::Id;
    /// The start of the counter.
    type Origin = u32;
    const TERM: &'static str = "pid";
    const SIZE: usize = scheme::SIZE;
    /// A run reads the time once: longer runs would give a long batch one millisecond.
    const AT_ONCE: u32 = 4096;

    #[inline(always)]
    fn state(&self) -> &GeneratorState<Mint> {
        &self.state
    }

    fn origin(&self, py: Python<'_>) -> PyResult<u32> {
        self.first_counter(py, self.mode())
    }

    fn own_node(&self, py: Python<'_>) -> PyResult<u64> {
        let mac = self.given_mac.map_or_else(|| host_mac(py), Ok)?;
        Ok(scheme::node_of(self.given_pid.unwrap_or_else(|| std::process::id() as u16), mac))
    }

    fn set_node(&self, _: Python<'_>, node: u64, start: Option<u32>) {
        self.origin.store(node, Ordering::Relaxed);
        if let Some(start) = start {
            self.start.store(start, Ordering::Relaxed);
        }
    }

    fn forked(&self) {
        self.state.mint.restart();
    }

    fn new_mint(&self) -> Mint {
        Mint::new(scheme::WINDOW)
    }

    fn double(&self, _: Python<'_>, state: GeneratorState<Mint>) -> Self {
        Self {
            sequential: AtomicBool::new(self.sequential.load(Ordering::Relaxed)),
            start: AtomicU32::new(0),
            origin: AtomicU64::new(0),
            dated: GivenTimeCounter::default(),
            given_pid: state.given().map(|pid| pid as u16),
            given_mac: self.given_mac.or(Some(0)),
            given_counter: self.given_counter,
            state,
        }
    }

    fn refused(&self, _: Python<'_>, _: &mut Patience, _: Refusal) -> PyResult<()> {
        unreachable!("its state is never used up, and no clock is too early for it")
    }

    #[inline(always)]
    fn first(&self, _: Python<'_>, run: Run, _: u8) -> scheme::Id {
        self.id(run, 0)
    }

    #[inline(always)]
    fn object(py: Python<'_>, minted: scheme::Id) -> hot::Object {
        hot::object(py, LocalityId(minted))
    }

    fn write(&self, _: Python<'_>, run: Run, _: u8, ids: &mut [u8]) {
        for (index, place) in (0..).zip(as_chunks_mut(ids).0) {
            *place = self.id(run, index).0.to_be_bytes();
        }
    }
}

impl MintsAt for Generator {
    fn new_at(slf: &Bound<'_, Self>, time: &Bound<'_, PyAny>) -> PyResult<scheme::Id> {
        let time = values::time(time)?;
        let tick = scheme::tick(time.floor_ms()).map_err(errors::value)?;
        generator::mint_at(slf, time, tick, |this| {
            let first = this.dated.next(this.capacity());
            this.id(Run { tick: tick.0, first, count: 1 }, 0)
        })
    }

    fn nth_at(slf: &Bound<'_, Self>, time: &Bound<'_, PyAny>, n: &Bound<'_, PyAny>) -> PyResult<scheme::Id> {
        let (time, first) = generator::nth(time, n, slf.get().capacity(), scheme::SCALE.unit_ms)?;
        let tick = scheme::tick(time.floor_ms()).map_err(errors::value)?;
        generator::mint_at(slf, time, tick, |this| this.id(Run { tick: tick.0, first, count: 1 }, 0))
    }
}

impl Generator {
    #[inline(always)]
    fn id(&self, run: Run, index: u32) -> scheme::Id {
        let mode = self.mode();
        let counter = mode.advance(self.start.load(Ordering::Relaxed), run.first.wrapping_add(index));
        let (pid, mac) = scheme::origin_of(self.origin.load(Ordering::Relaxed));
        scheme::Id::new(mode.written(counter), Origin::new(pid, mac), run.tick)
    }

    #[inline(always)]
    fn mode(&self) -> Mode {
        if self.sequential.load(Ordering::Relaxed) { Mode::Sequential } else { Mode::Variable }
    }

    fn first_counter(&self, py: Python<'_>, mode: Mode) -> PyResult<u32> {
        match (self.given_counter, mode) {
            (Some(counter), _) => Ok(counter),
            (None, Mode::Variable) => Ok(self.state.clock.random(py)? as u32),
            (None, Mode::Sequential) => Ok(scheme::sequential_seed(self.state.clock.now(py)?.floor_ms())),
        }
    }
}

/// Return the counter from which sequential mode counts in the ten minutes of a time, an aware datetime or nanoseconds since
/// the Unix epoch: the first ID of a generator that starts then has the next number in its first 8 digits.
///
/// >>> from mintage import locality
/// >>> locality.sequential_seed(1_715_947_200_000_000_000)
/// 304158628
///
/// :raises ArgumentError: ``time`` is no datetime and no int.
/// :raises FieldError: ``time.naive``; ``time.range``: it is before 1970, or after 2248.
#[pyfunction]
#[pyo3(signature = (time, /))]
fn sequential_seed(time: &Bound<'_, PyAny>) -> PyResult<u32> {
    let time = values::time(time)?.floor_ms();
    scheme::tick(time).map_err(errors::value)?;
    Ok(scheme::sequential_seed(time))
}

fn host_mac(py: Python<'_>) -> PyResult<u32> {
    // `uuid.getnode` reads the address on every platform, and draws a random one if there is none.
    let node: u64 = py.import("uuid")?.call_method0("getnode")?.extract()?;
    Ok((node & scheme::MAC.max()) as u32)
}

packed_generator! {
    /// A generator of locality UUIDs, safe to share between threads.
    ///
    /// Generator(mode="variable", *, pid=None, mac=None, counter=None, store=None, nodes=None, never_used=False, pool=None,
    /// span_ms=None, on_lease_lost=None, clock=None, max_wait_ms=1000)
    ///
    /// Its node number is pid and MAC fragment together. Without a ``pid`` or a ``mac`` it leases one: that of the process
    /// and the host, if no other generator has it, or else one with another MAC fragment. A forked child reads its own pid
    /// and starts its own counter.
    ///
    /// >>> from mintage import locality
    /// >>> with locality.Generator(pid=7, mac="0abcdef") as generator:
    /// ...     id = generator.new()
    /// >>> id.pid, id.mac
    /// (7, '0abcdef')
    ///
    /// :param mode: ``"variable"``: first digits scatter; ``"sequential"``: they cluster.
    /// :param pid: 0 to 65535; by default the process id modulo 65536.
    /// :param mac: 7 hex digits or a whole MAC address; by default this host's.
    /// :param counter: where counting starts, 0 to 2^32 - 1; by default a random number, or in sequential mode the seed of the
    ///     present ten minutes.
    pub struct Generator in "mintage.locality" {
        state: GeneratorState<Mint>,
        sequential: AtomicBool,
        start: AtomicU32,
        /// pid and MAC fragment together.
        origin: AtomicU64,
        /// The number of IDs of given times that were minted.
        dated: GivenTimeCounter,
        given_pid: Option<u16>,
        given_mac: Option<u32>,
        given_counter: Option<u32>,
    }
    mints LocalityId in "locality", 16 bytes, by ("pid=7")
    new_at: "The time is before 2248. One counter serves all times, and starts over after 2^32 IDs: so any 2^32 IDs of one mode in\na row differ. It begins half way round: until half of its numbers are used, these IDs differ from the first half of a\nmillisecond's IDs that :meth:`new` mints and :meth:`nth_at` returns. A time has no smallest and no largest ID: the\ncounter comes first, so IDs do not sort by time."
    nth_at: "They can be those that :meth:`new` mints, and in another mode those of :meth:`nth_at`: ask only for times in which\n:meth:`new` mints none, and in one mode."

    #[new]
    #[pyo3(signature = (mode = Defaulted::OUT, *, pid = None, mac = None, counter = None, **keywords))]
    fn py_new(
        py: Python<'_>,
        mode: Defaulted<'_>,
        pid: Option<&Bound<'_, PyAny>>,
        mac: Option<&Bound<'_, PyAny>>,
        counter: Option<&Bound<'_, PyAny>>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mac = mac.map(|mac| scheme::mac_fragment(&values::text(mac, "mac")?).map_err(errors::value)).transpose()?;
        let pid = pid.map(|pid| values::node(pid, "pid", u16::MAX.into())).transpose()?;
        let mode = mode_of(mode.given())?;
        let counter = counter.map(|c| values::field(c, "counter", u32::MAX.into())).transpose()?;
        let node = match pid {
            Some(pid) => Some(scheme::node_of(pid as u16, mac.map_or_else(|| host_mac(py), Ok)?)),
            None => None,
        };
        let pool = scheme::pool_layout();
        let subject = Subject { own_mac: mac, ..Subject::of(scheme::POOL, &pool, node) };
        let mint = Mint::new(scheme::WINDOW);
        Ok(Self {
            state: GeneratorState::new(py, mint, Terms::read(py, keywords)?, &subject, pid)?,
            sequential: AtomicBool::new(mode == Mode::Sequential),
            start: AtomicU32::new(0),
            origin: AtomicU64::new(0),
            dated: GivenTimeCounter::default(),
            given_pid: pid.map(|pid| pid as u16),
            given_mac: mac,
            given_counter: counter.map(|counter| counter as u32),
        })
    }

    /// Mint an ID.
    ///
    /// >>> from mintage import locality
    /// >>> locality.Generator(pid=7).new().pid
    /// 7
    ///
    /// :raises GenerationError: ``clock.range``, ``fork.shared_node``, ``generator.closed``.
    #[pyo3(name = "new")]
    fn mint_one(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        hot::new_object_slow(slf, 0)
    }

    /// The number of IDs in a millisecond.
    #[getter]
    fn capacity(&self) -> u64 {
        1 << scheme::COUNTER.bits
    }

    /// Change to another mode, with a counter of its own. The present mode changes nothing.
    ///
    /// IDs stay unique: those after a change are of later times than those before. So times may be ahead of the clock, by
    /// up to 2.048 s for each change that was made while the clock stood in the same 2.048 s.
    ///
    /// >>> from mintage import locality
    /// >>> generator = locality.Generator(pid=7)
    /// >>> generator.use_mode("sequential")
    /// >>> generator.mode
    /// 'sequential'
    ///
    /// :raises ArgumentError: ``mode`` is not str.
    /// :raises ConfigError: ``config.policy``: an unknown mode.
    /// :raises GenerationError: ``fork.shared_node``, ``generator.closed``.
    #[pyo3(signature = (mode, /))]
    fn use_mode(slf: &Bound<'_, Self>, mode: &Bound<'_, PyAny>) -> PyResult<()> {
        let (slf, py, mode) = (&generator::acting(slf)?, slf.py(), mode_of(Some(mode))?);
        let this = slf.get();
        generator::attach(slf)?;
        if mode != this.mode() {
            let start = this.first_counter(py, mode)?;
            this.state.gate.change(|| {
                // If several threads change the mode, the first one does.
                if mode != this.mode() {
                    this.state.mint.restart();
                    this.start.store(start, Ordering::Relaxed);
                    this.sequential.store(mode == Mode::Sequential, Ordering::Relaxed);
                }
            });
        }
        Ok(())
    }

    /// The mode: ``"variable"`` or ``"sequential"``.
    #[getter(mode)]
    fn mode_name(slf: &Bound<'_, Self>) -> PyResult<&'static str> {
        Ok(match generator::acting(slf)?.get().mode() {
            Mode::Variable => "variable",
            Mode::Sequential => "sequential",
        })
    }

    /// The process id modulo 65536.
    #[getter]
    fn pid(slf: &Bound<'_, Self>) -> PyResult<u16> {
        let slf = generator::attach_to_read(slf)?;
        let this = slf.get();
        if let Some(pid) = this.given_pid {
            return Ok(pid);
        }
        Ok(scheme::origin_of(this.origin.load(Ordering::Relaxed)).0)
    }

    /// The last 7 hex digits of the MAC address.
    ///
    /// :raises GenerationError: ``fork.shared_node``, where it was not given.
    #[getter]
    fn mac(slf: &Bound<'_, Self>) -> PyResult<String> {
        let slf = &generator::acting(slf)?;
        let this = slf.get();
        if this.given_mac.is_none() && !this.state.gate.is_closed() {
            generator::attach(slf)?;
        }
        let mac = this.given_mac.unwrap_or_else(|| scheme::origin_of(this.origin.load(Ordering::Relaxed)).1);
        Ok(format!("{mac:07x}"))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        Ok(format!("<locality.Generator mode={}>", Self::mode_name(slf)?))
    }
}

/// Puts the classes and functions into the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<LocalityId>()?;
    module.add_class::<Array>()?;
    module.add_class::<Generator>()?;
    module.add_function(wrap_pyfunction!(sequential_seed, module)?)?;
    hot::install_id::<LocalityId>(py)?;
    fields::install::<LocalityId>(py, &[scheme::FORMAT])?;
    hot::install_array::<Array>(py);
    generator::install::<Generator>(py, "mode='variable', *, pid=None, mac=None, counter=None")
}
