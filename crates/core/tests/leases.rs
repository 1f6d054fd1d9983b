//! No clock and no change of a lease makes a generator mint outside its windows, and the ticks that it gives back are
//! unused.
#![cfg(not(loom))]

use mintage_core::counting::{Counting, OnExhausted, OnRollback, Rules};
use mintage_core::mint::Mint;
use mintage_core::schemes::{locality, sno};
use mintage_core::step::Window;
use mintage_core::units::{Tick, Timescale, UnixMs};
use proptest::prelude::*;
use std::convert::Infallible;

/// An event in the life of a lease.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// The clock moves, and the holder asks for IDs.
    Mint { by: i64, want: u32 },
    /// The lease grows.
    Extend { by: u64 },
    /// The holder gets another lease, later than all before.
    Move { gap: u64, length: u64 },
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        8 => (-30_i64..40, 1_u32..20).prop_map(|(by, want)| Event::Mint { by, want }),
        2 => (0_u64..60).prop_map(|by| Event::Extend { by }),
        1 => (0_u64..20, 1_u64..60).prop_map(|(gap, length)| Event::Move { gap, length }),
    ];
    prop::collection::vec(event, 1..150)
}

/// Mints on the fast path, and on the slow path if that refuses; returns the tick.
fn tick_of(mint: &impl Mint, now: Tick, want: u32) -> Option<u64> {
    let Ok::<_, Infallible>(run) =
        mint.take(now, want).map_or_else(|_| mint.take_slow(want, || Ok(now)), |run| Ok(Ok(run)));
    run.ok().map(|run| run.tick)
}

/// `tick_bits` are the bits below the tick in a run.
fn live(events: &[Event], mut window: Window, mint: &impl Mint, tick_bits: u32) -> Result<(), TestCaseError> {
    let mut now = window.floor.0 as i64;
    let mut highest = None;
    for &event in events {
        match event {
            Event::Mint { by, want } => {
                now = (now + by).max(0);
                if let Some(tick) = tick_of(mint, Tick(now as u64), want).map(|tick| tick >> tick_bits) {
                    prop_assert!(window.contains(Tick(tick)), "{tick} is outside {window:?}");
                    highest = highest.max(Some(tick));
                }
            }
            Event::Extend { by } => {
                let until = Tick(window.until.0 + by);
                prop_assert_eq!(mint.extend(until), by > 0);
                prop_assert!(!mint.extend(window.floor), "an end never moves back");
                window.until = until;
            }
            Event::Move { gap, length } => {
                let floor = Tick(window.until.0 + gap);
                window = Window { floor, until: Tick(floor.0 + length) };
                mint.reset(window);
                highest = None;
            }
        }
    }
    let used = mint.close();
    prop_assert!(highest.is_none_or(|tick| used.0 > tick), "{used:?} was used: {highest:?}");
    prop_assert!(highest.is_some() || used <= window.floor, "nothing was used");
    // A closed generator stays closed, also if a late request extends or resets it.
    let later = Window { floor: window.until, until: Tick(window.until.0 + 1000) };
    for reset in [false, true] {
        if reset {
            mint.reset(later);
        } else {
            mint.extend(later.until);
        }
        for tick in [0, now as u64, later.floor.0, later.floor.0 + 1, later.until.0 - 1, 1 << 38, 1 << 42] {
            prop_assert_eq!(tick_of(mint, Tick(tick), 1), None);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn sno_mints_nothing_outside_its_lease(events in events(), floor in 1_u64..2000, length in 1_u64..60) {
        let window = Window { floor: Tick(floor), until: Tick(floor + length) };
        let mint = sno::Mint::new(sno::Bounds::new(0, 9).unwrap(), window);
        live(&events, window, &mint, 1)?;
    }

    #[test]
    fn snowflake_mints_nothing_outside_its_lease(events in events(), floor in 0_u64..2000, length in 1_u64..60) {
        let window = Window { floor: Tick(floor), until: Tick(floor + length) };
        let rules = Rules {
            scale: locality::SCALE,
            full_window: Window { floor: Tick(0), until: Tick(1 << 41) },
            sequence_bits: 2,
            on_rollback: OnRollback::Advance,
            on_exhausted: OnExhausted::Advance,
        };
        live(&events, window, &Counting::new(rules, window), 0)?;
    }

    #[test]
    fn locality_mints_nothing_outside_its_lease(events in events(), floor in 0_u64..9000, length in 1_u64..60) {
        let window = Window { floor: Tick(floor), until: Tick(floor + length) };
        live(&events, window, &locality::Mint::new(window), 0)?;
    }

    #[test]
    fn windows_of_disjoint_times_share_no_tick(
        epoch_ms in -5_000_i64..5_000,
        unit_ms in 1_u32..300,
        begin in -10_000_i64..10_000,
        lengths in prop::collection::vec(0_i64..3_000, 2..6),
    ) {
        let scale = Timescale { epoch_ms, unit_ms };
        let full_window = Window { floor: Tick(0), until: Tick(1 << 20) };
        let mut last_end = Tick(0);
        let mut at = begin;
        for length in lengths {
            let (floor, until) = (UnixMs(at), UnixMs(at + length));
            let ticks = full_window.between(scale, floor, until);
            prop_assert!(ticks.floor <= ticks.until);
            if ticks.floor < ticks.until {
                prop_assert!(last_end <= ticks.floor, "{ticks:?} begins before {last_end:?}");
                prop_assert!(scale.start(ticks.floor) >= floor || epoch_ms > at);
                prop_assert!(scale.start(ticks.until) <= until);
                last_end = ticks.until;
            }
            at += length;
        }
    }

    #[test]
    fn shards_partition_the_sequence_numbers(power in 0_u32..14) {
        let shards = 1_u32 << power;
        let mut next = 0_u32;
        for shard in 0..shards {
            let bounds = sno::Bounds::shard(shard, shards);
            prop_assert_eq!(u32::from(bounds.min), next);
            next = u32::from(bounds.max) + 1;
        }
        prop_assert_eq!(next, 1 << 16);
    }

    #[test]
    fn a_node_number_of_locality_encodes_pid_and_mac(pid in any::<u16>(), mac in 0_u32..(1 << 28)) {
        let node = locality::node_of(pid, mac);
        prop_assert!(node < locality::NODES);
        prop_assert_eq!(locality::origin_of(node), (pid, mac));
    }
}

#[test]
fn a_lease_has_every_tick_within_its_times() {
    let scale = Timescale { epoch_ms: 1_000, unit_ms: 10 };
    let full_window = Window { floor: Tick(0), until: Tick(1 << 20) };
    for (floor, until, ticks) in
        [(1_010, 1_030, 1..3), (1_011, 1_039, 2..3), (1_019, 1_040, 2..4), (1_011, 1_029, 2..2)]
    {
        let window = Window { floor: Tick(ticks.start), until: Tick(ticks.end) };
        assert_eq!(full_window.between(scale, UnixMs(floor), UnixMs(until)), window);
    }
}
