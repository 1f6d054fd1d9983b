"""For users' own tests: clocks that stand still or go with others, and all of mintage under one of them.

None of this belongs into a program that is not a test: the IDs of :func:`freeze` and :func:`follow` are the same in
each run, and unique in nothing but one test.
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
"""The node number of the IDs that are minted under :func:`freeze` and :func:`follow`, unless another is given."""

_VERSIONS: Final = (1, 4, 6)


class TravelWarning(UserWarning):
    """A test travelled in time, and IDs were minted of the real one."""


class _Cast(NamedTuple):
    """Who mints what module-level functions return."""

    generators: tuple[object, ...]
    #: What Python functions of modules ask, by the modules' own names.
    named: tuple[tuple[ModuleType, str, object], ...]
    clock: ManualClock | FollowingClock | None

    def take_the_stage(self) -> None:
        for generator in self.generators:
            replace_default(generator)
        for module, name, generator in self.named:
            setattr(module, name, generator)
        draw_from(self.clock)


_lock: Final = Lock()
_real: _Cast | None = None
_casts: Final[list[_Cast]] = []


def _understudies(clock: ManualClock | FollowingClock, node: int) -> _Cast:
    """Return a new generator for each of the default ones, in the order of the one list."""
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
    return _Cast(tuple(generators), tuple(named), clock)


def _begin(cast: _Cast) -> None:
    global _real  # noqa: PLW0603 - the default generators are of the whole process
    with _lock:
        if _real is None:
            named = tuple((module, name, getattr(module, name)) for module, name, _ in cast.named)
            _real = _Cast(tuple(defaults()), named, None)
        _casts.append(cast)
        cast.take_the_stage()


def _end(cast: _Cast) -> None:
    with _lock:
        # Not always the last one: two of them may overlap.
        _casts[:] = [each for each in _casts if each is not cast]
        last = _casts[-1] if _casts else _real
        if last is not None:
            last.take_the_stage()


def _instant(at: datetime | int | str) -> int:
    """Nanoseconds since the Unix epoch."""
    if isinstance(at, str):
        text = at
        try:
            at = datetime.fromisoformat(at)
        except ValueError:
            message = f"at {text[:40]!a} is no time as 2026-01-01 or 2026-01-01T12:00Z"
            raise FieldError(message, code="time.range") from None
        if at.tzinfo is None:
            at = at.replace(tzinfo=UTC)
    return unix_ns(at, "at")


@contextmanager
def freeze(at: datetime | int | str, *, node: int = NODE, seed: int = 0) -> Iterator[ManualClock]:
    """While it lasts, the module-level functions that mint do so at one time, and mint the same IDs in every run.

    That is ``sno.new``, ``uuid.new``, ``uuid.uuid7`` and all others, however they were imported; also ``nanoid.new``
    and ``uuid.uuid4``, which have no time, but chance, for which ``seed`` stands. Each is minted by a new generator
    that has the clock that is returned, and ``node`` where its IDs have a node number. No store is asked. When it ends,
    the default generators go on as if nothing had been: they mint no ID a second time, and keep their order. So it is
    for the whole process, all its threads included; in a forked child, IDs that have a node number are refused
    (``fork.shared_node``).

    Generators of your own are not touched, unless you give them the clock. It can be used as a decorator too.

    >>> from mintage import sno, ulid
    >>> with freeze("2026-01-01") as clock:
    ...     print(sno.new().time.isoformat(), ulid.new().time.isoformat())
    ...     clock.advance(1_000_000_000)
    ...     print(sno.new().time.isoformat())
    2026-01-01T00:00:00+00:00 2026-01-01T00:00:00+00:00
    2026-01-01T00:00:01+00:00

    :param at: an aware datetime, nanoseconds since the Unix epoch, or ISO 8601, which is UTC unless it says otherwise.
    :param node: 0 to 1023.
    :param seed: 0 to 2^64 - 1.
    :raises ArgumentError: an argument of the wrong type.
    :raises FieldError: ``time.naive``, ``time.range``, ``field.range``.
    :raises ConfigError: ``config.node``.
    """
    with _playing(clock := ManualClock(_instant(at), seed=seed), node):
        yield clock


@contextmanager
def follow(*, node: int = NODE, seed: int = 0) -> Iterator[FollowingClock]:
    """The same at the time that ``time.time_ns()`` tells, which time-machine and freezegun set.

    mintage reads the system's clock itself, so neither reaches it otherwise. Where their time goes back, generators
    start over with the next node number, so IDs are of that time. None comes twice until the numbers have come round:
    after as many journeys back as the scheme, or a layout of your own, has of them, 1,024 for snowflake. Of several
    generators of your own, one comes to the number that another was given: give them numbers that are further apart
    than the journeys back. What ``uuid1`` and ``uuid6`` are given stays as it is.

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
    with _playing(clock := FollowingClock(seed=seed), node):
        yield clock


@contextmanager
def _playing(clock: ManualClock | FollowingClock, node: int) -> Iterator[None]:
    _begin(cast := _understudies(clock, node))
    try:
        yield
    finally:
        _end(cast)


def _is_playing() -> bool:
    """Return whether any of the two is in force."""
    return bool(_casts)


def _minted_until() -> list[Any]:
    """Return how far each default generator has minted."""
    return [each._minted_until() for each in defaults() if hasattr(each, "_minted_until")]
