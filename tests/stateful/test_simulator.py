"""Tests of the simulator: no ID repeats under the rules, and duplicates appear if one rule is broken."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest

from mintage import rules
from mintage.lease import lease_client
from mintage.lease.lease_client import LeaseClient
from mintage.lease.segment_client import SegmentClient
from mintage.rules import PoolRecord
from mintage.store.ledger import Ledger
from tests.simulator import Outcome, World, run_world
from tests.simulator.outcomes import twins_of
from tests.simulator.regions import LEASED, Region
from tests.simulator.virtual_store import Ledgerbook, VirtualStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from mintage.rules import Lease, NamespaceRecord, NodeRecord, Segment
    from mintage.store.ledger import ServerIdentity, Transaction
    from tests.simulator.processes import Process

SEEDS = range(1, 5)
WORLDS = 60
"""The number of worlds in which a broken rule may stay hidden."""
EVENTS = 8_000
MOST_NAMED = 1_000
"""The number of IDs, at least, whose holder a store with past grants knows after half of them."""


def run(seed: int, index: int = 0, events: int | None = None, **options: Any) -> Outcome:
    """Return the outcome of a world, run in a process of its own, as a world changes its generation for good."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        found: object = None
        try:
            found = run_world(seed, index, *([] if events is None else [events]), **options)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent raises it
            found = error
        finally:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(pickle.dumps(found))
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        outcome = pickle.loads(pipe.read())
    os.waitpid(pid, 0)
    if isinstance(outcome, BaseException):
        raise outcome
    assert isinstance(outcome, Outcome)
    return outcome


@pytest.mark.parametrize("seed", SEEDS)
def test_no_id_is_minted_twice_under_any_faults(seed: int) -> None:
    outcome = run(seed)
    assert outcome.ids > 0
    assert sum(outcome.faults.values()) > 1_000
    assert not outcome.duplicates, "\n".join(map(str, outcome.duplicates))
    assert outcome.below_floor == 0


@pytest.mark.parametrize(("seed", "region"), [(2, "snowflake"), (7, "sno$")])
def test_history_names_the_holder_of_each_id_that_it_knows(seed: int, region: str) -> None:
    outcome = run(seed, 0, EVENTS // 2, regions=region)
    assert outcome.named > MOST_NAMED
    assert outcome.outdated < outcome.named / 100
    assert not outcome.misnamed, "\n".join(outcome.misnamed[:10])


def test_few_holders_are_named_without_past_grants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "past_grant", lambda *_: None)
    assert run(2, 0, EVENTS // 2, regions="snowflake").named < MOST_NAMED


@pytest.mark.parametrize("region", LEASED, ids=lambda region: region.name)
def test_no_id_of_any_leased_format_is_minted_twice(region: Region) -> None:
    outcome = run(5, 0, EVENTS // 2, regions=region.name)
    assert outcome.ids > 0
    assert not outcome.duplicates, "\n".join(map(str, outcome.duplicates))


@pytest.mark.parametrize(("seed", "regions"), [(1, ""), (2, "sno|snow"), (3, "sequence"), (4, "uuid.v7|ulid|xid")])
def test_stores_with_disjoint_shares_mint_no_id_twice(seed: int, regions: str) -> None:
    outcome = run(seed, 0, EVENTS // 4, divided=True, regions=regions)
    assert outcome.ids > 0
    assert not outcome.duplicates, "\n".join(map(str, outcome.duplicates))


def test_stores_that_ignore_their_shares_mint_ids_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "share_of", lambda _, nodes: nodes)
    assert run(2, 0, EVENTS // 4, divided=True, regions="sno").duplicates


def test_seed_replays_exactly() -> None:
    first, second = run(3, 1, 5_000), run(3, 1, 5_000)
    assert first == second
    assert first.digest != run(4, 1, 5_000).digest


def test_duplicates_are_found_by_every_byte() -> None:
    import numpy as np

    for width in (8, 10, 16):
        ids = np.arange(1, 1000, dtype=np.uint64).repeat(2)[:, None].view(np.uint8).reshape(-1, 16)[:, :width].copy()
        assert not list(twins_of(ids))
        ids[700] = ids[20]
        assert list(twins_of(ids)) == [(20, 700)]


def hunt(seed: int, **options: Any) -> Outcome:
    """Return the first world with a duplicate, or with an integer below a floor."""
    for index in range(WORLDS):
        outcome = run(seed, index, EVENTS, **options)
        if outcome.duplicates or outcome.below_floor:
            return outcome
    pytest.fail(f"no duplicate in {WORLDS} worlds")


def test_integer_below_a_reported_floor_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    broken_raised_floor(monkeypatch)
    outcome = hunt(1, regions="sequence")
    assert outcome.below_floor
    assert not outcome.duplicates


def test_server_further_behind_than_allowed_is_found() -> None:
    # A window that it forgot outlasts the quarantine.
    [duplicate, *_] = hunt(1, regions="sn", apart_ms=rules.CLOCK_MARGIN_MS + 3_500).duplicates
    assert "--apart-ms 4500" in str(duplicate)


def broken_name(patch: pytest.MonkeyPatch) -> None:
    """Use the second store under a name in processes that find both."""
    find = VirtualStore.find

    def newest(self: VirtualStore) -> Ledgerbook:
        if self.second is None or self._world.current.serial in self.finders:
            return find(self)
        return self.second

    patch.setattr(VirtualStore, "find", newest)


def broken_fence(patch: pytest.MonkeyPatch) -> None:
    """Mint past the end of a window."""
    window = LeaseClient.window

    def too_long(self: LeaseClient, max_wait_ms: int) -> tuple[int, int, int, int, int]:
        serial, node, floor, until, due = window(self, max_wait_ms)
        return serial, node, floor, until + 10_000, due

    patch.setattr(LeaseClient, "window", too_long)


def broken_token(patch: pytest.MonkeyPatch) -> None:
    """Accept every extension; the answer is as the caller expects it."""
    extend = rules.extend

    def anybodys(record: NodeRecord | None, lease: Lease, **now: Any) -> NodeRecord:
        token = (record and record.token) or "anybody's"
        extended = extend(record and replace(record, token=token), replace(lease, token=token), **now)
        return replace(extended, floor_ms=lease.floor_ms)

    patch.setattr(rules, "extend", anybodys)


def broken_older_token(patch: pytest.MonkeyPatch) -> None:
    """Accept every token of a grant, not only the last."""
    extend = rules.extend

    def of_the_grant(record: NodeRecord | None, lease: Lease, *, next_token: str, **now: Any) -> NodeRecord:
        if record and record.token and record.token != next_token and record.floor_ms <= lease.floor_ms:
            lease = replace(lease, token=record.token)
        return extend(record, lease, next_token=next_token, **now)

    patch.setattr(rules, "extend", of_the_grant)


def broken_draw(patch: pytest.MonkeyPatch) -> None:
    """Derive the next token from the state that copies share."""
    plan = LeaseClient.plan

    def from_memory(self: LeaseClient) -> Callable[[], Callable[[], None]]:
        known = self._lease.token if self._lease else ""
        patch.setattr(lease_client, "new_token", lambda: f"{crc32(known.encode()):x}")
        return plan(self)

    patch.setattr(LeaseClient, "plan", from_memory)


def broken_rebirth(patch: pytest.MonkeyPatch) -> None:
    """Keep the lease of a process that is notified of its copies."""

    def goes_on(self: LeaseClient) -> None:
        self._serial += 1

    patch.setattr(LeaseClient, "reset", goes_on)


def broken_durability(patch: pytest.MonkeyPatch) -> None:
    """Answer before the store has written, without noticing the loss."""
    fail_over = VirtualStore.fail_over

    def in_secret(self: VirtualStore, transactions: int, to: str = "") -> None:
        identity = self.book.identity
        fail_over(self, transactions, to)
        self.book.identity = identity

    patch.setattr(VirtualStore, "fail_over", in_secret)


def broken_quarantine(patch: pytest.MonkeyPatch) -> None:
    """Grant node numbers without a quarantine after a failover."""

    def at_once(pool: PoolRecord, identity: str, *_: int) -> PoolRecord:
        return replace(pool, identity=identity)

    patch.setattr(rules, "note_server", at_once)


def broken_creation(patch: pytest.MonkeyPatch) -> None:
    """Create a pool without a quarantine on a store that may have lost it."""
    create_pool = Ledger.create_pool

    def unused(self: Ledger, pool: str, *, layout: str, span_ms: int) -> PoolRecord:
        return create_pool(self, pool, layout=layout, span_ms=span_ms, never_used=True)

    patch.setattr(Ledger, "create_pool", unused)


def broken_continuity(patch: pytest.MonkeyPatch) -> None:
    """Extend an ended window after a failover."""
    extend = rules.extend

    def anyway(record: NodeRecord | None, lease: Lease, *, server_id: str, **now: Any) -> NodeRecord:
        changes = {"changes": record.changes} if record else {}
        return replace(
            extend(record, lease, server_id=record.identity if record else server_id, **now | changes),
            identity=server_id,
        )

    patch.setattr(rules, "extend", anyway)


def broken_count(patch: pytest.MonkeyPatch) -> None:
    """Extend an ended window on the server that granted it, whatever server was in between."""
    extend = rules.extend

    def uncounted(record: NodeRecord | None, lease: Lease, *, changes: int = 0, **now: Any) -> NodeRecord:
        return extend(record, lease, changes=record.changes if record else changes, **now)

    patch.setattr(rules, "extend", uncounted)


def broken_note(patch: pytest.MonkeyPatch) -> None:
    """Do not record the server of an extension in the pool."""

    def read(_: Ledger, t: Transaction, name: str, __: ServerIdentity) -> PoolRecord | None:
        return t.get_unlocked(PoolRecord, name)

    patch.setattr(Ledger, "_noted", read)


def broken_floor(patch: pytest.MonkeyPatch) -> None:
    """Begin a window before the last one of its number has ended."""
    grant = rules.grant

    def from_the_start(pool: PoolRecord, _: NodeRecord | None, node: int, **terms: Any) -> NodeRecord:
        return grant(replace(pool, floor_ms=0), None, node, **terms)

    patch.setattr(rules, "grant", from_the_start)


def broken_release(patch: pytest.MonkeyPatch) -> None:
    """Release a lease as if nothing had been minted."""
    release = rules.release
    patch.setattr(rules, "release", lambda record, lease, used_until_ms: release(record, lease, used_until_ms=0))


def broken_skip(patch: pytest.MonkeyPatch) -> None:
    """Continue a namespace without a gap after a failover."""

    def goes_on(namespace: NamespaceRecord, identity: str) -> NamespaceRecord:
        return replace(namespace, identity=identity)

    patch.setattr(rules, "note_server_of_namespace", goes_on)


def broken_raised_floor(patch: pytest.MonkeyPatch) -> None:
    """Use the buffer of a sequence whatever floor a segment reports."""
    offer = SegmentClient._offer
    patch.setattr(SegmentClient, "_offer", lambda self, segment, most: offer(self, replace(segment, floor=0), most))


def broken_serial(patch: pytest.MonkeyPatch) -> None:
    """Accept every segment that ends where the last reservation does."""
    give_back = rules.give_back

    def any_segment_that_ends_there(
        namespace: NamespaceRecord, segment: Segment, first_unused: int
    ) -> NamespaceRecord | None:
        return give_back(namespace, replace(segment, serial=namespace.serial), first_unused)

    patch.setattr(rules, "give_back", any_segment_that_ends_there)


def broken_spending(patch: pytest.MonkeyPatch) -> None:
    """Keep the serial when a segment is returned."""
    give_back = rules.give_back

    def again_and_again(namespace: NamespaceRecord, segment: Segment, first_unused: int) -> NamespaceRecord | None:
        taken = give_back(namespace, segment, first_unused)
        return taken and replace(taken, serial=namespace.serial, serial_before=segment.serial)

    patch.setattr(rules, "give_back", again_and_again)


def broken_memory(patch: pytest.MonkeyPatch) -> None:
    """Mint the same IDs again."""
    mint = World.mint

    def again(self: World, process: Process) -> None:
        mint(self, process)
        kept = self.batches[process.region.name]
        kept.append(kept[-1])

    patch.setattr(World, "mint", again)


# With seeds that show it soon.
BROKEN = [
    pytest.param(broken_fence, 4, {}, id="fence"),
    pytest.param(broken_token, 1, {"regions": "sn"}, id="token"),
    pytest.param(broken_token, 1, {"regions": "ulid"}, id="token of a ulid's node"),
    pytest.param(broken_fence, 1, {"regions": "objectid"}, id="fence of an objectid's process"),
    *[
        pytest.param(broken_token, 4, {"regions": region.name}, id=f"token of a node of {region.name}")
        for region in LEASED
    ],
    pytest.param(broken_memory, 1, {"regions": "sn"}, id="memory"),
    pytest.param(broken_memory, 1, {"regions": "ulid"}, id="memory of who mints a ulid"),
    pytest.param(broken_older_token, 6, {"regions": "sn"}, id="older token"),
    pytest.param(broken_draw, 1, {"regions": "sn"}, id="draw"),
    pytest.param(broken_rebirth, 8, {"regions": "sn"}, id="rebirth"),
    pytest.param(broken_durability, 1, {}, id="durability"),
    pytest.param(broken_quarantine, 1, {"regions": "sn"}, id="quarantine"),
    pytest.param(broken_creation, 1, {"regions": "sn"}, id="creation"),
    pytest.param(broken_continuity, 1, {"regions": "snowflake"}, id="continuity"),
    pytest.param(broken_count, 6, {"regions": "sn"}, id="count"),
    pytest.param(broken_note, 4, {"regions": "sn"}, id="note"),
    pytest.param(broken_floor, 8, {"regions": "snowflake"}, id="floor"),
    pytest.param(broken_release, 1, {"regions": "sn"}, id="release"),
    pytest.param(broken_skip, 1, {"regions": "sequence"}, id="skip"),
    pytest.param(broken_serial, 1, {"regions": "sequence"}, id="serial"),
    pytest.param(broken_name, 32, {"regions": "sn"}, id="name"),
    pytest.param(broken_name, 8, {"regions": "sequence"}, id="name of a store of integers"),
    pytest.param(broken_spending, 1, {"regions": "sequence"}, id="spending"),
]


@pytest.mark.parametrize(("break_it", "seed", "options"), BROKEN)
def test_broken_rule_is_found(
    break_it: Callable[[pytest.MonkeyPatch], None], seed: int, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    [duplicate, *_] = hunt(seed, **options).duplicates
    assert f"--seed {seed} --world {duplicate.world}" in str(duplicate)
