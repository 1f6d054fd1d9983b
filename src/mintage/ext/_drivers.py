"""Registration of IDs with the driver of a connection that a framework has opened."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

_ADAPTERS: Final = {
    "psycopg": "psycopg",
    "psycopg2": "psycopg2",
    **dict.fromkeys(("pymysql", "MySQLdb", "aiomysql"), "pymysql"),
    "sqlite3": "sqlite3",
    "aiosqlite": "sqlite3",
}
"""The module of :mod:`mintage.ext` by the package of a connection's class."""


def accept_ids(connection: Any, forms: Mapping[type[Any], str | None]) -> None:
    """Make the driver of a connection accept IDs as parameters; do nothing if mintage has no adapter of the driver.

    asyncpg needs none of this: it encodes by the type of the server's parameter, and is registered by
    ``create_pool(init=register)``.

    :param connection: the driver's connection, of asyncio or not.
    :param forms: the storage form of each class that the project stores, as ``forms`` of the adapters.
    """
    driver = _ADAPTERS.get(type(connection).__module__.partition(".")[0])
    if driver is None:
        return
    register = import_module(f"mintage.ext.{driver}").register
    # The adapters of sqlite3 belong to the process.
    register(forms=forms) if driver == "sqlite3" else register(connection, forms=forms)
