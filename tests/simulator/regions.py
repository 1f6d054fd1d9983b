"""Regions: the pools and namespaces of a world, and the generators and sequences that use them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mintage import Sequence, ksuid, ksuid_ms, locality, objectid, sandflake, sno, snowflake, ulid, uuid, xid
from tests.simulator.processes import MS, UserClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulator.processes import Process
    from tests.simulator.world import World

START_MS: Final = 1_760_000_000_000
#: Few numbers a tick, so that generators run ahead of their clocks, to the end of their windows.
NARROW: Final = snowflake.Layout("time:43 node:12 sequence:6", epoch_ms=START_MS - 86_400_000)


@dataclass(frozen=True)
class Region:
    """A pool or a namespace, whose IDs must all differ."""

    name: str
    width: int
    """Bytes of an ID."""
    make: Callable[[World, Process], Any]
    time_ms: Callable[[bytes], int]
    """An ID's time in milliseconds since the Unix epoch, or the integer."""
    place: tuple[tuple[int, int], ...] = ()
    """The bits of an ID, from the first, that are its time, its node number, and what is the same in all of them, where
    others are random: no two processes may have one place. Empty where all of its bytes are compared."""
    node: Callable[[bytes], int] | None = None
    """An ID's node number, where it has one field for that."""


def _terms(world: World, process: Process, size: int) -> dict[str, Any]:
    """Return the arguments that all leased generators share. Most processes want the same few numbers."""
    draw = world.random
    size = min(size, world.numbers)
    first = draw.randrange(size) if draw.random() < 0.2 else 0
    process.user_clock = UserClock(world, process) if draw.random() < 0.1 else None
    return {
        "store": world.store,
        "nodes": range(first, size),
        "span_ms": world.span_ms,
        "pool": process.region.name,
        "on_lease_lost": draw.choice(("raise", "move")),
        "clock": process.user_clock or process.clock,
        # With the clock of a user, real time would have to pass.
        "max_wait_ms": 0 if process.user_clock else draw.choice((0, 50, 5000)),
        "never_used": draw.random() < 0.02,
    }


def _sno(world: World, process: Process) -> sno.Generator:
    return sno.Generator(**_terms(world, process, 65_536))


def _sharded(world: World, process: Process) -> sno.Generator:
    return sno.Generator(shards=1024, **_terms(world, process, 65_536))


def _snowflake(world: World, process: Process) -> snowflake.Generator:
    policies: Any = {
        "on_rollback": world.random.choice(("advance", "wait", "raise")),
        "on_exhausted": world.random.choice(("advance", "wait", "raise")),
    }
    return snowflake.Generator(**policies, **_terms(world, process, 1024))


def _narrow(world: World, process: Process) -> snowflake.Generator:
    policies: Any = {"on_exhausted": world.random.choice(("advance", "wait"))}
    return snowflake.Generator(layout=NARROW, **policies, **_terms(world, process, 4096))


def _locality(world: World, process: Process) -> locality.Generator:
    # All count from the same number: only their leases keep them apart.
    mode: Any = world.random.choice(("variable", "sequential"))
    return locality.Generator(mode, counter=0, **_terms(world, process, 2**44))


def _ticked(module: Any, node_bits: int, **options: Any) -> Callable[[World, Process], Any]:
    return lambda world, process: module.Generator(**options, **_terms(world, process, 2**node_bits))


def make_sequence(world: World, process: Process) -> Sequence:
    draw = world.random
    steps: Any = world.steps or draw.choice(STEPS)
    return Sequence(process.region.name, world.store, max_wait_ms=draw.choice((0, 50)), **steps)


STEPS: Final = ({"step": 1}, {"step": 100}, {"step": 500}, {"min_step": 10, "max_step": 2000})


def _time_of_sno(row: bytes) -> int:
    return sno.ID(row).timestamp_ns // MS


def _time_of_snowflake(layout: snowflake.Layout) -> Callable[[bytes], int]:
    return lambda row: layout.parse(int.from_bytes(row, "little")).timestamp_ms


def _node_of_sno(row: bytes) -> int:
    return sno.ID(row).partition


def _node_of_snowflake(layout: snowflake.Layout) -> Callable[[bytes], int]:
    return lambda row: layout.parse(int.from_bytes(row, "little")).node


def _time_of_locality(row: bytes) -> int:
    return locality.ID(row).timestamp_ms


def _time_of(module: Any) -> Callable[[bytes], int]:
    return lambda row: module.ID(row).timestamp_ms


def _integer(row: bytes) -> int:
    return int.from_bytes(row, "little")


REGIONS: Final = (
    Region("sno", 10, _sno, _time_of_sno, node=_node_of_sno),
    Region("sno.shards", 10, _sharded, _time_of_sno),
    Region(
        "snowflake",
        8,
        _snowflake,
        _time_of_snowflake(snowflake.DEFAULT),
        node=_node_of_snowflake(snowflake.DEFAULT),
    ),
    Region("snowflake.narrow", 8, _narrow, _time_of_snowflake(NARROW), node=_node_of_snowflake(NARROW)),
    Region("locality", 16, _locality, _time_of_locality),
    Region("ulid", 16, _ticked(ulid, 24), _time_of(ulid), place=((0, 72),)),
    Region("objectid", 12, _ticked(objectid, 40), _time_of(objectid), place=((0, 72),)),
    Region("sequence.a", 8, make_sequence, _integer),
    Region("sequence.b", 8, make_sequence, _integer),
)
"""The regions of a world by default."""
LEASED: Final = (
    Region("uuid.v1", 16, _ticked(uuid, 47, version=1), _time_of(uuid), place=((0, 66), (80, 128))),
    Region("uuid.v6", 16, _ticked(uuid, 47, version=6), _time_of(uuid), place=((0, 66), (80, 128))),
    Region("uuid.v7", 16, _ticked(uuid, 24), _time_of(uuid), place=((0, 52), (64, 66), (76, 100))),
    Region("ksuid", 20, _ticked(ksuid, 32), _time_of(ksuid), place=((0, 64),)),
    Region("ksuid_ms", 20, _ticked(ksuid_ms, 32), _time_of(ksuid_ms), place=((0, 72),)),
    Region("xid", 12, _ticked(xid, 40), _time_of(xid), place=((0, 72),)),
    Region("sandflake", 16, _ticked(sandflake, 32), _time_of(sandflake), place=((0, 80),)),
)
"""The other formats with room for a node number, on request."""
