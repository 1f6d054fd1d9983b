"""Databases on which adapters are tested, as SQLAlchemy names them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import Engine, create_engine, event, make_url

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DATABASES = ["sqlite", "postgresql+psycopg", "mariadb+pymysql"]
"""A driver each; the word before the plus is the fixture that starts its server."""

on_each_database = pytest.mark.parametrize("driver", DATABASES)
on_each_driver = pytest.mark.parametrize("driver", [*DATABASES, "postgresql+psycopg2"])


def url_of(driver: str, request: pytest.FixtureRequest, directory: Path) -> str:
    """Return the SQLAlchemy URL of an empty database."""
    name = driver.partition("+")[0]
    if name == "sqlite":
        return f"sqlite:///{directory / 'database'}"
    server = request.getfixturevalue(name)
    return make_url(server.url).set(drivername=driver).render_as_string(hide_password=False)


@contextmanager
def engine_of(driver: str, request: pytest.FixtureRequest, directory: Path) -> Iterator[Engine]:
    """Return an engine of an empty database, which leaves no connection open."""
    made = create_engine(url_of(driver, request, directory))
    if driver == "sqlite":

        @event.listens_for(made, "connect")
        def _(connection: Any, _: object) -> None:
            connection.execute("PRAGMA foreign_keys = ON")

    try:
        yield made
    finally:
        made.dispose()


@contextmanager
def statements(engine: Engine) -> Iterator[list[str]]:
    """Record the statements sent during the block."""
    sent: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        sent.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(engine, "before_cursor_execute", note)
