"""The log: one form for the records of the service, its libraries and the keeper, on standard error.

Every record has a UTC timestamp, a level, an ``event``, and the ``trace_id`` of its request. Keys and the passwords of
URLs are masked everywhere. Text that others sent can neither break a line nor move a terminal's cursor.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import structlog
from structlog.typing import EventDict, Processor

from mintage.server.config.settings import Settings
from mintage.server.config.values import OFF
from mintage.server.core.events import EventHandler


def _letter(letter: str) -> str:
    """Match a letter as it is, or percent-encoded, once or up to four times."""
    return f"(?:{letter}|%(?:25){{0,3}}{ord(letter):02x})"


# Each pattern reads a character a few times at most: the text may be long and hostile.
_SECRETS: Final = (
    # A key may begin within a word, and /alloc reads names in small letters, so case does not matter. Parts of keys are
    # masked as well, unless the missing part is too long to guess.
    (re.compile("".join(map(_letter, "mint_")) + r"[A-Za-z0-9_%-]{16,}", re.IGNORECASE), "mint_***"),
    (re.compile(r"(?<=://)([^\s/@:]*):[^\s/]+@"), r"\1:***@"),
    (
        re.compile(r"([?&][\w.-]{0,20}(?:password|passwd|secret|token|key)[\w.-]{0,20}=)[^\s&]+", re.IGNORECASE),
        r"\1***",
    ),
)
_log: Any = structlog.get_logger("mintage.server")
_FIRST: Final = ("timestamp", "level", "event", "trace_id")
_CONTROLS: Final = r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"


def is_console(settings: Settings) -> bool:
    """Return True if the log is for people: by the setting, or because standard error is a terminal (``auto``)."""
    return settings.log_format == "console" or (settings.log_format == "auto" and sys.stderr.isatty())


def configure(settings: Settings) -> None:
    """Write the log to standard error from now on, in the format and from the level of the settings.

    A record is a line for people, or a JSON object on one line. Python's warnings are logged as well.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if settings.workers > 1:
        shared.append(_number)
    ends: list[Processor] = [_mask, structlog.processors.JSONRenderer()]
    if is_console(settings):
        plain = structlog.dev.plain_traceback
        ends = [_mask, _escape, structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.StackInfoRenderer(),
                structlog.processors.format_exc_info,
                *ends,
            ],
        )
    )
    handler.setLevel(settings.log_level.upper())
    handlers: list[logging.Handler] = [handler]
    if settings.console != OFF:
        handlers.append(EventHandler(masked))
    # The console shows what happened whatever the level of the log is.
    level = min(each.level for each in handlers)
    logging.basicConfig(handlers=handlers, level=level, force=True)
    logging.captureWarnings(True)
    # A store over HTTP would log a line for each of its verbs.
    logging.getLogger("httpx").setLevel(max(logging.WARNING, logging.getLogger().level))
    # These repeat what clients send in their headers, or secrets of the environment.
    for name in ("trace.span", "trace.propagation.tracecontext", "util.re"):
        logging.getLogger(f"opentelemetry.{name}").setLevel(logging.CRITICAL)


class Sampled:
    """A limit of one line a second, for lines that strangers can cause at any rate."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until_s = -1.0
        self._left_out = 0

    def allow(self) -> dict[str, int] | None:
        """Return the facts to add to a line, with the number left out before it; ``None`` to leave this line out."""
        now_s = self._clock()
        if now_s < self._until_s:
            self._left_out += 1
            return None
        left_out, self._left_out, self._until_s = self._left_out, 0, now_s + 1.0
        return {"left_out": left_out} if left_out else {}


def log_change(key: str, client: str, method: str, path: str, **members: object) -> None:
    """Log a change of a namespace, a pool or a lease that an operator made, as the request of the API for it.

    :param key: the name of the caller's key; ``""`` without keys.
    :param client: the caller's address; ``""`` if it is not known.
    :param members: the members of the request's body.
    """
    who = {name: value for name, value in (("key", key), ("client", client)) if value}
    _log.info("changed", **who, method=method, path=path[:200], **members)


def masked(text: str) -> str:
    """Return the text with keys, passwords in URLs, and values of options with names like ``secret`` masked."""
    for secret, mask in _SECRETS:
        text = secret.sub(mask, text)
    return text


def _number(_logger: object, _name: str, event: EventDict) -> EventDict:
    event.setdefault("pid", os.getpid())
    return event


def _mask(_logger: object, _name: str, event: EventDict) -> EventDict:
    names = dict.fromkeys([*(name for name in _FIRST if name in event), *event])
    return {name: _clean(event[name]) for name in names}


def _clean(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, dict):
        return {masked(str(name)): _clean(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_clean(each) for each in value]
    return masked(repr(value))


def _escape(_logger: object, _name: str, event: EventDict) -> EventDict:
    """Escape control characters for a terminal (JSON escapes by itself), and indent the lines of tracebacks."""
    for name, value in event.items():
        if isinstance(value, str):
            lines = value.split("\n") if name in {"exception", "stack"} else [value]
            indent = "  " if len(lines) > 1 else ""
            event[name] = "\n".join(indent + re.sub(_CONTROLS, _escaped, line) for line in lines)
    return event


def _escaped(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
