"""Tests of restored snapshots: a restored process starts over, as its leases and segments belong to others too."""

from __future__ import annotations

import gc
import os
import socket
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mintage
from mintage import Sequence, _core, clones, locality, sno, snowflake
from mintage.errors import GenerationError, StoreError
from mintage.lease import keeper
from mintage.lease.lease_client import LeaseClient
from mintage.platform import machine, vm_generation
from mintage.process.restore import JUMP_NS, Fingerprint, RestoreDetector, Verdict, judge
from mintage.store.memory import MemoryStore
from mintage.testing import ManualClock
from tests.helpers.keepers import keeper_in_place
from tests.helpers.processes import in_child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mintage.rules import Lease, Segment

SECOND = 10**9
MS = 10**6
NOW_MS = 1_700_000_000_000
BOUND = 60
SOME = Fingerprint(NOW_MS * MS, 77 * SECOND, 99 * SECOND, "52a4ee8b", 4711, 815)


def later(by_ns: int, **changes: Any) -> Fingerprint:
    clocks = {name: getattr(SOME, name) + by_ns for name in ("realtime_ns", "monotonic_ns", "boottime_ns")}
    return SOME._replace(**{**clocks, **changes})


# --------------------------------------------------------------------------------------------------------- fingerprints


@given(passed=st.integers(0, 10**18), off=st.tuples(*[st.integers(-JUMP_NS, JUMP_NS)] * 2))
def test_time_that_passes_for_all_clocks_is_no_restore(passed: int, off: tuple[int, int]) -> None:
    now = later(passed, realtime_ns=SOME.realtime_ns + passed + off[0], boottime_ns=SOME.boottime_ns + passed + off[1])
    assert judge(SOME, now) is Verdict.SAME


@given(passed=st.integers(0, 10**15), slewed=st.floats(0.9, 1.1))
def test_slewed_clock_is_no_restore(passed: int, slewed: float) -> None:
    assert judge(SOME, later(round(passed * slewed))) is Verdict.SAME


@pytest.mark.parametrize("clock", ["realtime_ns", "boottime_ns"])
@pytest.mark.parametrize("jump", [JUMP_NS + 1, -JUMP_NS - 1, 3600 * SECOND])
def test_clock_that_jumps_may_be_a_restore(clock: str, jump: int) -> None:
    assert judge(SOME, later(SECOND, **{clock: getattr(SOME, clock) + SECOND + jump})) is Verdict.MAYBE


def test_monotonic_clock_that_goes_back_may_be_a_restore() -> None:
    assert judge(SOME, later(-SECOND)) is Verdict.MAYBE


@pytest.mark.parametrize("change", [{"boot_id": "other"}, {"pid": 1}, {"started": 9}, {"generations": 1}])
def test_change_of_boot_pid_start_or_generation_is_a_restore(change: dict[str, Any]) -> None:
    assert judge(SOME, later(SECOND, **change)) is Verdict.RESTORED


@pytest.mark.parametrize("unknown", [{"boot_id": ""}, {"started": 0}, {"boottime_ns": 0}])
def test_missing_fingerprint_fields_are_no_restore(unknown: dict[str, Any]) -> None:
    assert judge(SOME, later(SECOND, **unknown)) is Verdict.SAME
    assert judge(SOME._replace(**unknown), later(SECOND)) is Verdict.SAME


@pytest.mark.parametrize("name", ["python3", "a b", ") R 1 (", "((", "9 ) 9"])
def test_process_start_is_found_whatever_its_name(name: str) -> None:
    numbers = " ".join(str(at) for at in range(4, 53))
    assert machine.field_of_process(f"4711 ({name}) S {numbers}\n", 22) == 22


@pytest.mark.parametrize("line", ["", "4711 (python3", "4711 (python3) S 1 2", "no line"])
def test_malformed_stat_line_gives_no_start_time(line: str) -> None:
    assert machine.field_of_process(line, 22) == 0


def test_only_uevents_of_the_kernel_count() -> None:
    path = b"change@/devices/platform/VMGENCTR:00\0ACTION=change\0"
    assert vm_generation.is_announcement(path + b"NEW_VMGENID=1\0SEQNUM=2")
    assert not vm_generation.is_announcement(path + b"SYNTH_ARG_NEW_VMGENID=1\0SEQNUM=2")
    assert not vm_generation.is_announcement(path)


def test_running_process_is_no_restore() -> None:
    watch = RestoreDetector()
    assert [watch.check() for _ in range(20)] == [Verdict.SAME] * 20


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_child_differs_from_its_parent_in_its_fingerprint() -> None:
    mine = RestoreDetector().fingerprint()
    shown = subprocess.run(
        [
            sys.executable,
            "-c",
            (
                "from mintage.process.restore import RestoreDetector\n"
                "s = RestoreDetector().fingerprint(); print(s.pid, s.started, s.boot_id)"
            ),
        ],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert int(shown[0]) != mine.pid
    assert int(shown[1]) > mine.started > 0
    assert shown[2] == mine.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def test_descriptor_that_replaced_the_uevent_socket_is_left_alone() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        watch = RestoreDetector()
        watch._events._socket = socket.socket(fileno=os.dup(ours.fileno()))
        watch._events._inode = 1
        theirs.send(b"theirs")
        watch._events._is_impossible = True
        watch.check()
        watch.close()
        ours.setblocking(False)
        assert ours.recv(100) == b"theirs"


def test_uevent_socket_is_closed_when_nothing_is_held(inline: keeper.Keeper) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.setblocking(False)
        events = inline.detector._events
        events._socket, events._inode = ours, os.fstat(ours.fileno()).st_ino
        inline.release_all()
        assert theirs.recv(1) == b""


@pytest.mark.skipif(sys.platform != "linux", reason="netlink")
def test_uevent_socket_of_a_reference_cycle_ends_without_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vm_generation, "_DRIVER", Path("/"))
    gc.collect()  # what earlier tests left open
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        events: Any = vm_generation.VmGenerationEvents()
        # Without a GIL the collector takes a thread's objects together, so it comes to the socket first.
        thread = threading.Thread(target=events.count)
        thread.start()
        thread.join()
        events.itself = events
        del events, thread
        gc.collect()
    assert [str(each.message) for each in caught if each.category is ResourceWarning] == []


# -------------------------------------------------------------------------------------------------------- starting over


class Seen(RestoreDetector):
    """A restore detector with given results."""

    def __init__(self) -> None:
        super().__init__()
        self.now = SOME

    def fingerprint(self) -> Fingerprint:
        return self.now


@pytest.fixture
def inline() -> Iterator[keeper.Keeper]:
    mine = keeper.Keeper(inline=True)
    mine.detector = Seen()
    with keeper_in_place(mine):
        yield mine


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS * MS)


class Memory(MemoryStore):
    """Records that all clones share, like a separate store."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock=lambda: clock.now_ns // MS)
        self.closed = 0

    def _begin(self) -> Any:
        self._records.epoch = _core.generation()
        return super()._begin()

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def store(clock: ManualClock) -> Memory:
    return Memory(clock)


MAKE: dict[str, Any] = {
    "sno": sno.Generator,
    "snowflake": snowflake.Generator,
    "locality": locality.Generator,
}


@pytest.fixture(params=MAKE)
def scheme(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def node_of(scheme: str, generator: Any) -> int:
    generator.new()
    if scheme == "locality":
        return int(generator.pid) << 28 | int(generator.mac, 16)
    return int(generator.partition if scheme == "sno" else generator.node)


@pytest.mark.usefixtures("inline")
def test_restored_process_gives_up_its_lease_and_segments(store: Memory, clock: ManualClock, scheme: str) -> None:
    def live() -> list[object]:
        mine = keeper.Keeper(inline=True)
        keeper.use(mine)
        generator = MAKE[scheme](store=store, clock=clock)
        orders = Sequence("orders", store, step=10)
        before = node_of(scheme, generator), orders.next()
        epoch = _core.generation()
        clones.after_restore()
        after = node_of(scheme, generator), orders.next()
        return [epoch < _core.generation(), keeper.current() is mine, before[0] != after[0], before[1], after[1]]

    assert in_child(live) == [True, True, True, 1, 11]


def test_process_without_a_lease_starts_over_too() -> None:
    code = (
        "import sys, mintage; from mintage import _core, sno; g = sno.Generator(7); g.new(); e = _core.generation();"
        "mintage.before_snapshot(); mintage.after_restore(); assert _core.generation() > e\n"
        "try: g.new()\n"
        "except mintage.errors.GenerationError as error: print(error.code, 'mintage.lease.keeper' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["fork.shared_node", "False"]


def test_answer_from_before_a_restore_is_dropped(clock: ManualClock) -> None:
    class Slow(Memory):
        """A store during whose answer the process is cloned."""

        is_slow = True

        def _clone(self) -> None:
            if self.is_slow:
                self.is_slow = False
                clones.after_restore()

        def acquire(self, *args: Any, **options: Any) -> Lease:
            lease = super().acquire(*args, **options)
            self._clone()
            return lease

        def reserve(self, *args: Any, **options: Any) -> Segment:
            segment = super().reserve(*args, **options)
            self._clone()
            return segment

    def live() -> list[int]:
        keeper.use(keeper.Keeper(inline=True))
        first, second, third = Slow(clock), Slow(clock), Slow(clock)
        node = snowflake.Generator(store=first, clock=clock, nodes=range(2)).node
        return [node, Sequence("orders", second, step=10).next(), Sequence("orders", third).reserve(500).start]

    assert in_child(live) == [1, 11, 501]


def test_threads_waiting_at_a_restore_are_served_after_it(clock: ManualClock) -> None:
    class Stuck(Memory):
        asked, go = threading.Event(), threading.Event()

        def acquire(self, *args: Any, **options: Any) -> Lease:
            lease = super().acquire(*args, **options)
            if not self.asked.is_set():
                self.asked.set()
                assert self.go.wait(BOUND)
            return lease

    def live() -> list[int]:
        keeper.use(keeper.Keeper())
        store = Stuck(clock)
        generator = snowflake.Generator(store=store, clock=clock, max_wait_ms=BOUND * 1000)
        minted: list[int] = []
        threads = [threading.Thread(target=lambda: minted.append(generator.new())) for _ in range(4)]
        for thread in threads:
            thread.start()
        assert store.asked.wait(BOUND)
        clones.after_restore()
        store.go.set()
        for thread in threads:
            thread.join(BOUND)
        keepers = [thread for thread in threading.enumerate() if thread.name == "mintage-keeper"]
        nodes = {snowflake.DEFAULT.parse(each).node for each in minted}
        return [len(set(minted)), len(nodes), *nodes, len(keepers)]

    assert in_child(live) == [4, 1, 1, 1]


@pytest.mark.parametrize("is_sure", [True, False], ids=["restored", "may have been"])
def test_generator_restored_during_an_extension_is_attached_anew(
    clock: ManualClock, scheme: str, *, is_sure: bool
) -> None:
    class Patient(keeper.Keeper):
        asked = 0

        def add(self, task: keeper.Task) -> None:
            self.asked += 1
            assert self.asked < 1000, "it asks without end"
            super().add(task)

    class Restored(Memory):
        def extend(self, lease: Lease, **terms: Any) -> Lease:
            keeper.current().start_over(is_sure=is_sure)
            return super().extend(lease, **terms)

    def live() -> list[bool]:
        keeper.use(Patient(inline=True))
        generator = MAKE[scheme](store=Restored(clock), clock=clock)
        before = node_of(scheme, generator)
        clock.advance(3600 * SECOND)
        return [before != node_of(scheme, generator)]

    assert in_child(live) == [True]


@pytest.mark.parametrize("begin", [keeper.Keeper.release_all, lambda here: here.start_over(is_sure=False)])
def test_lease_given_up_before_attaching_is_not_used(
    inline: keeper.Keeper,
    store: Memory,
    clock: ManualClock,
    scheme: str,
    begin: Callable[[keeper.Keeper], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    window, seen = LeaseClient.window, []

    def left(self: LeaseClient, max_wait_ms: int) -> Any:
        found = window(self, max_wait_ms)
        seen.append(found[0])
        if len(seen) == 1:
            begin(inline)
        return found

    monkeypatch.setattr(LeaseClient, "window", left)
    generator = MAKE[scheme](store=store, clock=clock)
    generator.new()
    assert seen == [1, 2]


@pytest.mark.parametrize("change", [{"started": 9}, {"generations": 1}, {"boot_id": "other"}])
def test_keeper_notices_a_restore_by_itself(clock: ManualClock, change: dict[str, Any]) -> None:
    def live() -> list[object]:
        mine = keeper.Keeper(inline=True)
        mine.detector = watch = Seen()
        keeper.use(mine)
        store = Memory(clock)
        given, generator = snowflake.Generator(7), snowflake.Generator(store=store, clock=clock)
        given.new()
        before, epoch = generator.node, _core.generation()
        mine.check_restored()
        assert (generator.node, _core.generation()) == (before, epoch)
        watch.now = SOME._replace(**change)
        mine.check_restored()
        try:
            given.new()
            refused = ""
        except GenerationError as error:
            refused = error.code
        return [generator.node != before, _core.generation() > epoch, refused]

    assert in_child(live) == [True, True, "fork.shared_node"]


def test_clock_jump_costs_only_a_lease_and_a_segment(
    inline: keeper.Keeper, store: Memory, clock: ManualClock, scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    watch = inline.detector
    assert isinstance(watch, Seen)
    given, generator, orders = (
        snowflake.Generator(7),
        MAKE[scheme](store=store, clock=clock),
        Sequence("orders", store, step=10),
    )
    given.new()
    before, epoch = (node_of(scheme, generator), orders.next()), _core.generation()
    inline.check_restored()
    watch.now = later(SECOND, realtime_ns=SOME.realtime_ns + 3600 * SECOND)
    inline.check_restored()
    after = node_of(scheme, generator), orders.next()
    assert before[0] != after[0]
    assert (before[1], after[1]) == (1, 11)
    assert _core.generation() == epoch
    given.new()
    (said,) = caplog.messages
    assert said.startswith("mintage: this process may have been restored from a snapshot, as a clock jumped: ")


@pytest.mark.usefixtures("inline")
def test_restore_resets_the_back_off_of_stores(clock: ManualClock) -> None:
    class Away(Memory):
        is_away = True

        def reserve(self, *args: Any, **options: Any) -> Segment:
            if self.is_away:
                raise StoreError("away", code="store.unavailable")
            return super().reserve(*args, **options)

    store = Away(clock)
    orders = Sequence("orders", store, max_wait_ms=0)
    with pytest.raises(StoreError, match="away"):
        orders.next()
    assert keeper.current().pause_s(store) > 0
    # The clock that a pause ends by may have jumped, too.
    keeper.current().start_over(is_sure=False)
    store.is_away = False
    assert keeper.current().pause_s(store) == 0
    assert orders.next() == 1


def test_thread_checks_once_a_second_while_it_holds_something(store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "RESTORE_CHECK_INTERVAL_S", 0.001)
    mine = keeper.Keeper()
    mine.detector = watch = Seen()
    looks, enough = 0, threading.Event()

    def look() -> Fingerprint:
        nonlocal looks
        looks += 1
        if looks > 20:
            enough.set()
        return watch.now

    monkeypatch.setattr(watch, "fingerprint", look)
    with keeper_in_place(mine):
        orders = Sequence("orders", store, step=10, max_wait_ms=BOUND * 1000)
        first = orders.next()
        assert enough.wait(BOUND)
        watch.now = later(SECOND, realtime_ns=SOME.realtime_ns + 3600 * SECOND)
        deadline = time.monotonic() + BOUND
        while orders.buffered and time.monotonic() < deadline:
            pass
        assert orders.next() > first + 1


def test_keeper_works_if_the_restore_check_fails(store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = keeper.Keeper()
    mine.detector = watch = Seen()

    def look() -> Fingerprint:
        raise LookupError("unknown encoding")

    monkeypatch.setattr(watch, "fingerprint", look)
    with keeper_in_place(mine):
        assert Sequence("orders", store, step=10, max_wait_ms=BOUND * 1000).next() == 1


def test_failed_restore_check_is_logged_once_until_it_works(
    store: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keeper, "RESTORE_CHECK_INTERVAL_S", 0.001)
    mine = keeper.Keeper()
    mine.detector = watch = Seen()
    looks, enough = 0, threading.Event()

    def look() -> Fingerprint:
        nonlocal looks
        looks += 1
        if looks > 20:
            enough.set()
        if looks == 10:
            return watch.now
        raise LookupError("unknown encoding")

    monkeypatch.setattr(watch, "fingerprint", look)
    with keeper_in_place(mine):
        orders = Sequence("orders", store, step=10, max_wait_ms=BOUND * 1000)
        orders.next()
        assert enough.wait(BOUND)
        orders.close()
    assert [record.exc_info is not None for record in caplog.records if "check for a restore" in record.message] == [
        True,
        True,
    ]


# ----------------------------------------------------------------------------------------------------------- randomness

#: A newer C library, which draws from a page of its own process where the kernel's vDSO offers that.
NEWER = Path(__file__).parents[2] / ".cache/unstable/root/usr"


@pytest.mark.skipif(
    not (NEWER / "lib64/ld-linux-x86-64.so.2").exists() or which("strace") is None,
    reason="needs strace, and what tests/servers/unstable.sh unpacks",
)
@pytest.mark.skipif(
    not Path(sys.executable).read_bytes().startswith(b"\x7fELF"), reason="a script starts this interpreter"
)
def test_tokens_come_from_the_kernel_not_from_libc(tmp_path: Path) -> None:
    def asked(draw: str) -> int:
        head = f"import os, sys; sys.path[:] = {sys.path!r}; from mintage.store import new_token"
        code = f"{head}\nfor _ in range(9): {draw}"
        calls = tmp_path / "calls"
        subprocess.run(
            [
                *("strace", "-f", "-qq", "-e", "trace=getrandom", "-o", calls),
                *(NEWER / "lib64/ld-linux-x86-64.so.2", "--library-path", NEWER / "lib/x86_64-linux-gnu"),
                *(os.path.realpath(sys.executable), "-c", code),
            ],
            check=True,
            timeout=BOUND,
        )
        return calls.read_text(encoding="ascii").count(" 16, ")

    if asked("os.urandom(16)"):
        pytest.skip("this kernel's vDSO offers no randomness, or this C library does not take it")
    assert asked("new_token()") == 9


# ------------------------------------------------------------------------------------------------------------ the hooks


@pytest.mark.usefixtures("inline")
def test_leases_and_tails_are_released_before_a_snapshot(store: Memory, clock: ManualClock, scheme: str) -> None:
    generator, orders = MAKE[scheme](store=store, clock=clock, nodes=range(1)), Sequence("orders", store, step=10)
    minted = [generator.new() for _ in range(3)]
    assert orders.next() == 1
    mintage.before_snapshot()
    (record,) = store.list_leases()
    (namespace,) = store.list_namespaces()
    assert record.token is None
    assert record.until_ms <= NOW_MS + (2_048 if scheme == "locality" else 4)
    assert namespace.high_water == 1
    assert store.closed
    # A process that mints after all reserves and leases again.
    clock.advance(3 * SECOND)
    minted += [generator.new() for _ in range(3)]
    assert len(set(minted)) == 6
    assert orders.next() == 2


@pytest.mark.usefixtures("inline")
def test_answer_from_before_a_snapshot_is_dropped(clock: ManualClock) -> None:
    class Slow(Memory):
        """A store during whose answer the process is notified of a snapshot."""

        def reserve(self, *args: Any, **options: Any) -> Segment:
            segment = super().reserve(*args, **options)
            if segment.first == 2:
                mintage.before_snapshot()
            return segment

    orders = Sequence("orders", Slow(clock))
    assert orders.reserve(1).start == 1
    # A question after one snapshot is not one after the next.
    mintage.before_snapshot()
    assert orders.reserve(500).start == 502


@pytest.mark.parametrize("is_inline", [True, False], ids=["inline", "thread"])
def test_snapshot_callback_during_a_verb_waits_for_no_thread(clock: ManualClock, *, is_inline: bool) -> None:
    class Telling(Memory):
        def acquire(self, *args: Any, **options: Any) -> Lease:
            lease = super().acquire(*args, **options)
            if lease.node == 0:
                mintage.before_snapshot()
            return lease

    def live() -> int:
        keeper.use(keeper.Keeper(inline=is_inline))
        generator = snowflake.Generator(store=Telling(clock), clock=clock, nodes=range(2), max_wait_ms=BOUND * 1000)
        return generator.node

    assert in_child(live) == 1


@pytest.mark.parametrize("before", ["jump", "snapshot"])
@pytest.mark.parametrize("meanwhile", ["jump", "snapshot", "snapshot jump"])
def test_answers_are_dropped_after_any_number_of_restores(
    inline: keeper.Keeper, clock: ManualClock, before: str, meanwhile: str
) -> None:
    def live(events: str) -> None:
        for event in events.split():
            if event == "jump":
                inline.start_over(is_sure=False)
            else:
                inline.release_all()

    class Slow(Memory):
        def reserve(self, *args: Any, **options: Any) -> Segment:
            answered.append(super().reserve(*args, **options))
            if len(answered) == 2:
                live(meanwhile)
            return answered[-1]

    answered: list[Segment] = []
    orders = Sequence("orders", Slow(clock), step=10)
    orders.next()
    live(before)
    assert orders.next() == answered[2].first


@pytest.mark.usefixtures("inline")
def test_clones_of_a_sequence_repeat_nothing_after_the_hooks(store: Memory, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/ids.db"
    orders, generator = Sequence("orders", url, step=10), sno.Generator(store=url)
    minted: list[Any] = [orders.next(), str(generator.new())]
    mintage.before_snapshot()

    def live() -> list[Any]:
        mintage.after_restore()
        return [*(orders.next() for _ in range(25)), *(str(generator.new()) for _ in range(25))]

    for _ in range(3):
        minted += in_child(live)
    assert len(set(minted)) == len(minted) == 152


def test_hooks_run_through_the_package_of_aws_lambda(tmp_path: Path) -> None:
    code = """
import snapshot_restore_py as hooks, mintage
from mintage import Sequence, _core

ran = []
@hooks.register_before_snapshot
def of_the_user():
    ran.append(orders.next())
@hooks.register_after_restore
def of_the_user_too():
    ran.append(orders.next())

orders = Sequence("orders", URL, step=10)
orders.next()
epoch = _core.generation()
# In the order of the runtime: last registered first before a snapshot, first registered first after it.
for run, args, options in reversed(hooks.get_before_snapshot()):
    run(*args, **options)
ran.append(orders.buffered)
for run, args, options in hooks.get_after_restore():
    run(*args, **options)
print(ran, _core.generation() > epoch, len(hooks.get_before_snapshot()), len(hooks.get_after_restore()))
"""
    code = code.replace("URL", repr(f"sqlite:///{tmp_path}/ids.db"))
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[2, 0, 3] True 2 2"


def test_hooks_are_registered_at_the_first_lease_if_loaded_later(tmp_path: Path) -> None:
    code = (
        "import mintage, snapshot_restore_py as hooks\n"
        f"orders = mintage.Sequence('orders', 'sqlite:///{tmp_path}/ids.db')\n"
        "orders.next()\n"
        "print(len(hooks.get_before_snapshot()), len(hooks.get_after_restore()))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "1 1"


def test_package_of_the_hooks_is_not_imported_needlessly() -> None:
    code = (
        "import sys, mintage; print([name for name in sys.modules if 'snapshot_restore' in name or 'clones' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.usefixtures("inline")
def test_unavailable_store_delays_no_snapshot(clock: ManualClock) -> None:
    class Gone(Memory):
        def release(self, *_: Any, **__: Any) -> None:
            raise RuntimeError("gone")

        def give_back(self, *_: Any, **__: Any) -> bool:
            raise RuntimeError("gone")

        def close(self) -> None:
            raise RuntimeError("gone")

    store = Gone(clock)
    generator, orders = snowflake.Generator(store=store, clock=clock), Sequence("orders", store, step=10)
    node = generator.node
    orders.next()
    mintage.before_snapshot()
    assert generator.node != node
    assert orders.next() == 11
