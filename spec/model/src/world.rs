//! The events around the protocol, and the properties that must hold under all of them.
//!
//! A process has no clock in the model: every reading may have any value. That covers steps, jumps, freezes and pauses.
//! It is also the reason why minting is no action: a holder may mint any time of its window, in any order, so two
//! holders can mint the same time exactly if the times that they may mint overlap. No process dies: a dead process does
//! nothing more, as any process may do, and a restarted one remembers nothing, so it is a new one.

use stateright::{Model, Property};

use crate::lease::{CLOCK_LIMIT, Holder, NEVER_GRANTED, Pool, Protocol, Request, SPAN, State, Time};
use crate::rules::Rule;

pub const UNIQUE: &str =
    "no time can be minted twice, but by copies of a holder what they had or had asked for in common";
const BOUNDED: &str = "no window ends later than a span and the clock limit from now";

/// The fate of a request: it is lost; it takes effect and the reply is lost; the reply arrives as well; or the reply
/// arrives, but the write vanishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Lost,
    Untold,
    Told,
    Vanished,
}

/// An event. `now` is the reading of the caller's clock, `at` an index of the holders. `Again`: an answered extension,
/// sent when the window ended at `until`, reaches the store once more. `Stop`: a generator closes and sends its
/// release, which reaches the store at any later time, more than once, or never. `Clone`: a process is copied.
/// `Failover`: another server, which never saw the last writes, takes over; its clock is `back` behind. `Lose`: the server
/// loses all records, and somebody creates the pool again; it counts as a failover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Tick,
    Acquire { now: Time, span: Time, fate: Fate },
    Extend { at: usize, now: Time, fate: Fate },
    Again { at: usize, now: Time, until: Time },
    Stop { at: usize, used_until: Time },
    Release { at: usize },
    Clone { at: usize },
    Failover { lost: usize, back: Time, identity: u8 },
    Lose,
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let pool = Pool { identity: 0, changes: 0, span: *self.spans().start(), floor: 0, quarantine_until: 0 };
        vec![State {
            store_now: 0,
            identity: 0,
            failovers: 0,
            copies: 0,
            grants: 0,
            pool,
            node: NEVER_GRANTED,
            past: vec![],
            holders: vec![],
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.store_now < self.end {
            actions.push(Action::Tick);
        }
        let limit = if self.keeps(Rule::ClockLimit) { CLOCK_LIMIT } else { CLOCK_LIMIT + SPAN };
        let clocks = state.store_now - limit..=state.store_now + limit;
        let fates = || {
            let vanished = (!self.keeps(Rule::Durable)).then_some(Fate::Vanished);
            [Fate::Told, Fate::Untold].into_iter().chain(vanished)
        };
        if state.grants < self.grants {
            for span in self.spans() {
                let what = |fate| clocks.clone().map(move |now| Action::Acquire { now, span, fate });
                actions.extend(fates().flat_map(what));
            }
        }
        for (at, holder) in state.holders.iter().enumerate() {
            if holder.previous.is_some() && state.node.token == holder.previous {
                let what = |until| clocks.clone().map(move |now| Action::Again { at, now, until });
                actions.extend((holder.floor..=holder.until).flat_map(what));
            }
            if holder.used_until.is_some() {
                // A request may reach the store long after it was sent.
                actions.extend(clocks.clone().map(|now| Action::Extend { at, now, fate: Fate::Untold }));
                actions.push(Action::Release { at });
                continue;
            }
            let what = |fate| clocks.clone().map(move |now| Action::Extend { at, now, fate });
            actions.extend(fates().flat_map(what));
            // A release without its token in a record has no effect, so it does not matter where it stops.
            if state.is_recorded(holder.token) {
                actions.extend((holder.floor..=holder.until).map(|used_until| Action::Stop { at, used_until }));
            }
            if state.copies < self.copies {
                actions.push(Action::Clone { at });
                if holder.asked.is_none() {
                    actions.push(Action::Extend { at, now: state.store_now, fate: Fate::Lost });
                }
            }
        }
        if state.failovers < self.failovers {
            actions.push(Action::Lose);
            for lost in 0..=state.past.len() {
                for identity in self.may_take_over(state, lost) {
                    let backs = if self.keeps(Rule::SteadyClock) { 0..=0 } else { 0..=1 };
                    actions.extend(backs.map(|back| Action::Failover { lost, back, identity }));
                }
            }
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Tick => state.store_now += 1,
            Action::Acquire { now, span, fate } => {
                self.acquire(&mut state, now, span, fate != Fate::Untold, fate != Fate::Vanished);
            }
            Action::Extend { at, now, fate } => self.ask(&mut state, at, now, fate),
            Action::Again { at, now, until } => {
                let holder = state.holders[at];
                let token = holder.previous.expect("it was extended");
                let request = Request { token, previous: None, until, next: holder.token };
                self.extend(&mut state, request, now, true);
            }
            Action::Stop { at, used_until } => state.holders[at].used_until = Some(used_until),
            Action::Release { at } => {
                let holder = state.holders[at];
                self.release(&mut state, &holder);
            }
            Action::Clone { at } => {
                let one = &mut state.holders[at];
                (one.shared_until, one.asked_together) = (one.until, one.asked.is_some());
                let other = *one;
                state.holders.insert(at + 1, other);
                state.copies += 1;
            }
            Action::Failover { lost, back, identity } => {
                let kept = state.past.len() - lost;
                (state.pool, state.node) = state.past.drain(kept..).next().unwrap_or((state.pool, state.node));
                (state.store_now, state.identity) = (state.store_now - back, identity);
                state.failovers += 1;
            }
            Action::Lose => {
                (state.pool, state.node) = self.new_records(&state);
                state.past.clear();
                state.failovers += 1;
            }
        }
        if state.failovers == self.failovers {
            state.past.clear(); // no later failover loses a write
        }
        if self.keeps(Rule::FreshToken) {
            state.simplify();
        }
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(UNIQUE, |model: &Self, state: &State| {
                let pairs = |one: usize| (0..one).map(move |other| (one, other));
                (0..state.holders.len()).flat_map(pairs).all(|(one, other)| {
                    let [one, other] = [&state.holders[one], &state.holders[other]];
                    !model.collide(state, one, other) && !model.collide(state, other, one)
                })
            }),
            Property::always(BOUNDED, |_: &Self, state: &State| {
                state.holders.iter().all(|holder| holder.until <= state.store_now + CLOCK_LIMIT + SPAN)
            }),
        ];
        if self.grants > 1 {
            properties.push(Property::sometimes("granted again after a crash", |_: &Self, state: &State| {
                let is_again = state.node.token.is_some_and(|token| token.grant == 1);
                is_again && state.holders.iter().any(|one| one.token.grant == 0 && one.used_until.is_none())
            }));
        }
        if self.failovers > 0 {
            properties.push(Property::sometimes("extended on a new server", |_: &Self, state: &State| {
                state.node.token.is_some_and(|token| token.grant == 0) && state.node.changes > 0 && state.grants == 1
            }));
        }
        if self.failovers > 0 && self.grants > 1 {
            properties.push(Property::sometimes("granted again on a new server", |model: &Self, state: &State| {
                state.node.changes == model.failovers && state.holders.iter().any(|one| one.token.grant > 0)
            }));
        }
        if self.failovers > 1 {
            properties.push(Property::sometimes("extended on a server that came back", |_: &Self, state: &State| {
                let is_extended = state.node.token.is_some_and(|token| token.grant == 0) && state.grants == 1;
                is_extended && state.identity == 0 && state.node.changes == 2
            }));
        }
        if self.copies > 0 {
            properties.push(Property::sometimes("a copy goes on, and another does not", |_: &Self, state: &State| {
                let went_on = state.holders.iter().filter(|one| one.went_on());
                state.copies > 0 && went_on.count() == 1
            }));
        }
        properties
    }
}

impl Holder {
    /// Returns whether it mints times of its own, after those that it shares with its copies.
    fn went_on(&self) -> bool {
        self.shared_until > self.floor && self.used_until.unwrap_or(self.until) > self.shared_until
    }
}

impl Protocol {
    /// Sends a request of a holder, or repeats the one whose answer it does not know.
    fn ask(&self, state: &mut State, at: usize, now: Time, fate: Fate) {
        let holder = state.holders[at];
        let mut fresh = state.fresh_token(holder.token.grant);
        if !self.keeps(Rule::FreshToken) {
            fresh.serial = holder.token.serial + 1;
        }
        let next = holder.asked.unwrap_or(fresh);
        let request = Request { token: holder.token, previous: holder.previous, until: holder.until, next };
        let until = match fate {
            Fate::Lost => None,
            _ => self.extend(state, request, now, fate != Fate::Vanished),
        };
        if holder.used_until.is_some() {
            return;
        }
        let one = &mut state.holders[at];
        match (fate, until) {
            (Fate::Lost | Fate::Untold, _) => one.asked = Some(next),
            (_, Some(until)) => {
                one.until = one.until.max(until);
                one.asked = None;
                if self.keeps(Rule::TokenMoves) {
                    (one.token, one.previous) = (next, Some(holder.token));
                }
                if one.asked_together {
                    one.shared_until = one.until;
                }
                one.asked_together = false;
            }
            (_, None) => {}
        }
    }

    /// Returns whether one holder may mint a time that belongs to another alone. The windows granted to a copy after
    /// the copying are its own; those of other holders are theirs entirely. Times that copies share may be granted
    /// again once a copy has released them.
    fn collide(&self, state: &State, one: &Holder, other: &Holder) -> bool {
        let [mut its, mut others] = [self.may_mint(one), self.may_mint(other)];
        if one.token.grant == other.token.grant {
            its.start = its.start.max(one.shared_until);
        } else {
            for (times, holder) in [(&mut its, one), (&mut others, other)] {
                let copies = || state.holders.iter().filter(|copy| copy.token.grant == holder.token.grant);
                if copies().count() > 1 && copies().any(|copy| copy.used_until.is_some()) {
                    times.start = times.start.max(holder.shared_until);
                }
            }
        }
        its.start.max(others.start) < its.end.min(others.end)
    }

    /// Returns the identities of the servers that may take over and forget this number of writes.
    fn may_take_over(&self, state: &State, lost: usize) -> impl Iterator<Item = u8> + use<> {
        let next = state.failovers + 1;
        let kept = state.past.len() - lost;
        let (pool, node) = *state.past.get(kept).unwrap_or(&(state.pool, state.node));
        let has_seen = pool.identity == state.identity || node.identity == state.identity;
        let comes_back = has_seen || !self.keeps(Rule::SeenWrite);
        let (keeps_identity, current) = (self.keeps(Rule::FreshIdentity), state.identity);
        let is_kept = !self.keeps(Rule::KeptClone) || !forgets_a_copy(state, kept);
        let known = move |&identity: &u8| if identity == current { !keeps_identity } else { comes_back };
        (0..next).filter(known).chain([next]).filter(move |_| is_kept)
    }
}

/// Returns whether a failover to the kept records forgets an action of a copy of a holder that not all copies know.
fn forgets_a_copy(state: &State, kept: usize) -> bool {
    let mut tokens = state.past.iter().map(|(_, node)| node.token).chain([state.node.token]).skip(kept);
    let Some(last) = tokens.next().flatten() else { return false };
    let copies = || state.holders.iter().filter(|one| one.token.grant == last.grant);
    tokens.any(|token| copies().count() > 1 && token != Some(last) && copies().any(|one| token != Some(one.token)))
}
