//! Clocks, and waiting on them.

use crate::locks::locked;
use crate::{entropy, errors, fork, hot, values};
use mintage_core::entropy::Entropy;
use mintage_core::units::{Tick, Timescale, UnixMs, UnixNs};
use pyo3::PyTraverseError;
use pyo3::gc::PyVisit;
use pyo3::prelude::*;
use pyo3::types::PyInt;
use std::ops::Range;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The seeded randomness of a test's clock: one stream, the same in each run, for every generator that has the clock.
struct Seed {
    /// The generation in which the seed holds. A forked child draws random bits, as it would repeat these.
    generation: u64,
    stream: Mutex<Stream>,
}

struct Stream {
    entropy: Entropy,
    seed: u64,
    /// The number of times that it was seeded.
    count: u64,
}

impl Seed {
    fn from_argument(seed: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Self>> {
        seed.map(|seed| {
            let seed = values::field(seed, "seed", u64::MAX.into())? as u64;
            let stream = Stream { entropy: Entropy::unseeded(), seed, count: 0 };
            Ok(Self { generation: fork::generation(), stream: Mutex::new(stream) })
        })
        .transpose()
    }

    /// Fills `bytes`; returns false if the seed belongs to another process.
    fn fill(&self, bytes: &mut [u8]) -> bool {
        if !fork::is_current(self.generation) {
            return false;
        }
        let mut stream = locked(&self.stream);
        for part in bytes.chunks_mut(1 << 16) {
            if !stream.entropy.fill(part) {
                let mut key = [0; 32];
                key[..8].copy_from_slice(&stream.seed.to_le_bytes());
                key[8..16].copy_from_slice(&stream.count.to_le_bytes());
                stream.count += 1;
                stream.entropy.seed(key);
                assert!(stream.entropy.fill(part), "a seed is good for more than that");
            }
        }
        true
    }
}

/// A clock that stands still until a test moves it.
///
/// ManualClock(ns, *, auto_advance=True, seed=None)
///
/// ``ns`` is the time to start at, in nanoseconds since the Unix epoch. A generator that has to wait on this clock moves
/// it forward to the time it waits for; with ``auto_advance=False`` it blocks until another thread moves the clock.
/// Calling the clock gives its time.
///
/// With a ``seed``, 0 to 2^64 - 1, the clock also gives its generators the bits that they would draw at random: the same
/// bits in each run, which are easy to guess. In a forked child they are random.
///
/// >>> from mintage import sno
/// >>> from mintage.testing import ManualClock
/// >>> sno.Generator(7, clock=ManualClock(1_700_000_000 * 10**9)).new().timestamp_ms
/// 1700000000000
///
/// :raises ArgumentError: ``ns`` or ``seed`` is not an int.
/// :raises FieldError: ``field.range``: ``ns`` needs more than 127 bits, ``seed`` more than 64.
#[pyclass(frozen, module = "mintage.testing")]
pub struct ManualClock {
    ns: Mutex<i128>,
    moved: Condvar,
    seed: Option<Seed>,
    #[pyo3(get)]
    /// True if a generator that waits moves the clock itself.
    auto_advance: bool,
}

impl ManualClock {
    fn replace(&self, change: impl FnOnce(i128) -> i128) {
        let mut ns = locked(&self.ns);
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
            py.detach(|| drop(self.moved.wait_timeout(locked(&self.ns), SIGNAL_CHECK)));
            py.check_signals()?;
        }
    }
}

#[pymethods]
impl ManualClock {
    #[new]
    #[pyo3(signature = (ns, *, auto_advance = true, seed = None))]
    fn py_new(ns: &Bound<'_, PyAny>, auto_advance: bool, seed: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let (ns, seed) = (Mutex::new(values::signed(ns, "ns")?), Seed::from_argument(seed)?);
        Ok(Self { ns, moved: Condvar::new(), seed, auto_advance })
    }

    /// The time it shows, in nanoseconds since the Unix epoch.
    #[getter]
    fn now_ns(&self) -> i128 {
        *locked(&self.ns)
    }

    /// Set the time to ``ns``, in nanoseconds since the Unix epoch; earlier than before is allowed.
    ///
    /// >>> from mintage.testing import ManualClock
    /// >>> clock = ManualClock(5)
    /// >>> clock.set(7)
    /// >>> clock.now_ns
    /// 7
    #[pyo3(signature = (ns, /))]
    fn set(&self, ns: &Bound<'_, PyAny>) -> PyResult<()> {
        let ns = values::signed(ns, "ns")?;
        self.replace(|_| ns);
        Ok(())
    }

    /// Move the time by ``ns`` nanoseconds; a negative number moves it back.
    ///
    /// >>> from mintage.testing import ManualClock
    /// >>> clock = ManualClock(5)
    /// >>> clock.advance(7)
    /// >>> clock.now_ns
    /// 12
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

/// A clock that reads ``time.time_ns()`` each time, and so follows a test that replaces that function.
///
/// FollowingClock(*, seed=None)
///
/// When the clock goes back, its generators start over with the next node number: so their IDs have the time of the test,
/// and no ID repeats until all node numbers were used. If a generator has to wait while the clock stands still, the clock
/// skips to the time that it waits for. ``seed`` is as for :class:`ManualClock`. Calling the clock gives its time.
///
/// >>> from mintage.testing import FollowingClock
/// >>> FollowingClock()() > 1_700_000_000 * 10**9
/// True
///
/// :raises ArgumentError: ``seed`` is not an int.
/// :raises FieldError: ``field.range``: ``seed`` needs more than 64 bits.
#[pyclass(frozen, module = "mintage.testing")]
pub struct FollowingClock {
    seed: Option<Seed>,
    read: Mutex<Reading>,
}

struct Reading {
    /// The number of readings.
    count: u64,
    /// The latest time it read since it went back last.
    last: i128,
    /// The number of times that it went back.
    rewinds: u64,
    /// A reading in this range counts as its end.
    waited: Range<i128>,
}

impl FollowingClock {
    /// The time, and how often it went back.
    fn read(&self, py: Python<'_>) -> PyResult<(UnixNs, u64)> {
        let time = py.import("time")?;
        let (read, mut reading) = loop {
            let begun = locked(&self.read).count;
            let read = returned(&time.call_method0("time_ns")?)?;
            let mut reading = locked(&self.read);
            if read >= reading.last || reading.count == begun {
                reading.count += 1;
                break (read, reading);
            }
            // Another thread has read a later time since, so the clock did not go back.
        };
        if read < reading.last {
            reading.rewinds += 1;
            reading.waited = 0..0;
        }
        reading.last = read;
        let now = if reading.waited.contains(&read) { reading.waited.end } else { read };
        Ok((UnixNs(now), reading.rewinds))
    }

    fn pass_until(&self, py: Python<'_>, until: UnixNs, give_up: impl Fn(i128) -> PyResult<()>) -> PyResult<()> {
        let left = until.0.saturating_sub(self.read(py)?.0.0);
        if left > 0 {
            give_up(left)?;
            let mut reading = locked(&self.read);
            reading.waited = reading.last..until.0;
        }
        Ok(())
    }
}

#[pymethods]
impl FollowingClock {
    #[new]
    #[pyo3(signature = (*, seed = None))]
    fn py_new(seed: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let read = Mutex::new(Reading { count: 0, last: i128::MIN, rewinds: 0, waited: 0..0 });
        Ok(Self { seed: Seed::from_argument(seed)?, read })
    }

    fn __call__(&self, py: Python<'_>) -> PyResult<i128> {
        Ok(self.read(py)?.0.0)
    }

    fn __repr__(&self) -> &'static str {
        "FollowingClock()"
    }
}

/// The time that a callable returned.
fn returned(ns: &Bound<'_, PyAny>) -> PyResult<i128> {
    if ns.cast::<PyInt>().is_err() {
        let message = format!("clock returned a {}, must return an int of nanoseconds", ns.get_type().name()?);
        return Err(errors::config(ns.py(), "config.clock", &message));
    }
    values::saturated(ns, "clock")
}

/// The clock of a generator.
pub enum Clock {
    /// The system's.
    System,
    /// A test's.
    Manual(Py<ManualClock>),
    /// A test's that follows `time.time_ns`.
    Following(Py<FollowingClock>),
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
        if let Ok(following) = clock.cast::<FollowingClock>() {
            return Ok(Self::Following(following.clone().unbind()));
        }
        if clock.is_callable() {
            return Ok(Self::Callable(clock.clone().unbind()));
        }
        Err(errors::argument("clock", "a ManualClock or a callable", clock))
    }

    /// Returns true if the hot path may read the cached system tick instead.
    pub fn is_system(&self) -> bool {
        matches!(self, Self::System)
    }

    /// The clock as Python calls it; `None` for the system's.
    pub fn as_callable<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        match self {
            Self::System => None,
            Self::Manual(clock) => Some(clock.bind(py).clone().into_any()),
            Self::Following(clock) => Some(clock.bind(py).clone().into_any()),
            Self::Callable(clock) => Some(clock.bind(py).clone()),
        }
    }

    /// Tells the collector which object it is.
    pub fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Self::Callable(clock) = self { visit.call(clock) } else { Ok(()) }
    }

    /// Now.
    pub fn now(&self, py: Python<'_>) -> PyResult<UnixNs> {
        match self {
            Self::System => Ok(system_now()),
            Self::Manual(clock) => Ok(UnixNs(clock.get().now_ns())),
            Self::Following(clock) => Ok(clock.get().read(py)?.0),
            Self::Callable(clock) => returned(clock.call0(py)?.bind(py)).map(UnixNs),
        }
    }

    /// The number of times that it went back; 0 for a clock that does not make generators start over.
    pub fn rewinds(&self, py: Python<'_>) -> PyResult<u64> {
        if let Self::Following(clock) = self { Ok(clock.get().read(py)?.1) } else { Ok(0) }
    }

    /// Fills `bytes` with bits of the seed; returns false if the clock has none, and the caller must draw random ones.
    fn seeded(&self, bytes: &mut [u8]) -> bool {
        let seed = match self {
            Self::System | Self::Callable(_) => None,
            Self::Manual(clock) => clock.get().seed.as_ref(),
            Self::Following(clock) => clock.get().seed.as_ref(),
        };
        seed.is_some_and(|seed| seed.fill(bytes))
    }

    /// Fills `bytes` with seeded or random bits.
    ///
    /// `GenerationError`: `system.random`.
    pub fn fill(&self, py: Python<'_>, bytes: &mut [u8]) -> PyResult<()> {
        if self.seeded(bytes) { Ok(()) } else { entropy::fill(py, bytes) }
    }

    /// An array of seeded or random bytes.
    pub fn bytes<const N: usize>(&self, py: Python<'_>) -> PyResult<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(py, &mut bytes)?;
        Ok(bytes)
    }

    /// A seeded number, or one that the kernel draws.
    pub fn random(&self, py: Python<'_>) -> PyResult<u64> {
        let mut bytes = [0; 8];
        if self.seeded(&mut bytes) { Ok(u64::from_ne_bytes(bytes)) } else { values::random(py) }
    }

    /// The present tick.
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
        if let Self::Following(clock) = self {
            return clock.get().pass_until(py, until, give_up);
        }
        loop {
            let left = until.0.saturating_sub(self.now(py)?.0);
            if left <= 0 {
                return Ok(());
            }
            // Wait on even if the clock went back meanwhile.
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

/// The longest sleep before a check of Ctrl-C.
const SIGNAL_CHECK: Duration = Duration::from_millis(20);
/// A sleep can end this late, so a wait spins at its end. On a virtual machine a sleep is at times a millisecond late,
/// a whole tick of a snowflake: with a shorter spin, one thread mints less than 99 % of the IDs of a layout.
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

/// The time that one call may still wait.
pub struct Patience {
    max_wait_ms: u64,
    started: Option<UnixNs>,
}

/// The reason of a wait, for the error if the wait is refused.
pub struct Reason {
    /// The error's code.
    pub code: &'static str,
    /// The event, as the beginning of a sentence.
    pub what: String,
}

impl Reason {
    /// The error for a caller that must not wait.
    pub fn refuse(self, py: Python<'_>, clock: &Clock, until: UnixMs) -> PyErr {
        match clock.now(py) {
            Ok(now) => {
                let retry = ceil_ms(until.start_ns().0.saturating_sub(now.0));
                errors::generation(py, self.code, &format!("{}: try again in {retry} ms", self.what), Some(retry))
            }
            Err(error) => error,
        }
    }
}

/// Nanoseconds as milliseconds, rounded up.
fn ceil_ms(ns: i128) -> u64 {
    u64::try_from(ns.max(0).saturating_add(UnixNs::PER_MS - 1) / UnixNs::PER_MS).unwrap_or(u64::MAX)
}

impl Patience {
    /// A call that has not waited yet.
    pub fn new(max_wait_ms: u64) -> Self {
        Self { max_wait_ms, started: None }
    }

    /// The longest wait in all, in milliseconds.
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
            let retry = ceil_ms(left);
            let Reason { code, what } = &reason;
            let message = format!("{what}: {retry} ms to wait, max_wait_ms is {}", self.max_wait_ms);
            Err(errors::generation(py, code, &message, Some(retry)))
        };
        clock.pass_until(py, until.start_ns(), give_up)?;
        // The cached tick is from before the wait.
        hot::forget_tick();
        Ok(())
    }
}
