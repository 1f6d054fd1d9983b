"""The runtimes, as data: how to start, query and signal each of them, and its requirements."""

from __future__ import annotations

import importlib.util
import signal
import sys
from dataclasses import dataclass
from typing import Final

HTTP: Final = "http"
CELERY: Final = "celery"
PROGRAM: Final = "program"


@dataclass(frozen=True)
class Runtime:
    """One way to run mintage."""

    name: str
    kind: str
    command: tuple[str, ...]
    """Words after ``python -m``; ``{port}`` and ``{directory}`` are filled in."""
    needs: tuple[str, ...] = ()
    """Packages, by the names that they are imported by."""
    processes: int = 1
    """The least number of processes that must have minted."""
    store: str = "sqlite"
    """Or ``redis``, if the runtime replaces sockets."""
    is_early: bool = False
    """True if the application mints while it is loaded, before the fork."""
    signals: tuple[signal.Signals, ...] = ()
    """Sent to the first process, one after another while it is asked."""
    family: int = 0
    """The number of processes between replacements, for which the stop waits; 0 if it stops at any time."""
    keeps_first: bool = False
    """True if the first process never runs the exit handlers of Python, and so keeps its leases."""
    may_refuse: bool = False
    """True if it may refuse to import mintage instead, in one sentence."""

    def lacking(self) -> str | None:
        """Return the reason why it cannot run here, or None."""
        missing = [name for name in self.needs if importlib.util.find_spec(name) is None]
        return f"{self.name} needs {', '.join(missing)}" if missing else None

    def uses_redis(self) -> bool:
        """Return True if it needs a Redis, as its store or as the broker of Celery."""
        return self.store == "redis" or self.kind == CELERY


GUNICORN: Final = (
    *("gunicorn", "--workers=2", "--bind=127.0.0.1:{port}", "--worker-tmp-dir={directory}", "--no-control-socket"),
    "--timeout=120",
)
RECYCLED: Final = ("--max-requests=10",)
CLASSES: Final = {
    "sync": (("--worker-class=sync", "tests.runtimes.apps:wsgi"), ()),
    "gthread": (("--worker-class=gthread", "--threads=4", "tests.runtimes.apps:wsgi"), ()),
    # A worker that is replaced amid requests may wait out the time of grace, whatever it serves.
    "gevent": (("--worker-class=gevent", "--graceful-timeout=20", "tests.runtimes.apps:wsgi"), ("gevent",)),
    "uvicorn": (
        ("--worker-class=uvicorn_worker.UvicornWorker", "tests.runtimes.apps:asgi"),
        ("uvicorn", "uvicorn_worker"),
    ),
}
# It would kill a worker that a busy machine holds up for 5 seconds.
UVICORN: Final = (
    *("uvicorn", "--port={port}", "--log-level=warning", "--timeout-worker-healthcheck=60", "tests.runtimes.apps:asgi"),
)
UWSGI: Final = (
    *("tests.runtimes.uwsgi", "--http-socket=127.0.0.1:{port}", "--master", "--processes=2", "--need-app"),
    # By itself SIGTERM reloads it; with --die-on-term it ends workers amid a request.
    *("--hook-master-start=unix_signal:15 gracefully_kill_them_all", "--min-worker-lifetime=0"),
    *("--disable-logging", "--wsgi=tests.runtimes.apps"),
)
WORKER: Final = ("celery", "--app=tests.runtimes.tasks", "worker", "--loglevel=INFO", "--concurrency=4")
PROGRAMS: Final = ("tests.runtimes.programs",)


def gunicorn() -> list[Runtime]:
    """Return each class of workers: restarted by signals, forked from a minting parent, replaced after requests."""
    return [
        Runtime(
            name=f"gunicorn {name}{variant}",
            kind=HTTP,
            command=(*GUNICORN, *options, *words),
            needs=("gunicorn", *needs),
            processes=4 if variant else 6,
            is_early=variant == " --preload",
            signals=() if "requests" in variant else (signal.SIGHUP, signal.SIGHUP),
            family=3,
        )
        for name, (words, needs) in CLASSES.items()
        for variant, options in {"": (), " --preload": ("--preload",), " --max-requests": RECYCLED}.items()
    ]


def uwsgi() -> list[Runtime]:
    """Return workers forked from a minting parent, or loading the application themselves; with and without threads."""
    threads = "--enable-threads"
    # Without its hooks uWSGI forks beside threads of Python, any of which may hold the GIL, and the child waits for it.
    early = (threads, "--py-call-uwsgi-fork-hooks")
    variants = {
        "prefork": early,
        "prefork, 4 threads": (*early, "--threads=4"),
        "prefork, max-requests": (*early, "--max-requests=10"),
        "lazy": (threads, "--lazy-apps"),
        "without threads": (),
    }
    served = [
        Runtime(
            name=f"uwsgi {name}",
            kind=HTTP,
            command=(*UWSGI, *options),
            needs=("pyuwsgi",),
            processes=4 if "max-requests" in name else 2,
            is_early=early[1] in options,
            family=3,
            keeps_first=True,
        )
        for name, options in variants.items()
    ]
    mounted = (*UWSGI[:-1], threads, *(f"--mount=/{name}=tests.runtimes.apps:wsgi" for name in ("first", "second")))
    one = (*mounted, "--single-interpreter")
    return [
        *served,
        Runtime("uwsgi two applications", HTTP, mounted, ("pyuwsgi",), may_refuse=True),
        Runtime("uwsgi two applications, one interpreter", HTTP, one, ("pyuwsgi",), processes=2),
    ]


def celery() -> list[Runtime]:
    """Return each pool; the parent of prefork has minted."""
    pools = {
        "prefork": ("--pool=prefork",),
        "prefork, 5 tasks a child": ("--pool=prefork", "--max-tasks-per-child=5"),
        "threads": ("--pool=threads",),
        "gevent": ("--pool=gevent",),
        "eventlet": ("--pool=eventlet",),
    }
    return [
        Runtime(
            name=f"celery {name}",
            kind=CELERY,
            command=(*WORKER, *options),
            needs=("celery", *({name} & {"gevent", "eventlet"})),
            processes=3 if "prefork" in name else 1,
            family=5 if "prefork" in name else 1,
            is_early="prefork" in name,
        )
        for name, options in pools.items()
    ]


def programs() -> list[Runtime]:
    """Return pools of processes, threads, event loops, greenlets and interpreters."""
    methods = ("fork", "forkserver", "spawn")
    processes = [
        Runtime(
            name=f"{what} {method}",
            kind=PROGRAM,
            command=(*PROGRAMS, name, method),
            processes=4,
        )
        for what, name in (("multiprocessing", "children"), ("Pool", "pool"), ("ProcessPoolExecutor", "executor"))
        for method in methods
    ]
    greenlets = [
        Runtime(f"{name.replace('_', ', ')}, {store}", PROGRAM, (*PROGRAMS, name), (name.split("_")[0],), store=store)
        for name in (
            *("gevent_first", "gevent_late", "gevent_greenlets", "gevent_forks"),
            *("eventlet_first", "eventlet_late", "eventlet_greenlets"),
        )
        for store in ("sqlite", "redis")
    ]
    return [
        *processes,
        Runtime("threads", PROGRAM, (*PROGRAMS, "threads")),
        Runtime("asyncio", PROGRAM, (*PROGRAMS, "asyncio")),
        Runtime("trio", PROGRAM, (*PROGRAMS, "trio"), ("trio",)),
        *greenlets,
        Runtime("sub-interpreter", PROGRAM, (*PROGRAMS, "interpreter"), may_refuse=True),
        Runtime("sub-interpreter beside", PROGRAM, (*PROGRAMS, "interpreter_beside"), may_refuse=True),
    ]


_ALL: Final = [
    *gunicorn(),
    Runtime("uvicorn", HTTP, UVICORN, ("uvicorn",)),
    Runtime("uvicorn --workers", HTTP, (*UVICORN, "--workers=2"), ("uvicorn",), 4, signals=(signal.SIGHUP,)),
    Runtime(
        "uvicorn --limit-max-requests",
        HTTP,
        (*UVICORN, "--workers=2", "--limit-max-requests=10"),
        ("uvicorn",),
        processes=4,
    ),
    *uwsgi(),
    *celery(),
    *programs(),
]
RUNTIMES: Final = {runtime.name: runtime for runtime in _ALL}
PYTHON: Final = (sys.executable, "-m")
