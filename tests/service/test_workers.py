"""Tests of ``--workers``: several processes that look like one and share no integer."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from mintage.errors import CATALOGUE
from mintage.server.config.keys import new_key
from tests.servers import ServerError
from tests.servers.server import HOST, until
from tests.service.load import post, read_answer, repeated
from tests.service.running import key_toml, running, talk
from tests.service.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKERS = 3
SERVED = ("incr", "incrby", "alloc", "next")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Serving]:
    store = f"sqlite:///{tmp_path}/ids.db"
    service = Serving(tmp_path / "service", store, workers=WORKERS, min_step=200, target_ms=200, grace_ms=1000)
    yield service
    service.kill()


@pytest.fixture
def serving(service: Serving) -> Serving:
    service.start()
    return service


def is_gone(pid: int) -> bool:
    """Return True if a process has ended, even if its parent has not waited for it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@contextmanager
def frozen(pids: list[int]) -> Iterator[None]:
    """Freeze processes during the block."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


# --- one service to clients ---------------------------------------------------------------------------------------


def test_each_worker_serves_both_ports_from_its_own_segments(serving: Serving) -> None:
    workers = serving.workers()
    assert len(workers) == WORKERS
    integers = set()
    for worker in workers:
        with ExitStack() as stack:
            # None but this one can accept them.
            with frozen([other for other in workers if other != worker]):
                redis, http = stack.enter_context(serving.redis()), stack.enter_context(serving.http())
                assert redis.redis("PING") == "+PONG"
                assert http.http("/healthz", method="GET").status == 200
            # Both connections are the same process's, for the second integer follows the first.
            integer = int(redis.redis("INCR", "orders")[1:])
            answer = http.http("/v1/sequences/orders:next")
            assert json.loads(answer.body)["ids"] == [str(integer + 1)]
            integers.add(integer)
    assert len(integers) == WORKERS


def test_readiness_is_logged_once_all_workers_serve(serving: Serving) -> None:
    [event] = serving.events("serving")
    assert event["workers"] == WORKERS
    assert event["http"] == f"{HOST}:{serving.port}"
    assert event["pid"] == serving.pid
    with serving.http() as line:
        assert line.http("/readyz", method="GET").status == 200


def test_workers_repeat_no_integer_and_add_up_their_metrics(serving: Serving) -> None:
    with serving.load() as load:
        load.wait_for_more(20_000)
    integers = load.integers()
    assert repeated(integers) == []
    serving.until_metric("mintage_integers_total", len(integers), namespace="orders")
    assert sum(serving.metric("mintage_requests_total", operation=each) for each in SERVED) == load.codes().total()
    until(lambda: serving.metric("mintage_connections") == 1, "only the scrape is connected")
    assert serving.metric("mintage_store_up") == 1


def test_metrics_of_workers_say_what_each_key_took(tmp_path: Path) -> None:
    keys = {name: new_key() for name in ("shop", "till")}
    rights = {"orders": ["next"], "sno": ["mint"], "*": ["metrics"]}
    toml = "auto_create = true\n" + "".join(key_toml(name, key, rights) for name, key in keys.items())
    with running(tmp_path, "--workers", "2", toml=toml) as service:
        for at, (name, key) in enumerate(keys.items()):
            for _ in range(8):  # connections, to both workers
                say = "INCR orders", f"INCRBY orders {at + 1}", f"MINT sno COUNT {at + 1}", "GET orders"
                talk(service, f"AUTH {name} {key}", *say)
        bearer = {"Authorization": f"Bearer {keys['shop']}"}

        def took(metric: str, **labels: str) -> float:
            request = urllib.request.Request(f"{service.url}/metrics", headers=bearer)
            with urllib.request.urlopen(request) as page:
                families = list(text_string_to_metric_families(page.read().decode()))
            samples = [each for family in families for each in family.samples if each.name == metric]
            return sum(each.value for each in samples if labels.items() <= each.labels.items())

        for key, count in (("shop", 1), ("till", 2)):
            integers, ids = 8 * (1 + count), 8 * count
            until(lambda k=key, n=integers: took("mintage_integers_total", key=k, namespace="orders") == n, "integers")  # type: ignore[misc]
            until(lambda k=key, n=ids: took("mintage_ids_total", key=k, scheme="sno") == n, "IDs")  # type: ignore[misc]
            refused = {"key": key, "operation": "get", "code": "request.rights"}
            until(lambda r=refused: took("mintage_requests_total", **r) == 8, "refusals")  # type: ignore[misc]


def test_each_worker_has_enough_file_descriptors(service: Serving) -> None:
    service.settings["max_connections"] = 20_000
    service.start()
    for worker in service.workers():
        limits = Path(f"/proc/{worker}/limits").read_text(encoding="ascii")
        found = re.search(r"Max open files +(\d+) +(\d+)", limits)
        assert found
        assert int(found[1]) >= min(40_000, int(found[2]))


@pytest.mark.parametrize("workers", [1, 2])
def test_connections_leave_files_for_the_store(service: Serving, workers: int) -> None:
    service.settings["workers"] = workers
    service.patch("import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96))")
    service.start()
    with ExitStack() as stack, service.http() as line:
        assert line.http("/healthz", method="GET").status == 200
        for _ in range(200):
            stack.enter_context(service.http())
        # More than the two seconds between two checks of the store.
        time.sleep(5)
        assert line.http("/v1/sequences/orders:reserve?count=10").status == 200
    assert not service.events("store away")
    assert service.events("few open files")


def test_fewer_connections_than_the_setting_are_logged(service: Serving) -> None:
    service.settings["max_connections"] = 300
    service.patch("import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (700, 700))")
    service.start()
    [event] = service.events("few open files")
    assert (event["allowed"], event["max_connections"]) == (700, 222)


@pytest.mark.parametrize("name", ["PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir"])
@pytest.mark.parametrize("workers", [1, 2])
def test_metrics_of_other_programs_are_left_alone(service: Serving, tmp_path: Path, name: str, workers: int) -> None:
    service.settings["workers"] = workers
    service.environment[name] = str(tmp_path / "others")
    service.start()
    assert service.get("/metrics").status == 200
    assert not (tmp_path / "others").exists()


# --- end of workers -----------------------------------------------------------------------------------------------


def test_killed_worker_is_replaced_and_counted(serving: Serving) -> None:
    with serving.load() as load:
        load.wait_for_more(5000)
        before = serving.metric("mintage_integers_total", namespace="orders")
        killed = serving.workers()[0]
        os.kill(killed, signal.SIGKILL)
        serving.until_metric("mintage_workers_replaced_total", 1)
        until(lambda: len(set(serving.workers()) - {killed}) == WORKERS, "there are as many as before")
        load.wait_for_more(5000)
        # What it counted stays.
        assert serving.metric("mintage_integers_total", namespace="orders") > before
    assert repeated(load.integers()) == []
    [event] = serving.events("worker died")
    assert (event["pid"], event["exit"]) == (killed, -signal.SIGKILL)


def test_worker_killed_often_leaves_no_files_and_lowers_no_count(serving: Serving) -> None:
    [directory] = serving.directory.glob("mintage-metrics-*")
    with serving.redis() as redis:
        assert redis.redis("INCR", "orders").startswith(":")
    serving.until_metric("mintage_integers_total", 1)
    before = {each.name for each in directory.iterdir()}
    for times in range(1, 4):
        killed = serving.workers()[0]
        os.kill(killed, signal.SIGKILL)
        serving.until_metric("mintage_workers_replaced_total", times)
        until(lambda k=killed: len(set(serving.workers()) - {k}) == WORKERS, "there are as many as before")  # type: ignore[misc]
        until(lambda: serving.metric("mintage_store_up") == 1, "all of them serve")
        assert serving.metric("mintage_integers_total") == 1
    assert {each.name for each in directory.iterdir()} == before


def be_impatient(service: Serving) -> None:
    """Let the service replace a silent worker soon, but only once all have started, which may take long."""
    watch = "lambda self: (setattr(supervisor, '_SILENCE_S', 4.0), watch(self))[1]"
    service.patch(
        "from mintage.server.process import supervisor; Supervisor = supervisor.Supervisor; "
        f"watch = Supervisor._watch; Supervisor._watch = {watch}"
    )


def test_hanging_worker_is_replaced(service: Serving) -> None:
    be_impatient(service)
    service.start()
    hangs = service.workers()[0]
    os.kill(hangs, signal.SIGSTOP)
    until(lambda: is_gone(hangs), "the worker that hangs is killed")
    until(lambda: len(service.workers()) == WORKERS, "there are as many as before")
    service.signal(signal.SIGTERM)
    assert service.wait() == 0


def test_pause_of_the_whole_service_ends_no_worker(service: Serving) -> None:
    be_impatient(service)
    service.start()
    workers, parent = service.workers(), service.pid
    assert parent
    # As `docker pause` does. The parent is the first to go on, by a shell, as this process may be held up meanwhile.
    with frozen([*workers, parent]):
        time.sleep(7)
        goes_on = 'kill -CONT "$1"; shift; sleep 1.5; kill -CONT "$@"'
        subprocess.run(["sh", "-c", goes_on, "sh", *map(str, [parent, *workers])], check=True)
    until(lambda: len(service.workers()) == WORKERS, "all go on")
    assert service.workers() == workers
    assert not service.events("worker died")


def test_worker_is_replaced_after_a_cleaner_removed_its_metrics(serving: Serving) -> None:
    [directory] = serving.directory.glob("mintage-metrics-*")
    # A process opens its files when it first counts, and the parent counts as well.
    kinds = {"counter_*.db": WORKERS + 1, "gauge_livesum_*.db": WORKERS}

    def all_are_open() -> bool:
        return all(sum(any(each.read_bytes()) for each in directory.glob(kind)) == n for kind, n in kinds.items())

    until(all_are_open, "all files are open")
    shutil.rmtree(directory)
    killed = serving.workers()[0]
    os.kill(killed, signal.SIGKILL)
    until(lambda: len(set(serving.workers()) - {killed}) == WORKERS, "there are as many as before")
    serving.until_metric("mintage_store_up", 1)
    assert len(serving.events("worker died")) == 1
    serving.signal(signal.SIGTERM)
    assert serving.wait() == 0
    assert not directory.exists()


def test_worker_is_replaced_when_its_metrics_have_room_again(serving: Serving) -> None:
    parent = serving.pid
    assert parent
    killed = serving.workers()[0]
    _, most = resource.prlimit(parent, resource.RLIMIT_FSIZE)
    resource.prlimit(parent, resource.RLIMIT_FSIZE, (60_000, most))
    os.kill(killed, signal.SIGKILL)
    until(lambda: len(serving.events("worker not started")) >= 2, "its successor has no room, twice")
    resource.prlimit(parent, resource.RLIMIT_FSIZE, (most, most))
    until(lambda: len(set(serving.workers()) - {killed}) == WORKERS, "there are as many as before")
    [event] = serving.events("worker died")
    assert event["pid"] == killed


def test_worker_is_replaced_while_no_log_line_can_be_written(service: Serving) -> None:
    service.patch(
        "import os; from mintage.server.process.supervisor import Supervisor; watch = Supervisor._watch; "
        "Supervisor._watch = lambda self: (os.dup2(os.open('/dev/full', os.O_WRONLY), 2), watch(self))[1]"
    )
    service.start()
    killed = service.workers()[0]
    os.kill(killed, signal.SIGKILL)
    until(lambda: len(set(service.workers()) - {killed}) == WORKERS, "there are as many as before")
    service.signal(signal.SIGTERM)
    assert service.wait() == 0


@pytest.mark.skipif(shutil.which("systemd-tmpfiles") is None, reason="needs systemd-tmpfiles")
def test_cleaner_of_systemd_leaves_the_metrics(serving: Serving, tmp_path: Path) -> None:
    rules = tmp_path / "rules.conf"
    rules.write_text(f"d {serving.directory} 0755 - - 1s\n", encoding="utf-8")
    [directory] = serving.directory.glob("mintage-metrics-*")
    before = {each.name for each in directory.iterdir()}
    time.sleep(3)
    subprocess.run(["systemd-tmpfiles", "--clean", rules], check=True)
    assert {each.name for each in directory.iterdir()} >= before


def test_workers_end_after_their_parent_is_killed(serving: Serving) -> None:
    with serving.load() as load:
        load.wait_for_more(1000)
        workers, parent = serving.workers(), serving.pid
        assert parent
        os.kill(parent, signal.SIGKILL)
        serving.wait()
        until(lambda: all(map(is_gone, workers)), "no worker is left")
        assert len(serving.events("stopped")) == WORKERS
        for port in (serving.port, serving.redis_port):
            with socket.socket() as free:
                free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                free.bind((HOST, port))
        assert not list(serving.directory.glob("mintage-*"))
        serving.start()
        load.wait_for_more(1000)
    assert repeated(load.integers()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_signal_to_all_processes_counts_once(service: Serving, number: signal.Signals) -> None:
    # Ctrl-C in a terminal and some service managers send it so. Handled twice, it would end requests.
    service.settings["grace_ms"] = 60_000
    service.start()
    request = post("/alloc", '{"serviceName":"orders"}')
    with service.http() as line:
        assert line.http("/healthz", method="GET").status == 200
        line.send(request[:-1])
        group = service.pid
        assert group
        os.killpg(group, number)
        until(lambda: len(service.events("stopping")) == WORKERS, "all stop")
        line.send(request[-1:])
        assert read_answer(line.replies).status == 200
    assert service.wait() == 0
    assert len(service.events("stopped")) == WORKERS
    log = service.log.read_text(encoding="utf-8")
    assert "Traceback" not in log
    assert "worker died" not in log


def test_worker_that_is_killed_while_it_stops_is_logged(service: Serving) -> None:
    service.settings["grace_ms"] = 60_000
    service.start()
    with service.http() as line:
        assert line.http("/healthz", method="GET").status == 200
        line.send(post("/alloc", '{"serviceName":"orders"}')[:-1])
        service.signal(signal.SIGTERM)
        until(lambda: len(service.events("stopped")) == WORKERS - 1, "the others have stopped")
        until(lambda: len(service.workers()) == 1, "the others have ended")
        [killed] = service.workers()
        os.kill(killed, signal.SIGKILL)
        assert service.wait() == 1
    [event] = service.events("worker died")
    assert (event["pid"], event["exit"]) == (killed, -signal.SIGKILL)


def test_metrics_of_workers_have_their_room_from_the_start(serving: Serving) -> None:
    with serving.redis() as redis:
        assert redis.redis("INCR", "orders").startswith(":")
    serving.until_metric("mintage_integers_total", 1)
    [directory] = serving.directory.glob("mintage-metrics-*")
    found = [each.stat() for each in directory.glob("*.db")]
    assert len(found) == 6 * (WORKERS + 1)
    assert all(each.st_blocks * 512 >= each.st_size for each in found)


# --- failed starts ------------------------------------------------------------------------------------------------


def test_workers_that_cannot_serve_end_the_service_with_a_reason(service: Serving) -> None:
    error = "StoreError('the disk is full', code='store.refused')"
    raises = f"from mintage.errors import StoreError; S.open_store = lambda _: (_ for _ in ()).throw({error})"
    service.patch(f"from mintage.server.config.settings import Settings as S; {raises}", workers_only=True)
    with pytest.raises(ServerError):
        service.start()
    assert service.wait() == CATALOGUE["store.refused"].exit
    text = service.log.read_text(encoding="utf-8")
    assert '"event": "cannot serve", "code": "store.refused", "error": "the disk is full"' in text
    assert '"event": "serving"' not in text


def test_workers_without_room_for_their_metrics_do_not_start(service: Serving) -> None:
    service.settings["store"] = f"sqlite:///{service.directory}/ids.db"
    service.patch("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))")
    with pytest.raises(ServerError):
        service.start()
    assert service.wait() == 74
    text = service.log.read_text(encoding="utf-8")
    assert re.search(r"^mintage: .*/mintage-metrics-\S+ has no room for metrics: .*TMPDIR$", text, re.MULTILINE)
    assert "worker died" not in text
    assert not list(service.directory.glob("mintage-metrics-*"))


def test_workers_that_die_at_startup_end_the_service(service: Serving) -> None:
    service.patch("import os; os._exit(3)", workers_only=True)
    with pytest.raises(ServerError):
        service.start()
    assert service.wait() == 3
    assert '"event": "worker died"' in service.log.read_text(encoding="utf-8")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_signal_while_a_worker_is_forked_stops_the_service(service: Serving, number: signal.Signals) -> None:
    service.patch(
        "import os; fork = os.fork\n"
        f"os.fork = lambda: (lambda child: (child and os.kill(os.getpid(), {number:d}), child)[1])(fork())"
    )
    with pytest.raises(ServerError):
        service.start()
    assert service.wait() == 0
    assert "Traceback" not in service.log.read_text(encoding="utf-8")


def test_signal_to_all_processes_of_a_start_is_no_failure(service: Serving) -> None:
    # The worker ends before its parent sees the signal.
    service.patch(
        "import os, signal, time\n"
        "from multiprocessing import parent_process\n"
        "from mintage.server.process import supervisor, worker\n"
        "def end():\n"
        "    time.sleep(1)\n"
        "    parent = parent_process().pid\n"
        "    os.kill(parent, signal.SIGSTOP)\n"
        "    os.kill(parent, signal.SIGTERM)\n"
        "    if not os.fork():\n"
        "        time.sleep(0.5)\n"
        "        os.kill(parent, signal.SIGCONT)\n"
        "        os._exit(0)\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "worker.import_all = end"
    )
    service.settings["workers"] = 2
    with pytest.raises(ServerError):
        service.start()
    assert service.wait() == 0
    assert not service.events("worker died")


def test_ctrl_c_while_workers_are_spawned_ends_none_of_them(service: Serving) -> None:
    service.patch(
        "import os, signal, sys\n"
        "if '--multiprocessing-fork' in sys.orig_argv: os.kill(os.getpid(), signal.SIGINT)\n"
        "from mintage.platform import machine; machine.can_fork = lambda: False"
    )
    service.start()
    assert not service.events("worker died")
    service.signal(signal.SIGTERM)
    assert service.wait() == 0


# --- signals that the program before it ignores or blocks ---------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_blocked_signal_stops_the_service_all_the_same(service: Serving, workers: int) -> None:
    service.settings["workers"] = workers
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        service.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    service.signal(signal.SIGTERM)
    assert service.wait() == 0


def test_dead_workers_are_noticed_if_sigchld_was_ignored(service: Serving) -> None:
    # In the process itself, as if it had begun so.
    service.patch("import signal; signal.signal(signal.SIGCHLD, signal.SIG_IGN)")
    service.start()
    killed = service.workers()[0]
    os.kill(killed, signal.SIGKILL)
    until(lambda: len(set(service.workers()) - {killed}) == WORKERS, "there are as many as before")
    service.signal(signal.SIGTERM)
    assert service.wait() == 0
