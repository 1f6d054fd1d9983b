"""PyMySQL is told how IDs are sent to MySQL and MariaDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mintage.formats.storage import CLASSES, Form, chosen, writer_of
from mintage.installation import missing

try:
    from pymysql import converters
except ModuleNotFoundError as error:
    raise missing(error, "pymysql") from None

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["register"]


def register(connection: Any = None, *, forms: Mapping[type[Any], str] | None = None) -> None:
    """Let IDs be parameters. What is read is bytes or text, as before: the server does not say which columns are IDs.

    :param connection: the connection; all that are made from now on where it is left out.
    :param forms: by class of IDs, what they are sent as: ``bytes``; ``uuid``, the 16 bytes of that form; or ``text``.
        What is not named has its default form (:doc:`/reference/storage`): of ``uuid.ID``, ``locality.ID`` and
        ``typeid.ID`` these 16 bytes.
    :raises ArgumentError: ``argument.type``: no class of IDs.
    :raises ConfigError: ``config.form``: IDs of a class have no such form.
    """
    sent = {python: _sent(python, form) for python, form in chosen(forms).items()}
    # A connection without a mapping of its own copies the second; the first is what `escape_item` falls back to.
    for encoders in (converters.encoders, converters.conversions) if connection is None else (connection.encoders,):
        encoders.update(sent)


def _sent(python: type[Any], form: Form) -> Callable[[Any, Any], str]:
    write = writer_of(CLASSES[python], form, "mysql")

    def send(one: Any, _: object) -> str:
        value = write(one)
        # No alphabet of IDs has a quotation mark or a backslash.
        return f"X'{value.hex()}'" if isinstance(value, bytes) else f"'{value}'"

    return send
