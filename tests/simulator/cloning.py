"""Cloned processes: the state that copies share, and the IDs that may repeat until they are notified.

A copy starts in the state of its original: with its lease, its token and a proposal whose answer is awaited, or with
the remainder of its segments. It never gets an ID that the original had minted before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mintage.lease.lease_client import LeaseClient
from mintage.lease.segment_client import SegmentClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from mintage.lease.keeper import Task

__all__ = ["Share", "memory_of"]


@dataclass
class Share:
    """The state of a process, and its pending requests, when it was cloned."""

    region: str
    born: int
    """The event."""
    members: dict[int, int | None]
    """Processes, and the event in which each was notified that it is a copy."""
    node: int | None = None
    until_ms: int = 0
    """The end of the window, for node numbers."""
    token: str = ""
    """The proposed token: its answer is for all copies."""
    segments: list[range] = field(default_factory=list)
    given_back: int | None = None
    """The event in which a copy returned the shared state; from then on others may hold it."""

    def excuses(self, twins: tuple[tuple[int, int], tuple[int, int]], place: int) -> bool:
        """Return True if an ID, of that time or an integer, may repeat in these events among these processes."""
        if not (any(place in segment for segment in self.segments) if self.segments else place < self.until_ms):
            return False
        members = 0
        for event, process in twins:
            if process in self.members:
                told = self.members[process]
                if event < self.born or (told is not None and event > told):
                    return False
                members += 1
            elif self.given_back is None or event < self.given_back:
                return False
        return members > 0


def memory_of(task: Task, share: Share, least_ms: int) -> Callable[[Any], None] | None:
    """Return what makes another task a copy of this one, and the state they share; ``None`` if it holds nothing.

    ``least_ms`` is the first time in which the original did not mint.
    """
    match task:
        case LeaseClient(_lease=lease, _lost=None) if lease is not None and least_ms < lease.until_ms:
            share.node, share.until_ms, share.token = lease.node, lease.until_ms, task._next_token
            state = {
                "_lease": lease,
                "_serial": task._serial,
                "_next_token": task._next_token,
            }
            return lambda copy: vars(copy).update(state)
        case SegmentClient():
            rest, floor, recent = task._drain(), task._floor, tuple(task._recent)

            def hold(supply: SegmentClient) -> None:
                supply._floor = floor
                supply._recent.extend(recent)
                supply._waiting.extend(rest)
                supply._sizes.extend(count for _, count, _ in rest)
                supply._fill()

            hold(task)
            share.segments = [range(first, first + count * stride, stride) for first, count, stride in rest]
            return hold if rest else None
    return None
