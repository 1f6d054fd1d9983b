//! The buffer of a sequence hands out every integer that it was offered, in order, once.
#![cfg(not(loom))]

use mintage_core::buffer::{Buffer, Segment};
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
fn an_empty_buffer_has_nothing_to_take_or_advance_to() {
    let buffer = Buffer::empty();
    assert_eq!(
        (buffer.take(1), buffer.take_exactly(1), buffer.advance(1), buffer.level()),
        (None, None, false, (0, 0))
    );
}

#[test]
fn a_buffer_refuses_a_third_segment() {
    let buffer = Buffer::empty();
    buffer.offer(segment(1, 5)).unwrap();
    assert!(buffer.advance(1));
    buffer.offer(segment(10, 5)).unwrap();
    assert_eq!(buffer.offer(segment(20, 5)), Err(segment(20, 5)));
    assert_eq!(buffer.level(), (5, 10));
}

#[test]
fn a_buffer_does_not_advance_past_remaining_integers() {
    let buffer = Buffer::empty();
    buffer.offer(segment(1, 2)).unwrap();
    assert!(buffer.advance(1));
    buffer.offer(segment(10, 2)).unwrap();
    buffer.take(1).unwrap();
    assert!(!buffer.advance(1));
    buffer.take(1).unwrap();
    assert!(buffer.advance(1));
    assert_eq!(buffer.take(9), Some(segment(10, 2)));
}

#[test]
fn drain_returns_no_tail_of_a_used_up_segment() {
    let buffer = Buffer::empty();
    buffer.offer(segment(1, 2)).unwrap();
    assert!(buffer.advance(1));
    buffer.take(2).unwrap();
    assert_eq!(buffer.drain(), [None, None]);
}

#[test]
fn advance_skips_a_tail_that_is_too_short() {
    let buffer = Buffer::empty();
    buffer.offer(segment(1, 5)).unwrap();
    assert!(buffer.advance(5));
    buffer.take(3).unwrap();
    assert!(!buffer.advance(3), "there is nothing to go on to");
    buffer.offer(segment(10, 4)).unwrap();
    assert!(!buffer.advance(2), "two are left");
    assert!(!buffer.advance(5), "the next has four");
    assert!(buffer.advance(3));
    assert_eq!(buffer.take_exactly(3), Some(segment(10, 3)));
}

#[test]
fn a_stride_is_kept() {
    let buffer = Buffer::empty();
    buffer.offer(Segment { first: 7, count: 3, stride: 10 }).unwrap();
    buffer.advance(1);
    let taken: Vec<u64> = (0..3).flat_map(|_| integers(buffer.take(1).unwrap())).collect();
    assert_eq!(taken, [7, 17, 27]);
}

#[test]
fn drain_returns_the_remaining_integers() {
    let buffer = Buffer::empty();
    buffer.offer(segment(1, 5)).unwrap();
    buffer.advance(1);
    buffer.offer(segment(6, 5)).unwrap();
    buffer.take(2).unwrap();
    assert_eq!(buffer.drain(), [Some(segment(3, 3)), Some(segment(6, 5))]);
    assert_eq!((buffer.take(1), buffer.level(), buffer.drain()), (None, (0, 0), [None, None]));
    buffer.offer(segment(20, 1)).unwrap();
    assert!(buffer.advance(1));
    assert_eq!(buffer.take(1), Some(segment(20, 1)));
}

#[test]
fn threads_take_every_integer_once() {
    const SEGMENTS: u64 = 2_000;
    let (buffer, done) = (Buffer::empty(), AtomicBool::new(false));
    let taken: Vec<Vec<u64>> = thread::scope(|scope| {
        let callers: Vec<_> = (1..=3)
            .map(|want| {
                let (buffer, done) = (&buffer, &done);
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    while !done.load(Ordering::Acquire) || buffer.level().0 > 0 {
                        mine.extend(buffer.take(want).into_iter().flat_map(integers));
                    }
                    mine
                })
            })
            .collect();
        let mut next = 0;
        while next < SEGMENTS || buffer.level().1 > 0 {
            if next < SEGMENTS && buffer.offer(segment(next * 100, 1 + (next % 7) as u32)).is_ok() {
                next += 1;
            }
            buffer.advance(1);
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
    fn integers_are_taken_in_the_order_of_their_segments(
        sizes in prop::collection::vec(1_u32..50, 1..8),
        wants in prop::collection::vec((1_u32..20, any::<bool>()), 0..200),
    ) {
        let buffer = Buffer::empty();
        let mut offers = sizes.iter().scan(0_u64, |first, &count| {
            let this = segment(*first, count);
            *first += u64::from(count);
            Some(this)
        }).peekable();
        let mut expected = 0;
        for (want, exactly) in wants {
            while let Some(&offer) = offers.peek() {
                if buffer.offer(offer).is_err() {
                    break;
                }
                offers.next();
                buffer.advance(1);
            }
            buffer.advance(1);
            let left = buffer.level().0;
            let taken = if exactly { buffer.take_exactly(want) } else { buffer.take(want) };
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
