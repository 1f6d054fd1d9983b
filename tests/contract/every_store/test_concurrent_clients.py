"""Tests of every store: many generators and many clients at once get different values."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from mintage._core.formats import read_pool_layout
from mintage.formats.kinds import KINDS, NAMES
from mintage.store import open_store
from mintage.store.memory import MemoryStore
from tests.contract.clients import NAMESPACE, NODES, POOL, crowd, overlaps
from tests.contract.every_store.stores import new_pool

ROOT = Path(__file__).parents[3]
TURNS = int(os.environ.get("MINTAGE_CONTRACT_TURNS", "10"))
"""The number of values that each client of a crowd gets; ``make deep`` has more."""


@pytest.mark.parametrize(
    ("scheme", "layout"), [(name, found[0]) for name in NAMES if (found := read_pool_layout(name))]
)
def test_generators_of_every_scheme_have_different_node_numbers(url: str, scheme: str, layout: str) -> None:
    pool = f"every.{scheme}"
    with ExitStack() as stack:
        store = stack.enter_context(open_store(url))
        new_pool(store, pool, layout=layout)
        made = KINDS[scheme].module.Generator
        generators = [stack.enter_context(made(store=store, pool=pool, max_wait_ms=60_000)) for _ in range(4)]
        ids = [one for generator in generators for one in generator.batch(500)]
        assert len(set(ids)) == 2000
        assert len({lease.node for lease in store.list_leases(pool)}) == 4


def test_crowd_of_clients_gets_no_value_twice(url: str) -> None:
    with open_store(url) as store, ExitStack() as stack:
        new_pool(store, POOL)
        store.reserve(NAMESPACE, 1)
        command = [sys.executable, "-m", "tests.contract.clients", url, "4", str(TURNS)]
        processes = [
            stack.enter_context(subprocess.Popen([*command, str(seed)], cwd=ROOT, stdout=subprocess.PIPE, text=True))
            for seed in ([] if isinstance(store, MemoryStore) else [1, 2])
        ]
        history = crowd(store, 32 - 4 * len(processes), TURNS, seed=0)
        for process in processes:
            printed, _ = process.communicate()
            assert process.returncode == 0
            history += [(whose, first, stop) for whose, first, stop in json.loads(printed)]
    assert overlaps(history) == []
    # Check that it was a crowd: more leases than numbers, and every client got its share.
    assert len([whose for whose, _, _ in history if whose != NAMESPACE]) >= 32 > len(NODES)
    assert len(history) >= 32 * TURNS


def test_duplicate_in_a_crowd_is_found() -> None:
    assert overlaps([("0", 0, 10), ("0", 10, 20), ("1", 5, 15), ("0", 5, 5)]) == []
    assert overlaps([("0", 0, 10), ("0", 9, 20)])
    assert overlaps([("0", 0, 100), ("0", 20, 30), ("0", 50, 60)])
