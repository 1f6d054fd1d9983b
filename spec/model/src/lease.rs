//! The lease protocol of mintage: one node number of one pool, as a model whose every state can be visited.
//!
//! It describes `src/mintage/lease.py`; `docs/explanation/lease-model.md` explains it.
//!
//! | here                         | in the code                                                                     |
//! |------------------------------|---------------------------------------------------------------------------------|
//! | [`Pool`], [`Node`]           | `PoolRecord`, `NodeRecord`                                                      |
//! | [`Holder`]                   | the `Lease` that a process knows, and the generator that mints within it        |
//! | [`SPAN`], [`CLOCK_LIMIT`]    | `span_ms` of the pool, `CLOCK_LIMIT_MS`                                         |
//! | `note_server`                | `note_server`                                                                   |
//! | `acquire`                    | `check_clock`, `check_quarantine`, `choose`, `grant`                            |
//! | `extend`, `release`          | `check_clock` and `extend`; `release`                                           |
//!
//! What happens around it, and what must be true of it, is in `world.rs`.

use std::ops::{Range, RangeInclusive};

use crate::rules::Rule;

pub type Time = i8;

pub const SPAN: Time = 2;
pub const CLOCK_LIMIT: Time = 1;
/// How many writes a failover loses at most.
pub const LOST: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pool {
    pub identity: u8,
    pub span: Time,
    pub floor: Time,
    pub quarantine_until: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub until: Time,
    pub token: Option<usize>,
    pub identity: u8,
}

/// A process that was told of its grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    pub floor: Time,
    pub until: Time,
    /// Set once it mints no more: it minted nothing from here on, and its release says so.
    pub used_until: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub store_now: Time,
    pub identity: u8,
    pub failovers: u8,
    pub pool: Pool,
    pub node: Node,
    /// What the store kept before each of its last writes, newest last.
    pub past: Vec<(Pool, Node)>,
    /// By token; `None` where the reply was lost.
    pub holders: Vec<Option<Holder>>,
}

impl State {
    pub fn write(&mut self, pool: Pool, node: Node) {
        if (pool, node) != (self.pool, self.node) {
            self.past.push((self.pool, self.node));
            self.past.drain(..self.past.len().saturating_sub(LOST));
            (self.pool, self.node) = (pool, node);
        }
    }

    pub fn holder(&mut self, token: usize) -> &mut Holder {
        self.holders[token].as_mut().expect("only holders act")
    }
}

/// The protocol, without one of its rules or with all, and the bounds of the search.
#[derive(Clone, Copy)]
pub struct Protocol {
    pub without: Option<Rule>,
    pub grants: usize,
    pub failovers: u8,
    pub end: Time,
}

impl Protocol {
    pub fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    pub fn spans(&self) -> RangeInclusive<Time> {
        if self.keeps(Rule::FixedSpan) { SPAN..=SPAN } else { 1..=SPAN }
    }

    /// The times that a holder may have minted or may yet mint.
    pub fn may_mint(&self, holder: &Holder) -> Range<Time> {
        let start = if self.keeps(Rule::Floor) { holder.floor } else { 0 };
        let until = if self.keeps(Rule::Fence) { holder.until } else { Time::MAX };
        start..holder.used_until.unwrap_or(until)
    }

    /// The pool as it stands on this server.
    fn note_server(&self, state: &State) -> Pool {
        let mut pool = state.pool;
        if pool.identity != state.identity {
            let end = state.store_now + pool.span + CLOCK_LIMIT;
            pool.identity = state.identity;
            pool.floor = if self.keeps(Rule::QuarantineFloor) { pool.floor.max(end) } else { pool.floor };
            pool.quarantine_until = if self.keeps(Rule::QuarantineWait) { end.max(pool.quarantine_until) } else { 0 };
        }
        pool
    }

    pub fn acquire(&self, state: &mut State, now: Time, span: Time, told: bool, kept: bool) {
        let mut pool = self.note_server(state);
        let node = state.node;
        if state.store_now < pool.quarantine_until || now < node.until {
            // Refused. That the server changed is recorded all the same, or the quarantine would never end.
            return state.write(pool, node);
        }
        let floor = node.until.max(pool.floor);
        let until = floor.max(now) + span;
        let token = state.holders.len();
        pool.span = pool.span.max(span);
        if kept {
            state.write(pool, Node { until, token: Some(token), identity: state.identity });
        }
        state.holders.push(told.then_some(Holder { floor, until, used_until: None }));
    }

    pub fn extend(&self, state: &mut State, token: usize, now: Time, told: bool, kept: bool) {
        let lease = *state.holder(token);
        let mut node = state.node;
        if self.keeps(Rule::Token) && node.token != Some(token) {
            return;
        }
        // If the number had been granted to another, some clock near the store's had reached the end of this window.
        let unbroken = lease.until > state.store_now + CLOCK_LIMIT;
        if self.keeps(Rule::Continuity) && node.identity != state.identity && !unbroken {
            return;
        }
        let last = if self.keeps(Rule::Forward) { lease.until.max(node.until) } else { 0 };
        node.until = last.max(now + SPAN);
        node.identity = state.identity;
        if kept {
            state.write(state.pool, node);
        }
        if told && lease.used_until.is_none() {
            state.holder(token).until = lease.until.max(node.until);
        }
    }

    pub fn release(&self, state: &mut State, token: usize) {
        let lease = *state.holder(token);
        let mut node = state.node;
        if node.token == Some(token) {
            let used_until = if self.keeps(Rule::Release) { lease.used_until } else { Some(lease.floor) };
            node.until = used_until.expect("it stopped").min(node.until);
            node.token = None;
            state.write(state.pool, node);
        }
    }
}
