"""Tests of kinds: the description of schemes for adapters matches the schemes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from mintage import snowflake, typeid, uuid
from mintage.errors import FieldError, MintError, ParseError
from mintage.formats.annotations import TypeIDs, kind_of
from mintage.formats.cast import cast
from mintage.formats.kinds import KINDS, Kind, snowflakes

if TYPE_CHECKING:
    from pathlib import Path

each = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))


@each
def test_minted_ids_belong_to_their_kind(kind: Kind) -> None:
    one: Any = kind.new()
    assert one.__class__ is kind.python
    assert kind.read(one) == one
    assert kind.read(str(one)) == one
    assert len(str(one)) <= kind.length
    if kind.size and not kind.layout:
        assert len(bytes(one)) == kind.size
        assert kind.read(bytes(one)) == one
        assert kind_of(kind.python) is kind


@each
@pytest.mark.parametrize("wrong", [None, True, 1.5, "", "no id", b"", object(), [], "9" * 5000, -1, 1 << 200, 10**400])
def test_invalid_id_is_refused_in_one_way(kind: Kind, wrong: object) -> None:
    with pytest.raises(MintError) as caught:
        kind.read(wrong)
    assert len(str(caught.value)) < 300


@each
def test_uuid_is_read_where_it_is_a_form(kind: Kind) -> None:
    one: Any = kind.new()
    if kind.has_uuid:
        assert kind.read(cast(one, UUID)) == one
    else:
        with pytest.raises(MintError):
            kind.read(UUID(int=1))


@each
def test_typeid_is_read_as_its_suffix(kind: Kind) -> None:
    one: Any = kind.new()
    if kind.size == 16:
        assert kind.read(typeid.ID("user", one)) == one
        assert TypeIDs("user").read(one) == typeid.ID("user", one)
        with pytest.raises(MintError):
            TypeIDs().read(one)
    else:
        for read, value in ((kind.read, typeid.new("user")), (TypeIDs("user").read, one)):
            with pytest.raises(MintError):
                read(value)


def test_typeids_of_a_prefix_accept_no_other() -> None:
    users, other = TypeIDs("user"), typeid.new("order")
    for wrong in (other, str(other)):
        with pytest.raises(ParseError, match='has the prefix "order", needs "user"'):
            users.read(wrong)
    assert users.min_at(1_750_000_000_000_000_000) < users.max_at(1_750_000_000_000_000_000)
    one = typeid.new("user")
    assert users.time_of(one) == uuid.ID(bytes(one)).time
    assert users.time_of(typeid.ID("user", bytes(16))) is None
    with pytest.raises(FieldError) as caught:
        TypeIDs().min_at(0)
    assert caught.value.code == "time.order"


@each
def test_bounds_enclose_an_instant(kind: Kind) -> None:
    instant = 1_750_000_000_000_000_000
    if not kind.has_time:
        pytest.skip("no order by time")
    assert kind.min_at(instant) < kind.max_at(instant) < kind.min_at(instant + 2_000_000_000)


def test_layout_has_its_own_kind() -> None:
    kind = snowflakes(snowflake.JS_SAFE)
    assert kind.max == 2**53 - 1
    assert kind.read(str(kind.max)) == kind.max
    with pytest.raises(MintError):
        kind.read(kind.max + 1)


@each
def test_kind_tells_if_its_generator_leases_by_default(kind: Kind, tmp_path: Path) -> None:
    script = f"from mintage import {kind.name}; {kind.name}.new()"
    subprocess.run([sys.executable, "-c", script], env={**os.environ, "MINTAGE_HOME": str(tmp_path)}, check=True)
    assert any(tmp_path.iterdir()) == kind.leases


@pytest.mark.parametrize("layout", [snowflake.DEFAULT, snowflake.JS_SAFE])
def test_text_of_too_many_digits_is_refused_with_the_limit(layout: snowflake.Layout) -> None:
    with pytest.raises(ParseError, match=rf"is no snowflake: digits of 0\.\.{2**layout.bits - 1}$"):
        snowflakes(layout).read("9" * 20)
