"""Tests of records as stores, service and clients write and read them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mintage.protocol.records import ADDED, read, to_json
from mintage.rules import HISTORY_MS, GrantRecord, NamespaceRecord, NodeRecord, PoolRecord, RunRecord

POOL = PoolRecord("p", "test", "here", 30_000, 1, 2, True, 3, 4, 5)
NODE = NodeRecord("p", 7, 1, 2, 30_000, "here", "token", None, 4, 5, 6)
GRANT = GrantRecord("p", 7, 1, 2, 3, "me")
NAMESPACE = NamespaceRecord("n", -1, 2**63 - 1, 1, 1, "here", run_holder="me", run_since_ms=7)
RUN = RunRecord("n", 1, 2**63 - 1, "me", 3, 4)


@pytest.mark.parametrize("record", [POOL, NODE, GRANT, NAMESPACE, RUN], ids=lambda record: type(record).__name__)
def test_record_is_read_from_its_members_of_json(record: Any) -> None:
    assert read(type(record), to_json(record)) == record


def test_record_of_an_older_version_has_the_defaults_of_new_fields() -> None:
    older = {name: value for name, value in to_json(POOL).items() if name not in ADDED}
    assert len(older) == 8
    assert read(PoolRecord, older) == replace(POOL, history_ms=HISTORY_MS, history_from_ms=0)
    older = {name: value for name, value in to_json(NODE).items() if name not in ADDED}
    assert read(NodeRecord, older) == replace(NODE, since_ms=0)
    older = {name: value for name, value in to_json(NAMESPACE).items() if name not in ADDED}
    assert len(older) == 10
    assert read(NamespaceRecord, older) == replace(NAMESPACE, run_holder="", run_since_ms=0)


@pytest.mark.parametrize("name", ["floor_ms", "quarantine_until_ms", "changes", "history_lost"])
def test_missing_field_of_the_first_version_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is missing"):
        read(PoolRecord, {key: value for key, value in to_json(POOL).items() if key != name})


@pytest.mark.parametrize("value", [None, -1, "x", 2**53, True, 0.5])
def test_wrong_value_of_a_new_field_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="history_ms is"):
        read(PoolRecord, {**to_json(POOL), "history_ms": value})
