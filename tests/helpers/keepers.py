"""Keepers of tests, in place of that of this process."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mintage.lease import keeper

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def keeper_in_place(mine: keeper.Keeper | None = None) -> Iterator[keeper.Keeper]:
    """Use a keeper during the block, by default one without a thread; close it at the end if it has a thread."""
    before, mine = keeper.current(), mine or keeper.Keeper(inline=True)
    keeper.use(mine)
    try:
        yield mine
    finally:
        if mine._thread is not None:
            mine.close()
        keeper.use(before)
