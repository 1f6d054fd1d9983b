"""Tests of threads that mint at the same time, in all ways and beside forks; `make deep` runs them at full scale."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
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


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="of interpreters without the GIL")
def test_generators_that_were_replaced_are_freed_after_their_last_call() -> None:
    words = [sys.executable, "-m", "tests.stress.threads", "--case", "replaced", "--ids", "500000", "--threads", "4"]
    # The interpreter overwrites freed memory, so that a thread which still uses it fails.
    environment = {**os.environ, "PYTHONMALLOC": "debug"}
    done = subprocess.run(words, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
