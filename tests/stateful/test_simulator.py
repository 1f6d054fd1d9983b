"""The simulator: no ID twice while it plays by the rules, and duplicates as soon as one rule is broken."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from mintage import lease as rules
from mintage.keeper import Tenancy
from tests.simulator import Outcome, World
from tests.simulator.simulator import VirtualStore, find_twins

if TYPE_CHECKING:
    from collections.abc import Callable

    from mintage.lease import Lease, NamespaceRecord, NodeRecord, PoolRecord

SEEDS = range(1, 5)
WORLDS = 60
"""How many worlds a broken rule may stay hidden in."""
EVENTS = 8_000


@pytest.mark.parametrize("seed", SEEDS)
def test_no_id_is_minted_twice_whatever_fails(seed: int) -> None:
    outcome = World(seed).run()
    assert outcome.ids > 0
    assert sum(outcome.faults.values()) > 1_000
    assert not outcome.duplicates, "\n".join(map(str, outcome.duplicates))


def test_a_seed_replays_exactly() -> None:
    first, second = World(3, 1).run(5_000), World(3, 1).run(5_000)
    assert first == second
    assert first.digest != World(4, 1).run(5_000).digest


def test_twins_are_found_by_every_byte() -> None:
    import numpy as np

    for width in (8, 10, 16):
        ids = np.arange(1, 1000, dtype=np.uint64).repeat(2)[:, None].view(np.uint8).reshape(-1, 16)[:, :width].copy()
        assert find_twins(ids) is None
        ids[700] = ids[20]
        assert find_twins(ids) == (20, 700)


def hunt(seed: int, **options: Any) -> Outcome:
    """The first world with a duplicate."""
    for index in range(WORLDS):
        outcome = World(seed, index, **options).run(EVENTS)
        if outcome.duplicates:
            return outcome
    pytest.fail(f"no duplicate in {WORLDS} worlds")


def broken_fence(patch: pytest.MonkeyPatch) -> None:
    """A generator mints past the end of its window."""
    window = Tenancy.window

    def too_long(self: Tenancy, max_wait_ms: int) -> tuple[int, int, int, int, int]:
        serial, node, floor, until, due = window(self, max_wait_ms)
        return serial, node, floor, until + 10_000, due

    patch.setattr(Tenancy, "window", too_long)


def broken_token(patch: pytest.MonkeyPatch) -> None:
    """Whoever asks extends."""
    extend = rules.extend

    def anybodys(record: NodeRecord | None, lease: Lease, **now: Any) -> NodeRecord:
        token = (record and record.token) or "anybody's"
        return extend(record and replace(record, token=token), replace(lease, token=token), **now)

    patch.setattr(rules, "extend", anybodys)


def broken_durability(patch: pytest.MonkeyPatch) -> None:
    """The store answers before it has written, and does not know that it lost something."""
    fail_over = VirtualStore.fail_over

    def in_secret(self: VirtualStore, transactions: int) -> None:
        identity = self.book.identity
        fail_over(self, transactions)
        self.book.identity = identity

    patch.setattr(VirtualStore, "fail_over", in_secret)


def broken_quarantine(patch: pytest.MonkeyPatch) -> None:
    """Node numbers do not rest after a failover."""

    def at_once(pool: PoolRecord, identity: str, *_: int) -> PoolRecord:
        return replace(pool, identity=identity)

    patch.setattr(rules, "note_server", at_once)


def broken_continuity(patch: pytest.MonkeyPatch) -> None:
    """A window that ended is extended after a failover."""
    extend = rules.extend

    def anyway(record: NodeRecord | None, lease: Lease, *, identity: str, **now: Any) -> NodeRecord:
        return replace(
            extend(record, lease, identity=record.identity if record else identity, **now), identity=identity
        )

    patch.setattr(rules, "extend", anyway)


def broken_floor(patch: pytest.MonkeyPatch) -> None:
    """A window begins before the last one of its number has ended."""
    grant = rules.grant

    def from_the_start(pool: PoolRecord, _: NodeRecord | None, node: int, **terms: Any) -> NodeRecord:
        return grant(replace(pool, floor_ms=0), None, node, **terms)

    patch.setattr(rules, "grant", from_the_start)


def broken_release(patch: pytest.MonkeyPatch) -> None:
    """A lease is given back as if nothing had been minted."""
    release = rules.release
    patch.setattr(rules, "release", lambda record, lease, used_until_ms: release(record, lease, used_until_ms=0))


def broken_skip(patch: pytest.MonkeyPatch) -> None:
    """A namespace goes on where it was after a failover."""

    def goes_on(namespace: NamespaceRecord, identity: str) -> NamespaceRecord:
        return replace(namespace, identity=identity)

    patch.setattr(rules, "note_server_of_namespace", goes_on)


# With seeds that show it soon.
BROKEN = [
    pytest.param(broken_fence, 4, {}, id="fence"),
    pytest.param(broken_token, 1, {"regions": "sn"}, id="token"),
    pytest.param(broken_durability, 5, {}, id="durability"),
    pytest.param(broken_quarantine, 2, {"regions": "sn"}, id="quarantine"),
    pytest.param(broken_continuity, 8, {"regions": "snowflake"}, id="continuity"),
    pytest.param(broken_floor, 8, {"regions": "snowflake"}, id="floor"),
    pytest.param(broken_release, 4, {"regions": "sn"}, id="release"),
    pytest.param(broken_skip, 1, {"regions": "sequence"}, id="skip"),
]


@pytest.mark.parametrize(("break_it", "seed", "options"), BROKEN)
def test_a_broken_rule_is_found(
    break_it: Callable[[pytest.MonkeyPatch], None], seed: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    [duplicate, *_] = hunt(seed, **options).duplicates
    assert f"--seed {seed} --world {duplicate.world}" in str(duplicate)
