//! Clocks, and waiting on them.

use crate::{errors, hot, values};
use mintage_core::units::{Tick, Timescale, UnixMs, UnixNs};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A clock that stands still until it is told otherwise; for tests.
///
/// ManualClock(ns, *, auto_advance=True)
///
/// ``ns`` is the time to start at, in nanoseconds since the Unix epoch. A generator that has to wait on this clock moves
/// it forward to the time it waits for; with ``auto_advance=False`` it blocks until another thread moves the clock.
/// Calling the clock gives its time.
///
/// :raises ArgumentError: ``ns`` is not an int.
/// :raises FieldError: ``field.range``: ``ns`` needs more than 127 bits.
#[pyclass(frozen, module = "mintage.testing")]
pub struct ManualClock {
    ns: Mutex<i128>,
    moved: Condvar,
    #[pyo3(get)]
    /// Whether a generator that waits moves the clock itself.
    auto_advance: bool,
}

impl ManualClock {
    fn lock(&self) -> MutexGuard<'_, i128> {
        self.ns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn replace(&self, change: impl FnOnce(i128) -> i128) {
        let mut ns = self.lock();
        *ns = change(*ns);
        self.moved.notify_all();
    }

    fn pass_until(&self, py: Python<'_>, until: UnixNs, give_up: impl Fn(i128) -> PyResult<()>) -> PyResult<()> {
        loop {
            let left = until.0.saturating_sub(self.now_ns());
            if left <= 0 {
                return Ok(());
            }
            give_up(left)?;
            if self.auto_advance {
                self.replace(|ns| ns.max(until.0));
                return Ok(());
            }
            // Wakes now and then for Ctrl-C; it does not move time.
            py.detach(|| drop(self.moved.wait_timeout(self.lock(), SIGNAL_CHECK)));
            py.check_signals()?;
        }
    }
}

#[pymethods]
impl ManualClock {
    #[new]
    #[pyo3(signature = (ns, *, auto_advance = true))]
    fn py_new(ns: &Bound<'_, PyAny>, auto_advance: bool) -> PyResult<Self> {
        Ok(Self { ns: Mutex::new(values::signed(ns, "ns")?), moved: Condvar::new(), auto_advance })
    }

    /// The time it shows, in nanoseconds since the Unix epoch.
    #[getter]
    fn now_ns(&self) -> i128 {
        *self.lock()
    }

    /// Sets the time to ``ns``, in nanoseconds since the Unix epoch; earlier than before is allowed.
    #[pyo3(signature = (ns, /))]
    fn set(&self, ns: &Bound<'_, PyAny>) -> PyResult<()> {
        let ns = values::signed(ns, "ns")?;
        self.replace(|_| ns);
        Ok(())
    }

    /// Moves the time by ``ns`` nanoseconds; a negative number moves it back.
    #[pyo3(signature = (ns, /))]
    fn advance(&self, ns: &Bound<'_, PyAny>) -> PyResult<()> {
        let by = values::signed(ns, "ns")?;
        self.replace(|ns| ns.saturating_add(by));
        Ok(())
    }

    fn __call__(&self) -> i128 {
        self.now_ns()
    }

    fn __repr__(&self) -> String {
        format!("ManualClock({})", self.now_ns())
    }
}

/// Where a generator reads the time.
pub enum Clock {
    /// The system's.
    System,
    /// A test's.
    Manual(Py<ManualClock>),
    /// The user's own: a callable that returns nanoseconds since the Unix epoch.
    Callable(Py<PyAny>),
}

impl Clock {
    /// The clock that a `clock=` argument names.
    pub fn from_argument(clock: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let Some(clock) = clock else { return Ok(Self::System) };
        if let Ok(manual) = clock.cast::<ManualClock>() {
            return Ok(Self::Manual(manual.clone().unbind()));
        }
        if clock.is_callable() {
            return Ok(Self::Callable(clock.clone().unbind()));
        }
        Err(errors::argument("clock", "a ManualClock or a callable", clock))
    }

    /// Whether the hot path may read the cached system tick instead.
    pub fn is_system(&self) -> bool {
        matches!(self, Self::System)
    }

    /// The clock as Python calls it; `None` for the system's.
    pub fn as_callable<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self {
            Self::System => None,
            Self::Manual(clock) => Some(clock.bind(py).clone().into_any()),
            Self::Callable(clock) => Some(clock.bind(py).clone()),
        }
    }

    /// Now.
    pub fn now(&self, py: Python<'_>) -> PyResult<UnixNs> {
        match self {
            Self::System => Ok(system_now()),
            Self::Manual(clock) => Ok(UnixNs(clock.get().now_ns())),
            Self::Callable(clock) => {
                let ns = clock.call0(py)?;
                let ns = ns.bind(py);
                if ns.cast::<PyInt>().is_err() {
                    let message =
                        format!("clock returned a {}, must return an int of nanoseconds", ns.get_type().name()?);
                    return Err(errors::config(py, "config.clock", &message));
                }
                values::saturated(ns, "clock").map(UnixNs)
            }
        }
    }

    /// The tick that it is.
    pub fn tick(&self, py: Python<'_>, scale: Timescale) -> PyResult<Tick> {
        let now = self.now(py)?.floor_ms();
        scale.tick(now).ok_or_else(|| {
            let epoch = UnixMs(scale.epoch_ms);
            errors::generation(
                py,
                "clock.range",
                &format!("the clock reads {now}, before the layout's epoch {epoch}"),
                None,
            )
        })
    }

    fn pass_until(&self, py: Python<'_>, until: UnixNs, give_up: impl Fn(i128) -> PyResult<()>) -> PyResult<()> {
        if let Self::Manual(clock) = self {
            return clock.get().pass_until(py, until, give_up);
        }
        loop {
            let left = until.0.saturating_sub(self.now(py)?.0);
            if left <= 0 {
                return Ok(());
            }
            // Also when the clock went back meanwhile.
            give_up(left)?;
            let left = Duration::from_nanos(u64::try_from(left).unwrap_or(u64::MAX));
            match self {
                Self::System => py.detach(|| pause(left, until)),
                _ => py.detach(|| std::thread::sleep(left.min(SIGNAL_CHECK))),
            }
            py.check_signals()?;
        }
    }
}

/// How long a wait may go on without a look at Ctrl-C.
const SIGNAL_CHECK: Duration = Duration::from_millis(20);
/// A sleep can end this much late, so the last bit of a wait spins. On a virtual machine it now and then costs a whole
/// millisecond, which is all of a snowflake's tick: with less, one thread falls below 99 % of what the layout holds.
const OVERSLEEP: Duration = Duration::from_micros(500);

fn system_now() -> UnixNs {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => UnixNs(since.as_nanos() as i128),
        Err(before) => UnixNs(-(before.duration().as_nanos() as i128)),
    }
}

fn pause(left: Duration, until: UnixNs) {
    if left > 2 * OVERSLEEP {
        std::thread::sleep((left - OVERSLEEP).min(SIGNAL_CHECK));
        return;
    }
    // Bounded by a clock that never goes back.
    let started = Instant::now();
    while system_now() < until && started.elapsed() < 2 * OVERSLEEP {
        std::hint::spin_loop();
    }
}

/// How long one call may still wait.
pub struct Patience {
    max_wait_ms: u64,
    started: Option<UnixNs>,
}

/// Why a call has to wait, for the error if it waits in vain.
pub struct Reason {
    /// The error's code.
    pub code: &'static str,
    /// What happened, as the beginning of a sentence.
    pub what: String,
}

impl Reason {
    /// The error of a caller that does not want to wait.
    pub fn refuse(self, py: Python<'_>, clock: &Clock, until: UnixMs) -> PyErr {
        match clock.now(py) {
            Ok(now) => {
                let retry = whole_ms(until.start_ns().0.saturating_sub(now.0));
                errors::generation(py, self.code, &format!("{}: try again in {retry} ms", self.what), Some(retry))
            }
            Err(error) => error,
        }
    }
}

/// Milliseconds that cover so many nanoseconds.
fn whole_ms(ns: i128) -> u64 {
    u64::try_from(ns.max(0).saturating_add(UnixNs::PER_MS - 1) / UnixNs::PER_MS).unwrap_or(u64::MAX)
}

impl Patience {
    /// A call that has not waited yet.
    pub fn new(max_wait_ms: u64) -> Self {
        Self { max_wait_ms, started: None }
    }

    /// How long in all.
    pub fn max_wait_ms(&self) -> u64 {
        self.max_wait_ms
    }

    /// Waits until the clock reads `until`, with the GIL released; obeys Ctrl-C.
    ///
    /// A wait that cannot end in time is refused at once: `GenerationError` with `retry_after_ms`.
    pub fn wait(&mut self, py: Python<'_>, clock: &Clock, until: UnixMs, reason: Reason) -> PyResult<()> {
        let now = clock.now(py)?;
        let started = *self.started.get_or_insert(now);
        let max_ns = i128::from(self.max_wait_ms) * UnixNs::PER_MS;
        let spent = now.0.saturating_sub(started.0).max(0);
        let give_up = |left: i128| {
            if spent.saturating_add(left) <= max_ns {
                return Ok(());
            }
            let retry = whole_ms(left);
            let Reason { code, what } = &reason;
            let message = format!("{what}: {retry} ms to wait, max_wait_ms is {}", self.max_wait_ms);
            Err(errors::generation(py, code, &message, Some(retry)))
        };
        clock.pass_until(py, until.start_ns(), give_up)?;
        // The next tick must not be read from before the wait.
        hot::forget_tick();
        Ok(())
    }
}
