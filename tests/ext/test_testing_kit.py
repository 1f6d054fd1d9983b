"""Tests of the test kit: freezing all of mintage, bridges to time travel libraries, and strategies."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import freezegun
import pytest
import time_machine
from hypothesis import find, given, settings
from hypothesis import strategies as st

from mintage import Sequence, cuid, errors, locality, sno, snowflake, testing, typeid, ulid, uuid
from mintage._core import defaults, generation
from mintage.errors import FieldError, MintError
from mintage.ext.hypothesis import ids, snowflakes, texts, typeids
from mintage.formats.kinds import KINDS, Kind
from mintage.sno import new as imported_by_name
from mintage.store.memory import MemoryStore
from mintage.testing import FollowingClock, ManualClock, follow, freeze
from tests.helpers.processes import in_child
from tests.servers.server import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytest_plugins = ["pytester"]

NOW = "2026-01-01T00:00:00Z"
THEN = datetime(2026, 1, 1, tzinfo=UTC)
PAST, FUTURE = datetime(2016, 3, 4, tzinfo=UTC), datetime(2056, 2, 6, tzinfo=UTC)

MINTERS: dict[str, Callable[[], Any]] = {
    **{f"{name}.new": KINDS[name].module.new for name in KINDS},
    "from mintage.sno import new": imported_by_name,
    "uuid.uuid1": uuid.uuid1,
    "uuid.uuid4": uuid.uuid4,
    "uuid.uuid6": uuid.uuid6,
    "uuid.uuid7": uuid.uuid7,
    "uuid.uuid8": uuid.uuid8,
}
"""Each function that mints with a default generator, imported long before a test."""


def time_of_new_of(name: str) -> Any:
    return KINDS[name].new().time


TIMED: dict[str, Callable[[], datetime]] = {
    **{name: partial(time_of_new_of, name) for name, kind in KINDS.items() if kind.size and not kind.layout},
    "snowflake": lambda: snowflake.DEFAULT.parse(snowflake.new()).time,
    "cuid": lambda: cuid.parse(cuid.new()).time,
    "uuid1": lambda: uuid.ID.from_uuid(uuid.uuid1()).time,
    "uuid7": lambda: uuid.ID.from_uuid(uuid.uuid7()).time,
}
"""The times of newly minted IDs that have one."""

each_minter = pytest.mark.parametrize("mint", MINTERS.values(), ids=list(MINTERS))
each_timed = pytest.mark.parametrize("time_of_new", TIMED.values(), ids=list(TIMED))
each_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))


# --- freeze -------------------------------------------------------------------------------------------------------


@each_minter
def test_frozen_ids_are_the_same_each_time_and_never_twice(mint: Callable[[], Any]) -> None:
    runs = []
    for _ in range(2):
        with freeze(NOW):
            runs.append([mint() for _ in range(100)])
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 100


def test_kart_120_another_process_freezes_the_same_ids() -> None:
    program = f"""
from mintage.testing import freeze
from mintage.formats.kinds import KINDS
from mintage import uuid
with freeze({NOW!r}):
    print(*[each.module.new() for each in KINDS.values()], uuid.uuid4(), uuid.uuid1())
"""
    environment = {**os.environ, "MINTAGE_STORE": "postgresql://127.0.0.1:1/nowhere"}
    there = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    with freeze(NOW):
        here = [str(each.module.new()) for each in KINDS.values()] + [str(uuid.uuid4()), str(uuid.uuid1())]
    assert there.stdout.split() == here


@pytest.mark.parametrize("name", ["nanoid", "cuid2", "ulid", "uuid", "cuid"])
def test_another_seed_gives_other_randomness(name: str) -> None:
    drawn = set()
    for seed in (0, 1, 2**64 - 1):
        with freeze(NOW, seed=seed):
            drawn.add(KINDS[name].module.new())
    assert len(drawn) == 3


@each_timed
@pytest.mark.parametrize("at", [PAST, FUTURE, int(THEN.timestamp()) * 10**9, NOW, "2026-01-01"])
def test_ids_are_of_the_frozen_time(time_of_new: Callable[[], datetime], at: Any) -> None:
    moment = at if isinstance(at, datetime) else THEN
    with freeze(at) as clock:
        found = time_of_new()
        clock.advance(5 * 10**9)
        assert moment - timedelta(seconds=1) < found <= moment
        assert moment + timedelta(seconds=4) < time_of_new() <= moment + timedelta(seconds=5)


def test_node_number_is_the_given_one() -> None:
    with freeze(NOW):
        assert sno.new().partition == testing.NODE
    with freeze(NOW, node=77):
        assert sno.new().partition == 77
        assert snowflake.DEFAULT.parse(snowflake.new()).node == 77
        assert locality.new().pid == 77
        for name in ("xid", "objectid", "sandflake"):
            generator = next(each for each in defaults() if type(each).__module__ == f"mintage.{name}")
            assert getattr(generator, KINDS[name].node) == 77


@each_minter
@pytest.mark.parametrize("at", [PAST, FUTURE])
def test_minting_continues_normally_afterwards(mint: Callable[[], Any], at: datetime) -> None:
    generators = defaults()
    before = [mint() for _ in range(50)]
    with freeze(at):
        frozen = [mint() for _ in range(50)]
    after = [mint() for _ in range(50)]
    assert len({*before, *frozen, *after}) == 150
    assert [*map(id, defaults())] == [*map(id, generators)]
    if mint in {sno.new, snowflake.new, uuid.new, uuid.uuid7, imported_by_name}:
        assert before + after == sorted(before + after)


def test_time_machine_601_future_test_does_not_affect_the_next() -> None:
    with freeze(FUTURE):
        assert uuid.ID.from_uuid(uuid.uuid7()).time == FUTURE
    with freeze(PAST):
        assert uuid.ID.from_uuid(uuid.uuid7()).time == PAST
    assert abs(uuid.ID.from_uuid(uuid.uuid7()).time - datetime.now(UTC)) < timedelta(seconds=60)


def test_nested_freeze_ends_where_it_began() -> None:
    with freeze(PAST):
        with freeze(FUTURE):
            assert sno.new().time == FUTURE
        assert sno.new().time == PAST


def test_overlapping_freezes_end_with_the_last() -> None:
    generators = [*map(id, defaults())]
    first, second = freeze(PAST), freeze(FUTURE)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sno.new().time == FUTURE
    second.__exit__(None, None, None)
    assert [*map(id, defaults())] == generators


def test_freeze_ends_with_an_error_or_garbage_collection() -> None:
    generators = [*map(id, defaults())]
    with pytest.raises(ZeroDivisionError), freeze(NOW):
        raise ZeroDivisionError
    forgotten = freeze(NOW)
    forgotten.__enter__()
    del forgotten
    assert [*map(id, defaults())] == generators


def test_freeze_is_a_decorator() -> None:
    @freeze(NOW)
    def first() -> sno.ID:
        return sno.new()

    assert first() == first()
    assert first().time == THEN


AWAY = "postgresql://127.0.0.1:1/nowhere"

GENERATORS: dict[str, Callable[[], Any]] = {
    **{name: KINDS[name].module.Generator for name in KINDS},
    **{f"uuid v{version}": partial(uuid.Generator, version=version) for version in (1, 4, 6)},
    "uuid v1 of a MAC": partial(uuid.Generator, version=1, mac=0x0A1B2C3D4E5F),
    "typeid": partial(typeid.Generator, "user"),
    "typeid of ulid": lambda: typeid.Generator("user", ulid.Generator()),
    "sno of a partition": partial(sno.Generator, 5, meta=7, sequence_min=10, sequence_max=99),
    "sno of shards": partial(sno.Generator, shards=4, pool="shards"),
    "snowflake of a layout": partial(snowflake.Generator, 5, layout=snowflake.TWITTER, on_exhausted="advance"),
    "locality of a mode": partial(locality.Generator, "sequential"),
    "ulid of a node": partial(ulid.Generator, 5),
    **{
        f"leased {name}": partial(KINDS[name].module.Generator, store=AWAY)
        for name in ("sno", "snowflake", "locality", "ulid", "uuid", "objectid")
    },
}
"""Generators as an application declares them, none with a clock."""

each_generator = pytest.mark.parametrize("make", GENERATORS.values(), ids=list(GENERATORS))


@each_generator
def test_own_generators_are_frozen(make: Callable[[], Any]) -> None:
    before, runs = make(), []
    for _ in range(2):
        with freeze(NOW):
            inside = make()
            minted = [each for generator in (before, inside) for each in (generator.new(), next(generator))]
            runs.append([*minted, *before.batch(3), *inside.batch(3)])
    assert runs[0] == runs[1]
    # Two generators that were given one node number mint the same IDs, frozen or not.
    assert len(set(runs[0])) == 10 or 5 in getattr(make, "args", ())


@each_generator
def test_own_generators_go_on_where_they_were(make: Callable[[], Any]) -> None:
    here = partial(make, **({"store": None} if "store" in getattr(make, "keywords", {}) else {}))
    own = here()
    before = [own.new() for _ in range(50)]
    with freeze(FUTURE):
        inside = here()
        frozen = [own.new() for _ in range(50)]
        inside.new()
    after = [own.new() for _ in range(50)]
    assert len({*before, *frozen, *after}) == 150
    assert inside.new() not in frozen


def test_own_generators_have_the_frozen_time_and_their_node_number() -> None:
    own, named = snowflake.Generator(node=5), typeid.Generator("user")
    with freeze(PAST) as clock:
        assert snowflake.DEFAULT.parse(own.new()).time == PAST
        assert (own.node, own.layout) == (5, snowflake.DEFAULT)
        assert named.new().time == PAST
        clock.advance(3600 * 10**9)
        assert named.new().time == PAST + timedelta(hours=1)
    assert (named.new().time or PAST) > THEN


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (partial(sno.Generator, 5), "partition"),
        (partial(sno.Generator, 5, shards=4, pool="shards"), "partition"),
        (partial(snowflake.Generator, 5), "node"),
        (partial(locality.Generator, pid=5), "pid"),
        (partial(ulid.Generator, 5), "node"),
        (partial(uuid.Generator, 5), "node"),
    ],
)
def test_leased_number_that_was_asked_for_is_kept_while_frozen(make: Callable[..., Any], name: str) -> None:
    own = make(store=AWAY)
    with freeze(NOW):
        assert getattr(own, name) == 5


def test_mode_of_a_frozen_generator_does_not_outlast_the_freeze() -> None:
    own = locality.Generator(pid=5)
    with freeze(NOW):
        own.use_mode("sequential")
        frozen: str = own.mode
    assert (frozen, own.mode) == ("sequential", "variable")


def test_frozen_generators_ask_no_store(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'store.db'}"
    orders, numbers = sno.Generator(store=url), Sequence("orders", url)
    with freeze(NOW):
        assert orders.new().time == THEN
        assert numbers.next() == 1
        with sno.Generator(store=url) as inside:
            assert inside.partition != orders.partition != sno.new().partition
    assert not (tmp_path / "store.db").exists()
    orders.close()


def test_frozen_sequences_of_a_namespace_count_from_1() -> None:
    with freeze(NOW):
        orders, other = (Sequence(name, AWAY) for name in ("orders", "other"))
        taken = [orders.next(), *orders.reserve(2), next(Sequence("orders", AWAY)), *orders.batch(2)[0]]
        assert taken == [*range(1, 7)]
        assert other.next() == 1
    with freeze(NOW):
        assert orders.next() == 1


def test_sequence_goes_on_where_it_was_after_a_freeze() -> None:
    orders = Sequence("orders", MemoryStore())
    assert orders.next() == 1
    with freeze(NOW):
        assert [*orders.batch(500)[0]] == [*range(1, 501)]
    assert [orders.next(), *orders.reserve(2)] == [2, 3, 4]


def test_leasing_generators_get_numbers_from_the_largest_on() -> None:
    with freeze(NOW):
        ulid.Generator().new()
        made = [snowflake.Generator(store=AWAY) for _ in range(3)]
        assert [each.node for each in made] == [1023, 1022, 1021]
        assert snowflake.DEFAULT.parse(snowflake.new()).node == testing.NODE


def test_generator_that_is_freed_leaves_its_number_unused() -> None:
    with freeze(NOW):
        minted = {snowflake.Generator(store=AWAY).new() for _ in range(100)}
    assert len(minted) == 100


def test_inner_freeze_does_not_restart_own_generators() -> None:
    own = ulid.Generator()
    with freeze(NOW):
        first = own.new()
        with freeze(NOW):
            assert own.new() == first
        assert own.new() > first


def test_closed_generator_stays_closed_while_frozen() -> None:
    made = [make() for make in (sno.Generator, ulid.Generator, KINDS["nanoid"].module.Generator)]
    for each in made:
        with freeze(NOW):
            each.new()
            each.close()
            with pytest.raises(errors.GenerationError, match="is closed"):
                each.new()


def test_generator_with_a_clock_keeps_it_while_frozen() -> None:
    own = snowflake.Generator(node=5, clock=ManualClock(int(FUTURE.timestamp()) * 10**9))
    with freeze(PAST):
        assert snowflake.DEFAULT.parse(own.new()).time == FUTURE


def test_new_at_and_snapshot_work_while_frozen() -> None:
    with freeze(NOW), sno.Generator(store=AWAY) as own:
        assert own.new_at(PAST).time == PAST
        assert own.nth_at(FUTURE, 5).sequence == 5
        own.new()
        assert (own.sequence, own.used) == (0, 1)
        assert own.snapshot().partition == own.partition


def test_child_mints_no_frozen_id_of_a_generator_of_its_parent() -> None:
    own, numbers, named = sno.Generator(5), Sequence("orders", AWAY), typeid.Generator("user")

    def found_in_child() -> list[str]:
        makers = (own.new, sno.Generator(store=AWAY).new, numbers.next, Sequence("other", AWAY).next)
        found = []
        for each in makers:
            with pytest.raises(MintError) as caught:
                each()
            found.append(caught.value.code)
        return [*found, str(named.new()), str(sno.Generator(7).new().partition)]

    with freeze(NOW):
        minted = [str(named.new()) for _ in range(3)]
        *codes, random, partition = in_child(found_in_child)
        assert codes == ["fork.shared_node"] * 2 + ["store.refused"] * 2
        assert random not in [*minted, *(str(named.new()) for _ in range(100))]
        assert partition == "7"


def test_child_may_freeze_the_generators_of_its_parent() -> None:
    own, numbers = sno.Generator(5), Sequence("orders", AWAY)

    def frozen() -> list[int]:
        with freeze(NOW):
            return [own.new().partition, numbers.next()]

    assert in_child(frozen) == [5, 1]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"at": datetime(2026, 1, 1)}, "time.naive"),  # noqa: DTZ001
        ({"at": "tomorrow"}, "time.range"),
        ({"at": "9" * 5000}, "time.range"),
        ({"at": 1 << 200}, "field.range"),
        ({"at": None}, "argument.type"),
        ({"at": True}, "argument.type"),
        ({"at": NOW, "node": 1024}, "config.node"),
        ({"at": NOW, "node": -1}, "config.node"),
        ({"at": NOW, "node": "one"}, "argument.type"),
        ({"at": NOW, "seed": -1}, "field.range"),
        ({"at": NOW, "seed": 1 << 64}, "field.range"),
        ({"at": NOW, "seed": 0.5}, "argument.type"),
    ],
)
def test_invalid_arguments_are_refused_and_freeze_nothing(wrong: dict[str, Any], code: str) -> None:
    generators = [*map(id, defaults())]
    with pytest.raises(MintError) as caught, freeze(**wrong):
        pass
    assert caught.value.code == code
    assert len(str(caught.value)) < 300
    assert [*map(id, defaults())] == generators


def test_child_mints_no_frozen_id_of_its_parent() -> None:
    with freeze(NOW):
        mine = {str(KINDS[name].module.new()) for name in ("nanoid", "ulid", "cuid", "cuid2")}
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            codes = []
            for name in ("sno", "snowflake", "xid"):
                try:
                    codes.append(str(KINDS[name].module.new()))
                except errors.GenerationError as error:
                    codes.append(error.code)
            found = [*codes, *(str(KINDS[name].module.new()) for name in ("nanoid", "ulid", "cuid", "cuid2"))]
            os.write(write, " ".join(found).encode())
            os._exit(0)
        os.waitpid(child, 0)
        found = os.read(read, 10_000).decode().split()
    assert found[:3] == ["fork.shared_node"] * 3
    assert not mine & set(found)


def test_threads_minting_during_start_and_end_are_undisturbed() -> None:
    minted: list[sno.ID] = []
    numbered: list[int] = []
    stop = threading.Event()
    own, numbers = sno.Generator(5), Sequence("orders", MemoryStore(), max_wait_ms=60_000)
    real_ones_begin_at = numbers.reserve(1_000_000)[-1]

    def mint() -> None:
        while not stop.is_set():
            minted.extend([sno.new(meta=1), sno.new(), own.new(), *own.batch(2)])
            numbered.append(numbers.next())

    threads = [threading.Thread(target=mint) for _ in range(2)]
    for each in threads:
        each.start()
    until(lambda: len(numbered) > 100, "the threads mint")
    for _ in range(200):
        with freeze(PAST):
            pass
    stop.set()
    for each in threads:
        each.join()
    real = [each for each in minted if each.time > THEN]
    assert {each.partition == 5 for each in real} == {True, False}
    assert len(set(real)) == len(real)
    taken = [each for each in numbered if each >= real_ones_begin_at]
    assert taken
    assert len(set(taken)) == len(taken)


# --- follow -------------------------------------------------------------------------------------------------------


def travelled(to: datetime) -> Any:
    return time_machine.travel(to, tick=False)


each_traveller = pytest.mark.parametrize(
    "travel", [travelled, freezegun.freeze_time], ids=["time-machine", "freezegun"]
)


@each_timed
@each_traveller
def test_module_functions_are_frozen(travel: Any, time_of_new: Callable[[], datetime]) -> None:
    with follow(), travel(FUTURE):
        assert FUTURE - timedelta(seconds=1) < time_of_new() <= FUTURE


@each_timed
@each_traveller
def test_freezegun_154_196_216_and_time_machine_648_time_can_go_back(
    travel: Any, time_of_new: Callable[[], datetime]
) -> None:
    with follow():
        for to in (FUTURE, PAST, THEN, PAST):
            with travel(to):
                assert to - timedelta(seconds=1) < time_of_new() <= to


@each_minter
@each_traveller
def test_no_id_repeats_when_a_test_goes_back_in_time(travel: Any, mint: Callable[[], Any]) -> None:
    minted = []
    with follow():
        for to in (FUTURE, PAST, FUTURE, PAST, PAST):
            with travel(to):
                minted += [mint() for _ in range(10)]
    assert len(set(minted)) == 50


@each_traveller
def test_exhausted_tick_of_frozen_time_is_not_waited_for(travel: Any) -> None:
    with follow(), travel(THEN):
        minted = [snowflake.new() for _ in range(10_000)]
    assert len(set(minted)) == 10_000
    assert minted == sorted(minted)


def test_own_generators_follow_travelled_time() -> None:
    own, named = snowflake.Generator(store=AWAY), typeid.Generator("user")
    with follow():
        for to in (FUTURE, PAST):
            with travelled(to):
                assert snowflake.DEFAULT.parse(own.new()).time == named.new().time == to


def test_following_clock_can_be_given_to_a_generator() -> None:
    own = snowflake.Generator(node=5, clock=FollowingClock())
    with travelled(FUTURE):
        assert snowflake.DEFAULT.parse(own.new()).time == FUTURE
    with travelled(PAST):
        assert snowflake.DEFAULT.parse(own.new()).time == PAST


def test_node_numbers_recur_after_enough_journeys_back() -> None:
    clock = FollowingClock()
    layout = snowflake.Layout("time:43 node:3 sequence:12", epoch_ms=0)
    own, other = (snowflake.Generator(node=node, layout=layout, clock=clock) for node in (0, 4))
    minted, others = [], []
    for to in (FUTURE, PAST) * 9:
        with travelled(to):
            minted.append(own.new())
            others.append(other.new())
    # Every second journey is one back: 8 numbers last for 8 of them, and generators 4 numbers apart for 4.
    assert [layout.parse(one).node for one in minted] == [back % 8 for turn in range(9) for back in (turn, turn + 1)]
    assert len({*minted[:16]}) == 16
    assert minted[16] == minted[0]
    assert len({*minted[:8], *others[:8]}) == 16
    assert minted[8] == others[0]


@each_traveller
def test_leases_ignore_travelled_time(travel: Any, tmp_path: Path) -> None:
    """Leases of the future in a store would make later holders wait, or jump ahead."""
    url, before, now = f"sqlite:{tmp_path / 'store.db'}", generation(), datetime.now(UTC)
    with travel(FUTURE), snowflake.Generator(store=url) as generator:
        assert abs(snowflake.DEFAULT.parse(generator.new()).time - now) < timedelta(seconds=60)
    from mintage.store import open_store

    with open_store(url) as store:
        assert all(each.until_ms < int(FUTURE.timestamp() * 1000) - 10**9 for each in store.list_leases())
    assert generation() == before


@each_traveller
def test_time_travel_is_not_taken_for_a_restore(travel: Any) -> None:
    from mintage.process.restore import RestoreDetector, Verdict, judge

    detector = RestoreDetector()
    before = detector.fingerprint()
    with travel(FUTURE):
        assert judge(before, detector.fingerprint()) is Verdict.SAME


def test_seed_works_without_frozen_time() -> None:
    first, second = (KINDS["nanoid"].module.Generator(clock=ManualClock(0, seed=9)) for _ in range(2))
    assert [first.new() for _ in range(100_000)] == second.batch(100_000)
    assert repr(FollowingClock(seed=1)) == "FollowingClock()"
    assert abs(FollowingClock()() - time.time_ns()) < 60 * 10**9


# --- the plugin ---------------------------------------------------------------------------------------------------


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., pytest.RunResult]:
    """Run the suite with only this plugin, as the others that are installed here take seconds."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return lambda *options: pytester.runpytest_subprocess("-p", "mintage.ext.pytest", "-p", "xdist", *options)


def test_pytest_and_hypothesis_load_the_plugin_automatically(request: pytest.FixtureRequest) -> None:
    assert request.config.pluginmanager.hasplugin("mintage")
    st.from_type(locality.ID).validate()


SUITE = """
import unittest
from datetime import UTC, datetime, timedelta

import pytest
from mintage import nanoid, sno, snowflake, ulid, uuid
from mintage.sno import new

SEEN = []

def test_fixture_freezes(mintage_clock):
    SEEN.append((sno.new(), snowflake.new(), uuid.uuid7(), uuid.uuid4(), ulid.new(), nanoid.new()))
    assert sno.new().time == datetime(2026, 1, 1, tzinfo=UTC)
    mintage_clock.advance(3600 * 10**9)
    assert new().time == datetime(2026, 1, 1, 1, tzinfo=UTC)

def test_each_test_starts_afresh(mintage_clock):
    assert SEEN == [(sno.new(), snowflake.new(), uuid.uuid7(), uuid.uuid4(), ulid.new(), nanoid.new())]

@pytest.fixture
def row():
    return sno.new()

@pytest.mark.mintage(at="2056-02-06", node=9, seed=3)
def test_marker_works_without_a_fixture(row):
    assert row.time == sno.new().time == datetime(2056, 2, 6, tzinfo=UTC)
    assert row.partition == 9

def test_then_it_has_ended():
    assert abs(sno.new().time - datetime.now(UTC)) < timedelta(minutes=1)

@pytest.mark.mintage(at=datetime(2020, 1, 1, tzinfo=UTC))
class TestClass:
    def test_of_a_class(self):
        assert sno.new().time.year == 2020

    @pytest.mark.mintage(node=7)
    def test_markers_add_up(self, mintage_clock):
        assert (sno.new().time.year, sno.new().partition) == (2020, 7)

@pytest.mark.mintage(at="2021-01-01")
class TestOfUnittest(unittest.TestCase):
    def test_of_unittest(self):
        assert sno.new().time.year == 2021

@pytest.mark.parametrize("n", range(3))
@pytest.mark.mintage(at="2022-01-01")
def test_parameters(n):
    assert sno.new().time.year == 2022
"""


def test_suite_under_the_plugin(pytester: pytest.Pytester, run: Callable[..., pytest.RunResult]) -> None:
    pytester.makepyfile(SUITE)
    result = run("--strict-markers")
    result.assert_outcomes(passed=10)


def test_curie_2235_node_ids_are_the_same_in_each_worker(
    pytester: pytest.Pytester, run: Callable[..., pytest.RunResult]
) -> None:
    """Each worker of xdist collects by itself: an ID in a test name would differ in each."""
    pytester.makepyfile(
        SUITE
        + """
def freshly(name):
    from mintage.formats.kinds import KINDS
    return KINDS[name].module.new()

@pytest.mark.parametrize("id", [freshly(name) for name in ("sno", "locality", "uuid", "ulid", "ksuid", "xid")])
def test_ids_as_parameters(id):
    assert id

@pytest.mark.parametrize("text", [pytest.param(sno.new(), id="one")])
@pytest.mark.parametrize("frozen", ["2026-01-01"])
def test_named(text, frozen):
    assert text
"""
    )
    result = run("-n", "2", "-v")
    result.assert_outcomes(passed=17)
    assert "Different tests were collected" not in result.stdout.str()


def test_text_ids_are_the_same_in_each_worker_where_frozen(
    pytester: pytest.Pytester, run: Callable[..., pytest.RunResult]
) -> None:
    pytester.makepyfile(
        """
import pytest
from mintage import nanoid, snowflake
from mintage.testing import freeze

with freeze("2026-01-01"):
    TEXT, NUMBER = nanoid.new(), snowflake.new()

@pytest.mark.parametrize("id", [TEXT, NUMBER])
def test_one(id):
    assert id
"""
    )
    run("-n", "2").assert_outcomes(passed=2)


TRAVELS = """
import pytest, time_machine, freezegun
from datetime import UTC, datetime
from mintage import sno, snowflake, uuid

FUTURE = datetime(2056, 2, 6, tzinfo=UTC)
snowflake.new()

@time_machine.travel(FUTURE, tick=False)
def test_time_machine():
    assert snowflake.DEFAULT.parse(snowflake.new()).time == FUTURE

@freezegun.freeze_time(FUTURE)
def test_freezegun():
    assert uuid.ID.from_uuid(uuid.uuid7()).time == FUTURE
"""


def test_time_travel_without_a_bridge_is_warned_of(
    pytester: pytest.Pytester, run: Callable[..., pytest.RunResult]
) -> None:
    pytester.makepyfile(TRAVELS.replace(".time == FUTURE", ".time != FUTURE"))
    result = run("-W", "error::mintage.testing.TravelWarning")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*IDs were minted under time_machine*", "*IDs were minted under freezegun*"])
    run().assert_outcomes(passed=2, warnings=2)


def test_time_travel_without_minting_is_not_warned_of(
    pytester: pytest.Pytester, run: Callable[..., pytest.RunResult]
) -> None:
    pytester.makepyfile(TRAVELS.replace("    assert", "    from mintage import ksuid, ulid; lambda:"))
    run("-W", "error::mintage.testing.TravelWarning").assert_outcomes(passed=2)


@pytest.mark.parametrize("how", ["marker", "ini"])
def test_bridge_of_the_plugin(pytester: pytest.Pytester, run: Callable[..., pytest.RunResult], how: str) -> None:
    if how == "ini":
        pytester.makeini("[pytest]\nmintage_follow = true")
        pytester.makepyfile(TRAVELS)
    else:
        pytester.makepyfile("import pytest\npytestmark = pytest.mark.mintage(follow=True)\n" + TRAVELS)
    run("-W", "error::mintage.testing.TravelWarning").assert_outcomes(passed=2)


@pytest.mark.parametrize(
    "marker", ["'2026-01-01'", "when='2026-01-01'", "at='2026-01-01', follow=True", "at='yesterday'", "node=1024"]
)
def test_wrong_marker_is_an_error(pytester: pytest.Pytester, marker: str) -> None:
    pytester.makepyfile(f"import pytest\n@pytest.mark.mintage({marker})\ndef test_one(): pass\n")
    result = pytester.inline_run("-p", "no:cacheprovider")
    assert [len(each) for each in result.listoutcomes()] == [0, 0, 1]


def test_plugin_imports_almost_nothing() -> None:
    program = "import sys, mintage.ext.pytest; print(*sorted(name for name in sys.modules if 'mintage' in name))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"mintage.testing", "mintage.formats.kinds", "mintage.lease.request"} & set(found)


# --- strategies ---------------------------------------------------------------------------------------------------


@each_kind
def test_strategy_yields_ids_of_its_kind(kind: Kind) -> None:
    @settings(max_examples=25)
    @given(ids(kind.name))
    def check(one: Any) -> None:
        assert one.__class__ is kind.python
        assert kind.read(str(one)) == one
        if kind.size and not kind.layout:
            number: Any = one
            assert kind.format.fits(int(number))
            assert number.time.year < 10_000

    check()


@each_kind
def test_shrinking_ends_at_the_smallest_id(kind: Kind) -> None:
    found = find(ids(kind.name), lambda _: True, settings=settings(max_examples=10))
    if kind.name == "sno":
        assert found == sno.ID(bytes(10))
    elif kind.has_time and kind.size:
        assert found == kind.min_at(kind.format.epoch_ns or 0)
    elif kind.size:
        assert (found.counter, found.pid, int(found.mac, 16), found.timestamp_ms) == (0, 0, 0, 0)
    else:
        assert found == {"nanoid": "0" * 21, "cuid": "c1" + "0" * 23, "cuid2": "a" + "0" * 23}[kind.name]


@each_kind
def test_times_are_within_their_bounds(kind: Kind) -> None:
    if kind.is_text and kind.name != "cuid":
        with pytest.raises(errors.ArgumentError):
            ids(kind.name, min_time=THEN)
        return

    def time_of(one: Any) -> datetime:
        if kind.layout:
            return kind.layout.parse(one).time
        return cuid.parse(one).time if kind.is_text else one.time

    @settings(max_examples=25)
    @given(ids(kind.name, min_time=THEN, max_time=THEN + timedelta(hours=1)))
    def check(one: Any) -> None:
        assert THEN <= time_of(one) <= THEN + timedelta(hours=1)

    check()
    assert time_of(find(ids(kind.name, min_time=THEN), lambda _: True, settings=settings(max_examples=10))) == THEN


@pytest.mark.parametrize("first", ["hypothesis", "mintage.ext.hypothesis"])
def test_either_module_can_be_imported_first(first: str) -> None:
    """Hypothesis loads packages with strategies while it is being imported."""
    program = f"import {first}, hypothesis.strategies as st, mintage.sno; st.from_type(mintage.sno.ID).validate()"
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


@given(ids("sno", meta=7, partition=st.sampled_from([3, 5])))
def test_fields_can_be_fixed_by_name(one: sno.ID) -> None:
    assert one.meta == 7
    assert one.partition in {3, 5}


@given(snowflakes(snowflake.TWITTER, worker=7, min_time=THEN))
def test_snowflakes_have_their_layout(one: int) -> None:
    parts = snowflake.TWITTER.parse(one)
    assert 0 <= one < 2**63
    assert parts.time >= THEN


@given(texts("ulid"), st.from_type(sno.ID), st.from_type(uuid.ID))
def test_strategies_exist_for_classes_and_texts(text: str, one: sno.ID, other: uuid.ID) -> None:
    assert len(text) == 26
    assert isinstance(one, sno.ID)
    assert other.version == 7


@settings(max_examples=100)
@given(of_users=typeids("user"), of_any=st.from_type(typeid.ID), chosen=typeids(st.sampled_from(["a", "b_c"])))
def test_typeids_have_the_prefix_and_a_version_7_uuid(
    of_users: typeid.ID, of_any: typeid.ID, chosen: typeid.ID
) -> None:
    assert (of_users.prefix, of_users.as_uuid().version) == ("user", 7)
    assert chosen.prefix in ("a", "b_c")
    assert typeid.ID.parse(str(of_any)) == of_any


def test_typeids_shrink_to_the_smallest_within_their_times() -> None:
    assert str(find(typeids(), lambda _: True)) == "0000000000e008000000000000"
    with pytest.raises(FieldError):
        typeids("User")
    with pytest.raises(FieldError):
        typeids("user", min_time=datetime(2026, 1, 1))  # noqa: DTZ001
    one = find(typeids("user", min_time=PAST), lambda _: True)
    assert uuid.ID(bytes(one)).time == PAST


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"scheme": "nothing"}, "argument.type"),
        ({"scheme": "sno", "colour": 1}, "argument.type"),
        ({"scheme": "nanoid", "random": 1}, "argument.type"),
        ({"scheme": "sno", "meta": 256}, "field.range"),
        ({"scheme": "sno", "meta": "1"}, "argument.type"),
        ({"scheme": "sno", "min_time": datetime(2026, 1, 1)}, "time.naive"),  # noqa: DTZ001
        ({"scheme": "sno", "min_time": 0}, "time.range"),
        ({"scheme": "sno", "max_time": 1 << 80}, "time.range"),
        ({"scheme": "ulid", "min_time": FUTURE, "max_time": PAST}, "time.range"),
        ({"scheme": "ulid", "min_time": "now"}, "argument.type"),
    ],
)
def test_invalid_strategy_arguments_are_refused_at_once(wrong: dict[str, Any], code: str) -> None:
    with pytest.raises(MintError) as caught:
        ids(**wrong)
    assert caught.value.code == code
