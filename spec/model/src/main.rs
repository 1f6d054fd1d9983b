//! Visits every state of the lease protocol, then shows that the protocol fails without any one of its rules.

mod lease;
mod rules;
mod world;

use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;

use lease::{Protocol, State, Time};
use rules::{RULES, Rule};
use stateright::{Checker, Expectation, HasDiscoveries, Model};
use world::{Action, Fate, UNIQUE};

/// The bounds of the searches that visit every state.
const SEARCHES: [Protocol; 5] = [
    Protocol { without: None, grants: 2, failovers: 2, copies: 0, end: 5 },
    Protocol { without: None, grants: 3, failovers: 1, copies: 0, end: 4 },
    Protocol { without: None, grants: 2, failovers: 0, copies: 1, end: 4 },
    Protocol { without: None, grants: 1, failovers: 0, copies: 2, end: 3 },
    Protocol { without: None, grants: 2, failovers: 1, copies: 1, end: 2 },
];

fn main() -> ExitCode {
    let holds = SEARCHES.map(holds).iter().all(|&held| held);
    let caught = RULES.map(|(rule, says, bounds)| is_needed(rule, says, bounds)).iter().all(|&caught| caught);
    if holds && caught { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Visits every state within the bounds; returns whether every property holds.
fn holds(protocol: Protocol) -> bool {
    let started = Instant::now();
    let checker = protocol.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!(
        "at most {} grants, failovers {}, copies {}, store's clock {}: {} states in {:.1} s",
        protocol.grants,
        protocol.failovers,
        protocol.copies,
        protocol.end,
        checker.unique_state_count(),
        started.elapsed().as_secs_f64()
    );
    let mut held = true;
    for property in protocol.properties() {
        let path = checker.discovery(property.name);
        let fine = path.is_some() == (property.expectation == Expectation::Sometimes);
        println!("  {} {}", if fine { "yes:" } else { "NO: " }, property.name);
        if let (false, Some(path)) = (fine, path) {
            print_timeline(&protocol, path.into_vec());
        }
        held &= fine;
    }
    held
}

/// Searches for the shortest path to a duplicate without the rule.
fn is_needed(rule: Rule, says: &str, bounds: Protocol) -> bool {
    let protocol = Protocol { without: Some(rule), ..bounds };
    println!("without {rule:?} ({says})");
    for depth in 2..=16 {
        let finish = HasDiscoveries::AnyOf([UNIQUE].into());
        let checker = protocol.checker().target_max_depth(depth).finish_when(finish).spawn_bfs().join();
        if let Some(path) = checker.discovery(UNIQUE) {
            print_timeline(&protocol, path.into_vec());
            println!("  caught after {} states", checker.unique_state_count());
            return true;
        }
    }
    println!("  NOT CAUGHT");
    false
}

fn print_timeline(protocol: &Protocol, path: Vec<(State, Option<Action>)>) {
    for steps in path.windows(2) {
        let (before, action, after) = (&steps[0].0, steps[0].1.expect("all but the last have one"), &steps[1].0);
        if action != Action::Tick {
            println!("  at {}: {}", before.store_now, describe(action, before, after));
        }
    }
    let last = &path.last().expect("at least the initial state").0;
    let holders = last.holders.iter().enumerate();
    let windows: Vec<_> = holders
        .map(|(at, holder)| format!("{} may mint {}", name(last, at), window(protocol.may_mint(holder))))
        .collect();
    println!("  => {}", windows.join(", "));
}

/// Describes an action, its caller's clock, and its outcome.
fn describe(action: Action, before: &State, after: &State) -> String {
    let outcome = |fate| match fate {
        Fate::Told => "",
        Fate::Lost => "; the request is lost",
        Fate::Untold => "; the reply is lost",
        Fate::Vanished => "; told, but the write is lost",
    };
    let until = after.node.until;
    match action {
        Action::Tick => "the store's clock goes on".into(),
        Action::Acquire { now, .. } if after.grants == before.grants => {
            format!("acquire, clock {now}: refused until {}", after.pool.quarantine_until)
        }
        Action::Acquire { now, fate, .. } => {
            let granted = after.holders.get(before.holders.len()).map(|holder| window(holder.floor..holder.until));
            let granted = granted.unwrap_or_else(|| format!("until {until}"));
            format!("{} acquires, clock {now}: {granted}{}", letter(before.grants), outcome(fate))
        }
        Action::Extend { at, now, fate } => {
            format!("{} extends, clock {now}: until {until}{}", name(before, at), outcome(fate))
        }
        Action::Again { at, now, .. } => {
            format!("an extension by {} arrives again, clock {now}: until {until}", name(before, at))
        }
        Action::Stop { at, used_until } => format!("{} stops, having minted below {used_until}", name(before, at)),
        Action::Release { at } => format!("{} is released: until {until}", name(before, at)),
        Action::Clone { at } => format!("{} becomes two", name(before, at)),
        Action::Lose => {
            format!("all records are lost, and the pool is created again: none before {}", after.pool.floor)
        }
        Action::Failover { lost, identity, .. } => {
            format!("failover to server {identity}, its clock {}, writes lost: {lost}", after.store_now)
        }
    }
}

/// Returns the letter of a holder's grant, with a prime for each copy.
fn name(state: &State, at: usize) -> String {
    let grant = state.holders[at].token.grant;
    let copies = state.holders[..at].iter().filter(|other| other.token.grant == grant).count();
    format!("{}{}", letter(grant), "'".repeat(copies))
}

fn letter(grant: u8) -> char {
    char::from(b'A' + grant)
}

fn window(times: Range<Time>) -> String {
    if times.end == Time::MAX { format!("[{}, …)", times.start) } else { format!("[{}, {})", times.start, times.end) }
}
