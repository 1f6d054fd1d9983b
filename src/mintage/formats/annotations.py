"""The types of IDs in users' declarations: classes, markers in ``Annotated``, and TypeIDs of a prefix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

from mintage import snowflake, typeid
from mintage._core import Annotation
from mintage._core.typeid import check_prefix, pattern
from mintage.errors import ArgumentError, ConfigError, FieldError
from mintage.formats.cast import cast
from mintage.formats.catalogue import Format
from mintage.formats.kinds import KINDS, UUID_BYTES, Kind, listed, snowflakes
from mintage.formats.values import type_name
from mintage.rules import MAX_SAFE_INTEGER


@dataclass(frozen=True, slots=True, init=False)
class TypeIDs(Kind):
    """The TypeIDs of one prefix, or of any: a view over UUIDs of version 7, and no scheme."""

    prefix: str | None = None
    """``None`` for any."""

    def __init__(self, prefix: str | None = None) -> None:
        below = KINDS["uuid"].read(KINDS["uuid"].example)
        Kind.__init__(self, "typeid", "TypeID", str(typeid.ID("user" if prefix is None else prefix, below)))
        object.__setattr__(self, "prefix", prefix)

    @property
    def format(self) -> Format:
        """The format of the UUID below the prefix."""
        return KINDS["uuid"].format

    @property
    def length(self) -> int:
        """The largest number of characters of a text."""
        return self.lengths[1]

    @property
    def lengths(self) -> tuple[int, int]:
        """The least and the largest number of characters of a text."""
        return pattern(self.prefix)[1:]

    @property
    def pattern(self) -> str:
        """The regular expression that matches exactly the texts that :meth:`read` accepts, in JSON Schema's dialect."""
        return f"^{pattern(self.prefix)[0]}$"

    def read(self, value: object) -> typeid.ID:
        """Return the TypeID of a value.

        :param value: a TypeID or its text, with the prefix. If the prefix is known, also the ID below it: an ID of
            128 bits, a ``uuid.UUID`` or 16 bytes.
        :raises ArgumentError: ``argument.type``: the value has none of these types.
        :raises ParseError: the value has one of these types, and is no TypeID with the prefix.
        """
        if isinstance(value, str):
            return typeid.ID.parse(value, self.prefix)
        if isinstance(value, typeid.ID):
            # If it has another prefix, raise the error that its text would raise.
            return value if self.prefix in (None, value.prefix) else typeid.ID.parse(str(value), self.prefix)
        if self.prefix is not None and _is_below_a_prefix(value):
            return typeid.ID(self.prefix, value)
        also = "" if self.prefix is None else ", an ID of 128 bits, a UUID or 16 bytes"
        message = f"typeid must be typeid.ID or text{also}, not {type_name(type(value))}"
        raise ArgumentError(message, code="argument.type")

    @property
    def new(self) -> Callable[[], typeid.ID]:
        """The function that mints a TypeID over a UUID of version 7.

        :raises ArgumentError: the prefix is not known.
        """
        return partial(typeid.new, self.prefix)  # type: ignore[arg-type]

    @property
    def has_time(self) -> bool:
        """True if :meth:`min_at` and :meth:`max_at` return bounds: for one prefix, over UUIDs of version 7."""
        return self.prefix is not None

    def min_at(self, time: datetime | int) -> typeid.ID:
        """Return the smallest TypeID of the millisecond that contains an instant.

        :raises FieldError: ``time.order``: the prefix is not known; ``time.naive``, ``time.range``.
        """
        return typeid.ID(self._known, KINDS["uuid"].min_at(time))

    def max_at(self, time: datetime | int) -> typeid.ID:
        """Return the largest TypeID of that millisecond.

        :raises FieldError: as :meth:`min_at`.
        """
        return typeid.ID(self._known, KINDS["uuid"].max_at(time))

    @property
    def _known(self) -> str:
        if self.prefix is None:
            raise FieldError("TypeIDs of several prefixes do not sort by time", code="time.order")
        return self.prefix

    def time_of(self, id: typeid.ID) -> datetime | None:
        """Return the time of a TypeID over a UUID of version 7, as an aware UTC datetime; ``None`` for any other."""
        below = cast(id, KINDS["uuid"].python)
        return KINDS["uuid"].time_of(below) if below.version == 7 else None


NAMED: Final[dict[str, Kind]] = {**KINDS, "typeid": TypeIDs()}
"""The kinds by name: the schemes, and ``typeid`` for TypeIDs of any prefix."""


def _is_below_a_prefix(value: object) -> bool:
    if isinstance(value, (bytes, bytearray, memoryview, UUID)):
        return True
    kind = BY_CLASS.get(type(value))
    return kind is not None and kind.size == UUID_BYTES


def read_text(of: Kind, value: object) -> Any:
    """Return the ID of a value of JSON: a text, and for snowflake an integer up to 2^53 - 1 too.

    :raises ArgumentError: ``argument.type``: the value is no text, or JavaScript may have rounded the integer.
    :raises ParseError: the text is no ID.
    :raises FieldError: an integer is outside the layout.
    """
    if of.python is int and isinstance(value, int) and abs(value) > MAX_SAFE_INTEGER:
        message = f"{of.name} above 2^53 - 1 must be text, as JSON's numbers are rounded"
        raise ArgumentError(message, code="argument.type")
    if isinstance(value, str) or (of.python is int and isinstance(value, int) and not isinstance(value, bool)):
        return of.read(value)
    raise ArgumentError(f"{of.name} must be text, not {type_name(type(value))}", code="argument.type")


def read_object(of: Kind, value: object) -> Any:
    """Return the ID of a value that a converter of JSON passes: an ID, a ``UUID``, or what :func:`read_text` accepts.

    :raises MintError: as :meth:`Kind.read` and :func:`read_text`.
    """
    is_id = isinstance(value, (typeid.ID, UUID)) or type(value) in BY_CLASS
    return of.read(value) if is_id else read_text(of, value)


class TextID(Annotation):
    """An annotation: the ``str`` is an ID of a scheme whose IDs are text.

    >>> from typing import Annotated
    >>> from mintage.ext.kinds import TextID
    >>> ShortID = Annotated[str, TextID("nanoid")]

    :param scheme: ``nanoid``, ``cuid`` or ``cuid2``, of the usual alphabet and length.
    :raises ConfigError: ``config.policy``: the scheme is another one.
    """

    __slots__ = ("kind",)

    def __init__(self, scheme: str) -> None:
        kind = KINDS.get(scheme)
        if kind is None or not kind.is_text:
            texts = [each.name for each in KINDS.values() if each.is_text]
            raise ConfigError(f"scheme {scheme!a:.42} is not {listed(texts, 'or')}", code="config.policy")
        self.kind = kind

    def __repr__(self) -> str:
        return f"TextID({self.kind.name!r})"


class TypeID(Annotation):
    """An annotation: the ``typeid.ID`` has this prefix.

    >>> from typing import Annotated
    >>> from mintage import typeid
    >>> from mintage.ext.kinds import TypeID
    >>> UserID = Annotated[typeid.ID, TypeID("user")]

    :param prefix: up to 63 characters of ``a-z``, with ``_`` inside; it may be empty.
    :raises ArgumentError: ``prefix`` is not str.
    :raises FieldError: ``field.format``: the text cannot be a prefix.
    """

    __slots__ = ("prefix",)

    def __init__(self, prefix: str) -> None:
        check_prefix(prefix)
        self.prefix = prefix

    def __repr__(self) -> str:
        return f"TypeID({self.prefix!r})"


BY_CLASS: Final[dict[type[Any], Kind]] = {kind.python: kind for kind in KINDS.values() if kind.size and not kind.layout}
"""The kind of each class of IDs. ``int`` and ``str`` are not here, as each is the class of several kinds."""


def find_kind(of: object) -> Kind | None:
    """Return the kind of a type in a user's declaration, or ``None`` if it is no type of IDs.

    :param of: a class of IDs, :class:`mintage.snowflake.Str`, :class:`TextID` or :class:`TypeID`, or a type with one of
        these in its ``Annotated``.
    """
    match of:
        case snowflake.Str():
            return snowflakes(of.layout)
        case TextID():
            return of.kind
        case TypeID():
            return TypeIDs(of.prefix)
        case type():
            return TypeIDs() if of is typeid.ID else BY_CLASS.get(of)
    metadata: tuple[object, ...] = getattr(of, "__metadata__", ())
    return next((found for each in metadata if (found := find_kind(each))), None)


def kind_of(of: object) -> Kind:
    """Return the kind of a type in a user's declaration, as :func:`find_kind` does, or that of a name in :data:`NAMED`.

    :raises ArgumentError: ``argument.type``: it is no type of IDs.
    """
    if (found := NAMED.get(of) if isinstance(of, str) else find_kind(of)) is None:
        message = f"{of!a:.60} is no class of IDs, such as sno.ID, and no annotation, such as TextID('nanoid')"
        raise ArgumentError(message, code="argument.type")
    return found
