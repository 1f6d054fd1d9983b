//! A tick and a counter within it: the state of every scheme that continues in its last tick when the clock goes back.

use crate::cell::Cell;
use crate::fence::Fence;
use crate::mint::Mint;
use crate::step::{Refusal, Run, Window};
use crate::sync::{AtomicU64, Ordering};
use crate::units::{Tick, Timescale};

/// The policy for a clock that goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRollback {
    /// Stay at the last tick and continue from there until the clock has caught up. IDs stay in order. A used-up tick
    /// blocks no longer than it would on a steady clock, or twice as long if the clock went back by one tick.
    Advance,
    /// Wait until the clock reads the last tick again.
    Wait,
    /// Refuse to mint.
    Raise,
}

/// The policy for a tick whose sequence numbers are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExhausted {
    /// Wait for the next tick.
    Wait,
    /// Continue in the next tick, ahead of the clock.
    Advance,
    /// Refuse to mint.
    Raise,
}

/// The rules of a generator.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Epoch and length of its ticks.
    pub scale: Timescale,
    /// The ticks of its layout.
    pub full_window: Window,
    /// Bits of the sequence number.
    pub sequence_bits: u32,
    /// The policy for a clock that goes back.
    pub on_rollback: OnRollback,
    /// The policy for a used-up tick.
    pub on_exhausted: OnExhausted,
}

/// The state that threads must agree on: `tick | next`. `next` is one bit wider than a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The highest tick minted in.
    pub tick: Tick,
    /// The next sequence number.
    pub next: u32,
}

/// Mints up to `want` IDs. Pure.
///
/// `lead` is the number of ticks by which the state was ahead of the clock at the last reading, after a rollback or an
/// advance. It distinguishes a clock that goes back from one that has not caught up yet, and it sets the pace: while
/// the clock is behind, a new tick begins whenever the clock moves on. Uniqueness does not depend on it, as the tick
/// never goes back. Returns the new lead and, if it minted, the next state and the run.
#[inline(always)]
pub fn step(
    state: State,
    lead: u64,
    now: Tick,
    want: u32,
    rules: &Rules,
    until: Tick,
) -> (u64, Result<(State, Run), Refusal>) {
    let mut at = if now > state.tick { State { tick: now, next: 0 } } else { state };
    let mut ahead = at.tick.0 - now.0;
    if ahead > lead && rules.on_rollback != OnRollback::Advance {
        return (lead, Err(Refusal::Rollback { until: Tick(at.tick.0 - lead) }));
    }
    let capacity = 1_u32 << rules.sequence_bits;
    if at.next >= capacity {
        let catching_up = 0 < ahead && ahead < lead;
        if rules.on_exhausted != OnExhausted::Advance && !catching_up {
            // A clock that is one tick behind reads the used-up tick itself when it moves on.
            let until = if ahead == 1 { now.0 + 2 } else { now.0 + 1 };
            return (ahead, Err(Refusal::Exhausted { until: Tick(until) }));
        }
        at = State { tick: Tick(at.tick.0 + 1), next: 0 };
        ahead += 1;
    }
    if at.tick >= until {
        return (ahead, Err(Refusal::Outside { tick: at.tick }));
    }
    let count = want.min(capacity - at.next);
    let run = Run { tick: at.tick.0, first: at.next, count };
    (ahead, Ok((State { tick: at.tick, next: at.next + count }, run)))
}

/// The state of a generator between calls.
#[derive(Debug)]
pub struct Counting {
    cell: Cell,
    lead: AtomicU64,
    fence: Fence,
    rules: Rules,
}

impl Counting {
    /// Returns the state of a generator that has minted nothing.
    #[must_use]
    pub fn new(rules: Rules, window: Window) -> Self {
        let mint = Self { cell: Cell::new(0), lead: AtomicU64::new(0), fence: Fence::new(window.until), rules };
        mint.reset(window);
        mint
    }

    /// Returns the rules.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    #[inline(always)]
    fn unpack(&self, word: u64) -> State {
        let bits = self.rules.sequence_bits + 1;
        State { tick: Tick(word >> bits), next: (word & ((1 << bits) - 1)) as u32 }
    }

    #[inline(always)]
    fn pack(&self, state: State) -> u64 {
        state.tick.0 << (self.rules.sequence_bits + 1) | u64::from(state.next)
    }

    fn used(state: State) -> Tick {
        Tick(state.tick.0 + u64::from(state.next > 0))
    }
}

impl Mint for Counting {
    #[inline(always)]
    fn scale(&self) -> Timescale {
        self.rules.scale
    }

    fn full_window(&self) -> Window {
        self.rules.full_window
    }

    #[inline(always)]
    fn take(&self, now: Tick, want: u32) -> Result<Run, Refusal> {
        let capacity = 1_u32 << self.rules.sequence_bits;
        self.cell.update(|word| {
            let state = self.unpack(word);
            let lead = self.lead.load(Ordering::Relaxed);
            let at = if lead == 0 && now == state.tick {
                state
            } else if lead == 0 && now > state.tick {
                State { tick: now, next: 0 }
            } else if now < state.tick && state.tick.0 - now.0 == lead {
                state
            } else {
                return Err(Refusal::Rollback { until: state.tick });
            };
            if at.next >= capacity {
                return Err(Refusal::Exhausted { until: Tick(at.tick.0 + 1) });
            }
            if at.tick >= self.fence.until() {
                return Err(Refusal::Outside { tick: at.tick });
            }
            let count = want.min(capacity - at.next);
            let run = Run { tick: at.tick.0, first: at.next, count };
            Ok((self.pack(State { tick: at.tick, next: at.next + count }), run))
        })
    }

    fn take_slow<E>(&self, want: u32, mut clock: impl FnMut() -> Result<Tick, E>) -> Result<Result<Run, Refusal>, E> {
        loop {
            let word = self.cell.load();
            let lead = self.lead.load(Ordering::Acquire);
            let now = clock()?;
            let (next_lead, minted) = step(self.unpack(word), lead, now, want, &self.rules, self.fence.until());
            // Publish a larger lead before the tick that needs it, and a smaller one after.
            if next_lead > lead {
                self.lead.fetch_max(next_lead, Ordering::AcqRel);
            }
            let (next, run) = match minted {
                Ok(minted) => minted,
                Err(refusal) => return Ok(Err(refusal)),
            };
            if self.cell.try_set(word, self.pack(next)) {
                if next_lead < lead {
                    let _ = self.lead.compare_exchange(lead, next_lead, Ordering::AcqRel, Ordering::Relaxed);
                }
                return Ok(Ok(run));
            }
        }
    }

    fn reset(&self, window: Window) {
        self.lead.store(0, Ordering::Release);
        self.fence.reset(window.until);
        self.cell.reset(|_| self.pack(State { tick: window.floor, next: 0 }));
    }

    fn extend(&self, until: Tick) -> bool {
        self.fence.extend(until)
    }

    fn close(&self) -> Tick {
        Self::used(self.unpack(self.cell.close()))
    }

    fn used_until(&self) -> Tick {
        Self::used(self.unpack(self.cell.load_in_order()))
    }
}
