//! What the protocol demands, and what it assumes. Without any one of these it fails.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Fence,
    Floor,
    Token,
    Forward,
    Durable,
    Release,
    ClockLimit,
    QuarantineFloor,
    QuarantineWait,
    Continuity,
    FreshIdentity,
    SteadyClock,
    FixedSpan,
}

pub const RULES: [(Rule, &str); 13] = [
    (Rule::Fence, "a holder mints no time at or after the end of its window"),
    (Rule::Floor, "a holder mints no time before its floor"),
    (Rule::Token, "only the holder of the last grant extends"),
    (Rule::Forward, "an extension never moves the end of a window back"),
    (Rule::Durable, "a write is durable before its reply is sent"),
    (Rule::Release, "a released window ends after everything that was minted in it"),
    (Rule::ClockLimit, "a caller whose clock is far from the store's is refused"),
    (Rule::QuarantineFloor, "on a new server, no window begins before all forgotten ones have ended"),
    (Rule::QuarantineWait, "on a new server, no window is granted before all forgotten ones have ended"),
    (Rule::Continuity, "on a new server, a window is extended only if it cannot have run out"),
    (Rule::FreshIdentity, "assumed: a server that takes over has an identity that is in no record"),
    (Rule::SteadyClock, "assumed: the clock of a server that takes over is not behind that of the last one"),
    (Rule::FixedSpan, "assumed: the longest span did not grow in a write that is lost"),
];
