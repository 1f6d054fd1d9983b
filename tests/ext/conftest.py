"""Fixtures that several tests of adapters share."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

import pytest

from mintage.formats.storage import CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def registrations_end() -> Iterator[None]:
    """Restore the process-wide registrations of drivers."""
    from psycopg2 import extensions
    from pymysql import converters

    kept: list[Any] = [extensions.adapters, sqlite3.adapters, sqlite3.converters]
    kept += [converters.encoders, converters.conversions]
    before = [dict(each) for each in kept]
    for each in kept:
        for key in [key for key in each if (key[0] if isinstance(key, tuple) else key) in CLASSES]:
            del each[key]
    yield
    for each, was in zip(kept, before, strict=True):
        each.clear()
        each.update(was)
