//! `mintage.cuid`.

use super::{LONGEST_FAST, TextClass, texts};
use crate::clock::Clock;
use crate::{entropy, errors, fork, hot, values};
use mintage_core::error::Error;
use mintage_core::schemes::cuid::{self, COUNTER_VALUES, Counter, TIMES_MS};
use mintage_core::units::UnixMs;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// The state of a generator in this process.
struct State {
    /// 0 before it has counted anything.
    generation: u64,
    /// The number of times that the clock had gone back.
    rewinds: u64,
    counted: Counter,
    fingerprint: [u8; 4],
}

impl State {
    fn unused() -> Self {
        Self { generation: fork::NEVER, rewinds: 0, counted: Counter::new(0), fingerprint: [0; 4] }
    }
}

texts! {
    /// A generator of cuids: ``c``, time, counter, fingerprint and randomness in base 36. Safe to share between threads.
    ///
    /// Generator(*, fingerprint=None, clock=None)
    ///
    /// The fingerprint is made of the process id and the host name, **so every ID discloses both**. The counter begins at
    /// random. No pair of time and counter repeats: while the clock is behind, the time stays.
    ///
    /// >>> from mintage import cuid
    /// >>> cuid.Generator(fingerprint="k3v9").new()[13:17]
    /// 'k3v9'
    ///
    /// :param fingerprint: 4 characters of ``0-9a-z`` instead.
    /// :param clock: a ManualClock, or a callable that returns nanoseconds since the Unix epoch; the system's by default.
    /// :raises ArgumentError: an argument of the wrong type.
    /// :raises FieldError: ``field.format``: the fingerprint.
    pub struct Generator in "mintage.cuid" {
        state: hot::Exclusive<State>,
        given: Option<[u8; 4]>,
        clock: Clock,
        is_closed: AtomicBool,
    }

    #[new]
    #[pyo3(signature = (*, fingerprint = None, clock = None))]
    fn py_new(fingerprint: Option<&Bound<'_, PyAny>>, clock: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let given = fingerprint.map(four_digits).transpose()?;
        let state = hot::Exclusive::new(State::unused());
        Ok(Self { state, given, clock: Clock::from_argument(clock)?, is_closed: AtomicBool::new(false) })
    }

    /// Mint an ID of a given time, for old rows: an aware datetime, or nanoseconds since the Unix epoch. Its counter is random.
    ///
    /// >>> from mintage import cuid
    /// >>> cuid.Generator().new_at(1_700_000_000_000 * 10**6)[:9]
    /// 'cloyw3v28'
    ///
    /// :raises ArgumentError: ``time`` is neither.
    /// :raises FieldError: ``time.naive``; ``time.range``: before 1972-06-25, or after the year 5188.
    /// :raises GenerationError: ``generator.closed``, ``system.random``.
    #[pyo3(signature = (time))]
    fn new_at(&self, py: Python<'_>, time: &Bound<'_, PyAny>) -> PyResult<String> {
        let ms = unix_ms(time, TIMES_MS[2])?;
        self.enter(py)?;
        let counter = (u64::from_ne_bytes(self.clock.bytes(py)?) % u64::from(COUNTER_VALUES)) as u32;
        let fingerprint = self.state.with(py, |state| state.fingerprint);
        let mut text = String::new();
        self.append(py, &mut text, ms, counter, fingerprint)?;
        Ok(text)
    }
}

impl Generator {
    /// Makes sure that the state belongs to this process.
    fn enter(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(errors::closed(py));
        }
        let rewinds = self.clock.rewinds(py)?;
        let is_current = |state: &mut State| fork::is_current(state.generation) && state.rewinds == rewinds;
        if self.state.with(py, is_current) {
            return Ok(());
        }
        let fingerprint = match self.given {
            Some(given) => given,
            None => {
                let host = py.import("socket")?.call_method0("gethostname")?;
                cuid::fingerprint(std::process::id(), &values::text(&host, "host name")?)
            }
        };
        let start = u64::from_ne_bytes(self.clock.bytes(py)?);
        self.state.with(py, |state| {
            // Python ran in between, so another thread may have set the state.
            if !is_current(state) {
                *state = State { generation: fork::generation(), rewinds, counted: Counter::new(start), fingerprint };
            }
        });
        Ok(())
    }

    fn append(&self, py: Python<'_>, text: &mut String, ms: u64, counter: u32, fingerprint: [u8; 4]) -> PyResult<()> {
        loop {
            let random = u64::from_ne_bytes(self.clock.bytes(py)?);
            if let Some((id, length)) = cuid::write(ms, counter, fingerprint, random) {
                text.extend(id[..length].iter().map(|&character| char::from(character)));
                return Ok(());
            }
        }
    }
}

/// Returns the time and the counter of the next ID; `None` if the state belongs to another process.
#[inline(always)]
fn count(state: &mut State, now: UnixMs) -> Option<(u64, u32, [u8; 4])> {
    if !fork::is_current(state.generation) {
        return None;
    }
    let (counted, ms, counter) = state.counted.step(now.0 as u64);
    state.counted = counted;
    Some((ms, counter, state.fingerprint))
}

fn is_in_range(ms: i64) -> bool {
    u64::try_from(ms).is_ok_and(|ms| (TIMES_MS[0]..TIMES_MS[2]).contains(&ms))
}

fn four_digits(value: &Bound<'_, PyAny>) -> PyResult<[u8; 4]> {
    let text = values::text(value, "fingerprint")?;
    let digits = <[u8; 4]>::try_from(text.as_bytes()).ok();
    digits.filter(|digits| digits.iter().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'z'))).ok_or_else(|| {
        let value = text.chars().take(40).collect();
        errors::value(Error::Format { field: "fingerprint", value, expected: "4 characters of 0-9a-z" })
    })
}

/// Reads a time that a cuid can hold, before `end`.
fn unix_ms(time: &Bound<'_, PyAny>, end: u64) -> PyResult<u64> {
    let time = values::time(time)?.floor_ms();
    let ms = u64::try_from(time.0).ok().filter(|ms| (TIMES_MS[0]..end).contains(ms));
    let [first, last] = [TIMES_MS[0] as i64, end as i64 - 1].map(UnixMs);
    ms.ok_or_else(|| errors::value(Error::Time { time, first, last }))
}

impl TextClass for Generator {
    fn has_double(&self) -> bool {
        self.clock.is_system() && !self.is_closed.load(Ordering::Relaxed)
    }

    fn double(&self, clock: Clock) -> Self {
        Self {
            state: hot::Exclusive::new(State::unused()),
            given: self.given.or(Some(*b"0000")),
            clock,
            is_closed: AtomicBool::new(false),
        }
    }

    #[inline(always)]
    fn write_fast(&self, py: Python<'_>, text: &mut [u8; LONGEST_FAST]) -> Option<usize> {
        if self.is_closed.load(Ordering::Relaxed) || !self.clock.is_system() {
            return None;
        }
        let mut random = [0; 8];
        let now = hot::now();
        if !is_in_range(now.0) || !entropy::fill_fast(py, &mut random) {
            return None;
        }
        let (ms, counter, fingerprint) = self.state.with(py, |state| count(state, now))?;
        let (id, length) = cuid::write(ms, counter, fingerprint, u64::from_ne_bytes(random))?;
        text[..id.len()].copy_from_slice(&id);
        Some(length)
    }

    fn write(&self, py: Python<'_>, text: &mut String) -> PyResult<()> {
        loop {
            self.enter(py)?;
            let now = self.clock.now(py)?.floor_ms();
            if !is_in_range(now.0) {
                let message = format!("the clock reads {now}, and cuids have times from 1972-06-25 to the year 5188");
                return Err(errors::generation(py, "clock.range", &message, None));
            }
            // The user's clock may have closed the generator, or forked this process.
            if self.is_closed.load(Ordering::Relaxed) {
                continue;
            }
            if let Some((ms, counter, fingerprint)) = self.state.with(py, |state| count(state, now)) {
                return self.append(py, text, ms, counter, fingerprint);
            }
        }
    }

    fn width(&self, py: Python<'_>) -> PyResult<usize> {
        let is_longer = self.clock.now(py)?.floor_ms().0 >= TIMES_MS[1] as i64;
        Ok(if is_longer { 26 } else { 25 })
    }
}

/// Return a text that is greater than every cuid of an earlier time: the lower bound of a range query.
///
/// >>> from mintage import cuid
/// >>> cuid.min_at(1_700_000_000_000 * 10**6)[:9]
/// 'cloyw3v28'
///
/// :raises ArgumentError: ``time`` is neither an aware datetime nor an int of nanoseconds.
/// :raises FieldError: ``time.naive``; ``time.range``: before 1972-06-25 or after 2059-05-25, when texts get longer and sort
///     no more.
#[pyfunction]
#[pyo3(signature = (time, /))]
fn min_at(time: &Bound<'_, PyAny>) -> PyResult<String> {
    bound(time, b'0')
}

/// Return the largest cuid of a time's millisecond: the upper bound of a range query.
///
/// >>> from mintage import cuid
/// >>> cuid.max_at(1_700_000_000_000 * 10**6)[:9]
/// 'cloyw3v28'
///
/// :raises ArgumentError: ``time`` is neither an aware datetime nor an int of nanoseconds.
/// :raises FieldError: ``time.naive``; ``time.range``: before 1972-06-25 or after 2059-05-25, when texts get longer and sort
///     no more.
#[pyfunction]
#[pyo3(signature = (time, /))]
fn max_at(time: &Bound<'_, PyAny>) -> PyResult<String> {
    bound(time, b'z')
}

fn bound(time: &Bound<'_, PyAny>, digit: u8) -> PyResult<String> {
    let ms = unix_ms(time, TIMES_MS[1])?;
    let text = cuid::write(ms, 0, [digit; 4], 0).map(|(text, _)| text).unwrap_or_default();
    Ok(text[..9].iter().map(|&c| char::from(c)).chain(std::iter::repeat_n(char::from(digit), 16)).collect())
}

/// Puts the class and the functions into the module.
pub fn add_all(module: &Bound<'_, PyModule>) -> PyResult<()> {
    add(module)?;
    module.add_function(wrap_pyfunction!(min_at, module)?)?;
    module.add_function(wrap_pyfunction!(max_at, module)?)
}
