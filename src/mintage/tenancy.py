"""A generator's lease: how it is acquired, extended, lost and given back. The keeper does the work.

All that a tenancy holds changes under the keeper's condition, as :mod:`mintage.keeper` says. A generator takes what it
mints under from :meth:`Tenancy.window` alone: the serial number of the grant and its window, read together.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mintage._core import generation as epoch
from mintage.errors import LeaseError, MintError, StoreError
from mintage.keeper import Task
from mintage.lease import MAX_INTEGER, Lease
from mintage.store import new_token

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    from mintage.store import Store

    Window: TypeAlias = tuple[int, int, int, int, int]

__all__ = ["Tenancy"]

#: Seconds after which an answer says nothing of the clock that was read before.
LATE_S: Final = 1.0
#: A generator that runs ahead of its clock asks for this much more of a window at once.
WORTH_MS: Final = 100


class Tenancy(Task):
    """A generator's lease, and the next one when it moves.

    ``nodes`` returns ranges to choose from, in this order. ``clock`` returns the generator's time in nanoseconds. For
    the store to answer, each call waits ``patience_ms`` at least.
    """

    def __init__(
        self,
        store: Store,
        *,
        pool: str,
        nodes: Callable[[], Sequence[range]],
        layout: str,
        never_used: bool,
        span_ms: int,
        moves: bool,
        holder: Callable[[], str],
        clock: Callable[[], int],
        patience_ms: int = 0,
    ) -> None:
        super().__init__(store)
        self._patience_ms = patience_ms
        self.never_used = never_used
        self._pool = pool
        self._nodes = nodes
        self._layout = layout
        self._span_ms = span_ms
        self._moves = moves
        self._holder = holder
        self._clock = clock
        self.generator: Callable[[], Any] | None = None
        """A weak reference to whom it leases for."""
        self._lease: Lease | None = None
        self._serial = 0
        self._lost: LeaseError | None = None
        self._next_token = ""
        """What the last extension proposed, until it is known what came of it."""

    def now_ms(self) -> int:
        """Return the generator's clock."""
        return self._clock() // 1_000_000

    def window(self, max_wait_ms: int) -> Window:
        """Return a window that the generator's clock is not at the end of.

        Returns the serial number of the grant, the node, floor, until, and when it is worth asking for a later end;
        times in milliseconds.

        :raises LeaseError: ``lease.lost``, ``lease.none_free``, ``lease.clock``.
        :raises StoreError: as the store's verbs.
        :raises GenerationError: ``generator.closed``.
        """
        return self._wait(self._open_window, max_wait_ms, self._patience_ms)

    def _open_window(self) -> Window | None:
        lease = self._lease
        if lease is not None and self.now_ms() < lease.until_ms:
            return self._serial, lease.node, lease.floor_ms, lease.until_ms, lease.until_ms - self._span_ms + WORTH_MS
        self._leave_lost()
        return None

    def _leave_lost(self) -> None:
        """Forget a lease that is lost and used up, for another; raises where the generator does not move."""
        if self._lost is None:
            return
        if not self._moves:
            raise LeaseError(
                f"{self._lost}; its window ended: make a new generator, or let it move by itself with "
                'on_lease_lost="move"',
                code="lease.lost",
            )
        self._lease, self._lost, self._next_token = None, None, ""

    def grow(self, until_ms: int, max_wait_ms: int) -> None:
        """Wait for a later end of the window than ``until_ms``, for a generator that runs ahead of its clock.

        :raises MintError: as :meth:`window`.
        """
        serial = self._serial

        def grown() -> bool | None:
            # The window of a lease that is lost grows no more, and the generator has used all of it.
            self._leave_lost()
            window = self._open_window()
            return True if window is not None and (window[0] != serial or window[3] > until_ms) else None

        self._wait(grown, max_wait_ms, self._patience_ms)

    def due_s(self) -> float | None:
        if self._lease is None:
            return 0.0 if self.wanted else None
        if self._lost is not None:
            return None
        if self.wanted:
            return 0.0
        # A third of the span is spent.
        return (self._lease.until_ms - self.now_ms() - self._span_ms * 2 / 3) / 1000

    def plan(self) -> Callable[[], Callable[[], None]]:
        lease, now_ms, asked_s = self._lease, self.now_ms(), time.monotonic()
        if lease is None:
            return lambda: self._acquire(now_ms, asked_s)
        is_fresh = not self._next_token
        token = self._next_token = self._next_token or new_token()
        return lambda: self._extend(lease, now_ms, asked_s, token, is_fresh=is_fresh)

    @contextmanager
    def _in_time(self, asked_s: float) -> Iterator[None]:
        """Blames no clock for what may be a store that took long to answer, or a process that was paused meanwhile.

        :raises StoreError: ``store.unavailable``, in place of ``lease.clock``.
        """
        try:
            yield
        except LeaseError as error:
            taken_s = time.monotonic() - asked_s
            if error.code != "lease.clock" or taken_s < LATE_S:
                raise
            raise StoreError(
                f"{self.store.url}: the answer took {taken_s * 1000:.0f} ms, and so this may be a wait: {error}",
                code="store.unavailable",
            ) from error

    def _extend(self, lease: Lease, now_ms: int, asked_s: float, token: str, *, is_fresh: bool) -> Callable[[], None]:
        try:
            with self._in_time(asked_s):
                answer = self.store.extend(lease, now_ms=now_ms, next_token=token)
        except MintError as error:
            if not is_fresh or error.code == "store.unavailable":
                # What came of it, or of the one before, is not known: the next try proposes the same token.
                raise
            refusal = error

            def give_up() -> None:
                self._next_token = ""
                raise refusal

            return give_up
        extended = self._checked(answer, lease, token)
        return lambda: self._hold(extended)

    def _acquire(self, now_ms: int, asked_s: float) -> Callable[[], None]:
        choices = self._nodes()
        for at, nodes in enumerate(choices):
            try:
                with self._in_time(asked_s):
                    lease = self.store.acquire(
                        self._pool,
                        nodes=nodes,
                        layout=self._layout,
                        holder=self._holder(),
                        now_ms=now_ms,
                        span_ms=self._span_ms,
                        never_used=self.never_used,
                    )
            except LeaseError as error:
                if error.code != "lease.none_free" or at + 1 == len(choices):
                    raise
            else:
                granted = self._checked(lease, nodes)
                return lambda: self._hold(granted, new=True)
        raise AssertionError("a tenancy has node numbers to choose from")

    def _checked(self, lease: Lease, asked: Lease | range, token: str | None = None) -> Lease:
        """What the store answered, if it can be: the lease that was asked for, no shorter than it was, with the token.

        :raises StoreError: ``store.refused``.
        """
        fits = (
            isinstance(lease, Lease)
            and all(type(number) is int for number in (lease.node, lease.floor_ms, lease.until_ms))
            and isinstance(lease.token, str)
            and lease.token != ""
            and lease.token == (token or lease.token)
            and lease.pool == self._pool
            and 0 <= lease.floor_ms < lease.until_ms <= MAX_INTEGER
        )
        if fits and isinstance(asked, range):
            fits = lease.node in asked
        elif fits and isinstance(asked, Lease):
            fits = (lease.node, lease.floor_ms) == (asked.node, asked.floor_ms) and lease.until_ms >= asked.until_ms
        if not fits:
            what = f"to extend {asked!r}" if isinstance(asked, Lease) else f"for one of {asked!r}"
            raise StoreError(
                f"{self.store.url}: asked {what}, it answered {lease!r:.200}, which cannot be", code="store.refused"
            )
        return lease

    def _hold(self, lease: Lease, *, new: bool = False) -> None:
        self._lease, self._next_token = lease, ""
        self._serial += new

    def refused(self, error: MintError) -> None:
        if self._lease is not None and isinstance(error, LeaseError) and error.code == "lease.lost":
            self._lost = error
            self.failure = None

    def holds(self) -> bool:
        return self._lease is not None

    def _unseat(self) -> int | None:
        """Have the generator start over at its next ID; returns the first time that it did not mint in, if it did."""
        generator = self.generator and self.generator()
        return None if generator is None else generator._detach()

    def rest(self) -> Callable[[], None]:
        lease, used_until_ms, is_lost = self._lease, self._unseat(), self._lost is not None
        self._lease, self._lost, self._next_token = None, None, ""
        if lease is None or is_lost:
            return lambda: None
        # Nobody minted under a lease that its generator does not know of.
        used = lease.floor_ms if used_until_ms is None else used_until_ms
        return lambda: self.store.release(lease, used_until_ms=used)

    def reborn(self) -> None:
        self._lease, self._lost, self._next_token = None, None, ""
        if self.epoch == epoch():
            self._unseat()

    def release(self, used_until_ms: int) -> None:
        """End the lease; the next holder may start at ``used_until_ms``.

        A store that is away does not matter: the window ends by itself.
        """
        keeper = self._seat()
        with keeper.condition:
            self.closed = True
            # The end of a process waits for all at once.
            if not keeper.wait_for(self, time.monotonic() if keeper.has_ended() else None):
                # The keeper does it after the verb that it is in.
                keeper.abandoned.append(partial(self.release, used_until_ms))
                return
            lease, self._lease = self._lease, None
            away = keeper.pause_s(self.store) > 0
            keeper.condition.notify_all()
        if lease is not None and self._lost is None and not away:
            keeper.give_back(partial(self.store.release, lease, used_until_ms=used_until_ms))

    def end(self) -> None:
        generator = self.generator and self.generator()
        if generator is not None:
            generator.close()

    def abandon(self, used_until_ms: int) -> None:
        """Have the keeper release the lease of a generator that is gone.

        Takes no lock, does not ask the store, and works while the interpreter ends. Only for a generator that has its
        seat in this epoch.
        """
        if self._lease is not None and self.keeper is not None:
            self.keeper.abandoned.append(partial(self.release, used_until_ms))

    def close(self) -> None:
        """Let the lease run out, of whose use nothing is known here."""
        self.closed = True
