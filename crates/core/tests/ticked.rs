//! Properties of formats whose IDs hold a tick and bits that count, for any tick, random bits and node.
#![cfg(not(loom))]

use mintage_core::error::Error;
use mintage_core::given_time::GivenTimeCounter;
use mintage_core::prf::Prf;
use mintage_core::schemes::{ksuid, ksuid_ms, objectid, sandflake, ulid, uuid, xid};
use mintage_core::ticked::{CachedPrf, Ticked, low_bits};
use mintage_core::units::{Tick, UnixMs, UnixNs};
use proptest::prelude::*;

/// The inputs of a mint: a tick, its random bits, a node number, and the counts of two IDs.
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
    let tick = Tick(1 + minted.tick % (T::FULL_WINDOW.until.0 - 2));
    let units = T::units(tick);
    let node = minted.node % (1 << T::NODE_BITS);
    let (n, other) =
        ((u64::from(minted.counts.0) % T::NUMBERS) as u32, (u64::from(minted.counts.1) % T::NUMBERS) as u32);
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

/// Runs a generic function for each format.
macro_rules! each_format {
    ($run:ident $(, $argument:expr)*) => {
        [
            $run::<ulid::Id>($($argument),*),
            $run::<uuid::Id>($($argument),*),
            $run::<ksuid::Id>($($argument),*),
            $run::<ksuid_ms::Id>($($argument),*),
            $run::<xid::Id>($($argument),*),
            $run::<objectid::Id>($($argument),*),
            $run::<sandflake::Id>($($argument),*),
        ]
    };
}

proptest! {
    #[test]
    fn ids_of_a_tick_are_distinct_and_within_its_bounds(minted in minted()) {
        each_format!(ids_of_a_tick_differ, minted).into_iter().collect::<Result<(), _>>()?;
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
fn a_time_beyond_the_format_is_refused_with_the_range() {
    each_format!(times_end_with_the_format);
}

#[test]
fn the_random_bits_of_a_tick_do_not_depend_on_earlier_calls() {
    let (mut drawn, keyed) = (CachedPrf::new([7; 16]), Prf::new([7; 16]));
    for tick in [0, 5, 5, 6, 5, 0] {
        assert_eq!(drawn.bits(Tick(tick)), keyed.bits(tick));
    }
}

fn numbers_are_disjoint<T: Ticked>() {
    // Generators of 12 bytes count on through all numbers.
    let shared = T::SIZE == 12;
    let (numbers, capacity) = (T::NUMBERS, 1_u64 << T::SEQUENCE_BITS);
    let (places, given) = (u64::from(T::nth(0)), u64::from(GivenTimeCounter::default().next(numbers)));
    assert!(capacity <= numbers && given == numbers / 2, "{}", T::WHAT);
    assert_eq!(places, if shared { 0 } else { numbers / 4 }, "{}", T::WHAT);
    assert!(shared || (capacity <= places && places + capacity <= given), "{}", T::WHAT);
}

#[test]
fn numbers_of_now_by_place_and_of_given_times_are_disjoint() {
    each_format!(numbers_are_disjoint);
}

#[test]
fn numbers_of_given_times_repeat_after_all_of_them() {
    for numbers in [1, 2, 6, 8, 65_535] {
        let dated = GivenTimeCounter::default();
        let lap: Vec<_> = (0..numbers).map(|_| u64::from(dated.next(numbers))).collect();
        assert_eq!(lap, (0..numbers).map(|n| (numbers / 2 + n) % numbers).collect::<Vec<_>>());
        assert_eq!(u64::from(dated.next(numbers)), lap[0]);
    }
}

#[test]
fn low_bits_keeps_the_lower_bits() {
    assert_eq!(
        [low_bits(0b10_1101, 3), low_bits(0b10_1101, 6), low_bits(u128::MAX, 127)],
        [0b101, 0b10_1101, u128::MAX >> 1]
    );
}
