"""Tests of threads that mint at the same time, in all ways and beside forks; `make deep` runs them at full scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.helpers.processes import in_child
from tests.stress import threads

if TYPE_CHECKING:
    from pathlib import Path

THREADS, EACH = 4, 1000


@pytest.mark.parametrize("name", threads.cases())
def test_threads_mint_no_id_twice(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINTAGE_HOME", str(tmp_path / "home"))

    def run() -> list[object]:
        tally = threads.run(name, THREADS, EACH)
        return [tally.twice, tally.failed, tally.is_clean()]

    # Some cases begin a new generation, which the generators of this process must not see.
    assert in_child(run) == [0, [], True]
