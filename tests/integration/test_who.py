"""Tests of who minted an ID or reserved an integer: processes that take turns and are killed, on real servers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import pytest

from mintage.store import open_store
from mintage.who import who, who_reserved
from tests.integration import reservers
from tests.integration.minters import POOLS, PROCESSES

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers.fixtures import Servers

IDS = 10_000
STORES = os.environ.get("MINTAGE_WHO_STORES", "redis").split(",")
"""The kinds of stores: one here, all in ``make deep``, as each takes a minute or more."""
MINTERS = [sys.executable, "-m", "tests.integration.minters"]
RESERVERS = [sys.executable, "-m", "tests.integration.reservers"]


@pytest.mark.timeout(1_200)  # some 60,000 verbs of a store
@pytest.mark.parametrize("kind", STORES)
def test_right_process_is_named_for_ten_thousand_ids(kind: str, servers: Servers, tmp_path: Path) -> None:
    from tests.servers import KINDS

    url = f"sqlite:///{tmp_path}/ids.db?timeout_ms=60000" if kind == "sqlite" else servers.get(KINDS[kind]).url
    (tmp_path / "minted").mkdir()
    subprocess.run([*MINTERS, url, str(tmp_path / "minted"), str(IDS)], check=True)
    wrong, counts, numbers, processes = [], Counter[str](), defaultdict[tuple[str, int | None], set[str]](set), set()
    with open_store(url) as store:
        for path in (tmp_path / "minted").iterdir():
            own, *lines = path.read_text().splitlines() or [""]  # one that was killed at once wrote nothing
            processes.add(own)
            for line in lines:
                pool, _, one = line.partition(" ")
                found = [each for each in who(one, store) if each.pool == pool]
                named = [each.holder.text for each in found if each.holder]
                if named != [own]:
                    wrong.append((line, own, found))
                counts[pool] += 1
                numbers[pool, found[0].node].add(own)
    assert not wrong, (len(wrong), wrong[:3])
    assert counts.total() > IDS * 0.8
    assert set(counts) == set(POOLS)
    assert len(processes) > PROCESSES
    assert sum(len(each) > 2 for each in numbers.values()) > len(POOLS)


@pytest.mark.timeout(1_200)
@pytest.mark.parametrize("kind", STORES)
def test_right_process_is_named_for_ten_thousand_integers(kind: str, servers: Servers, tmp_path: Path) -> None:
    from tests.servers import KINDS

    url = f"sqlite:///{tmp_path}/ids.db?timeout_ms=60000" if kind == "sqlite" else servers.get(KINDS[kind]).url
    (tmp_path / "taken").mkdir()
    subprocess.run([*RESERVERS, url, str(tmp_path / "taken"), str(IDS)], check=True)
    wrong, states, holders = [], Counter[str](), defaultdict[str, set[str]](set)
    with open_store(url) as store:
        for path in (tmp_path / "taken").iterdir():
            # The last line may be cut, as the process was killed.
            own, *lines = path.read_text().split("\n")[:-1] or [""]
            for line in lines:
                name, _, integer = line.partition(" ")
                found = who_reserved(name, int(integer), store)
                # A namespace of Kubernetes keeps few runs.
                is_kept = kind != "kubernetes" or found.state != "forgotten"
                if is_kept and (found.holder is None or found.holder.text != own):
                    wrong.append((line, own, found))
                states[found.state] += 1
                holders[name].add(own)
    assert not wrong, (len(wrong), wrong[:3])
    assert states.total() > IDS * 0.8
    assert all(len(each) > reservers.PROCESSES / 2 for each in holders.values())
