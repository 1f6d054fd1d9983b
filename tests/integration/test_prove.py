"""Tests of ``mintage prove``: it finds stores that break their promise, and nothing on those that keep it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from mintage.cli import main
from mintage.prove.faults import Run
from mintage.prove.report import Settings
from mintage.prove.verbs import shared
from mintage.store import open_store
from tests.helpers import broken_stores
from tests.servers import KINDS
from tests.servers.server import family, state, until
from tests.service.serving import Serving

if TYPE_CHECKING:
    from tests.servers.fixtures import Servers

ROOT: Final = Path(__file__).parents[2]
SECONDS: Final = os.environ.get("MINTAGE_PROVE_SECONDS", "")
"""The seconds of a run of all faults on each real store, in ``make deep``."""
STORES: Final = os.environ.get("MINTAGE_PROVE_STORES", "sqlite,redis,postgresql,mariadb").split(",")
"""The kinds of stores that are proved: ``make deep`` names more."""
RUNS: Final = 10
"""The most runs that a fault of a broken store takes."""
MINTAGE: Final = [sys.executable, "-m", "mintage", "prove"]


def report_of(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code of the command and its report."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        code = main(["prove", *words, "--processes", "3", "--json"])
    finally:
        signal.signal(signal.SIGTERM, before)
    output, errors = capsys.readouterr()
    assert output, errors
    return code, json.loads(output)


def report_on_broken(name: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    """Return the exit code and the report for a service on a broken store."""
    service = Serving(directory, "memory:", max_namespaces=1000)
    service.patch(
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        f"from tests.helpers import broken_stores; broken_stores.install({name!r})"
    )
    service.start()
    try:
        url = f"{service.url}?timeout_ms=60000"  # a slow machine is no reason to fail
        return report_of(capsys, "--store", url, "--seconds", "2", "--rate", "2000", "--fault", "verbs")
    finally:
        service.kill()


@pytest.mark.parametrize("name", broken_stores.NAMES)
def test_broken_store_is_found(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for run in range(RUNS):
        code, report = report_on_broken(name, tmp_path / f"service-{run}", capsys)
        # Its faults are rare, and a run on a busy machine has few verbs, or does not come to its end.
        if report["verdict"].startswith("NOT UNIQUE"):
            break
    assert (code, report["is_unique"]) == (1, False), report
    assert report["verdict"].startswith("NOT UNIQUE"), report
    assert "verbs" in report["verdict"], report


def test_store_that_refuses_is_not_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, report = report_on_broken("Refuses", tmp_path / "service", capsys)
    assert code == 1
    assert report["verdict"].startswith("NOT PROVED"), report
    assert "gave no integers" in report["faults"][0]["failed"]


@pytest.mark.parametrize("name", STORES)
def test_real_store_is_unique(name: str, servers: Servers, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path / 'ids.db'}" if name == "sqlite" else servers.get(KINDS[name]).url
    if not SECONDS and name != "sqlite":
        url += "?timeout_ms=60000"  # a slow machine is no reason to fail
    faults = [] if SECONDS or name == "sqlite" else ["--fault", "verbs", "--fault", "cut"]
    code, report = report_of(capsys, "--store", url, "--seconds", SECONDS or "2", *faults)
    assert (code, report["is_unique"]) == (0, True), report
    assert all(fault["ids"] or fault["not_run"] for fault in report["faults"]), report


def started(url: str, folder: Path) -> subprocess.Popen[bytes]:
    """Return a command that has stopped processes of its own."""
    words = ["--store", url, "--processes", "2", "--fault", "stop", "--seconds", "60"]
    environment = {**os.environ, "TMPDIR": str(folder)}
    process = subprocess.Popen([*MINTAGE, *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    until(lambda: "T" in map(state, family(process.pid)), "a process is stopped")
    return process


def test_sigkill_leaves_no_process(tmp_path: Path) -> None:
    process = started(url := f"sqlite:///{tmp_path / 'ids.db'}", tmp_path)
    children = family(process.pid)
    with process:
        process.kill()
    until(lambda: all(state(pid) == "Z" for pid in children), "its processes have ended")
    with open_store(url) as store:
        until(lambda: all(each.until_ms < store.now_ms() for each in store.list_leases()), "its windows have ended")
        assert not all(each.retired for each in store.list_namespaces())
        assert main(["prove", "--store", url, "--clean"]) == 0
        assert all(each.retired for each in store.list_namespaces())


def test_sigterm_ends_leases_and_namespace(tmp_path: Path) -> None:
    process = started(url := f"sqlite:///{tmp_path / 'ids.db'}", tmp_path)
    children = family(process.pid)
    with process:
        process.terminate()
    assert process.returncode == 128 + signal.SIGTERM
    assert not list(tmp_path.glob("mintage-prove-*"))
    # The signal may come while a process starts: that one has no orders yet, and ends when its input does.
    until(lambda: all(state(pid) == "Z" for pid in children), "its processes have ended")
    with open_store(url) as store:
        assert all(each.token is None or each.until_ms < store.now_ms() for each in store.list_leases())
        assert all(each.retired for each in store.list_namespaces())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name the store to test"),
        (["--store", "memory:"], "is a store of one process"),
        (["--store", "sqlite:///x.db", "--seconds", "0"], "'0' is outside 1..86400"),
        (["--store", "sqlite:///x.db", "--processes", "1000"], "'1000' is outside 2..64"),
        (["--store", "sqlite:///x.db", "--seconds", "86400"], "a run compares at most 20,000,000"),
        (["--store", "sqlite:///x.db", "--report", "no/x"], "cannot be written"),
    ],
)
def test_wrong_words_are_refused(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MINTAGE_STORE", raising=False)
    assert main(["prove", *words]) in {2, 78}
    assert message in capsys.readouterr().err


def test_intervals_of_one_number_are_compared() -> None:
    assert shared([(1, 0, 10), (1, 10, 20), (2, 5, 15), (1, 30, 30)]) == 0
    assert shared([(1, 0, 100), (1, 10, 20), (1, 50, 60)]) == 2


def test_integer_of_an_earlier_fault_is_a_duplicate() -> None:
    run = Run(Settings("sqlite:///ids.db"))
    run.row = run.report.rows[0]
    run.compare([(0, 1, 10), (0, 10, 20)])
    run.row = run.report.rows[1]
    run.compare([(0, 30, 40), (0, 15, 16)])
    assert [row.duplicates for row in run.report.rows[:3]] == [0, 1, 0]
