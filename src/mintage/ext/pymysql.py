"""IDs in PyMySQL, mysqlclient and aiomysql: as parameters of statements for MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mintage.formats.storage import CLASSES, StorageForm, chosen, refuse, writer_of
from mintage.installation import missing

__all__ = ["register"]


def register(connection: Any = None, *, forms: Mapping[type[Any], str | None] | None = None) -> None:
    """Make PyMySQL, or a connection of mysqlclient or aiomysql, accept IDs as parameters.

    These drivers send the text of an ID that they do not know. They read bytes or text as before, as the server does
    not say which columns have IDs.

    >>> import pymysql
    >>> from mintage import sno
    >>> from mintage.ext.pymysql import register
    >>> connection = pymysql.connect(defer_connect=True)
    >>> register(connection, forms={sno.ID: "text"})
    >>> connection.cursor().mogrify("SELECT item FROM orders WHERE id = %s", [sno.ID.parse("brpk4q72xwf2m63l")])
    "SELECT item FROM orders WHERE id = 'brpk4q72xwf2m63l'"

    :param connection: the connection; the default is all connections of PyMySQL that are opened later.
    :param forms: by class of IDs, the storage form: ``bytes``; ``uuid``, the 16 bytes of the UUID; or ``text``. Other
        classes have their default form (:doc:`/reference/storage`), which is ``uuid`` for ``uuid.ID``, ``locality.ID``
        and ``typeid.ID``. IDs of a class with ``None`` are refused.
    :raises ArgumentError: ``argument.type``: a class that is no class of IDs.
    :raises ConfigError: ``config.form``: the IDs of a class have no such form.
    :raises ModuleNotFoundError: there is no connection, and PyMySQL is not installed.
    """
    sent = {python: _sent(python, form) if form else refuse for python, form in chosen(forms).items()}
    for encoders in _encoders_of_all() if connection is None else (connection.encoders,):
        encoders.update(sent)


def _encoders_of_all() -> tuple[dict[Any, Any], ...]:
    try:
        from pymysql import converters
    except ModuleNotFoundError as error:
        raise missing(error, "pymysql") from None
    # A connection without a mapping of its own copies the second; `escape_item` uses the first as a last resort.
    return converters.encoders, converters.conversions


def _sent(python: type[Any], form: StorageForm) -> Callable[[Any, Any], str]:
    write = writer_of(CLASSES[python], form, "mysql")

    def send(one: Any, _: object) -> str:
        value = write(one)
        # No alphabet of IDs has a quotation mark or a backslash.
        return f"X'{value.hex()}'" if isinstance(value, bytes) else f"'{value}'"

    return send
