"""For your own tests: clocks that stand still or follow ``time.time_ns()``, and all of mintage under them.

Use this in tests only. The IDs of :func:`freeze` and :func:`follow` are the same in each run, so they are unique only
within one test.

>>> from mintage import sno, testing
>>> with testing.freeze("2026-01-01"):
...     sno.new().partition == testing.NODE
True

A generator takes a clock of its own as an argument, and keeps that:

>>> clock = testing.ManualClock(1_800_000_000_000_000_000)
>>> sno.Generator(partition=7, clock=clock).new().time.isoformat()
'2027-01-15T08:00:00+00:00'
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary

from mintage._core import FollowingClock, ManualClock, defaults, generation, use_doubles
from mintage._core.sequence import Sequence
from mintage.errors import FieldError
from mintage.formats.kinds import KINDS
from mintage.formats.times import unix_ns
from mintage.store.memory import MemoryStore

__all__ = ["NODE", "FollowingClock", "ManualClock", "TravelWarning", "follow", "freeze"]

NODE: Final = 1
"""The default node number of IDs that are minted under :func:`freeze` and :func:`follow`."""


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


class _Doubles:
    """The generators that mint in place of others, with the clock of a test."""

    def __init__(self, clock: ManualClock | FollowingClock, node: int) -> None:
        # It refuses a node number that a default generator cannot have.
        KINDS["snowflake"].module.Generator(node=node, clock=clock)
        self._clock, self._generation = clock, generation()
        self._generators: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        self._sequences: dict[str, Sequence] = {}
        self._store = MemoryStore()
        self._numbers: dict[type, Iterator[int]] = {}
        # At once and in this order, so that the IDs of one scheme do not depend on the others that a test mints.
        for scheme in KINDS.values():
            _ = scheme.module.new
        for each in defaults():
            self._generators[each] = self._make(each, node)

    def of(self, generator: Any) -> Any:
        """Return the double of a generator or a sequence."""
        # Without a lock, which a fork could copy while it is held.
        if isinstance(generator, Sequence):
            if (double := self._sequences.get(name := generator.namespace)) is None:
                double = self._sequences.setdefault(name, Sequence(name, self._store))
        elif (double := self._generators.get(generator)) is None:
            numbers = self._numbers.setdefault(type(generator), count(-1, -1))
            double = self._generators.setdefault(generator, self._make(generator, next(numbers)))
        return double

    def _make(self, generator: Any, node: int) -> Any:
        return generator._double(self._clock, node, self._generation)


_lock: Final = Lock()
_installed: Final[list[_Doubles]] = []


def _double_of(generator: Any) -> Any:
    """Return the double of a generator; the generator itself where no test's clock is in force."""
    last = _installed[-1:]  # in one step, as another thread may end it
    return last[0].of(generator) if last else generator


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
    """Make everything mint at one time, and mint the same IDs in every run.

    These are the functions of modules, ``sno.new``, ``uuid.uuid7`` and all others, in any module that imported them;
    the generators that were created before or meanwhile, unless they have a ``clock``; and sequences. Their random bits
    follow from ``seed``. No generator asks a store: those of the functions have ``node``, if their IDs have a node
    number; those that would lease a number have the scheme's largest, one after another; sequences count from 1.
    Afterwards all continue where they were: they mint no ID a second time, and keep their order.

    The clock is the one of the whole process with all its threads. In a forked child, a generator whose IDs have a node
    number raises ``fork.shared_node``, unless it was given one there, and a sequence ``store.refused``.

    You can use this as a decorator too.

    >>> from mintage import sno, typeid
    >>> users = typeid.Generator("user")
    >>> with freeze("2026-01-01") as clock:
    ...     print(sno.new().time.isoformat(), users.new().time.isoformat())
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
    """Make everything mint at the time of ``time.time_ns()``, which time-machine and freezegun set.

    Otherwise these libraries do not reach mintage, which reads the system's clock in Rust. When their time goes back,
    each generator continues with the next node number, so that its IDs have that time. No ID comes twice until a
    generator has used all its node numbers, of which the scheme or your layout has a certain count: 1,024 for
    snowflake. Two generators mint the same ID after the clock went back as often as their node numbers are apart. The
    arguments of ``uuid1`` and ``uuid6`` do not change. Generators mint as under :func:`freeze`.

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
    doubles = _Doubles(clock, node)
    with _lock:
        _installed.append(doubles)
        use_doubles(True)
    try:
        yield
    finally:
        with _lock:
            # It need not be the last one: two may overlap.
            _installed.remove(doubles)
            use_doubles(bool(_installed))


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
