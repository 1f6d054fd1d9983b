//! The time and the node of versions 1, 2 and 6.

use crate::format::{Clock, Description, Part, Rendering, Role, SECOND};

/// The clock: ticks of 100 ns since the first day of the Gregorian calendar, 1582-10-15, in three parts.
pub(super) const GREGORIAN: Clock =
    Clock::new(-12_219_292_800 * SECOND as i128, 100).counted_by(&["time_high", "time_mid", "time_low"]);

/// The clock sequence.
pub(super) const CLOCK_SEQ: Part =
    Part::new(Role::Meta, "clock_seq", 14, "changes when the clock goes back or the node changes");

/// The node.
pub(super) const NODE: Part =
    Part::new(Role::Node, "node", 48, "").rendered_as(Rendering::Hex).described_by(Description::Computed(address));

fn address(node: u64) -> String {
    let [_, _, bytes @ ..] = node.to_be_bytes();
    let address = bytes.map(|byte| format!("{byte:02x}")).join(":");
    if bytes[0] & 1 == 1 {
        format!("{address}, random: its multicast bit is set")
    } else {
        format!("MAC address {address}")
    }
}

/// The number of ticks in a millisecond.
pub(super) const TICKS_PER_MS: u64 = 10_000;

/// The bits that count within a millisecond: a generator mints 2^13 IDs in it, and each takes one of its 10,000 ticks.
pub const GREGORIAN_SEQUENCE_BITS: u32 = 13;

const _: () = assert!(1 << GREGORIAN_SEQUENCE_BITS <= TICKS_PER_MS);

/// Returns the ticks of 100 ns since 1582 at the start of a millisecond since 1970.
#[inline(always)]
#[must_use]
pub const fn ticks_at(unix_ms: u64) -> u64 {
    const BEFORE: u64 = (-GREGORIAN.epoch_ns / GREGORIAN.tick_ns as i128) as u64;
    BEFORE + unix_ms * TICKS_PER_MS
}

/// Returns the node of a number of 47 bits: an address with the multicast bit, which no machine's address has.
#[inline(always)]
#[must_use]
pub const fn multicast(number: u64) -> u64 {
    const BIT: u32 = 40;
    (number >> BIT) << (BIT + 1) | 1 << BIT | number & ((1 << BIT) - 1)
}
