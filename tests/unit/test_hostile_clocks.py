"""Tests of clocks with side effects: one may close the generator that reads it, fork, or let another thread do so."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from mintage import sno, snowflake
from mintage.errors import GenerationError
from mintage.formats.kinds import KINDS
from mintage.lease import keeper
from mintage.store import open_store
from mintage.store.memory import MemoryStore
from tests.helpers.processes import in_child

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Only the call itself reads the clock.
pytestmark = pytest.mark.usefixtures("inline")

MS = 1_000_000
NOW_MS = 1_700_000_000_000

LEASED = {name: scheme.module.Generator for name, scheme in KINDS.items() if not scheme.is_text}
each_scheme = pytest.mark.parametrize("make", LEASED.values(), ids=LEASED)


class Clock:
    """A clock that advances ten milliseconds with each reading, and runs a function at one of them."""

    def __init__(self, start_ms: int = NOW_MS) -> None:
        self.now_ms = start_ms
        self.readings = 0
        self.at = 0
        self.does: Callable[[], object] = int

    def __call__(self) -> int:
        self.readings += 1
        self.now_ms += 10
        if self.readings == self.at:
            self.does()
        return self.now_ms * MS

    def plan(self, reading: int, does: Callable[[], object]) -> None:
        """Run ``does`` at the reading-th reading from now."""
        self.at, self.does = self.readings + reading, does


def milliseconds(minted: Any) -> int:
    if isinstance(minted, int):
        return snowflake.DEFAULT.parse(minted).timestamp_ms
    return int(minted.timestamp_ns // MS if isinstance(minted, sno.ID) else minted.timestamp_ms)


WAYS: dict[str, Callable[[Any], Any]] = {
    "new": lambda generator: [generator.new()],
    "next": lambda generator: [next(generator)],
    "batch": lambda generator: list(generator.batch(3)),
}


@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize("reading", range(1, 8))
@pytest.mark.parametrize("way", WAYS)
@each_scheme
def test_no_id_after_a_close_lies_in_a_released_time(make: Any, way: str, reading: int, used: bool) -> None:
    clock = Clock()
    store = MemoryStore(clock=lambda: clock.now_ms)
    generator = make(store=store, clock=clock)
    if used:
        generator.new()
    clock.plan(reading, generator.close)
    minted: list[Any] = []
    with suppress(GenerationError):
        while clock.readings < clock.at:
            minted += WAYS[way](generator)
    generator.close()
    for record in store.list_leases():
        assert record.token is None
        assert all(milliseconds(one) < record.until_ms for one in minted)
    with pytest.raises(GenerationError, match="closed"):
        generator.new()


@each_scheme
def test_generator_closed_while_it_waits_for_a_lease_keeps_none(make: Any) -> None:
    class Closing(MemoryStore):
        def acquire(self, *args: Any, **kwargs: Any) -> Any:
            lease = super().acquire(*args, **kwargs)
            # The next reading is that of the call that waits.
            clock.plan(1, generator.close)
            return lease

    clock = Clock()
    store = Closing(clock=lambda: clock.now_ms)
    generator = make(store=store, clock=clock)
    with pytest.raises(GenerationError, match="closed"):
        generator.new()
    assert [record.token for record in store.list_leases()] == [None]


def test_snapshot_belongs_to_an_open_generator() -> None:
    clock = Clock()
    for look in (sno.Generator.snapshot, lambda g: g.used, lambda g: g.sequence):
        generator = sno.Generator(1, clock=clock)
        generator.new()
        clock.plan(1, generator.close)
        with pytest.raises(GenerationError, match="closed"):
            look(generator)


# ---------------------------------------------------------------------------------------------------------------- forks


@pytest.mark.parametrize("reading", range(1, 9))
@each_scheme
def test_clock_that_forks_gives_the_child_no_id_of_its_parent(make: Any, reading: int, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"

    def mint_on_both_sides() -> list[str]:
        keeper.use(keeper.Keeper(inline=True))
        clock = Clock(open_store(url).now_ms())
        generator = make(store=url, clock=clock, max_wait_ms=60_000)
        answer, answering = os.pipe()
        pids: list[int] = []
        clock.plan(reading, lambda: pids.append(os.fork()))
        ids: list[str] = []
        while not pids:
            ids.append(str(generator.new()))
        ids += map(str, generator.batch(5))
        if pids == [0]:
            # The first call may have returned before the fork.
            os.write(answering, "\n".join(ids[-6:]).encode())
            os._exit(0)
        os.close(answering)
        with os.fdopen(answer) as theirs:
            ids += theirs.read().split("\n")
        os.waitpid(pids[0], 0)
        return ids

    minted = in_child(mint_on_both_sides)
    assert len(minted) >= 12
    assert len(set(minted)) == len(minted)
