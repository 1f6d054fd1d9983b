//! The rules and the assumptions of the protocol. It fails without any one of them.

use crate::lease::Protocol;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Fence,
    Floor,
    Token,
    TokenMoves,
    LastToken,
    AnswerAgain,
    Forward,
    Durable,
    Release,
    ClockLimit,
    QuarantineFloor,
    QuarantineWait,
    QuarantineNew,
    Continuity,
    NoteInExtend,
    CountServers,
    FreshToken,
    FreshIdentity,
    SeenWrite,
    SteadyClock,
    FixedSpan,
    KeptClone,
}

const FAILOVERS: Protocol = Protocol { without: None, grants: 2, failovers: 2, copies: 0, end: 7 };
const CLONES: Protocol = Protocol { without: None, grants: 2, failovers: 0, copies: 1, end: 7 };
const CLONES_AND_FAILOVERS: Protocol = Protocol { without: None, grants: 1, failovers: 1, copies: 1, end: 5 };

/// Each rule, its text, and the bounds within which its absence shows.
pub const RULES: [(Rule, &str, Protocol); 22] = [
    (Rule::Fence, "a holder mints no time at or after the end of its window", FAILOVERS),
    (Rule::Floor, "a holder mints no time before its floor", FAILOVERS),
    (Rule::Token, "only the holder of the last grant extends", FAILOVERS),
    (Rule::TokenMoves, "an extension replaces the token", CLONES),
    (Rule::LastToken, "of the tokens of a grant, only the last extends", CLONES),
    (Rule::AnswerAgain, "an extension that is asked for again moves nothing", CLONES),
    (Rule::Forward, "an extension never moves the end of a window back", FAILOVERS),
    (Rule::Durable, "a write is durable before its reply is sent", FAILOVERS),
    (Rule::Release, "a released window ends after everything that was minted in it", FAILOVERS),
    (Rule::ClockLimit, "a caller whose clock is far from the store's is refused", FAILOVERS),
    (Rule::QuarantineFloor, "on a new server, no window begins before all forgotten ones have ended", FAILOVERS),
    (Rule::QuarantineWait, "on a new server, no window is granted before all forgotten ones have ended", FAILOVERS),
    (Rule::QuarantineNew, "a pool that the store may have lost begins like one on a new server", FAILOVERS),
    (Rule::Continuity, "on a new server, a window is extended only if it cannot have run out", FAILOVERS),
    (Rule::NoteInExtend, "an extension, too, notes the server in the pool", FAILOVERS),
    (Rule::CountServers, "a window is on a new server also where the server is one that came back", FAILOVERS),
    (Rule::FreshToken, "assumed: no two copies of a holder propose the same token", CLONES),
    (Rule::FreshIdentity, "assumed: a server that takes over has another identity than the last one", FAILOVERS),
    (Rule::SeenWrite, "assumed: a server that comes back has seen a write of the last one", FAILOVERS),
    (Rule::SteadyClock, "assumed: the clock of a server that takes over is not behind that of the last one", FAILOVERS),
    (Rule::FixedSpan, "assumed: the longest span did not grow in a write that is lost", FAILOVERS),
    (
        Rule::KeptClone,
        "assumed: no failover forgets what one copy of a holder did and another does not know",
        CLONES_AND_FAILOVERS,
    ),
];
