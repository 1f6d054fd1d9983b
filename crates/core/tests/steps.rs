//! Properties of every step, under any clock.
#![cfg(not(loom))]

use mintage_core::counting::{Counting, OnExhausted, OnRollback, Rules};
use mintage_core::error::Error;
use mintage_core::id::Id as _;
use mintage_core::mint::Mint as _;
use mintage_core::schemes::locality::{self, Mode};
use mintage_core::schemes::sno;
use mintage_core::schemes::snowflake::{self, Layout};
use mintage_core::step::{Refusal, Run, Window};
use mintage_core::units::{Tick, Timescale, UnixMs, UnixNs};
use proptest::prelude::*;
use std::collections::HashSet;
use std::convert::Infallible;

const MS: Timescale = Timescale { epoch_ms: 0, unit_ms: 1 };
const FULL_WINDOW: Window = Window { floor: Tick(0), until: Tick(1 << 41) };

fn counting(sequence_bits: u32, on_rollback: OnRollback, on_exhausted: OnExhausted) -> Counting {
    counting_in(FULL_WINDOW, sequence_bits, on_rollback, on_exhausted)
}

fn counting_in(window: Window, sequence_bits: u32, on_rollback: OnRollback, on_exhausted: OnExhausted) -> Counting {
    Counting::new(Rules { scale: MS, full_window: FULL_WINDOW, sequence_bits, on_rollback, on_exhausted }, window)
}

/// Generates a clock that wanders: small steps both ways, and rare leaps.
fn wandering_clock() -> impl Strategy<Value = Vec<u64>> {
    let step = prop_oneof![8 => -2_i64..4, 1 => -40_i64..40];
    prop::collection::vec(step, 1..200).prop_map(|steps| {
        let mut now = 1000_i64;
        steps
            .iter()
            .map(|step| {
                now = (now + step).max(1);
                now as u64
            })
            .collect()
    })
}

fn infallible<T>(run: Result<Result<T, Refusal>, Infallible>) -> Result<T, Refusal> {
    let Ok(result) = run;
    result
}

proptest! {
    #[test]
    fn sno_mints_no_id_twice_or_outside_its_bounds(
        clock in wandering_clock(),
        wants in prop::collection::vec(1_u32..9, 200),
        min in 0_u16..65_500,
        extra in 5_u16..30,
    ) {
        let bounds = sno::Bounds::new(min, min + extra).unwrap();
        let mint = sno::Mint::new(bounds, sno::WINDOW);
        let mut seen = HashSet::new();
        for (&now, &want) in clock.iter().zip(&wants) {
            let fast = mint.take(Tick(now), want);
            let Ok(run) = fast.or_else(|_| infallible(mint.take_slow(want, || Ok(Tick(now))))) else { continue };
            prop_assert_eq!(run.tick >> 1, now, "sno stamps the time that it is");
            prop_assert!(run.count >= 1 && run.count <= want);
            for sequence in run.first..run.first + run.count {
                prop_assert!((u32::from(bounds.min)..=u32::from(bounds.max)).contains(&sequence));
                prop_assert!(seen.insert((run.tick, sequence)), "{run:?} again");
            }
            let (state, drift) = mint.view();
            prop_assert_eq!(state.timeline & 1, u64::from(drift.count & 1), "the drift count tells the timeline");
        }
    }

    #[test]
    fn a_restored_sno_continues_as_an_uninterrupted_one(clock in wandering_clock(), cut in 0_usize..200) {
        let bounds = sno::Bounds::new(0, 9).unwrap();
        let uninterrupted = sno::Mint::new(bounds, sno::WINDOW);
        let mut resumed = sno::Mint::new(bounds, sno::WINDOW);
        for (index, &now) in clock.iter().enumerate() {
            if index == cut {
                resumed = sno::Mint::restore(&resumed.snapshot(7, Tick(now))).unwrap();
            }
            let one = infallible(uninterrupted.take_slow(1, || Ok(Tick(now))));
            prop_assert_eq!(one, infallible(resumed.take_slow(1, || Ok(Tick(now)))));
        }
    }

    #[test]
    fn snowflake_ids_only_increase_under_every_policy(
        clock in wandering_clock(),
        wants in prop::collection::vec(1_u32..9, 200),
        rollback in 0_usize..3,
        exhausted in 0_usize..3,
    ) {
        let on_rollback = [OnRollback::Advance, OnRollback::Wait, OnRollback::Raise][rollback];
        let on_exhausted = [OnExhausted::Wait, OnExhausted::Advance, OnExhausted::Raise][exhausted];
        let mint = counting(2, on_rollback, on_exhausted);
        let mut last = None;
        for (&now, &want) in clock.iter().zip(&wants) {
            let fast = mint.take(Tick(now), want);
            match fast.or_else(|_| infallible(mint.take_slow(want, || Ok(Tick(now))))) {
                Ok(run) => {
                    prop_assert!(Some((run.tick, run.first)) > last, "{run:?} after {last:?}");
                    prop_assert!(run.first + run.count <= 4);
                    last = Some((run.tick, run.first + run.count - 1));
                }
                Err(Refusal::Rollback { until }) => {
                    prop_assert!(on_rollback != OnRollback::Advance && until.0 > now);
                }
                Err(Refusal::Exhausted { until }) => {
                    prop_assert!(on_exhausted != OnExhausted::Advance);
                    prop_assert!(now < until.0 && until.0 <= now + 2, "the pace is the clock's: the wait is for its next tick");
                    let run = infallible(mint.take_slow(1, || Ok(until)));
                    prop_assert!(run.is_ok(), "{run:?} after the wait that was asked for");
                    last = run.ok().map(|run| (run.tick, run.first));
                }
                Err(Refusal::Outside { tick }) => prop_assert!(false, "{tick:?} is inside"),
            }
        }
    }

    #[test]
    fn the_fast_path_of_snowflake_agrees_with_the_slow_path(
        clock in wandering_clock(),
        wants in prop::collection::vec(1_u32..9, 200),
        rollback in 0_usize..3,
        exhausted in 0_usize..3,
    ) {
        let on_rollback = [OnRollback::Advance, OnRollback::Wait, OnRollback::Raise][rollback];
        let on_exhausted = [OnExhausted::Wait, OnExhausted::Advance, OnExhausted::Raise][exhausted];
        let [fast, slow] = [(); 2].map(|()| counting(2, on_rollback, on_exhausted));
        for (&now, &want) in clock.iter().zip(&wants) {
            let either = fast.take(Tick(now), want).or_else(|_| infallible(fast.take_slow(want, || Ok(Tick(now)))));
            prop_assert_eq!(either, infallible(slow.take_slow(want, || Ok(Tick(now)))));
        }
    }

    #[test]
    fn locality_repeats_no_pair_of_counter_and_time(
        clock in wandering_clock(),
        wants in prop::collection::vec(1_u32..9, 200),
        before_lap in 0_u32..50,
        start in any::<u32>(),
        // A clock of milliseconds stays in one span of time; a clock of seconds leaves it.
        scale in prop_oneof![Just(1_u64), Just(700), Just(1_700_000_000)],
    ) {
        for mode in [Mode::Variable, Mode::Sequential] {
            let mint = locality::Mint::at(locality::State { span: 0, count: u32::MAX - before_lap }, locality::WINDOW);
            let mut seen = HashSet::new();
            let mut highest = 0;
            for (&now, &want) in clock.iter().zip(&wants) {
                let now = now * scale;
                let run = mint.take(Tick(now), want).unwrap();
                highest = highest.max(now);
                prop_assert!(now <= run.tick && run.tick <= highest + 2 * 2048, "two spans ahead at most");
                for index in 0..run.count {
                    let counter = mode.advance(start, run.first.wrapping_add(index));
                    prop_assert!(seen.insert((counter, run.tick)), "{counter} at {} again", run.tick);
                }
            }
        }
    }

    #[test]
    fn a_window_contains_the_ticks_between_its_ends(floor in any::<u32>(), length in any::<u32>(), tick in any::<u64>()) {
        let (floor, until) = (u64::from(floor), u64::from(floor) + u64::from(length));
        let window = Window { floor: Tick(floor), until: Tick(until) };
        for tick in [tick, floor.wrapping_sub(1), floor, until.wrapping_sub(1), until] {
            prop_assert_eq!(window.contains(Tick(tick)), floor <= tick && tick < until, "{}", tick);
        }
    }

    #[test]
    fn a_snowflake_is_parsed_as_it_was_composed(
        widths in prop::collection::vec(1_u32..21, 3),
        order in 0_usize..6,
        unit_ms in 1_u32..1000,
        (tick, node, sequence) in any::<(u64, u64, u64)>(),
    ) {
        let names = [["time", "node", "sequence"], ["time", "sequence", "node"], ["node", "time", "sequence"],
                     ["node", "sequence", "time"], ["sequence", "time", "node"], ["sequence", "node", "time"]][order];
        let fields: Vec<_> = names.iter().zip(&widths).map(|(name, bits)| format!("{name}:{bits}")).collect();
        let layout = Layout::declare(&fields.join(" "), 1_420_070_400_000, unit_ms).unwrap();
        let tick = Tick(tick % layout.window().until.0);
        let node = node & layout.max_node();
        let sequence = sequence % u64::from(layout.ids_per_tick());
        let id = layout.compose(layout.timescale.start(tick), node, sequence).unwrap();
        let parts = layout.parse(id).unwrap();
        prop_assert_eq!((parts.tick, parts.node, parts.sequence), (tick, node, sequence));
        let time = layout.timescale.start(tick);
        prop_assert!(layout.min_at(time).unwrap() <= id && id <= layout.max_at(time).unwrap());
    }

    #[test]
    fn a_tick_contains_its_start(epoch_ms in -1_000_000_i64..1_000_000, unit_ms in 1_u32..100, ms in 0_i64..1_000_000) {
        let scale = Timescale { epoch_ms, unit_ms };
        let time = UnixMs(epoch_ms + ms);
        let tick = scale.tick(time).unwrap();
        prop_assert!(scale.start(tick) <= time && time < scale.start(Tick(tick.0 + 1)));
        prop_assert_eq!(scale.tick(UnixMs(epoch_ms - 1 - ms)), None);
    }

    #[test]
    fn a_time_rounds_towards_the_past(ns in any::<i64>()) {
        let ms = UnixNs(ns.into()).floor_ms();
        prop_assert!(ms.start_ns().0 <= i128::from(ns) && i128::from(ns) < ms.start_ns().0 + UnixNs::PER_MS);
    }

    #[test]
    fn sno_ids_sort_as_their_bytes_and_their_text(a in any::<[u8; 10]>(), b in any::<[u8; 10]>()) {
        let (x, y) = (sno::Id::from_bytes(a), sno::Id::from_bytes(b));
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        prop_assert_eq!(x.cmp(&y), x.to_text().cmp(&y.to_text()));
        prop_assert_eq!(sno::Id::parse(&x.to_string()), Ok(x));
    }
}

#[test]
fn a_stamped_run_agrees_with_the_layout() {
    let layout = Layout::of(&snowflake::FORMATS[4]);
    let (stamp, run) = (snowflake::Stamp::new(&layout), Run { tick: 1_000, first: 7, count: 3 });
    for index in 0..3 {
        let id = stamp.first(run, layout.place_node(40_000)) + index * stamp.stride();
        assert_eq!(layout.compose(layout.timescale.start(Tick(1_000)), 40_000, 7 + index), Ok(id));
    }
}

#[test]
fn a_rollback_differs_from_a_clock_that_has_not_caught_up() {
    let mint = counting(1, OnRollback::Raise, OnExhausted::Advance);
    let at = |now| infallible(mint.take_slow(2, || Ok(Tick(now)))).map(|run| run.tick);
    assert_eq!([at(100), at(100), at(100)], [Ok(100), Ok(101), Ok(102)], "ahead of the clock by choice");
    assert_eq!(at(101), Ok(103), "the clock goes on, the ticks go on");
    assert_eq!(at(100), Err(Refusal::Rollback { until: Tick(101) }), "the clock went back");
    assert_eq!(at(101), Ok(104));
    assert_eq!(at(200), Ok(200), "the clock has caught up");
    assert_eq!(at(199), Err(Refusal::Rollback { until: Tick(200) }), "and went back");
}

#[test]
fn behind_the_clock_a_new_tick_begins_only_when_it_moves() {
    for on_exhausted in [OnExhausted::Wait, OnExhausted::Raise] {
        let mint = counting(0, OnRollback::Advance, on_exhausted);
        let at = |now| infallible(mint.take_slow(1, || Ok(Tick(now)))).map(|run| run.tick);
        let exhausted = |until| Err(Refusal::Exhausted { until: Tick(until) });
        assert_eq!([at(100), at(98), at(98)], [Ok(100), exhausted(99), exhausted(99)], "the clock stands");
        assert_eq!([at(99), at(99)], [Ok(101), exhausted(100)], "it moved on once");
        assert_eq!([at(101), at(102)], [exhausted(102), Ok(102)], "it has caught up with a tick that is used up");
    }
}

#[test]
fn a_tick_holds_as_many_ids_as_its_sequence_numbers() {
    let mint = sno::Mint::new(sno::Bounds { min: 0, max: 65_535 }, sno::WINDOW);
    assert_eq!(mint.take(Tick(5), u32::MAX).unwrap().count, 65_536);
    assert_eq!(mint.take(Tick(5), 1), Err(Refusal::Exhausted { until: Tick(6) }));
    assert_eq!(mint.take(Tick(6), 1).unwrap().first, 0);
    mint.bind(sno::Bounds { min: 0, max: 65_535 });
    mint.reset(sno::WINDOW);
    assert_eq!(mint.take(Tick(5), 1).unwrap().first, 0, "a child with a partition of its own starts over");
}

#[test]
fn ids_after_a_change_of_mode_have_later_times() {
    let mint = locality::Mint::new(locality::WINDOW);
    mint.restart();
    assert_eq!(mint.take(Tick(0), 1).unwrap().tick, 0, "nothing was minted: nothing is later");
    mint.restart();
    let run = mint.take(Tick(0), 1).unwrap();
    assert_eq!((run.first, run.tick), (1, 2048));
}

#[test]
fn ids_of_given_times_roll_over_within_their_bounds() {
    let bounds = sno::Bounds::new(65_530, 0).unwrap();
    let time = UnixMs(1_600_000_000_000);
    let ids: Vec<_> = (0..7).map(|n| sno::ported(time, n, 9, 3, bounds).unwrap()).collect();
    let timeline = sno::unit(time).unwrap().0 << 1;
    let sequences = [65_530, 65_531, 65_532, 65_533, 65_534, 65_535, 65_530];
    assert_eq!(ids, sequences.map(|sequence| sno::Id::new(timeline, 9, 3, sequence)));
    let [first, last] = [false, true].map(|is_high| sno::bound(time.start_ns(), is_high).unwrap());
    assert!(ids.iter().all(|&id| first <= id && id <= last));
    assert_eq!([first, last].map(|id| sno::FORMAT.time_ns(&id.to_bytes())), [Some(time.start_ns().0); 2]);
}

#[test]
fn a_resumed_sno_begins_after_its_snapshot_in_any_window() {
    let bounds = sno::Bounds { min: 0, max: 65_535 };
    let before = sno::Mint::new(bounds, sno::WINDOW);
    for now in [100, 103, 101] {
        infallible(before.take_slow(1, || Ok(Tick(now)))).unwrap();
    }
    let snapshot = before.snapshot(7, Tick(101));
    assert_eq!((snapshot.wall_safe, snapshot.wall_hi, before.used_until()), (103, 101, Tick(104)));
    for (window, floor) in [((90, 200), 104), ((150, 200), 150), ((50, 100), 104)] {
        let mint = sno::Mint::resume(&snapshot).unwrap();
        mint.reset(Window { floor: Tick(window.0), until: Tick(window.1) });
        let at = |now: u64| infallible(mint.take_slow(1, || Ok(Tick(now))));
        for now in [49, floor.min(window.1) - 1] {
            assert_eq!(at(now), Err(Refusal::Rollback { until: Tick(floor) }));
        }
        if floor >= window.1 {
            assert_eq!(at(floor), Err(Refusal::Outside { tick: Tick(floor) }));
            continue;
        }
        assert_eq!(at(floor + 2).unwrap().tick, (floor + 2) << 1);
        assert_eq!(at(floor).unwrap().tick, floor << 1 | 1, "the other timeline is free from there on");
        assert_eq!(at(floor - 1), Err(Refusal::Rollback { until: Tick(floor + 3) }));
    }
}

#[test]
fn the_node_number_of_a_snapshot_is_that_of_its_pool() {
    let of = |sequence_min, sequence_max, shards: Option<u32>| {
        let leased = shards.map(|shards| sno::Leased { pool: "sno".into(), shards });
        let (sequence, now, wall_hi, wall_safe, drifts) = (0, 0, 0, 0, 0);
        sno::Snapshot { partition: 7, sequence_min, sequence_max, sequence, now, wall_hi, wall_safe, drifts, leased }
            .node()
    };
    assert_eq!(of(5, 500, None), Ok(7));
    assert_eq!(of(5, 500, Some(1)), Ok(7));
    assert_eq!([of(0, 16_383, Some(4)), of(49_152, 65_535, Some(4))], [Ok(28), Ok(31)]);
    assert!(matches!(of(0, 16_384, Some(4)), Err(Error::Snapshot(_))));
    assert!(matches!(of(1, 16_383, Some(4)), Err(Error::Snapshot(_))));
}

#[test]
fn a_stalled_caller_takes_no_number_of_another_unit() {
    // The race of the original: a caller reads unit T and stalls, the unit rolls, and the caller continues.
    let mint = sno::Mint::new(sno::Bounds { min: 0, max: 65_535 }, sno::WINDOW);
    let stalled = Tick(100);
    mint.take(stalled, 3).unwrap();
    mint.take(Tick(101), 2).unwrap();
    assert_eq!(mint.take(stalled, 1), Err(Refusal::Rollback { until: Tick(101) }));
    // It reads the clock again, and takes its number from the current unit.
    let run = infallible(mint.take_slow(1, || Ok(Tick(101)))).unwrap();
    assert_eq!((run.tick >> 1, run.first), (101, 2));
}

#[test]
fn a_clock_that_steps_back_during_exhaustion_is_refused() {
    let mint = counting(12, OnRollback::Wait, OnExhausted::Wait);
    mint.take(Tick(98), 4096).unwrap();
    mint.take(Tick(100), 4096).unwrap();
    let refused = infallible(mint.take_slow(1, || Ok(Tick(98))));
    assert_eq!(refused, Err(Refusal::Rollback { until: Tick(100) }));
}

#[test]
fn a_slow_reader_of_the_clock_flips_no_timeline() {
    let mint = sno::Mint::new(sno::Bounds { min: 0, max: 65_535 }, sno::WINDOW);
    let mut stalled = true;
    let run = infallible(mint.take_slow(1, || {
        // The clock was read at 100; meanwhile other threads minted at 101.
        let read = if stalled { 100 } else { 101 };
        if stalled {
            mint.take(Tick(101), 5).unwrap();
        }
        stalled = false;
        Ok(Tick(read))
    }));
    assert_eq!(run.unwrap().tick, 101 << 1);
    assert_eq!(mint.view().1.count, 0);
}

#[test]
fn a_generator_closed_during_a_clock_reading_mints_nothing() {
    let window = Window { floor: Tick(90), until: Tick(1 << 38) };
    let bounds = sno::Bounds { min: 0, max: 9 };
    for now in [99, 100, 101] {
        let mint = sno::Mint::new(bounds, window);
        mint.take(Tick(100), 1).unwrap();
        let run = infallible(mint.take_slow(1, || {
            mint.close();
            Ok(Tick(now))
        }));
        assert!(run.is_err(), "{run:?} at {now}");
    }
    for on_rollback in [OnRollback::Advance, OnRollback::Wait, OnRollback::Raise] {
        for on_exhausted in [OnExhausted::Advance, OnExhausted::Wait, OnExhausted::Raise] {
            // Time and sequence number have 63 bits together, so the last tick is that of the word.
            for (sequence_bits, until) in [(2, 1 << 38), (31, 1 << 32), (0, 1 << 63)] {
                let window = Window { floor: Tick(90), until: Tick(until) };
                let mint = counting_in(window, sequence_bits, on_rollback, on_exhausted);
                mint.take(Tick(100), 1).unwrap();
                for now in [99, 100, 101, until - 1] {
                    for _ in 0..3 {
                        let run = infallible(mint.take_slow(1, || {
                            mint.close();
                            Ok(Tick(now))
                        }));
                        assert!(run.is_err() && mint.take(Tick(now), 1).is_err(), "{run:?} at {now}");
                    }
                }
            }
        }
    }
}

#[test]
fn close_returns_the_first_unused_tick() {
    let window = Window { floor: Tick(90), until: Tick(1 << 38) };
    let unused = sno::Mint::new(sno::Bounds { min: 3, max: 9 }, window);
    assert_eq!(unused.close(), Tick(90));
    let used = sno::Mint::new(sno::Bounds { min: 3, max: 9 }, window);
    used.take(Tick(100), 1).unwrap();
    assert_eq!(used.close(), Tick(101));
    let flipped = sno::Mint::new(sno::Bounds { min: 3, max: 9 }, window);
    flipped.take(Tick(100), 1).unwrap();
    infallible(flipped.take_slow(1, || Ok(Tick(95)))).unwrap();
    assert_eq!(flipped.close(), Tick(101), "the other timeline counts");
    let [unused, used] = [(); 2].map(|()| counting_in(window, 2, OnRollback::Wait, OnExhausted::Wait));
    assert_eq!(unused.close(), Tick(90));
    used.take(Tick(100), 1).unwrap();
    assert_eq!(used.close(), Tick(101));
    let unused = locality::Mint::new(window);
    assert_eq!(unused.close(), Tick(90));
    let used = locality::Mint::new(window);
    used.take(Tick(100), 1).unwrap();
    assert_eq!(used.close(), Tick(2048));
}

#[test]
fn a_reset_generator_is_not_ahead_of_its_clock() {
    let mint = counting(0, OnRollback::Wait, OnExhausted::Advance);
    for ahead in 0..3 {
        assert_eq!(infallible(mint.take_slow(1, || Ok(Tick(100)))).map(|run| run.tick), Ok(100 + ahead));
    }
    mint.reset(Window { floor: Tick(200), until: Tick(1 << 41) });
    assert_eq!(infallible(mint.take_slow(1, || Ok(Tick(199)))), Err(Refusal::Rollback { until: Tick(200) }));
}

#[test]
fn a_run_of_locality_ends_with_the_lap_of_its_counter() {
    let mint = locality::Mint::at(locality::State { span: 5, count: u32::MAX - 2 }, locality::WINDOW);
    let runs = [10, 10].map(|want| mint.take(Tick(5 << 11), want).unwrap());
    assert_eq!(runs.map(|run| (run.first, run.count)), [(u32::MAX - 1, 2), (0, 1)]);
    assert_eq!(runs.map(|run| run.tick), [5 << 11, 6 << 11], "what follows lies in a later span");
}
