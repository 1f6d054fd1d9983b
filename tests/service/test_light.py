"""Tests of what the service imports, and of what its workers inherit: its memory and its start depend on both."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from tests.service.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WORKERS = 2


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Serving]:
    service = Serving(tmp_path / "service", f"sqlite:///{tmp_path}/ids.db")
    yield service
    service.kill()


def imported(service: Serving, directory: Path, *paths: str) -> set[str]:
    """Return the names of the modules that a service has imported after some requests."""
    return set(at_end(service, directory, "sys.modules", *paths))


def at_end(service: Serving, directory: Path, words: str, *paths: str, before: str = "") -> list[str]:
    """Return some words of a service's process at its end, after some requests. It runs `before` at its start."""
    place = directory / "words"
    write = f"open({str(place)!r}, 'w').write(' '.join({words}))"
    # A service that does not wait for its threads at the end runs no handlers of atexit.
    end = f"end = os._exit; os._exit = lambda code: ({write}, end(code))"
    service.patch(f"import atexit, os, sys; atexit.register(lambda: {write}); {end}\n{before}")
    service.start()
    with service.http() as line, service.redis() as redis:
        assert line.http("/alloc", '{"serviceName":"orders"}').status == 200
        assert redis.redis("INCR", "orders").startswith(":")
        for path in paths:
            assert line.http(path, method="GET").status == 200
    service.signal(signal.SIGTERM)
    assert service.wait() == 0
    return place.read_text("utf-8").split()


def test_no_request_waits_for_an_import_of_the_service(service: Serving, tmp_path: Path) -> None:
    noting = (
        "from mintage.server.process import run; known = set(); announce = run._announce\n"
        "def noted(*facts):\n"
        "    announce(*facts)\n"
        "    known.update(sys.modules)\n"
        "run._announce = noted"
    )
    paths = ("/v1/sequences/orders", "/v1/store", "/openapi.json", "/", "/metrics")
    found = at_end(service, tmp_path, "set(sys.modules) - known", *paths, before=noting)
    ours = ("mintage.server", "mintage.lease.request", "starlette", "msgspec")
    assert [each for each in found if each.startswith(ours)] == []


def test_service_without_a_collector_imports_nothing_of_opentelemetry(service: Serving, tmp_path: Path) -> None:
    found = imported(service, tmp_path, "/v1/sequences/orders", "/metrics")
    assert [each for each in found if each.startswith("opentelemetry")] == []


def test_forked_worker_inherits_modules_and_nothing_else(service: Serving, tmp_path: Path) -> None:
    facts = (
        "json.dump([gc.get_freeze_count(), threading.active_count(), sorted(sys.modules), "
        "[os.readlink(f'/proc/self/fd/{each}') for each in os.listdir('/proc/self/fd')[:-1]]], "
        f"open({str(tmp_path)!r} + f'/{{os.getpid()}}.json', 'w'))"
    )
    service.patch(f"import gc, json, os, sys, threading; {facts}", workers_only=True)
    service.settings["workers"] = WORKERS
    service.start()
    with service.redis() as redis:
        assert redis.redis("INCR", "orders").startswith(":")
    workers = service.workers()
    assert len(workers) == WORKERS
    for worker in workers:
        frozen, threads, modules, files = json.loads((tmp_path / f"{worker}.json").read_text("utf-8"))
        assert (frozen > 10_000, threads) == (True, 1)
        assert {"mintage.server.http.app", "mintage.server.resp.protocol", "mintage.store.sqlite.store"} <= set(modules)
        assert not [file for file in files if "ids.db" in file or "eventpoll" in file]
