"""Threads that mint at the same time: no ID twice, no crash, with the GIL and without it.

``python -m tests.stress.threads --ids 10000000 --threads 8`` runs every case with as many IDs in all.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import threading
import time
import warnings
from collections import Counter, deque
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import mintage
from mintage import Sequence, cuid, locality, snowflake, testing, uuid
from mintage._core import start_generation
from mintage.errors import GenerationError, UniquenessWarning
from mintage.formats.kinds import KINDS, Kind
from mintage.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

PATIENT: Final[dict[str, Any]] = {"max_wait_ms": 10**9}
BEGIN_NS: Final = 1_700_000_000 * 10**9
DAY_NS: Final = 86_400 * 10**9
PIECE: Final = 1000
"""IDs of one call of ``batch`` or ``fill``."""
FIRST: Final = 1000
"""IDs of a thread after which another generator is attached: the race is for the first of them."""
COUNTED: Final = 500
"""IDs of a thread, of which a single thread mints as many afterwards: none of them draws a random word anew."""
VARIANTS: Final[dict[str, dict[str, Any]]] = {
    **{name: {} for name in KINDS},
    "uuid v1": {"version": 1},
    "uuid v4": {"version": 4},
    "uuid v6": {"version": 6},
    "sno, few numbers": {"sequence_min": 100, "sequence_max": 1123},
    "snowflake, waits": {"on_rollback": "wait"},
    "locality, sequential": {"mode": "sequential"},
}
"""The arguments of a generator, by what a case calls it; the first word is the scheme."""


@dataclass
class Tally:
    """The result of threads that minted."""

    ids: int = 0
    twice: int = 0
    failed: list[BaseException] = field(default_factory=list)

    def is_clean(self) -> bool:
        """Return True if no ID came twice and nothing failed."""
        return self.ids > 0 and not self.twice and not self.failed


def scheme_of(variant: str) -> Kind:
    """Return the scheme of a variant."""
    return KINDS[variant.replace(",", "").split()[0]]


def generator_of(variant: str, number: int, **options: Any) -> Any:
    """Return a generator, whose node number is ``number`` if its IDs have one."""
    scheme = scheme_of(variant)
    given = {scheme.node: number} if scheme.node and "store" not in options else {}
    patience = {} if scheme.is_text else PATIENT
    return scheme.module.Generator(**given, **patience, **VARIANTS[variant], **options)


def packed(ids: Any, size: int) -> list[bytes]:
    """Return the IDs in packed bytes."""
    data = bytes(ids)
    return [data[at : at + size] for at in range(0, len(data), size)]


def size_of(generator: Any) -> int:
    """Return the bytes of an ID in a buffer."""
    first = generator.new()
    return 8 if isinstance(first, int) else len(first if isinstance(first, str) else bytes(first))


def by_new(generator: Any, count: int) -> list[Any]:
    """Mint one after another; most are freed at once, in this thread."""
    new = generator.new
    return [each if isinstance(each, int | str) else bytes(each) for each in (new() for _ in range(count))]


def by_iteration(generator: Any, count: int) -> list[Any]:
    """Keep the objects, which another thread frees."""
    return list(islice(generator, count))


def by_batch(generator: Any, count: int) -> list[Any]:
    """Mint a batch at a time."""
    parts: list[list[Any]] = []
    for _ in range(0, count, PIECE):
        batch = generator.batch(PIECE)
        parts.append(batch if isinstance(batch, list) else packed(batch, batch.SIZE))
    return [*chain.from_iterable(parts)]


def by_fill(generator: Any, count: int) -> list[Any]:
    """Fill a buffer at a time."""
    size, parts = size_of(generator), []
    for _ in range(0, count, PIECE):
        buffer = bytearray(size * PIECE)
        generator.fill(buffer)
        parts.append(packed(buffer, size))
    return [*chain.from_iterable(parts)]


WAYS: Final = (by_new, by_iteration, by_batch, by_fill)


def as_key(minted: Any) -> Any:
    """Return what two equal IDs of a format have in common, however they were minted."""
    if isinstance(minted, int):
        return minted.to_bytes(8, sys.byteorder)
    if isinstance(minted, str):
        return minted.encode()
    return bytes(minted)


def race(jobs: Iterable[Callable[[], Iterable[Any]]], beside: Callable[[], Iterable[Any]] | None = None) -> Tally:
    """Run each job in a thread of its own, and ``beside`` again and again in this one until they are done."""
    jobs = list(jobs)
    tally, barrier, lock = Tally(), threading.Barrier(len(jobs)), threading.Lock()
    minted: list[list[Any]] = []

    def run(job: Callable[[], Iterable[Any]]) -> None:
        try:
            barrier.wait(60)
            found = [*job()]
        except BaseException as error:  # noqa: BLE001 - a thread that fails is told of
            tally.failed.append(error)
        else:
            with lock:
                minted.append(found)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    while beside is not None and any(thread.is_alive() for thread in threads):
        minted.append([*beside()])
    for thread in threads:
        thread.join()
    keys = [as_key(each) for each in chain.from_iterable(minted)]
    tally.ids, tally.twice = len(keys), len(keys) - len(set(keys))
    return tally


def mixed(generator: Any, count: int, first: int) -> list[Any]:
    """Mint in all ways in turn."""
    share = max(count // len(WAYS), PIECE)
    return [*chain.from_iterable(WAYS[(first + at) % len(WAYS)](generator, share) for at in range(len(WAYS)))]


def shared(variant: str, threads: int, each: int) -> Tally:
    """Share one generator between all threads."""
    generator = generator_of(variant, 1)
    return race([lambda at=at: mixed(generator, each, at) for at in range(threads)])  # type: ignore[misc]


def separate(variant: str, threads: int, each: int) -> Tally:
    """Give each thread a generator of its own."""
    return race([lambda at=at: mixed(generator_of(variant, at + 1), each, at) for at in range(threads)])  # type: ignore[misc]


def functions(name: str, threads: int, each: int) -> Tally:
    """Call the function ``new`` of a module, which all threads share."""
    new = KINDS[name].module.new
    return race([lambda: [new() for _ in range(each)]] * threads)


def standard_uuids(name: str, threads: int, each: int) -> Tally:
    """Make objects of the standard module's."""
    new = getattr(uuid, name)
    return race([lambda: [new().bytes for _ in range(each)]] * threads)


def in_pieces(generator: Any, each: int, at: int) -> list[Any]:
    """Mint in all ways, in pieces so small that another thread changes the generator between them."""
    minted: list[Any] = []
    while len(minted) < each:
        for way in (by_new, by_batch):
            minted += way(generator, PIECE // 4 if way is by_new else PIECE)
        at += 1
    return minted


def released(variant: str, threads: int, each: int) -> Tally:
    """Take the lease of a generator away while it mints: it leases another number, or the same one again."""
    generator = generator_of(variant, 0, store=MemoryStore())

    def release() -> list[Any]:
        mintage.release_all()
        time.sleep(random.random() / 1000)
        return []

    return race([lambda at=at: in_pieces(generator, each, at) for at in range(threads)], release)  # type: ignore[misc]


def regenerated(variant: str, threads: int, each: int) -> Tally:
    """Start generations, as a restore does, while a generator mints."""
    generator = scheme_of(variant).module.Generator(**VARIANTS[variant])

    def start() -> list[Any]:
        start_generation()
        time.sleep(random.random() / 500)
        return []

    return race([lambda at=at: in_pieces(generator, each, at) for at in range(threads)], start)  # type: ignore[misc]


def first_ids(variant: str, threads: int, each: int) -> Tally:
    """Attach new generators in all threads at once, again and again."""
    total = Tally()
    for at in range(max(2, each // FIRST)):
        options = {"store": MemoryStore()} if scheme_of(variant).leases else {}
        generator = generator_of(variant, at + 1, **options)
        # Of a later generation, so that even one that leases nothing is not attached.
        if not scheme_of(variant).node:
            start_generation()
        tally = race([lambda made=generator: by_new(made, FIRST)] * threads)  # type: ignore[misc]
        total = Tally(total.ids + tally.ids, total.twice + tally.twice, total.failed + tally.failed)
    return total


def changed_modes(threads: int, each: int) -> Tally:
    """Change the mode of a generator of locality while it mints."""
    generator = locality.Generator(pid=1)

    def change() -> list[Any]:
        for mode in ("sequential", "variable"):
            generator.use_mode(mode)
        time.sleep(0.0005)
        return []

    return race([lambda at=at: in_pieces(generator, each, at) for at in range(threads)], change)  # type: ignore[misc]


def closed(variant: str, threads: int, each: int) -> Tally:
    """Close generators while they mint."""
    total = Tally()
    for at in range(max(2, each // 5000)):
        generator = generator_of(variant, at + 1)

        def mint(generator: Any = generator) -> Iterator[Any]:
            try:
                while True:
                    yield generator.new()
            except GenerationError as error:
                if error.code != "generator.closed":
                    raise

        def close(generator: Any = generator) -> list[Any]:
            time.sleep(random.random() / 200)
            generator.close()
            return []

        tally = race([mint] * threads, close)
        total = Tally(total.ids + tally.ids, total.twice + tally.twice, total.failed + tally.failed)
    return total


def frozen(threads: int, each: int) -> Tally:
    """Freeze and follow the time while threads call functions of modules, whose generators have doubles."""
    news = [(name, scheme.module.new) for name, scheme in KINDS.items()]
    news += [("uuid4", lambda: uuid.uuid4().bytes), ("uuid7", lambda: uuid.uuid7().bytes)]
    news += [(f"own {name}", generator_of(name, 1).new) for name in KINDS]
    days = Counter[str]()

    def mint() -> Iterator[Any]:
        for name, new in news * max(1, each // 100 // len(news)):
            for _ in range(100):
                yield f"{name}:".encode() + as_key(new())

    def freeze() -> list[Any]:
        days["at"] += 1
        at = days["at"]
        with testing.freeze(BEGIN_NS + at * DAY_NS, seed=at, node=at % 1024) as clock:
            time.sleep(0.001)
            clock.advance(10**9)
            time.sleep(0.001)
        return []

    return race([mint] * threads, freeze)


def stepped_clocks(variant: str, threads: int, each: int) -> Tally:
    """Move the clock of a shared generator, forward and back."""
    clock = testing.ManualClock(BEGIN_NS)
    generator = generator_of(variant, 1, clock=clock)

    def move() -> list[Any]:
        clock.advance(random.randrange(-20, 30) * 10**6)
        time.sleep(0.0002)
        return []

    return race([lambda at=at: in_pieces(generator, each, at) for at in range(threads)], move)  # type: ignore[misc]


def followed_clocks(threads: int, each: int) -> Tally:
    """Step ``time.time_ns()`` back under a generator that follows it: it goes on under other node numbers."""
    offset, rewinds, real = [0], [0], time.time_ns

    def time_ns() -> int:
        return real() + offset[0]

    with mock.patch("time.time_ns", time_ns):
        generator = snowflake.Generator(1, clock=testing.FollowingClock(), **PATIENT)

        def step() -> list[Any]:
            if rewinds[0] < 900:
                rewinds[0] += 1
                offset[0] -= 10 * 10**6
            time.sleep(0.001)
            return []

        return race([lambda at=at: in_pieces(generator, each, at) for at in range(threads)], step)  # type: ignore[misc]


def sequences(threads: int, each: int) -> Tally:
    """Share a sequence: single integers, batches and rows, while its segments are given back now and then."""
    sequence = Sequence("orders", MemoryStore(), min_step=100, max_step=5000, **PATIENT)

    def take(at: int) -> Iterator[int]:
        left = each
        while left > 0:
            way = at % 3
            at += 1
            if way == 0:
                yield from (sequence.next() for _ in range(100))
                left -= 100
            else:
                ranges = sequence.batch(150) if way == 1 else [sequence.reserve(50)]
                yield from chain.from_iterable(ranges)
                left -= 150 if way == 1 else 50

    def release() -> list[Any]:
        mintage.release_all()
        time.sleep(0.005)
        return []

    return race([lambda at=at: take(at) for at in range(threads)], release)  # type: ignore[misc]


class FakeSegmentClient:
    """A segment client that offers segments of one integer, in the thread that needs it."""

    def __init__(self, buffer: Any) -> None:
        self._buffer = buffer
        self._lock = threading.Lock()
        self._firsts = iter(range(1, 1 << 62))
        self._parts: deque[tuple[int, int, int]] = deque()

    def attach(self) -> None:
        """Do nothing: no case with this client forks."""

    def advanced(self) -> None:
        """Offer a segment."""
        with self._lock:
            part = self._parts.popleft() if self._parts else (next(self._firsts), 1, 1)
        # Without a lock: the buffer has its own.
        if not self._buffer.offer(*part):
            self._parts.append(part)

    def wait(self, _max_wait_ms: int) -> None:
        """Offer a segment."""
        self.advanced()

    def drain(self) -> list[Any]:
        """Empty the buffer, and keep what was in it for later."""
        self._parts.extend(self._buffer.drain())
        return []


def segments(threads: int, each: int) -> Tally:
    """Share a sequence whose segments all threads offer and drain."""
    clients: list[FakeSegmentClient] = []

    def client(_namespace: str, _store: object, buffer: Any, **_options: Any) -> FakeSegmentClient:
        clients.append(FakeSegmentClient(buffer))
        return clients[-1]

    with mock.patch("mintage.lease.request.segment_client", client):
        sequence = Sequence("orders")

    def take() -> Iterator[int]:
        for _ in range(each // 10):
            yield from [sequence.next() for _ in range(10)]
            clients[0].drain()

    return race([take] * threads, clients[0].drain)


def counted(name: str, threads: int, each: int) -> Tally:
    """Share a counter: after the threads, it is where a single thread leaves it."""
    total = Tally()
    for _ in range(max(1, each // COUNTED)):
        # One time and one seed, so that the last ID of a generator depends on its counter alone.
        clocks = [testing.ManualClock(BEGIN_NS, seed=1) for _ in range(2)]
        generator, other = (KINDS[name].module.Generator(clock=clock) for clock in clocks)
        generator.new()
        tally = race([lambda new=generator.new: [new() for _ in range(COUNTED)]] * threads)  # type: ignore[misc]
        for _ in range(1 + threads * COUNTED):
            other.new()
        last, expected = generator.new(), other.new()
        if last != expected:
            tally.failed.append(AssertionError(f"the last ID is {last}, and a single thread mints {expected}"))
        total = Tally(total.ids + tally.ids, total.twice + tally.twice, total.failed + tally.failed)
    return total


def counts_of_cuid(threads: int, each: int) -> Tally:
    """Share a generator of cuids: no time and counter, the first 13 characters, come twice together."""
    generator = cuid.Generator()
    return race([lambda: [text[:13] for text in islice(generator, each)]] * threads)


def shared_iterators(threads: int, each: int) -> Tally:
    """Let threads take the IDs of one batch from one iterator."""
    iterator = iter(mintage.sno.Generator(1).batch(each * threads))
    tally = race([lambda: [*iterator]] * threads)
    if tally.ids != each * threads:
        tally.failed.append(AssertionError(f"{tally.ids} of {each * threads} IDs came"))
    return tally


def passed_on(threads: int, each: int) -> Tally:
    """Free objects in other threads than those that made them: no object changes while it lives."""
    kept: list[list[tuple[Any, bytes]]] = [[] for _ in range(threads)]
    generators = [[generator_of(name, at + 1) for name in ("sno", "ulid", "uuid", "xid")] for at in range(threads)]

    def pass_on(at: int) -> Iterator[bytes]:
        for count in range(each):
            made = generators[at][count % 4].new()
            kept[at].append((made, bytes(made)))
            if count % 64 == 63:
                others = kept[(at + 1) % threads]
                for _ in range(min(48, len(others))):
                    try:
                        other, data = others.pop()
                    except IndexError:
                        break
                    if bytes(other) != data or type(other).parse(str(other)) != other:
                        raise AssertionError(f"{other} is not {data.hex()} any more")
            yield bytes(made)

    return race([lambda at=at: pass_on(at) for at in range(threads)])  # type: ignore[misc]


def resized_buffers(threads: int, each: int) -> Tally:
    """Resize and overwrite buffers while others fill and read them: errors, and no crash."""
    generator, buffers = mintage.sno.Generator(1), [bytearray(1000) for _ in range(3)]

    def use(at: int) -> Iterator[bytes]:
        for count in range(each // 50):
            buffer = buffers[(at + count) % 3]
            try:
                generator.fill(buffer)
                mintage.sno.Array(buffer)
                buffer.extend(bytes(1000) if len(buffer) < 5000 else b"")
                if len(buffer) > 5000:
                    del buffer[1000:]
            except (BufferError, mintage.errors.MintError):
                pass
            yield from by_new(generator, 20)

    return race([lambda at=at: use(at) for at in range(threads)])  # type: ignore[misc]


def forked(threads: int, each: int) -> Tally:
    """Fork beside threads that mint: children mint with the same generators."""
    variants = ("uuid", "uuid v1", "uuid v4", "ulid", "ksuid", "ksuid_ms", "nanoid", "cuid", "cuid2")
    generators = [generator_of(variant, 1) for variant in variants]
    generators += [scheme_of(name).module.Generator(**PATIENT) for name in ("xid", "objectid", "sandflake")]
    generators += [scheme_of(name).module.Generator(**PATIENT) for name in ("sno", "snowflake", "locality")]

    def mint(count: int) -> Iterator[bytes]:
        for _ in range(max(1, count // 10 // len(generators))):
            for at, generator in enumerate(generators):
                for minted in islice(generator, 10):
                    yield b"%d:" % at + as_key(minted)

    def fork() -> list[Any]:
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            code = 1
            try:
                os.close(reading)
                with open(writing, "wb") as pipe:
                    pipe.write(b"".join(b"%c" % len(each) + each for each in mint(500)))
                code = 0
            finally:
                os._exit(code)
        os.close(writing)
        with open(reading, "rb") as pipe:
            data = pipe.read()
        _, status = os.waitpid(child, 0)
        if status:
            raise AssertionError(f"a child ended with {status}")
        minted, at = [], 0
        while at < len(data):
            minted.append(data[at + 1 : at + 1 + data[at]])
            at += 1 + data[at]
        time.sleep(0.01)
        return minted

    return race([lambda: mint(each)] * threads, fork)


def cases() -> dict[str, Callable[[int, int], Tally]]:
    """Return all cases, by name: each takes the number of threads, and the IDs of one."""
    found: dict[str, Callable[[int, int], Tally]] = {}

    def add(name: str, run: Callable[..., Tally], *arguments: str) -> None:
        found[name] = lambda threads, each: run(*arguments, threads, each)

    for variant in VARIANTS:
        add(f"shared {variant}", shared, variant)
        add(f"separate {variant}", separate, variant)
    for name in KINDS:
        add(f"function {name}", functions, name)
    for name in ("uuid4", "uuid7"):
        add(f"function {name}", standard_uuids, name)
    for variant in ("sno", "snowflake", "locality", "uuid", "uuid v1", "ulid", "xid"):
        add(f"released {variant}", released, variant)
    for variant in ("uuid", "uuid v1", "uuid v6", "uuid v4", "ulid", "ksuid", "xid", "cuid", "cuid2", "nanoid"):
        add(f"regenerated {variant}", regenerated, variant)
    for variant in ("sno", "snowflake", "ulid", "uuid v6", "cuid", "cuid2"):
        add(f"first {variant}", first_ids, variant)
    for variant in ("sno", "snowflake", "locality", "ulid", "cuid"):
        add(f"closed {variant}", closed, variant)
    for variant in ("sno", "snowflake", "snowflake, waits", "locality", "ulid", "uuid v6"):
        add(f"stepped {variant}", stepped_clocks, variant)
    add("followed", followed_clocks)
    add("modes", changed_modes)
    add("frozen", frozen)
    for name in ("cuid", "cuid2"):
        add(f"counted {name}", counted, name)
    add("counts of cuid", counts_of_cuid)
    add("sequences", sequences)
    add("segments", segments)
    add("iterators", shared_iterators)
    add("passed on", passed_on)
    add("buffers", resized_buffers)
    if hasattr(os, "fork"):
        add("forked", forked)
    return found


@contextmanager
def own_registry() -> Iterator[None]:
    """Lease numbers of a registry of our own."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, {"MINTAGE_HOME": str(Path(folder) / "home")}))
        yield


def run(name: str, threads: int, each: int) -> Tally:
    """Run a case, and switch threads as often as possible where there is a GIL."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        return cases()[name](threads, each)
    finally:
        sys.setswitchinterval(interval)


LARGEST: Final = 10**6
"""The most IDs of one run of a case, all of which are kept."""


def repeat(name: str, counts: list[int], share: int) -> tuple[str, int, list[str]]:
    """Run a case with each number of threads until it has minted its share; return the IDs, and what was wrong."""
    total, wrong = 0, []
    for threads in counts:
        minted = 0
        while minted < share:
            tally = run(name, threads, max(1000, min(LARGEST, share - minted) // threads))
            minted += tally.ids
            if not tally.is_clean():
                failed = Counter(repr(error)[:200] for error in tally.failed)
                wrong.append(f"{name}, {threads} threads: {tally.ids} IDs, {tally.twice} twice, {dict(failed)}")
                break
        total += minted
    return name, total, wrong


def main() -> int:
    """Run the cases that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m tests.stress.threads", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--ids", type=int, default=10**7, help="IDs of all cases together (default: 10**7)")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8], help="how many mint (default: 1 2 4 8)")
    parser.add_argument("--case", default="", help="only the cases with this in their name")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each with a case at a time (default: 1)")
    options = parser.parse_args()
    names = [name for name in cases() if options.case in name]
    share = max(1, options.ids // len(names) // len(options.threads))
    total, begun, wrong = 0, time.monotonic(), 0
    with ProcessPoolExecutor(options.jobs, get_context("spawn"), ignore_warnings) as pool:
        futures = [pool.submit(repeat, name, options.threads, share) for name in names]
        for done in as_completed(futures):
            name, minted, faults = done.result()
            total, wrong = total + minted, wrong + bool(faults)
            print(*(faults or [f"{name}: {minted:,} IDs"]), sep="\n", flush=True)
    seconds = time.monotonic() - begun
    gil = "on" if getattr(sys, "_is_gil_enabled", lambda: True)() else "off"
    print(f"{total:,} IDs in {len(names)} cases, GIL {gil}, {seconds:.0f} s, {wrong} wrong")
    return bool(wrong)


def ignore_warnings() -> None:
    """Ignore the warnings that cases provoke."""
    warnings.simplefilter("ignore", UniquenessWarning)
    warnings.simplefilter("ignore", DeprecationWarning)


if __name__ == "__main__":
    ignore_warnings()
    with own_registry():
        sys.exit(main())
