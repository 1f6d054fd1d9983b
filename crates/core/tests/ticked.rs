//! What formats promise whose IDs hold a tick and bits that count, whatever the tick, its random bits and the node are.
#![cfg(not(loom))]

use mintage_core::error::Error;
use mintage_core::keyed::Keyed;
use mintage_core::schemes::{ksuid, ksuid_ms, objectid, sandflake, ulid, uuid, xid};
use mintage_core::step::Run;
use mintage_core::ticked::{Drawn, Ticked, low};
use mintage_core::units::{Tick, UnixMs, UnixNs};
use proptest::prelude::*;

/// What a generator mints of: a tick, its random bits, a node number, and the counts of two IDs.
#[derive(Clone, Copy, Debug)]
struct Minted {
    tick: u64,
    random: u128,
    node: u64,
    counts: (u32, u32),
}

prop_compose! {
    fn minted()(tick: u64, random: u128, node: u64, counts: (u32, u32)) -> Minted {
        Minted { tick, random, node, counts }
    }
}

fn ids_of_a_tick_differ<T: Ticked>(minted: Minted) -> Result<(), TestCaseError> {
    let tick = Tick(1 + minted.tick % (T::WHOLE.until.0 - 2));
    let units = T::units(tick);
    let node = minted.node % (1 << T::NODE_BITS);
    let (n, other) = (minted.counts.0 % (1 << T::SEQUENCE_BITS), minted.counts.1 % (1 << T::SEQUENCE_BITS));
    let id = T::mint(units, minted.random, Some(node), n);
    prop_assert_eq!(id == T::mint(units, minted.random, Some(node), other), n == other);
    prop_assert_ne!(id, T::mint(units, !minted.random, Some(node ^ 1), other), "another node's");
    let unleased = T::mint(units, minted.random, None, n);
    prop_assert_eq!(unleased == T::mint(units, minted.random, None, other), n == other);
    for id in [id, unleased] {
        prop_assert!(T::bound(units, false) <= id && id <= T::bound(units, true));
        prop_assert!(T::bound(units - 1, true) < id && id < T::bound(units + 1, false));
        prop_assert_eq!(T::FORMAT.time_ns(id.to_array().as_ref()), Some(T::SCALE.start(tick).start_ns().0));
    }
    prop_assert_eq!(T::tick(units), tick);
    Ok(())
}

proptest! {
    #[test]
    fn ids_of_a_tick_differ_in_their_counts_and_nodes_and_lie_within_its_bounds(minted in minted()) {
        ids_of_a_tick_differ::<ulid::Id>(minted)?;
        ids_of_a_tick_differ::<uuid::Id>(minted)?;
        ids_of_a_tick_differ::<ksuid::Id>(minted)?;
        ids_of_a_tick_differ::<ksuid_ms::Id>(minted)?;
        ids_of_a_tick_differ::<xid::Id>(minted)?;
        ids_of_a_tick_differ::<objectid::Id>(minted)?;
        ids_of_a_tick_differ::<sandflake::Id>(minted)?;
    }
}

fn times_end_with_the_format<T: Ticked>() {
    let first = UnixNs(T::FORMAT.clock.unwrap().epoch_ns).floor_ms();
    let last = UnixMs(UnixNs(T::FORMAT.expires_ns().unwrap()).floor_ms().0 - 1);
    let unit_ms = i64::from(T::SCALE.unit_ms);
    for (time, units) in [(first.0, 0), (first.0 + unit_ms - 1, 0), (first.0 + unit_ms, 1)] {
        assert_eq!(T::units_at(UnixMs(time).start_ns()), Ok(units), "{}", T::WHAT);
    }
    assert_eq!(T::units_at(last.start_ns()), Ok(((last.0 - first.0) / unit_ms) as u64), "{}", T::WHAT);
    for time in [UnixMs(first.0 - 1), UnixMs(last.0 + 1)] {
        assert_eq!(T::units_at(time.start_ns()), Err(Error::Time { time, first, last }), "{}", T::WHAT);
    }
}

#[test]
fn a_time_that_a_format_cannot_hold_is_refused_with_the_first_and_the_last_that_it_can() {
    times_end_with_the_format::<ulid::Id>();
    times_end_with_the_format::<uuid::Id>();
    times_end_with_the_format::<ksuid::Id>();
    times_end_with_the_format::<ksuid_ms::Id>();
    times_end_with_the_format::<xid::Id>();
    times_end_with_the_format::<objectid::Id>();
    times_end_with_the_format::<sandflake::Id>();
}

#[test]
fn the_random_bits_of_a_tick_are_its_own_whatever_was_asked_before() {
    let (mut drawn, keyed) = (Drawn::new([7; 16]), Keyed::new([7; 16]));
    for tick in [0, 5, 5, 6, 5, 0] {
        assert_eq!(drawn.of(Run { tick, first: 3, count: 2 }), keyed.bits(tick));
    }
}

#[test]
fn the_lower_bits_of_a_number_are_what_is_left_of_it() {
    assert_eq!([low(0b10_1101, 3), low(0b10_1101, 6), low(u128::MAX, 127)], [0b101, 0b10_1101, u128::MAX >> 1]);
}
