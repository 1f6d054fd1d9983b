//! The pool of a sequence hands out what it was offered: all of it, in order, once.
#![cfg(not(loom))]

use mintage_core::pool::{Pool, Segment};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn segment(first: u64, count: u32) -> Segment {
    Segment { first, count, stride: 1 }
}

fn integers(segment: Segment) -> impl Iterator<Item = u64> {
    (0..u64::from(segment.count)).map(move |n| segment.first + n * u64::from(segment.stride))
}

#[test]
fn an_empty_pool_has_nothing_to_take_and_nothing_to_advance_to() {
    let pool = Pool::new();
    assert_eq!((pool.take(1), pool.take_exactly(1), pool.advance(1), pool.level()), (None, None, false, (0, 0)));
}

#[test]
fn a_pool_takes_no_third_segment() {
    let pool = Pool::new();
    pool.offer(segment(1, 5)).unwrap();
    assert!(pool.advance(1));
    pool.offer(segment(10, 5)).unwrap();
    assert_eq!(pool.offer(segment(20, 5)), Err(segment(20, 5)));
    assert_eq!(pool.level(), (5, 10));
}

#[test]
fn a_pool_does_not_advance_past_integers_that_are_left() {
    let pool = Pool::new();
    pool.offer(segment(1, 2)).unwrap();
    assert!(pool.advance(1));
    pool.offer(segment(10, 2)).unwrap();
    pool.take(1).unwrap();
    assert!(!pool.advance(1));
    pool.take(1).unwrap();
    assert!(pool.advance(1));
    assert_eq!(pool.take(9), Some(segment(10, 2)));
}

#[test]
fn of_a_segment_that_is_used_up_a_drain_returns_no_tail() {
    let pool = Pool::new();
    pool.offer(segment(1, 2)).unwrap();
    assert!(pool.advance(1));
    pool.take(2).unwrap();
    assert_eq!(pool.drain(), [None, None]);
}

#[test]
fn a_tail_that_is_too_short_for_a_row_is_skipped_where_the_next_segment_is_long_enough() {
    let pool = Pool::new();
    pool.offer(segment(1, 5)).unwrap();
    assert!(pool.advance(5));
    pool.take(3).unwrap();
    assert!(!pool.advance(3), "there is nothing to go on to");
    pool.offer(segment(10, 4)).unwrap();
    assert!(!pool.advance(2), "two are left");
    assert!(!pool.advance(5), "the next has four");
    assert!(pool.advance(3));
    assert_eq!(pool.take_exactly(3), Some(segment(10, 3)));
}

#[test]
fn a_stride_is_kept() {
    let pool = Pool::new();
    pool.offer(Segment { first: 7, count: 3, stride: 10 }).unwrap();
    pool.advance(1);
    let taken: Vec<u64> = (0..3).flat_map(|_| integers(pool.take(1).unwrap())).collect();
    assert_eq!(taken, [7, 17, 27]);
}

#[test]
fn a_drained_pool_is_empty_and_returns_what_nobody_took() {
    let pool = Pool::new();
    pool.offer(segment(1, 5)).unwrap();
    pool.advance(1);
    pool.offer(segment(6, 5)).unwrap();
    pool.take(2).unwrap();
    assert_eq!(pool.drain(), [Some(segment(3, 3)), Some(segment(6, 5))]);
    assert_eq!((pool.take(1), pool.level(), pool.drain()), (None, (0, 0), [None, None]));
    pool.offer(segment(20, 1)).unwrap();
    assert!(pool.advance(1));
    assert_eq!(pool.take(1), Some(segment(20, 1)));
}

#[test]
fn threads_take_every_integer_once_while_segments_come_and_go() {
    const SEGMENTS: u64 = 2_000;
    let (pool, done) = (Pool::new(), AtomicBool::new(false));
    let taken: Vec<Vec<u64>> = thread::scope(|scope| {
        let callers: Vec<_> = (1..=3)
            .map(|want| {
                let (pool, done) = (&pool, &done);
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    while !done.load(Ordering::Acquire) || pool.level().0 > 0 {
                        mine.extend(pool.take(want).into_iter().flat_map(integers));
                    }
                    mine
                })
            })
            .collect();
        let mut next = 0;
        while next < SEGMENTS || pool.level().1 > 0 {
            if next < SEGMENTS && pool.offer(segment(next * 100, 1 + (next % 7) as u32)).is_ok() {
                next += 1;
            }
            pool.advance(1);
            thread::yield_now();
        }
        done.store(true, Ordering::Release);
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let all: Vec<u64> = taken.into_iter().flatten().collect();
    let distinct: BTreeSet<u64> = all.iter().copied().collect();
    assert_eq!(distinct.len(), all.len(), "an integer was taken twice");
    assert!(distinct.iter().all(|n| n % 100 <= n / 100 % 7), "an integer was never offered");
}

proptest! {
    #[test]
    fn what_is_taken_is_what_was_offered_in_its_order(
        sizes in prop::collection::vec(1_u32..50, 1..8),
        wants in prop::collection::vec((1_u32..20, any::<bool>()), 0..200),
    ) {
        let pool = Pool::new();
        let mut offers = sizes.iter().scan(0_u64, |first, &count| {
            let this = segment(*first, count);
            *first += u64::from(count);
            Some(this)
        }).peekable();
        let mut expected = 0;
        for (want, exactly) in wants {
            while let Some(&offer) = offers.peek() {
                if pool.offer(offer).is_err() {
                    break;
                }
                offers.next();
                pool.advance(1);
            }
            pool.advance(1);
            let left = pool.level().0;
            let taken = if exactly { pool.take_exactly(want) } else { pool.take(want) };
            match taken {
                Some(taken) => {
                    prop_assert_eq!(taken.first, expected);
                    prop_assert_eq!(taken.count, if exactly { want } else { want.min(left as u32) });
                    expected += u64::from(taken.count);
                }
                None => {
                    let enough = if exactly { u64::from(want) } else { 1 };
                    prop_assert!(left < enough);
                }
            }
        }
    }
}
