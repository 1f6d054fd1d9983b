"""Tests of real faults under real load: IDs are unique whatever happened meanwhile."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.integration.faults import SCENARIOS, Scenario
from tests.integration.faults.record import TABLE, recorded, render

if TYPE_CHECKING:
    from pathlib import Path

    from tests.servers import Server
    from tests.servers.fixtures import Servers

CASES = [
    pytest.param(scenario, kind, id=f"{scenario.name}-{kind.name if kind else 'sqlite'}")
    for scenario in SCENARIOS
    for kind in scenario.stores
    if scenario.is_quick
]


@pytest.mark.parametrize(("scenario", "kind"), CASES)
def test_no_id_is_minted_twice(scenario: Scenario, kind: type[Server] | None, servers: Servers, tmp_path: Path) -> None:
    outcome = scenario.run(servers.get(kind) if kind else None, tmp_path)
    assert outcome.ids > 0
    assert outcome.duplicates == 0, outcome


def test_table_in_the_documentation_equals_the_record() -> None:
    assert TABLE.read_text(encoding="utf-8") == render(recorded())
    assert all(row.duplicates == 0 for row in recorded())


def test_every_fault_is_in_the_record() -> None:
    stores = [kind.name if kind else "sqlite" for scenario in SCENARIOS for kind in scenario.stores]
    assert not Counter(stores) - Counter(row.store for row in recorded())
