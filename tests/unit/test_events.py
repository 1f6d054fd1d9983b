"""Tests of the journal that workers share, and of the events that the log keeps in it."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog

import mintage
from mintage.errors import LeaseError, StoreError
from mintage.platform import files
from mintage.rules import Lease
from mintage.server.config.settings import Settings
from mintage.server.core import journal as journals
from mintage.server.core import logs
from mintage.server.core.events import Event, EventHandler, Kept, Refusals, events
from mintage.server.core.journal import DIRECTORY, LONGEST_BYTES, MOST_RECORDS, Journal

if TYPE_CHECKING:
    from collections.abc import Iterator

INSTALLED = str(Path(mintage.__file__).parents[1])


@pytest.fixture(params=["memory", "files"])
def shared(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let journals begin empty: in memory, or in the files of several workers."""
    monkeypatch.delenv(DIRECTORY, raising=False)
    if request.param == "files":
        monkeypatch.setenv(DIRECTORY, str(tmp_path))
    journals._MEMORY.clear()
    yield
    journals._MEMORY.clear()


def test_journal_reads_what_any_of_its_objects_appended(shared: None) -> None:
    one, other = Journal("test"), Journal("test")
    assert one.read() == []
    for at in range(3):
        assert one.append({"at": at})
        assert other.read() == [{"at": each} for each in range(at + 1)]
    assert Journal("another").read() == []


def test_journal_of_one_worker_uses_no_directory_of_metrics(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    assert Journal("alone").append({"at": 1})
    assert list(tmp_path.iterdir()) == []


def test_full_journal_drops_its_oldest_records(shared: None) -> None:
    found = Journal("test")
    for at in range(9 * MOST_RECORDS):
        found.append({"at": at, "text": "x" * 250})
    kept = [each["at"] for each in found.read()]
    assert MOST_RECORDS <= len(kept) <= 3 * MOST_RECORDS
    assert kept == list(range(kept[0], 9 * MOST_RECORDS))


def test_record_that_is_too_long_is_not_kept(shared: None) -> None:
    found = Journal("test")
    assert not found.append({"text": "x" * LONGEST_BYTES})
    assert found.read() == []


def test_threads_lose_no_record(shared: None) -> None:
    found = Journal("test")
    threads = [threading.Thread(target=lambda: [found.append({"at": each}) for each in range(200)]) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(each["at"] for each in found.read()) == sorted([*range(200)] * 4)


SHORT_WRITE = """
import resource, signal
from mintage.server.core.journal import Journal
found = Journal("test")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
print(found.append({"at": 1}))
resource.setrlimit(resource.RLIMIT_FSIZE, (15, resource.RLIM_INFINITY))
print(found.append({"at": 2}))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(found.append({"at": 3}), found.read())
"""


def test_half_written_record_hides_no_later_one(tmp_path: Path) -> None:
    environment = {**os.environ, DIRECTORY: str(tmp_path), "PYTHONPATH": INSTALLED}
    program = [sys.executable, "-c", SHORT_WRITE]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["True", "False", "True [{'at': 1}, {'at': 3}]"]


def test_append_waits_for_no_other_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY, str(tmp_path))
    found = Journal("test")
    found.append({"at": 0})
    held = [os.open(each, os.O_RDWR) for each in tmp_path.iterdir()]
    for each in held:
        files.lock(each)
    count = 4 * MOST_RECORDS
    writer = threading.Thread(
        target=lambda: [found.append({"at": at, "text": "x" * 250}) for at in range(1, count)], daemon=True
    )
    writer.start()
    writer.join(60)
    assert not writer.is_alive()
    assert len(found.read()) == count
    for each in held:
        os.close(each)
    found.append({"at": count})
    found.append({"at": count + 1})
    assert len((tmp_path / "test.jsonl").read_bytes()) < 100
    assert [each["at"] for each in found.read()] == list(range(count + 2))


def test_record_in_a_file_that_was_removed_is_not_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY, str(tmp_path))
    fstat = os.fstat

    def late(file: int) -> os.stat_result:
        (tmp_path / "test.jsonl").unlink(missing_ok=True)
        return fstat(file)

    monkeypatch.setattr(os, "fstat", late)
    assert not Journal("test").append({"at": 1})


def test_directory_that_is_gone_fails_no_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DIRECTORY, str(tmp_path / "gone"))
    assert not Journal("test").append({"at": 1})
    assert Journal("test").read() == []


# --- events -------------------------------------------------------------------------------------------------------


@pytest.fixture
def log(shared: None, capsys: pytest.CaptureFixture[str]) -> Iterator[Any]:
    """Return a logger of the service with a level above most events."""
    before = logging.root.handlers[:], logging.root.level
    logs.configure(Settings(log_level="error"))
    yield structlog.get_logger("mintage.server")
    logging.captureWarnings(False)
    logging.root.handlers[:], logging.root.level = before
    structlog.reset_defaults()


def test_events_are_kept_whatever_the_level_of_the_log(log: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with structlog.contextvars.bound_contextvars(trace_id="t1"):
        log.info("changed", key="ops", path="/v1/pools/sno")
    log.warning("store away", code="store.unavailable")
    log.info("refused", code="request.rights")
    logging.getLogger("mintage").warning("mintage: a lease was lost")
    assert [(each.kind, each.actor, each.trace_id) for each in events(Kept())] == [
        ("message", "", ""),
        ("store away", "", ""),
        ("changed", "ops", "t1"),
    ]
    assert events(Kept())[0].text == "text: mintage: a lease was lost"
    assert "path: /v1/pools/sno" in events(Kept())[-1].text
    assert capsys.readouterr().err == ""


def test_event_has_no_secret_and_is_short(log: Any) -> None:
    log.warning("store away", reason="redis://:secret@host refused mint_0123456789abcdef0123 " + "x" * 9999)
    (event,) = events(Kept())
    assert "secret@" not in event.text
    assert "0123456789abcdef" not in event.text
    assert len(event.text) < 400


@pytest.mark.parametrize("letter", ["\U0001f600", "\x01", '"', "\udcff"])
def test_event_of_long_texts_in_any_alphabet_is_kept(log: Any, letter: str) -> None:
    log.error("failed", interface="http", path="/" + letter * 199, **{f"fact{at}": letter * 200 for at in range(20)})
    (event,) = events(Kept())
    assert (event.kind, event.text[:15]) == ("failed", "interface: http")


@pytest.mark.parametrize(
    ("words", "kinds"),
    [
        (({"a": 1},), ["message"]),
        (("%d", "x"), []),
        (({"event": "away", 1: 2},), ["away"]),
        (({"event": "away"}, "x"), ["away"]),
    ],
)
def test_wrong_record_of_a_library_raises_nothing_into_it(
    shared: None, words: tuple[Any, ...], kinds: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    EventHandler(str).handle(logging.LogRecord("library", logging.WARNING, "", 1, words[0], words[1:], None))
    assert [each.kind for each in events(Kept())] == kinds
    assert ("Logging error" in capsys.readouterr().err) == (not kinds)


def test_what_all_workers_log_is_one_event(log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for pid in (11, 12, 13):
        with monkeypatch.context() as worker:
            worker.setattr(os, "getpid", lambda pid=pid: pid)
            log.warning("store away", code="store.unavailable", reason=f"port {pid} is closed")
    (event,) = events(Kept())
    assert event.pids == (11, 12, 13)


def test_actions_under_one_trace_id_stay_two_events(log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = (("ops", "/v1/leases/sno/1"), ("ops", "/v1/leases/sno/2"), ("eve", "/v1/leases/sno/2"))
    for pid, (key, path) in enumerate(changes, 11):
        with monkeypatch.context() as worker:
            worker.setattr(os, "getpid", lambda pid=pid: pid)
            log.info("changed", key=key, path=path, trace_id="chosen")
    assert [(each.actor, each.text, each.pids) for each in events(Kept())[::-1]] == [
        (key, f"path: {path}", (pid,)) for pid, (key, path) in enumerate(changes, 11)
    ]


def test_nothing_else_pushes_out_what_operators_did(log: Any) -> None:
    log.info("changed", path="/v1/pools/sno")
    kept = Kept()
    (changed,) = kept.read()
    for _ in range(3 * MOST_RECORDS):
        for kind in ("failed", "signed in"):
            kept.append(changed | {"at": changed["at"] + 1, "kind": kind, "facts": {"path": "x" * 250}})
    assert events(Kept())[-1].kind == "changed"


def test_messages_push_out_no_other_event(log: Any) -> None:
    log.warning("store away", code="store.unavailable")
    for at in range(3 * MOST_RECORDS):
        logging.getLogger("mintage").warning("mintage: the pool is in quarantine for %d s %s", at, "x" * 250)
    assert events(Kept())[-1].kind == "store away"


def test_collector_that_is_away_pushes_out_no_event(log: Any) -> None:
    log.warning("store away", code="store.unavailable")
    exporter = logging.getLogger("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    for _ in range(3 * MOST_RECORDS):
        exporter.warning("Transient error %s encountered, retrying in 2s.", "connection refused " * 20)
    assert [each.kind for each in events(Kept())] == ["store away"]


def test_refusal_of_the_store_is_an_event_once_a_minute(log: Any) -> None:
    refusals = Refusals(iter((0.0, 1.0, 59.0, 60.0, 60.0)).__next__)
    lost, busy = LeaseError("node 7 is lost", code="lease.lost"), StoreError("later", code="store.unavailable")
    for _ in range(4):
        refusals.log(lost, Lease("sno", 7, 0, 1, "token"))
        refusals.log(busy, "sno")
    refusals.log(lost, Lease("sno", 8, 0, 1, "token"))
    assert [each.kind for each in events(Kept())] == ["lease lost"] * 3
    assert "token" not in events(Kept())[0].text


def test_ten_refusals_of_a_kind_are_logged_a_minute(log: Any) -> None:
    now_s = 0.0
    refusals = Refusals(lambda: now_s)
    lost, full = LeaseError("lost", code="lease.lost"), LeaseError("full", code="lease.none_free")
    for node in range(1_100):
        refusals.log(lost, Lease("sno", node, 0, 1, "token"))
    refusals.log(full, "sno")
    assert [each.kind for each in events(Kept())] == ["no node number free"] + ["lease lost"] * 10
    now_s = 60.0
    refusals.log(lost, Lease("sno", 1, 0, 1, "token"))
    assert "left_out: 1090" in events(Kept())[0].text


def test_worker_that_logs_twice_has_two_events(log: Any) -> None:
    for _ in range(2):
        log.warning("store away", code="store.unavailable")
    assert [type(each) for each in events(Kept())] == [Event, Event]
