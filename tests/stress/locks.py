"""Node numbers held by locks, when the registry is not writable: former defects that repeated IDs.

``python -m tests.stress.locks --scale 10`` tries each at ten times the size at which it first showed equal IDs.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
import time
import warnings
from array import array
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from mintage import sno, snowflake
from mintage.errors import UniquenessWarning
from tests.helpers.processes import answers, forked
from tests.stress import former_defects
from tests.stress.former_defects import WAIT_MS, Defect, Tally, answering, integers_of
from tests.stress.registry import BOUND_S, mount, unshare

if TYPE_CHECKING:
    from collections.abc import Callable

CLONE_NEWNET: Final = 0x40000000
EPOCH_MS: Final = 1_735_689_600_000
SLOW: Final = snowflake.Layout("time:35 node:10 sequence:12", epoch_ms=EPOCH_MS, unit_ms=100)
"""A process ends and another begins within a tick."""
SECONDS: Final = snowflake.Layout("time:31 node:10 sequence:12", epoch_ms=EPOCH_MS, unit_ms=1000)
WIDE: Final = snowflake.Layout("time:41 node:18 sequence:4", epoch_ms=EPOCH_MS)
"""So many numbers that two containers almost never begin with the same."""
NARROW: Final = snowflake.Layout("time:41 node:3 sequence:12", epoch_ms=EPOCH_MS)
"""One number for locks."""


def without_registry(folder: Path) -> None:
    """Make the registry unwritable for this process and its children."""
    warnings.simplefilter("ignore", UniquenessWarning)
    (folder / "file").write_text("")
    os.environ["MINTAGE_HOME"] = str(folder / "file" / "home")


def repeats(minted: array[int]) -> Tally:
    """Count duplicates among integers, sorted in place, as there may be millions."""
    every = np.frombuffer(minted, dtype=np.uint64)
    every.sort()
    return Tally(ids=len(every), equal=int((every[1:] == every[:-1]).sum()))


# --- one process ----------------------------------------------------------------------------------------------------


def with_statement(make: Callable[..., Any] = snowflake.Generator) -> list[Any]:
    """Mint one ID of a generator that is closed at the end of a block."""
    with make(max_wait_ms=WAIT_MS) as generator:
        return [generator.new()]


def closed() -> list[Any]:
    """Mint one ID of a generator that is closed by a call."""
    generator = snowflake.Generator(max_wait_ms=WAIT_MS)
    minted = [generator.new()]
    generator.close()
    return minted


def collected() -> list[Any]:
    """Mint one ID of a generator that nobody closes; every other one is part of a cycle."""
    generator: Any = snowflake.Generator(max_wait_ms=WAIT_MS)
    minted = [generator.new()]
    if minted[0] % 2:
        cycle = [generator]
        cycle.append(cycle)
        del generator, cycle
        gc.collect(0)
    return minted


def batch() -> list[Any]:
    """Mint twenty IDs at once."""
    with snowflake.Generator(max_wait_ms=WAIT_MS) as generator:
        return list(generator.batch(20).tolist())


def one_after_another(folder: Path, size: int, *, use: Callable[[], list[Any]], threads: int = 1) -> Tally:
    """Run generators that mint when they can take the number of the one before."""
    without_registry(folder)
    found: list[list[Any]] = [[] for _ in range(threads)]

    def work(mine: list[Any]) -> None:
        while len(mine) < size // threads:
            mine += use()

    workers = [threading.Thread(target=work, args=[mine]) for mine in found]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    tally = Tally()
    tally.count(each for mine in found for each in mine)
    tally.failed = max(0, size - tally.ids)
    return tally


def closed_by_another(folder: Path, size: int) -> Tally:
    """Close generators in one thread while another mints, without waiting for it."""
    without_registry(folder)
    sys.setswitchinterval(1e-5)
    refused, minted = Tally(), array("Q")

    def mint(generator: snowflake.Generator, begun: threading.Event) -> None:
        with refused.refusals():
            while True:
                minted.append(generator.new())
                begun.set()

    minting: list[threading.Thread] = []
    while len(minted) < size:
        generator, begun = snowflake.Generator(max_wait_ms=WAIT_MS), threading.Event()
        minting.append(threading.Thread(target=mint, args=(generator, begun)))
        minting[-1].start()
        begun.wait(BOUND_S)
        generator.close()
    for each in minting:
        each.join()
    tally = repeats(minted)
    tally.failed = len(refused.refused.keys() - {"generator.closed"})
    return tally


def ahead(folder: Path, size: int) -> Tally:
    """Run generators that are ahead of their clock, one after the other."""
    without_registry(folder)
    minted = array("Q")
    for _ in range(4):
        with snowflake.Generator(on_exhausted="advance", max_wait_ms=WAIT_MS) as generator:
            minted.frombytes(memoryview(generator.batch(size // 4)).cast("B"))
    return repeats(minted)


# --- processes ------------------------------------------------------------------------------------------------------


def children(folder: Path, size: int, *, make: Callable[[], Any]) -> Tally:
    """Mint one ID each in consecutive children that exit abruptly."""
    without_registry(folder)
    tally, parent = Tally(), make()
    minted = [str(parent.new())]

    for _ in range(size):
        minted += [answer.decode() for answer in answers([forked(lambda: str(parent.new()).encode())])]
    tally.failed = minted.count("")
    tally.count(filter(None, minted))
    return tally


APART_NS: Final = 4_000_000_000
"""The offset of a clock from the system's, within the allowed one."""


def clock_set_back(folder: Path, size: int) -> Tally:
    """Run consecutive processes with the same start of the clock; half of them are killed."""
    without_registry(folder)
    tally, every = Tally(), array("Q")

    def mint(number: int, behind_ns: int) -> bytes:
        def minted(tally: Tally) -> array[int]:
            ids = array("Q")
            with tally.refusals():
                generator = snowflake.Generator(
                    layout=NARROW,
                    pool="narrow",
                    clock=lambda: time.time_ns() - behind_ns,
                    on_exhausted="advance",
                    max_wait_ms=WAIT_MS,
                )
                ids.extend(generator.batch(10_000).tolist())
                if number % 2:
                    generator.close()
            return ids

        return answering(minted)

    began_ns = 0
    for number in range(size):
        behind_ns = time.time_ns() - began_ns
        if behind_ns > APART_NS:
            began_ns, behind_ns = time.time_ns(), 0
        for ids in integers_of(tally, [forked(partial(mint, number, behind_ns))]):
            every.extend(ids)
    found = repeats(every)
    tally.ids, tally.equal = found.ids, found.equal
    return tally


def descriptors_closed(folder: Path, size: int) -> Tally:
    """Close all descriptors of a process that mints on, while another takes its number."""
    without_registry(folder)
    tally, every = Tally(), array("Q")

    def mint(other: bool, met: list[tuple[int, int]]) -> bytes:
        def minted(_: Tally) -> array[int]:
            ids = array("Q")
            wait_ms = WAIT_MS if other else 0
            generator = snowflake.Generator(layout=NARROW, pool="descriptors", max_wait_ms=wait_ms)
            if other:
                os.read(met[0][0], 1)
            with tally.refusals():
                for turn in range(100):
                    ids.extend(generator.batch(100).tolist())
                    if turn == 20 and not other:
                        used = {int(each) for each in os.listdir("/proc/self/fd")}
                        held = generator_locks(used)
                        for each in held:
                            os.close(each)
                        os.write(met[0][1], b".")
                    time.sleep(0.001)
            # It continues if the first call was refused before it closed any.
            os.write(met[0][1], b".")
            return ids

        return answering(minted)

    while len(every) < size:
        met = [os.pipe()]
        pair = [forked(partial(mint, other, met)) for other in (False, True)]
        for ids in integers_of(tally, pair):
            every.extend(ids)
        for end in met[0]:
            os.close(end)
    found = repeats(every)
    tally.ids, tally.equal = found.ids, found.equal
    return tally


def generator_locks(descriptors: set[int]) -> list[int]:
    """Return the descriptors of this process that lock a number."""
    names = {
        each: os.readlink(f"/proc/self/fd/{each}") for each in descriptors if os.path.exists(f"/proc/self/fd/{each}")
    }
    return [each for each, name in names.items() if name.endswith(".lock") or name.startswith("socket:")]


def chosen(folder: Path, size: int) -> Tally:
    """Lease a chosen number in one process, and lock it in another that cannot write the registry."""
    tally, every = Tally(), array("Q")
    ready, go_on = os.pipe(), os.pipe()

    def lock() -> bytes:
        without_registry(folder)
        generators = [snowflake.Generator(pool="chosen", max_wait_ms=WAIT_MS) for _ in range(128)]
        [held] = [each for each in generators if snowflake.DEFAULT.parse(each.new()).node == 1003]
        os.write(ready[1], b".")
        os.read(go_on[0], 1)
        ids = array("Q", held.batch(size // 2).tolist())
        return answering(lambda _: ids)

    def lease() -> bytes:
        os.environ["MINTAGE_HOME"] = str(folder / "home")

        def minted(tally: Tally) -> array[int]:
            ids = array("Q")
            os.read(ready[0], 1)
            with tally.refusals():
                generator = snowflake.Generator(pool="chosen", nodes=range(1003, 1004), max_wait_ms=WAIT_MS)
                ids.append(generator.new())
                os.write(go_on[1], b".")
                ids.extend(generator.batch(size // 2).tolist())
            os.write(go_on[1], b".")
            return ids

        return answering(minted)

    for ids in integers_of(tally, [forked(lock), forked(lease)]):
        every.extend(ids)
    found = repeats(every)
    tally.ids, tally.equal = found.ids, found.equal
    return tally


def containers(folder: Path, size: int) -> Tally:
    """Run two containers of one image and one host name, which share nothing else."""
    without_registry(folder)
    os.environ["MINTAGE_HOME"] = "/proc/none"
    tally, every = Tally(), array("Q")

    def mint(opened: int) -> bytes:
        unshare()
        if ctypes.CDLL(None).unshare(CLONE_NEWNET):
            raise OSError("unshare")
        for place in ("/dev/shm", "/tmp"):
            mount(Path("none"), Path(place), 0, "tmpfs")
        os.read(opened, 1)
        ids = array("Q", snowflake.Generator(layout=WIDE, max_wait_ms=WAIT_MS).batch(size // 2).tolist())
        return answering(lambda _: ids)

    opened, opening = os.pipe()
    pair = [forked(partial(mint, opened)) for _ in range(2)]
    os.write(opening, b"..")
    for ids in integers_of(tally, pair):
        every.extend(ids)
    found = repeats(every)
    tally.ids, tally.equal = found.ids, found.equal
    return tally


LOCKS: Final = {
    "with statements": Defect(1_000, partial(one_after_another, use=with_statement)),
    "with statements in threads": Defect(2_000, partial(one_after_another, use=with_statement, threads=4)),
    "closed and made again": Defect(2_000, partial(one_after_another, use=closed)),
    "collected, not closed": Defect(2_000, partial(one_after_another, use=collected)),
    "batches": Defect(20_000, partial(one_after_another, use=batch)),
    "with statements, sno": Defect(2_000, partial(one_after_another, use=partial(with_statement, sno.Generator))),
    "with statements, one number": Defect(
        2_000, partial(one_after_another, use=partial(with_statement, partial(snowflake.Generator, layout=NARROW)))
    ),
    "closed by another thread": Defect(20_000, closed_by_another),
    "ahead of the clock": Defect(2_000_000, ahead),
    "children one after another": Defect(1_200, partial(children, make=sno.Generator)),
    "children one after another, slow ticks": Defect(
        1_200, partial(children, make=partial(snowflake.Generator, layout=SLOW, max_wait_ms=WAIT_MS))
    ),
    "ticks of a second": Defect(
        20, partial(children, make=partial(snowflake.Generator, layout=SECONDS, max_wait_ms=WAIT_MS))
    ),
    "a clock that is set back": Defect(30, clock_set_back),
    "descriptors closed": Defect(20_000, descriptors_closed),
    "chosen, and held by a lock": Defect(200_000, chosen, refusal="config.node"),
    "containers of one name": Defect(3_000, containers, for_root=True),
}


if __name__ == "__main__":
    sys.exit(former_defects.main(LOCKS, __doc__))
