//! Visits every state of the lease protocol, then shows that it fails without any one of its rules.

mod lease;
mod rules;
mod world;

use std::ops::Range;
use std::process::ExitCode;
use std::time::Instant;

use lease::{Protocol, State, Time};
use rules::{RULES, Rule};
use stateright::{Checker, Expectation, HasDiscoveries, Model};
use world::{Action, UNIQUE};

const FAILOVERS: Protocol = Protocol { without: None, grants: 2, failovers: 2, end: 7 };
const GRANTS: Protocol = Protocol { without: None, grants: 3, failovers: 1, end: 5 };

fn main() -> ExitCode {
    let holds = [FAILOVERS, GRANTS].map(holds).iter().all(|&held| held);
    let caught = RULES.map(|(rule, says)| is_needed(rule, says)).iter().all(|&caught| caught);
    if holds && caught { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Visits every state within the bounds: all that must be so always is, and all that must be possible is.
fn holds(protocol: Protocol) -> bool {
    let started = Instant::now();
    let checker = protocol.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    println!(
        "at most {} grants, failovers {}, store's clock {}: {} states in {:.1} s",
        protocol.grants,
        protocol.failovers,
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

/// Looks for the shortest way to a duplicate without the rule.
fn is_needed(rule: Rule, says: &str) -> bool {
    let protocol = Protocol { without: Some(rule), ..FAILOVERS };
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
    let holders = last.holders.iter().enumerate().filter_map(|(token, holder)| Some((token, (*holder)?)));
    let windows: Vec<_> = holders
        .map(|(token, holder)| format!("{} may mint {}", name(token), window(protocol.may_mint(&holder))))
        .collect();
    println!("  => {}", windows.join(", "));
}

/// An action, its caller's clock, and what became of it.
fn describe(action: Action, before: &State, after: &State) -> String {
    let outcome = |told, kept| match (told, kept) {
        (true, true) => "",
        (false, _) => "; the reply is lost",
        (_, false) => "; told, but the write is lost",
    };
    let until = after.node.until;
    match action {
        Action::Tick => "the store's clock goes on".into(),
        Action::Acquire { now, .. } if after.holders.len() == before.holders.len() => {
            format!("acquire, clock {now}: refused until {}", after.pool.quarantine_until)
        }
        Action::Acquire { now, told, kept, .. } => {
            let granted = after.holders[before.holders.len()].map(|holder| window(holder.floor..holder.until));
            let granted = granted.unwrap_or_else(|| format!("until {until}"));
            format!("{} acquires, clock {now}: {granted}{}", name(before.holders.len()), outcome(told, kept))
        }
        Action::Extend { token, now, told, kept } => {
            format!("{} extends, clock {now}: until {until}{}", name(token), outcome(told, kept))
        }
        Action::Stop { token, used_until } => format!("{} stops, having minted below {used_until}", name(token)),
        Action::Release { token } => format!("{} is released: until {until}", name(token)),
        Action::Failover { lost, identity, .. } => {
            format!("failover to server {identity}, its clock {}, writes lost: {lost}", after.store_now)
        }
    }
}

fn name(token: usize) -> char {
    ['A', 'B', 'C', 'D'][token]
}

fn window(times: Range<Time>) -> String {
    if times.end == Time::MAX { format!("[{}, …)", times.start) } else { format!("[{}, {})", times.start, times.end) }
}
