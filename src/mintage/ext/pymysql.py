"""IDs in PyMySQL: as parameters of statements for MySQL and MariaDB.

>>> import pymysql
>>> from mintage import sno
>>> from mintage.ext.pymysql import register
>>> def connect(**options: object) -> pymysql.Connection:
...     connection = pymysql.connect(**options)
...     register(connection, forms={sno.ID: "text"})
...     return connection
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mintage.formats.storage import CLASSES, StorageForm, chosen, writer_of
from mintage.installation import missing

try:
    from pymysql import converters
except ModuleNotFoundError as error:
    raise missing(error, "pymysql") from None

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["register"]


def register(connection: Any = None, *, forms: Mapping[type[Any], str | None] | None = None) -> None:
    """Make PyMySQL accept IDs as parameters.

    PyMySQL reads bytes or text as before, as the server does not say which columns have IDs.

    >>> import pymysql
    >>> from mintage import sno
    >>> from mintage.ext.pymysql import register
    >>> connection = pymysql.connect(defer_connect=True)
    >>> register(connection, forms={sno.ID: "text"})
    >>> connection.cursor().mogrify("SELECT item FROM orders WHERE id = %s", [sno.ID.parse("brpk4q72xwf2m63l")])
    "SELECT item FROM orders WHERE id = 'brpk4q72xwf2m63l'"

    :param connection: the connection; the default is all connections that are opened later.
    :param forms: by class of IDs, the storage form: ``bytes``; ``uuid``, the 16 bytes of the UUID; or ``text``. Other
        classes have their default form (:doc:`/reference/storage`), which is ``uuid`` for ``uuid.ID``, ``locality.ID``
        and ``typeid.ID``.
    :raises ArgumentError: ``argument.type``: a class that is no class of IDs.
    :raises ConfigError: ``config.form``: the IDs of a class have no such form.
    """
    sent = {python: _sent(python, form) for python, form in chosen(forms).items()}
    # A connection without a mapping of its own copies the second; `escape_item` uses the first as a last resort.
    for encoders in (converters.encoders, converters.conversions) if connection is None else (connection.encoders,):
        encoders.update(sent)


def _sent(python: type[Any], form: StorageForm) -> Callable[[Any, Any], str]:
    write = writer_of(CLASSES[python], form, "mysql")

    def send(one: Any, _: object) -> str:
        value = write(one)
        # No alphabet of IDs has a quotation mark or a backslash.
        return f"X'{value.hex()}'" if isinstance(value, bytes) else f"'{value}'"

    return send
