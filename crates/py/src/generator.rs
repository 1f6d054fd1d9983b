//! The code that all generators with a node number share: they attach, wait, renew and end.
//!
//! A generator is *attached* while it has a node number in this process: one that it was given, drew at random, or leased.
//! Everything that may run Python (a user's clock, a store, a callback) may also fork this process, close the generator, or
//! attach it meanwhile. So a caller reads the state again after each such call.

use crate::clock::{Clock, Patience, Reason};
use crate::ending::Call;
use crate::fork::{Entry, Gate};
use crate::leases::{Age, Grant, KEYWORDS, Leases, Subject, Terms};
use crate::locks::locked;
use crate::{doubles, errors, hot, values};
use mintage_core::counting::{Counting, OnExhausted, OnRollback};
use mintage_core::mint::Mint;
use mintage_core::step::{Refusal, Run, Window};
use mintage_core::units::{Tick, UnixMs, UnixNs};
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;
use pyo3::types::PyBytes;
use pyo3::{PyClass, PyTraverseError, PyTypeInfo};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The state of a generator: its mint, its gate, its clock and its lease.
pub struct GeneratorState<M: Mint> {
    pub mint: M,
    pub gate: Gate,
    pub clock: Clock,
    pub leases: Option<Leases>,
    /// The node number that the user asked for.
    pub asked: Option<u64>,
    pub max_wait_ms: u64,
    /// The ticks that `new_at` may mint in.
    history: Mutex<Window>,
    /// The number of node numbers, where it has one.
    nodes: u64,
    /// The number of times that its clock had gone back when it was attached.
    rewinds: AtomicU64,
}

impl<M: Mint> GeneratorState<M> {
    /// The state of a generator that is not attached yet. It leases a number, or keeps the one that it was given.
    pub fn new(py: Python<'_>, mint: M, terms: Terms<'_>, subject: &Subject<'_>, asked: Option<u64>) -> PyResult<Self> {
        let leases = Leases::new(py, &terms, subject)?;
        Self::with(mint, terms, leases, subject.size, asked)
    }

    /// The same, of a scheme that leases only on request.
    pub fn on_request(
        py: Python<'_>,
        mint: M,
        terms: Terms<'_>,
        subject: &Subject<'_>,
        asked: Option<u64>,
    ) -> PyResult<Self> {
        let leases = if terms.is_given() { Leases::new(py, &terms, subject)? } else { None };
        Self::with(mint, terms, leases, subject.size, asked)
    }

    fn with(mint: M, terms: Terms<'_>, leases: Option<Leases>, nodes: u64, asked: Option<u64>) -> PyResult<Self> {
        let mut state = Self::without_lease(mint, terms.clock, terms.max_wait_ms);
        (state.leases, state.asked, state.nodes) = (leases, asked, nodes);
        Ok(state)
    }

    /// The state of a generator that leases nothing.
    pub fn without_lease(mint: M, clock: Clock, max_wait_ms: u64) -> Self {
        let history = Mutex::new(mint.full_window());
        let (nodes, rewinds) = (u64::MAX, AtomicU64::new(0));
        Self { mint, gate: Gate::new(), clock, leases: None, asked: None, max_wait_ms, history, nodes, rewinds }
    }

    /// The state of a generator's double: it has the node number that the user asked for; or, where IDs have one, the number
    /// `node`, which counts from the largest on where it is negative. A child process may use the double only of a generator
    /// that it made itself, with a node number of its own.
    pub fn double(&self, mint: M, (clock, generation): (Clock, u64), node: Option<i64>) -> Self {
        let mut state = Self::without_lease(mint, clock, self.max_wait_ms);
        let drawn = node.map(|node| i128::from(node).rem_euclid(self.nodes.into()) as u64);
        let created_in = self.asked.map_or(generation, |_| generation.max(self.gate.created_in));
        (state.asked, state.nodes, state.gate) = (self.asked.or(drawn), self.nodes, Gate::created_in(created_in));
        state
    }

    /// The node number that the user gave it, without a lease.
    pub fn given(&self) -> Option<u64> {
        self.asked.filter(|_| self.leases.is_none())
    }

    /// Returns true if the generator has a double while a test's clock is in force.
    pub fn has_double(&self) -> bool {
        self.clock.is_system() && !self.gate.is_closed()
    }

    /// A run of one ID for a hot call; `None` for a call that must take the slow path.
    #[inline(always)]
    pub fn take_fast(&self) -> Option<Run> {
        if !self.gate.is_open() {
            return None;
        }
        self.mint.take(self.mint.scale().tick(hot::now())?, 1).ok()
    }

    /// Opens the gate in this process.
    pub fn open(&self) {
        self.gate.open(self.clock.is_system());
    }

    fn start(&self, tick: Tick) -> UnixMs {
        self.mint.scale().start(tick)
    }

    fn now(&self, py: Python<'_>) -> PyResult<Tick> {
        self.clock.tick(py, self.mint.scale())
    }

    /// Detaches the generator: it starts over with another grant at its next ID. Returns the first time, in Unix
    /// milliseconds, that it did not mint in; `None` if it never minted in this process. It waits for other threads for
    /// moments only. No ID is minted in between.
    pub fn detach(&self) -> Option<i64> {
        self.gate.change(|| {
            let is_attached = self.gate.is_attached();
            self.gate.detach();
            // Last: a thread that mints after this reading finds the gate closed, and discards its ID.
            is_attached.then(|| self.start(self.mint.used_until()).0)
        })
    }

    /// The first time, in Unix milliseconds, that it did not mint in; `None` if it never minted in this process.
    pub fn minted_until(&self) -> Option<i64> {
        self.gate.is_attached().then(|| self.start(self.mint.used_until()).0)
    }

    /// Ends minting for good.
    pub fn close(&self, py: Python<'_>) -> PyResult<()> {
        let (entry, used_until) = self.gate.change(|| (self.gate.close(), self.mint.close()));
        match (&self.leases, entry) {
            (Some(leases), Some(Entry::Attached | Entry::First)) => leases.release(py, self.start(used_until)),
            _ => Ok(()),
        }
    }
}

impl GeneratorState<Counting> {
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

impl<M: Mint> Drop for GeneratorState<M> {
    fn drop(&mut self) {
        if let Some(leases) = &self.leases {
            if self.gate.is_attached() {
                leases.abandon(self.start(self.mint.close()));
            }
        }
    }
}

/// A generator with a node number.
pub trait NodeGenerator: PyClass<Frozen = True> + PyTypeInfo + Sync {
    type Mint: Mint;
    /// An ID on its way to its object.
    type Minted;
    /// The value that a generator needs beside its number when it attaches: it is read before the number is known, as the
    /// reading may run Python.
    type Origin;
    /// The scheme's word for the node number that a user gives.
    const TERM: &'static str;
    /// Bytes of an ID in a buffer.
    const SIZE: usize;
    /// The most IDs of one run in a batch.
    const AT_ONCE: u32 = u32::MAX;
    /// True if `new` takes a metabyte.
    const HAS_META: bool = false;

    /// Reads a metabyte.
    fn meta(_: &Bound<'_, PyAny>) -> PyResult<u8> {
        Ok(0)
    }

    /// The metabyte of a call that gives none.
    #[inline(always)]
    fn default_meta(&self) -> u8 {
        0
    }

    fn state(&self) -> &GeneratorState<Self::Mint>;

    /// Reads the value that the generator needs beside its number when it attaches.
    fn origin(&self, py: Python<'_>) -> PyResult<Self::Origin>;

    /// Returns the number of a generator without a lease: the given one, or a random one.
    fn own_node(&self, py: Python<'_>) -> PyResult<u64>;

    /// Sets the node number, before the mint is reset; without an origin, the present one stays.
    fn set_node(&self, py: Python<'_>, node: u64, origin: Option<Self::Origin>);

    /// Returns true if an ID of this generator has a node number, be it a random one.
    fn has_node(&self) -> bool {
        true
    }

    /// Tells the collector which objects of a user it has: they may have the generator. Its lease client is none of them: it
    /// must be whole when the generator goes, to give its number back.
    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.state().clock.visit(visit)
    }

    /// A generator like this one, with that state.
    fn double(&self, py: Python<'_>, state: GeneratorState<Self::Mint>) -> Self;

    /// A mint like this one's, without its state.
    fn new_mint(&self) -> Self::Mint;

    /// Resets the mint in a forked child without a lease.
    fn forked(&self) {
        self.state().mint.reset(self.state().mint.full_window());
    }

    /// The ID for a hot call; `None` for a call that must take the slow path.
    #[inline(always)]
    fn fast(&self, py: Python<'_>, meta: u8) -> Option<Self::Minted> {
        let gate = &self.state().gate;
        let seen = gate.seen()?;
        let minted = self.first(py, self.state().take_fast()?, meta);
        gate.is_still(seen).then_some(minted)
    }

    /// The ID for any other call.
    fn slow(generator: &Bound<'_, Self>, meta: u8) -> PyResult<Self::Minted> {
        take(generator, 1, |this, run| this.first(generator.py(), run, meta))
    }

    /// Waits, or refuses.
    fn refused(&self, py: Python<'_>, patience: &mut Patience, why: Refusal) -> PyResult<()>;

    /// The first ID of a run.
    fn first(&self, py: Python<'_>, run: Run, meta: u8) -> Self::Minted;

    /// The object of an ID.
    fn object(py: Python<'_>, minted: Self::Minted) -> hot::Object;

    /// Writes the IDs of a run, packed; `ids` has exactly their size.
    fn write(&self, py: Python<'_>, run: Run, meta: u8, ids: &mut [u8]);

    /// Fills `ids`, whose length is a multiple of an ID's.
    fn write_all(slf: &Bound<'_, Self>, ids: &mut [u8], meta: u8) -> PyResult<()> {
        write(slf, ids, meta)
    }
}

/// A generator that mints IDs of given times without a metabyte.
pub trait MintsAt: NodeGenerator {
    /// The ID of a time.
    fn new_at(slf: &Bound<'_, Self>, time: &Bound<'_, PyAny>) -> PyResult<Self::Minted>;

    /// The `n`-th ID from a time's tick on.
    fn nth_at(slf: &Bound<'_, Self>, time: &Bound<'_, PyAny>, n: &Bound<'_, PyAny>) -> PyResult<Self::Minted>;
}

impl<G: NodeGenerator> hot::Mints for G {
    type Minted = G::Minted;
    const HAS_META: bool = G::HAS_META;

    fn meta(value: &Bound<'_, PyAny>) -> PyResult<u8> {
        <G as NodeGenerator>::meta(value)
    }

    #[inline(always)]
    fn default_meta(&self) -> u8 {
        NodeGenerator::default_meta(self)
    }

    #[inline(always)]
    fn fast(&self, py: Python<'_>, meta: u8) -> Option<Self::Minted> {
        NodeGenerator::fast(self, py, meta)
    }

    fn slow(generator: &Bound<'_, Self>, meta: u8) -> PyResult<Self::Minted> {
        <G as NodeGenerator>::slow(generator, meta)
    }

    #[inline(always)]
    fn object(py: Python<'_>, minted: Self::Minted) -> hot::Object {
        <G as NodeGenerator>::object(py, minted)
    }
}

/// Returns a generator like another one, with a test's clock.
pub fn double<G: NodeGenerator>(
    slf: &Bound<'_, G>,
    clock: &Bound<'_, PyAny>,
    node: i64,
    generation: u64,
) -> PyResult<G> {
    let (this, clock) = (slf.get(), Clock::from_argument(Some(clock))?);
    let node = this.has_node().then_some(node);
    Ok(this.double(slf.py(), this.state().double(this.new_mint(), (clock, generation), node)))
}

/// Attaches a generator that is not attached: its node number then belongs to this process, and not to a parent.
pub fn attach<G: NodeGenerator>(slf: &Bound<'_, G>) -> PyResult<()> {
    let (this, py) = (slf.get(), slf.py());
    let state = this.state();
    let given = state.given().map(|number| (G::TERM, number));
    loop {
        let asked = state.gate.moment();
        let rewinds = state.clock.rewinds(py)?;
        let entry = state.gate.enter(py, given)?;
        if entry == Entry::Attached {
            if rewinds > state.rewinds.load(Ordering::Relaxed) {
                on_clock_rewind(this, py, rewinds)?;
                continue;
            }
            return Ok(());
        }
        let Some(leases) = &state.leases else {
            let (node, origin) = (this.own_node(py)?, this.origin(py)?);
            state.gate.change(|| {
                if state.gate.may_attach(asked) {
                    this.set_node(py, node, Some(origin));
                    if entry == Entry::Forked {
                        this.forked();
                    }
                    state.open();
                }
            });
            continue;
        };
        // Read the clock first: a generator whose clock fails takes no lease.
        let (now, origin) = (state.now(py)?, this.origin(py)?);
        if let Some((grant, asked)) = leases.attach(py, &state.gate, slf.as_any(), state.max_wait_ms)? {
            state.gate.change(|| {
                if state.gate.may_attach(asked) {
                    apply_grant(this, py, leases, &grant, now, Some(origin));
                    state.open();
                }
            });
        }
    }
}

/// Resets a generator whose test clock went back: it mints IDs of the same instants again, under another node number. It keeps
/// a leased number.
#[cold]
fn on_clock_rewind<G: NodeGenerator>(this: &G, py: Python<'_>, rewinds: u64) -> PyResult<()> {
    let state = this.state();
    let own = match state.leases {
        None => Some((this.own_node(py)?, this.origin(py)?)),
        Some(_) => None,
    };
    state.gate.change(|| {
        // If several threads notice it, the first one resets the generator.
        if state.rewinds.fetch_max(rewinds, Ordering::Relaxed) >= rewinds {
            return;
        }
        if let Some((node, origin)) = own {
            let next = if node < state.nodes { (node + rewinds) % state.nodes } else { node };
            this.set_node(py, next, Some(origin));
            state.mint.reset(state.mint.full_window());
        }
    });
    Ok(())
}

/// Attaches a new generator that leases nothing.
pub fn attach_without_lease<G: NodeGenerator>(this: &G, py: Python<'_>) -> PyResult<()> {
    if this.state().leases.is_none() {
        let (node, origin) = (this.own_node(py)?, this.origin(py)?);
        this.set_node(py, node, Some(origin));
        this.state().open();
    }
    Ok(())
}

/// Applies a grant, within a change: a later lease resets the mint, the same lease moves the end of its window. Returns whether the
/// window moved.
fn apply_grant<G: NodeGenerator>(
    this: &G,
    py: Python<'_>,
    leases: &Leases,
    grant: &Grant,
    now: Tick,
    origin: Option<G::Origin>,
) -> bool {
    let state = this.state();
    let mut window = grant.window(state.mint.scale(), state.mint.full_window());
    match leases.accept(grant) {
        Age::New => {}
        Age::Same => return state.mint.extend(window.until),
        Age::Stale => return true,
    }
    if leases.never_used {
        // The ticks before now belong to `new_at`, those from now on to `new`; the next holder begins after both.
        let from = now.clamp(window.floor, window.until);
        *locked(&state.history) = Window { floor: window.floor, until: from };
        window.floor = from;
    }
    this.set_node(py, grant.node, origin);
    state.mint.reset(window);
    true
}

/// Returns the generator that mints in place of this one: itself, or its double.
pub fn acting<'py, G: NodeGenerator>(slf: &Bound<'py, G>) -> PyResult<Bound<'py, G>> {
    doubles::acting(slf, slf.get().state().has_double())
}

/// Takes up to `want` IDs of one tick, which `make` composes. Starts again if another thread changes the generator
/// meanwhile.
pub fn take<G: NodeGenerator, T>(slf: &Bound<'_, G>, want: u32, mut make: impl FnMut(&G, Run) -> T) -> PyResult<T> {
    let slf = &acting(slf)?;
    let (this, py) = (slf.get(), slf.py());
    let state = this.state();
    let (_call, mut patience) = (Call::begin(py)?, Patience::new(state.max_wait_ms));
    loop {
        attach(slf)?;
        let Some(seen) = state.gate.seen() else { continue };
        let minted = state.mint.take_slow(want, || state.now(py))?;
        if !state.gate.is_attached() {
            // The user's clock forked this process, or closed the generator.
            continue;
        }
        match minted {
            Ok(run) => {
                let made = make(this, run);
                if state.gate.is_still(seen) {
                    return Ok(made);
                }
            }
            Err(Refusal::Outside { tick }) if !state.mint.full_window().contains(tick) => {
                let (at, end) = (state.start(tick), state.start(state.mint.full_window().until));
                let message = format!("the next ID would be of {at}, the layout ends at {end}");
                return Err(errors::generation(py, "clock.range", &message, None));
            }
            Err(Refusal::Outside { tick }) => {
                if let Some(leases) = &state.leases {
                    let apply = |grant: &Grant| {
                        let gate = &state.gate;
                        gate.change(|| !gate.is_attached() || apply_grant(this, py, leases, grant, tick, None))
                    };
                    leases.renew(py, &state.gate, &mut patience, &state.clock, apply)?;
                }
            }
            Err(why) => this.refused(py, &mut patience, why)?,
        }
    }
}

/// [`NodeGenerator::write_all`] by runs.
pub fn write<G: NodeGenerator>(slf: &Bound<'_, G>, ids: &mut [u8], meta: u8) -> PyResult<()> {
    let mut rest = ids;
    while !rest.is_empty() {
        let want = u32::try_from(rest.len() / G::SIZE).unwrap_or(u32::MAX).min(G::AT_ONCE);
        let written = take(slf, want, |this, run| {
            let bytes = run.count as usize * G::SIZE;
            this.write(slf.py(), run, meta, &mut rest[..bytes]);
            bytes
        })?;
        rest = &mut rest[written..];
        slf.py().check_signals()?;
    }
    Ok(())
}

/// Returns the present tick, and the generator, which is attached after the clock was read.
pub fn attached_now<'py, G: NodeGenerator>(slf: &Bound<'py, G>) -> PyResult<(Bound<'py, G>, Tick)> {
    let (slf, _call) = (acting(slf)?, Call::begin(slf.py())?);
    loop {
        attach(&slf)?;
        let now = slf.get().state().now(slf.py())?;
        if slf.get().state().gate.is_attached() {
            return Ok((slf, now));
        }
    }
}

/// Returns a generator whose node number can be read: it is attached, unless it is closed or was given one.
pub fn attach_to_read<'py, G: NodeGenerator>(slf: &Bound<'py, G>) -> PyResult<Bound<'py, G>> {
    let slf = acting(slf)?;
    let state = slf.get().state();
    if state.given().is_none() && !state.gate.is_closed() {
        let _call = Call::begin(slf.py())?;
        attach(&slf)?;
    }
    Ok(slf)
}

/// Makes an ID of a given time. No other generator may have held its node number at that time.
pub fn mint_at<G: NodeGenerator, T>(
    slf: &Bound<'_, G>,
    time: UnixNs,
    tick: Tick,
    mut make: impl FnMut(&G) -> T,
) -> PyResult<T> {
    let slf = &acting(slf)?;
    let (gate, _call) = (&slf.get().state().gate, Call::begin(slf.py())?);
    loop {
        let seen = gate.seen();
        attach_at(slf, time, tick)?;
        // To attach it may have changed it, so ask once more.
        let Some(seen) = seen.filter(|&seen| gate.is_still(seen)) else { continue };
        let made = make(slf.get());
        if gate.is_still(seen) {
            return Ok(made);
        }
    }
}

/// Attaches a generator for an ID of a given time.
fn attach_at<G: NodeGenerator>(slf: &Bound<'_, G>, time: UnixNs, tick: Tick) -> PyResult<()> {
    let (state, py) = (slf.get().state(), slf.py());
    // Without a lease its number is its own at any time, also after the last tick of `new`.
    let Some(leases) = &state.leases else { return attach(slf) };
    leases.check_history(py)?;
    attach(slf)?;
    let history = *locked(&state.history);
    if history.contains(tick) {
        return Ok(());
    }
    let (time, floor, until) = (time.floor_ms(), state.start(history.floor), state.start(history.until));
    let message = format!(
        "time {time} is outside {floor}..{until}, in which this generator is the only one that ever had its {} and mints \
         no IDs with new()",
        G::TERM
    );
    Err(errors::lease(py, "lease.history", &message))
}

/// The place of the `n`-th ID from a time's tick on, where each tick has `capacity`: its time, and its number in its tick.
pub fn nth(time: &Bound<'_, PyAny>, n: &Bound<'_, PyAny>, capacity: u64, unit_ms: u32) -> PyResult<(UnixNs, u32)> {
    let (time, n) = (values::time(time)?, values::field(n, "n", u32::MAX.into())? as u64);
    let later = i128::from(n / capacity) * i128::from(unit_ms) * UnixNs::PER_MS;
    Ok((UnixNs(time.0.saturating_add(later)), (n % capacity) as u32))
}

/// `batch` of a scheme whose IDs are packed bytes.
pub fn batch<'py, G: NodeGenerator>(
    slf: &Bound<'py, G>,
    n: &Bound<'_, PyAny>,
    meta: u8,
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(slf.py(), values::count(n)? * G::SIZE, |ids| G::write_all(slf, ids, meta))
}

/// `fill` of a scheme whose IDs are packed bytes.
pub fn fill<G: NodeGenerator>(slf: &Bound<'_, G>, buffer: &Bound<'_, PyAny>, meta: u8) -> PyResult<usize> {
    let target = hot::Writable::new(buffer, hot::Items::Ids(G::SIZE))?;
    hot::fill(&target, |ids| G::write_all(slf, ids, meta))
}

/// Sets the raw methods and the signature: the scheme's own arguments, then the keywords of all schemes.
pub fn install<G: NodeGenerator>(py: Python<'_>, own: &str) -> PyResult<()> {
    hot::sign::<G>(py, &format!("({own}, {KEYWORDS})"))?;
    hot::install_generator::<G>(py)
}

/// Makes the class of a scheme's generators. This macro writes the methods that all of them share; the scheme writes
/// its own, among them the constructor and `new`.
macro_rules! generator {
    (
        $(#[$doc:meta])*
        pub struct $generator:ident in $module:literal, leased on request { $($fields:tt)* }
        $($own:tt)*
    ) => {
        $crate::generator::generator! {
            @class $(#[$doc])* $generator $module { $($fields)* }
            ":param store: a URL or a Store where the node number is leased; without this and the next five, none is."
            $($own)*
        }
    };
    (
        $(#[$doc:meta])*
        pub struct $generator:ident in $module:literal { $($fields:tt)* }
        $($own:tt)*
    ) => {
        $crate::generator::generator! {
            @class $(#[$doc])* $generator $module { $($fields)* }
            ":param store: a URL or a Store where the node number is leased; by default ``MINTAGE_STORE``, or else the registry of this machine."
            $($own)*
        }
    };
    (
        @class $(#[$doc:meta])* $generator:ident $module:literal { $($fields:tt)* } $store:literal $($own:tt)*
    ) => {
        $(#[$doc])*
        #[doc = $store]
        /// :param nodes: a range of node numbers to choose from, or a set or list of numbers and ranges.
        /// :param never_used: True to lease only a number that no generator ever had.
        /// :param pool: the name of another pool.
        /// :param span_ms: how far ahead windows are granted, 1,000 to 86,400,000 milliseconds.
        /// :param on_lease_lost: the reaction at the end of the window when the lease was lost: ``"raise"``, the default
        ///     where a store is named, or ``"move"`` to another lease.
        /// :param clock: a ManualClock, or a callable that returns nanoseconds since the Unix epoch; the system's by default.
        /// :param max_wait_ms: the longest time that a call waits for an ID, in milliseconds.
        /// :raises ArgumentError: an argument of the wrong type.
        /// :raises ConfigError: ``config.node``, ``config.policy``, ``config.bounds``, ``config.wait``, ``config.store``.
        /// :raises FieldError: ``field.range``, ``field.format``.
        /// :raises GenerationError: ``system.random``: there is no randomness to draw a number from.
        ///
        /// Any call that mints under a lease raises LeaseError ``lease.none_free``, ``lease.lost`` or ``lease.clock``,
        /// and StoreError ``store.unavailable`` or ``store.refused``.
        ///
        /// Any call that reads ``clock`` raises ConfigError ``config.clock`` if the clock returned no int.
        #[pyclass(frozen, weakref, module = $module)]
        pub struct $generator { $($fields)* }

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

            /// Detach the generator: it starts over with another grant at its next ID. Return the first time, in Unix
            /// milliseconds, that it did not mint in; None if it never minted in this process. It asks no store, and mints no
            /// ID in between.
            fn _detach(&self) -> Option<i64> {
                $crate::generator::NodeGenerator::state(self).detach()
            }

            /// Return the first time, in Unix milliseconds, that it did not mint in; None if it never minted in this process.
            fn _minted_until(&self) -> Option<i64> {
                $crate::generator::NodeGenerator::state(self).minted_until()
            }

            /// Return a generator like this one, with a test's clock, that counts as created in a generation. If it needs a
            /// node number and was given none, it gets ``node``; a negative one counts from the largest on.
            fn _double(slf: &Bound<'_, Self>, clock: &Bound<'_, PyAny>, node: i64, generation: u64) -> PyResult<Self> {
                $crate::generator::double(slf, clock, node, generation)
            }

            /// End minting for good. Closing twice does nothing.
            ///
            #[doc = concat!(">>> from ", $module, " import Generator")]
            /// >>> generator = Generator()
            /// >>> generator.close()
            fn close(&self, py: Python<'_>) -> PyResult<()> {
                $crate::generator::NodeGenerator::state(self).close(py)
            }

            fn __traverse__(&self, visit: pyo3::gc::PyVisit<'_>) -> Result<(), pyo3::PyTraverseError> {
                $crate::generator::NodeGenerator::visit(self, &visit)
            }

            fn __iter__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __next__(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
                $crate::hot::new_object_slow(slf, $crate::hot::Mints::default_meta(slf.get()))
            }

            fn __enter__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            #[pyo3(signature = (*exc))]
            fn __exit__(&self, exc: &Bound<'_, PyAny>) -> PyResult<()> {
                $crate::generator::NodeGenerator::state(self).close(exc.py())
            }
        }
    };
}
pub(crate) use generator;

/// Makes the class of generators of packed IDs without a metabyte: [`generator!`], with the methods for given times and for
/// many IDs.
///
/// `mints Class in word, 16 bytes, by (arguments of an example)`, then how its numbers go on and which other IDs its IDs
/// differ from.
macro_rules! packed_generator {
    (
        $(#[$doc:meta])*
        pub struct Generator in $module:literal $(, leased $on:ident request)? { $($fields:tt)* }
        mints $class:ident in $word:literal, $size:literal bytes, by ($arguments:literal)
        new_at: $numbers:literal
        nth_at: $nth:literal
        $($own:tt)*
    ) => {
        $crate::generator::generator! {
            $(#[$doc])*
            pub struct Generator in $module $(, leased $on request)? { $($fields)* }

            $($own)*

            /// Mint an ID of a given time, for old rows: an aware datetime, or nanoseconds since the Unix epoch.
            ///
            #[doc = $numbers]
            ///
            #[doc = concat!(">>> from mintage import ", $word)]
            #[doc = concat!(">>> generator = ", $word, ".Generator(", $arguments, ")")]
            /// >>> generator.new_at(1_700_000_000_000 * 10**6).timestamp_ms
            /// 1700000000000
            ///
            /// :raises ArgumentError: ``time`` is neither.
            /// :raises FieldError: ``time.naive``, ``time.range``.
            /// :raises LeaseError: ``lease.history``: it leases its number from a store without ``never_used``, or the time
            ///     is not before its lease.
            /// :raises GenerationError: ``fork.shared_node``, ``generator.closed``, ``system.random``.
            #[pyo3(signature = (time))]
            fn new_at(slf: &Bound<'_, Self>, time: &Bound<'_, PyAny>) -> PyResult<$class> {
                $crate::generator::MintsAt::new_at(slf, time).map($class)
            }

            /// Return the ``n``-th ID of a given time's tick, counted from 0. A tick has :attr:`capacity` IDs: the next
            /// numbers are those of the ticks after it. For old rows: of one generator, IDs that differ in tick or in ``n``
            /// differ.
            ///
            #[doc = $nth]
            ///
            #[doc = concat!(">>> from mintage import ", $word)]
            #[doc = concat!(">>> generator = ", $word, ".Generator(", $arguments, ")")]
            /// >>> generator.nth_at(1_700_000_000_000 * 10**6, 0) == generator.nth_at(1_700_000_000_000 * 10**6, 1)
            /// False
            ///
            /// :raises ArgumentError: an argument of the wrong type.
            /// :raises FieldError: ``field.range``: ``n`` is outside 0..2^32 - 1; ``time.naive``, ``time.range``.
            /// :raises LeaseError: as :meth:`new_at`.
            /// :raises GenerationError: as :meth:`new_at`.
            #[pyo3(signature = (time, n))]
            fn nth_at(slf: &Bound<'_, Self>, time: &Bound<'_, PyAny>, n: &Bound<'_, PyAny>) -> PyResult<$class> {
                $crate::generator::MintsAt::nth_at(slf, time, n).map($class)
            }

            /// Mint ``n`` IDs, 0 to 2^31 - 1, into one :class:`Array`.
            ///
            #[doc = concat!(">>> from mintage import ", $word)]
            #[doc = concat!(">>> len(", $word, ".Generator(", $arguments, ").batch(3))")]
            /// 3
            ///
            /// :raises ArgumentError: ``n`` is not an int.
            /// :raises FieldError: ``field.range``.
            /// :raises GenerationError: as :meth:`new`.
            #[pyo3(signature = (n))]
            fn batch(slf: &Bound<'_, Self>, n: &Bound<'_, PyAny>) -> PyResult<Array> {
                Ok(Array { data: $crate::generator::batch(slf, n, 0)?.unbind() })
            }

            #[doc = concat!("Fill a writable buffer of bytes, or of void items of ", $size, " (numpy's ``V", $size, "``), with IDs, and return their number.")]
            ///
            #[doc = concat!(">>> from mintage import ", $word)]
            #[doc = concat!(">>> ", $word, ".Generator(", $arguments, ").fill(bytearray(3 * ", $size, "))")]
            /// 3
            ///
            /// :raises ArgumentError: ``buffer`` has no buffer.
            /// :raises ConfigError: ``config.buffer``: other items, read-only, not contiguous, or not a whole number of IDs.
            /// :raises GenerationError: as :meth:`new`; what was minted until then is in the buffer.
            #[pyo3(signature = (buffer))]
            fn fill(slf: &Bound<'_, Self>, buffer: &Bound<'_, PyAny>) -> PyResult<usize> {
                $crate::generator::fill(slf, buffer, 0)
            }
        }
    };
}
pub(crate) use packed_generator;
