"""Tests of forks: a child never mints an ID of its parent."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import select
import subprocess
import sys
import threading
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from mintage import Sequence, _core, locality, sno, snowflake
from mintage.errors import ArgumentError, FieldError, GenerationError, StoreError
from mintage.process import forks
from mintage.testing import ManualClock
from tests.helpers.outcomes import code_or_ok
from tests.helpers.processes import BOUND_S, Child, first_of_a_namespace, raw_clone
from tests.helpers.vectors import vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks beside threads are Linux's")

MS = 1_000_000
NOW = 1_700_000_000_000 * MS

Generator: TypeAlias = "sno.Generator | snowflake.Generator | locality.Generator"


def c_fork() -> int:
    """Fork in C, so that Python learns nothing.

    It is only for a process without other threads, as every fork except that of Python: a thread might wait for the
    GIL at this moment, and the child would wait for it for ever.
    """
    pid: int = ctypes.PyDLL(None).fork()
    return pid


EVERY_FORK = [os.fork, c_fork, raw_clone, first_of_a_namespace]
each_fork = pytest.mark.parametrize("fork", EVERY_FORK)


def gathered(children: Iterable[Child]) -> list[Any]:
    return [*chain.from_iterable(child.result() for child in children)]


def ways_to_mint(generator: Generator) -> list[Callable[[], object]]:
    ways: list[Callable[[], object]] = [
        generator.new,
        lambda: next(generator),
        lambda: generator.batch(2),
        lambda: generator.fill(bytearray(80)),
    ]
    if isinstance(generator, sno.Generator):
        ways += [lambda: generator.new_at(NOW), generator.snapshot]
    return ways


# ------------------------------------------------------------------------------------------ generators without a number

WIDE = snowflake.Layout("time:33 node:28 sequence:2", epoch_ms=0, unit_ms=1000)
"""So many node numbers that two children never draw the same."""


def sno_node() -> int:
    return sno.new().partition


def snowflake_node() -> int:
    return snowflake.DEFAULT.parse(snowflake.new()).node


@pytest.mark.parametrize("node", [sno_node, snowflake_node])
def test_children_of_a_default_generator_choose_their_own_numbers(node: Callable[[], int]) -> None:
    parent = node()
    children = [Child(node) for _ in range(16)]
    numbers = {parent, *(child.result() for child in children)}
    # 17 draws out of 1024 or more numbers: fewer than 9 different ones is one chance in 10^11.
    assert len(numbers) >= 9
    assert node() == parent


def test_children_of_default_locality_use_their_pid_and_counter() -> None:
    def mint() -> list[str]:
        return [str(locality.new()) for _ in range(100)]

    minted = mint()
    children = [Child(mint) for _ in range(16)]
    minted += mint()
    for child in children:
        ids = child.result()
        assert {locality.ID.parse(text).pid for text in ids} == {child.pid % 65536}
        minted += ids
    assert len(set(minted)) == len(minted)


@pytest.mark.parametrize("used", [True, False])
def test_sonyflake_py_8_descendants_never_mint_the_same_snowflake(used: bool) -> None:
    generator = snowflake.Generator(layout=WIDE, clock=ManualClock(NOW), max_wait_ms=10**6)

    def mint() -> list[int]:
        return [*islice(generator, 3), *generator.batch(7)]

    def mint_and_fork() -> list[int]:
        children = [Child(mint) for _ in range(3)]
        return mint() + gathered(children)

    minted = mint() if used else []
    children = [Child(mint_and_fork) for _ in range(6)]
    minted += mint() + gathered(children)
    assert len(set(minted)) == len(minted) == (20 if used else 10) + 6 * 40


@pytest.mark.parametrize("mode", ["variable", "sequential"])
def test_children_and_grandchildren_never_mint_the_same_uuid(mode: Any) -> None:
    generator = locality.Generator(mode, mac="0000001", counter=1, clock=ManualClock(NOW))

    def mint() -> list[str]:
        return list(map(str, [*islice(generator, 3), *generator.batch(7)]))

    def mint_and_fork() -> list[str]:
        children = [Child(mint) for _ in range(3)]
        return mint() + gathered(children)

    minted = mint()
    children = [Child(mint_and_fork) for _ in range(6)]
    minted += mint() + gathered(children)
    assert len(set(minted)) == len(minted) == 20 + 6 * 40


def test_child_draws_a_new_partition_and_starts_afresh() -> None:
    clock = ManualClock(NOW)
    generator = sno.Generator(clock=clock)
    generator.batch(10)
    clock.advance(-4 * MS)
    generator.new()

    def look() -> tuple[int, int, int]:
        return generator.partition, generator.new().partition, generator.drifts

    children = [Child(look).result() for _ in range(8)]
    assert all(partition == minted and drifts == 0 for partition, minted, drifts in children)
    assert len({generator.partition, *(partition for partition, _, _ in children)}) > 4
    assert generator.drifts == 1


def test_multiprocessing_children_are_forks_too() -> None:
    context = multiprocessing.get_context("fork")
    generator = snowflake.Generator(layout=WIDE, clock=ManualClock(NOW), max_wait_ms=10**6)
    generator.new()
    pipes = [context.Pipe(duplex=False) for _ in range(4)]
    processes = [
        context.Process(target=lambda writing=writing: writing.send([*generator.batch(10)])) for _, writing in pipes
    ]
    for process in processes:
        process.start()
    minted = [*generator.batch(10)]
    for (reading, _), process in zip(pipes, processes, strict=True):
        assert reading.poll(BOUND_S), "the child is stuck"
        minted += reading.recv()
        process.join(BOUND_S)
        assert process.exitcode == 0
    assert len(set(minted)) == len(minted) == 50


# ---------------------------------------------------------------------------------------------------------- generations


@each_fork
def test_every_fork_gives_the_child_a_new_generation(fork: Callable[[], int]) -> None:
    def epochs() -> list[int]:
        return [_core.generation(), *Child(lambda: [_core.generation(), _core.generation()], fork).result()]

    before = _core.generation()
    alone, child, grandchild, again = Child(lambda: [_core.generation(), *Child(epochs, fork).result()]).result()
    assert 0 < before < alone < child < grandchild == again
    assert _core.generation() == before


@each_fork
def test_child_mints_no_id_of_its_parent(fork: Callable[[], int]) -> None:
    drawn = snowflake.Generator(layout=WIDE, clock=ManualClock(NOW), max_wait_ms=10**6)
    given = snowflake.Generator(7)
    given.new()
    minted = [*drawn.batch(10)]

    def mint() -> list[object]:
        return [os.getpid(), code_or_ok(given.new), [*islice(drawn, 3), *drawn.batch(7)]]

    def mint_and_fork() -> list[object]:
        return [mint(), Child(mint, fork).result()]

    results = Child(lambda: Child(mint_and_fork, fork).result()).result()
    if fork is first_of_a_namespace:
        assert [pid for pid, _, _ in results] == [1, 1]
    assert [refused for _, refused, _ in results] == ["fork.shared_node"] * 2
    minted += [*drawn.batch(10), *chain.from_iterable(ids for _, _, ids in results)]
    assert len(set(minted)) == len(minted) == 40


@each_fork
def test_threads_first_seen_in_a_child_share_its_generation(fork: Callable[[], int]) -> None:
    def look() -> list[int]:
        start, seen = threading.Barrier(8), []

        def ask() -> None:
            start.wait(BOUND_S)
            seen.append(_core.generation())

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(BOUND_S)
        return [*seen, _core.generation()]

    def fork_often() -> bool:
        before = _core.generation()
        return all(Child(look, fork).result() == [before + 1] * 9 for _ in range(20))

    assert Child(fork_often).result()


@each_fork
def test_fork_generation_stays_the_same_in_later_generations(fork: Callable[[], int]) -> None:
    def look() -> list[int]:
        return [_core.fork_generation(), _core.start_generation(), _core.fork_generation()]

    # From a child, which has one thread: another one may hold the GIL while C forks.
    first, later, same = Child(lambda: Child(look, fork).result()).result()
    assert _core.fork_generation() < first == same < later


def test_new_generation_is_like_a_fork_to_every_generator() -> None:
    def start_over() -> list[object]:
        before = _core.generation()
        drawn, given = snowflake.Generator(layout=WIDE, clock=ManualClock(NOW)), snowflake.Generator(7)
        node = drawn.node
        given.new()
        after = _core.start_generation()
        return [before < after == _core.generation(), drawn.node != node, code_or_ok(given.new)]

    # In a child, as the effect is permanent.
    assert Child(start_over).result() == [True, True, "fork.shared_node"]


@contextmanager
def held_by_another_thread() -> Iterator[None]:
    """Hold the lock of forks in another thread during the block."""
    holds, done = threading.Event(), threading.Event()

    def hold() -> None:
        with forks.fork_lock():
            holds.set()
            done.wait(BOUND_S)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert holds.wait(BOUND_S)
        yield
    finally:
        done.set()
        thread.join(BOUND_S)


@pytest.mark.parametrize("fork", [c_fork, raw_clone])
def test_child_forked_in_c_finds_no_lock_of_its_parent(fork: Callable[[], int]) -> None:
    def work() -> str:
        with forks.fork_lock():
            return forks.load("json").__name__

    def fork_meanwhile() -> object:
        with held_by_another_thread():
            return Child(work, fork).result()

    assert Child(fork_meanwhile).result() == "json"


def test_thread_that_waits_too_long_for_another_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "_STUCK_S", 0.01)
    with held_by_another_thread():
        for first in (lambda: Sequence("orders", "memory:"), lambda: snowflake.Generator(store="memory:").new()):
            with pytest.raises(StoreError, match="another thread of this process") as caught:
                first()
            assert caught.value.code == "store.unavailable"


def test_thread_may_fork_during_its_own_verb() -> None:
    def work() -> str:
        with forks.fork_lock():
            return "ok"

    with forks.fork_lock():
        child = Child(work)
        if child.pid:
            assert child.result() == "ok"


def test_kernel_randomness_has_the_requested_length() -> None:
    assert _core.kernel_random(0) == b""
    assert len(_core.kernel_random(65_536)) == 65_536
    assert len({_core.kernel_random(16) for _ in range(1000)}) == 1000
    for count in (-1, 65_537):
        with pytest.raises(FieldError, match=r"count .* is outside 0\.\.65536"):
            _core.kernel_random(count)
    with pytest.raises(ArgumentError):
        _core.kernel_random(1.0)  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------- generators with a number


def make_sno() -> Generator:
    return sno.Generator(7)


def make_restored_sno() -> Generator:
    return sno.Generator.restore(sno.Snapshot(7))


def make_snowflake() -> Generator:
    return snowflake.Generator(7)


def make_locality() -> Generator:
    return locality.Generator(pid=7)


@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize("make", [make_sno, make_restored_sno, make_snowflake, make_locality])
def test_explicit_number_stays_with_the_parent(make: Callable[[], Generator], used: bool) -> None:
    generator = make()
    if used:
        generator.new()
    ways = ways_to_mint(generator)

    def try_all() -> list[str]:
        return [code_or_ok(way) for way in ways]

    def try_in_grandchild() -> list[str]:
        return Child(try_all).result()  # type: ignore[no-any-return]

    refused = ["fork.shared_node"] * len(ways)
    assert Child(try_all).result() == refused
    assert Child(try_in_grandchild).result() == refused
    assert try_all() == ["ok"] * len(ways)


@pytest.mark.parametrize("make", [make_sno, make_restored_sno, make_snowflake, make_locality])
def test_generator_created_in_the_child_works(make: Callable[[], Generator]) -> None:
    make().new()
    assert set(Child(lambda: [code_or_ok(way) for way in ways_to_mint(make())]).result()) == {"ok"}


@pytest.mark.parametrize("make", [sno.Generator, snowflake.Generator, locality.Generator])
def test_closed_generator_stays_closed_in_the_child(make: Callable[[], Generator]) -> None:
    generator = make()
    generator.new()
    generator.close()
    assert Child(lambda: code_or_ok(generator.new)).result() == "generator.closed"


def test_fork_during_a_call_gives_the_child_no_number() -> None:
    reading, writing = os.pipe()
    children: list[int] = []
    generator = sno.Generator(
        7,
        sequence_min=0,
        sequence_max=5,
        clock=ManualClock(NOW),
        on_overflow=lambda _: children.append(os.fork()),
    )
    generator.batch(6)
    try:
        minted = str(generator.new())
    except GenerationError as error:
        minted = error.code
    if children[0] == 0:
        os.write(writing, minted.encode())
        os._exit(0)
    os.close(writing)
    assert select.select([reading], [], [], BOUND_S)[0], "the child is stuck"
    answer = os.read(reading, 100).decode()
    os.close(reading)
    os.waitpid(children[0], 0)
    assert answer == "fork.shared_node"
    assert sno.ID.parse(minted).partition == 7


# ------------------------------------------------------------------------------------------------- forks beside threads


def test_forks_while_threads_mint_do_not_deadlock() -> None:
    shared = snowflake.Generator(on_exhausted="advance")
    clock = ManualClock(NOW)
    waiting = sno.Generator(clock=clock, sequence_min=0, sequence_max=9, max_wait_ms=10**9)
    done = threading.Event()

    def mint() -> list[str]:
        ids: list[object] = []
        for _ in range(50):
            ids += [sno.new(), locality.new(), shared.new(), waiting.new()]
            ids += [*shared.batch(5), *waiting.batch(25)]
        return list(map(str, ids))

    def mint_on() -> None:
        while not done.is_set():
            mint()

    threads = [threading.Thread(target=mint_on, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            child = Child(mint)
            assert len(child.result()) == 50 * 34
    finally:
        done.set()
        for thread in threads:
            thread.join(BOUND_S)
    assert not any(thread.is_alive() for thread in threads)


def test_child_forked_during_an_import_of_the_first_id_mints(tmp_path: Path) -> None:
    # The child inherits the locks of modules that another thread imports, and nobody there releases them.
    script = """if True:
        import os, queue, signal, sys, threading
        import mintage

        asked, forked = queue.SimpleQueue(), threading.Event()

        class Finder:
            def find_spec(name, path=None, target=None):
                if threading.current_thread() is minter:
                    forked.clear()
                    asked.put(name)
                    forked.wait(0.01)  # the fork may wait for this import

        def mint():
            store = f"sqlite:///{os.getpid()}.db"
            for scheme in mintage.sno, mintage.snowflake, mintage.ulid:
                scheme.Generator(store=store, max_wait_ms=20_000).new()
            mintage.Sequence("orders", store=store, max_wait_ms=20_000).next()

        def run():
            try:
                mint()
            finally:
                asked.put(None)

        sys.meta_path.insert(0, Finder)
        minter = threading.Thread(target=run)
        os.register_at_fork(after_in_parent=forked.set)
        minter.start()
        names = {}
        while name := asked.get():
            if pid := os.fork():
                names[pid] = name
            else:
                signal.alarm(30)
                try:
                    mint()
                finally:
                    os._exit(0)  # a store that is slow under load is no hang
        assert len(names) > 20, names
        print(*(name for pid, name in names.items() if os.WIFSIGNALED(os.waitpid(pid, 0)[1])))
    """
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        check=False,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        timeout=BOUND_S,
    )
    assert (done.returncode, done.stdout) == (0, "\n")


def test_child_can_use_a_clock_on_which_parent_threads_wait() -> None:
    clock = ManualClock(NOW, auto_advance=False)
    generator = snowflake.Generator(layout=WIDE, on_rollback="wait", clock=clock, max_wait_ms=10**9)
    generator.new()
    clock.advance(-1000 * MS)
    threads = [threading.Thread(target=generator.new, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()

    def use() -> int:
        clock.advance(MS)
        generator.new()
        return clock.now_ns

    try:
        for _ in range(20):
            assert Child(use).result() == NOW - 999 * MS
    finally:
        clock.set(NOW + 3_600_000 * MS)
        for thread in threads:
            thread.join(BOUND_S)
    assert not any(thread.is_alive() for thread in threads)


# ------------------------------------------------------------------------------------------------ wrong in the original


def test_wrong_in_ruby_parent_and_child_share_pid_and_counter() -> None:
    ruby = vectors("locality_uuid")["misc"]["ruby"]["fork"]
    assert ruby["first8_parent"] == ruby["first8_child"]
    assert ruby["child"]["embedded_pid"] == ruby["parent_pid"] != ruby["child"]["child_pid"]

    generator = locality.Generator()
    generator.new()

    def mint() -> list[str]:
        return list(map(str, islice(generator, 3)))

    child = Child(mint)
    ids, childs_ids = mint(), child.result()
    assert [text[:8] for text in ids] != [text[:8] for text in childs_ids]
    assert {locality.ID.parse(text).pid for text in ids} == {os.getpid() % 65536}
    assert {locality.ID.parse(text).pid for text in childs_ids} == {child.pid % 65536}


def test_fork_outside_python_is_noticed() -> None:
    """uWSGI and other programs that embed Python fork in C, and may run none of its fork hooks."""
    script = """if True:
        import ctypes, os, sys
        from mintage import errors, locality, sno, snowflake
        given = sno.Generator(7)
        parent = [sno.new(), snowflake.new(), locality.new(), given.new()]
        reading, writing = os.pipe()
        child = ctypes.PyDLL(None).fork()
        if child == 0:
            try:
                refusal = str(given.new())
            except errors.GenerationError as error:
                refusal = error.code
            minted = [str(i) for i in (sno.new(), snowflake.new(), locality.new())]
            os.write(writing, " ".join([*minted, refusal]).encode())
            os._exit(0)
        os.waitpid(child, 0)
        *minted, refusal = os.read(reading, 1000).decode().split()
        ours = [str(i) for i in (sno.new(), snowflake.new(), locality.new())]
        print(refusal, set(minted) & set(ours), sno.ID.parse(minted[0]).partition == parent[0].partition)
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=BOUND_S, check=False)
    assert done.stdout == "fork.shared_node set() False\n", done.stderr


NO_WIPE = """
import ctypes, os, struct
from ctypes import c_void_p

# A filter that refuses madvise(_, _, MADV_WIPEONFORK), as some sandboxes do.
madvise = {"x86_64": 28, "aarch64": 233}[os.uname().machine]
steps = [(0x20, 0, 0, 0), (0x15, 0, 3, madvise), (0x20, 0, 0, 32), (0x15, 0, 1, 18)]
steps += [(6, 0, 0, 0x50016), (6, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
if libc.prctl(22, 2, c_void_p(ctypes.addressof(program)), 0, 0):
    os._exit(77)

from mintage import snowflake
from tests.helpers.processes import raw_clone

generator = snowflake.Generator(store="sqlite:///ids.db")
generator.new()
read, write = os.pipe()
if (pid := raw_clone()) == 0:
    try:
        os.write(write, b"".join(struct.pack("Q", generator.new()) for _ in range(1000)))
    finally:
        os._exit(0)
own = [generator.new() for _ in range(1000)]
os.waitpid(pid, 0)
minted = struct.unpack("1000Q", os.read(read, 8000))
assert not set(own) & set(minted)
"""


def test_raw_fork_is_noticed_by_a_kernel_that_wipes_no_pages(tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": root}
    done = subprocess.run(
        [sys.executable, "-c", NO_WIPE], check=False, capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    if done.returncode == 77:
        pytest.skip("this kernel takes no filter")
    assert (done.returncode, done.stderr) == (0, "")
