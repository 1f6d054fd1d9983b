"""A forked child never mints what its parent does."""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import platform
import select
import signal
import subprocess
import sys
import threading
import time
import warnings
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from mintage import _core, forks, locality, sno, snowflake
from mintage.errors import ArgumentError, FieldError, GenerationError
from mintage.testing import ManualClock
from tests.conftest import vectors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks beside threads are Linux's")

MS = 1_000_000
NOW = 1_700_000_000_000 * MS
BOUND = 60
"""Seconds after which a child counts as stuck; never waited for otherwise."""

Generator: TypeAlias = "sno.Generator | snowflake.Generator | locality.Generator"


def raw_clone(flags: int = 0) -> int:
    """A fork by the system call itself: no handler runs, the C library's or Python's."""
    number = {"x86_64": 56, "aarch64": 220}[platform.machine()]
    # PyDLL keeps the GIL, so that the child's only thread holds it.
    pid: int = ctypes.PyDLL(None, use_errno=True).syscall(number, flags | signal.SIGCHLD, 0, 0, 0, 0)
    if pid < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return pid


def first_of_a_namespace() -> int:
    """A raw clone that is pid 1 of a namespace of its own."""
    new_user, new_pid = 0x10000000, 0x20000000
    try:
        return raw_clone(new_pid | (new_user if os.geteuid() else 0))
    except PermissionError:
        pytest.skip("this user may not make namespaces")


def c_fork() -> int:
    """A fork in C, of which Python learns nothing. As any other but Python's own, it is for a process without other
    threads: one of them might wait for the GIL in this moment, and the child would wait for it for ever."""
    pid: int = ctypes.PyDLL(None).fork()
    return pid


EVERY_FORK = [os.fork, c_fork, raw_clone, first_of_a_namespace]
each_fork = pytest.mark.parametrize("fork", EVERY_FORK)


class Child:
    """A forked process that runs a function; what that returns comes back through a pipe, as JSON."""

    def __init__(self, run: Callable[[], object], fork: Callable[[], int] = os.fork) -> None:
        self.reading, writing = os.pipe()
        with warnings.catch_warnings():
            # Python 3.12 warns of forks beside threads: to be safe there is what is tested.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = fork()
        if self.pid == 0:
            try:
                answer = json.dumps({"result": run()})
            except BaseException as error:  # noqa: BLE001 (whatever it is, the parent reports it)
                answer = json.dumps({"error": repr(error)})
            view = memoryview(answer.encode())
            while view:
                view = view[os.write(writing, view) :]
            os._exit(0)
        os.close(writing)

    def result(self) -> Any:
        answer = b""
        deadline = time.monotonic() + BOUND
        while select.select([self.reading], [], [], max(0, deadline - time.monotonic()))[0]:
            part = os.read(self.reading, 1 << 16)
            if not part:
                break
            answer += part
        else:
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.reading)
        os.waitpid(self.pid, 0)
        assert answer, "the child is stuck"
        outcome = json.loads(answer)
        assert "result" in outcome, outcome["error"]
        return outcome["result"]


def gathered(children: Iterable[Child]) -> list[Any]:
    return [*chain.from_iterable(child.result() for child in children)]


def outcome(call: Callable[[], object]) -> str:
    """The code of the error that a call ends with, or "ok"."""
    try:
        call()
    except GenerationError as error:
        return error.code
    return "ok"


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
def test_children_of_a_default_generator_draw_numbers_of_their_own(node: Callable[[], int]) -> None:
    parent = node()
    children = [Child(node) for _ in range(16)]
    numbers = {parent, *(child.result() for child in children)}
    # 17 draws out of 1024 or more numbers: fewer than 9 different ones is one chance in 10^11.
    assert len(numbers) >= 9
    assert node() == parent


def test_children_of_the_default_locality_generator_write_their_own_pid_and_count_anew() -> None:
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
def test_sonyflake_py_8_children_and_grandchildren_never_mint_the_same_snowflake(used: bool) -> None:
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


def test_a_random_partition_is_drawn_anew_and_starts_afresh() -> None:
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


def test_processes_of_multiprocessing_are_forks_too() -> None:
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
        assert reading.poll(BOUND), "the child is stuck"
        minted += reading.recv()
        process.join(BOUND)
        assert process.exitcode == 0
    assert len(set(minted)) == len(minted) == 50


# -------------------------------------------------------------------------------------------------------- the one epoch


@each_fork
def test_every_fork_moves_the_child_to_an_epoch_that_no_ancestor_had(fork: Callable[[], int]) -> None:
    def epochs() -> list[int]:
        return [_core.generation(), *Child(lambda: [_core.generation(), _core.generation()], fork).result()]

    before = _core.generation()
    alone, child, grandchild, again = Child(lambda: [_core.generation(), *Child(epochs, fork).result()]).result()
    assert 0 < before < alone < child < grandchild == again
    assert _core.generation() == before


@each_fork
def test_no_fork_lets_a_child_mint_what_its_parent_does(fork: Callable[[], int]) -> None:
    drawn = snowflake.Generator(layout=WIDE, clock=ManualClock(NOW), max_wait_ms=10**6)
    given = snowflake.Generator(7)
    given.new()
    minted = [*drawn.batch(10)]

    def mint() -> list[object]:
        return [os.getpid(), outcome(given.new), [*islice(drawn, 3), *drawn.batch(7)]]

    def mint_and_fork() -> list[object]:
        return [mint(), Child(mint, fork).result()]

    results = Child(lambda: Child(mint_and_fork, fork).result()).result()
    if fork is first_of_a_namespace:
        assert [pid for pid, _, _ in results] == [1, 1]
    assert [refused for _, refused, _ in results] == ["fork.shared_node"] * 2
    minted += [*drawn.batch(10), *chain.from_iterable(ids for _, _, ids in results)]
    assert len(set(minted)) == len(minted) == 40


@each_fork
def test_threads_that_come_together_in_a_child_are_of_one_epoch(fork: Callable[[], int]) -> None:
    def look() -> list[int]:
        start, seen = threading.Barrier(8), []

        def ask() -> None:
            start.wait(BOUND)
            seen.append(_core.generation())

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(BOUND)
        return [*seen, _core.generation()]

    def fork_often() -> bool:
        before = _core.generation()
        return all(Child(look, fork).result() == [before + 1] * 9 for _ in range(20))

    assert Child(fork_often).result()


@each_fork
def test_a_process_began_at_its_fork_whatever_epochs_it_has_been_through(fork: Callable[[], int]) -> None:
    def look() -> list[int]:
        return [_core.fork_generation(), _core.start_generation(), _core.fork_generation()]

    first, later, same = Child(look, fork).result()
    assert _core.fork_generation() < first == same < later


def test_a_new_epoch_is_as_a_fork_to_every_generator() -> None:
    def start_over() -> list[object]:
        before = _core.generation()
        drawn, given = snowflake.Generator(layout=WIDE, clock=ManualClock(NOW)), snowflake.Generator(7)
        node = drawn.node
        given.new()
        after = _core.start_generation()
        return [before < after == _core.generation(), drawn.node != node, outcome(given.new)]

    # In a child, as it is for good.
    assert Child(start_over).result() == [True, True, "fork.shared_node"]


@pytest.mark.parametrize("fork", [c_fork, raw_clone])
def test_a_child_forked_in_c_finds_no_lock_of_its_parents_threads(fork: Callable[[], int]) -> None:
    def work() -> str:
        with forks.quiet():
            return forks.load("json").__name__

    def fork_meanwhile() -> object:
        holds, done = threading.Event(), threading.Event()

        def hold() -> None:
            with forks.quiet():
                holds.set()
                done.wait(BOUND)

        thread = threading.Thread(target=hold)
        thread.start()
        try:
            assert holds.wait(BOUND)
            return Child(work, fork).result()
        finally:
            done.set()
            thread.join(BOUND)

    assert Child(fork_meanwhile).result() == "json"


def test_a_thread_may_fork_in_the_middle_of_a_verb_of_its_own() -> None:
    def work() -> str:
        with forks.quiet():
            return "ok"

    with forks.quiet():
        child = Child(work)
        if child.pid:
            assert child.result() == "ok"


def test_the_kernels_randomness_is_bytes_of_the_length_asked_for() -> None:
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
def test_a_given_number_stays_with_the_parent(make: Callable[[], Generator], used: bool) -> None:
    generator = make()
    if used:
        generator.new()
    ways = ways_to_mint(generator)

    def try_all() -> list[str]:
        return [outcome(way) for way in ways]

    def try_in_grandchild() -> list[str]:
        return Child(try_all).result()  # type: ignore[no-any-return]

    refused = ["fork.shared_node"] * len(ways)
    assert Child(try_all).result() == refused
    assert Child(try_in_grandchild).result() == refused
    assert try_all() == ["ok"] * len(ways)


@pytest.mark.parametrize("make", [make_sno, make_restored_sno, make_snowflake, make_locality])
def test_a_generator_made_in_the_child_works(make: Callable[[], Generator]) -> None:
    make().new()
    assert set(Child(lambda: [outcome(way) for way in ways_to_mint(make())]).result()) == {"ok"}


@pytest.mark.parametrize("make", [sno.Generator, snowflake.Generator, locality.Generator])
def test_a_closed_generator_stays_closed_in_the_child(make: Callable[[], Generator]) -> None:
    generator = make()
    generator.new()
    generator.close()
    assert Child(lambda: outcome(generator.new)).result() == "generator.closed"


def test_a_fork_while_a_call_waits_does_not_smuggle_the_number_into_the_child() -> None:
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
    assert select.select([reading], [], [], BOUND)[0], "the child is stuck"
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
            thread.join(BOUND)
    assert not any(thread.is_alive() for thread in threads)


def test_a_child_may_use_the_clock_that_its_parents_threads_wait_on() -> None:
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
            thread.join(BOUND)
    assert not any(thread.is_alive() for thread in threads)


# ------------------------------------------------------------------------------------------------ wrong in the original


def test_wrong_in_the_ruby_original_parent_and_child_count_on_alike_under_one_pid() -> None:
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


def test_a_fork_by_no_python_code_is_noticed_as_well() -> None:
    """uWSGI and other programs that embed Python fork in C, and may run none of Python's fork hooks."""
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
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=BOUND, check=False)
    assert done.stdout == "fork.shared_node set() False\n", done.stderr
