//! `mintage.cuid2`.

use super::{LONGEST_FAST, TextClass, texts};
use crate::clock::Clock;
use crate::values::Defaulted;
use crate::{entropy, errors, fork, hot, values};
use mintage_core::codec::as_chunks;
use mintage_core::schemes::cuid2::{self, LENGTHS, MAX_FIRST_COUNT, WORDS};
use mintage_core::units::UnixMs;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};

/// The state of a generator in this process.
struct State {
    /// 0 before it has counted anything.
    generation: u64,
    count: u64,
    fingerprint: [u8; 32],
}

texts! {
    /// A generator of cuid2s: a random letter, and digits of the SHA3-512 of time, 41 bits of randomness for each 8 digits,
    /// a counter and a fingerprint. Safe to share between threads.
    ///
    /// Generator(length=24, *, clock=None)
    ///
    /// The fingerprint is random, and new in each process: it discloses nothing of the host.
    ///
    /// >>> from mintage import cuid2
    /// >>> len(cuid2.Generator(length=10).new())
    /// 10
    ///
    /// :param length: 2 to 32 characters, of 5.17 bits each.
    /// :param clock: a ManualClock, or a callable that returns nanoseconds since the Unix epoch; the system's by default.
    /// :raises ArgumentError: an argument of the wrong type.
    /// :raises FieldError: ``field.range``.
    pub struct Generator in "mintage.cuid2" {
        state: hot::Exclusive<State>,
        length: usize,
        clock: Clock,
        is_closed: AtomicBool,
    }

    #[new]
    #[pyo3(signature = (length = Defaulted::OUT, *, clock = None), text_signature = "(length=24, *, clock=None)")]
    fn py_new(length: Defaulted<'_>, clock: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let [min, usual, max] = LENGTHS.map(|length| length as u128);
        let within = |length| values::within(length, "length", min as i128, max);
        let length = length.given().map_or(Ok(usual), within)?;
        Ok(Self::with(length as usize, Clock::from_argument(clock)?))
    }

    /// The number of characters of an ID.
    #[getter]
    fn length(&self) -> usize {
        self.length
    }
}

/// Random words of a letter and a salt.
fn words(random: [u8; 8 * WORDS]) -> Option<(u8, [u8; 32])> {
    let (words, _) = as_chunks(&random);
    cuid2::random_parts(std::array::from_fn(|i| u64::from_ne_bytes(words[i])))
}

impl Generator {
    fn with(length: usize, clock: Clock) -> Self {
        let state = hot::Exclusive::new(State { generation: fork::NEVER, count: 0, fingerprint: [0; 32] });
        Self { state, length, clock, is_closed: AtomicBool::new(false) }
    }

    #[inline(always)]
    fn id(&self, state: &mut State, now: UnixMs, (letter, salt): (u8, [u8; 32])) -> Option<[u8; 32]> {
        if !fork::is_current(state.generation) {
            return None;
        }
        state.count += 1;
        let ms = now.0.max(0) as u64;
        Some(cuid2::write(letter, ms, &salt[..self.length], state.count - 1, &state.fingerprint, self.length))
    }
}

impl TextClass for Generator {
    fn has_double(&self) -> bool {
        self.clock.is_system() && !self.is_closed.load(Ordering::Relaxed)
    }

    fn double(&self, clock: Clock) -> Self {
        Self::with(self.length, clock)
    }

    #[inline(always)]
    fn write_fast(&self, py: Python<'_>, text: &mut [u8; LONGEST_FAST]) -> Option<usize> {
        let mut random = [0; 8 * WORDS];
        if self.is_closed.load(Ordering::Relaxed) || !self.clock.is_system() || !entropy::fill_fast(py, &mut random) {
            return None;
        }
        let drawn = words(random)?;
        text[..32].copy_from_slice(&self.state.with(py, |state| self.id(state, hot::now(), drawn))?);
        Some(self.length)
    }

    fn write(&self, py: Python<'_>, text: &mut String) -> PyResult<()> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(errors::closed(py));
        }
        let draw = || loop {
            if let Some(drawn) = words(self.clock.bytes(py)?) {
                return PyResult::Ok(drawn);
            }
        };
        let now = self.clock.now(py)?.floor_ms();
        let (_, fingerprint) = draw()?;
        let count = u64::from_ne_bytes(self.clock.bytes(py)?) % MAX_FIRST_COUNT;
        let drawn = draw()?;
        let id = self.state.with(py, |state| {
            if !fork::is_current(state.generation) {
                *state = State { generation: fork::generation(), count, fingerprint };
            }
            self.id(state, now, drawn)
        });
        text.extend(id.unwrap_or_default()[..self.length].iter().map(|&character| char::from(character)));
        Ok(())
    }

    fn width(&self, _: Python<'_>) -> PyResult<usize> {
        Ok(self.length)
    }
}
