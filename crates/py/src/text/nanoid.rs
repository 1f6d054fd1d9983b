//! `mintage.nanoid`.

use super::{LONGEST_FAST, TextClass, texts};
use crate::clock::Clock;
use crate::values::Defaulted;
use crate::{entropy, errors, values};
use mintage_core::codec::positional::BASE64_URL;
use mintage_core::schemes::nanoid::{Characters, MAX_SIZE, SIZE};
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::sync::atomic::{AtomicBool, Ordering};

texts! {
    /// A generator of nanoids: random text, in which each character of the alphabet is equally likely. Safe to share between
    /// threads; a forked child draws bits of its own.
    ///
    /// Generator(size=21, alphabet="A-Za-z0-9_-", *, clock=None)
    ///
    /// >>> from mintage import nanoid
    /// >>> len(nanoid.Generator(10, "0123456789").new())
    /// 10
    ///
    /// :param size: 1 to 1,024 characters. Of 64 characters each has 6 bits: two of 10⁹ IDs of 21 of them are the same with a
    ///     chance of 1 in 10²⁰.
    /// :param alphabet: 2 to 256 characters, each once; ``A-Za-z0-9_-`` by default.
    /// :param clock: a test's clock, whose seed gives the characters; nanoids have no time.
    /// :raises ArgumentError: an argument of the wrong type.
    /// :raises FieldError: ``field.range``: the size; ``field.format``: the alphabet.
    pub struct Generator in "mintage.nanoid" {
        size: usize,
        characters: Characters,
        clock: Clock,
        /// The size, if a hot call can write that much; otherwise 0.
        fast_size: usize,
        is_closed: AtomicBool,
    }

    #[new]
    #[pyo3(signature = (size = Defaulted::OUT, alphabet = Defaulted::OUT, *, clock = None))]
    #[pyo3(text_signature = "(size=21, alphabet='A-Za-z0-9_-', *, clock=None)")]
    fn py_new(size: Defaulted<'_>, alphabet: Defaulted<'_>, clock: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let within = |size| values::within(size, "size", 1, MAX_SIZE as u128);
        let size = size.given().map_or(Ok(SIZE as u128), within)?;
        let characters = match alphabet.given() {
            Some(alphabet) => Characters::new(&characters(alphabet)?),
            None => Characters::new(&String::from_utf8_lossy(BASE64_URL.characters())),
        };
        let (size, characters) = (size as usize, characters.map_err(errors::value)?);
        let clock = Clock::from_argument(clock)?;
        let fast_size = if size <= LONGEST_FAST && characters.is_ascii() && clock.is_system() { size } else { 0 };
        Ok(Self { size, characters, clock, fast_size, is_closed: AtomicBool::new(false) })
    }

    /// The number of characters of an ID.
    #[getter]
    fn size(&self) -> usize {
        self.size
    }

    /// The characters that an ID consists of.
    #[getter]
    fn alphabet(&self) -> String {
        self.characters.iter().collect()
    }
}

/// The text of an alphabet; refuses one that has no UTF-8 form.
fn characters(alphabet: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = alphabet.cast::<PyString>().map_err(|_| errors::argument("alphabet", "str", alphabet))?;
    text.to_str().map(str::to_owned).map_err(|_| {
        errors::field(alphabet.py(), "field.format", "alphabet has a surrogate, which is no character of its own")
    })
}

impl TextClass for Generator {
    fn has_double(&self) -> bool {
        self.clock.is_system() && !self.is_closed.load(Ordering::Relaxed)
    }

    fn double(&self, clock: Clock) -> Self {
        let (size, characters) = (self.size, self.characters.clone());
        Self { size, characters, clock, fast_size: 0, is_closed: AtomicBool::new(false) }
    }

    #[inline(always)]
    fn write_fast(&self, py: Python<'_>, text: &mut [u8; LONGEST_FAST]) -> Option<usize> {
        let size = if self.is_closed.load(Ordering::Relaxed) { 0 } else { self.fast_size };
        let text = &mut text[..size];
        let mut done = 0;
        while done < size {
            if !entropy::fill_fast(py, &mut text[done..]) {
                return None;
            }
            done += self.characters.choose_ascii(&mut text[done..]);
        }
        (size > 0).then_some(size)
    }

    fn write(&self, py: Python<'_>, text: &mut String) -> PyResult<()> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Err(errors::closed(py));
        }
        let mut left = self.size;
        let mut random = [0; 256];
        while left > 0 {
            let random = &mut random[..left.min(256)];
            self.clock.fill(py, random)?;
            for character in self.characters.choose(random) {
                text.push(character);
                left -= 1;
            }
        }
        Ok(())
    }

    fn width(&self, py: Python<'_>) -> PyResult<usize> {
        if self.characters.is_ascii() {
            return Ok(self.size);
        }
        Err(errors::config(py, "config.buffer", "a buffer is of ASCII, and the alphabet has other characters"))
    }
}
