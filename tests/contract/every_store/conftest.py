"""Fixtures of the contract: a new store of each kind, and its URL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mintage.store import Store, open_store
from tests.contract.every_store.stores import STORES, url_of
from tests.helpers.stores import LIMIT_MS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request, tmp_path, request.param)


@pytest.fixture
def store(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    # A machine may stall within a test.
    monkeypatch.setattr(Store, "clock_limit_ms", LIMIT_MS)
    with open_store(url) as opened:
        yield opened
