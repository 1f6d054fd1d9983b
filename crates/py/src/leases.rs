//! A generator's lease, which Python provides: `mintage.lease.request` chooses the store, `mintage.lease.lease_client`
//! keeps it.

use crate::clock::{Clock, Patience, Reason};
use crate::ending::Call;
use crate::fork::{Entry, Gate, Moment};
use crate::locks::at_end;
use crate::{errors, values};
use mintage_core::layout::PoolLayout;
use mintage_core::step::Window;
use mintage_core::units::{Timescale, UnixMs};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::cmp::Ordering as CmpOrdering;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The keywords that all generators have: of the clock, of stores and of leases.
pub struct Terms<'py> {
    /// The clock of the generator.
    pub clock: Clock,
    /// The longest wait for an ID, in milliseconds.
    pub max_wait_ms: u64,
    /// True to lease only a number that was never leased.
    never_used: bool,
    /// The given arguments of [`OPTIONS`], unchecked.
    given: Bound<'py, PyDict>,
}

/// The keywords in the signature of every generator.
pub const KEYWORDS: &str = "store=None, nodes=None, never_used=False, pool=None, span_ms=None, on_lease_lost=None, \
                            clock=None, max_wait_ms=1000";

/// The arguments of `mintage.lease.request.lease_client` among them.
const OPTIONS: [&str; 5] = ["store", "nodes", "pool", "span_ms", "on_lease_lost"];

impl<'py> Terms<'py> {
    /// Reads the keywords of a constructor that are not its scheme's own.
    pub fn read(py: Python<'py>, keywords: Option<&Bound<'py, PyDict>>) -> PyResult<Self> {
        let given = PyDict::new(py);
        let mut terms = Self { clock: Clock::System, max_wait_ms: 1000, never_used: false, given };
        for (name, value) in keywords.into_iter().flatten() {
            let name: String = name.extract()?;
            match name.as_str() {
                "max_wait_ms" => terms.max_wait_ms = values::max_wait_ms(&value)?,
                "never_used" => terms.never_used = value.extract()?,
                "clock" => terms.clock = Clock::from_argument((!value.is_none()).then_some(&value))?,
                option if !OPTIONS.contains(&option) => {
                    let instead = match option {
                        "node" => ": sno has a partition in its place, locality pid and mac",
                        "partition" => ": only sno has a partition; write node",
                        _ => "",
                    };
                    let message = format!("Generator.__new__() got an unexpected keyword argument '{option}'{instead}");
                    return Err(PyTypeError::new_err(message));
                }
                option if !value.is_none() => terms.given.set_item(option, value)?,
                _ => {}
            }
        }
        Ok(terms)
    }

    /// Returns true if a keyword asks for a lease.
    pub fn is_given(&self) -> bool {
        self.never_used || !self.given.is_empty()
    }
}

/// The node number that a generator asks for.
pub struct Subject<'a> {
    /// The name of the scheme, and of the pool unless the user names another.
    pub scheme: &'static str,
    /// The layout of the pool's node numbers.
    pub layout: &'a str,
    /// The number of node numbers.
    pub size: u64,
    /// The node number that the user asked for.
    pub node: Option<u64>,
    /// The number of acceptable node numbers, from that one on.
    pub choices: u32,
    /// locality: the MAC fragment that was given.
    pub own_mac: Option<u32>,
}

impl<'a> Subject<'a> {
    /// The node number of a pool that the user asked for, or any.
    pub fn of(scheme: &'static str, pool: &'a PoolLayout, node: Option<u64>) -> Self {
        Self { scheme, layout: &pool.text, size: pool.nodes, node, choices: 1, own_mac: None }
    }
}

/// The lease of a generator.
pub struct Leases {
    arguments: Py<PyDict>,
    /// This is no cell of PyO3: such a cell releases the GIL while it is filled, and a child that is forked in between would
    /// wait for ever.
    lease_client: OnceLock<Py<PyAny>>,
    /// True if its number may have had other holders; empty before the first check.
    may_have_prior_holders: OnceLock<bool>,
    /// True if it leases only a number that no generator ever had.
    pub never_used: bool,
    /// True after the first request for a grant: there may be one to release.
    asked: AtomicBool,
    /// The grant that the generator mints under; 0 before the first.
    serial: AtomicU64,
}

/// A node number, and the window to mint in.
#[derive(Clone, Copy)]
pub struct Grant {
    serial: u64,
    /// The node number.
    pub node: u64,
    /// Floor, end, and the time to ask for more; `None` if only the layout ends the window.
    times: Option<(UnixMs, UnixMs, UnixMs)>,
}

/// The order of a grant relative to the one that a generator mints under.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Age {
    /// A later one: the generator starts over.
    New,
    /// The same, whose window may have grown.
    Same,
    /// An earlier one that came late: the generator ignores it.
    Stale,
}

impl Grant {
    /// The ticks of the window.
    pub fn window(&self, scale: Timescale, full: Window) -> Window {
        self.times.map_or(full, |(floor, until, _)| full.between(scale, floor, until))
    }
}

/// The module that opens stores. No fork can happen in the middle of its import.
///
/// `StoreError`: ``store.unavailable``: a signal handler mints while its thread imports the module.
pub fn request_module(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let module = py.import("mintage.process.forks")?.call_method1("load", ("mintage.lease.request",))?;
    let is_half = module.getattr("__spec__")?.getattr_opt("_initializing")?.map_or(Ok(false), |it| it.is_truthy())?;
    if is_half {
        let message = "a signal handler asked for an ID while the first one of this process imported what leases need: mint \
                       one before signals arrive, or try again";
        return Err(errors::store(py, "store.unavailable", message, 100));
    }
    Ok(module)
}

/// Refuses to continue from a leased snapshot if neither ``store`` nor the environment names a store.
///
/// `ConfigError`: ``config.snapshot``.
pub fn check_store(py: Python<'_>, store: Option<Bound<'_, PyAny>>) -> PyResult<()> {
    if !request_module(py)?.call_method1("choose_store", (store,))?.is_none() {
        return Ok(());
    }
    let registry: String = py.import("mintage.lease.registry")?.call_method0("url")?.extract()?;
    let message = format!(
        "the snapshot's partition was leased, and without a lease another holder can have it: pass store= with the store \
         that it was leased from ({registry:?} where none was named), or make a new generator"
    );
    Err(errors::config(py, "config.snapshot", &message))
}

impl Leases {
    /// The leases of a generator; `None` for one that was given a node number or a clock of its own, and no store.
    pub fn new(py: Python<'_>, terms: &Terms<'_>, subject: &Subject<'_>) -> PyResult<Option<Self>> {
        if !terms.is_given() && (subject.node.is_some() || subject.own_mac.is_some() || !terms.clock.is_system()) {
            return Ok(None);
        }
        let _call = Call::begin(py)?;
        let arguments = PyDict::new(py);
        arguments.set_item("scheme", subject.scheme)?;
        arguments.set_item("layout", subject.layout)?;
        arguments.set_item("size", subject.size)?;
        arguments.set_item("node", subject.node)?;
        arguments.set_item("choices", subject.choices)?;
        arguments.set_item("own_mac", subject.own_mac)?;
        arguments.set_item("never_used", terms.never_used)?;
        for option in OPTIONS {
            arguments.set_item(option, terms.given.get_item(option)?)?;
        }
        arguments.set_item("clock", terms.clock.as_callable(py))?;
        let leases = Self {
            arguments: arguments.unbind(),
            lease_client: OnceLock::new(),
            may_have_prior_holders: OnceLock::new(),
            never_used: terms.never_used,
            asked: AtomicBool::new(false),
            serial: AtomicU64::new(0),
        };
        if terms.is_given() {
            // Errors of the arguments are raised now; the store is asked at first use.
            leases.lease_client(py)?;
        }
        Ok(Some(leases))
    }

    fn lease_client<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyAny>> {
        if let Some(made) = self.lease_client.get() {
            return Ok(made.bind(py));
        }
        let made = request_module(py)?.call_method("lease_client", (), Some(self.arguments.bind(py)))?;
        Ok(self.lease_client.get_or_init(|| made.unbind()).bind(py))
    }

    /// The name of the pool that it leases from.
    pub fn pool(&self, py: Python<'_>) -> PyResult<String> {
        let arguments = self.arguments.bind(py);
        let pool = arguments.get_item("pool")?.filter(|pool| !pool.is_none());
        pool.or(arguments.get_item("scheme")?).map_or_else(|| Ok(String::new()), |pool| pool.extract())
    }

    /// Returns a window that has not ended; waits up to `max_wait_ms`, with the GIL released.
    fn grant(&self, py: Python<'_>, max_wait_ms: u64) -> PyResult<Grant> {
        type Times = (u64, u64, Option<i64>, Option<i64>, Option<i64>);
        self.asked.store(true, Ordering::Relaxed);
        let (serial, node, floor, until, due): Times =
            self.lease_client(py)?.call_method1("window", (max_wait_ms,))?.extract()?;
        let times = floor.zip(until).zip(due).map(|((floor, until), due)| (UnixMs(floor), UnixMs(until), UnixMs(due)));
        Ok(Grant { serial, node, times })
    }

    /// Returns a grant to attach a generator with, and the moment of its request; `None` if the caller must read the
    /// gate again.
    pub fn attach(
        &self,
        py: Python<'_>,
        gate: &Gate,
        generator: &Bound<'_, PyAny>,
        max_wait_ms: u64,
    ) -> PyResult<Option<(Grant, Moment)>> {
        let asked = gate.moment();
        request_module(py)?.call_method1("attach", (generator, self.lease_client(py)?))?;
        let grant = self.grant(py, max_wait_ms)?;
        let is_new = self.is_new(&grant);
        if gate.is_closed() && is_new {
            // The thread that closed it did not know of the grant, and nothing was minted under it.
            self.release(py, UnixMs(0))?;
        }
        // Other threads may have got a grant while this call waited: the first one decides. If the user's clock forked, or
        // this process started over, the earlier grant belongs to the parent, or was released.
        let entry = gate.enter(py, None)?;
        Ok((entry != Entry::Attached && gate.moment() == asked && is_new).then_some((grant, asked)))
    }

    /// Returns true if a grant is later than the one that the generator mints under, or that its parent minted under.
    fn is_new(&self, grant: &Grant) -> bool {
        grant.serial > self.serial.load(Ordering::Relaxed)
    }

    /// Compares a grant with the one that the generator mints under, and replaces that one if the grant is later.
    pub fn accept(&self, grant: &Grant) -> Age {
        let seen = self.serial.fetch_max(grant.serial, Ordering::Relaxed);
        match grant.serial.cmp(&seen) {
            CmpOrdering::Greater => Age::New,
            CmpOrdering::Equal => Age::Same,
            CmpOrdering::Less => Age::Stale,
        }
    }

    /// Gets a later end of its window, or another lease, for a generator whose window has ended: `apply` applies that grant and
    /// returns whether it helped. A generator that ran ahead of its clock waits until a request is due. One that was detached
    /// while it waited must attach first: a grant that is applied here would not be new there.
    pub fn renew(
        &self,
        py: Python<'_>,
        gate: &Gate,
        patience: &mut Patience,
        clock: &Clock,
        apply: impl FnOnce(&Grant) -> bool,
    ) -> PyResult<()> {
        let grant = self.grant(py, patience.max_wait_ms())?;
        if !gate.is_attached() {
            return Ok(());
        }
        let Some((_, until, due)) = grant.times.filter(|_| !apply(&grant)) else { return Ok(()) };
        let what = "the generator ran ahead of its clock, to the end of its lease's window".into();
        patience.wait(py, clock, due, Reason { code: "sequence.exhausted", what })?;
        self.lease_client(py)?.call_method1("grow", (until.0, patience.max_wait_ms())).map(drop)
    }

    /// Releases the node number.
    pub fn release(&self, py: Python<'_>, used_until: UnixMs) -> PyResult<()> {
        match self.lease_client.get() {
            Some(lease_client) if self.asked.load(Ordering::Relaxed) => {
                let _call = Call::begin(py)?;
                lease_client.call_method1(py, "release", (used_until.0,)).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Makes the keeper release the node number of a generator that is gone; asks no store and takes no lock.
    pub fn abandon(&self, used_until: UnixMs) {
        // While the interpreter ends, the keeper runs no more.
        Python::try_attach(|py| {
            at_end(py, || {
                if let Some(lease_client) = self.lease_client.get() {
                    if let Err(error) = lease_client.call_method1(py, "abandon", (used_until.0,)) {
                        error.write_unraisable(py, None);
                    }
                }
            });
        });
    }

    /// Refuses IDs of the past to a generator whose node number may have had other holders then.
    pub fn check_history(&self, py: Python<'_>) -> PyResult<()> {
        let may_have_prior_holders = match self.may_have_prior_holders.get() {
            Some(&known) => known,
            None => {
                let asked =
                    request_module(py)?.call_method1("may_have_prior_holders", (self.lease_client(py)?,))?.extract()?;
                *self.may_have_prior_holders.get_or_init(|| asked)
            }
        };
        if may_have_prior_holders {
            let message = "a leased generator mints no IDs of the past, where its node number may have had other \
                           holders: make one with never_used=True for old rows";
            return Err(errors::lease(py, "lease.history", message));
        }
        Ok(())
    }
}
