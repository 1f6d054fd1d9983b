//! What all generators with a node number share: how they are seated, wait, renew, and end.
//!
//! A generator is *seated* where it has a node number in this process: one that it was given, drew, or leased. All that may
//! run Python (a user's clock, a store, a callback) may also fork this process, close the generator, or seat it meanwhile:
//! so a caller that comes back from it reads the state again.

use crate::clock::{Clock, Patience, Reason};
use crate::fork::{self, Entry, Gate};
use crate::leases::{Grant, KEYWORDS, Leases, Standing, Subject, Terms};
use crate::{errors, hot, values};
use mintage_core::counting::{Counting, OnExhausted, OnRollback};
use mintage_core::mint::Mint;
use mintage_core::step::{Refusal, Run, Window};
use mintage_core::units::{Tick, UnixMs, UnixNs};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::PyBytes;
use pyo3::{PyClass, PyTypeInfo};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state of a generator, and what it mints under.
pub struct Seat<M: Mint> {
    pub mint: M,
    pub gate: Gate,
    pub clock: Clock,
    pub leases: Option<Leases>,
    /// The number that the user gave it for its own, without a lease.
    pub given: Option<u64>,
    pub max_wait_ms: u64,
    /// The ticks that `new_at` may mint in.
    history: Mutex<Window>,
    /// How many node numbers there are, where it has one.
    nodes: u64,
    /// How often its clock had gone back when it was seated.
    travels: AtomicU64,
}

impl<M: Mint> Seat<M> {
    /// A generator's state without a seat yet. It leases a number, or keeps the one that it was given.
    pub fn new(py: Python<'_>, mint: M, terms: Terms<'_>, subject: &Subject<'_>, given: Option<u64>) -> PyResult<Self> {
        let leases = Leases::new(py, &terms, subject)?;
        Self::with(mint, terms, leases, subject.size, given)
    }

    /// The same, of a scheme that leases only where it was told so.
    pub fn on_request(
        py: Python<'_>,
        mint: M,
        terms: Terms<'_>,
        subject: &Subject<'_>,
        given: Option<u64>,
    ) -> PyResult<Self> {
        let leases = if terms.is_given() { Leases::new(py, &terms, subject)? } else { None };
        Self::with(mint, terms, leases, subject.size, given)
    }

    fn with(mint: M, terms: Terms<'_>, leases: Option<Leases>, nodes: u64, given: Option<u64>) -> PyResult<Self> {
        let given = given.filter(|_| leases.is_none());
        let mut seat = Self::free(mint, terms.clock, terms.max_wait_ms);
        (seat.leases, seat.given, seat.nodes) = (leases, given, nodes);
        Ok(seat)
    }

    /// A generator's state that no lease stands behind.
    pub fn free(mint: M, clock: Clock, max_wait_ms: u64) -> Self {
        let history = Mutex::new(mint.whole());
        let (nodes, travels) = (u64::MAX, AtomicU64::new(0));
        Self { mint, gate: Gate::new(), clock, leases: None, given: None, max_wait_ms, history, nodes, travels }
    }

    /// A run of one ID for a hot call; `None` sends it the slow way.
    #[inline(always)]
    pub fn quick(&self) -> Option<Run> {
        if !self.gate.is_fast() {
            return None;
        }
        self.mint.take(self.mint.scale().tick(hot::now())?, 1).ok()
    }

    /// Opens the gate in this process.
    pub fn open(&self) {
        self.gate.seat(self.clock.is_system());
    }

    fn start(&self, tick: Tick) -> UnixMs {
        self.mint.scale().start(tick)
    }

    fn now(&self, py: Python<'_>) -> PyResult<Tick> {
        self.clock.tick(py, self.mint.scale())
    }

    /// Has it start over with another grant at its next ID. Returns the first time, in Unix milliseconds, that it did not
    /// mint in; `None` where it never minted in this process. It takes no lock, and nothing runs in between.
    pub fn unseat(&self) -> Option<i64> {
        let until = self.minted_until();
        self.gate.unseat();
        until
    }

    /// The first time, in Unix milliseconds, that it did not mint in; `None` where it never minted in this process.
    pub fn minted_until(&self) -> Option<i64> {
        self.gate.is_seated().then(|| self.start(self.mint.used_until()).0)
    }

    /// Ends minting for good.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        let stood = self.gate.close();
        let used_until = self.mint.close();
        match (&self.leases, stood) {
            (Some(leases), Some(Entry::Seated | Entry::First)) => leases.release(py, self.start(used_until)),
            _ => Ok(()),
        }
    }

    /// Held for moments only, and never while Python may run: its holder could not get the GIL back.
    fn history(&self) -> MutexGuard<'_, Window> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat<Counting> {
    /// Waits for a tick, or refuses, as the rules say.
    pub fn wait(&self, py: Python<'_>, patience: &mut Patience, why: Refusal) -> PyResult<()> {
        let rules = self.mint.rules();
        let (until, raises, reason) = match why {
            Refusal::Exhausted { until } | Refusal::Outside { tick: until } => {
                let what = format!("all {} sequence numbers of this tick are used", 1_u64 << rules.sequence_bits);
                (until, rules.on_exhausted == OnExhausted::Raise, Reason { code: "sequence.exhausted", what })
            }
            Refusal::Rollback { until } => {
                let (now, last) = (self.clock.now(py)?.floor_ms(), rules.scale.start(until));
                let what =
                    format!("the clock, at {now}, is before {last}, up to which this node number may have minted");
                (until, rules.on_rollback == OnRollback::Raise, Reason { code: "clock.rollback", what })
            }
        };
        let until = rules.scale.start(until);
        if raises { Err(reason.refuse(py, &self.clock, until)) } else { patience.wait(py, &self.clock, until, reason) }
    }
}

impl<M: Mint> Drop for Seat<M> {
    fn drop(&mut self) {
        if let Some(leases) = &self.leases
            && self.gate.is_seated()
        {
            leases.abandon(self.start(self.mint.close()));
        }
    }
}

/// A generator with a node number.
pub trait Seated: PyClass<Frozen = True> + PyTypeInfo + Sync {
    type Mint: Mint;
    /// An ID on its way to its object.
    type Minted;
    /// Whatever a new seat needs beside its number: read before that is known, as it may run Python.
    type Origin;
    /// What the user gives it for its own.
    const TERM: &'static str;
    /// Bytes of an ID in a buffer.
    const SIZE: usize;
    /// The most IDs of one run in a batch.
    const AT_ONCE: u32 = u32::MAX;
    /// Whether `new` takes a metabyte.
    const HAS_META: bool = false;

    /// Reads a metabyte.
    fn meta(_: &Bound<'_, PyAny>) -> PyResult<u8> {
        Ok(0)
    }

    fn seat(&self) -> &Seat<Self::Mint>;

    /// Reads what a new seat needs beside its number.
    fn origin(&self, py: Python<'_>) -> PyResult<Self::Origin>;

    /// The number of a generator without a lease: the one it was given, or one that it draws.
    fn own_node(&self, py: Python<'_>) -> PyResult<u64>;

    /// Puts a number in force, before the state is reset; without an origin that stays as it is.
    fn occupy(&self, py: Python<'_>, node: u64, origin: Option<Self::Origin>);

    /// Has the state start over in a forked child without a lease.
    fn forked(&self) {
        self.seat().mint.reset(self.seat().mint.whole());
    }

    /// The ID for a hot call; `None` sends it the slow way.
    #[inline(always)]
    fn quick(&self, py: Python<'_>, meta: u8) -> Option<Self::Minted> {
        Some(self.first(py, self.seat().quick()?, meta))
    }

    /// The ID for any other call.
    fn slow(generator: &Bound<'_, Self>, meta: u8) -> PyResult<Self::Minted> {
        let run = take(generator, 1)?;
        Ok(generator.get().first(generator.py(), run, meta))
    }

    /// Waits, or refuses.
    fn refused(&self, py: Python<'_>, patience: &mut Patience, why: Refusal) -> PyResult<()>;

    /// The first ID of a run.
    fn first(&self, py: Python<'_>, run: Run, meta: u8) -> Self::Minted;

    /// The object of an ID.
    fn object(py: Python<'_>, minted: Self::Minted) -> hot::Object;

    /// The IDs of a run, packed; `ids` has room for just so many.
    fn write(&self, py: Python<'_>, run: Run, meta: u8, ids: &mut [u8]);
}

impl<G: Seated> hot::Mints for G {
    type Minted = G::Minted;
    const HAS_META: bool = G::HAS_META;

    fn meta(value: &Bound<'_, PyAny>) -> PyResult<u8> {
        <G as Seated>::meta(value)
    }

    #[inline(always)]
    fn quick(&self, py: Python<'_>, meta: u8) -> Option<Self::Minted> {
        Seated::quick(self, py, meta)
    }

    fn slow(generator: &Bound<'_, Self>, meta: u8) -> PyResult<Self::Minted> {
        <G as Seated>::slow(generator, meta)
    }

    #[inline(always)]
    fn object(py: Python<'_>, minted: Self::Minted) -> hot::Object {
        <G as Seated>::object(py, minted)
    }
}

/// Makes sure that this process, and no parent of it, owns the number.
pub fn seat<G: Seated>(slf: &Bound<'_, G>) -> PyResult<()> {
    let (this, py) = (slf.get(), slf.py());
    let seat = this.seat();
    let given = seat.given.map(|number| (G::TERM, number));
    loop {
        let turn = (fork::generation(), seat.gate.turn());
        let travels = seat.clock.travels(py)?;
        let entry = seat.gate.enter(py, given)?;
        if entry == Entry::Seated {
            if travels != seat.travels.load(Ordering::Relaxed) {
                travel(this, py, travels)?;
                continue;
            }
            return Ok(());
        }
        let Some(leases) = &seat.leases else {
            let (node, origin) = (this.own_node(py)?, this.origin(py)?);
            let is_same = (fork::generation(), seat.gate.turn()) == turn;
            if is_same && seat.gate.enter(py, given)? != Entry::Seated {
                this.occupy(py, node, Some(origin));
                if entry == Entry::Forked {
                    this.forked();
                }
                seat.open();
            }
            continue;
        };
        // A clock that cannot be is not worth a lease.
        let (now, origin) = (seat.now(py)?, this.origin(py)?);
        if let Some(grant) = leases.seat(py, &seat.gate, slf.as_any(), seat.max_wait_ms)? {
            settle(this, py, leases, &grant, now, Some(origin));
            seat.open();
        }
    }
}

/// Has a generator start over whose clock went back because a test travelled: of the same instants, with another node number.
/// What it leased it goes on with.
#[cold]
fn travel<G: Seated>(this: &G, py: Python<'_>, travels: u64) -> PyResult<()> {
    let seat = this.seat();
    if seat.leases.is_none() {
        let (node, origin) = (this.own_node(py)?, this.origin(py)?);
        let next = if node < seat.nodes { (node + travels) % seat.nodes } else { node };
        this.occupy(py, next, Some(origin));
        seat.mint.reset(seat.mint.whole());
    }
    seat.travels.store(travels, Ordering::Relaxed);
    Ok(())
}

/// Seats a generator without a lease when it is made.
pub fn draw<G: Seated>(this: &G, py: Python<'_>) -> PyResult<()> {
    if this.seat().leases.is_none() {
        let (node, origin) = (this.own_node(py)?, this.origin(py)?);
        this.occupy(py, node, Some(origin));
        this.seat().open();
    }
    Ok(())
}

/// Mints under a grant from now on; a new one makes it start over. Says whether the window has moved.
fn settle<G: Seated>(
    this: &G,
    py: Python<'_>,
    leases: &Leases,
    grant: &Grant,
    now: Tick,
    origin: Option<G::Origin>,
) -> bool {
    let seat = this.seat();
    let mut window = grant.window(seat.mint.scale(), seat.mint.whole());
    match leases.settle(grant) {
        Standing::New => {}
        Standing::Same => return seat.mint.extend(window.until),
        Standing::Stale => return true,
    }
    if leases.never_used {
        // What was before belongs to `new_at`, what comes to `new`. What is given back one day begins after both.
        let from = now.clamp(window.floor, window.until);
        *seat.history() = Window { floor: window.floor, until: from };
        window.floor = from;
    }
    this.occupy(py, grant.node, origin);
    seat.mint.reset(window);
    true
}

/// Up to `want` IDs of one tick.
pub fn take<G: Seated>(slf: &Bound<'_, G>, want: u32) -> PyResult<Run> {
    let (this, py) = (slf.get(), slf.py());
    let seat = this.seat();
    let mut patience = Patience::new(seat.max_wait_ms);
    loop {
        self::seat(slf)?;
        let minted = seat.mint.take_slowly(want, || seat.now(py))?;
        if !seat.gate.is_seated() {
            // The user's clock forked this process, or closed the generator.
            continue;
        }
        match minted {
            Ok(run) => return Ok(run),
            Err(Refusal::Outside { tick }) if !seat.mint.whole().holds(tick) => {
                let (at, end) = (seat.start(tick), seat.start(seat.mint.whole().until));
                let message = format!("the next ID would be of {at}, the layout ends at {end}");
                return Err(errors::generation(py, "clock.range", &message, None));
            }
            Err(Refusal::Outside { tick }) => {
                if let Some(leases) = &seat.leases {
                    let settle = |grant: &Grant| settle(this, py, leases, grant, tick, None);
                    leases.renew(py, &seat.gate, &mut patience, &seat.clock, settle)?;
                }
            }
            Err(why) => this.refused(py, &mut patience, why)?,
        }
    }
}

/// Fills `ids`, a whole number of them.
pub fn write<G: Seated>(slf: &Bound<'_, G>, ids: &mut [u8], meta: u8) -> PyResult<()> {
    let mut rest = ids;
    while !rest.is_empty() {
        let want = u32::try_from(rest.len() / G::SIZE).unwrap_or(u32::MAX).min(G::AT_ONCE);
        let run = take(slf, want)?;
        let (now, later) = rest.split_at_mut(run.count as usize * G::SIZE);
        slf.get().write(slf.py(), run, meta, now);
        rest = later;
        slf.py().check_signals()?;
    }
    Ok(())
}

/// The tick that it is, for a generator that has its seat and is open after that was read.
pub fn seated_now<G: Seated>(slf: &Bound<'_, G>) -> PyResult<Tick> {
    let seat = slf.get().seat();
    loop {
        self::seat(slf)?;
        let now = seat.now(slf.py())?;
        if seat.gate.is_seated() {
            return Ok(now);
        }
    }
}

/// Seats a generator for a look at the number that it mints under, unless it is closed or has its own.
pub fn seat_to_look<G: Seated>(slf: &Bound<'_, G>) -> PyResult<()> {
    let seat = slf.get().seat();
    if seat.given.is_none() && !seat.gate.is_closed() { self::seat(slf) } else { Ok(()) }
}

/// Seats a generator for an ID of a given time, which must be one at which only it ever had its number.
pub fn seat_at<G: Seated>(slf: &Bound<'_, G>, time: UnixNs, tick: Tick) -> PyResult<()> {
    let (seat, py) = (slf.get().seat(), slf.py());
    if let Some(leases) = &seat.leases {
        leases.check_history(py)?;
    }
    self::seat(slf)?;
    let history = *seat.history();
    if history.holds(tick) {
        return Ok(());
    }
    let (time, floor, until) = (time.floor_ms(), seat.start(history.floor), seat.start(history.until));
    let message = format!(
        "time {time} is outside {floor}..{until}, in which this generator is the only one that ever had its {} and mints \
         no IDs with new()",
        G::TERM
    );
    Err(errors::lease(py, "lease.history", &message))
}

/// Where the `n`-th ID from a time's tick on lies, where each tick has so many: its time, and which of its tick's it is.
pub fn nth(time: &Bound<'_, PyAny>, n: &Bound<'_, PyAny>, capacity: u64, unit_ms: u32) -> PyResult<(UnixNs, u32)> {
    let (time, n) = (values::time(time)?, values::field(n, "n", u32::MAX.into())? as u64);
    let later = i128::from(n / capacity) * i128::from(unit_ms) * UnixNs::PER_MS;
    Ok((UnixNs(time.0.saturating_add(later)), (n % capacity) as u32))
}

/// `batch` of a scheme whose IDs are packed bytes.
pub fn batch<'py, G: Seated>(slf: &Bound<'py, G>, n: &Bound<'_, PyAny>, meta: u8) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(slf.py(), values::count(n)? * G::SIZE, |ids| write(slf, ids, meta))
}

/// `fill` of a scheme whose IDs are packed bytes.
pub fn fill<G: Seated>(slf: &Bound<'_, G>, buffer: &Bound<'_, PyAny>, meta: u8) -> PyResult<usize> {
    let target = hot::Writable::new(buffer, hot::Items::Ids(G::SIZE))?;
    hot::fill(&target, |ids| write(slf, ids, meta))
}

/// Puts the raw methods in place, and the signature: what is the scheme's own, and the keywords of all.
pub fn install<G: Seated>(py: Python<'_>, own: &str) -> PyResult<()> {
    hot::sign::<G>(py, &format!("({own}, {KEYWORDS})"))?;
    hot::install_generator::<G>(py)
}

/// Makes the class of a scheme's generators: what all of them have in common is written here, its own
/// methods (among them its constructor and `new`) by the scheme.
macro_rules! generator {
    (
        $(#[$doc:meta])*
        pub struct $generator:ident in $module:literal, leased on request ($field:ty)
        $($own:tt)*
    ) => {
        generator! {
            @class $(#[$doc])* $generator $module [($field);]
            ":param store: a URL or a Store where the node number is leased; without this and the next five, none is."
            $($own)*
        }
    };
    (
        $(#[$doc:meta])*
        pub struct $generator:ident in $module:literal, leased on request { $($fields:tt)* }
        $($own:tt)*
    ) => {
        generator! {
            @class $(#[$doc])* $generator $module [{ $($fields)* }]
            ":param store: a URL or a Store where the node number is leased; without this and the next five, none is."
            $($own)*
        }
    };
    (
        $(#[$doc:meta])*
        pub struct $generator:ident in $module:literal { $($fields:tt)* }
        $($own:tt)*
    ) => {
        generator! {
            @class $(#[$doc])* $generator $module [{ $($fields)* }]
            ":param store: a URL or a Store where the node number is leased; by default ``MINTAGE_STORE``, or else the registry of this machine."
            $($own)*
        }
    };
    (
        @class $(#[$doc:meta])* $generator:ident $module:literal [$($body:tt)*] $store:literal $($own:tt)*
    ) => {
        $(#[$doc])*
        #[doc = $store]
        /// :param nodes: a range of node numbers to choose from.
        /// :param never_used: whether only a number will do that nobody ever had.
        /// :param pool: the name of another pool.
        /// :param span_ms: how far ahead windows are granted, 1,000 to 86,400,000 milliseconds.
        /// :param on_lease_lost: what comes at the end of the window when the lease was lost: ``"raise"``, the default where a
        ///     store is named, or ``"move"``, to another lease.
        /// :param clock: a ManualClock, or a callable that returns nanoseconds since the Unix epoch; the system's by default.
        /// :param max_wait_ms: the longest that an ID is waited for, in milliseconds.
        /// :raises ArgumentError: an argument of the wrong type.
        /// :raises ConfigError: ``config.node``, ``config.policy``, ``config.bounds``, ``config.wait``, ``config.store``.
        /// :raises FieldError: ``field.range``, ``field.format``.
        /// :raises GenerationError: ``system.random``: there is no randomness to draw a number from.
        ///
        /// Where it has a lease, any call that mints raises LeaseError ``lease.none_free``, ``lease.lost`` or ``lease.clock``,
        /// and StoreError ``store.unavailable`` or ``store.refused``.
        ///
        /// Any call that reads ``clock`` raises ConfigError ``config.clock`` where what it returned is no int.
        #[pyclass(frozen, weakref, module = $module)]
        pub struct $generator $($body)*

        impl $crate::hot::OfModule for $generator {
            fn of_module() -> &'static std::sync::atomic::AtomicPtr<pyo3::ffi::PyObject> {
                static GENERATOR: std::sync::atomic::AtomicPtr<pyo3::ffi::PyObject> =
                    std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());
                &GENERATOR
            }
        }

        #[pymethods]
        impl $generator {
            $($own)*

            /// Has it start over with another grant at its next ID. Returns the first time, in Unix milliseconds, that it did
            /// not mint in; None where it never minted in this process. It takes no lock, and nothing runs in between.
            fn _unseat(&self) -> Option<i64> {
                $crate::generator::Seated::seat(self).unseat()
            }

            /// The first time, in Unix milliseconds, that it did not mint in; None where it never minted in this process.
            fn _minted_until(&self) -> Option<i64> {
                $crate::generator::Seated::seat(self).minted_until()
            }

            /// Ends minting for good; closing twice does nothing.
            fn close(&self, py: Python<'_>) -> PyResult<()> {
                $crate::generator::Seated::seat(self).close(py)
            }

            fn __iter__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __next__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
                $crate::hot::minted(slf, 0)
            }

            fn __enter__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            #[pyo3(signature = (*exc))]
            fn __exit__(&self, exc: &Bound<'_, PyAny>) -> PyResult<()> {
                $crate::generator::Seated::seat(self).close(exc.py())
            }
        }
    };
}
pub(crate) use generator;
