//! Python's locks, in objects that release them when they go away.
//!
//! A signal's handler, Ctrl-C or a trace function may raise between any two instructions of Python code: also between the call
//! that takes a lock and the `with` or `try` that would release it, and before the call that releases it. So an object holds
//! each of these locks from the start. An exception that ends a frame drops the object, and that releases the lock.
//!
//! The locks are Python's, as gevent and eventlet replace them so that greenlets wait for each other.

use crate::ending::Call;
use crate::kernel;
use pyo3::intern;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex of Rust's, also after a panic of its holder. It is held for moments only, and never while Python may run: its
/// holder could not get the GIL back.
pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The longest wait in one call, in seconds: a thread that waits longer learns meanwhile that the process ends.
const CALL_S: f64 = 0.5;

fn acquire(lock: &Bound<'_, PyAny>, timeout_s: f64) -> PyResult<bool> {
    lock.call_method1(intern!(lock.py(), "acquire"), (true, timeout_s))?.is_truthy()
}

/// Waits until a time in seconds, in several calls.
fn acquire_until(lock: &Bound<'_, PyAny>, until_s: f64) -> PyResult<bool> {
    loop {
        let (_call, left_s) = (Call::begin(lock.py())?, until_s - kernel::monotonic_s());
        if acquire(lock, left_s.clamp(0.0, CALL_S))? {
            return Ok(true);
        }
        if left_s <= CALL_S {
            return Ok(false);
        }
    }
}

fn release(lock: &Bound<'_, PyAny>) -> PyResult<()> {
    lock.call_method0(intern!(lock.py(), "release")).map(drop)
}

/// Runs the clean-up of an object that goes away, perhaps because of an error.
pub fn at_end(py: Python<'_>, end: impl FnOnce()) {
    let pending = PyErr::take(py);
    end();
    if let Some(pending) = pending {
        pending.restore(py);
    }
}

/// A lock of Python's that is held until the end of a ``with`` block, or until this object goes away.
#[pyclass(frozen, module = "mintage._core")]
pub struct Held {
    lock: Py<PyAny>,
    is_held: AtomicBool,
}

impl Held {
    fn take(lock: &Bound<'_, PyAny>, timeout_s: f64) -> PyResult<Option<Self>> {
        let is_held = acquire_until(lock, kernel::monotonic_s() + timeout_s)?;
        Ok(is_held.then(|| Self { lock: lock.clone().unbind(), is_held: AtomicBool::new(true) }))
    }
}

#[pymethods]
impl Held {
    /// Release the lock. A second call does nothing.
    fn release(&self, py: Python<'_>) {
        if self.is_held.swap(false, Ordering::Relaxed) {
            // It fails if a wait ended without the lock: another thread holds it then.
            at_end(py, || drop(release(self.lock.bind(py))));
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*exc))]
    fn __exit__(&self, exc: &Bound<'_, PyAny>) {
        self.release(exc.py());
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        Python::try_attach(|py| self.release(py));
    }
}

/// Acquire a lock of Python's and return the object that holds it; None if it is not free within ``timeout_s`` seconds.
#[pyfunction]
#[pyo3(signature = (lock, timeout_s = f64::INFINITY, /))]
pub fn hold(lock: &Bound<'_, PyAny>, timeout_s: f64) -> PyResult<Option<Held>> {
    Held::take(lock, timeout_s)
}

/// The threads that wait for something, each on a lock of its own.
struct Waiters {
    new_lock: Py<PyAny>,
    locks: Mutex<Vec<Py<PyAny>>>,
}

impl Waiters {
    fn new(new_lock: Py<PyAny>) -> Self {
        Self { new_lock, locks: Mutex::new(Vec::new()) }
    }

    /// Adds a waiter, whose lock stays locked until the next [`wake`](Self::wake).
    fn join<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let lock = self.new_lock.bind(py).call0()?;
        acquire(&lock, -1.0)?;
        let kept = lock.clone().unbind();
        locked(&self.locks).push(kept);
        Ok(lock)
    }

    fn leave(&self, lock: &Bound<'_, PyAny>) {
        let mut locks = locked(&self.locks);
        let found = locks.iter().position(|each| each.is(lock)).map(|at| locks.swap_remove(at));
        drop(locks);
        drop(found);
    }

    fn wake(&self, py: Python<'_>) {
        let locks = std::mem::take(&mut *locked(&self.locks));
        locks.iter().for_each(|lock| drop(release(lock.bind(py))));
    }
}

/// A condition over a reentrant lock, which conditions may share.
///
/// Condition(lock, new_lock)
///
/// ``new_lock`` makes a lock for each thread that waits, as ``threading.Lock`` does.
#[pyclass(frozen, module = "mintage._core")]
pub struct Condition {
    lock: Py<PyAny>,
    waiters: Waiters,
}

#[pymethods]
impl Condition {
    #[new]
    fn py_new(lock: Py<PyAny>, new_lock: Py<PyAny>) -> Self {
        Self { lock, waiters: Waiters::new(new_lock) }
    }

    /// Acquire the lock and return the object that holds it; None if it is not free within ``timeout_s`` seconds.
    #[pyo3(signature = (timeout_s, /))]
    fn hold(&self, py: Python<'_>, timeout_s: f64) -> PyResult<Option<Held>> {
        Held::take(self.lock.bind(py), timeout_s)
    }

    /// Release the lock, wait at most ``timeout_s`` seconds for the next :meth:`notify_all`, and acquire the lock again as often
    /// as this thread had it. Return False where it is not free within ``regain_s`` seconds.
    #[pyo3(signature = (timeout_s, regain_s, /))]
    fn wait(&self, py: Python<'_>, timeout_s: f64, regain_s: f64) -> PyResult<bool> {
        let (_call, lock, waiter) = (Call::begin(py)?, self.lock.bind(py), self.waiters.join(py)?);
        let mut depth = 0;
        while release(lock).is_ok() {
            depth += 1;
        }
        let waited = acquire(&waiter, timeout_s.max(0.0));
        self.waiters.leave(&waiter);
        let (mut interrupted, until_s) = (waited.err(), kernel::monotonic_s() + regain_s);
        while depth > 0 {
            match acquire(lock, (until_s - kernel::monotonic_s()).max(0.0)) {
                Ok(true) => depth -= 1,
                // If the handler of a signal raises, the owner gets its lock back nevertheless.
                Err(error) if kernel::monotonic_s() < until_s => interrupted = Some(error),
                Ok(false) | Err(_) => break,
            }
        }
        interrupted.map_or(Ok(depth == 0), Err)
    }

    /// Wake all threads that wait.
    fn notify_all(&self, py: Python<'_>) {
        self.waiters.wake(py);
    }
}

/// Turns that a limited number of callers have at a time.
///
/// Turns(limit, new_lock)
///
/// ``new_lock`` is as for :class:`Condition`.
#[pyclass(frozen, module = "mintage._core")]
pub struct Turns {
    free: Mutex<usize>,
    waiters: Waiters,
}

impl Turns {
    fn take_one(&self) -> bool {
        let mut free = locked(&self.free);
        let is_free = *free > 0;
        *free -= usize::from(is_free);
        is_free
    }
}

#[pymethods]
impl Turns {
    #[new]
    fn py_new(limit: usize, new_lock: Py<PyAny>) -> Self {
        Self { free: Mutex::new(limit), waiters: Waiters::new(new_lock) }
    }

    /// Return a turn; None if none is free within ``timeout_s`` seconds.
    #[pyo3(signature = (timeout_s, /))]
    fn take(slf: &Bound<'_, Self>, timeout_s: f64) -> PyResult<Option<Turn>> {
        let (this, py, until_s) = (slf.get(), slf.py(), kernel::monotonic_s() + timeout_s);
        loop {
            // Register first, then look for a free turn: a turn that ends in between wakes this caller.
            let waiter = this.waiters.join(py)?;
            let turn = this.take_one().then(|| Turn { turns: slf.clone().unbind(), is_over: AtomicBool::new(false) });
            let left_s = until_s - kernel::monotonic_s();
            let waited = if turn.is_none() && left_s > 0.0 { acquire_until(&waiter, until_s) } else { Ok(false) };
            this.waiters.leave(&waiter);
            waited?;
            if turn.is_some() || left_s <= 0.0 {
                return Ok(turn);
            }
        }
    }
}

/// The turn of one caller, until it ends it, or until this object goes away.
#[pyclass(frozen, module = "mintage._core")]
pub struct Turn {
    turns: Py<Turns>,
    is_over: AtomicBool,
}

#[pymethods]
impl Turn {
    /// End the turn. A second call does nothing.
    fn end(&self, py: Python<'_>) {
        if !self.is_over.swap(true, Ordering::Relaxed) {
            let turns = self.turns.get();
            *locked(&turns.free) += 1;
            at_end(py, || turns.waiters.wake(py));
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        Python::try_attach(|py| self.end(py));
    }
}
