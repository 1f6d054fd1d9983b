"""For your own tests: clocks that stand still or follow ``time.time_ns()``, and mintage's functions under them.

Use this in tests only. The IDs of :func:`freeze` and :func:`follow` are the same in each run, so they are unique only
within one test.

>>> from mintage import sno, testing
>>> with testing.freeze("2026-01-01"):
...     sno.new().partition == testing.NODE
True

A generator of your own takes the clock as an argument:

>>> clock = testing.ManualClock(1_800_000_000_000_000_000)
>>> sno.Generator(partition=7, clock=clock).new().time.isoformat()
'2027-01-15T08:00:00+00:00'
>>> isinstance(testing.FollowingClock(), testing.FollowingClock)
True

The pytest plugin warns with :class:`TravelWarning`; ``warnings.simplefilter`` makes an error of it:

>>> import warnings
>>> with warnings.catch_warnings():
...     warnings.simplefilter("error", testing.TravelWarning)
"""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from mintage._core import FollowingClock, ManualClock, defaults, draw_from, replace_default
from mintage.errors import FieldError
from mintage.formats.rows import SCHEMES
from mintage.formats.times import unix_ns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

__all__ = ["NODE", "FollowingClock", "ManualClock", "TravelWarning", "follow", "freeze"]

NODE: Final = 1
"""The default node number of IDs that are minted under :func:`freeze` and :func:`follow`."""

_VERSIONS: Final = (1, 4, 6)


class TravelWarning(UserWarning):
    """The warning that a test changed the time for Python, and minted IDs of the real time.

    A suite that uses time-machine or freezegun can make an error of it:

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", TravelWarning)
    ...     warnings.warn("the test minted IDs of the real time", TravelWarning)
    Traceback (most recent call last):
    mintage.testing.TravelWarning: the test minted IDs of the real time
    """


class _Defaults(NamedTuple):
    """The generators that module-level functions use, and their clock."""

    generators: tuple[object, ...]
    named: tuple[tuple[ModuleType, str, object], ...]
    """A module, the name of one of its variables, and the generator in it, which the module's Python functions use."""
    clock: ManualClock | FollowingClock | None

    def install(self) -> None:
        """Make the module-level functions use these generators and this clock."""
        for generator in self.generators:
            replace_default(generator)
        for module, name, generator in self.named:
            setattr(module, name, generator)
        draw_from(self.clock)


_lock: Final = Lock()
_real: _Defaults | None = None
_installed: Final[list[_Defaults]] = []


def _make_defaults(clock: ManualClock | FollowingClock, node: int) -> _Defaults:
    """Return a new generator for each default one, in the order of ``SCHEMES``."""
    generators: list[object] = []
    named: list[tuple[ModuleType, str, object]] = []
    for scheme in SCHEMES.values():
        module, host = scheme.module, dict(scheme.host)
        if scheme.node:
            host[scheme.node] = node
        made = module.Generator(clock=clock, **host)
        generators.append(made)
        if hasattr(module, "_default"):
            named.append((module, "_default", made))
        if scheme.layouts:
            named += [(module, f"_v{each}", module.Generator(version=each, clock=clock)) for each in _VERSIONS]
    return _Defaults(tuple(generators), tuple(named), clock)


def _begin(new: _Defaults) -> None:
    global _real  # noqa: PLW0603 - the whole process has one set of default generators
    with _lock:
        if _real is None:
            named = tuple((module, name, getattr(module, name)) for module, name, _ in new.named)
            _real = _Defaults(tuple(defaults()), named, None)
        _installed.append(new)
        new.install()


def _end(old: _Defaults) -> None:
    with _lock:
        # It need not be the last one: two may overlap.
        _installed[:] = [each for each in _installed if each is not old]
        last = _installed[-1] if _installed else _real
        if last is not None:
            last.install()


def _instant(at: datetime | int | str) -> int:
    """Return an instant in nanoseconds since 1970."""
    if isinstance(at, str):
        text = at
        try:
            at = datetime.fromisoformat(at)
        except ValueError:
            message = f"at {text[:40]!a} is no time in ISO 8601, such as 2026-01-01 or 2026-01-01T12:00Z"
            raise FieldError(message, code="time.range") from None
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
    return unix_ns(at, "at")


@contextmanager
def freeze(at: datetime | int | str, *, node: int = NODE, seed: int = 0) -> Iterator[ManualClock]:
    """Make all module-level functions mint at one time, and mint the same IDs in every run.

    These are ``sno.new``, ``uuid.new``, ``uuid.uuid7`` and all others, in any module that imported them; also
    ``nanoid.new`` and ``uuid.uuid4``, whose random bits follow from ``seed``. Each function uses a new generator with
    the clock that this returns, and with ``node`` if its IDs have a node number. No generator asks a store. Afterwards
    the default generators continue where they were: they mint no ID a second time, and keep their order.

    The clock is the one of the whole process with all its threads. In a forked child, a generator whose IDs have a node
    number raises ``fork.shared_node``.

    Generators of your own do not change, unless you give them the clock. You can use this as a decorator too.

    >>> from mintage import sno, ulid
    >>> with freeze("2026-01-01") as clock:
    ...     print(sno.new().time.isoformat(), ulid.new().time.isoformat())
    ...     clock.advance(1_000_000_000)
    ...     print(sno.new().time.isoformat())
    2026-01-01T00:00:00+00:00 2026-01-01T00:00:00+00:00
    2026-01-01T00:00:01+00:00

    :param at: an aware datetime, nanoseconds since 1970, or text in ISO 8601, which is UTC if it has no time zone.
    :param node: 0 to 1023.
    :param seed: 0 to 2^64 - 1.
    :raises ArgumentError: an argument of the wrong type.
    :raises FieldError: ``time.naive``, ``time.range``, ``field.range``.
    :raises ConfigError: ``config.node``.
    """
    with _activated(clock := ManualClock(_instant(at), seed=seed), node):
        yield clock


@contextmanager
def follow(*, node: int = NODE, seed: int = 0) -> Iterator[FollowingClock]:
    """Make all module-level functions mint at the time of ``time.time_ns()``, which time-machine and freezegun set.

    Otherwise these libraries do not reach mintage, which reads the system's clock in Rust. When their time goes back,
    each generator continues with the next node number, so that its IDs have that time. No ID comes twice until a
    generator has used all its node numbers, of which the scheme or your layout has a certain count: 1,024 for
    snowflake. If you create several generators with this clock, give them node numbers that are further apart than the
    times that the clock goes back. The arguments of ``uuid1`` and ``uuid6`` do not change.

    >>> import time_machine
    >>> from mintage import uuid
    >>> with follow(), time_machine.travel("2030-01-01T00:00:00Z", tick=False):
    ...     print(uuid.ID(uuid.uuid7().bytes).time.isoformat())
    2030-01-01T00:00:00+00:00

    :param node: 0 to 1023.
    :param seed: 0 to 2^64 - 1.
    :raises ArgumentError: an argument of the wrong type.
    :raises FieldError: ``field.range``.
    :raises ConfigError: ``config.node``.
    """
    with _activated(clock := FollowingClock(seed=seed), node):
        yield clock


@contextmanager
def _activated(clock: ManualClock | FollowingClock, node: int) -> Iterator[None]:
    _begin(installed := _make_defaults(clock, node))
    try:
        yield
    finally:
        _end(installed)


def _is_active() -> bool:
    """Return True while :func:`freeze` or :func:`follow` is in force."""
    return bool(_installed)


def _minted_until() -> dict[int, Any]:
    """Return the time up to which each default generator has minted, by its ``id``; nothing for an unused one.

    So the first import of a format, which makes a default generator, changes nothing.
    """
    found = {}
    for each in defaults():
        make: Any = type(each)
        if hasattr(each, "_minted_until") and (until := each._minted_until()) != make()._minted_until():
            found[id(each)] = until
    return found
