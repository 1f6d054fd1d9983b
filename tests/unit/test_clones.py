"""A process that was restored from a snapshot starts over: what it held is another's as well."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
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
from mintage.process import restore
from mintage.process.restore import JUMP_NS, Fingerprint, RestoreDetector, Verdict, judge
from mintage.store.memory import MemoryStore
from mintage.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mintage.rules import Lease, Segment
    from tests.unit.test_fork import Child as ChildType

SECOND = 10**9
MS = 10**6
NOW_MS = 1_700_000_000_000
BOUND = 60
SOME = Fingerprint(NOW_MS * MS, 77 * SECOND, 99 * SECOND, "52a4ee8b", 4711, 815)


def later(by_ns: int, **changes: Any) -> Fingerprint:
    clocks = {name: getattr(SOME, name) + by_ns for name in ("realtime_ns", "monotonic_ns", "boottime_ns")}
    return replace(SOME, **{**clocks, **changes})


# ------------------------------------------------------------------------------------------------------------ the signs


@given(passed=st.integers(0, 10**18), off=st.tuples(*[st.integers(-JUMP_NS, JUMP_NS)] * 2))
def test_time_that_passes_for_all_clocks_is_no_sign(passed: int, off: tuple[int, int]) -> None:
    now = later(passed, realtime_ns=SOME.realtime_ns + passed + off[0], boottime_ns=SOME.boottime_ns + passed + off[1])
    assert judge(SOME, now) is Verdict.SAME


@given(passed=st.integers(0, 10**15), slewed=st.floats(0.9, 1.1))
def test_a_slewed_clock_is_no_sign_as_all_are_slewed(passed: int, slewed: float) -> None:
    assert judge(SOME, later(round(passed * slewed))) is Verdict.SAME


@pytest.mark.parametrize("clock", ["realtime_ns", "boottime_ns"])
@pytest.mark.parametrize("jump", [JUMP_NS + 1, -JUMP_NS - 1, 3600 * SECOND])
def test_a_clock_that_jumps_may_be_a_restore(clock: str, jump: int) -> None:
    assert judge(SOME, later(SECOND, **{clock: getattr(SOME, clock) + SECOND + jump})) is Verdict.MAYBE


def test_a_monotonic_clock_that_goes_back_may_be_a_restore() -> None:
    assert judge(SOME, later(-SECOND)) is Verdict.MAYBE


@pytest.mark.parametrize("change", [{"boot_id": "other"}, {"pid": 1}, {"started": 9}, {"generations": 1}])
def test_another_boot_pid_start_or_generation_is_a_restore(change: dict[str, Any]) -> None:
    assert judge(SOME, later(SECOND, **change)) is Verdict.RESTORED


@pytest.mark.parametrize("unknown", [{"boot_id": ""}, {"started": 0}, {"boottime_ns": 0}])
def test_what_is_not_shown_is_no_sign(unknown: dict[str, Any]) -> None:
    assert judge(SOME, later(SECOND, **unknown)) is Verdict.SAME
    assert judge(replace(SOME, **unknown), later(SECOND)) is Verdict.SAME


@pytest.mark.parametrize("name", ["python3", "a b", ") R 1 (", "((", "9 ) 9"])
def test_a_process_is_found_to_have_started_whatever_its_name(name: str) -> None:
    numbers = " ".join(str(at) for at in range(4, 53))
    assert restore.started_ticks(f"4711 ({name}) S {numbers}\n") == 22


@pytest.mark.parametrize("line", ["", "4711 (python3", "4711 (python3) S 1 2", "no line"])
def test_a_line_that_is_none_says_nothing(line: str) -> None:
    with pytest.raises(ValueError, match="not a line"):
        restore.started_ticks(line)


def test_the_kernels_own_announcement_counts_and_a_users_does_not() -> None:
    path = b"change@/devices/platform/VMGENCTR:00\0ACTION=change\0"
    assert restore.is_generation(path + b"NEW_VMGENID=1\0SEQNUM=2")
    assert not restore.is_generation(path + b"SYNTH_ARG_NEW_VMGENID=1\0SEQNUM=2")
    assert not restore.is_generation(path)


def test_a_process_that_lives_on_shows_no_sign() -> None:
    watch = RestoreDetector()
    assert [watch.check() for _ in range(20)] == [Verdict.SAME] * 20


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_a_child_is_told_from_its_parent_by_its_signs() -> None:
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


def test_what_took_the_place_of_a_watchs_socket_is_left_alone() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        watch = RestoreDetector()
        watch._uevents = socket.socket(fileno=os.dup(ours.fileno()))
        watch._inode = 1
        theirs.send(b"theirs")
        watch._no_uevents = True
        watch.check()
        watch.close()
        ours.setblocking(False)
        assert ours.recv(100) == b"theirs"


def test_what_a_process_listens_with_is_closed_at_rest(inline: keeper.Keeper) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        theirs.setblocking(False)
        inline.detector._uevents, inline.detector._inode = ours, os.fstat(ours.fileno()).st_ino
        inline.release_all()
        assert theirs.recv(1) == b""


# -------------------------------------------------------------------------------------------------------- starting over


class Seen(RestoreDetector):
    """A watch that sees what it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.now = SOME

    def fingerprint(self) -> Fingerprint:
        return self.now


@pytest.fixture
def inline() -> Iterator[keeper.Keeper]:
    before = keeper.current()
    mine = keeper.Keeper(inline=True)
    mine.detector = Seen()
    keeper.use(mine)
    yield mine
    keeper.use(before)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOW_MS * MS)


class Memory(MemoryStore):
    """Records that all clones see: as a store of its own would have them."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock=lambda: clock.now_ns // MS)
        self.closed = 0

    def _begin(self) -> Any:
        self._records.epoch = _core.epoch()
        return super()._begin()

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def store(clock: ManualClock) -> Memory:
    return Memory(clock)


def in_child(run: Callable[[], object]) -> Any:
    """What it returns, in a process that ends with it: a later epoch is for good."""
    from tests.unit.test_fork import Child

    child: ChildType = Child(run)
    return child.result()


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
def test_a_restored_process_leaves_its_lease_and_its_segments_to_others(
    store: Memory, clock: ManualClock, scheme: str
) -> None:
    def live() -> list[object]:
        mine = keeper.Keeper(inline=True)
        keeper.use(mine)
        generator = MAKE[scheme](store=store, clock=clock)
        orders = Sequence("orders", store, step=10)
        before = node_of(scheme, generator), orders.next()
        epoch = _core.epoch()
        clones.after_restore()
        after = node_of(scheme, generator), orders.next()
        return [epoch < _core.epoch(), keeper.current() is mine, before[0] != after[0], before[1], after[1]]

    assert in_child(live) == [True, True, True, 1, 11]


def test_a_process_that_never_leased_starts_over_as_well() -> None:
    code = (
        "import sys, mintage; from mintage import _core, sno; g = sno.Generator(7); g.new(); e = _core.epoch();"
        "mintage.before_snapshot(); mintage.after_restore(); assert _core.epoch() > e\n"
        "try: g.new()\n"
        "except mintage.errors.GenerationError as error: print(error.code, 'mintage.lease.keeper' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["fork.shared_node", "False"]


def test_what_a_store_answers_after_a_restore_to_a_question_of_before_is_dropped(clock: ManualClock) -> None:
    class Slow(Memory):
        """Whose process is cloned while it answers."""

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


def test_threads_that_wait_at_a_restore_are_served_after_it(clock: ManualClock) -> None:
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
def test_a_generator_that_starts_over_while_it_asks_for_a_later_end_is_seated_anew(
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
def test_a_lease_that_is_left_before_its_generator_is_seated_is_minted_under_by_nobody(
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
def test_the_keeper_notices_a_restore_by_itself(clock: ManualClock, change: dict[str, Any]) -> None:
    def live() -> list[object]:
        mine = keeper.Keeper(inline=True)
        mine.detector = watch = Seen()
        keeper.use(mine)
        store = Memory(clock)
        given, generator = snowflake.Generator(7), snowflake.Generator(store=store, clock=clock)
        given.new()
        before, epoch = generator.node, _core.epoch()
        mine.check_restored()
        assert (generator.node, _core.epoch()) == (before, epoch)
        watch.now = replace(SOME, **change)
        mine.check_restored()
        try:
            given.new()
            refused = ""
        except GenerationError as error:
            refused = error.code
        return [generator.node != before, _core.epoch() > epoch, refused]

    assert in_child(live) == [True, True, "fork.shared_node"]


def test_a_clock_that_jumps_costs_a_lease_and_a_segment_and_no_more(
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
    before, epoch = (node_of(scheme, generator), orders.next()), _core.epoch()
    inline.check_restored()
    watch.now = later(SECOND, realtime_ns=SOME.realtime_ns + 3600 * SECOND)
    inline.check_restored()
    after = node_of(scheme, generator), orders.next()
    assert before[0] != after[0]
    assert (before[1], after[1]) == (1, 11)
    assert _core.epoch() == epoch
    given.new()
    (said,) = caplog.messages
    assert said.startswith("mintage: this process may have been restored from a snapshot, as a clock jumped: ")


@pytest.mark.usefixtures("inline")
def test_after_a_restore_no_store_is_left_alone_for_what_failed_before(clock: ManualClock) -> None:
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


def test_a_thread_looks_once_a_second_while_something_is_held(store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "RESTORE_CHECK_INTERVAL_S", 0.001)
    before, mine = keeper.current(), keeper.Keeper()
    mine.detector = watch = Seen()
    looks, enough = 0, threading.Event()

    def look() -> Fingerprint:
        nonlocal looks
        looks += 1
        if looks > 20:
            enough.set()
        return watch.now

    monkeypatch.setattr(watch, "fingerprint", look)
    keeper.use(mine)
    try:
        orders = Sequence("orders", store, step=10, max_wait_ms=BOUND * 1000)
        first = orders.next()
        assert enough.wait(BOUND)
        watch.now = later(SECOND, realtime_ns=SOME.realtime_ns + 3600 * SECOND)
        deadline = time.monotonic() + BOUND
        while orders.held and time.monotonic() < deadline:
            pass
        assert orders.next() > first + 1
    finally:
        mine.close()
        keeper.use(before)


def test_a_keeper_that_cannot_look_works_nevertheless(store: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    before, mine = keeper.current(), keeper.Keeper()
    mine.detector = watch = Seen()

    def look() -> Fingerprint:
        raise LookupError("unknown encoding")

    monkeypatch.setattr(watch, "fingerprint", look)
    keeper.use(mine)
    try:
        assert Sequence("orders", store, step=10, max_wait_ms=BOUND * 1000).next() == 1
    finally:
        mine.close()
        keeper.use(before)


def test_a_keeper_that_cannot_look_says_so_once_until_it_can_again(
    store: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(keeper, "RESTORE_CHECK_INTERVAL_S", 0.001)
    before, mine = keeper.current(), keeper.Keeper()
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
    keeper.use(mine)
    try:
        orders = Sequence("orders", store, step=10, max_wait_ms=BOUND * 1000)
        orders.next()
        assert enough.wait(BOUND)
        orders.close()
    finally:
        mine.close()
        keeper.use(before)
    assert [record.exc_info is not None for record in caplog.records if "signs of a restore" in record.message] == [
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
def test_a_token_is_drawn_by_the_kernel_even_where_the_c_library_draws_by_itself(tmp_path: Path) -> None:
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
def test_before_a_snapshot_leases_and_tails_are_given_back(store: Memory, clock: ManualClock, scheme: str) -> None:
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
    # A process that mints after all leases and reserves anew.
    clock.advance(3 * SECOND)
    minted += [generator.new() for _ in range(3)]
    assert len(set(minted)) == 6
    assert orders.next() == 2


@pytest.mark.usefixtures("inline")
def test_what_a_store_answers_after_a_snapshot_to_a_question_of_before_is_dropped(clock: ManualClock) -> None:
    class Slow(Memory):
        """Whose caller's process is told of a snapshot while it answers."""

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
def test_a_snapshot_that_a_store_tells_of_in_the_middle_of_a_verb_waits_for_none(
    clock: ManualClock, *, is_inline: bool
) -> None:
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
def test_what_a_store_answers_is_dropped_however_often_a_process_started_over(
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
def test_two_clones_of_a_sequence_hand_out_nothing_twice_when_the_hooks_ran(store: Memory, tmp_path: Path) -> None:
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


def test_the_hooks_run_through_aws_lambdas_own_package(tmp_path: Path) -> None:
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
epoch = _core.epoch()
# As the runtime does: the last one that was registered first, and the other way round.
for run, args, options in reversed(hooks.get_before_snapshot()):
    run(*args, **options)
ran.append(orders.held)
for run, args, options in hooks.get_after_restore():
    run(*args, **options)
print(ran, _core.epoch() > epoch, len(hooks.get_before_snapshot()), len(hooks.get_after_restore()))
"""
    code = code.replace("URL", repr(f"sqlite:///{tmp_path}/ids.db"))
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[2, 0, 3] True 2 2"


def test_where_the_package_of_the_hooks_comes_later_the_first_lease_registers_them(tmp_path: Path) -> None:
    code = (
        "import mintage, snapshot_restore_py as hooks\n"
        f"orders = mintage.Sequence('orders', 'sqlite:///{tmp_path}/ids.db')\n"
        "orders.next()\n"
        "print(len(hooks.get_before_snapshot()), len(hooks.get_after_restore()))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "1 1"


def test_the_package_of_the_hooks_is_not_imported_for_nothing() -> None:
    code = (
        "import sys, mintage; print([name for name in sys.modules if 'snapshot_restore' in name or 'clones' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.usefixtures("inline")
def test_a_store_that_is_away_keeps_no_snapshot_waiting(clock: ManualClock) -> None:
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
