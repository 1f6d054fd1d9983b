//! A bucket admits what its rate and burst allow, and no more.

use mintage_wire::bucket::Bucket;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

#[test]
fn a_full_bucket_admits_a_burst_and_then_one_request_an_interval() {
    let bucket = Bucket::new(10.0, 3);
    let now = 5 * SECOND;
    assert!((0..3).all(|_| bucket.take(now).is_ok()));
    assert_eq!(bucket.take(now), Err(SECOND / 10));
    assert_eq!(bucket.take(now + SECOND / 10), Ok(()));
    assert!(bucket.take(now + SECOND / 10).is_err());
}

#[test]
fn an_idle_bucket_holds_no_more_than_the_burst() {
    let bucket = Bucket::new(1000.0, 5);
    assert_eq!((0..100).filter(|_| bucket.take(3600 * SECOND).is_ok()).count(), 5);
    assert_eq!((0..100).filter(|_| bucket.take(7200 * SECOND).is_ok()).count(), 5);
}

#[test]
fn a_refusal_costs_no_token() {
    let bucket = Bucket::new(1.0, 1);
    bucket.take(SECOND).unwrap();
    let refused = (0..1000).all(|_| bucket.take(SECOND) == Err(SECOND));
    assert!(refused && bucket.take(2 * SECOND).is_ok());
}

#[test]
fn a_returned_token_can_be_taken_again() {
    let bucket = Bucket::new(10.0, 3);
    for _ in 0..100 {
        bucket.take(SECOND).unwrap();
        bucket.put_back();
    }
    assert_eq!((0..100).filter(|_| bucket.take(SECOND).is_ok()).count(), 3);
}

proptest! {
    #[test]
    fn no_caller_exceeds_burst_and_rate_over_any_time(
        rate in 1.0..100_000.0_f64,
        burst in 1..1000_u32,
        pauses in prop::collection::vec(0..50_000_000_u64, 1..400),
    ) {
        let bucket = Bucket::new(rate, burst);
        let (mut now, mut passed) = (0, 0_u64);
        for pause in pauses {
            now += pause;
            passed += u64::from(bucket.take(now).is_ok());
            let allowed = f64::from(burst) + now as f64 / 1e9 * rate * 1.001 + 1.0;
            prop_assert!((passed as f64) <= allowed);
        }
    }

    #[test]
    fn a_caller_that_waits_as_long_as_asked_is_admitted(rate in 0.01..1e12_f64, burst in 0..u32::MAX, now in 0..u64::MAX / 4) {
        let bucket = Bucket::new(rate, burst);
        for _ in 0..3 {
            if let Err(wait) = bucket.take(now) {
                prop_assert!(wait > 0);
                prop_assert_eq!(bucket.take(now + wait), Ok(()));
                break;
            }
        }
    }
}
