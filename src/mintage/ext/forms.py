"""In which form databases are given IDs, and how one is read back: what the drivers and SQLAlchemy's types share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import UUID

from mintage.casting import cast, type_name
from mintage.errors import ArgumentError, ConfigError
from mintage.ext.kinds import BY_CLASS, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

__all__ = ["WRITERS", "Form", "chosen", "form_of", "forms", "reader", "readers", "uuid_of"]

Form = Literal["bytes", "uuid", "text"]
"""The bytes of IDs, their form as a UUID, or their usual text."""


def _as_uuid(id: Any) -> UUID:
    return cast(id, UUID)


WRITERS: Final[dict[Form, Callable[[Any], Any]]] = {"bytes": bytes, "uuid": _as_uuid, "text": str}
"""What makes of an ID its form."""


def uuid_of(value: Any) -> UUID:
    """What a driver returned of a UUID: one that does not know them gives their text, and a database, their bytes."""
    if isinstance(value, UUID):
        return value
    return UUID(value) if isinstance(value, str) else UUID(bytes=bytes(value))


def forms(kind: Kind) -> tuple[Form, ...]:
    """The forms that IDs of a class have, the usual one first: a UUID where that is how they are written."""
    if kind.size == 16 and hasattr(kind.python, "as_uuid"):
        return "uuid", "bytes", "text"
    return ("bytes", "uuid", "text") if kind.size == 16 or hasattr(kind.python, "as_uuid") else ("bytes", "text")


def form_of(kind: Kind, form: str | None) -> Form:
    """That form, or the usual one where none is named.

    :raises ConfigError: ``config.form``: IDs of this kind have no such form.
    """
    for each in forms(kind):
        if form in (each, None):
            return each
    message = f"the form of {kind.name} must be one of {', '.join(forms(kind))}, not {form!r:.40}"
    raise ConfigError(message, code="config.form")


def chosen(named: Mapping[type[Any], str] | None) -> dict[type[Any], Form]:
    """The form of each class of IDs: the usual one of those that are not named.

    :raises ArgumentError: ``argument.type``: something that is named is no class of IDs.
    :raises ConfigError: ``config.form``: its IDs have no such form.
    """
    named = named or {}
    for python in named:
        _check(python)
    return {python: form_of(kind, named.get(python)) for python, kind in BY_CLASS.items()}


def reader(python: type[Any]) -> Callable[[Any], Any]:
    """What makes an ID of a class of what a driver returned: bytes, a UUID or text.

    :raises ArgumentError: ``argument.type``: it is no class of IDs.
    """
    _check(python)
    made: Any = python

    def read(value: Any) -> Any:
        if isinstance(value, UUID):
            return cast(value, made)
        return made.parse(value) if isinstance(value, str) else made(value)

    return read


def readers(load: Mapping[str, type[Any]] | None, types: Collection[str]) -> dict[str, Callable[[Any], Any]]:
    """A reader by type of a database, of those that a driver knows.

    :raises ArgumentError: ``argument.type``: another type, or no class of IDs.
    """
    for name in load or ():
        if name not in types:
            message = f"load must be of the types {', '.join(types)}, not {name!r:.40}"
            raise ArgumentError(message, code="argument.type")
    return {name: reader(python) for name, python in (load or {}).items()}


def _check(python: object) -> None:
    # The classes of snowflakes and of text are Python's own, which every driver knows.
    if not isinstance(python, type) or python not in BY_CLASS:
        name = type_name(python if isinstance(python, type) else type(python))
        raise ArgumentError(f"{name} is no class of IDs, such as sno.ID", code="argument.type")
