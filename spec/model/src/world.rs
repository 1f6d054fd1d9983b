//! What may happen around the protocol, and what must be true of it all the same.
//!
//! No process has a clock here: when one is read, it may say anything. That covers steps, jumps, freezes and pauses, and
//! it is why minting is no action: a holder may mint any time of its window, in any order, so two holders can mint the
//! same time just when the times that they may mint overlap. No process dies: a dead one does nothing more, which every
//! process may do; and one that starts again remembers nothing, so it is a new one. A token is the number of its grant.

use stateright::{Model, Property};

use crate::lease::{CLOCK_LIMIT, Holder, Node, Pool, Protocol, SPAN, State, Time};
use crate::rules::Rule;

pub const UNIQUE: &str = "no time can be minted under two grants";
const BOUNDED: &str = "no window ends later than a span and the clock limit from now";

/// `now` is what the caller's clock says. `told`: the reply arrives; `kept`: the write does not vanish. With `Stop` a
/// generator closes and sends its release, which reaches the store at any later time, more than once, or never. With
/// `Failover` the store is another server, which never saw the last writes; `back` is how far its clock is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Tick,
    Acquire { now: Time, span: Time, told: bool, kept: bool },
    Extend { token: usize, now: Time, told: bool, kept: bool },
    Stop { token: usize, used_until: Time },
    Release { token: usize },
    Failover { lost: usize, back: Time, identity: u8 },
}

impl Model for Protocol {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let pool = Pool { identity: 0, span: *self.spans().start(), floor: 0, quarantine_until: 0 };
        let node = Node { until: 0, token: None, identity: 0 };
        vec![State { store_now: 0, identity: 0, failovers: 0, pool, node, past: vec![], holders: vec![] }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.store_now < self.end {
            actions.push(Action::Tick);
        }
        let limit = if self.keeps(Rule::ClockLimit) { CLOCK_LIMIT } else { CLOCK_LIMIT + SPAN };
        let fates = [(true, true), (false, true), (true, false)];
        for (told, kept) in fates.into_iter().filter(|&(_, kept)| kept || !self.keeps(Rule::Durable)) {
            for now in state.store_now - limit..=state.store_now + limit {
                if state.holders.len() < self.grants {
                    actions.extend(self.spans().map(|span| Action::Acquire { now, span, told, kept }));
                }
                // Also those that stopped: a request may reach the store long after it was sent.
                let holders = (0..state.holders.len()).filter(|&token| state.holders[token].is_some());
                actions.extend(holders.map(|token| Action::Extend { token, now, told, kept }));
            }
        }
        for (token, holder) in state.holders.iter().enumerate() {
            match *holder {
                Some(Holder { used_until: Some(_), .. }) => actions.push(Action::Release { token }),
                Some(Holder { floor, until, .. }) => {
                    actions.extend((floor..=until).map(|used_until| Action::Stop { token, used_until }));
                }
                None => {}
            }
        }
        if state.failovers < self.failovers {
            let identity = if self.keeps(Rule::FreshIdentity) { state.failovers + 1 } else { 0 };
            for back in if self.keeps(Rule::SteadyClock) { 0..=0 } else { 0..=1 } {
                actions.extend((0..=state.past.len()).map(|lost| Action::Failover { lost, back, identity }));
            }
        }
    }

    fn next_state(&self, before: &State, action: Action) -> Option<State> {
        let mut state = before.clone();
        match action {
            Action::Tick => state.store_now += 1,
            Action::Acquire { now, span, told, kept } => self.acquire(&mut state, now, span, told, kept),
            Action::Extend { token, now, told, kept } => self.extend(&mut state, token, now, told, kept),
            Action::Stop { token, used_until } => state.holder(token).used_until = Some(used_until),
            Action::Release { token } => self.release(&mut state, token),
            Action::Failover { lost, back, identity } => {
                let kept = state.past.len() - lost;
                (state.pool, state.node) = state.past.drain(kept..).next().unwrap_or((state.pool, state.node));
                (state.store_now, state.identity) = (state.store_now - back, identity);
                state.failovers += 1;
            }
        }
        if state.failovers == self.failovers {
            state.past.clear(); // nothing is lost any more
        }
        (state != *before).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(UNIQUE, |model: &Self, state: &State| {
                let mut times: Vec<_> = state.holders.iter().flatten().map(|holder| model.may_mint(holder)).collect();
                times.retain(|times| !times.is_empty());
                times.sort_by_key(|times| times.start);
                times.is_sorted_by(|a, b| a.end <= b.start)
            }),
            Property::always(BOUNDED, |_: &Self, state: &State| {
                state.holders.iter().flatten().all(|holder| holder.until <= state.store_now + CLOCK_LIMIT + SPAN)
            }),
            Property::sometimes("granted again after a crash", |_: &Self, state: &State| {
                state.node.token == Some(1) && matches!(state.holders[0], Some(Holder { used_until: None, .. }))
            }),
            Property::sometimes("extended on a new server", |_: &Self, state: &State| {
                state.node.token.is_some() && state.node.identity > state.pool.identity
            }),
            Property::sometimes("granted again on a new server", |model: &Self, state: &State| {
                state.pool.identity == model.failovers && state.node.until > state.pool.floor && state.holders.len() > 1
            }),
        ]
    }
}
