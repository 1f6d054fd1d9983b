"""The lease of a generator: acquire, extend, lose and release it. The keeper sends the requests to the store.

All attributes of a :class:`LeaseClient` change under the keeper's condition, as :mod:`mintage.lease.keeper` says. A
generator takes what it mints under from :meth:`LeaseClient.window` alone: the serial number of the grant and its
window, read together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeAlias

from mintage._core import monotonic_s
from mintage.errors import ConfigError, LeaseError, MintError, StoreError
from mintage.lease.keeper import Task
from mintage.process.holder import holder
from mintage.rules import MAX_INTEGER, Lease, merge_ranges, nodes_text
from mintage.store import Store, new_token

Window: TypeAlias = tuple[int, int, int, int, int]
#: The age in seconds at which a reading of the clock is too old to compare with a store's time.
CLOCK_EVIDENCE_MAX_AGE_S: Final = 1.0
#: A generator that runs ahead of its clock asks for this much more of a window at once.
MIN_GROWTH_MS: Final = 100


# It has 15 attributes of its own: nine are the arguments of its requests, which never change.
class LeaseClient(Task):
    """The lease of one generator, and its next one where it moves.

    ``nodes`` returns the ranges to choose a node number from, the preferred one first. ``clock`` returns the time of
    the generator in nanoseconds. Each call waits at least ``patience_ms`` for the store to answer.
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
        clock: Callable[[], int],
        patience_ms: int = 0,
    ) -> None:
        super().__init__(store)
        self._patience_ms = patience_ms
        self.never_used = never_used
        self._pool = pool
        self._nodes = nodes
        self._layout = layout
        self._asked_ms = self._span_ms = span_ms
        self._moves = moves
        self._clock = clock
        self.generator: Callable[[], Any] | None = None
        """A weak reference to the generator that mints under the lease."""
        self._used_until_ms: int | None = None
        """The first time that the generator did not mint in, if it was collected."""
        self._lease: Lease | None = None
        self._serial = 0
        self._lost: LeaseError | None = None
        self._next_token = ""
        """The token that the last extension proposed, until its outcome is known."""

    def now_ms(self) -> int:
        """Return the time of the generator, in milliseconds since the Unix epoch."""
        return self._clock() // 1_000_000

    def window(self, max_wait_ms: int) -> Window:
        """Return a window that the generator's clock is not at the end of.

        It is a tuple: the serial number of the grant, the node number, the floor, the until, and the time from which on
        the generator asks for a later end. Times are milliseconds since the Unix epoch.

        :raises LeaseError: ``lease.lost``, ``lease.none_free``, ``lease.clock``.
        :raises StoreError: as the store's verbs.
        :raises GenerationError: ``generator.closed``.
        """
        return self._wait(self._open_window, max_wait_ms, self._patience_ms)

    def _open_window(self) -> Window | None:
        lease = self._lease
        if lease is not None and self.now_ms() < lease.until_ms:
            due_ms = lease.until_ms - self._span_ms + MIN_GROWTH_MS
            return self._serial, lease.node, lease.floor_ms, lease.until_ms, due_ms
        self._leave_lost()
        return None

    def _leave_lost(self) -> None:
        """Forget a lease that is lost and used up, so that the keeper acquires another, or refuse to."""
        if self._lost is None:
            return
        if not self._moves:
            raise LeaseError(
                f"{self._lost}; its window ended: create a new generator, or let it move by itself with "
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
            # The window of a lost lease does not grow, and the generator has used all of it.
            self._leave_lost()
            window = self._open_window()
            return True if window is not None and (window[0] != serial or window[3] > until_ms) else None

        self._wait(grown, max_wait_ms, self._patience_ms)

    def due_s(self) -> float | None:
        """Return in how many seconds the lease is to be acquired or extended."""
        if self._lease is None:
            return 0.0 if self.wanted else None
        if self._lost is not None:
            return None
        if self.wanted:
            return 0.0
        # Extend when a third of the span is spent.
        return (self._lease.until_ms - self.now_ms() - self._span_ms * 2 / 3) / 1000

    def plan(self) -> Callable[[], Callable[[], None]]:
        """Return the request that acquires or extends the lease."""
        lease, now_ms, asked_s = self._lease, self.now_ms(), monotonic_s()
        if lease is None:
            return lambda: self._acquire(now_ms, asked_s)
        is_fresh = not self._next_token
        token = self._next_token = self._next_token or new_token()
        return lambda: self._extend(lease, now_ms, asked_s, token, is_fresh=is_fresh)

    @contextmanager
    def _in_time(self, asked_s: float) -> Iterator[None]:
        """Turn ``lease.clock`` into an error of the store where its answer took long, or this process was paused."""
        try:
            yield
        except LeaseError as error:
            taken_s = monotonic_s() - asked_s
            if error.code != "lease.clock" or taken_s < CLOCK_EVIDENCE_MAX_AGE_S:
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
                # The outcome of this extension, or of the one before, is unknown: the next one proposes the same token.
                raise
            refusal = error

            def give_up() -> None:
                self._next_token = ""
                raise refusal

            return give_up
        extended = self._checked(answer, lease, token)
        return lambda: self._set_lease(extended)

    def _acquire(self, now_ms: int, asked_s: float) -> Callable[[], None]:
        choices, refusals = self._nodes(), list[MintError]()
        for nodes in choices:
            try:
                with self._in_time(asked_s):
                    lease = self.store.acquire(
                        self._pool,
                        nodes=nodes,
                        layout=self._layout,
                        holder=holder(),
                        now_ms=now_ms,
                        span_ms=self._asked_ms,
                        never_used=self.never_used,
                    )
            except (LeaseError, ConfigError) as error:
                # The latter: a pool has no number of this range.
                if error.code not in {"lease.none_free", "config.node"}:
                    raise
                refusals.append(error)
            else:
                granted = self._checked(lease, nodes)
                # A store may grant more than was asked, and extends by the same.
                span_ms = max(self._asked_ms, granted.until_ms - max(granted.floor_ms, now_ms))
                return lambda: self._set_lease(granted, span_ms)
        raise _soonest(choices, refusals)

    def _checked(self, lease: Lease, asked: Lease | range, token: str | None = None) -> Lease:
        """Return the lease that the store answered with, if it is valid: not shorter than before, with the token."""
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
            verb = f"extend({asked!r})" if isinstance(asked, Lease) else f"acquire(nodes={asked!r})"
            raise StoreError(f"{self.store.url}: invalid answer to {verb}: {lease!r:.200}", code="store.refused")
        return lease

    def _set_lease(self, lease: Lease, new_span_ms: int = 0) -> None:
        # In this order: a generator asks again and again for a lease whose serial number it knows, and a token that is
        # proposed twice extends once.
        if new_span_ms:
            self._serial += 1
            self._span_ms = new_span_ms
        self._lease = lease
        self._next_token = ""

    def refused(self, error: MintError) -> None:
        """Mark the lease as lost if the store says so."""
        if self._lease is not None and isinstance(error, LeaseError) and error.code == "lease.lost":
            self._lost = error
            self.failure = None

    def has_resources(self) -> bool:
        """Return True if there is a lease."""
        return self._lease is not None

    def _detach(self) -> int | None:
        """Detach the generator, which attaches again at its next ID; return the first time that it did not mint in.

        ``None``: it has not received its lease, or was collected and has not said.
        """
        generator = self.generator and self.generator()
        return self._used_until_ms if generator is None else generator._detach()

    def begin_release(self) -> Callable[[], None]:
        """Detach the generator, and return the call that releases its lease."""
        generator = self.generator and self.generator()
        lease, used_until_ms, is_lost = self._lease, self._detach(), self._lost is not None
        self._lease, self._lost, self._next_token = None, None, ""
        if lease is None or is_lost:
            return lambda: None
        if used_until_ms is None:
            if generator is None:
                # It may have minted in all of the window, which runs to its end.
                return lambda: None
            # It minted nothing under the lease.
            used_until_ms = lease.floor_ms
        return partial(self.store.release, lease, used_until_ms=used_until_ms)

    def reset(self) -> None:
        """Forget the lease, and detach the generator if this process has it still."""
        self._lease, self._lost, self._next_token = None, None, ""
        if self.generation.is_current():
            self._detach()

    def release(self, used_until_ms: int) -> None:
        """End the lease; the next holder may start at ``used_until_ms``.

        A store that is away does not matter: the window ends by itself.
        """
        keeper = self.attach()
        with keeper.hold():
            self.closed = True
            # At the end of the process the keeper waits for all requests at once.
            if not keeper.wait_for(self, monotonic_s() if keeper.is_ending else None):
                # The keeper does it after its present request.
                keeper.abandoned.append(partial(self.release, used_until_ms))
                return
            lease, self._lease = self._lease, None
            away = keeper.pause_s(self.store) > 0
            keeper.condition.notify_all()
        if lease is not None and self._lost is None and not away:
            keeper.give_back(partial(self.store.release, lease, used_until_ms=used_until_ms))

    def end(self) -> None:
        """Close the generator."""
        generator = self.generator and self.generator()
        if generator is not None:
            generator.close()

    def abandon(self, used_until_ms: int) -> None:
        """Queue the release of the lease of a generator that was collected.

        It takes no lock, does not ask the store, and works while the interpreter ends. Only for a generator that is
        attached in this generation of the process.
        """
        self._used_until_ms = used_until_ms
        if self._lease is not None and self.keeper is not None:
            self.keeper.abandoned.append(partial(self.release, used_until_ms))


def _soonest(choices: Sequence[range], refusals: Sequence[MintError]) -> MintError:
    """Return the refusal of the number that comes free first, with the names of all that were asked for."""
    asked = merge_ranges(choices)
    leased = [each for each in refusals if isinstance(each, LeaseError)]
    if not leased:
        refusal = refusals[-1]
        text = f"the pool has no node number of {nodes_text(asked)}: {refusal}"
        return refusal if len(asked) == 1 else ConfigError(text, code="config.node")
    # The last of equals: a later choice may contain an earlier one, such as the own number of a process.
    soonest = min(
        reversed(leased), key=lambda each: MAX_INTEGER if each.retry_after_ms is None else each.retry_after_ms
    )
    if len(asked) == 1:
        return soonest
    return LeaseError(
        f"no node number of {nodes_text(asked)} can be leased; the soonest: {soonest}",
        code="lease.none_free",
        retry_after_ms=soonest.retry_after_ms,
    )
