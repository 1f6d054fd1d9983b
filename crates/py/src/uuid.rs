//! UUIDs: one class of IDs for all versions, generators of v1, v4, v6 and v7, and functions that return the standard module's
//! own objects.

use crate::clock::{Clock, Patience};
use crate::generator::{self, GeneratorState, MintsAt, NodeGenerator, packed_generator};
use crate::id::{bounds, id};
use crate::leases::{Subject, Terms};
use crate::values::Defaulted;
use crate::{entropy, errors, fields, fork, hot, kernel, ticked, values};
use mintage_core::codec::as_chunks_mut;
use mintage_core::counting::Counting;
use mintage_core::error::Error;
use mintage_core::given_time::GivenTimeCounter;
use mintage_core::id::Id as _;
use mintage_core::schemes::uuid::{self as scheme, Version};
use mintage_core::step::{Refusal, Run};
use mintage_core::ticked::Ticked;
use mintage_core::units::Tick;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple, PyType};
use std::sync::atomic::{AtomicU64, Ordering};

id! {
    /// A UUID of any version.
    ///
    /// ID(value)
    ///
    /// ``value`` is 16 bytes. Fields are those of the ID's own version: any other is FieldError ``field.version``.
    UuidId(scheme::Id) in "mintage.uuid", "uuid", 16 bytes, 36 characters:
    "Parse 36 characters: hex digits of either case, hyphens where they belong. :meth:`parse_any` parses other spellings."
    {
        /// The UUID with all bits 0.
        #[classattr]
        const NIL: Self = Self(scheme::Id::NIL);
        /// The UUID with all bits 1.
        #[classattr]
        const MAX: Self = Self(scheme::Id::MAX);

        /// Parse any spelling: with or without hyphens, in braces, or after ``urn:uuid:``; in either case.
        ///
        /// >>> from mintage import uuid
        /// >>> uuid.ID.parse_any("urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f").version
        /// 7
        ///
        /// :raises ArgumentError: ``text`` is not str.
        /// :raises ParseError: ``parse.length``, or ``parse.character`` with its ``position``.
        #[staticmethod]
        #[pyo3(signature = (text, /))]
        fn parse_any(text: &Bound<'_, PyAny>) -> PyResult<Self> {
            scheme::Id::parse_any(&values::text(text, "text")?).map(Self).map_err(errors::value)
        }

        /// Return the ID of a ``uuid.UUID``.
        ///
        /// >>> from mintage import uuid
        /// >>> uuid.ID.from_uuid(uuid.uuid4()).version
        /// 4
        ///
        /// :raises ArgumentError: ``value`` is not a uuid.UUID.
        #[staticmethod]
        #[pyo3(signature = (value, /))]
        fn from_uuid(value: &Bound<'_, PyAny>) -> PyResult<Self> {
            values::uuid_bytes(value).map(|bytes| Self(scheme::Id(bytes)))
        }

        /// Compose an ID of a version, 1 to 8, from the version's fields, by name; they are 0 where they are left out.
        /// Versions 1, 6 and 7 need a time: ``time``, an aware datetime, or ``timestamp_ms`` or ``timestamp_ns`` since the
        /// Unix epoch. A field of hexadecimal digits takes those, or an int.
        ///
        /// >>> from mintage import uuid
        /// >>> id = uuid.ID.from_parts(version=6, timestamp_ms=1_700_000_000_000, clock_seq=5)
        /// >>> id.version, id.clock_seq
        /// (6, 5)
        ///
        /// :raises ArgumentError: a value of the wrong type.
        /// :raises FieldError: ``time.naive``, ``time.range``, ``field.range`` or ``field.format``.
        #[staticmethod]
        #[pyo3(signature = (*, version = Defaulted::OUT, **fields))]
        #[pyo3(text_signature = "(*, version=7, **fields)")]
        fn from_parts(version: Defaulted<'_>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
            let number = version.given().map_or(Ok(7), |version| values::within(version, "version", 1, 8))?;
            fields::from_parts(fields, scheme::FORMATS[number as usize - 1])
        }

        /// Return the same ID with other fields of its version, as :meth:`from_parts` takes them.
        ///
        /// >>> from mintage import uuid
        /// >>> uuid.new().replace(timestamp_ms=1_700_000_000_000).timestamp_ms
        /// 1700000000000
        ///
        /// :raises ArgumentError: a value of the wrong type.
        /// :raises FieldError: ``time.naive``, ``time.range``, ``field.range`` or ``field.format``.
        #[pyo3(signature = (*unnamed, **fields), text_signature = "($self, **fields)")]
        fn replace(&self, unnamed: &Bound<'_, PyTuple>, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
            fields::replace(*self, unnamed, fields)
        }

        /// The version, 0 to 15; None if the variant is not RFC 9562's.
        #[getter]
        fn version(&self) -> Option<u64> {
            self.0.version()
        }

        /// The variant: ``"rfc9562"``, ``"ncs"``, ``"microsoft"`` or ``"future"``.
        #[getter]
        fn variant(&self) -> &'static str {
            self.0.variant()
        }

        /// Return the ``uuid.UUID`` of the same bits.
        ///
        /// >>> from mintage import uuid
        /// >>> uuid.ID.NIL.as_uuid()
        /// UUID('00000000-0000-0000-0000-000000000000')
        fn as_uuid<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
            values::uuid(py, self.0.0)
        }
    }
}

impl fields::HasFields for UuidId {}

packed_generator! {
    /// A generator of UUIDs of version 1, 4, 6 or 7, safe to share between threads.
    ///
    /// Within a millisecond, and while the clock is behind, each is greater than the one before it: in version 7 by itself, in
    /// versions 1 and 6 by its time. A version 4 is random, and holds no node number.
    ///
    /// >>> from mintage import uuid
    /// >>> with uuid.Generator(version=6) as generator:
    /// ...     id = generator.new()
    /// >>> id.version
    /// 6
    ///
    /// :param node: a number that no other generator has. In version 7, 0 to 2^24 - 1, in place of 24 random bits. In
    ///     versions 1 and 6, 0 to 2^47 - 1, the node beside its multicast bit; without one, and without a lease, it is drawn
    ///     at random, anew in every forked child.
    /// :param version: 1, 4, 6 or 7.
    /// :param mac: in versions 1 and 6, the node itself, 0 to 2^48 - 1, such as ``uuid.getnode()``. Generators that share it
    ///     are told apart by the clock sequence alone: 14 random bits.
    pub struct Generator in "mintage.uuid", leased on request {
        state: GeneratorState<Counting>,
        version: Version,
        node: AtomicU64,
        mac: Option<u64>,
        /// Of another key whenever the generator attaches: so no two processes count on from the same bits.
        drawn: hot::TickBits,
        clock_seq: AtomicU64,
        dated: GivenTimeCounter,
        /// The time of the last ID that a test's clock stamped.
        stamped: AtomicU64,
    }
    mints UuidId in "uuid", 16 bytes, by ("")
    new_at: "One counter numbers the IDs of all times, and starts over after 2^24 IDs, in versions 1 and 6 after 2^27: as many\nin a row differ. Until half of them are used, they also differ from the IDs of :meth:`new` and :meth:`nth_at`. In\nversions 1 and 6 it counts the time below the millisecond, then the clock sequence, from that of :meth:`new` on.\nVersion 4 has no time: FieldError ``field.version``."
    nth_at: "They differ from those of :meth:`new` and :meth:`new_at`. Version 4 has no time: FieldError ``field.version``."

    #[new]
    #[pyo3(signature = (node = None, *, version = Defaulted::OUT, mac = None, **keywords))]
    fn py_new(
        py: Python<'_>,
        node: Option<&Bound<'_, PyAny>>,
        version: Defaulted<'_>,
        mac: Option<&Bound<'_, PyAny>>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let version = version.given().map_or(Ok(Version::V7), version_of)?;
        let terms = Terms::read(py, keywords)?;
        let refuse = |message: &str| Err(errors::config(py, "config.node", message));
        if version == Version::V4 && (node.is_some() || mac.is_some() || terms.is_given()) {
            return refuse("UUIDs of version 4 are random, and hold no node number to give or to lease");
        }
        if mac.is_some() && (version == Version::V7 || node.is_some() || terms.is_given()) {
            return refuse("mac is the whole node of versions 1 and 6: give no node number beside it, and no store");
        }
        let pool = version.pool_layout();
        let given = node.map(|node| values::node(node, "node", pool.nodes - 1)).transpose()?;
        let mac = mac.map(|mac| values::node(mac, "mac", (1 << 48) - 1)).transpose()?;
        let subject = Subject::of(version.pool(), &pool, given);
        let made = Self::with(GeneratorState::on_request(py, version.counting(), terms, &subject, given)?, version, mac);
        generator::attach_without_lease(&made, py)?;
        Ok(made)
    }

    /// Mint an ID.
    ///
    /// >>> from mintage import uuid
    /// >>> generator = uuid.Generator()
    /// >>> generator.new() < generator.new()
    /// True
    ///
    /// :raises GenerationError: ``sequence.exhausted`` when it would wait longer than ``max_wait_ms``; ``clock.range``,
    ///     ``fork.shared_node``, ``generator.closed``, ``system.random``.
    #[pyo3(name = "new")]
    fn mint_one(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        hot::new_object_slow(slf, 0)
    }

    /// Mint an ID of version 1 or 6 of the present 100 ns, later than any such ID of this process, of its ancestors and of its forked
    /// children.
    ///
    /// :raises GenerationError: ``clock.range``, ``fork.shared_node``, ``generator.closed``, ``system.random``.
    fn _stamp(slf: &Bound<'_, Self>) -> PyResult<UuidId> {
        let (slf, py) = (&generator::acting(slf)?, slf.py());
        let this = slf.get();
        let gate = &this.state.gate;
        loop {
            generator::attach(slf)?;
            let Some(seen) = gate.seen() else { continue };
            let now = this.state.clock.now(py)?;
            if !gate.is_attached() {
                continue;
            }
            let wrong = |error: Error| errors::generation(py, "clock.range", &error.to_string(), None);
            let first = scheme::gregorian(now).map_err(wrong)?;
            let stamped = if this.state.clock.is_system() { kernel::shared_word() } else { &this.stamped };
            let last = stamped.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(first.max(last + 1)));
            let ticks = first.max(last.unwrap_or_default() + 1);
            let id = UuidId(this.made_at(ticks, this.clock_seq.load(Ordering::Relaxed)));
            if gate.is_still(seen) {
                return Ok(id);
            }
        }
    }

    /// The number of IDs in a millisecond; version 4 has no time, so it does not count.
    #[getter]
    fn capacity(&self) -> u32 {
        1 << self.state.mint.rules().sequence_bits
    }

    /// The node number in its IDs, in place of random bits; None if it was neither given nor leased nor drawn.
    ///
    /// :raises GenerationError: ``system.random``.
    #[getter]
    fn node(slf: &Bound<'_, Self>) -> PyResult<Option<u64>> {
        Ok(generator::attach_to_read(slf)?.get().number())
    }

    /// The version: 1, 4, 6 or 7.
    #[getter(version)]
    fn version_number(&self) -> u64 {
        self.version.number()
    }

    fn __repr__(&self) -> String {
        format!("<uuid.Generator version={}>", self.version.number())
    }
}

fn version_of(value: &Bound<'_, PyAny>) -> PyResult<Version> {
    let number = values::signed(value, "version")?;
    Version::ALL.into_iter().find(|version| i128::from(version.number()) == number).ok_or_else(|| {
        let message = format!("version {number} is not one of those that generators mint: 1, 4, 6, 7");
        errors::config(value.py(), "config.policy", &message)
    })
}

impl Generator {
    fn with(state: GeneratorState<Counting>, version: Version, mac: Option<u64>) -> Self {
        Self {
            node: AtomicU64::new(state.given().unwrap_or(ticked::NONE)),
            state,
            version,
            mac,
            drawn: hot::TickBits::new(),
            clock_seq: AtomicU64::new(0),
            dated: GivenTimeCounter::default(),
            stamped: AtomicU64::new(0),
        }
    }

    fn check_time(&self, py: Python<'_>) -> PyResult<()> {
        if self.version == Version::V4 {
            return Err(errors::field(py, "field.version", "UUIDs of version 4 have no time"));
        }
        Ok(())
    }

    #[inline(always)]
    fn number(&self) -> Option<u64> {
        Some(self.node.load(Ordering::Relaxed)).filter(|&node| node != ticked::NONE)
    }

    /// The `n`-th ID of a given millisecond since 1970.
    fn at(&self, py: Python<'_>, unix_ms: u64, n: u32) -> scheme::Id {
        let clock_seq = self.clock_seq.load(Ordering::Relaxed);
        if self.version == Version::V7 {
            let random = self.drawn.of(py, scheme::Id::source(unix_ms));
            return self.id(unix_ms, random, clock_seq, n);
        }
        let (above, below) = (n >> scheme::GREGORIAN_SEQUENCE_BITS, n & ((1 << scheme::GREGORIAN_SEQUENCE_BITS) - 1));
        self.id(unix_ms, 0, clock_seq + u64::from(above), below)
    }

    /// The `n`-th ID of a millisecond since 1970.
    #[inline(always)]
    fn id(&self, unix_ms: u64, random: u128, clock_seq: u64, n: u32) -> scheme::Id {
        match self.version {
            Version::V7 => scheme::Id::mint(unix_ms, random, self.number(), n),
            Version::V4 => scheme::Id::stamped(random, 4),
            Version::V1 | Version::V6 => self.made_at(scheme::ticks_at(unix_ms) + u64::from(n), clock_seq),
        }
    }

    /// The ID of a time in ticks of 100 ns, of version 1 or 6.
    #[inline(always)]
    fn made_at(&self, ticks: u64, clock_seq: u64) -> scheme::Id {
        let node = self.mac.unwrap_or_else(|| scheme::multicast(self.number().unwrap_or(0)));
        let made = if self.version == Version::V1 { scheme::Id::v1 } else { scheme::Id::v6 };
        made(ticks, clock_seq, node)
    }
}

impl NodeGenerator for Generator {
    type Mint = Counting;
    type Minted = scheme::Id;
    /// A key for the random bits of each tick.
    type Origin = [u8; 16];
    const TERM: &'static str = "node";
    const SIZE: usize = scheme::Id::SIZE;

    #[inline(always)]
    fn state(&self) -> &GeneratorState<Counting> {
        &self.state
    }

    fn origin(&self, py: Python<'_>) -> PyResult<[u8; 16]> {
        self.state.clock.bytes(py)
    }

    fn own_node(&self, py: Python<'_>) -> PyResult<u64> {
        match (self.state.given(), self.version) {
            (Some(node), _) => Ok(node),
            (None, Version::V1 | Version::V6) if self.mac.is_none() => {
                Ok(u64::from_ne_bytes(self.state.clock.bytes(py)?) & ((1 << self.version.node_bits()) - 1))
            }
            (None, _) => Ok(ticked::NONE),
        }
    }

    fn set_node(&self, py: Python<'_>, node: u64, key: Option<[u8; 16]>) {
        self.node.store(node, Ordering::Relaxed);
        if let Some(key) = key {
            // Versions 1 and 6 use the key for nothing else.
            self.clock_seq.store(u64::from(u16::from_ne_bytes([key[0], key[1]])), Ordering::Relaxed);
            self.drawn.set_key(py, key);
            // The clock of a test went back.
            self.stamped.store(0, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn fast(&self, py: Python<'_>, _: u8) -> Option<scheme::Id> {
        match self.version {
            Version::V4 => {
                let mut bits = [0; 16];
                (self.state.gate.is_open() && entropy::fill_fast(py, &mut bits)).then(|| random(bits))
            }
            _ => {
                let seen = self.state.gate.seen()?;
                let id = self.first(py, self.state.take_fast()?, 0);
                self.state.gate.is_still(seen).then_some(id)
            }
        }
    }

    fn slow(generator: &Bound<'_, Self>, _: u8) -> PyResult<scheme::Id> {
        let py = generator.py();
        match generator.get().version {
            Version::V4 => {
                let acting = generator::acting(generator)?;
                generator::attach(&acting)?;
                acting.get().state.clock.bytes(py).map(random)
            }
            _ => generator::take(generator, 1, |this, run| this.first(py, run, 0)),
        }
    }

    fn has_node(&self) -> bool {
        self.state.leases.is_some()
    }

    fn new_mint(&self) -> Counting {
        self.version.counting()
    }

    fn double(&self, _: Python<'_>, state: GeneratorState<Counting>) -> Self {
        Self::with(state, self.version, self.mac)
    }

    fn refused(&self, py: Python<'_>, patience: &mut Patience, why: Refusal) -> PyResult<()> {
        self.state.wait(py, patience, why)
    }

    #[inline(always)]
    fn first(&self, py: Python<'_>, run: Run, _: u8) -> scheme::Id {
        let random = if self.version == Version::V7 { self.drawn.of(py, Tick(run.tick)) } else { 0 };
        let unix_ms = scheme::Id::units(Tick(run.tick));
        self.id(unix_ms, random, self.clock_seq.load(Ordering::Relaxed), run.first)
    }

    #[inline(always)]
    fn object(py: Python<'_>, minted: scheme::Id) -> hot::Object {
        hot::object(py, UuidId(minted))
    }

    fn write(&self, py: Python<'_>, run: Run, _: u8, ids: &mut [u8]) {
        let random = if self.version == Version::V7 { self.drawn.of(py, Tick(run.tick)) } else { 0 };
        let (unix_ms, clock_seq) = (scheme::Id::units(Tick(run.tick)), self.clock_seq.load(Ordering::Relaxed));
        for (n, id) in (run.first..).zip(as_chunks_mut(ids).0) {
            *id = self.id(unix_ms, random, clock_seq, n).0;
        }
    }

    fn write_all(slf: &Bound<'_, Self>, ids: &mut [u8], meta: u8) -> PyResult<()> {
        if slf.get().version != Version::V4 {
            return generator::write(slf, ids, meta);
        }
        let slf = &generator::acting(slf)?;
        for part in ids.chunks_mut(1 << 16) {
            generator::attach(slf)?;
            slf.get().state.clock.fill(slf.py(), part)?;
            for id in as_chunks_mut(part).0 {
                *id = random(*id).0;
            }
            slf.py().check_signals()?;
        }
        Ok(())
    }
}

impl MintsAt for Generator {
    fn new_at(slf: &Bound<'_, Self>, time: &Bound<'_, PyAny>) -> PyResult<scheme::Id> {
        let (this, py) = (slf.get(), slf.py());
        this.check_time(py)?;
        let time = values::time(time)?;
        let units = this.version.units_at(time).map_err(errors::value)?;
        generator::mint_at(slf, time, scheme::Id::tick(units), |this| {
            this.at(py, units, this.dated.next(this.version.numbers()))
        })
    }

    fn nth_at(slf: &Bound<'_, Self>, time: &Bound<'_, PyAny>, n: &Bound<'_, PyAny>) -> PyResult<scheme::Id> {
        let (this, py) = (slf.get(), slf.py());
        this.check_time(py)?;
        let (time, first) = generator::nth(time, n, this.capacity().into(), scheme::Id::SCALE.unit_ms)?;
        let units = this.version.units_at(time).map_err(errors::value)?;
        generator::mint_at(slf, time, scheme::Id::tick(units), |this| this.at(py, units, this.version.nth(first)))
    }
}

#[inline(always)]
fn random(bits: [u8; 16]) -> scheme::Id {
    scheme::Id::stamped(u128::from_ne_bytes(bits), 4)
}

/// The function `uuid7`: the next UUID of the default generator.
struct Seven;

impl hot::Uuids for Seven {
    const NAME: &'static std::ffi::CStr = c"uuid7";
    const DOC: &'static std::ffi::CStr =
        c"uuid7()\n--\n\nReturn a ``uuid.UUID`` of version 7: Unix milliseconds, then random bits. In \
a process each is greater than the one before it, also when the clock goes back.\n\n\
>>> from mintage import uuid\n>>> uuid.uuid7().version\n7\n\n\
:raises GenerationError: ``clock.range``, ``system.random``.";

    #[inline(always)]
    fn fast(py: Python<'_>) -> Option<u128> {
        Some(NodeGenerator::fast(hot::generator_of_module::<Generator>(py)?.get(), py, 0)?.bits())
    }

    fn slow(py: Python<'_>) -> PyResult<u128> {
        // It makes the default generator.
        py.import("mintage.uuid")?;
        let Some(generator) = hot::generator_of_module::<Generator>(py).map(|one| one.to_owned()) else { return Ok(0) };
        <Generator as NodeGenerator>::slow(&generator, 0).map(scheme::Id::bits)
    }
}

/// The function `uuid4`: a random UUID.
struct Four;

impl hot::Uuids for Four {
    const NAME: &'static std::ffi::CStr = c"uuid4";
    const DOC: &'static std::ffi::CStr = c"uuid4()\n--\n\nReturn a ``uuid.UUID`` of version 4: 122 random bits.\n\n\
>>> from mintage import uuid\n>>> uuid.uuid4().version\n4\n\n\
:raises GenerationError: ``system.random``.";

    #[inline(always)]
    fn fast(py: Python<'_>) -> Option<u128> {
        let mut bits = [0; 16];
        entropy::fill_fast(py, &mut bits).then(|| random(bits).bits())
    }

    fn slow(py: Python<'_>) -> PyResult<u128> {
        if fork::are_gates_closed() {
            let generator = py.import("mintage.uuid")?.getattr("_v4")?;
            return <Generator as NodeGenerator>::slow(generator.cast::<Generator>()?, 0).map(scheme::Id::bits);
        }
        Ok(random(Clock::System.bytes(py)?).bits())
    }
}

fn of_name<'py>(
    namespace: &Bound<'py, PyAny>,
    name: &Bound<'py, PyAny>,
    make: fn([u8; 16], &[u8]) -> scheme::Id,
) -> PyResult<Bound<'py, PyAny>> {
    let space = match namespace.cast::<UuidId>() {
        Ok(id) => id.get().0.0,
        Err(_) => values::uuid_bytes(namespace)?,
    };
    let made = match (name.cast::<PyBytes>(), name.cast::<PyString>()) {
        (Ok(bytes), _) => make(space, bytes.as_bytes()),
        // A lone surrogate raises the interpreter's UnicodeEncodeError.
        (_, Ok(text)) => make(space, text.to_str()?.as_bytes()),
        _ => return Err(errors::argument("name", "str or bytes", name)),
    };
    values::uuid(name.py(), made.0)
}

/// Return the ``uuid.UUID`` of version 3 of a name: the MD5 of the namespace's bytes and the name.
///
/// >>> from mintage import uuid
/// >>> uuid.uuid3(uuid.NAMESPACE_OID, "orders")
/// UUID('5cd223e0-3c12-3080-9d70-8c51e26de2ec')
///
/// :raises ArgumentError: ``namespace`` is not a uuid.UUID, nor an :class:`ID`; or ``name`` is neither str nor bytes.
#[pyfunction]
#[pyo3(signature = (namespace, name))]
fn uuid3<'py>(namespace: &Bound<'py, PyAny>, name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    of_name(namespace, name, scheme::Id::v3)
}

/// Return the ``uuid.UUID`` of version 5 of a name: the SHA-1 of the namespace's bytes and the name.
///
/// >>> from mintage import uuid
/// >>> uuid.uuid5(uuid.NAMESPACE_OID, "orders")
/// UUID('d2466ee2-52d9-5083-a1e9-60a0d796e9c6')
///
/// :raises ArgumentError: ``namespace`` is not a uuid.UUID, nor an :class:`ID`; or ``name`` is neither str nor bytes.
#[pyfunction]
#[pyo3(signature = (namespace, name))]
fn uuid5<'py>(namespace: &Bound<'py, PyAny>, name: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    of_name(namespace, name, scheme::Id::v5)
}

bounds! { UuidId in "uuid", "version 7 of the millisecond", by ticked::bound }

/// Puts the classes and functions into the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add_class::<UuidId>()?;
    module.add_class::<Array>()?;
    module.add_class::<Generator>()?;
    for function in [
        wrap_pyfunction!(uuid3, module)?,
        wrap_pyfunction!(uuid5, module)?,
        wrap_pyfunction!(min_at, module)?,
        wrap_pyfunction!(max_at, module)?,
    ] {
        module.add_function(function)?;
    }
    module.add("uuid4", hot::function_of_uuids::<Four>(py, "mintage.uuid")?)?;
    module.add("uuid7", hot::function_of_uuids::<Seven>(py, "mintage.uuid")?)?;
    hot::install_id::<UuidId>(py)?;
    fields::install::<UuidId>(py, &scheme::FORMATS)?;
    hot::install_array::<Array>(py);
    generator::install::<Generator>(py, "node=None, *, version=7, mac=None")
}
