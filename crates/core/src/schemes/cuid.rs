//! **cuid**: text, which has no binary form.
//!
//! The time is not padded, so the text grows with it: 8 digits from 1972 to 2059, then 9 until 5188.
//! ```text
//!   8 bits   64     32        32            64
//! ┌────────┬──────┬─────────┬─────────────┬────────┐
//! │ prefix │ time │ counter │ fingerprint │ random │
//! └────────┴──────┴─────────┴─────────────┴────────┘
//! ```
//! ```text
//!   8 bits   72     32        32            64
//! ┌────────┬──────┬─────────┬─────────────┬────────┐
//! │ prefix │ time │ counter │ fingerprint │ random │
//! └────────┴──────┴─────────┴─────────────┴────────┘
//! ```
//!
//! - **time**: milliseconds since 1970, in base 36.
//! - **counter**: counts modulo 1,679,616, in base 36.
//! - **fingerprint**: digits of process id and host name, which a cuid thus reveals.
//! - **text**: characters of `0-9a-z`, 8 bits each.
//!
//! Format after <https://github.com/paralleldrive/cuid>.

use crate::codec::positional::BASE36;
use crate::format::{Clock, Constraint, Format, Part, Rendering, Role, Text};

const PREFIX: Part = Part::fixed("prefix", 8, b'c' as u128, "always c").rendered_as(Rendering::Letters);
const COUNTER: Part =
    Part::new(Role::Sequence, "counter", 32, "counts modulo 1,679,616").rendered_as(Rendering::Base36);
const FINGERPRINT: Part =
    Part::new(Role::Node, "fingerprint", 32, "of process id and host name").rendered_as(Rendering::Letters);
const RANDOM: Part = Part::random("random", 64, "random").rendered_as(Rendering::Letters);

const fn time(digits: u32) -> Part<'static> {
    let base: u128 = 36;
    Part::time("time", 8 * digits)
        .rendered_as(Rendering::Base36)
        .constrained_to(Constraint::Within(base.pow(digits - 1), base.pow(digits)))
}

const fn cuid(parts: &'static [Part<'static>], texts: &'static [Text]) -> Format<'static> {
    Format::new("cuid", parts, 0.9, "https://github.com/paralleldrive/cuid")
        .with_clock(Clock::UNIX_MS)
        .with_texts(texts)
        .text_only()
}

/// The formats of a cuid with a time of 8 digits, and of 9.
pub const FORMATS: [Format; 2] = [
    cuid(&[PREFIX, time(8), COUNTER, FINGERPRINT, RANDOM], &[Text::characters(25, &BASE36)]),
    cuid(&[PREFIX, time(9), COUNTER, FINGERPRINT, RANDOM], &[Text::characters(26, &BASE36)]),
];

/// The number of values of the counter.
pub const COUNTER_VALUES: u32 = 36_u32.pow(4);
/// The number of values of the random part.
pub(super) const RANDOM_VALUES: u64 = 36_u64.pow(8);
/// The first times of 8, 9 and 10 digits, in Unix milliseconds.
pub const TIMES_MS: [u64; 3] = [36_u64.pow(7), 36_u64.pow(8), 36_u64.pow(9)];

/// Returns the lowest `N` base-36 digits of a number, padded with zeros.
pub(super) fn base36_digits<const N: usize>(mut number: u64) -> [u8; N] {
    let mut text = [0; N];
    for place in text.iter_mut().rev() {
        *place = BASE36.characters()[(number % 36) as usize];
        number /= 36;
    }
    text
}

/// Returns a uniform number below `values`; `None` for the few random words that would bias it.
#[inline(always)]
pub(super) fn uniform_below(random: u64, values: u64) -> Option<u64> {
    (random < u64::MAX / values * values).then_some(random % values)
}

/// The counter of a generator of cuids. No pair of time and counter repeats, also when the clock goes back or stands
/// still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    ms: u64,
    next: u32,
    left: u32,
}

impl Counter {
    /// Returns a counter that has counted nothing. `random` chooses its start.
    #[must_use]
    pub const fn new(random: u64) -> Self {
        Self { ms: 0, next: (random % COUNTER_VALUES as u64) as u32, left: 0 }
    }

    /// Returns the next state, and the time and the counter of the next ID. The time never goes back. If the clock
    /// stands still until the counter has used all its values, the time moves on by a millisecond.
    #[inline(always)]
    #[must_use]
    pub const fn step(self, now_ms: u64) -> (Self, u64, u32) {
        let Self { ms, next, left } = self;
        let (ms, left) = match left {
            _ if now_ms > ms => (now_ms, COUNTER_VALUES),
            0 => (ms + 1, COUNTER_VALUES),
            left => (ms, left),
        };
        (Self { ms, next: (next + 1) % COUNTER_VALUES, left: left - 1 }, ms, next)
    }
}

/// Returns the fingerprint as the original computes it: two digits of the process id, and two of the sum of the host
/// name.
#[must_use]
pub fn fingerprint(pid: u32, host: &str) -> [u8; 4] {
    let units = host.encode_utf16();
    let sum = units.clone().map(u64::from).sum::<u64>() + units.count() as u64 + 36;
    let ([a, b], [c, d]) = (base36_digits(pid.into()), base36_digits(sum));
    [a, b, c, d]
}

/// Returns the text of a cuid with 8 or 9 digits of time, and its length; `None` if `random` is one of the few words
/// that would bias it.
#[inline(always)]
#[must_use]
pub fn write(ms: u64, counter: u32, fingerprint: [u8; 4], random: u64) -> Option<([u8; 26], usize)> {
    let random: [u8; 8] = base36_digits(uniform_below(random, RANDOM_VALUES)?);
    let (counter, time): ([u8; 4], [u8; 9]) = (base36_digits(counter.into()), base36_digits(ms));
    let time = if ms < TIMES_MS[1] { &time[1..] } else { &time[..] };
    let mut text = [b'c'; 26];
    let mut end = 1;
    for part in [time, &counter, &fingerprint, &random] {
        text[end..end + part.len()].copy_from_slice(part);
        end += part.len();
    }
    Some((text, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn times_have_8_digits_from_1972_and_9_from_2059() {
        for (ms, length) in [(TIMES_MS[0], 25), (TIMES_MS[1] - 1, 25), (TIMES_MS[1], 26), (TIMES_MS[2] - 1, 26)] {
            let (text, written) = write(ms, 0, *b"0000", 0).unwrap();
            assert_eq!(written, length);
            assert_eq!(FORMATS[length - 25].time_ns(&text[..length]), Some(i128::from(ms) * 1_000_000));
        }
    }

    proptest! {
        #[test]
        fn no_pair_of_time_and_counter_repeats_under_any_clock(start: u64, clock in prop::collection::vec(0_u64..5, 1..300)) {
            let (mut state, mut seen) = (Counter { left: 3, ..Counter::new(start) }, HashSet::new());
            for now in clock {
                let (next, ms, counter) = state.step(now);
                prop_assert!(ms >= now && counter < COUNTER_VALUES);
                prop_assert!(seen.insert((ms, counter)));
                state = next;
            }
        }
    }

    #[test]
    fn a_used_up_counter_moves_to_the_next_millisecond() {
        let (mut state, mut times) = (Counter::new(7), Vec::new());
        for _ in 0..=COUNTER_VALUES {
            let (next, ms, counter) = state.step(1000);
            times.push((ms, counter));
            state = next;
        }
        assert_eq!(
            (times[0], times[COUNTER_VALUES as usize - 1], times[COUNTER_VALUES as usize]),
            ((1000, 7), (1000, 6), (1001, 7))
        );
    }

    #[test]
    fn a_biased_random_word_is_refused() {
        assert_eq!(write(TIMES_MS[0], 0, *b"0000", u64::MAX), None);
    }
}
