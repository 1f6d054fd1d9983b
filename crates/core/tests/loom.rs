//! No interleaving of two or three threads on one generator mints an ID twice or breaks the order of a thread.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --release -p mintage-core --test loom`
#![cfg(loom)]

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use mintage_core::buffer::{Buffer, Segment};
use mintage_core::counting::{Counting, OnExhausted, OnRollback, Rules};
use mintage_core::mint::Mint;
use mintage_core::prf::Prf;
use mintage_core::schemes::{locality, sno};
use mintage_core::step::{Refusal, Window};
use mintage_core::ticked::SharedPrf;
use mintage_core::units::Tick;
use mintage_core::version::Version;
use std::collections::HashSet;
use std::convert::Infallible;

/// A clock that a thread of the model steps while others read it.
#[derive(Clone)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn at(tick: u64) -> Self {
        Self(Arc::new(AtomicU64::new(tick)))
    }

    fn set(&self, tick: u64) {
        self.0.store(tick, Ordering::SeqCst);
    }

    fn now(&self) -> Tick {
        Tick(self.0.load(Ordering::SeqCst))
    }

    fn read(&self) -> Result<Tick, Infallible> {
        Ok(self.now())
    }
}

const WINDOW: Window = Window { floor: Tick(0), until: Tick(1 << 41) };
const BOUNDS: sno::Bounds = sno::Bounds { min: 0, max: 5 };

/// Mints as the binding does: on the fast path, and on the slow path if that refuses. A refusal of both is a valid
/// result.
fn mint_one(mint: &impl Mint, clock: &Clock) -> Option<(u64, u32)> {
    let run = match mint.take(clock.now(), 1) {
        Ok(run) => run,
        Err(_) => {
            let Ok(slow) = mint.take_slow(1, || clock.read());
            slow.ok()?
        }
    };
    Some((run.tick, run.first))
}

fn assert_no_id_twice<T: Eq + std::hash::Hash + Copy + std::fmt::Debug>(minted: &[Vec<T>]) {
    let mut seen = HashSet::new();
    for id in minted.iter().flatten() {
        assert!(seen.insert(*id), "{id:?} was minted twice");
    }
}

/// Runs two threads that mint `each` IDs, while the clock takes `steps`.
fn race<M, T>(each: usize, mint: M, start: u64, steps: &'static [u64], one: fn(&M, &Clock) -> Option<T>) -> Vec<Vec<T>>
where
    M: Send + Sync + 'static,
    T: Send + 'static,
{
    let (mint, clock) = (Arc::new(mint), Clock::at(start));
    let minting: Vec<_> = (0..2)
        .map(|_| {
            let (mint, clock) = (mint.clone(), clock.clone());
            thread::spawn(move || (0..each).filter_map(|_| one(&mint, &clock)).collect::<Vec<_>>())
        })
        .collect();
    steps.iter().for_each(|&tick| clock.set(tick));
    minting.into_iter().map(|thread| thread.join().unwrap()).collect()
}

/// Runs every interleaving of threads that mint one ID each, and those with up to three preemptions of threads that
/// mint two.
fn model(run: impl Fn(usize) + Send + Sync + Copy + 'static) {
    loom::model(move || run(1));
    bounded(move || run(2));
}

/// Runs the interleavings with up to three preemptions.
fn bounded(run: impl Fn() + Send + Sync + 'static) {
    let mut bounded = loom::model::Builder::new();
    bounded.preemption_bound = Some(3);
    bounded.check(run);
}

#[test]
fn sno_mints_no_id_twice_while_the_unit_rolls() {
    model(|each| {
        let minted = race(each, sno::Mint::new(BOUNDS, sno::WINDOW), 10, &[11], mint_one);
        assert_no_id_twice(&minted);
        assert_eq!(minted.iter().flatten().count(), 2 * each, "a clock that only goes forward refuses nobody");
        for ids in &minted {
            assert!(ids.is_sorted(), "a thread sees its own IDs in order: {ids:?}");
        }
        // A slow caller is not a clock that went back. The original flips its timeline here.
        assert!(minted.iter().flatten().all(|(timeline, _)| timeline & 1 == 0), "no timeline flipped: {minted:?}");
    });
}

#[test]
fn sno_mints_no_id_twice_while_the_clock_goes_back() {
    model(|each| {
        let minted = race(each, sno::Mint::new(BOUNDS, sno::WINDOW), 10, &[8, 12], mint_one);
        assert_no_id_twice(&minted);
    });
}

#[test]
fn sno_mints_no_id_twice_when_a_unit_is_used_up() {
    model(|each| {
        let mint = sno::Mint::new(BOUNDS, sno::WINDOW);
        let used = mint.take(Tick(10), 6 - each as u32).unwrap();
        let mut minted = race(each, mint, 10, &[11], mint_one);
        minted.push((used.first..used.first + used.count).map(|sequence| (used.tick, sequence)).collect());
        assert_no_id_twice(&minted);
    });
}

fn rules(on_rollback: OnRollback, on_exhausted: OnExhausted) -> Rules {
    Rules { scale: locality::SCALE, full_window: WINDOW, sequence_bits: 1, on_rollback, on_exhausted }
}

#[test]
fn snowflake_mints_increasing_ids_under_every_policy() {
    for on_rollback in [OnRollback::Advance, OnRollback::Wait] {
        for on_exhausted in [OnExhausted::Wait, OnExhausted::Advance] {
            model(move |each| {
                let mint = Counting::new(rules(on_rollback, on_exhausted), WINDOW);
                let minted = race(each, mint, 10, &[9], mint_one);
                assert_no_id_twice(&minted);
                for ids in &minted {
                    assert!(ids.is_sorted(), "a thread sees its own IDs in order: {ids:?}");
                }
            });
        }
    }
}

#[test]
fn locality_repeats_no_counter_and_time_while_its_counter_laps() {
    model(|each| {
        // The lap ends after three IDs; the clock stands still.
        let mint = locality::Mint::at(locality::State { span: 0, count: u32::MAX - 2 }, locality::WINDOW);
        let minted =
            race(each, mint, 5, &[], |mint, clock| mint.take(clock.now(), 1).ok().map(|run| (run.tick, run.first)));
        assert_no_id_twice(&minted);
        assert_eq!(minted.iter().flatten().count(), 2 * each);
    });
}

/// The state of sno in the Go library: unit and sequence in two words. It proves that the checks above can fail.
struct TwoWords {
    unit: AtomicU64,
    sequence: AtomicU64,
}

#[test]
#[should_panic(expected = "was minted twice")]
fn two_words_as_in_the_original_mint_duplicates() {
    model(|each| {
        let original = TwoWords { unit: AtomicU64::new(10), sequence: AtomicU64::new(0) };
        let minted = race(each, original, 10, &[11], |original, clock| {
            let now = clock.now().0;
            let unit = original.unit.load(Ordering::SeqCst);
            if unit < now && original.unit.compare_exchange(unit, now, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                original.sequence.store(0, Ordering::SeqCst);
                return Some((now, 0));
            }
            (unit == now).then(|| (now, original.sequence.fetch_add(1, Ordering::SeqCst) as u32 + 1))
        });
        assert_no_id_twice(&minted);
    });
}

#[test]
fn a_refusal_changes_nothing() {
    loom::model(|| {
        let mint = sno::Mint::new(BOUNDS, sno::WINDOW);
        mint.take(Tick(10), 6).unwrap();
        let before = mint.view();
        assert_eq!(mint.take(Tick(10), 1), Err(Refusal::Exhausted { until: Tick(11) }));
        assert_eq!(mint.take(Tick(9), 1), Err(Refusal::Rollback { until: Tick(10) }));
        assert_eq!(mint.view(), before);
    });
}

/// Two callers take while the keeper offers one segment after another.
#[test]
fn no_interleaving_takes_an_integer_of_a_buffer_twice() {
    loom::model(|| {
        let buffer = Arc::new(Buffer::empty());
        let segment = |first| Segment { first, count: 1, stride: 1 };
        buffer.offer(segment(10)).unwrap();
        assert!(buffer.advance(1));
        buffer.offer(segment(20)).unwrap();
        let callers: Vec<_> = (0..2)
            .map(|_| {
                let buffer = Arc::clone(&buffer);
                loom::thread::spawn(move || buffer.take(1).map(|taken| taken.first))
            })
            .collect();
        // The keeper advances as soon as the segment is used up, and offers another for the free slot.
        let moved = buffer.advance(1);
        if moved {
            buffer.offer(segment(30)).unwrap();
            if buffer.advance(1) {
                buffer.offer(segment(40)).unwrap();
            }
        }
        let mut taken: Vec<u64> = callers.into_iter().filter_map(|caller| caller.join().unwrap()).collect();
        while let Some(rest) = buffer.take(1) {
            taken.push(rest.first);
        }
        let count = taken.len();
        taken.sort_unstable();
        taken.dedup();
        assert_eq!(taken.len(), count, "an integer was taken twice");
        assert!(taken.iter().all(|n| [10, 20, 30, 40].contains(n)));
    });
}

/// Drains a buffer of one or two segments of two integers, while a caller takes `want` twice.
fn drain_beside_a_caller(firsts: &'static [u64], want: u32) {
    loom::model(move || {
        let buffer = Arc::new(Buffer::empty());
        for &first in firsts {
            buffer.offer(Segment { first, count: 2, stride: 1 }).unwrap();
            assert_eq!(buffer.advance(1), first == firsts[0]);
        }
        let taking = {
            let buffer = Arc::clone(&buffer);
            thread::spawn(move || [buffer.take(want), buffer.take(want)])
        };
        let left = buffer.drain();
        let taken = taking.join().unwrap();
        let ids = left.iter().chain(&taken).flatten().flat_map(|part| part.first..part.first + u64::from(part.count));
        let ids: Vec<_> = ids.collect();
        assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "{ids:?}");
        assert_eq!(buffer.take(1), None);
    });
}

#[test]
fn no_caller_takes_an_integer_that_drain_returns() {
    drain_beside_a_caller(&[0], 1);
}

/// A caller that read the word before the drain counts after it. Its count must not carry into the index, or it would
/// take the next segment too.
#[test]
fn callers_after_a_drain_take_nothing_of_the_next_segment() {
    drain_beside_a_caller(&[10, 20], 2);
}

/// A generator with a node number beside its word, as the binding has it without the GIL.
struct WithNode {
    mint: Counting,
    node: AtomicU64,
    is_open: AtomicU64,
    version: Version,
}

impl WithNode {
    fn new() -> Self {
        let mint = Counting::new(rules(OnRollback::Advance, OnExhausted::Advance), WINDOW);
        Self { mint, node: AtomicU64::new(1), is_open: AtomicU64::new(1), version: Version::new() }
    }

    /// An ID, with its node number, if `is_still` says that no other thread changed the generator meanwhile.
    fn mint(&self, is_still: impl Fn(&Version, u64) -> bool) -> Option<(u64, u64, u32)> {
        let seen = self.version.seen()?;
        if self.is_open.load(Ordering::Acquire) == 0 {
            return None;
        }
        let run = self.mint.take(Tick(10), 1).ok()?;
        let node = self.node.load(Ordering::Relaxed);
        is_still(&self.version, seen).then_some((node, run.tick, run.first))
    }

    /// Gives the node number back, and returns the first tick that it did not mint in.
    fn detach(&self) -> Tick {
        self.version.change(|| {
            self.is_open.store(0, Ordering::Release);
            self.mint.used_until()
        })
    }

    fn attach(&self, node: u64) {
        self.version.change(|| {
            self.node.store(node, Ordering::Relaxed);
            self.mint.reset(WINDOW);
            self.is_open.store(1, Ordering::Release);
        });
    }
}

/// Moves a generator to another node number while another thread mints.
fn move_beside_a_caller(is_still: fn(&Version, u64) -> bool) {
    bounded(move || {
        let generator = Arc::new(WithNode::new());
        let minting = {
            let generator = Arc::clone(&generator);
            thread::spawn(move || generator.mint(is_still))
        };
        let until = generator.detach();
        generator.attach(2);
        let later = generator.mint(is_still);
        let minted: Vec<_> = [minting.join().unwrap(), later].into_iter().flatten().collect();
        for (node, tick, _) in &minted {
            assert!(*node == 2 || *tick < until.0, "the next holder of node {node} begins at {until:?}: {minted:?}");
        }
        assert_no_id_twice(&[minted]);
    });
}

#[test]
fn no_thread_mints_under_a_node_number_that_was_given_back() {
    move_beside_a_caller(Version::is_still);
}

/// It proves that the check above can fail.
#[test]
#[should_panic(expected = "the next holder of node 1")]
fn without_a_version_threads_mint_under_a_number_that_was_given_back() {
    move_beside_a_caller(|_, _| true);
}

/// Two threads attach after a fork: the second finds the generator attached, as it asks within the change.
#[test]
fn of_threads_that_attach_together_one_resets_the_state() {
    bounded(|| {
        let generator = Arc::new(WithNode::new());
        generator.is_open.store(0, Ordering::Release);
        let attach_and_mint = |generator: &WithNode| {
            generator.version.change(|| {
                if generator.is_open.load(Ordering::Acquire) == 0 {
                    generator.mint.reset(WINDOW);
                    generator.is_open.store(1, Ordering::Release);
                }
            });
            generator.mint(Version::is_still)
        };
        let other = {
            let generator = Arc::clone(&generator);
            thread::spawn(move || attach_and_mint(&generator))
        };
        let own = attach_and_mint(&generator);
        let minted = [own, other.join().unwrap()].into_iter().flatten().collect();
        assert_no_id_twice(&[minted]);
    });
}

#[test]
fn readers_see_the_random_bits_of_one_key() {
    const KEYS: [[u8; 16]; 2] = [[1; 16], [2; 16]];
    bounded(|| {
        let shared = Arc::new(SharedPrf::new(KEYS[0]));
        let expected: Vec<_> = KEYS.iter().map(|key| Prf::new(*key).bits(7)).collect();
        let reading = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || shared.bits(Tick(7)))
        };
        shared.set_key(KEYS[1]);
        assert_eq!(shared.bits(Tick(7)), expected[1]);
        let bits = reading.join().unwrap();
        assert!(expected.contains(&bits), "the bits of no key: {bits:x}");
    });
}
