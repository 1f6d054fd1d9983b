"""Programs that mint with each kind of concurrency in Python: ``python -m tests.runtimes.programs fork 20``.

The number is how often :func:`tests.runtimes.minting.mint` is called. It is imported late, since libraries that
replace parts of the standard library may have to be imported first.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

AT_ONCE: Final = 4
PATIENCE_S: Final = 60.0
GREENLETS: Final = 200


def mint(_: object = None) -> None:
    from tests.runtimes import minting

    minting.mint()


# --- processes --------------------------------------------------------------------------------------------------------


def children(method: str, calls: int) -> None:
    """Start a process for each call, a few at a time."""
    from multiprocessing import get_context

    context: Any = get_context(method)
    mint()
    running: deque[Any] = deque()
    for _ in range(calls - 1):
        running.append(context.Process(target=mint))
        running[-1].start()
        if len(running) >= AT_ONCE:
            end(running.popleft())
    for process in running:
        end(process)


def end(process: Any) -> None:
    process.join()
    if process.exitcode:
        raise SystemExit(f"a child ended with {process.exitcode}")


def pool(method: str, calls: int) -> None:
    """Map the calls over a pool whose workers are replaced after five."""
    from multiprocessing import get_context

    mint()
    workers = get_context(method).Pool(AT_ONCE, maxtasksperchild=5)
    workers.map(mint, range(calls - 1), chunksize=1)
    workers.close()
    workers.join()


def executor(method: str, calls: int) -> None:
    """Map the calls over an executor; not with ``max_tasks_per_child``, which deadlocks on Python 3.11 by itself.

    An executor starts a worker only while no other is idle, so each worker waits for all of them and then mints.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    mint()
    context: Any = get_context(method)
    started = context.Barrier(AT_ONCE)
    with ProcessPoolExecutor(AT_ONCE, context, initializer=mint_together, initargs=(started,)) as workers:
        list(workers.map(mint, range(max(calls - 1 - AT_ONCE, AT_ONCE))))


def mint_together(started: Any) -> None:
    """Mint once as many processes as the barrier counts have started."""
    started.wait(PATIENCE_S)
    mint()


# --- threads and event loops ------------------------------------------------------------------------------------------


def threads(calls: int) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as workers:
        list(workers.map(mint, range(calls)))


def asyncio(calls: int) -> None:
    """Mint in the loop and in its threads."""
    from asyncio import gather, run, to_thread

    async def in_loop() -> None:
        mint()

    async def main() -> None:
        await gather(*(to_thread(mint) if number % 2 else in_loop() for number in range(calls)))

    run(main())


def trio(calls: int) -> None:
    """Mint in the loop and in its threads."""
    import trio

    async def in_loop() -> None:
        mint()

    async def in_thread() -> None:
        await trio.to_thread.run_sync(mint)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(calls):
                if number % 2:
                    nursery.start_soon(in_thread)
                else:
                    nursery.start_soon(in_loop)

    trio.run(main)


def gevent_first(calls: int) -> None:
    """Patch, then import."""
    from gevent import monkey

    monkey.patch_all()
    gevent_greenlets(calls)


def gevent_late(calls: int) -> None:
    """Import, then patch."""
    from tests.runtimes import minting  # noqa: F401

    gevent_first(calls)


def gevent_greenlets(calls: int) -> None:
    """Mint in many greenlets, with nothing patched unless the caller did it."""
    from gevent.pool import Pool

    greenlets = Pool(GREENLETS)
    # Not map, which returns in order: the first failure ends the program.
    for _ in greenlets.imap_unordered(mint, range(calls)):
        pass


def gevent_forks(calls: int) -> None:
    """Fork with ``gevent.os.fork`` after minting, as a prefork server with greenlets does."""
    from gevent import monkey

    monkey.patch_all()
    mint()
    for _ in range(AT_ONCE):
        pid = os.fork()
        if pid == 0:
            gevent_greenlets((calls - 1) // AT_ONCE + 1)
            sys.exit()
    for _ in range(AT_ONCE):
        _, status = os.wait()
        if status:
            raise SystemExit(f"a child ended with {os.waitstatus_to_exitcode(status)}")


def eventlet_first(calls: int) -> None:
    """Patch, then import."""
    eventlet = quietly("eventlet")
    eventlet.monkey_patch()
    eventlet_greenlets(calls)


def eventlet_late(calls: int) -> None:
    """Import, then patch."""
    from tests.runtimes import minting  # noqa: F401

    eventlet_first(calls)


def eventlet_greenlets(calls: int) -> None:
    """Mint in many greenlets, with nothing patched unless the caller did it."""
    eventlet = quietly("eventlet")
    for _ in eventlet.GreenPool(GREENLETS).imap(mint, range(calls)):
        pass


def quietly(name: str) -> Any:
    """Import eventlet, which warns that it is deprecated."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


# --- interpreters -----------------------------------------------------------------------------------------------------

INSIDE: Final = """
import sys
sys.path[:] = {path!r}
from tests.runtimes import minting
for _ in range({calls}):
    minting.mint()
"""


def interpreter(calls: int) -> None:
    """Mint in a subinterpreter that shares the GIL, as mod_wsgi does; or print the refusal."""
    code = INSIDE.format(path=sys.path, calls=calls)
    reported = f"""
try:
{"".join(f"    {line}" for line in code.splitlines(keepends=True))}
except ImportError as error:
    print("ImportError:", error, flush=True)
"""
    if sys.version_info >= (3, 13):
        interpreters = importlib.import_module("_interpreters")
        made = interpreters.create("legacy")
        failed = interpreters.exec(made, reported)
    else:
        interpreters = importlib.import_module("_xxsubinterpreters")
        made = interpreters.create(isolated=False)
        failed = interpreters.run_string(made, reported)
    interpreters.destroy(made)
    if failed:
        raise SystemExit(str(failed))


def interpreter_beside(calls: int) -> None:
    """Mint in a subinterpreter after the main interpreter has minted."""
    mint()
    interpreter(calls)


# --- all of them ------------------------------------------------------------------------------------------------------

PROGRAMS: Final[dict[str, Callable[[int], None]]] = {
    each.__name__: each
    for each in (
        threads,
        asyncio,
        trio,
        gevent_first,
        gevent_late,
        gevent_greenlets,
        gevent_forks,
        eventlet_first,
        eventlet_late,
        eventlet_greenlets,
        interpreter,
        interpreter_beside,
    )
}
OF_PROCESSES: Final[dict[str, Callable[[str, int], None]]] = {
    each.__name__: each for each in (children, pool, executor)
}


def main(words: Iterable[str]) -> None:
    match [*words]:
        case [name, method, calls]:
            OF_PROCESSES[name](method, int(calls))
        case [name, calls]:
            PROGRAMS[name](int(calls))


if __name__ == "__main__":
    main(sys.argv[1:])
