"""Administration of database servers, and errors of stores in them."""

from __future__ import annotations

import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import pytest

from mintage.errors import MintError
from tests.servers import MariaDB, PostgreSQL
from tests.servers.server import PASSWORD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Server: TypeAlias = MariaDB | PostgreSQL


def administer(server: Server, sql: str) -> str:
    return server.sql(f"USE mintage; {sql}" if isinstance(server, MariaDB) else sql)


@contextmanager
def setting(server: Server, change: str, undo: str) -> Iterator[None]:
    administer(server, change)
    try:
        yield
    finally:
        administer(server, undo)


def refusal_text(call: Callable[[], object], code: str = "store.refused") -> str:
    """Return the message of the error of a call, after a check of its code and that it shows no password."""
    with pytest.raises(MintError) as caught:
        call()
    assert caught.value.code == code, caught.value
    shown = "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in shown
    return str(caught.value)


@contextmanager
def account(server: Server) -> Iterator[str]:
    """Create an account that may read and write existing tables, and remove history; return its URL."""
    if isinstance(server, MariaDB):
        make = "CREATE USER clerk IDENTIFIED BY 'x'; GRANT SELECT, INSERT, UPDATE ON mintage.* TO clerk;"
        drop = "DROP USER clerk"
    else:
        make = """
            CREATE ROLE clerk LOGIN PASSWORD 'x'; GRANT USAGE ON SCHEMA public TO clerk;
            GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA public TO clerk;"""
        drop = "DROP OWNED BY clerk; DROP ROLE clerk"
    for table in ("mintage_grant", "mintage_run"):
        if administer(server, f"SELECT 1 FROM information_schema.tables WHERE table_name = '{table}'"):
            make += f"GRANT DELETE ON {table} TO clerk;"
    scheme, _, rest = server.url.partition("://")
    with setting(server, make, drop):
        yield f"{scheme}://clerk:x@{rest.rpartition('@')[2]}"
