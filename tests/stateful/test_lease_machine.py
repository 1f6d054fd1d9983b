"""Tests of leases as state machines: wrong clocks, cloned holders, a server that forgets, and lost replies.

The machines know only the granted values and the use that holders may have made of them. Broken rules show that they
would find a duplicate.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from mintage import rules
from mintage.errors import LeaseError
from mintage.rules import (
    CLOCK_LIMIT_MS,
    CLOCK_MARGIN_MS,
    GAP,
    MIN_SPAN_MS,
    Lease,
    NamespaceRecord,
    NodeRecord,
    PoolRecord,
    Segment,
)
from mintage.store import new_token
from mintage.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

START = 1_700_000_000_000
NODES = 2
LARGEST = 5
"""The largest reserved count: the gap covers ten times as many forgotten integers."""

hosts = st.integers(0, 2)
anyone = st.integers(0, 10**6)
is_lost = st.sampled_from([False] * 7 + [True])


@dataclass
class Grant:
    """The window of a node number, as its holder knows it."""

    lease: Lease
    host: int
    serial: int
    """The token of the grant, which all copies of its holder know."""
    own_from_ms: int = 0
    """A copy owns what it was granted after the cloning; it shares the rest of the window."""
    shared_until_ms: int = 0
    """The end of the window that it last shared with a copy."""
    is_over: bool = False
    """Released by its holder, which uses no more of it."""


@dataclass
class Reserved:
    """A segment, as its holder knows it: integers below ``stop`` may be used."""

    segment: Segment
    stop: int
    is_whole: bool = True
    """True if nothing of it was returned, as far as its holder knows."""


@contextmanager
def refused(*codes: str) -> Iterator[None]:
    """Accept that a verb is refused for one of these reasons."""
    refusal = None
    try:
        yield
    except LeaseError as error:
        refusal = error.code
    assert refusal in {None, *codes}


class Forgetful(MemoryStore):
    """A store whose server can be replaced by one that missed the last writes."""

    def remember(self) -> dict[Any, Any]:
        return {kind: dict(table) for kind, table in self._records.tables.items()}

    def fail_over(self, remembered: dict[Any, Any]) -> None:
        records = self._records
        records.identity += "'"
        records.tables = {kind: dict(table) for kind, table in remembered.items()}


class LeaseMachine(RuleBasedStateMachine):
    """Hosts that lease node numbers, pause for as long as they like, and go on where they were."""

    @initialize(span_ms=st.sampled_from([MIN_SPAN_MS, 10_000, 60_000]))
    def begin(self, span_ms: int) -> None:
        self.now_ms = START
        self.span_ms = span_ms
        self.server_skew_ms = 0
        self.store = Forgetful(clock=lambda: self.now_ms + self.server_skew_ms)
        self.skews_ms = [0] * 3
        self.grants: list[Grant] = []
        self.granted = 0
        # The span is known before anything can be forgotten.
        self.acquire(0, range(1), never_used=False, lost=False)
        self.remembered = self.store.remember()

    def clock_ms(self, host: int) -> int:
        return self.now_ms + self.skews_ms[host]

    @rule(ms=st.one_of(st.integers(0, 20), st.integers(0, 2_000), st.integers(0, 200_000)))
    def time_passes(self, ms: int) -> None:
        self.now_ms += ms

    @rule(at=anyone, ms=st.integers(-1, 1))
    def time_passes_to_about_the_end_of_a_window(self, at: int, ms: int) -> None:
        grant = self.grants[at % len(self.grants)]
        self.now_ms = max(self.now_ms, grant.lease.until_ms - self.skews_ms[grant.host] + ms)

    @rule(ms=st.integers(-1, 1))
    def time_passes_to_about_the_end_of_the_quarantine(self, ms: int) -> None:
        (pool,) = self.store.list_pools()
        self.now_ms = max(self.now_ms, pool.quarantine_until_ms + ms)

    @rule(host=hosts, ms=st.one_of(st.sampled_from([-CLOCK_LIMIT_MS, 0, CLOCK_LIMIT_MS]), st.integers(-6_000, 6_000)))
    def a_clock_is_set(self, host: int, ms: int) -> None:
        self.skews_ms[host] = ms

    @rule(
        host=hosts,
        nodes=st.sampled_from([range(1), range(1), range(1, NODES), range(NODES)]),
        never_used=st.sampled_from([False, False, False, True]),
        lost=is_lost,
    )
    def acquire(self, host: int, nodes: range, never_used: bool, lost: bool) -> None:
        with refused("lease.none_free", "lease.clock"):
            lease = self.store.acquire(
                "p",
                nodes=nodes,
                layout="test",
                holder=str(host),
                now_ms=self.clock_ms(host),
                span_ms=self.span_ms,
                never_used=never_used,
            )
            assert lease.node in nodes
            assert lease.floor_ms < lease.until_ms
            assert not never_used or lease.node not in {grant.lease.node for grant in self.grants}
            self.granted += 1
            if not lost:
                self.grants.append(Grant(lease, host, self.granted))

    @rule(at=anyone, lost=is_lost)
    def extend(self, at: int, lost: bool) -> None:
        # Any lease, however old: its holder may have been paused.
        grant = self.grants[at % len(self.grants)]
        if grant.is_over:
            return
        with refused("lease.lost", "lease.clock"):
            lease = self.store.extend(grant.lease, now_ms=self.clock_ms(grant.host), next_token=new_token())
            if not lost:
                grant.lease = replace(lease, until_ms=max(lease.until_ms, grant.lease.until_ms))

    @rule(at=anyone, used_ms=st.one_of(st.just(-START), st.integers(-2_000, 2_000)))
    def release(self, at: int, used_ms: int) -> None:
        grant = self.grants[at % len(self.grants)]
        if grant.is_over:
            return
        lease = grant.lease
        used_until_ms = min(lease.until_ms, self.clock_ms(grant.host) + used_ms)
        with refused("lease.lost"):
            self.store.release(lease, used_until_ms=used_until_ms)
        grant.lease = replace(lease, until_ms=max(lease.floor_ms, used_until_ms))
        grant.is_over = True

    @rule(node=st.integers(0, NODES))
    def revoke(self, node: int) -> None:
        with refused("lease.unknown"):
            self.store.revoke("p", node)

    @rule()
    def a_replica_catches_up(self) -> None:
        self.remembered = self.store.remember()

    def forgets_a_copy(self) -> bool:
        """Return True if a replica has not received the writes of a copy unknown to others: then both may go on."""
        now, then = (state[NodeRecord] for state in (self.store.remember(), self.remembered))
        copied = {grant.lease.node for grant in self.grants if grant.own_from_ms}
        return any(
            key not in then or then[key].token != record.token
            for key, record in now.items()
            if record.node in copied
            and any(grant.lease.token != record.token for grant in self.grants if grant.lease.node == record.node)
        )

    @precondition(lambda self: not self.forgets_a_copy())
    @rule(skew_ms=st.integers(-CLOCK_MARGIN_MS // 2, CLOCK_MARGIN_MS // 2))
    def a_replica_takes_over(self, skew_ms: int) -> None:
        self.server_skew_ms = skew_ms
        self.store.fail_over(self.remembered)

    @invariant()
    def no_two_windows_of_a_node_number_overlap(self) -> None:
        # Shared resources of copies may be granted to others once one copy has released them.
        given_back = {grant.serial for grant in self.grants if grant.is_over}
        by_node = defaultdict(list)
        for grant in self.grants:
            begin = max(grant.lease.floor_ms, grant.own_from_ms)
            if grant.serial in given_back:
                begin = max(begin, grant.shared_until_ms)
            if begin < grant.lease.until_ms:
                by_node[grant.lease.node].append((begin, grant.lease.until_ms))
        for windows in by_node.values():
            for (_, end), (begin, _) in pairwise(sorted(windows)):
                assert end <= begin, "two windows overlap"


class CopyMachine(LeaseMachine):
    """Hosts that lease node numbers, and holders that are cloned."""

    @rule(at=anyone, host=hosts)
    def a_holder_becomes_two(self, at: int, host: int) -> None:
        grant = self.grants[at % len(self.grants)]
        if not grant.is_over:
            grant.shared_until_ms = grant.lease.until_ms
            self.grants.append(replace(grant, host=host, own_from_ms=grant.lease.until_ms))


class SegmentMachine(RuleBasedStateMachine):
    """Hosts that reserve integers, and give back the unused ones."""

    @initialize(stride=st.integers(1, 3))
    def begin(self, stride: int) -> None:
        self.stride = stride
        self.store = Forgetful()
        self.store.create_namespace("n", stride=stride)
        self.segments: list[Reserved] = []
        self.given_back: list[tuple[Segment, int]] = []
        self.floor = self.remembered_floor = 0
        # The largest count is known before anything can be forgotten.
        self.reserve(LARGEST, lost=False)
        self.remembered = self.store.remember()

    @rule(count=st.integers(1, LARGEST), lost=is_lost)
    def reserve(self, count: int, lost: bool) -> None:
        segment = self.store.reserve("n", count)
        assert (len(segment), segment.stride) == (count, self.stride)
        assert segment.first >= self.floor, "it begins below the floor"
        assert segment.floor == self.floor, "it tells of another floor"
        if not lost:
            self.segments.append(Reserved(segment, segment.last + 1))

    @rule(at=anyone, used=st.integers(0, LARGEST))
    def give_back(self, at: int, used: int) -> None:
        reserved = self.segments[-1 - at % len(self.segments)]
        unused = reserved.segment.first + used * self.stride
        # A holder returns it once and never uses it again; the store may receive the request again.
        if reserved.is_whole and unused < reserved.stop:
            reserved.is_whole, reserved.stop = False, unused
            self.given_back.append((reserved.segment, unused))
            self.store.give_back(reserved.segment, unused)

    @precondition(lambda self: self.given_back)
    @rule(at=st.integers(0, 3))
    def a_give_back_is_delivered_again(self, at: int) -> None:
        self.store.give_back(*self.given_back[-1 - at % len(self.given_back)])

    @rule(ahead=st.integers(-10, 10))
    def raise_floor(self, ahead: int) -> None:
        value = max(0, self.segments[-1].segment.last + ahead)
        self.floor = max(self.floor, value)
        assert self.store.raise_floor("n", value).floor == self.floor, "it tells of another floor"

    @rule()
    def a_replica_catches_up(self) -> None:
        self.remembered, self.remembered_floor = self.store.remember(), self.floor

    def forgotten(self) -> int:
        """Return how many integers a replica has not received."""
        high_waters = [state[NamespaceRecord]["n",].high_water for state in (self.store.remember(), self.remembered)]
        return int(high_waters[0] - high_waters[1]) // self.stride

    @precondition(lambda self: self.forgotten() <= GAP * LARGEST)
    @rule()
    def a_replica_takes_over(self) -> None:
        self.store.fail_over(self.remembered)
        self.floor = self.remembered_floor

    @invariant()
    def no_two_segments_overlap(self) -> None:
        ranges = sorted((one.segment.first, one.stop) for one in self.segments if one.segment.first < one.stop)
        for (_, end), (begin, _) in pairwise(ranges):
            assert end <= begin, "two segments overlap"


TestLeasesKeepTheirRules = LeaseMachine.TestCase
TestCopiesKeepTheirRules = CopyMachine.TestCase
TestSegmentsKeepTheirRules = SegmentMachine.TestCase


def test_tail_of_one_successor_is_not_taken_back_on_another() -> None:
    machine = SegmentMachine()
    machine.begin(stride=1)
    # Two servers take over from the same replica: each reserves the same integers first.
    machine.a_replica_takes_over()
    machine.reserve(2, lost=False)
    machine.give_back(at=0, used=0)
    machine.a_replica_takes_over()
    machine.reserve(2, lost=False)
    machine.a_give_back_is_delivered_again(at=0)
    machine.reserve(1, lost=False)
    machine.no_two_segments_overlap()


# --- broken rules ---------------------------------------------------------------------------------------------------

kept_extend, kept_release, kept_grant = rules.extend, rules.release, rules.grant
kept_raise_floor, kept_give_back, kept_reserve = rules.raise_floor, rules.give_back, rules.reserve


def extend_without_a_token(record: NodeRecord | None, lease: Lease, **options: Any) -> NodeRecord:
    if record is None:
        return kept_extend(record, lease, **options)
    return kept_extend(replace(record, token=lease.token), lease, **options)


def extend_and_keep_the_token(record: NodeRecord | None, lease: Lease, **options: Any) -> NodeRecord:
    return replace(kept_extend(record, lease, **options), token=lease.token)


def release_without_a_token(record: NodeRecord | None, lease: Lease, *, used_until_ms: int) -> NodeRecord:
    if record is None:
        return kept_release(record, lease, used_until_ms=used_until_ms)
    return kept_release(replace(record, token=lease.token), lease, used_until_ms=used_until_ms)


def release_below_the_floor(record: NodeRecord | None, lease: Lease, *, used_until_ms: int) -> NodeRecord:
    released = kept_release(record, lease, used_until_ms=used_until_ms)
    return replace(released, until_ms=min(released.until_ms, used_until_ms))


def grant_from_the_beginning(pool: PoolRecord, record: NodeRecord | None, node: int, **options: Any) -> object:
    return kept_grant(pool, None, node, **options)


def note_no_server(pool: PoolRecord, identity: str, *_: object) -> PoolRecord:
    return replace(pool, identity=identity)


def note_no_server_of_namespace(namespace: NamespaceRecord, identity: str) -> NamespaceRecord:
    return replace(namespace, identity=identity)


def note_a_server_for_a_tenth_of_a_span(
    pool: PoolRecord, identity: str, store_now_ms: int, limit_ms: int = CLOCK_LIMIT_MS
) -> PoolRecord:
    if pool.identity == identity:
        return pool
    end = store_now_ms + pool.span_ms // 10
    return replace(pool, identity=identity, floor_ms=end, quarantine_until_ms=end, history_lost=True)


def take_any_tail_back(namespace: NamespaceRecord, segment: Segment, first_unused: int) -> NamespaceRecord | None:
    return replace(namespace, high_water=min(namespace.high_water, first_unused - namespace.stride))


def take_back_whatever_ends_there(
    namespace: NamespaceRecord, segment: Segment, first_unused: int
) -> NamespaceRecord | None:
    return kept_give_back(namespace, replace(segment, serial=namespace.serial), first_unused)


def take_back_and_count_nothing(
    namespace: NamespaceRecord, segment: Segment, first_unused: int
) -> NamespaceRecord | None:
    taken = kept_give_back(namespace, segment, first_unused)
    return taken and replace(taken, serial=namespace.serial)


def reserve_and_count_nothing(namespace: NamespaceRecord, count: int) -> tuple[NamespaceRecord, Segment]:
    moved, segment = kept_reserve(namespace, count)
    return replace(moved, serial=1), replace(segment, serial=1)


def raise_no_floor_of_what_is_held(namespace: NamespaceRecord, value: int) -> NamespaceRecord:
    return replace(kept_raise_floor(namespace, value), floor=namespace.floor)


def move_the_floor_back(namespace: NamespaceRecord, value: int) -> NamespaceRecord:
    return replace(kept_raise_floor(namespace, value), floor=value)


def reserve_what_was_reserved(namespace: NamespaceRecord, count: int) -> tuple[NamespaceRecord, Segment]:
    first = namespace.high_water
    last = first + (count - 1) * namespace.stride
    return replace(namespace, high_water=last), Segment(namespace.name, first, last, namespace.stride)


@pytest.mark.parametrize(
    ("machine", "name", "broken"),
    [
        (LeaseMachine, "extend", extend_without_a_token),
        (CopyMachine, "extend", extend_and_keep_the_token),
        (LeaseMachine, "release", release_without_a_token),
        (LeaseMachine, "release", release_below_the_floor),
        (LeaseMachine, "grant", grant_from_the_beginning),
        (LeaseMachine, "note_server", note_no_server),
        (LeaseMachine, "note_server", note_a_server_for_a_tenth_of_a_span),
        (SegmentMachine, "note_server_of_namespace", note_no_server_of_namespace),
        (SegmentMachine, "give_back", take_any_tail_back),
        (SegmentMachine, "give_back", take_back_whatever_ends_there),
        (SegmentMachine, "give_back", take_back_and_count_nothing),
        (SegmentMachine, "reserve", reserve_and_count_nothing),
        (SegmentMachine, "raise_floor", raise_no_floor_of_what_is_held),
        (SegmentMachine, "raise_floor", move_the_floor_back),
        (SegmentMachine, "reserve", reserve_what_was_reserved),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
@pytest.mark.timeout(900)  # the search takes random time, and machines are slow
def test_broken_rule_is_found(
    monkeypatch: pytest.MonkeyPatch,
    machine: type[RuleBasedStateMachine],
    name: str,
    broken: Callable[..., object],
) -> None:
    monkeypatch.setattr(rules, name, broken)
    # Found is enough.
    search = settings(
        max_examples=5_000, stateful_step_count=80, phases=[Phase.generate], database=None, derandomize=True
    )
    with pytest.raises(AssertionError, match=r"overlap|floor"):
        run_state_machine_as_test(machine, settings=search)
