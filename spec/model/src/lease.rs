//! A model of mintage's lease protocol, for one node number of one pool. A program can visit all of its states.
//!
//! It describes `src/mintage/rules.py`; `docs/explanation/lease-model.md` explains it.
//!
//! | here                         | in the code                                                                     |
//! |------------------------------|---------------------------------------------------------------------------------|
//! | [`Pool`], [`Node`]           | `PoolRecord`, `NodeRecord`                                                      |
//! | [`Holder`]                   | the `Lease` of a process, and the generator that mints within it                |
//! | [`Request`]                  | the message of `extend`: the lease, and `next_token`                            |
//! | [`SPAN`], [`CLOCK_LIMIT`]    | `span_ms` of the pool, `CLOCK_LIMIT_MS`                                         |
//! | `note_server`, `new_records` | `note_server`, `create_pool`                                                    |
//! | `acquire`                    | `check_clock`, `check_quarantine`, `choose`, `grant`                            |
//! | `extend`, `release`          | `check_clock` and `extend`; `release`                                           |
//!
//! `world.rs` has the events around the protocol and its properties.

use std::cmp::Reverse;
use std::ops::{Range, RangeInclusive};

use crate::rules::Rule;

pub type Time = i8;

pub const SPAN: Time = 2;
pub const CLOCK_LIMIT: Time = 1;
/// The most writes that a failover loses.
pub const LOST: usize = 2;

/// A token: each grant has one, and each of its extensions another. Only the equality of tokens counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    pub grant: u8,
    pub serial: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pool {
    pub identity: u8,
    /// The number of changes of the server that the pool noted.
    pub changes: u8,
    pub span: Time,
    pub floor: Time,
    pub quarantine_until: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    pub until: Time,
    pub token: Option<Token>,
    pub identity: u8,
    /// The number of the pool's changes when the window was granted or extended.
    pub changes: u8,
}

pub const NEVER_GRANTED: Node = Node { until: 0, token: None, identity: 0, changes: 0 };

/// A process that received its grant, or a copy of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holder {
    pub floor: Time,
    pub until: Time,
    pub token: Token,
    /// The token before. A server that forgot the last extension knows this one only.
    pub previous: Option<Token>,
    /// The proposed next token, while its answer is unknown.
    pub asked: Option<Token>,
    /// The end of the used times, once the holder mints no more. Its release reports it.
    pub used_until: Option<Time>,
    /// The end of the window that it had, or had requested, when it was copied. The protocol does not know it.
    pub shared_until: Time,
    /// True if the pending request was sent before the holder was copied.
    pub asked_together: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub token: Token,
    pub previous: Option<Token>,
    pub until: Time,
    pub next: Token,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State {
    pub store_now: Time,
    pub identity: u8,
    pub failovers: u8,
    pub copies: u8,
    pub grants: u8,
    pub pool: Pool,
    pub node: Node,
    /// The records before each of the store's last writes, newest last.
    pub past: Vec<(Pool, Node)>,
    /// The processes that received their grant.
    pub holders: Vec<Holder>,
}

impl State {
    pub fn write(&mut self, pool: Pool, node: Node) {
        if (pool, node) != (self.pool, self.node) {
            self.past.push((self.pool, self.node));
            self.past.drain(..self.past.len().saturating_sub(LOST));
            (self.pool, self.node) = (pool, node);
        }
    }

    /// Iterates over all tokens of the state, in a fixed order.
    fn tokens(&mut self) -> impl Iterator<Item = &mut Token> {
        let holders = self.holders.iter_mut();
        let held = holders.flat_map(|one| [Some(&mut one.token), one.previous.as_mut(), one.asked.as_mut()]);
        let kept = self.past.iter_mut().map(|(_, node)| node.token.as_mut());
        held.chain([self.node.token.as_mut()]).chain(kept).flatten()
    }

    /// Returns whether a record has the token, or had it before the last writes.
    pub fn is_recorded(&self, token: Token) -> bool {
        self.past.iter().map(|(_, node)| node).chain([&self.node]).any(|node| node.token == Some(token))
    }

    /// Returns a token that occurs nowhere.
    pub fn fresh_token(&mut self, grant: u8) -> Token {
        let last = self.tokens().filter(|token| token.grant == grant).map(|token| token.serial).max();
        Token { grant, serial: last.map_or(0, |serial| serial + 1) }
    }

    /// Drops tokens that no record can match, and renumbers the others, so that equivalent states are equal.
    pub fn simplify(&mut self) {
        let all: Vec<Token> = self.tokens().map(|token| *token).collect();
        let is_elsewhere = |token: &Token| all.iter().filter(|&one| one == token).count() > 1;
        for holder in &mut self.holders {
            holder.previous = holder.previous.filter(is_elsewhere);
            holder.asked = holder.asked.filter(is_elsewhere);
            holder.asked_together &= holder.asked.is_some();
        }
        self.holders.sort_by_key(|one| {
            (
                one.token.grant,
                Reverse(one.until),
                one.used_until,
                one.shared_until,
                one.asked.is_some(),
                one.asked_together,
            )
        });
        let mut known: Vec<Token> = vec![];
        for token in self.tokens() {
            let serial = known.iter().position(|one| one == token).unwrap_or_else(|| {
                known.push(*token);
                known.len() - 1
            });
            token.serial = serial as u8;
        }
    }
}

/// The protocol, with all rules or without one, and the bounds of the search.
#[derive(Clone, Copy)]
pub struct Protocol {
    pub without: Option<Rule>,
    pub grants: u8,
    pub failovers: u8,
    pub copies: u8,
    pub end: Time,
}

impl Protocol {
    pub fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    pub fn spans(&self) -> RangeInclusive<Time> {
        if self.keeps(Rule::FixedSpan) { SPAN..=SPAN } else { 1..=SPAN }
    }

    /// Returns the times that a holder may have minted or may still mint.
    pub fn may_mint(&self, holder: &Holder) -> Range<Time> {
        let start = if self.keeps(Rule::Floor) { holder.floor } else { 0 };
        let until = if self.keeps(Rule::Fence) { holder.until } else { Time::MAX };
        start..holder.used_until.unwrap_or(until)
    }

    /// Returns the pool's record after noting this server.
    fn note_server(&self, state: &State) -> Pool {
        let mut pool = state.pool;
        if pool.identity != state.identity {
            let end = state.store_now + pool.span + CLOCK_LIMIT;
            pool.identity = state.identity;
            pool.changes += 1;
            pool.floor = if self.keeps(Rule::QuarantineFloor) { pool.floor.max(end) } else { pool.floor };
            pool.quarantine_until = if self.keeps(Rule::QuarantineWait) { end.max(pool.quarantine_until) } else { 0 };
        }
        pool
    }

    /// Returns the records of a pool that is created where it may have been lost.
    pub fn new_records(&self, state: &State) -> (Pool, Node) {
        let end = if self.keeps(Rule::QuarantineNew) { state.store_now + state.pool.span + CLOCK_LIMIT } else { 0 };
        let pool = Pool { identity: state.identity, changes: 0, floor: end, quarantine_until: end, ..state.pool };
        (pool, NEVER_GRANTED)
    }

    pub fn acquire(&self, state: &mut State, now: Time, span: Time, told: bool, kept: bool) {
        let mut pool = self.note_server(state);
        let node = state.node;
        if state.store_now < pool.quarantine_until || now < node.until {
            // Refused. Record the change of the server all the same, or the quarantine would never end.
            return state.write(pool, node);
        }
        let floor = node.until.max(pool.floor);
        let until = floor.max(now) + span;
        let token = Token { grant: state.grants, serial: 0 };
        pool.span = pool.span.max(span);
        if kept {
            let node = Node { until, token: Some(token), identity: state.identity, changes: pool.changes };
            state.write(pool, node);
        }
        state.grants += 1;
        if told {
            state.holders.push(Holder {
                floor,
                until,
                token,
                previous: None,
                asked: None,
                used_until: None,
                shared_until: 0,
                asked_together: false,
            });
        }
    }

    /// Applies a request to the store; returns the end of the window, or `None` if the store refuses.
    pub fn extend(&self, state: &mut State, request: Request, now: Time, kept: bool) -> Option<Time> {
        let pool = if self.keeps(Rule::NoteInExtend) { self.note_server(state) } else { state.pool };
        let mut node = state.node;
        let is_again = node.token == Some(request.next);
        if is_again && self.keeps(Rule::AnswerAgain) {
            return Some(node.until);
        }
        let is_counted = self.keeps(Rule::CountServers);
        let is_elsewhere = node.identity != state.identity || (is_counted && node.changes != pool.changes);
        let is_known = node.token == Some(request.token)
            || (is_elsewhere && request.previous.is_some() && node.token == request.previous)
            || (!self.keeps(Rule::LastToken) && node.token.is_some_and(|token| token.grant == request.token.grant));
        if self.keeps(Rule::Token) && !is_known && !is_again {
            return None;
        }
        // If the store had granted the number to another holder, a clock near its own had reached the end of this
        // window.
        let unbroken = request.until > state.store_now + CLOCK_LIMIT;
        if self.keeps(Rule::Continuity) && is_elsewhere && !unbroken {
            return None;
        }
        let last = if self.keeps(Rule::Forward) { request.until.max(node.until) } else { 0 };
        node.until = last.max(now + SPAN);
        node.identity = state.identity;
        node.changes = pool.changes;
        node.token = Some(if self.keeps(Rule::TokenMoves) { request.next } else { request.token });
        if kept {
            state.write(pool, node);
        }
        Some(node.until)
    }

    pub fn release(&self, state: &mut State, holder: &Holder) {
        let mut node = state.node;
        if node.token == Some(holder.token) {
            let used_until = if self.keeps(Rule::Release) { holder.used_until } else { Some(holder.floor) };
            node.until = used_until.expect("it stopped").min(node.until);
            node.token = None;
            state.write(state.pool, node);
        }
    }
}
