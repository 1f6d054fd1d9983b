"""Fixtures that several unit tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.helpers.keepers import keeper_in_place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mintage.lease import keeper


@pytest.fixture
def inline() -> Iterator[keeper.Keeper]:
    """Use a keeper without a thread, which works only when a caller waits or a test calls it."""
    with keeper_in_place() as mine:
        yield mine
