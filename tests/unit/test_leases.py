"""Tests of leased generators: they mint only inside their windows, and their errors name the remedy."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from mintage import locality, release_all, sno, snowflake
from mintage._core.formats import read_pool_layout
from mintage.errors import ConfigError, GenerationError, LeaseError, StoreError
from mintage.formats.kinds import KINDS, NAMES
from mintage.lease import registry
from mintage.store.memory import MemoryStore
from mintage.testing import ManualClock
from tests.helpers.outcomes import code_of

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 10**9
MS = 10**6
NOW_MS = 1_700_000_000_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS * MS)


@pytest.fixture
def store(clock: ManualClock) -> MemoryStore:
    """Return a store with the clock of the generators."""
    return MemoryStore(clock=lambda: clock.now_ns // MS)


LAYOUTS = {name: layout[0] for name in NAMES if (layout := read_pool_layout(name))}
"""The schemes that lease, and the layouts of their pools."""
DEFAULT_NEEDS_STORE = {"sno", "snowflake", "locality"}
"""Those that lease without an option; the others have random bits."""
OWN_NUMBER = {"sno": "partition", "locality": "pid", "objectid": "process", "sandflake": "worker"}
"""The arguments that are not called ``node``."""
GENERATORS: dict[str, Any] = {name: KINDS[name].module.Generator for name in LAYOUTS}


def unit_ms(scheme: str) -> int:
    """Return the resolution that separates one holder of a number from the next, in milliseconds."""
    if scheme in {"snowflake", "locality"}:
        return {"snowflake": 1, "locality": 2_048}[scheme]
    module = KINDS[scheme].module
    following = module.ID.from_int(int(module.max_at(NOW_MS * MS)) + 1)
    return time_ms(scheme, following) - time_ms(scheme, module.min_at(NOW_MS * MS))


def lease_elsewhere(store: MemoryStore, scheme: str, node: int) -> None:
    """Lease a node number as another process."""
    store.acquire(
        scheme,
        nodes=range(node, node + 1),
        layout=LAYOUTS[scheme],
        holder="elsewhere",
        now_ms=store.now_ms(),
        span_ms=10_000,
    )


@pytest.fixture(params=GENERATORS)
def scheme(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def time_ms(scheme: str, minted: Any) -> int:
    if scheme == "snowflake":
        return int(snowflake.DEFAULT.parse(minted).timestamp_ms)
    return int(minted.timestamp_ns // MS if scheme == "sno" else minted.timestamp_ms)


SIGNALLED = """
import sys
from mintage import errors, snowflake

class Signal:
    \"\"\"A signal that arrives in the middle of an import.\"\"\"

    def find_spec(self, name, *_):
        if name == "mintage.lease.registry":
            sys.meta_path.remove(self)
            try:
                snowflake.Generator().new()
            except errors.StoreError as error:
                print(error.code, error.retry_after_ms)

sys.meta_path.insert(0, Signal())
print(snowflake.Generator().new() > 0)
"""


def test_signal_handler_that_mints_first_is_refused(tmp_path: Path) -> None:
    environment = {**os.environ, "MINTAGE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", SIGNALLED], check=True, stdout=subprocess.PIPE, env=environment)
    assert done.stdout.split() == [b"store.unavailable", b"100", b"True"]


def test_generators_of_one_store_have_different_node_numbers(
    store: MemoryStore, clock: ManualClock, scheme: str
) -> None:
    make = GENERATORS[scheme]
    ids = {make(store=store, clock=clock).new() for _ in range(1)} | {
        generator.new() for generator in [make(store=store, clock=clock) for _ in range(4)]
    }
    assert len(ids) == 5
    assert len(store.list_leases()) >= 4


def test_clickhouse_66010_and_cap_1322_hundred_servers_have_own_nodes(store: MemoryStore, clock: ManualClock) -> None:
    """With ten bits of a UUID or MAC address as the number, two of them collide in 99 of 100 cases."""
    generators = [snowflake.Generator(store=store, clock=clock) for _ in range(100)]
    ids = {generator.new() for generator in generators}
    assert len({snowflake.DEFAULT.parse(one).node for one in ids}) == len(ids) == 100


@pytest.mark.usefixtures("inline")
def test_no_id_is_minted_outside_the_window_at_any_clock(store: MemoryStore, clock: ManualClock, scheme: str) -> None:
    generator = GENERATORS[scheme](store=store, clock=clock, max_wait_ms=0)
    for step_ms in [0, 9_999, 1, 20_000, -30_000, 3_600_000, 5]:
        clock.advance(step_ms * MS)
        try:
            minted = time_ms(scheme, generator.new())
        except (GenerationError, LeaseError):
            continue
        (record,) = store.list_leases()
        # Where a tick is longer than 1 ms the floor is rounded up, the end down.
        assert record.floor_ms <= minted < record.until_ms


@pytest.mark.usefixtures("inline")
def test_paused_generator_whose_number_was_granted_raises_lease_lost(
    store: MemoryStore, clock: ManualClock, scheme: str
) -> None:
    paused = GENERATORS[scheme](store=store, clock=clock, nodes=range(7, 8))
    paused.new()
    clock.advance(3600 * SECOND)
    lease_elsewhere(store, scheme, 7)
    with pytest.raises(LeaseError, match=r'create a new generator, or .* with on_lease_lost="move"$') as caught:
        paused.new()
    assert caught.value.code == "lease.lost"
    assert code_of(paused.new) == "lease.lost"


@pytest.mark.usefixtures("inline")
def test_generator_may_move_to_another_lease(store: MemoryStore, clock: ManualClock) -> None:
    paused = snowflake.Generator(store=store, clock=clock, nodes=range(2), on_lease_lost="move")
    before = paused.new()
    clock.advance(3600 * SECOND)
    lease_elsewhere(store, "snowflake", 0)
    assert paused.new() != before
    assert paused.node == 1


@pytest.mark.usefixtures("inline")
def test_holder_of_a_number_outside_the_share_moves_or_stops(store: MemoryStore, clock: ManualClock) -> None:
    terms: dict[str, Any] = {"store": store, "clock": clock}
    moving = snowflake.Generator(on_lease_lost="move", **terms)
    fixed = snowflake.Generator(node=1, **terms)
    assert (moving.new() > 0, moving.node, fixed.new() > 0) == (True, 0, True)
    [pool] = store.list_pools()
    store.create_pool("snowflake", layout=pool.layout, nodes=range(2, 1024))
    assert moving.new() != fixed.new()  # both windows run to their ends
    clock.advance(3600 * SECOND)
    assert (moving.new() > 0, moving.node) == (True, 2)
    assert code_of(fixed.new) == "lease.lost"
    assert code_of(snowflake.Generator(node=1, **terms).new) == "config.node"


@pytest.mark.usefixtures("inline")
def test_expired_lease_continues_if_its_number_is_still_free(
    store: MemoryStore, clock: ManualClock, scheme: str
) -> None:
    generator = GENERATORS[scheme](store=store, clock=clock)
    first = generator.new()
    clock.advance(3600 * SECOND)
    assert generator.new() != first


@pytest.mark.usefixtures("inline")
def test_revoked_lease_is_used_to_the_end_of_its_window(store: MemoryStore, clock: ManualClock) -> None:
    generator = snowflake.Generator(3, store=store, clock=clock, span_ms=10_000)
    generator.new()
    store.revoke("snowflake", 3)
    clock.advance(9 * SECOND)
    generator.new()
    clock.advance(2 * SECOND)
    assert code_of(generator.new) == "lease.lost"


@pytest.mark.usefixtures("inline")
def test_closed_generator_releases_its_number_at_the_last_used_time(
    store: MemoryStore, clock: ManualClock, scheme: str
) -> None:
    generator = GENERATORS[scheme](store=store, clock=clock, nodes=range(1))
    minted = time_ms(scheme, generator.new())
    generator.close()
    (record,) = store.list_leases()
    assert record.token is None
    assert minted < record.until_ms <= minted + unit_ms(scheme)
    assert code_of(generator.new) == "generator.closed"


@pytest.mark.usefixtures("inline")
def test_next_holder_of_a_number_starts_where_the_last_one_stopped(
    store: MemoryStore, clock: ManualClock, scheme: str
) -> None:
    ids: list[Any] = []
    for _ in range(20):
        with GENERATORS[scheme](store=store, clock=clock, nodes=range(1), max_wait_ms=10_000) as generator:
            ids += [generator.new() for _ in range(3)]
        # It comes free once the clock has passed the used time.
        clock.advance(unit_ms(scheme) * MS)
    assert len(set(ids)) == 60


def test_garbage_collected_generator_releases_its_number(store: MemoryStore, clock: ManualClock) -> None:
    for _ in range(20):
        snowflake.Generator(store=store, clock=clock, nodes=range(2)).new()
        clock.advance(2 * MS)
        gc.collect()


@pytest.mark.usefixtures("inline")
def test_release_of_a_collected_generator_keeps_its_minted_times(
    store: MemoryStore, clock: ManualClock, scheme: str
) -> None:
    generator = GENERATORS[scheme](store=store, clock=clock, nodes=range(1))
    for _ in range(10):
        clock.advance(unit_ms(scheme) * MS)
        generator.new()
    minted_ms = clock() // MS
    del generator
    gc.collect()
    # As at the end of a process, which releases all leases before the keeper learns of the collected generator.
    release_all()
    (record,) = store.list_leases()
    assert record.until_ms > minted_ms - unit_ms(scheme)


@pytest.mark.usefixtures("inline")
def test_shards_divide_the_sequence_numbers_of_a_partition(store: MemoryStore, clock: ManualClock) -> None:
    generators = [sno.Generator(5, shards=4, store=store, clock=clock) for _ in range(4)]
    ids = [generator.new() for generator in generators]
    assert {minted.partition for minted in ids} == {5}
    assert sorted(minted.sequence for minted in ids) == [0, 16_384, 32_768, 49_152]
    assert {generator.capacity for generator in generators} == {16_384}
    fifth = sno.Generator(5, shards=4, store=store, clock=clock, max_wait_ms=0)
    assert code_of(fifth.new) == "lease.none_free"


@pytest.mark.usefixtures("inline")
def test_first_call_of_a_shard_mints_within_the_shard(store: MemoryStore, clock: ManualClock) -> None:
    old = clock.now_ns - 10**6 * MS
    first, second = (sno.Generator(shards=4, store=store, clock=clock, never_used=True) for _ in range(2))
    assert first.capacity == 16_384
    one, other = first.nth_at(old, 20_000), second.nth_at(old, 20_000 - 16_384)
    assert (one.sequence, other.sequence) == (20_000 - 16_384, 20_000)
    assert one.timestamp_ns - other.timestamp_ns == 4 * MS


@pytest.mark.parametrize("shards", [0, 3, 16_384, -1])
def test_number_of_shards_is_a_power_of_two(shards: int) -> None:
    assert code_of(lambda: sno.Generator(shards=shards, store="memory:")) in {"config.bounds", "field.range"}


def test_shards_and_bounds_exclude_each_other() -> None:
    assert code_of(lambda: sno.Generator(shards=2, sequence_max=100, store="memory:")) == "config.bounds"


@pytest.mark.usefixtures("inline")
def test_chosen_number_is_refused_to_a_second_holder(store: MemoryStore, clock: ManualClock, scheme: str) -> None:
    make: Any = GENERATORS[scheme]
    own: dict[str, Any] = {OWN_NUMBER.get(scheme, "node"): 7}
    if scheme == "locality":
        own["mac"] = "0000007"
    with make(store=store, clock=clock, **own) as first:
        first.new()
        assert code_of(make(store=store, clock=clock, max_wait_ms=0, **own).new) == "lease.none_free"


def test_node_number_and_nodes_exclude_each_other() -> None:
    assert code_of(lambda: snowflake.Generator(1, nodes=range(5), store="memory:")) == "config.node"


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("nodes", [{3, 17, 900}, [900, range(17, 18), 3], (range(3, 4), 17, 17, 900)], ids=repr)
def test_numbers_of_a_set_are_leased(nodes: Any, store: MemoryStore, clock: ManualClock) -> None:
    holders = [snowflake.Generator(store=store, clock=clock, nodes=nodes) for _ in range(3)]
    assert [snowflake.DEFAULT.parse(each.new()).node for each in holders] == [3, 17, 900]


@pytest.mark.usefixtures("inline")
def test_refusal_of_a_set_names_it_and_the_soonest_number(store: MemoryStore, clock: ManualClock) -> None:
    spans = {3: 30_000, 17: 20_000, 900: 25_000}
    holders = [snowflake.Generator(node, store=store, clock=clock, span_ms=ms) for node, ms in spans.items()]
    assert all(each.new() for each in holders)
    late = snowflake.Generator(store=store, clock=clock, nodes={3, 17, 900}, max_wait_ms=0)
    with pytest.raises(LeaseError, match=r"^no node number of 3, 17, 900 can be leased; .* number 17 of") as caught:
        late.new()
    assert (caught.value.code, caught.value.retry_after_ms) == ("lease.none_free", 20_000)


class Share(MemoryStore):
    """A store whose pools have the numbers below 8 alone."""

    def acquire(self, pool: str, **options: Any) -> Any:
        if options["nodes"].start >= 8:
            raise ConfigError(f"{options['nodes']} is outside the pool", code="config.node")
        return super().acquire(pool, **options)


@pytest.mark.usefixtures("inline")
def test_range_that_a_pool_has_not_is_passed_over(clock: ManualClock) -> None:
    store = Share(clock=lambda: clock.now_ns // MS)
    options: dict[str, Any] = {"store": store, "clock": clock, "max_wait_ms": 0}
    with snowflake.Generator(nodes={5, 900}, **options) as within:
        within.new()
        assert within.node == 5
        assert code_of(snowflake.Generator(nodes={5, 900}, **options).new) == "lease.none_free"
    with pytest.raises(ConfigError, match="has no node number of 10, 900: ") as caught:
        snowflake.Generator(nodes={10, 900}, **options).new()
    assert caught.value.code == "config.node"


@pytest.mark.usefixtures("inline")
def test_64_ranges_are_tried(store: MemoryStore, clock: ManualClock) -> None:
    chosen = set(range(0, 128, 2))
    holders = [snowflake.Generator(store=store, clock=clock, nodes=chosen) for _ in range(64)]
    assert {snowflake.DEFAULT.parse(each.new()).node for each in holders} == chosen


@pytest.mark.usefixtures("inline")
def test_backfill_requires_a_never_used_number(store: MemoryStore, clock: ManualClock) -> None:
    past = (NOW_MS - 10**9) * MS
    usual = sno.Generator(store=store, clock=clock)
    with pytest.raises(LeaseError, match="never_used=True") as caught:
        usual.new_at(past)
    assert caught.value.code == "lease.history"
    exclusive = sno.Generator(store=store, clock=clock, never_used=True)
    assert exclusive.new_at(past).partition != usual.new().partition


@pytest.mark.usefixtures("inline")
def test_recently_released_number_is_not_never_used(store: MemoryStore, clock: ManualClock) -> None:
    with sno.Generator(store=store, clock=clock, nodes=range(1)) as usual:
        usual.new()
    clock.advance(SECOND)
    exclusive = sno.Generator(store=store, clock=clock, nodes=range(1), never_used=True, max_wait_ms=0)
    assert code_of(exclusive.new) == "lease.none_free"


@pytest.mark.usefixtures("inline")
def test_generator_that_needs_no_lease_asks_no_store(
    scheme: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MINTAGE_STORE", f"sqlite:///{tmp_path}/missing/store.db")
    make = GENERATORS[scheme]
    make(**{OWN_NUMBER.get(scheme, "node"): 7}).new()
    if scheme in DEFAULT_NEEDS_STORE:
        assert code_of(make(max_wait_ms=0).new).startswith("store.")
    else:
        make().new()
        KINDS[scheme].module.new()


@pytest.mark.usefixtures("inline")
def test_store_of_the_environment_knows_earlier_holders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MINTAGE_STORE", f"sqlite:///{tmp_path}/store.db")
    assert code_of(lambda: sno.Generator().new_at(NOW_MS * MS)) == "lease.history"
    assert sno.Generator(never_used=True).new_at(NOW_MS * MS).timestamp_ns == NOW_MS * MS


@pytest.mark.usefixtures("inline")
def test_ported_ids_are_never_minted_again(store: MemoryStore, clock: ManualClock) -> None:
    now = clock.now_ns
    porting = sno.Generator(store=store, clock=clock, never_used=True, nodes=range(5, 6))
    ported = [porting.new_at(now - 4 * MS), porting.new_at(now - 10**6 * MS)]
    for time in (now, now + 4 * MS, now + 10**6 * MS):
        # From its lease on, times are those of new().
        assert code_of(lambda: porting.new_at(time)) == "lease.history"  # noqa: B023
    porting.close()
    (record,) = store.list_leases()
    assert record.token is None
    # Where a later holder begins, whatever its clock says.
    assert record.until_ms >= now // MS > max(one.timestamp_ns for one in ported) // MS


@pytest.mark.usefixtures("inline")
def test_ported_and_minted_ids_never_collide(store: MemoryStore, clock: ManualClock) -> None:
    generator = sno.Generator(store=store, clock=clock, never_used=True)
    generator.new_at(clock.now_ns - 4 * MS)
    clock.advance(-4 * MS)
    minted = generator.new()
    assert code_of(lambda: generator.new_at(minted.timestamp_ns)) == "lease.history"


@pytest.mark.usefixtures("inline")
def test_generator_ahead_of_its_clock_stops_at_the_window_end(store: MemoryStore, clock: ManualClock) -> None:
    frozen = ManualClock(clock.now_ns, auto_advance=False)
    layout = snowflake.Layout("time:41 node:10", epoch_ms=0)
    generator = snowflake.Generator(
        store=store, layout=layout, clock=frozen, on_exhausted="advance", span_ms=1_000, max_wait_ms=0
    )
    minted = list(generator.batch(1_000))
    assert code_of(generator.new) == "sequence.exhausted"
    (record,) = store.list_leases()
    assert max(layout.parse(one).timestamp_ms for one in minted) == record.until_ms - 1


def test_generator_ahead_of_its_clock_resumes_in_a_longer_window(store: MemoryStore, clock: ManualClock) -> None:
    layout = snowflake.Layout("time:41 node:10", epoch_ms=0)
    generator = snowflake.Generator(
        store=store, layout=layout, clock=clock, on_exhausted="advance", span_ms=1_000, max_wait_ms=60_000
    )
    minted = list(generator.batch(1_000))
    clock.advance(500 * MS)
    minted += generator.batch(400)
    assert len(set(minted)) == 1_400


@pytest.mark.usefixtures("inline")
@pytest.mark.parametrize("on_lease_lost", ["raise", "move"])
def test_generator_ahead_of_its_clock_does_not_spin_without_a_lease(
    store: MemoryStore, clock: ManualClock, on_lease_lost: Any
) -> None:
    layout = snowflake.Layout("time:41 node:10", epoch_ms=0)
    generator = snowflake.Generator(
        store=store, layout=layout, clock=clock, on_exhausted="advance", span_ms=1_000, on_lease_lost=on_lease_lost
    )
    generator.batch(1_000)
    (record,) = store.list_leases()
    store.revoke(record.pool, record.node)
    if on_lease_lost == "raise":
        assert code_of(generator.new) == "lease.lost"
    else:
        assert layout.parse(generator.new()).node != record.node


def test_unavailable_store_is_waited_for_and_then_reported(clock: ManualClock) -> None:
    class Away(MemoryStore):
        away = True

        def acquire(self, pool: str, **options: Any) -> Any:
            if self.away:
                raise StoreError("the store is away", code="store.unavailable")
            return super().acquire(pool, **options)

    store = Away(clock=lambda: clock.now_ns // MS)
    generator = snowflake.Generator(store=store, clock=clock, max_wait_ms=50)
    with pytest.raises(StoreError) as caught:
        generator.new()
    assert caught.value.code == "store.unavailable"
    assert caught.value.retry_after_ms is not None
    assert 0 < caught.value.retry_after_ms <= 1000
    store.away = False
    patient = snowflake.Generator(store=store, clock=clock, max_wait_ms=60_000)
    assert patient.new()


def test_many_threads_wait_for_one_lease(clock: ManualClock) -> None:
    store = MemoryStore(clock=lambda: clock.now_ns // MS)
    generator = sno.Generator(store=store, clock=clock, max_wait_ms=60_000)
    ids: list[sno.ID] = []
    threads = [threading.Thread(target=lambda: ids.extend(generator.batch(100))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 800
    assert len(store.list_leases()) == 1


def test_child_has_a_lease_of_its_own(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/ids.db"
    generator = snowflake.Generator(store=url, max_wait_ms=60_000)
    mine = generator.node
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writer, str(generator.node).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, encoding="ascii") as pipe:
        theirs = int(pipe.read())
    os.waitpid(child, 0)
    assert theirs != mine
    assert generator.node == mine


def test_pools_of_two_layouts_are_not_mixed(store: MemoryStore, clock: ManualClock) -> None:
    snowflake.Generator(store=store, clock=clock, pool="ids").new()
    with pytest.raises(ConfigError, match="name another pool") as caught:
        snowflake.Generator(store=store, clock=clock, pool="ids", layout=snowflake.TWITTER).new()
    assert caught.value.code == "config.pool"


def test_every_snowflake_layout_has_its_own_pool(store: MemoryStore, clock: ManualClock) -> None:
    for layout in [snowflake.DEFAULT, snowflake.TWITTER, snowflake.DISCORD, snowflake.SONYFLAKE]:
        snowflake.Generator(store=store, clock=clock, layout=layout).new()
    assert len(store.list_pools()) == 4


def test_locality_node_number_defaults_to_its_pid_and_mac(store: MemoryStore, clock: ManualClock) -> None:
    first, second = (locality.Generator(store=store, clock=clock) for _ in range(2))
    assert first.pid == second.pid == os.getpid() % 65536
    assert first.mac != second.mac


def test_token_of_a_lease_is_in_no_repr(store: MemoryStore, clock: ManualClock) -> None:
    generator = snowflake.Generator(store=store, clock=clock)
    generator.new()
    (record,) = store.list_leases()
    assert record.token
    assert record.token not in f"{record!r}{record.as_lease()!r}{generator!r}{store!r}"


# --- snapshots ------------------------------------------------------------------------------------------------------


def test_leased_snapshot_is_restored_only_with_a_lease(store: MemoryStore, clock: ManualClock) -> None:
    generator = sno.Generator(store=store, clock=clock, nodes=range(7, 9))
    minted = [generator.new() for _ in range(100)]
    snapshot = pickle.loads(pickle.dumps(generator.snapshot()))
    assert (snapshot.leased, snapshot.pool, snapshot.shards, snapshot.partition) == (True, "sno", 1, 7)
    with pytest.raises(ConfigError, match=r"pass store=.*registry\.db") as refused:
        sno.Generator.restore(snapshot, clock=clock)
    assert refused.value.code == "config.snapshot"
    restored = sno.Generator.restore(snapshot, store=store, clock=clock)
    assert code_of(restored.new) == "lease.none_free", "its generator lives"
    minted += [generator.new() for _ in range(100)]
    generator.close()
    clock.advance(SECOND)
    restored = sno.Generator.restore(snapshot, store=store, clock=clock)
    minted += [restored.new() for _ in range(100)]
    assert {one.partition for one in minted} == {restored.partition} == {7}
    assert len(set(minted)) == 300
    again = sno.Generator.restore(snapshot, store=store, clock=clock)
    assert code_of(again.new) == "lease.none_free", "another goes on from the same snapshot"
    restored.close()
    clock.advance(SECOND)
    third = sno.Generator.restore(snapshot, store=store, clock=clock)
    assert len({*minted, third.new()}) == 301
    assert third.snapshot().leased


def test_snapshot_of_a_default_generator_is_leased_of_the_registry() -> None:
    generator = sno.Generator()
    minted, snapshot = [generator.new() for _ in range(1000)], generator.snapshot()
    assert code_of(lambda: sno.Generator.restore(snapshot)) == "config.snapshot"
    generator.close()
    with sno.Generator.restore(snapshot, store=registry.url()) as restored:
        minted += [restored.new() for _ in range(1000)]
    assert len(set(minted)) == 2000
    assert {one.partition for one in minted} == {snapshot.partition}


def test_leased_snapshot_uses_the_store_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINTAGE_STORE", f"sqlite:///{tmp_path}/ids.db")
    with sno.Generator(pool="orders") as generator:
        minted, snapshot = generator.new(), generator.snapshot()
    with sno.Generator.restore(snapshot) as restored:
        assert restored.new() != minted
        assert restored.snapshot().pool == "orders"
    with sno.Generator.restore(sno.Snapshot(7)) as unleased:
        assert not unleased.snapshot().leased, "a number of the user's own is no store's"


def test_snapshot_of_a_shard_leases_that_shard(store: MemoryStore, clock: ManualClock) -> None:
    first, generator = (sno.Generator(store=store, clock=clock, shards=4, nodes=range(4, 8)) for _ in range(2))
    first.new()
    minted, snapshot = generator.new(), generator.snapshot()
    assert (snapshot.partition, snapshot.shards, snapshot.sequence_min, snapshot.sequence_max) == (1, 4, 16384, 32767)
    generator.close()
    clock.advance(SECOND)
    restored = sno.Generator.restore(snapshot, store=store, clock=clock)
    assert (restored.new().sequence, restored.capacity, minted.sequence) == (16384, 16384, 16384)
    assert [lease.node for lease in store.list_leases() if lease.token] == [4, 5]
    other = sno.Snapshot(1, 1, 400, pool="sno", shards=4)
    assert code_of(lambda: sno.Generator.restore(other, store=store)) == "config.snapshot"


def test_restored_lease_begins_after_both_timelines_of_its_snapshot(store: MemoryStore, clock: ManualClock) -> None:
    """The store is another than that of the generator, and knows nothing of its IDs."""
    generator = sno.Generator(store=store, clock=clock)
    minted = [generator.new()]
    clock.advance(-3600 * SECOND)
    minted.append(generator.new())
    assert [one.tick for one in minted] == [0, 1]
    snapshot = generator.snapshot()
    elsewhere = MemoryStore(clock=lambda: clock.now_ns // MS)
    restored = sno.Generator.restore(snapshot, store=elsewhere, clock=clock, max_wait_ms=10_000)
    assert code_of(restored.new) == "clock.rollback"
    clock.set(minted[0].timestamp_ns)
    minted += [restored.new() for _ in range(100)]
    assert len(set(minted)) == 102
    assert minted[2].timestamp_ns == minted[0].timestamp_ns + 4 * MS


def test_unleased_snapshot_leases_its_own_number_on_request(store: MemoryStore, clock: ManualClock) -> None:
    with sno.Generator(9, sequence_max=99, clock=clock) as generator:
        minted, snapshot = generator.new(), generator.snapshot()
    assert (snapshot.leased, snapshot.pool) == (False, None)
    with sno.Generator.restore(snapshot, clock=clock) as exact:
        assert exact.new().sequence == minted.sequence + 1
    with sno.Generator.restore(snapshot, store=store, clock=clock, span_ms=5_000) as restored:
        one = restored.new()
        assert (one.partition, restored.capacity, restored.snapshot().leased) == (9, 100, True)
        assert one > minted
        [lease] = store.list_leases()
        assert (lease.node, lease.until_ms - NOW_MS) == (9, 5_000)


@pytest.mark.parametrize("keyword", ["nodes", "never_used", "colour"])
def test_snapshot_is_restored_with_its_own_number(store: MemoryStore, keyword: str) -> None:
    options: Any = {keyword: None}
    with pytest.raises(TypeError, match=keyword):
        sno.Generator.restore(sno.Snapshot(1), store=store, **options)
