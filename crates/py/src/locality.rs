//! `mintage.locality`: UUIDs of version b.

use crate::array::array;
use crate::clock::{Clock, Patience};
use crate::fork::{self, Entry, Gate};
use crate::leases::{Grant, Leases, Standing, Subject, Terms};
use crate::values::Defaulted;
use crate::{errors, hot, values};
use mintage_core::codec::hex;
use mintage_core::error::Error;
use mintage_core::schemes::locality::{self as scheme, Lot, Mint, Mode, Origin};
use mintage_core::step::Refusal;
use mintage_core::units::{Tick, Timescale, UnixMs};
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDateTime, PyList, PySlice, PyString, PyType};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// A UUID of version b: its first digits scatter or cluster, and its fields tell counter, process, host and time.
///
/// ID(value)
///
/// ``value`` is 16 bytes. Any UUID can be held; the fields other than ``version`` are those of version b alone. IDs order as
/// their bytes, text and integers do; they hash, pickle and copy. They are not RFC 9562 UUIDs: the bits of its variant
/// belong to the MAC fragment.
///
/// :raises ArgumentError: ``value`` has no contiguous buffer.
/// :raises ParseError: ``parse.length``: not 16 bytes.
#[pyclass(frozen, name = "ID", module = "mintage.locality")]
#[derive(Clone, Copy)]
pub struct LocalityId(pub scheme::Id);

impl LocalityId {
    fn from_slice(bytes: &[u8]) -> Self {
        let mut id = [0; scheme::SIZE];
        id.copy_from_slice(bytes);
        Self(scheme::Id(u128::from_be_bytes(id)))
    }

    fn to_array(self) -> [u8; scheme::SIZE] {
        self.0.0.to_be_bytes()
    }
}

impl hot::Reborn for LocalityId {
    fn free_list() -> &'static hot::FreeList {
        static LIST: hot::FreeList = hot::FreeList::new();
        &LIST
    }
}

impl hot::Text for LocalityId {
    type Characters = [u8; scheme::TEXT];

    #[inline(always)]
    fn characters(&self) -> Self::Characters {
        self.0.encode()
    }

    #[inline(always)]
    fn quick(text: &[u8]) -> Option<Self> {
        hex::decode(text.try_into().ok()?).ok().map(|bytes| Self(scheme::Id(u128::from_be_bytes(bytes))))
    }

    fn read(text: &str) -> PyResult<Self> {
        scheme::Id::parse(text).map(Self).map_err(errors::value)
    }
}

#[pymethods]
impl LocalityId {
    #[new]
    #[pyo3(signature = (value, /))]
    fn py_new(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Self::from_bytes(value)
    }

    /// Reads the text of any UUID: 36 characters, hex digits of either case with hyphens where they belong.
    ///
    /// :raises ArgumentError: ``text`` is not str.
    /// :raises ParseError: ``parse.length``, or ``parse.character`` with its position.
    #[staticmethod]
    #[pyo3(signature = (text, /))]
    fn parse(text: &Bound<'_, PyAny>) -> PyResult<Self> {
        hot::Text::read(&values::text(text, "text")?)
    }

    /// Reads 16 bytes; any 16 bytes are a UUID.
    ///
    /// :raises ArgumentError: ``value`` has no buffer.
    /// :raises ConfigError: ``config.buffer``: its items are no bytes, or it is not contiguous.
    /// :raises ParseError: ``parse.length``: not 16 bytes.
    #[staticmethod]
    #[pyo3(signature = (value, /))]
    fn from_bytes(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let bytes = values::bytes(value, "value", hot::Items::Ids(scheme::SIZE))?;
        let id = bytes.as_slice().try_into().map_err(|_| {
            let expected = scheme::SIZE;
            errors::value(Error::Length { what: "locality ID", actual: bytes.len(), expected, unit: "bytes" })
        })?;
        Ok(Self(scheme::Id(u128::from_be_bytes(id))))
    }

    /// The ID whose 128 bits are this integer, 0 to 2^128 - 1.
    ///
    /// :raises ArgumentError: ``value`` is not an int.
    /// :raises FieldError: ``field.range``.
    #[staticmethod]
    #[pyo3(signature = (value, /))]
    fn from_int(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(bits) = value.extract::<u128>() {
            return Ok(Self(scheme::Id(bits)));
        }
        values::field(value, "int", u128::MAX).map(|bits| Self(scheme::Id(bits)))
    }

    /// The ID of a ``uuid.UUID``.
    ///
    /// :raises ArgumentError: ``value`` is not a uuid.UUID.
    #[staticmethod]
    #[pyo3(signature = (value, /))]
    fn from_uuid(value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self(scheme::Id(u128::from_be_bytes(values::uuid_bytes(value)?))))
    }

    /// Composes an ID from its fields.
    ///
    /// ``counter`` is 0 to 2^32 - 1, written as ``mode`` writes it: ``"variable"`` (nibbles reversed) or ``"sequential"``.
    /// ``pid`` is 0 to 65535, ``mac`` 7 hex digits or a whole MAC address of which the last 7 count, ``timestamp_ms``
    /// milliseconds since the Unix epoch, 0 to 2^48 - 1.
    ///
    /// :raises ArgumentError: a value of the wrong type.
    /// :raises FieldError: ``field.range`` or ``field.format``.
    /// :raises ConfigError: ``config.policy``: an unknown mode.
    #[staticmethod]
    #[pyo3(signature = (*, counter, pid, mac, timestamp_ms, mode = Defaulted::OUT))]
    #[pyo3(text_signature = "(*, counter, pid, mac, timestamp_ms, mode='variable')")]
    fn from_parts(
        counter: &Bound<'_, PyAny>,
        pid: &Bound<'_, PyAny>,
        mac: &Bound<'_, PyAny>,
        timestamp_ms: &Bound<'_, PyAny>,
        mode: Defaulted<'_>,
    ) -> PyResult<Self> {
        let counter = values::field(counter, "counter", u32::MAX.into())? as u32;
        let pid = values::field(pid, "pid", u16::MAX.into())? as u16;
        let mac = scheme::mac_fragment(&values::text(mac, "mac")?).map_err(errors::value)?;
        let time = values::field(timestamp_ms, "timestamp_ms", scheme::TIME.max().into())? as u64;
        let written = mode_of(mode.given())?.written(counter);
        Ok(Self(scheme::Id::new(written, Origin::new(pid, mac), time)))
    }

    /// The version digit: ``"b"`` for this scheme.
    #[getter]
    fn version(&self) -> char {
        self.0.version()
    }

    /// The counter, 0 to 2^32 - 1, read as variable mode writes it: first digit least significant.
    ///
    /// :raises FieldError: ``field.version`` unless the version is b.
    #[getter]
    fn counter(&self) -> PyResult<u32> {
        self.written("counter").map(|written| Mode::Variable.written(written))
    }

    /// The counter, 0 to 2^32 - 1, read as sequential mode writes it: the first 8 digits as they stand.
    ///
    /// :raises FieldError: ``field.version`` unless the version is b.
    #[getter]
    fn sequential_counter(&self) -> PyResult<u32> {
        self.written("counter")
    }

    /// The process id modulo 65536.
    ///
    /// :raises FieldError: ``field.version`` unless the version is b.
    #[getter]
    fn pid(&self) -> PyResult<u64> {
        self.0.field(scheme::PID, "pid").map_err(errors::value)
    }

    /// The last 7 hex digits of a MAC address.
    ///
    /// :raises FieldError: ``field.version`` unless the version is b.
    #[getter]
    fn mac(&self) -> PyResult<String> {
        self.0.field(scheme::MAC, "mac").map(|mac| format!("{mac:07x}")).map_err(errors::value)
    }

    /// When it was minted, in milliseconds since the Unix epoch, 0 to 2^48 - 1.
    ///
    /// :raises FieldError: ``field.version`` unless the version is b.
    #[getter]
    fn timestamp_ms(&self) -> PyResult<u64> {
        self.0.field(scheme::TIME, "timestamp_ms").map_err(errors::value)
    }

    /// When it was minted: an aware UTC datetime.
    ///
    /// :raises FieldError: ``field.version`` unless the version is b; ``time.range`` after year 9999.
    #[getter]
    fn time<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDateTime>> {
        let ms = self.0.field(scheme::TIME, "time").map_err(errors::value)?;
        values::datetime(py, UnixMs(ms as i64))
    }

    /// The ``uuid.UUID`` of the same 128 bits.
    fn as_uuid<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        values::uuid(py, self.to_array())
    }

    fn __str__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        hot::ascii(py, &self.0.encode())
    }

    fn __repr__(&self) -> String {
        format!("locality.ID.parse('{}')", self.0)
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.to_array())
    }

    fn __int__(&self) -> u128 {
        self.0.0
    }

    fn __hash__(&self) -> isize {
        hot::hash(self.0.0)
    }

    fn __richcmp__(&self, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        let py = other.py();
        match other.cast::<Self>() {
            Ok(other) => Ok(op.matches(self.0.cmp(&other.get().0)).into_pyobject(py)?.to_owned().into_any().unbind()),
            Err(_) => Ok(py.NotImplemented()),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> (Bound<'py, PyType>, (Bound<'py, PyBytes>,)) {
        (slf.get_type(), (slf.get().__bytes__(slf.py()),))
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (memo, /))]
    fn __deepcopy__(slf: Py<Self>, memo: &Bound<'_, PyAny>) -> Py<Self> {
        let _ = memo;
        slf
    }
}

impl LocalityId {
    fn written(&self, name: &'static str) -> PyResult<u32> {
        self.0.field(scheme::COUNTER, name).map(|counter| counter as u32).map_err(errors::value)
    }
}

fn bad_byte(text: &[u8], position: usize) -> Error {
    scheme::bad_character(text.get(position).copied().map_or('\0', char::from), position, position % scheme::TEXT)
}

array!(
    "mintage.locality",
    LocalityId,
    scheme::SIZE,
    scheme::TEXT,
    hex::encode_many,
    hex::decode_many,
    "locality",
    bad_byte
);

fn mode_of(value: Option<&Bound<'_, PyAny>>) -> PyResult<Mode> {
    values::policy(value, "mode", &[("variable", Mode::Variable), ("sequential", Mode::Sequential)])
}

const CLOCK: Timescale = Timescale { epoch_ms: 0, unit_ms: 1 };

/// Mints locality UUIDs; safe to share between threads.
///
/// Generator(mode="variable", *, pid=None, mac=None, counter=None, store=None, nodes=None, never_used=False, pool=None,
/// span_ms=None, on_lease_lost=None, clock=None, max_wait_ms=1000)
///
/// Its node number is pid and MAC fragment together. Without a ``pid`` or ``mac`` of your own it is leased: the process's own
/// where nobody else has it, else with another MAC fragment. A forked child reads its own pid and starts its own counter.
///
/// :param mode: ``"variable"``: first digits scatter; ``"sequential"``: they cluster.
/// :param pid: 0 to 65535; by default the process id modulo 65536.
/// :param mac: 7 hex digits or a whole MAC address; by default this host's.
/// :param counter: where counting starts, 0 to 2^32 - 1; by default a random number, or in sequential mode the seed of the
///     present ten minutes.
/// :param store: a URL or a Store where the node number is leased; by default ``MINTAGE_STORE``, or else the registry of this
///     machine.
/// :param nodes: a range of node numbers to choose from.
/// :param never_used: whether only a number will do that nobody ever had.
/// :param pool: the name of another pool.
/// :param span_ms: how far ahead windows are granted, 1,000 to 86,400,000 milliseconds.
/// :param on_lease_lost: what comes at the end of the window when the lease was lost: ``"raise"``, the default where a store
///     is named, or ``"move"``, to another lease.
/// :param clock: a ManualClock, or a callable that returns nanoseconds since the Unix epoch; the system's by default.
/// :param max_wait_ms: the longest that an ID is waited for, in milliseconds.
/// :raises ArgumentError: an argument of the wrong type.
/// :raises FieldError: ``field.range`` or ``field.format``.
/// :raises ConfigError: ``config.policy``, ``config.node``, ``config.store``.
///
/// Where it has a lease, any call that mints raises LeaseError ``lease.none_free``, ``lease.lost`` or ``lease.clock``, and
/// StoreError ``store.unavailable`` or ``store.refused``.
///
/// Any call that reads ``clock`` raises ConfigError ``config.clock`` where what it returned is no int.
#[pyclass(frozen, weakref, module = "mintage.locality")]
pub struct Generator {
    gate: Gate,
    mint: Mint,
    leases: Option<Leases>,
    sequential: AtomicBool,
    start: AtomicU32,
    pid: AtomicU32,
    mac: AtomicU32,
    given_pid: Option<u16>,
    given_mac: Option<u32>,
    given_counter: Option<u32>,
    clock: Clock,
    max_wait_ms: u64,
}

impl Drop for Generator {
    fn drop(&mut self) {
        if let Some(leases) = &self.leases
            && self.gate.is_seated()
        {
            leases.abandon(CLOCK.start(self.mint.close()));
        }
    }
}

impl hot::Mints for Generator {
    type Minted = scheme::Id;
    const HAS_META: bool = false;

    #[inline(always)]
    fn quick(&self, _: u8) -> Option<Self::Minted> {
        if !self.gate.is_fast() {
            return None;
        }
        let now = u64::try_from(hot::now().0).ok()?;
        let lot = self.mint.take(Tick(now), 1).ok()?;
        Some(self.id(lot, 0))
    }

    fn slow(slf: &Bound<'_, Self>, _: u8) -> PyResult<Self::Minted> {
        let lot = Self::take(slf, 1)?;
        Ok(slf.get().id(lot, 0))
    }

    #[inline(always)]
    fn object(py: Python<'_>, minted: Self::Minted) -> hot::Object {
        hot::object(py, LocalityId(minted))
    }
}

impl hot::OfModule for Generator {
    fn of_module() -> &'static AtomicPtr<pyo3::ffi::PyObject> {
        static GENERATOR: AtomicPtr<pyo3::ffi::PyObject> = AtomicPtr::new(std::ptr::null_mut());
        &GENERATOR
    }
}

impl Generator {
    #[inline(always)]
    fn id(&self, lot: Lot, index: u32) -> scheme::Id {
        let mode = self.mode();
        let counter = mode.advance(self.start.load(Ordering::Relaxed), lot.first.wrapping_add(index));
        let origin = Origin::new(self.pid.load(Ordering::Relaxed) as u16, self.mac.load(Ordering::Relaxed));
        scheme::Id::new(mode.written(counter), origin, lot.time_ms)
    }

    #[inline(always)]
    fn mode(&self) -> Mode {
        if self.sequential.load(Ordering::Relaxed) { Mode::Sequential } else { Mode::Variable }
    }

    fn take(slf: &Bound<'_, Self>, want: u32) -> PyResult<Lot> {
        let (this, py) = (slf.get(), slf.py());
        let mut patience = Patience::new(this.max_wait_ms);
        loop {
            let now = this.clock.tick(py, CLOCK)?;
            Self::seat(slf)?;
            let (Refusal::Outside { tick } | Refusal::Exhausted { until: tick } | Refusal::Rollback { until: tick }) =
                match this.mint.take(now, want) {
                    Ok(lot) => return Ok(lot),
                    Err(refusal) => refusal,
                };
            match &this.leases {
                Some(leases) if scheme::WINDOW.holds(tick) => {
                    leases.renew(py, &this.gate, &mut patience, &this.clock, |grant| this.settle(leases, grant))?;
                }
                _ => {
                    let (now, end) = (CLOCK.start(tick), CLOCK.start(scheme::WINDOW.until));
                    let message = format!("the clock reads {now}, generators mint until {end}");
                    return Err(errors::generation(py, "clock.range", &message, None));
                }
            }
        }
    }

    /// Mints under a grant from now on; a new one makes it start over. Says whether the window has moved.
    fn settle(&self, leases: &Leases, grant: &Grant) -> bool {
        let window = grant.window(CLOCK, scheme::WINDOW);
        match leases.settle(grant) {
            Standing::New => {}
            Standing::Same => return self.mint.extend(window.until),
            Standing::Stale => return true,
        }
        let (pid, mac) = scheme::origin_of(grant.node);
        self.pid.store(pid.into(), Ordering::Relaxed);
        self.mac.store(mac, Ordering::Relaxed);
        self.mint.reset(window);
        true
    }

    /// Reads pid and MAC, or leases what stands for them, and starts the counter: in this process, not in a parent of it.
    fn seat(slf: &Bound<'_, Self>) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let given = match this.leases {
            Some(_) => None,
            None => this.given_pid.map(|pid| ("pid", pid.into())),
        };
        loop {
            let epoch = fork::epoch();
            if this.gate.enter(py, given)? == Entry::Seated {
                return Ok(());
            }
            let start = this.first_counter(py, this.mode())?;
            if let Some(leases) = &this.leases {
                let Some(grant) = leases.seat(py, &this.gate, slf.as_any(), this.max_wait_ms)? else { continue };
                this.settle(leases, &grant);
            } else {
                let mac = this.given_mac.map_or_else(|| host_mac(py), Ok)?;
                // Others may have come in, and the user's clock may have forked.
                let entry = this.gate.enter(py, given)?;
                if entry == Entry::Seated || fork::epoch() != epoch {
                    continue;
                }
                if entry == Entry::Forked {
                    this.mint.restart();
                }
                this.pid.store(this.given_pid.map_or_else(std::process::id, u32::from), Ordering::Relaxed);
                this.mac.store(mac, Ordering::Relaxed);
            }
            this.start.store(start, Ordering::Relaxed);
            this.gate.seat(this.clock.is_system());
        }
    }

    fn first_counter(&self, py: Python<'_>, mode: Mode) -> PyResult<u32> {
        match (self.given_counter, mode) {
            (Some(counter), _) => Ok(counter),
            (None, Mode::Variable) => Ok(values::random(py)? as u32),
            (None, Mode::Sequential) => Ok(scheme::sequential_seed(self.clock.now(py)?.floor_ms())),
        }
    }

    fn write(slf: &Bound<'_, Self>, ids: &mut [u8]) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let (mut rest, _) = ids.as_chunks_mut::<{ scheme::SIZE }>();
        while !rest.is_empty() {
            // A time for every so many, or a long batch would all be of one millisecond.
            const AT_ONCE: usize = 4096;
            let lot = Self::take(slf, rest.len().min(AT_ONCE) as u32)?;
            let (now, later) = rest.split_at_mut(lot.count as usize);
            for (index, place) in (0..).zip(now) {
                *place = this.id(lot, index).0.to_be_bytes();
            }
            rest = later;
            py.check_signals()?;
        }
        Ok(())
    }
}

fn host_mac(py: Python<'_>) -> PyResult<u32> {
    // The standard library knows how to ask every platform, and draws a random address where there is none.
    let node: u64 = py.import("uuid")?.call_method0("getnode")?.extract()?;
    Ok((node & scheme::MAC.max()) as u32)
}

#[pymethods]
impl Generator {
    #[new]
    #[pyo3(signature = (mode = Defaulted::OUT, *, pid = None, mac = None, counter = None, store = None, nodes = None, never_used = false,
                        pool = None, span_ms = None, on_lease_lost = None, clock = None, max_wait_ms = Defaulted::OUT))]
    #[pyo3(text_signature = "(mode='variable', *, pid=None, mac=None, counter=None, store=None, nodes=None, \
                             never_used=False, pool=None, span_ms=None, on_lease_lost=None, clock=None, \
                             max_wait_ms=1000)")]
    #[expect(clippy::too_many_arguments, reason = "keywords of the public constructor")]
    fn py_new(
        py: Python<'_>,
        mode: Defaulted<'_>,
        pid: Option<&Bound<'_, PyAny>>,
        mac: Option<&Bound<'_, PyAny>>,
        counter: Option<&Bound<'_, PyAny>>,
        store: Option<&Bound<'_, PyAny>>,
        nodes: Option<&Bound<'_, PyAny>>,
        never_used: bool,
        pool: Option<&Bound<'_, PyAny>>,
        span_ms: Option<&Bound<'_, PyAny>>,
        on_lease_lost: Option<&Bound<'_, PyAny>>,
        clock: Option<&Bound<'_, PyAny>>,
        max_wait_ms: Defaulted<'_>,
    ) -> PyResult<Self> {
        let mac = mac.map(|mac| scheme::mac_fragment(&values::text(mac, "mac")?).map_err(errors::value)).transpose()?;
        let number = |value: &Bound<'_, PyAny>, name, max: u32| values::field(value, name, max.into());
        let pid = pid.map(|pid| values::node(pid, "pid", u16::MAX.into())).transpose()?.map(|pid| pid as u16);
        let clock = Clock::from_argument(clock)?;
        let terms = Terms { store, nodes, never_used, pool, span_ms, on_lease_lost };
        let subject = Subject {
            scheme: "locality",
            layout: "locality",
            size: scheme::NODES,
            node: match pid {
                Some(pid) => Some(scheme::node_of(pid, mac.map_or_else(|| host_mac(py), Ok)?)),
                None => None,
            },
            choices: 1,
            own_mac: mac,
        };
        let leases = Leases::new(py, &terms, &subject, &clock)?;
        Ok(Self {
            gate: Gate::new(),
            mint: Mint::new(scheme::WINDOW),
            leases,
            sequential: AtomicBool::new(mode_of(mode.given())? == Mode::Sequential),
            start: AtomicU32::new(0),
            pid: AtomicU32::new(0),
            mac: AtomicU32::new(0),
            given_pid: pid,
            given_mac: mac,
            given_counter: counter.map(|c| number(c, "counter", u32::MAX)).transpose()?.map(|c| c as u32),
            clock,
            max_wait_ms: max_wait_ms.given().map_or(Ok(1000), values::max_wait_ms)?,
        })
    }

    /// Mints an ID.
    ///
    /// :raises GenerationError: ``clock.range``, ``fork.shared_node``, ``generator.closed``.
    #[pyo3(name = "new")]
    fn mint_one(slf: &Bound<'_, Self>) -> PyResult<LocalityId> {
        hot::Mints::slow(slf, 0).map(LocalityId)
    }

    /// Mints ``n`` IDs, 0 to 2^31 - 1, into one :class:`Array`.
    ///
    /// :raises ArgumentError: ``n`` is not an int.
    /// :raises FieldError: ``field.range``.
    /// :raises GenerationError: as :meth:`new`.
    #[pyo3(signature = (n))]
    fn batch(slf: &Bound<'_, Self>, n: &Bound<'_, PyAny>) -> PyResult<Array> {
        let data = PyBytes::new_with(slf.py(), values::count(n)? * scheme::SIZE, |ids| Self::write(slf, ids))?;
        Ok(Array { data: data.unbind() })
    }

    /// Fills a writable buffer of bytes, or of void items of 16 (numpy's ``V16``), with IDs, and returns how many.
    ///
    /// :raises ArgumentError: ``buffer`` has no buffer.
    /// :raises ConfigError: ``config.buffer``: other items, read-only, not contiguous, or not a whole number of IDs.
    /// :raises GenerationError: as :meth:`new`; what was minted until then is in the buffer.
    #[pyo3(signature = (buffer))]
    fn fill(slf: &Bound<'_, Self>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
        let target = hot::Writable::new(buffer, hot::Items::Ids(scheme::SIZE))?;
        hot::fill(&target, |ids| Self::write(slf, ids))
    }

    /// Changes to another mode with a counter of its own; the present mode again changes nothing.
    ///
    /// IDs stay unique: those after a change are of later times than those before. So times may be ahead of the clock, by
    /// up to 2.048 s for each change that was made while the clock stood in the same 2.048 s.
    ///
    /// :raises ArgumentError: ``mode`` is not str.
    /// :raises ConfigError: ``config.policy``: an unknown mode.
    /// :raises GenerationError: ``fork.shared_node``, ``generator.closed``.
    #[pyo3(signature = (mode, /))]
    fn use_mode(slf: &Bound<'_, Self>, mode: &Bound<'_, PyAny>) -> PyResult<()> {
        let (this, py) = (slf.get(), slf.py());
        let mode = mode_of(Some(mode))?;
        Self::seat(slf)?;
        if mode != this.mode() {
            let start = this.first_counter(py, mode)?;
            this.mint.restart();
            this.start.store(start, Ordering::Relaxed);
            this.sequential.store(mode == Mode::Sequential, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Has it start over with another grant at its next ID. Returns the first time, in Unix milliseconds, that it did not mint in;
    /// None where it never minted in this process. It takes no lock, and nothing runs in between.
    fn _unseat(&self) -> Option<i64> {
        let seated = self.gate.is_seated();
        self.gate.unseat();
        seated.then(|| CLOCK.start(self.mint.used_until()).0)
    }

    /// Ends minting for good; closing twice does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let stood = self.gate.close();
        let used_until = self.mint.close();
        match (&self.leases, stood) {
            (Some(leases), Some(Entry::Seated | Entry::First)) => leases.release(py, CLOCK.start(used_until)),
            _ => Ok(()),
        }
    }

    /// ``"variable"`` or ``"sequential"``.
    #[getter(mode)]
    fn mode_name(&self) -> &'static str {
        match self.mode() {
            Mode::Variable => "variable",
            Mode::Sequential => "sequential",
        }
    }

    /// The process id modulo 65536.
    #[getter(pid)]
    fn py_pid(slf: &Bound<'_, Self>) -> PyResult<u16> {
        let this = slf.get();
        if this.given_pid.is_none() && !this.gate.is_closed() {
            Self::seat(slf)?;
        }
        Ok(this.given_pid.unwrap_or_else(|| this.pid.load(Ordering::Relaxed) as u16))
    }

    /// The last 7 hex digits of the MAC address.
    ///
    /// :raises GenerationError: ``fork.shared_node``, where it was not given.
    #[getter(mac)]
    fn py_mac(slf: &Bound<'_, Self>) -> PyResult<String> {
        let this = slf.get();
        let mac = match this.given_mac {
            Some(mac) => mac,
            None => {
                if !this.gate.is_closed() {
                    Self::seat(slf)?;
                }
                this.mac.load(Ordering::Relaxed)
            }
        };
        Ok(format!("{mac:07x}"))
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(slf: &Bound<'_, Self>) -> PyResult<LocalityId> {
        hot::Mints::slow(slf, 0).map(LocalityId)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*exc))]
    fn __exit__(&self, exc: &Bound<'_, PyAny>) -> PyResult<()> {
        self.close(exc.py())
    }

    fn __repr__(&self) -> String {
        format!("<locality.Generator mode={}>", self.mode_name())
    }
}

/// Puts the raw methods in place.
pub fn install(py: Python<'_>) -> PyResult<()> {
    hot::install_id::<LocalityId>(py)?;
    hot::install_array::<Array>(py);
    hot::install_generator::<Generator>(py)
}
