"""Kinds of IDs, as adapters use them: class, text, JSON Schema and bounds by time. This imports no framework."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

from mintage import snowflake, typeid
from mintage._core.typeid import check_prefix, pattern
from mintage.annotation import Annotation
from mintage.errors import ArgumentError, ConfigError, FieldError, ParseError
from mintage.formats.cast import cast
from mintage.formats.catalogue import FORMATS, LAST_RESORTS, Format, of_layout, of_scheme
from mintage.formats.rows import SCHEMES, Scheme, listed
from mintage.formats.values import MAX_SHOWN_BITS, integer_of, lost_digits, type_name
from mintage.rules import MAX_SAFE_INTEGER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_UUID_BYTES: Final = 16


class Kind(NamedTuple):
    """The IDs of one scheme, and of one layout if they are snowflakes, which adapters read, write and store."""

    scheme: Scheme
    layout: snowflake.Layout | None = None
    """The layout of snowflakes; ``None`` for all other schemes."""

    @property
    def name(self) -> str:
        """The name of the scheme."""
        return self.scheme.name

    @property
    def title(self) -> str:
        """The beginning of class names."""
        return self.scheme.title

    @property
    def format(self) -> Format:
        """The declaration of the core."""
        return of_scheme(self.name) if self.layout is None else of_layout(self.layout, self.name)

    @property
    def python(self) -> type[Any]:
        """The class of an ID in Python: the scheme's ``ID``, ``int`` for snowflake, ``str`` if IDs are text."""
        if self.layout is not None:
            return int
        return str if self.scheme.is_text else self.scheme.module.ID

    @property
    def size(self) -> int | None:
        """The number of bytes of an ID; ``None`` if IDs are text."""
        if self.layout is not None:
            return 8
        return None if self.scheme.is_text else self.format.bits // 8

    @property
    def is_text(self) -> bool:
        """True if IDs are text, and have no bytes."""
        return self.scheme.is_text

    @property
    def leases(self) -> bool:
        """True if a generator leases a node number, from the registry if there is no store."""
        return self.scheme.leases

    @property
    def has_uuid(self) -> bool:
        """True if an ID can be cast to a UUID, as all of 16 bytes can."""
        return self.size == _UUID_BYTES or hasattr(self.python, "as_uuid")

    @property
    def length(self) -> int:
        """The number of characters of the usual text; the largest one for integers."""
        return self.format.lengths[0] if self.format.lengths else len(str(self.max))

    @property
    def lengths(self) -> tuple[int, int]:
        """The least and the largest number of characters of a text that :meth:`read` accepts."""
        if self.layout is not None:
            return 1, self.length
        found = [each.lengths[0] for each in self._formats]
        return min(found), max(found)

    @property
    def pattern(self) -> str:
        """The regular expression that matches exactly the texts that :meth:`read` accepts, in JSON Schema's dialect."""
        return _anchored(each.pattern for each in self._formats)

    @property
    def _formats(self) -> list[Format]:
        """All formats of a text: the versions of a UUID, the widths of a cuid."""
        if self.layout is not None:
            return [self.format]
        return [each for each in (*FORMATS, *LAST_RESORTS) if each.scheme == self.name]

    @property
    def example(self) -> str:
        """The text of an ID, for documentation."""
        example = self.scheme.example
        return example if self.layout is None else str(int(example) & self.max)

    @property
    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of the text, a new dict for each call."""
        return _json_schema("int64" if self.layout else self.name, self)

    @property
    def max(self) -> int:
        """The largest ID as a number."""
        return (1 << (self.layout.bits if self.layout else self.format.bits)) - 1

    @property
    def has_time(self) -> bool:
        """True if IDs sort by time, so that :meth:`min_at` and :meth:`max_at` return bounds."""
        if self.layout is not None:
            return self.layout.fields[0][0] == "time"
        return hasattr(self.scheme.module, "min_at")

    @property
    def mint(self) -> Callable[[], Any]:
        """The scheme's ``new``, a function that can be imported by its name."""
        return self.scheme.module.new  # type: ignore[no-any-return]

    def read(self, value: object) -> Any:
        """Return the ID of a value.

        :param value: an ID, its text, bytes or UUID, or a TypeID over it; for snowflake an int or its digits.
        :raises ArgumentError: ``argument.type``: the value has none of these types.
        :raises ParseError: the value has one of these types, and is no ID.
        :raises FieldError: an integer is outside the layout.
        """
        if self.layout is not None:
            return self._read_integer(value)
        if isinstance(value, self.python) and not self.scheme.is_text:
            return value
        if isinstance(value, str):
            return self.scheme.parse(value)
        if not self.scheme.is_text:
            if isinstance(value, (bytes, bytearray, memoryview)):
                return self.python.from_bytes(bytes(value))
            if isinstance(binary := getattr(value, "binary", None), bytes) and len(binary) == self.size:
                return self.python.from_bytes(binary)  # a bson.ObjectId
            is_over_one = isinstance(value, typeid.ID) and self.size == _UUID_BYTES
            if is_over_one or (isinstance(value, UUID) and self.has_uuid):
                return cast(value, self.python)
        wanted = "text" if self.scheme.is_text else f"{type_name(self.python)}, text or bytes"
        message = f"{self.name} must be {wanted}, not {type_name(type(value))}"
        raise ArgumentError(message, code="argument.type")

    def _read_integer(self, value: object) -> int:
        if isinstance(value, str):
            if not (value.isascii() and value.isdigit() and len(value) <= len(str(self.max))):
                message = f"{value[:40]!a} is no {self.name}: digits of an integer{lost_digits(value)}"
                raise ParseError(message, code="parse.unknown")
            value = int(value)
        number = integer_of(value)
        if number is None:
            message = f"{self.name} must be int or its digits, not {type_name(type(value))}"
            raise ArgumentError(message, code="argument.type")
        value = number
        if not 0 <= value <= self.max:
            shown = f"of {value.bit_length():,} bits" if value.bit_length() > MAX_SHOWN_BITS else f"{value}"
            raise FieldError(f"{self.name} {shown} is outside 0..{self.max} of its layout", code="field.range")
        return value

    def write(self, id: Any) -> str:
        """Return the usual text of an ID."""
        return str(id)

    def time_of(self, id: Any) -> datetime | None:
        """Return the time of an ID, floored to its tick, as an aware UTC datetime; ``None`` if it has no time."""
        if self.layout is not None:
            return self.layout.parse(id).time
        parse = getattr(self.scheme.module, "parse", None) if self.is_text else None
        time = getattr(parse(id) if parse else id, "time", None)
        return time if isinstance(time, datetime) else None

    def min_at(self, time: datetime | int) -> Any:
        """Return the smallest ID of the tick that contains an instant.

        :raises FieldError: ``time.order``: these IDs do not sort by time; ``time.naive``, ``time.range``.
        """
        return self._bounds.min_at(time)

    def max_at(self, time: datetime | int) -> Any:
        """Return the largest ID of that tick.

        :raises FieldError: as :meth:`min_at`.
        """
        return self._bounds.max_at(time)

    @property
    def _bounds(self) -> Any:
        if not self.has_time:
            layout = f" of the layout {self.layout!r}" if self.layout else ""
            message = f"{self.name} IDs{layout} do not sort by time, so no time has a smallest or largest one"
            raise FieldError(message, code="time.order")
        return self.layout or self.scheme.module


KINDS: Final = {
    name: Kind(scheme, snowflake.DEFAULT if scheme.has_layouts else None) for name, scheme in SCHEMES.items()
}
"""The kind of each scheme, in the order of :data:`mintage.formats.rows.SCHEMES`; snowflake in its default layout."""


class TypeIDs(NamedTuple):
    """The TypeIDs of one prefix, or of any: a view and no scheme, with the interface of a :class:`Kind`."""

    prefix: str | None = None
    """``None`` for any."""

    @property
    def name(self) -> str:
        """The name of the view."""
        return "typeid"

    @property
    def title(self) -> str:
        """The beginning of class names."""
        return "TypeID"

    @property
    def python(self) -> type[typeid.ID]:
        """The class."""
        return typeid.ID

    @property
    def layout(self) -> None:
        """None, as these are no integers."""

    @property
    def size(self) -> int:
        """The number of bytes of the ID below the prefix."""
        return _UUID_BYTES

    @property
    def is_text(self) -> bool:
        """False, as the ID below the prefix has bytes."""
        return False

    @property
    def leases(self) -> bool:
        """False, as :func:`mintage.typeid.new` mints over random UUIDs of version 7."""
        return False

    @property
    def has_uuid(self) -> bool:
        """True, as an ID can be cast to a UUID."""
        return True

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
        return _anchored([pattern(self.prefix)[0]])

    @property
    def example(self) -> str:
        """The text of an ID, for documentation."""
        one = KINDS["uuid"].read(SCHEMES["uuid"].example)
        return str(typeid.ID("user" if self.prefix is None else self.prefix, one))

    @property
    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of the text, a new dict for each call."""
        return _json_schema(self.name, self)

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

    def write(self, id: typeid.ID) -> str:
        """Return the text of a TypeID."""
        return str(id)

    @property
    def mint(self) -> Callable[[], typeid.ID]:
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


NAMED: Final[dict[str, Kind | TypeIDs]] = {**KINDS, "typeid": TypeIDs()}
"""The kinds by name: the schemes, and ``typeid`` for TypeIDs of any prefix."""


def _is_below_a_prefix(value: object) -> bool:
    if isinstance(value, (bytes, bytearray, memoryview, UUID)):
        return True
    kind = BY_CLASS.get(type(value))
    return kind is not None and kind.size == _UUID_BYTES


def _anchored(patterns: Iterable[str]) -> str:
    each, *others = dict.fromkeys(patterns)
    return f"^(?:{'|'.join((each, *others))})$" if others else f"^{each}$"


def _json_schema(format: str, of: Kind | TypeIDs) -> dict[str, Any]:
    least, most = of.lengths
    return {
        "type": "string",
        "format": format,
        "pattern": of.pattern,
        "minLength": least,
        "maxLength": most,
        "examples": [of.example],
    }


def read_text(of: Kind | TypeIDs, value: object) -> Any:
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


def read_object(of: Kind | TypeIDs, value: object) -> Any:
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
        if kind is None or not kind.scheme.is_text:
            texts = [each.name for each in KINDS.values() if each.scheme.is_text]
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


def find_kind(of: object) -> Kind | TypeIDs | None:
    """Return the kind of a type in a user's declaration, or ``None`` if it is no type of IDs.

    :param of: a class of IDs, :class:`mintage.snowflake.Str`, :class:`TextID` or :class:`TypeID`, or a type with one of
        these in its ``Annotated``.
    """
    match of:
        case snowflake.Str():
            return Kind(SCHEMES["snowflake"], of.layout)
        case TextID():
            return of.kind
        case TypeID():
            return TypeIDs(of.prefix)
        case type():
            return TypeIDs() if of is typeid.ID else BY_CLASS.get(of)
    metadata: tuple[object, ...] = getattr(of, "__metadata__", ())
    return next((found for each in metadata if (found := find_kind(each))), None)


def kind_of(of: object) -> Kind | TypeIDs:
    """Return the kind of a type in a user's declaration, as :func:`find_kind` does.

    :raises ArgumentError: ``argument.type``: it is no type of IDs.
    """
    if (found := find_kind(of)) is None:
        message = f"{of!a:.60} is no class of IDs, such as sno.ID, and no annotation, such as TextID('nanoid')"
        raise ArgumentError(message, code="argument.type")
    return found
