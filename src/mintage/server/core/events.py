"""The events of a service: the records of its log that say what happened, kept in a journal for the console.

Every warning and error is an event, and so are the records in :data:`KEPT`. Single refusals of requests are none: the
metrics count them. Nor is what OpenTelemetry logs: a collector that is away would push out all other events.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import structlog

from mintage.rules import Lease
from mintage.server.core.journal import LONGEST_BYTES, Journal, line_of

if TYPE_CHECKING:
    from mintage.errors import MintError

log: Any = structlog.get_logger("mintage.server")

KEPT: Final = frozenset({"changed", "serving", "signed in", "signed out", "stopped", "stopping", "store back"})
"""The records below a warning that are events."""
REFUSALS: Final = {
    "lease.lost": "lease lost",
    "lease.none_free": "no node number free",
    "lease.clock": "clock too far off",
    "namespace.exhausted": "namespace exhausted",
}
"""The codes of refusals of the store that are events, and the names of their records."""
MESSAGE: Final = "message"
"""The kind of a record that is only a text, as the keeper and libraries log. There may be one for each request."""
_PLACES: Final = {
    "changed": "changes", "store taken over": "changes", "signed in": "sessions", "signed out": "sessions",
    MESSAGE: "messages",
}  # fmt: skip
"""The journals of the kinds that no event of another journal pushes out. The others share ``events``."""
_BY_WORKER: Final = {"store away": "reason", "store back": "away_s", "stopping": "connections"}
"""The fact of a kind that may differ between workers that have seen one event."""
_QUIET_S: Final = 60.0
_MOST_OF_A_KIND: Final = 10
SAME_S: Final = 5.0
"""Workers that log the same within this time, in seconds, have seen one event."""
_LONGEST_TEXT_BYTES: Final = 300
_OWN: Final = frozenset({"event", "level", "timestamp", "trace_id", "key", "pid", "exc_info", "stack_info"})
"""The members of a record that are not among the facts of its event."""


@dataclass(slots=True)
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
        try:
            self._keep(record)
        except Exception:  # noqa: BLE001 - of what libraries log, such as arguments that do not fit their text
            self.handleError(record)

    def _keep(self, record: logging.LogRecord) -> None:
        msg: object = record.msg
        facts: Mapping[str, Any] = (
            msg if isinstance(msg, dict) and "event" in msg else {"event": MESSAGE, "text": record.getMessage()}
        )
        kind = self._clean(facts["event"])
        if record.name.startswith("opentelemetry.") or (record.levelno < logging.WARNING and kind not in KEPT):
            return
        more: dict[str, str] = {}
        kept: dict[str, Any] = {
            "at": record.created,
            "kind": kind,
            "level": record.levelname.lower(),
            "actor": self._clean(facts.get("key", "")),
            "trace_id": self._clean(facts.get("trace_id", "")),
            "pid": record.process,
            "facts": more,
        }
        for name, value in facts.items():
            if name not in _OWN:
                more[str(name)] = self._clean(value)
                if len(line_of(kept)) > LONGEST_BYTES:
                    more.popitem()
        Kept().append(kept)

    def _clean(self, value: object) -> str:
        return self._masked(str(value)).encode(errors="replace")[:_LONGEST_TEXT_BYTES].decode(errors="ignore")


class Refusals:
    """The refusals of the store that an operator should see: each is logged once a minute at most, ten of a kind."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._quiet_until_s: dict[str, dict[str, float]] = {}
        """The subjects that were logged in the last minute, by kind, and the end of that minute for each."""
        self._left_out: dict[str, int] = {}
        self._lock = Lock()

    def log(self, error: MintError, of: object) -> None:
        """Log a refusal, if it is one to see.

        :param of: the pool, the namespace or the lease of the verb.
        """
        kind = REFUSALS.get(error.code)
        if kind is None:
            return
        if isinstance(of, Lease):
            of = f"{of.pool} {of.node}"
        now_s, what = self._clock(), str(of)
        with self._lock:
            before = self._quiet_until_s.get(kind, {})
            quiet = self._quiet_until_s[kind] = {each: until_s for each, until_s in before.items() if until_s > now_s}
            if what in quiet:
                return
            if len(quiet) >= _MOST_OF_A_KIND:
                self._left_out[kind] = self._left_out.get(kind, 0) + 1
                return
            quiet[what] = now_s + _QUIET_S
            left_out = self._left_out.pop(kind, 0)
        log.warning(kind, code=error.code, reason=str(error), **({"left_out": left_out} if left_out else {}))


class Kept:
    """The records of the events of this service. Keep the object: it reads again only what has changed."""

    def __init__(self) -> None:
        self._journals = {name: Journal(name) for name in {"events", *_PLACES.values()}}

    def append(self, record: dict[str, Any]) -> None:
        """Add a record to the journal of its kind, as far as it can be written now."""
        self._journals[_PLACES.get(record["kind"], "events")].append(record)

    def read(self) -> list[dict[str, Any]]:
        """Return all records."""
        return [each for one in self._journals.values() for each in one.read()]


def last(kept: Kept, kind: str) -> datetime | None:
    """Return the time of the last event of a kind."""
    return max((datetime.fromtimestamp(each["at"], UTC) for each in kept.read() if each["kind"] == kind), default=None)


def events(kept: Kept) -> list[Event]:
    """Return the events, the latest first. What several workers logged at about the same time is one of them."""
    found: list[Event] = []
    latest: dict[tuple[object, ...], Event] = {}
    for each in sorted(kept.read(), key=lambda each: each["at"]):
        event = Event(
            datetime.fromtimestamp(each["at"], UTC),
            each["kind"],
            each["level"],
            ", ".join(f"{name}: {value}" for name, value in each["facts"].items()),
            each["actor"],
            each["trace_id"],
            (each["pid"],),
        )
        facts = each["facts"] | {_BY_WORKER.get(event.kind, ""): None}
        same = (event.kind, event.actor, event.trace_id, *facts.items())
        before = latest.get(same)
        if before and each["pid"] not in before.pids and (event.at - before.at).total_seconds() < SAME_S:
            before.pids += event.pids
        else:
            latest[same] = event
            found.append(event)
    return found[::-1]
