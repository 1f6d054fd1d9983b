"""Findings about a store and its clock, with their remedies: for ``mintage doctor`` and for the console."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from mintage.store import Description, Store

PROMISES: Final = {
    "process": "IDs are unique among the generators of one process, and only until it ends",
    "host": "IDs are unique among all processes of this host that name this store",
    "shared": "IDs are unique among all processes of all hosts with this store",
}


class Finding(NamedTuple):
    """A fact, its level, and the remedy if something is wrong."""

    topic: str
    about: str
    text: str
    level: str = "ok"
    """``ok``, ``attention`` or ``unusable``."""
    todo: str = ""
    facts: Mapping[str, object] = MappingProxyType({})

    def as_dict(self) -> dict[str, object]:
        """Return the finding as JSON has it."""
        return {
            "topic": self.topic,
            "about": self.about,
            "level": self.level,
            "text": self.text,
            "todo": self.todo or None,
            "facts": dict(self.facts),
        }


def warnings_of(description: Description) -> Iterator[Finding]:
    """Yield the settings of the server that weaken the promise."""
    for warning in description.warnings:
        yield Finding(
            "store", "warning", warning, "attention", "Repair what the warning names, or accept it knowingly."
        )


def promise_of(description: Description, *, is_registry: bool) -> Finding:
    """Return the scope in which IDs are unique.

    :param is_registry: whether the store is this machine's registry, by default.
    """
    from mintage.lease import registry

    promise = description.promise
    text, level, todo = PROMISES[promise], "ok", ""
    if promise == "process":
        level, todo = "attention", "Use sqlite: for the processes of one host, or a shared store for several."
    elif is_registry and registry.is_outsider():
        level = "attention"
        text = f"IDs are unique among the processes of this user of this host, but not with those of {registry.MACHINE}"
        todo = "This process cannot write there: add its user to the directory's group."
    elif is_registry and registry.home() == registry.MACHINE:
        text = "IDs are unique among the processes of all users of this host that can write this registry"
        todo = "For several hosts, set MINTAGE_STORE to one that they share."
    elif is_registry:
        text = "IDs are unique among the processes of this user of this host; IDs of other users differ only by chance"
        todo = (
            f"For several users, create {registry.MACHINE} as root; for several hosts, set MINTAGE_STORE to a store "
            "that they share."
        )
    elif promise == "host":
        todo = "For several hosts, set MINTAGE_STORE to one that they share."
    return Finding("store", "promise", text, level, todo, {"promise": promise})


def clock_of(store: Store, ahead_ms: int, within_ms: int) -> Finding:
    """Return how far this clock is from the store's.

    :param ahead_ms: this clock less the store's.
    :param within_ms: how exact that is. A program that was paused meanwhile blames no clock.
    """
    from mintage.rules import CLOCK_LIMIT_MS

    limit_ms: int = getattr(store, "clock_limit_ms", CLOCK_LIMIT_MS)
    facts: dict[str, object] = {"ahead_ms": ahead_ms, "within_ms": within_ms, "limit_ms": limit_ms}
    side = "ahead of" if ahead_ms > 0 else "behind"
    text = f"{abs(ahead_ms):,} ms {side} the store's" if ahead_ms else "the same as the store's"
    text += f", to within {within_ms + 1:,} ms; the limit is {limit_ms:,} ms"
    if abs(ahead_ms) - within_ms > limit_ms:
        return Finding(
            "clock", "offset", f"{text}: no lease is granted here", "attention", "Set the clock; run NTP.", facts
        )
    if abs(ahead_ms) - within_ms > limit_ms // 2:
        return Finding("clock", "offset", text, "attention", "Run NTP here and on the store's server.", facts)
    return Finding("clock", "offset", text, facts=facts)
