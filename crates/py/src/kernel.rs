//! The kernel's part: the detection of forks, randomness that no copy of the process shares, a word that all forked copies
//! share, and the time, even if a test replaces Python's functions.

#![allow(unsafe_code)]

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Holds the generation if no page can be had.
static PLAIN: AtomicU64 = AtomicU64::new(0);

/// Points to the word that holds the generation, or 0. Never changed after the module is imported.
static GENERATION: AtomicPtr<AtomicU64> = AtomicPtr::new((&raw const PLAIN).cast_mut());

/// The word that holds the generation of this process, and 0 in a process that was forked since, by whatever means.
#[inline(always)]
pub fn generation_word() -> &'static AtomicU64 {
    // SAFETY: it points to a static or to the page of `watch_forks`, which is never unmapped.
    unsafe { &*GENERATION.load(Ordering::Relaxed) }
}

/// Returns true if the kernel empties the word at a fork; otherwise only the C library's `fork` does.
pub fn is_wiped() -> bool {
    !std::ptr::eq(generation_word(), &raw const PLAIN)
}

/// Detects forks of every kind. Handlers alone would miss a raw `clone(2)`, and Python's own any fork in C.
#[cfg(unix)]
pub fn watch_forks() -> io::Result<()> {
    extern "C" fn in_child() {
        generation_word().store(0, Ordering::Release);
    }
    #[cfg(target_os = "linux")]
    // SAFETY: the page is new and zero, its word aligned; it is handed out whole and stays for ever. A kernel that cannot
    // wipe it gets it back at once.
    unsafe {
        let size = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let page = libc::mmap(std::ptr::null_mut(), size, access, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
        if page != libc::MAP_FAILED {
            if libc::madvise(page, size, libc::MADV_WIPEONFORK) == 0 {
                GENERATION.store(page.cast(), Ordering::Release);
            } else {
                libc::munmap(page, size);
            }
        }
    }
    // SAFETY: the handler does nothing but store an atomic number, and extensions are never unloaded.
    match unsafe { libc::pthread_atfork(None, None, Some(in_child)) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

#[cfg(not(unix))]
pub fn watch_forks() -> io::Result<()> {
    Ok(())
}

/// Holds the shared word if no page can be had: then each process has its own.
static ALONE: AtomicU64 = AtomicU64::new(0);

/// Points to the shared word. Never changed after the module is imported.
static SHARED: AtomicPtr<AtomicU64> = AtomicPtr::new((&raw const ALONE).cast_mut());

/// A word, 0 at first, that is the same one in every process that was forked from this one since the module was imported.
pub fn shared_word() -> &'static AtomicU64 {
    // SAFETY: it points to a static or to the page of `share_word`, which is never unmapped.
    unsafe { &*SHARED.load(Ordering::Relaxed) }
}

/// Puts the shared word where forks share it.
pub fn share_word() {
    #[cfg(unix)]
    // SAFETY: the page is new and zero, its word aligned and only ever used as an atomic; it is handed out whole and stays for
    // ever.
    unsafe {
        let size = libc::sysconf(libc::_SC_PAGESIZE) as usize;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let page = libc::mmap(std::ptr::null_mut(), size, access, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1, 0);
        if page != libc::MAP_FAILED {
            SHARED.store(page.cast(), Ordering::Release);
        }
    }
}

/// One of the kernel's clocks, in nanoseconds; 0 if it has none of this number.
#[cfg(unix)]
#[allow(clippy::useless_conversion, reason = "the fields are 32 bits long where the processor is")]
fn clock_ns(number: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes to a place of the right type.
    let result = unsafe { libc::clock_gettime(number, &raw mut time) };
    if result == 0 { i64::from(time.tv_sec) * 1_000_000_000 + i64::from(time.tv_nsec) } else { 0 }
}

/// Real time, the time that never goes back, the same with the time that the machine slept (0 if the kernel does not count
/// that), and how long the reading took.
#[cfg(unix)]
pub fn clocks() -> [i64; 4] {
    let begin = clock_ns(libc::CLOCK_MONOTONIC);
    let real = clock_ns(libc::CLOCK_REALTIME);
    #[cfg(target_os = "linux")]
    let boot = clock_ns(libc::CLOCK_BOOTTIME);
    #[cfg(not(target_os = "linux"))]
    let boot = 0;
    [real, begin, boot, clock_ns(libc::CLOCK_MONOTONIC) - begin]
}

#[cfg(not(unix))]
pub fn clocks() -> [i64; 4] {
    use std::sync::LazyLock;
    use std::time::{Instant, SystemTime, UNIX_EPOCH};

    /// Windows shows this clock by differences alone; it counts from its first reading.
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let monotonic_ns = || START.elapsed().as_nanos() as i64;
    let begin = monotonic_ns();
    let real = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    [real.as_nanos() as i64, begin, 0, monotonic_ns() - begin]
}

/// The time that never goes back, in seconds, for waits and deadlines.
pub fn monotonic_s() -> f64 {
    clocks()[1] as f64 / 1e9
}

/// The time at which the file at `path` was created, in nanoseconds since the Unix epoch; `None` if its file system or the
/// kernel does not tell. Writes do not change it, and a copy of the file has its own.
///
/// Asks by path: to open an SQLite file and close it again would end the locks that this process has on it.
pub fn created_ns(path: &Path) -> Option<i64> {
    let made = std::fs::metadata(path).ok()?.created().ok()?;
    i64::try_from(made.duration_since(std::time::UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// Fills `bytes` with random bits that the kernel draws now.
///
/// Does not use the C library's `getrandom`: the state of its generator is in this process's memory, and a copy of the process
/// that was made by a snapshot would draw the same.
#[cfg(target_os = "linux")]
pub fn random(mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        // SAFETY: the kernel writes at most `len` bytes at the start of the slice.
        let drawn = unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0) };
        match usize::try_from(drawn) {
            Ok(drawn) => bytes = &mut bytes[drawn..],
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
pub fn random(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(|error| io::Error::other(error.to_string()))
}
