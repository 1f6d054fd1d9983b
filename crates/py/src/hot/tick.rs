//! The cached tick: the present millisecond, kept behind the processor's cycle counter.

use mintage_core::units::UnixMs;
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The largest age of a cached millisecond.
///
/// A cached millisecond ends at the next one anyway. So it is wrong only after the clock was set, and for this long at
/// most. The documented bound is 50 µs, which leaves room for the error of the calibration.
const MAX_AGE_NS: u64 = 40_000;

#[derive(Clone, Copy)]
struct Cached {
    /// Cycle counter when the clock was read.
    since: u64,
    /// The number of cycles for which the reading is valid.
    cycles: u64,
    ms: i64,
}

thread_local! {
    static TICK: Cell<Cached> = const { Cell::new(Cached { since: 0, cycles: 0, ms: 0 }) };
}

/// The present millisecond, from the cache if that is younger than 50 µs.
#[inline(always)]
pub fn now() -> UnixMs {
    let cycles = cycles();
    let cached = TICK.get();
    // A counter that went back, on another core or after a restore, is far ahead in wrapping arithmetic.
    if cycles.wrapping_sub(cached.since) < cached.cycles { UnixMs(cached.ms) } else { read_clock(cycles) }
}

/// Makes the next [`now`] read the clock.
pub fn forget_tick() {
    TICK.set(Cached { since: 0, cycles: 0, ms: 0 });
}

#[cold]
#[inline(never)]
fn read_clock(since: u64) -> UnixMs {
    let Ok(now) = SystemTime::now().duration_since(UNIX_EPOCH) else { return UnixMs(-1) };
    let ms = now.as_millis() as i64;
    let left_ns = 1_000_000 - u64::from(now.subsec_nanos() % 1_000_000);
    // The counter was read before the clock, so the age counts from before the reading.
    let cycles = (u128::from(left_ns.min(MAX_AGE_NS)) * u128::from(cycles_per_second()) / 1_000_000_000) as u64;
    TICK.set(Cached { since, cycles, ms });
    UnixMs(ms)
}

/// Cycles a second, measured over the first milliseconds of use; 0, so that nothing is cached, before that and if the
/// counter may change its speed.
fn cycles_per_second() -> u64 {
    static RATE: AtomicU64 = AtomicU64::new(0);
    static START: OnceLock<Option<(u64, Instant)>> = OnceLock::new();
    const ENOUGH: Duration = Duration::from_millis(2);

    let rate = RATE.load(Ordering::Relaxed);
    if rate != 0 {
        return rate;
    }
    let Some((cycles, instant)) = *START.get_or_init(|| counter_is_steady().then(steady_pair)) else { return 0 };
    if instant.elapsed() < ENOUGH {
        return 0;
    }
    let (cycles_now, instant_now) = steady_pair();
    let ns = instant_now.duration_since(instant).as_nanos().max(1);
    let rate = u128::from(cycles_now.wrapping_sub(cycles)) * 1_000_000_000 / ns;
    RATE.store(rate as u64, Ordering::Relaxed);
    rate as u64
}

/// Cycle counter and time of one moment: the closest of a few readings, so that a preemption does not disturb it.
fn steady_pair() -> (u64, Instant) {
    let read = || {
        let before = cycles();
        let instant = Instant::now();
        (cycles().wrapping_sub(before), before, instant)
    };
    let closest = [read(), read(), read(), read()].into_iter().min_by_key(|&(gap, ..)| gap);
    closest.map_or_else(|| (cycles(), Instant::now()), |(_, cycles, instant)| (cycles, instant))
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has the counter, and no operating system that runs Python forbids it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Returns true if the processor promises a counter of constant rate that no sleep stops ("invariant TSC").
#[cfg(target_arch = "x86_64")]
fn counter_is_steady() -> bool {
    use std::arch::x86_64::__cpuid;
    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    #[allow(unused_unsafe, reason = "newer compilers call this instruction safe")]
    // SAFETY: every x86-64 processor has it.
    let cpuid = |leaf| unsafe { __cpuid(leaf) };
    cpuid(0x8000_0000).eax >= POWER_MANAGEMENT && cpuid(POWER_MANAGEMENT).edx & (1 << 8) != 0
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn cycles() -> u64 {
    let count: u64;
    // SAFETY: reads the virtual counter, which Linux and macOS let user programs read.
    unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
    count
}

#[cfg(target_arch = "aarch64")]
fn counter_is_steady() -> bool {
    true
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn cycles() -> u64 {
    0
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn counter_is_steady() -> bool {
    false
}

/// Facts for tests and benchmarks: cycles a second (0: nothing is cached) and the largest age in ns.
pub fn clock_facts() -> (u64, u64) {
    (cycles_per_second(), MAX_AGE_NS)
}
