"""The events of a service: the records of its log that say what happened, kept in a journal for the console.

Every warning and error is an event, and so are the records in :data:`KEPT`. Single refusals of requests are none: the
metrics count them.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from mintage.server.core.journal import Journal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KEPT: Final = frozenset({"changed", "serving", "signed in", "signed out", "stopped", "stopping", "store back"})
"""The records below a warning that are events."""
SAME_S: Final = 5.0
"""Workers that log the same within this time, in seconds, have seen one event."""
_LONGEST_TEXT: Final = 300
_MOST_FACTS: Final = 12
_OWN: Final = frozenset({"event", "level", "timestamp", "trace_id", "key", "pid", "exc_info", "stack_info"})
"""The members of a record that are not among the facts of its event."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    at: datetime
    kind: str
    """The name of the record in the log, such as ``store away``."""
    level: str
    text: str
    """Its facts, for people."""
    actor: str = ""
    """The name of the key."""
    trace_id: str = ""
    pids: tuple[int, ...] = ()
    """The processes that logged it."""


class EventHandler(logging.Handler):
    """The log handler that keeps the events.

    :param masked: the function that masks the secrets in a text.
    """

    def __init__(self, masked: Callable[[str], str]) -> None:
        super().__init__(logging.INFO)
        self._masked = masked

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record if it is an event."""
        facts: Mapping[str, Any] = record.msg if isinstance(record.msg, dict) else {"event": record.getMessage()}
        kind = self._clean(facts["event"])
        if record.levelno < logging.WARNING and kind not in KEPT:
            return
        more = {name: self._clean(value) for name, value in facts.items() if name not in _OWN}
        Journal("events").append(
            {
                "at": record.created,
                "kind": kind,
                "level": record.levelname.lower(),
                "facts": dict(list(more.items())[:_MOST_FACTS]),
                "actor": self._clean(facts.get("key", "")),
                "trace_id": self._clean(facts.get("trace_id", "")),
                "pid": record.process,
            }
        )

    def _clean(self, value: object) -> str:
        return self._masked(str(value))[:_LONGEST_TEXT]


def events() -> list[Event]:
    """Return the events, the latest first. What several workers logged at about the same time is one of them."""
    found: list[Event] = []
    latest: dict[tuple[str, ...], int] = {}
    for each in sorted(Journal("events").read(), key=lambda each: each["at"]):
        event = Event(
            datetime.fromtimestamp(each["at"], UTC),
            each["kind"],
            each["level"],
            ", ".join(f"{name}: {value}" for name, value in each["facts"].items()),
            each["actor"],
            each["trace_id"],
            (each["pid"],),
        )
        same = (event.kind, event.trace_id, each["facts"].get("code", ""))
        at = latest.get(same)
        if at is not None and event.pids[0] not in found[at].pids:
            before = found[at]
            if (event.at - before.at).total_seconds() < SAME_S:
                found[at] = Event(
                    before.at, before.kind, before.level, before.text, before.actor, before.trace_id,
                    (*before.pids, *event.pids),
                )  # fmt: skip
                continue
        latest[same] = len(found)
        found.append(event)
    return found[::-1]
