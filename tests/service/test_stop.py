"""Tests of SIGTERM: requests are answered, integers and leases are released, and the service ends in time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import numpy as np
import pytest

from mintage import open_store
from tests.servers import Proxy
from tests.servers.server import HOST, free_port, until
from tests.service.load import ALLOC, INCR, NEXT, post, read_answer, repeated
from tests.service.serving import Serving
from tests.service.wire import command, head, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.servers import MariaDB
    from tests.service.load import Line

GRACE_S = 1.5
BUSY_S = 5.0
"""A grace period that endless connections use up, and in which a slow machine answers every read request."""
LONG_S = 600.0
"""A grace period longer than the wait for a stop: a stop within the wait did not use it up."""
STEP = 1000
IGNORED = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ids.db"


@pytest.fixture
def service(url: str, tmp_path: Path) -> Iterator[Serving]:
    with serve(tmp_path, url, GRACE_S) as service:
        yield service


@pytest.fixture(params=[1, 2])
def patient(url: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Serving]:
    """Return a service, of one process or of several, with a practically endless grace period."""
    with serve(tmp_path, url, LONG_S, workers=request.param) as service:
        yield service


@contextmanager
def serve(
    directory: Path, url: str, grace_s: float, *, is_hasty: bool = False, **settings: object
) -> Iterator[Serving]:
    """Run a service. Unless it is hasty, as it is outside of tests, it gives a slow store a minute at its end."""
    service = Serving(directory / "service", url, grace_ms=round(grace_s * 1000), **settings)
    if not is_hasty:
        service.patch("from mintage.server.process import drain; drain.SHUTDOWN_TIMEOUT_S = 60.0")
    try:
        service.start()
        yield service
    finally:
        service.kill()


def begin(line: Line, request: bytes) -> None:
    """Send an incomplete request, on a connection that the service has accepted."""
    assert line.http("/healthz", method="GET").status == 200
    line.send(request)


def told_to_stop(service: Serving) -> None:
    """Stop the service, and wait until all its processes have begun to stop."""
    service.signal(signal.SIGTERM)
    workers = service.settings.get("workers", 1)
    until(lambda: len(service.events("stopping")) == workers, "it stops")


def stop(service: Serving, number: signal.Signals = signal.SIGTERM) -> None:
    """Stop it, and check that it ends cleanly."""
    service.signal(number)
    code = service.wait()
    assert code == 0, service.logged()
    assert "Traceback" not in service.logged(), service.logged()
    assert len(service.events("stopped")) == service.settings.get("workers", 1)
    # Nothing of it is left: no process, no temporary file.
    assert not list(service.directory.glob("mintage-*"))


# --- under load ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_every_read_request_is_answered_and_few_integers_skipped(url: str, tmp_path: Path, workers: int) -> None:
    # A request is accepted once the service has read it, which only the service knows. So no integer taken for
    # a request may be missing: a request that was read and not answered would have cost one.
    # No INCRBY, which skips integers if a segment has too few for it.
    kinds = [INCR, INCR, INCR, ALLOC, ALLOC, ALLOC, NEXT, NEXT]
    with serve(tmp_path, url, BUSY_S, workers=workers, min_step=STEP, max_step=STEP) as service:
        with service.load(kinds=kinds, reconnects=False) as load:
            load.wait_for_more(5000)
            stop(service)
            until(lambda: len(load.ends()) == len(kinds), "all connections end")
        assert load.codes().keys() == {"ok"}
        for end in load.ends():
            assert not end.torn, end
            if end.interface == "http":
                # They were disconnected, and had sent nothing more.
                assert end.farewell, end
                assert end.unanswered == 0, end
        integers = np.sort(load.integers())
        assert repeated(integers) == []
        # The tail of one process is given back unless another has reserved after it.
        skipped = integers[-1] - len(integers)
        most = 0 if workers == 1 else workers * 2 * STEP
        assert skipped <= most, skipped
        service.start()
        with service.redis() as line:
            following = int(line.redis("INCR", "orders")[1:])
        assert 0 < following - integers[-1] <= 1 + most


def test_started_request_may_be_completed(patient: Serving) -> None:
    request = post("/alloc", '{"serviceName":"orders","count":3}')
    incr = command("INCR", "rows")
    with patient.http() as http, patient.redis() as redis:
        begin(http, request[:30])
        assert redis.redis("PING") == "+PONG"
        redis.send(incr[:10])
        told_to_stop(patient)
        http.send(request[30:])
        redis.send(incr[10:])
        answer = read_answer(http.replies)
        assert answer.status == 200
        assert answer.headers["connection"] == "close"
        assert http.has_ended()
        assert redis.replies.readline() == b":1\r\n"
        assert redis.has_ended()
    assert patient.wait() == 0


def test_request_waiting_for_the_store_is_answered(mariadb: MariaDB, tmp_path: Path) -> None:
    with Proxy(mariadb) as proxy, serve(tmp_path, proxy.url, LONG_S, max_wait_ms=5000) as service:
        with service.redis() as redis, service.http() as http:
            until(lambda: redis.redis("INCR", "orders") == ":1", "the store answers in time")
            assert http.http("/healthz", method="GET").status == 200
            proxy.blackhole()
            redis.send(command("INCR", "others") + command("INCR", "orders"))
            http.send(post("/v1/sequences/more:next"))
            service.signal(signal.SIGTERM)
            answer = read_answer(http.replies)
            assert answer.status == 503
            assert answer.headers["connection"] == "close"
            assert http.has_ended()
            assert redis.replies.readline().startswith(b"-TRYAGAIN ")
            assert redis.replies.readline() == b":2\r\n"
            assert redis.has_ended()
        assert service.wait() == 0


# --- idle connections ---------------------------------------------------------------------------------------------


def test_silent_connections_do_not_delay_the_stop(patient: Serving) -> None:
    with patient.http() as http, patient.redis() as redis, patient.http() as new:
        http.http("/healthz", method="GET")
        redis.redis("PING")
        stop(patient)
        assert all(line.has_ended() for line in (http, redis, new))


def test_no_connection_is_accepted_any_more(patient: Serving) -> None:
    with patient.http() as busy:
        begin(busy, post("/alloc", "{}")[:-1])
        told_to_stop(patient)
        for connect in (patient.http, patient.redis):
            # A connection that comes just before the listener goes is reset by it.
            with pytest.raises(ConnectionError), connect() as line:
                line.redis("PING")


def never_ends(service: Serving) -> bytes:
    return post("/alloc", "{}")[:-1]


def never_reads(service: Serving) -> bytes:
    # Replies of more than all buffers between hold.
    return command("COMMAND") * 40_000


@pytest.mark.parametrize("kind", [never_ends, never_reads])
def test_endless_connection_ends_with_the_grace_period(service: Serving, kind: Callable[[Serving], bytes]) -> None:
    with service.http() if kind is never_ends else service.redis() as line:
        line.socket.settimeout(0.5)
        try:
            line.send(kind(service))
        except TimeoutError:
            assert kind is never_reads
        until(lambda: service.metric("mintage_connections") == 2, "it is heard")
        began = time.monotonic()
        stop(service)
        assert time.monotonic() - began >= GRACE_S
        [event] = service.events("connections closed at the end of the grace period")
        assert event["connections"] == 1


# --- buffers ------------------------------------------------------------------------------------------------------


def test_leases_and_tails_are_released(service: Serving, url: str) -> None:
    with service.redis() as line:
        assert line.redis("INCR", "orders") == ":1"
        assert line.redis("INCRBY", "rows", "50") == ":50"
        for scheme in ("sno", "snowflake", "locality"):
            line.redis("MINT", scheme)
            line.replies.readline()
    with open_store(url) as store:
        assert [record.token is not None for record in store.list_leases()] == [True] * 3
        assert min(record.high_water for record in store.list_namespaces()) >= 1000
        stop(service)
        assert [record.token is not None for record in store.list_leases()] == [False] * 3
        assert {record.name: record.high_water for record in store.list_namespaces()} == {"orders": 1, "rows": 50}
    service.start()
    with service.redis() as line:
        assert line.redis("INCR", "orders") == ":2"
        assert line.redis("INCR", "rows") == ":51"


@pytest.mark.parametrize("workers", [1, 2])
def test_unavailable_store_does_not_delay_the_stop(mariadb: MariaDB, tmp_path: Path, workers: int) -> None:
    with Proxy(mariadb) as proxy:
        # It would be waited for much longer than a stop may take.
        url = f"{proxy.url}?timeout_ms=60000"
        with serve(tmp_path, url, GRACE_S, is_hasty=True, workers=workers) as service:
            with service.redis() as line:
                line.redis("INCR", "orders")
                line.redis("MINT", "sno")
            proxy.blackhole()
            stop(service)
            assert service.events("not everything was given back")


# --- signals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT])
def test_sigint_and_sigquit_stop_the_service_too(service: Serving, number: signal.Signals) -> None:
    with service.redis() as line:
        line.redis("INCR", "orders")
    stop(service, number)
    service.start()
    with service.redis() as line:
        assert line.redis("INCR", "orders") == ":2"


def test_sigquit_lets_a_started_request_finish(patient: Serving) -> None:
    request = post("/alloc", '{"serviceName":"orders"}')
    with patient.http() as line:
        begin(line, request[:-1])
        patient.signal(signal.SIGQUIT)
        until(lambda: len(patient.events("stopping")) == patient.settings["workers"], "it stops")
        line.send(request[-1:])
        assert read_answer(line.replies).status == 200
    assert patient.wait() == 0


def ignored(service: Serving) -> None:
    """Send each of its processes the signals that other servers use otherwise, and wait until all are logged."""
    pids = [service.pid or 0, *service.workers()]
    sent = {(pid, number.name) for pid in pids for number in IGNORED}
    for pid, name in sent:
        os.kill(pid, signal.Signals[name])
    until(lambda: {(event["pid"], event["signal"]) for event in service.events("signal ignored")} == sent, "all logged")
    assert [service.pid, *service.workers()] == pids


def test_other_signals_are_logged_and_end_no_process(patient: Serving) -> None:
    with patient.redis() as line:
        assert line.redis("INCR", "orders") == ":1"
        ignored(patient)
        assert line.redis("INCR", "orders") == ":2"
    stop(patient)
    assert not patient.events("worker died")


def test_other_signals_do_not_hurry_a_stop(patient: Serving) -> None:
    request = post("/alloc", '{"serviceName":"orders"}')
    with patient.http() as line:
        begin(line, request[:-1])
        told_to_stop(patient)
        # A worker without a connection has ended.
        until(lambda: len(patient.workers()) == (patient.settings["workers"] == 2), "one is left")
        ignored(patient)
        line.send(request[-1:])
        assert read_answer(line.replies).status == 200
    assert patient.wait() == 0


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_second_signal_stops_at_once(patient: Serving, second: signal.Signals) -> None:
    with patient.http() as busy:
        begin(busy, post("/alloc", "{}")[:-1])
        told_to_stop(patient)
        stop(patient, second)
        assert busy.has_ended()


# --- destination of the log -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "log", ["2>/dev/full", "2>&-", "--log-format console >/dev/full"], ids=["full", "closed", "full output"]
)
def test_unwritable_log_delays_neither_requests_nor_the_stop(tmp_path: Path, log: str, workers: int) -> None:
    port = free_port()
    words = ["mintage", "serve", "--http", f"{HOST}:{port}", "--redis", "off", "--workers", str(workers)]
    environment = {**os.environ, "MINTAGE_HOME": str(tmp_path)}
    shell = ["sh", "-c", f'exec "$@" {log}', "sh", sys.executable, "-m", *words]
    with subprocess.Popen(shell, env=environment, stdin=subprocess.DEVNULL) as process:
        try:

            def serves() -> bool:
                assert process.poll() is None
                with suppress(OSError):
                    return b"HTTP/1.1 200 " in say((HOST, port), head("GET /healthz", "Connection: close"))
                return False

            until(serves, "it serves")
            # Refusals are logged.
            assert b"HTTP/1.1 404 " in say((HOST, port), head("GET /nothing", "Connection: close"))
            process.terminate()
            assert process.wait(60) == 0
        finally:
            process.kill()
