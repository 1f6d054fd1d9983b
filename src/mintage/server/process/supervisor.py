"""The parent process of several workers.

It binds the listeners and starts a process for each worker. They accept connections from the same sockets. No two
workers share a segment or a lease, as each reserves its own.

On Linux the parent imports what a worker needs and forks it, so that all of them share the memory of the modules. The
parent has no thread, no event loop and no connection to a store, and so a worker inherits none.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing import connection, get_context, resource_tracker
from multiprocessing.connection import Connection as Pipe
from multiprocessing.process import current_process
from typing import Any, Final

import structlog

from mintage.platform import files
from mintage.platform.machine import can_fork
from mintage.server.config.settings import Settings
from mintage.server.core.journal import DIRECTORY
from mintage.server.core.otlp import STOP_S
from mintage.server.loop.spread import Share, Shares
from mintage.server.process.drain import FLUSH_TIMEOUT_S, SHUTDOWN_TIMEOUT_S, drop_unwritten_output
from mintage.server.process.worker import HANDLED, IGNORED, STOPPING, import_all, log_ignored, run_worker

_log = structlog.get_logger("mintage.server")

#: The supervisor replaces a worker whose loop has sent no beat for this time.
_SILENCE_S: Final = 30.0
#: If a worker dies sooner than this after its start, the supervisor pauses before it starts the next one.
_STARTUP_GRACE_S: Final = 5.0
_PAUSE_S: Final = 1.0


class _Worker:
    """A worker process, and the pipe to it."""

    def __init__(
        self,
        name: str,
        settings: Settings,
        listeners: Mapping[str, socket.socket],
        inherited: Sequence[Pipe | socket.socket],
        shares: Mapping[str, Share] | None,
    ) -> None:
        self.pipe, theirs = connection.Pipe()
        is_forked = can_fork()
        context: Any = get_context("fork" if is_forked else "spawn")
        ours = (self.pipe, *inherited) if is_forked else ()
        self.process = context.Process(None, run_worker, name, (settings, listeners, theirs, ours, shares))
        # A worker has the parent's handlers, or the default ones, until it sets its own: signals wait for that.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
        try:
            if not is_forked:
                # The process that it starts beside the first worker lets some of the signals through again.
                resource_tracker.ensure_running()
                signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED)
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()
        self.serves = False
        """True once it has sent a beat."""
        self.started_s = self._last_beat_s = self._looked_s = time.monotonic()

    def is_responsive(self) -> bool:
        """Return True if the process lives and its loop turns."""
        before_s, self._looked_s = self._looked_s, time.monotonic()
        if self._looked_s - before_s > _SILENCE_S / 2:
            # This process was stopped, and the worker perhaps with it.
            self._last_beat_s = self._looked_s
        with suppress(OSError, EOFError):
            while self.pipe.poll():
                self.pipe.recv_bytes(16)
                self.serves = True
                self._last_beat_s = time.monotonic()
        return self.process.is_alive() and self._looked_s - self._last_beat_s < _SILENCE_S

    def end(self) -> int:
        """Kill the process unless it has ended, and return its exit code."""
        self.process.kill()
        self.process.join()
        self.pipe.close()
        return self.process.exitcode or 0


class Supervisor:
    """The parent process: it starts workers, replaces those that die or hang, and stops them.

    :param announce: called once all workers serve.
    """

    def __init__(
        self, settings: Settings, listeners: Mapping[str, socket.socket], announce: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._listeners = listeners
        self._announce = announce
        self._workers: list[_Worker] = []
        self._shares: Shares | None = None
        self._signals: list[int] = []
        self._ignored: list[int] = []
        # A signal writes to this pair, which wakes the thread in `_wait`.
        self._wake, self._waker = socket.socketpair()
        self._wake.setblocking(False)
        self._waker.setblocking(False)

    def run(self) -> int:
        """Run until SIGTERM, SIGINT or SIGQUIT, and return the exit code."""
        # Set before any import of prometheus_client, which reads the variable once.
        directory = os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix="mintage-metrics-")
        os.environ[DIRECTORY] = directory
        # systemd-tmpfiles removes old files from no directory that somebody has locked.
        with suppress(OSError):
            files.lock_shared(os.open(directory, os.O_RDONLY))
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        for numbers, kept in ((STOPPING, self._signals), (IGNORED, self._ignored)):
            for number in numbers:
                signal.signal(number, partial(_keep, kept))
        if can_fork():
            import_all()
            self._shares = Shares(self._settings.workers, ("http", "redis"))
            # The collector would write to the memory that workers share.
            gc.collect()
            gc.freeze()
        gc.enable()
        try:
            failed = self._start() or self._watch()
        finally:
            stopped = self._stop()
            shutil.rmtree(directory, ignore_errors=True)
        return failed or stopped

    def _worker(self, at: int) -> _Worker:
        """Start the worker with this index.

        A forked one must close what the parent alone may have, to see the end of the parent.
        """
        # No worker is forked while output cannot be written,
        drop_unwritten_output()
        # and none starts without its directory, which a cleaner of temporary files may have removed.
        os.makedirs(os.environ[DIRECTORY], 0o700, exist_ok=True)
        from mintage.server.core.metrics import reserve_files

        name = f"worker-{at}"
        reserve_files(current_process().name, name)
        pipes = [worker.pipe for worker in self._workers if not worker.pipe.closed]
        shares = self._shares.of(at) if self._shares else None
        return _Worker(name, self._settings, self._listeners, (*pipes, self._wake, self._waker), shares)

    def _start(self) -> int:
        """Start the workers. Return the exit code of one that cannot serve; 0 once all serve, or at a signal."""
        while len(self._workers) < self._settings.workers:
            self._workers.append(self._worker(len(self._workers)))
        while not self._signals:
            starting = [worker for worker in self._workers if not worker.serves]
            if not starting:
                self._announce()
                break
            self._wait([worker.pipe for worker in starting])
            for worker in starting:
                if not self._signals and not worker.is_responsive():
                    return self._reap(worker) or 1
        return 0

    def _watch(self) -> int:
        """Replace workers that die or hang, until a signal."""
        from prometheus_client.multiprocess import mark_process_dead

        from mintage.server.core.metrics import workers_replaced

        replaced = workers_replaced()
        while not self._signals:
            self._wait([worker.process.sentinel for worker in self._workers])
            for at, worker in enumerate(self._workers):
                if self._signals or worker.is_responsive():
                    continue
                if not worker.pipe.closed:
                    self._reap(worker)
                    # Its gauges vanish; its successor, of the same name, goes on with its counters.
                    mark_process_dead(worker.process.name)  # type: ignore[no-untyped-call]
                if time.monotonic() - worker.started_s < _STARTUP_GRACE_S:
                    self._wait([])
                if self._signals:
                    break
                try:
                    self._workers[at] = self._worker(at)
                except OSError as error:
                    # Too many processes, too little memory or a full disk: it tries again later.
                    _log.error("worker not started", error=str(error))
                    self._wait([])
                else:
                    replaced.inc()
        return 0

    def _wait(self, signs: list[Any]) -> None:
        """Wait for one of these, for a signal, or for a pause."""
        connection.wait([self._wake, *signs], _PAUSE_S)
        self._log_ignored()

    def _log_ignored(self) -> None:
        with suppress(BlockingIOError):
            self._wake.recv(4096)
        while self._ignored:
            log_ignored(self._ignored.pop(0))

    def _reap(self, worker: _Worker) -> int:
        code = worker.end()
        _log.error("worker died", pid=worker.process.pid, exit=code)
        return code

    def _stop(self) -> int:
        """Stop all workers, and return 0 if all of them ended as they should."""
        for listener in self._listeners.values():
            listener.close()
        limits = self._settings.grace_ms / 1000, FLUSH_TIMEOUT_S, SHUTDOWN_TIMEOUT_S, STOP_S, _PAUSE_S
        deadline = time.monotonic() + sum(limits)
        for worker in self._workers:
            worker.process.terminate()
        hurried = False
        while (left := [each for each in self._workers if each.process.is_alive()]) and time.monotonic() < deadline:
            if len(self._signals) > 1 and not hurried:
                hurried = True
                # They then stop without waiting for their clients.
                for worker in left:
                    with suppress(OSError):
                        worker.pipe.send_bytes(b"!")
            connection.wait([worker.process.sentinel for worker in left], 0.1)
            self._log_ignored()
        # The signal may end a worker that was just starting, or that had just finished. Others were reaped before.
        expected = {0, -signal.SIGTERM}
        failed = [each for each in self._workers if not each.pipe.closed and each.process.exitcode not in expected]
        for worker in failed:
            self._reap(worker)
        for worker in self._workers:
            worker.end()
        return int(bool(failed))


def _keep(kept: list[int], number: int, _: object) -> None:
    kept.append(number)
