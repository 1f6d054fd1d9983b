"""The public API as type checkers see it. Checked by mypy, never run."""

from __future__ import annotations

from array import array
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal, assert_type
from uuid import UUID

from pydantic import BaseModel

import mintage
from mintage import AsyncClient, Client, columns, errors, locality, sno, snowflake, typeid, ulid
from mintage.ext.pydantic import NanoID, Snowflake, TypeID
from mintage.formats.anatomy import Anatomy
from mintage.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Iterator


def sno_ids(minted: sno.ID, now: datetime, uuid: UUID) -> None:
    assert_type(sno.new(), sno.ID)
    assert_type(sno.new(7), sno.ID)
    assert_type(sno.new(meta=7), sno.ID)
    assert_type(sno.new_at(now, meta=7), sno.ID)
    assert_type(sno.new_at(1_700_000_000_000_000_000), sno.ID)
    assert_type(sno.min_at(now), sno.ID)
    assert_type(sno.max_at(0), sno.ID)
    assert_type(sno.ID(b"0123456789"), sno.ID)
    assert_type(sno.ID.parse("2222222222222222"), sno.ID)
    assert_type(sno.ID.from_bytes(bytearray(10)), sno.ID)
    assert_type(sno.ID.from_bytes(memoryview(b"0123456789")), sno.ID)
    assert_type(sno.ID.from_int(1), sno.ID)
    assert_type(sno.ID.from_uuid(uuid), sno.ID)
    assert_type(sno.ID.from_json(None), sno.ID)
    assert_type(sno.ID.from_parts(timestamp_ns=0, tick=1, meta=2, partition=3, sequence=4), sno.ID)
    assert_type(sno.ID.ZERO, sno.ID)
    assert_type(sno.ID.MAX, sno.ID)
    assert_type(minted.time, datetime)
    assert_type(sno.ID.from_parts(time=now, partition=b"A\n"), sno.ID)
    assert_type(minted.timestamp_ms, int)
    assert_type(minted.timestamp_ns, int)
    assert_type(minted.tick, int)
    assert_type(minted.meta, int)
    assert_type(minted.partition, int)
    assert_type(minted.sequence, int)
    assert_type(minted.is_zero, bool)
    assert_type(minted.as_uuid(), UUID)
    assert_type(minted.as_json(), str | None)
    assert_type(minted.replace(meta=1, partition=2, sequence=3, tick=0), sno.ID)
    assert_type(minted.replace(time=now, partition=(65, 10)), sno.ID)
    assert_type(bytes(minted), bytes)
    assert_type(int(minted), int)
    assert_type(hash(minted), int)
    assert_type(minted < sno.ID.MAX, bool)
    assert_type(sorted({minted, sno.new()}), list[sno.ID])


def sno_generators(overflows: list[sno.Overflow]) -> None:
    sno.Generator()
    with sno.Generator(
        1,
        meta=7,
        sequence_min=0,
        sequence_max=9,
        on_overflow=overflows.append,
        clock=ManualClock(0),
        max_wait_ms=1,
    ) as generator:
        assert_type(generator, sno.Generator)
        assert_type(generator.new(7), sno.ID)
        assert_type(generator.new_at(0, 7), sno.ID)
        assert_type(generator.batch(3, meta=1), sno.Array)
        assert_type(generator.fill(bytearray(30), meta=1), int)
        assert_type(next(generator), sno.ID)
        assert_type(list(islice(generator, 2)), list[sno.ID])
        assert_type(generator.snapshot(), sno.Snapshot)
        assert_type(sno.Generator.restore(generator.snapshot(), clock=lambda: 0), sno.Generator)
        assert_type(sno.Generator.restore(generator.snapshot(), store="memory:", span_ms=5_000), sno.Generator)
        assert_type(generator.meta, int)
        assert_type(generator.partition, int)
        assert_type(generator.sequence, int)
        assert_type(generator.sequence_min, int)
        assert_type(generator.sequence_max, int)
        assert_type(generator.used, int)
        assert_type(generator.capacity, int)
        assert_type(generator.drifts, int)
    ids: Iterator[sno.ID] = generator
    assert_type(next(ids), sno.ID)
    assert_type(overflows[0].now, datetime)
    assert_type(overflows[0].count, int)
    assert_type(overflows[0].ticks, int)
    assert_type(sno.Snapshot(1, sequence_min=1, wall_hi=3).to_json(), str)
    assert_type(sno.Snapshot.from_json("{}").wall_safe, int)
    assert_type(sno.Snapshot(1, pool="sno", shards=4).pool, str | None)
    assert_type(sno.Snapshot(1).leased, bool)
    assert_type(sno.Snapshot(1).shards, int)


def sno_arrays(ids: sno.Array) -> None:
    assert_type(sno.Array(), sno.Array)
    assert_type(sno.Array(b"0123456789"), sno.Array)
    assert_type(sno.Array.parse("2222222222222222"), sno.Array)
    assert_type(ids[0], sno.ID)
    assert_type(ids[1:2], sno.Array)
    assert_type(list(ids), list[sno.ID])
    assert_type(ids.tolist(), list[sno.ID])
    assert_type(ids.tobytes(), bytes)
    assert_type(ids.encode(), bytes)
    assert_type(ids.to_lines(), bytes)
    assert_type(len(ids), int)
    assert_type(sno.ID.ZERO in ids, bool)
    assert_type(sno.Array.SIZE, int)
    assert_type(memoryview(ids), memoryview[int])
    assert_type(mintage.column(ids, "order_id", type="binary_view"), columns.Column)
    assert_type(sno.encode_into(ids, bytearray(16)), int)
    assert_type(sno.parse_into(b"2222222222222222", bytearray(10)), int)


def snowflakes(now: datetime) -> None:
    assert_type(snowflake.new(), int)
    layout = snowflake.Layout("time:41 node:10 sequence:12", epoch_ms=0, unit_ms=1)
    assert_type(layout, snowflake.Layout)
    assert_type(layout.compose(timestamp_ms=0, node=1, sequence=2), int)
    parts = layout.parse(1)
    assert_type(parts, snowflake.Parts)
    assert_type(parts.timestamp_ms, int)
    assert_type(parts.time, datetime)
    assert_type(parts.node, int)
    assert_type(parts.sequence, int)
    assert_type(parts.fields, dict[str, int])
    assert_type(layout.min_at(now), int)
    assert_type(layout.max_at(0), int)
    assert_type(layout.expires, datetime)
    assert_type(layout.ids_per_second, int)
    assert_type(layout.nodes, int)
    assert_type({layout: layout == snowflake.DEFAULT}, dict[snowflake.Layout, bool])
    for known in (snowflake.TWITTER, snowflake.DISCORD, snowflake.INSTAGRAM, snowflake.SONYFLAKE):
        assert_type(known, snowflake.Layout)
    with snowflake.Generator(1, layout=layout, on_rollback="wait", on_exhausted="raise", max_wait_ms=0) as generator:
        assert_type(generator, snowflake.Generator)
        assert_type(generator.new(), int)
        assert_type(generator.batch(2), snowflake.Array)
        assert_type(generator.batch(2)[0], int)
        assert_type(generator.batch(2)[:1], snowflake.Array)
        assert_type(list(generator.batch(2)), list[int])
        assert_type(snowflake.Array(array("Q"), layout).layout, snowflake.Layout)
        assert_type(generator.fill(array("Q", [0])), int)
        assert_type(next(generator), int)
        assert_type(list(islice(generator, 2)), list[int])
        assert_type(generator.node, int)
        assert_type(generator.layout, snowflake.Layout)
    assert_type(snowflake.node_from_macs(["0A1B2C3D4E5F"]), int)
    assert_type(snowflake.to_lines(generator.batch(1)), bytes)


def models() -> None:
    class Order(BaseModel):
        id: sno.ID
        customer: Annotated[int, snowflake.Str(snowflake.DISCORD)]
        seller: Annotated[typeid.ID, TypeID("user")]
        token: NanoID
        by: dict[ulid.ID, Snowflake] = {}

    order = Order(id=sno.new(), customer=1, seller=typeid.new("user"), token="V1StGXR8_Z5jdHi6B-myT")
    assert_type(order.id, sno.ID)
    assert_type(order.customer, int)
    assert_type(order.seller, typeid.ID)
    assert_type(order.token, str)
    assert_type(order.by, dict[ulid.ID, int])
    assert_type(snowflake.Str().layout, snowflake.Layout)


def localities(minted: locality.ID) -> None:
    assert_type(locality.new(), locality.ID)
    locality.use_sequential_ids()
    locality.use_variable_ids()
    assert_type(locality.sequential_seed(minted.time), int)
    assert_type(locality.splits(4), list[locality.ID])
    assert_type(locality.ID.parse(""), locality.ID)
    assert_type(locality.ID.from_uuid(minted.as_uuid()), locality.ID)
    assert_type(locality.ID.from_parts(counter=1, pid=2, mac="0000003", timestamp_ms=4, mode="sequential"), locality.ID)
    assert_type(minted.version, str)
    assert_type(minted.counter, int)
    assert_type(minted.sequential_counter, int)
    assert_type(minted.pid, int)
    assert_type(minted.mac, str)
    assert_type(minted.timestamp_ms, int)
    assert_type(minted.time, datetime)
    with locality.Generator("sequential", pid=1, mac="0000001", counter=1, clock=ManualClock(0)) as generator:
        assert_type(generator, locality.Generator)
        assert_type(generator.new(), locality.ID)
        assert_type(generator.batch(2), locality.Array)
        assert_type(generator.batch(2)[0], locality.ID)
        assert_type(generator.fill(bytearray(16)), int)
        assert_type(next(generator), locality.ID)
        assert_type(generator.mode, Literal["variable", "sequential"])


async def clients() -> None:
    with Client("http://ids") as client:
        assert_type(client, Client)
        assert_type(client.next("orders"), int)
        assert_type(client.batch("orders", 2), list[int])
        assert_type(client.reserve("orders", count=2), range)
        assert_type(client.mint("sno", meta=7), list[sno.ID])
        assert_type(client.mint("snowflake", 2), list[int])
        assert_type(client.mint("locality"), list[locality.ID])
        assert_type(client.describe("orders").high_water, int)
    async with AsyncClient("http://ids") as twin:
        assert_type(twin, AsyncClient)
        assert_type(await twin.next("orders"), int)
        assert_type(await twin.mint("sno", 2, 7), list[sno.ID])


def everything_else(clock: ManualClock) -> None:
    assert_type(mintage.inspect("2222222222222222"), list[Anatomy])
    assert_type(mintage.inspect(1)[0].likelihood, float)
    assert_type(mintage.__version__, str)
    assert_type(clock.now_ns, int)
    assert_type(clock(), int)
    assert_type(clock.auto_advance, bool)
    assert_type(errors.CATALOGUE["clock.rollback"], errors.Entry)
    assert_type(errors.CATALOGUE["clock.rollback"].error, type[errors.MintError])
    try:
        sno.new()
    except errors.GenerationError as error:
        assert_type(error.code, str)
        assert_type(error.retry_after_ms, int | None)
    except errors.ParseError as error:
        assert_type(error.position, int | None)
        raise ValueError from error
