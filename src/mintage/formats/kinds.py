"""The kinds of IDs that mintage mints: one list, which the command line, client, service, adapters and documents read.

To add a kind, add a row. The list imports no framework, and the module of a kind at its first use, so it is quick to
import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Final, Protocol

from mintage._core import typeid
from mintage._core.formats import AMBIGUOUS_FORMATS, FORMATS, Format, of_layout, read_layout
from mintage._core.snowflake import DEFAULT, Layout
from mintage.errors import ArgumentError, ConfigError, FieldError, ParseError
from mintage.formats.values import MAX_SHOWN_BITS, integer_of, lost_digits, type_name

UUID_BYTES: Final = 16


def listed(names: Iterable[str], conjunction: str) -> str:
    """Return names as part of a sentence: ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} {conjunction} {last}" if first else last


class Generator(Protocol):
    """The methods of a generator of any kind of IDs."""

    def batch(self, n: int, /) -> Iterable[Any]:
        """Mint ``n`` IDs."""

    def close(self) -> None:
        """Release the lease. The generator mints no more."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a generator, as the command line takes it."""

    name: str
    help: str
    metavar: str | None = None
    choices: tuple[str, ...] | None = None
    """The accepted words; any text if this is empty, and an integer if it is ``None``."""


# Adapters need these for each ID that they read, and a call of the import system takes most of a microsecond.
@cache
def _module(name: str) -> ModuleType:
    return import_module(f"mintage.{name}")


@cache
def _class(name: str) -> type[Any]:
    return str if _is_text(name) else _module(name).ID


@cache
def _is_text(name: str) -> bool:
    formats = _formats(name)
    return bool(formats) and not formats[0].raw


@cache
def _formats(name: str) -> tuple[Format, ...]:
    return tuple(each for each in (*FORMATS, *AMBIGUOUS_FORMATS) if each.scheme == name)


@cache
def _usual(name: str, versions: tuple[str, ...]) -> Format:
    return next(each for each in reversed(_formats(name)) if each.layout in (versions[:1] or (None,)))


@dataclass(frozen=True, slots=True)
class Kind:
    """The IDs of one scheme, and of one layout if they are snowflakes: how users mint, read, write and store them."""

    name: str
    """The scheme: the name in ``mintage.NAME``, ``mintage new NAME``, ``/v1/ids/NAME`` and ``MINT NAME``."""
    title: str
    """The beginning of class names, as in ``ULIDType`` and ``ULIDField``."""
    example: str
    """The text of an ID, for documentation."""
    options: tuple[Option, ...] = ()
    layout: Layout | None = None
    """The layout of snowflakes; ``None`` for all other kinds."""
    versions: tuple[str, ...] = ()
    """The versions that the generators mint, the default one first; empty if the scheme has only one."""
    leases: bool = False
    """True if a generator without a number or a store leases a number from the machine-local registry. In other kinds
    it draws the bits at random."""
    node: str = ""
    """The argument of generators for a node number, if every ID has one."""

    @property
    def module(self) -> ModuleType:
        """The module of the scheme."""
        return _module(self.name)

    @property
    def formats(self) -> tuple[Format, ...]:
        """All formats of a text: the versions of a UUID, the widths of a cuid; of snowflakes that of the layout."""
        return _formats(self.name) if self.layout is None else (self.format,)

    @property
    def format(self) -> Format:
        """The format that the default generator mints: of cuids the last width, which a later time needs."""
        if self.layout is not None:
            return of_layout(self.layout)
        return _usual(self.name, self.versions)

    @property
    def is_text(self) -> bool:
        """True if IDs are text, have no bytes, and no node number: a generator leases nothing."""
        return _is_text(self.name)

    @property
    def max_meta(self) -> int:
        """The largest metabyte that ``batch`` accepts, or 0 if IDs have none."""
        return (1 << sum(part.bits for part in self.format.parts if part.name == "meta")) - 1

    @property
    def python(self) -> type[Any]:
        """The class of an ID in Python: the scheme's ``ID``, ``int`` for snowflake, ``str`` if IDs are text."""
        return _class(self.name) if self.layout is None else int

    @property
    def size(self) -> int | None:
        """The number of bytes of an ID; ``None`` if IDs are text."""
        return None if self.is_text else self.format.bits // 8

    @property
    def has_uuid(self) -> bool:
        """True if an ID can be cast to a UUID, as all of 16 bytes can."""
        return self.size == UUID_BYTES or hasattr(self.python, "as_uuid")

    @property
    def length(self) -> int:
        """The number of characters of the usual text; the largest one for integers."""
        return self.format.lengths[0] if self.format.lengths else len(str(self.max))

    @property
    def lengths(self) -> tuple[int, int]:
        """The least and the largest number of characters of a text that :meth:`read` accepts."""
        if self.layout is not None:
            return 1, self.length
        found = [each.lengths[0] for each in self.formats]
        return min(found), max(found)

    @property
    def pattern(self) -> str:
        """The regular expression that matches exactly the texts that :meth:`read` accepts, in JSON Schema's dialect."""
        each, *others = dict.fromkeys(each.pattern for each in self.formats)
        return f"^(?:{'|'.join((each, *others))})$" if others else f"^{each}$"

    @property
    def json_schema(self) -> dict[str, Any]:
        """The JSON Schema of the text, a new dict for each call."""
        least, most = self.lengths
        return {
            "type": "string",
            "format": "int64" if self.layout else self.name,
            "pattern": self.pattern,
            "minLength": least,
            "maxLength": most,
            "examples": [self.example],
        }

    @property
    def max(self) -> int:
        """The largest ID as a number."""
        return (1 << (self.layout.bits if self.layout else self.format.bits)) - 1

    @property
    def has_time(self) -> bool:
        """True if IDs sort by time, so that :meth:`min_at` and :meth:`max_at` return bounds."""
        if self.layout is not None:
            return self.layout.fields[0][0] == "time"
        return hasattr(self.module, "min_at")

    @property
    def new(self) -> Callable[[], Any]:
        """The scheme's ``new``, a function that can be imported by its name."""
        return self.module.new  # type: ignore[no-any-return]

    def generator(self, lease: Mapping[str, object], /, **options: object) -> Generator:
        """Return a new generator.

        :param lease: arguments for the lease of its node number; a kind of text ignores them.
        :param options: the other arguments of the scheme's ``Generator``.
        :raises MintError: as the scheme's ``Generator``.
        """
        made: Generator = self.module.Generator(**({} if self.is_text else lease), **options)
        return made

    def mint(self, generator: Generator, count: int, meta: int = 0) -> Any:
        """Mint ``count`` IDs with a generator of this kind, with a metabyte if they have one."""
        return generator.batch(count, meta) if self.max_meta else generator.batch(count)  # type: ignore[call-arg]

    def lines(self, minted: Any) -> bytes:
        """Return the text of IDs that :meth:`mint` returned, one a line."""
        if self.is_text:
            return "".join(f"{each}\n" for each in minted).encode("utf-8", "surrogateescape")
        written: bytes = minted.to_lines()
        return written

    def read(self, value: object) -> Any:
        """Return the ID of a value.

        :param value: an ID, its text, bytes or UUID, or a TypeID over it; for snowflake an int or its digits.
        :raises ArgumentError: ``argument.type``: the value has none of these types.
        :raises ParseError: the value has one of these types, and is no ID.
        :raises FieldError: an integer is outside the layout.
        """
        if self.layout is not None:
            return self._read_integer(value)
        python: Any = _class(self.name)
        if python is str:
            return self._read_text(value)
        if isinstance(value, python):
            return value
        if isinstance(value, str):
            return python.parse(value)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return python.from_bytes(bytes(value))
        if isinstance(binary := getattr(value, "binary", None), bytes) and len(binary) == self.size:
            return python.from_bytes(binary)  # a bson.ObjectId
        from uuid import UUID

        is_over_one = isinstance(value, typeid.ID) and self.size == UUID_BYTES
        if is_over_one or (isinstance(value, UUID) and self.has_uuid):
            from mintage.formats.cast import cast

            return cast(value, python)
        wanted = f"{type_name(python)}, text or bytes"
        raise ArgumentError(f"{self.name} must be {wanted}, not {type_name(type(value))}", code="argument.type")

    def _read_text(self, value: object) -> str:
        if not isinstance(value, str):
            raise ArgumentError(f"{self.name} must be text, not {type_name(type(value))}", code="argument.type")
        if not any(each.read(value) for each in self.formats):
            raise ParseError(f"{value[:40]!a} is no {self.name}", code="parse.unknown")
        return value

    def _read_integer(self, value: object) -> int:
        if isinstance(value, str):
            if not (value.isascii() and value.isdigit() and len(value) <= len(str(self.max))):
                message = f"{value[:40]!a} is no {self.name}: digits of 0..{self.max}{lost_digits(value)}"
                raise ParseError(message, code="parse.unknown")
            value = int(value)
        number = integer_of(value)
        if number is None:
            message = f"{self.name} must be int or its digits, not {type_name(type(value))}"
            raise ArgumentError(message, code="argument.type")
        if not 0 <= number <= self.max:
            shown = f"of {number.bit_length():,} bits" if number.bit_length() > MAX_SHOWN_BITS else f"{number}"
            raise FieldError(f"{self.name} {shown} is outside 0..{self.max} of its layout", code="field.range")
        return number

    def time_of(self, id: Any) -> datetime | None:
        """Return the time of an ID, floored to its tick, as an aware UTC datetime; ``None`` if it has no time."""
        if self.layout is not None:
            return self.layout.parse(id).time
        parse = getattr(self.module, "parse", None) if self.is_text else None
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
        return self.layout or self.module


_NODE: Final = Option("node", "the node number", "N")

KINDS: Final = {
    each.name: each
    for each in (
        Kind(
            "sno",
            "Sno",
            "brpk4q72xwf2m63l",
            (
                Option("meta", "the metabyte", "0..255"),
                Option("partition", "the number of the minting place", "0..65535"),
            ),
            leases=True,
            node="partition",
        ),
        Kind(
            "snowflake",
            "Snowflake",
            "454947766275222906",
            (
                _NODE,
                Option("layout", "one of 'mintage schemes', or name:bits pairs, high to low", "LAYOUT", ()),
                Option("epoch_ms", "the Unix time at which a declared layout starts", "MS"),
                Option("unit_ms", "the length of a tick of a declared layout (default: 1)", "MS"),
            ),
            layout=DEFAULT,
            leases=True,
            node="node",
        ),
        Kind(
            "locality",
            "Locality",
            "54321000-1092-ba1b-2c3d-019b76daa800",
            (Option("mode", "the way to write counters (default: variable)", None, ("variable", "sequential")),),
            leases=True,
            node="pid",
        ),
        Kind(
            "uuid",
            "UUID",
            "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
            (_NODE, Option("version", "1, 4, 6 or 7 (default: 7)", "VERSION")),
            versions=("v7", "v4", "v1", "v6"),
        ),
        Kind("ulid", "ULID", "01ARZ3NDEKTSV4RRFFQ69G5FAV", (_NODE,)),
        Kind("ksuid", "KSUID", "0ujtsYcgvSTl8PAuAdqWYSMnLOv", (_NODE,)),
        Kind("ksuid_ms", "KSUIDMs", "0ujtsU1u9Ae0uKlDsA7IeGETNgN", (_NODE,)),
        Kind("xid", "XID", "9m4e2mr0ui3e8a215n4g", (_NODE,), node="node"),
        Kind(
            "objectid",
            "ObjectID",
            "507f1f77bcf86cd799439011",
            (Option("process", "the number of the process", "N"),),
            node="process",
        ),
        Kind(
            "sandflake",
            "Sandflake",
            "05E4ECYW2G0G40R40000A1G710",
            (Option("worker", "the worker's number", "N"),),
            node="worker",
        ),
        Kind(
            "nanoid",
            "NanoID",
            "V1StGXR8_Z5jdHi6B-myT",
            (
                Option("size", "the number of characters (default: 21)", "N"),
                Option("alphabet", "the characters, each once (default: the 64 of URLs)", "CHARACTERS", ()),
            ),
        ),
        Kind("cuid", "CUID", "ch72gsb320000udocl363eofy"),
        Kind(
            "cuid2",
            "CUID2",
            "tz4a98xxat96iws9zmbrgj3a",
            (Option("length", "the number of characters, 2 to 32 (default: 24)", "N"),),
        ),
    )
}
NAMES: Final = tuple(KINDS)
"""The names of all kinds, in the order of the list."""


def layout_of(layout: Layout | str) -> Layout:
    """Return a layout as it is, or the layout of a text: its name, or its fields as migrations have them.

    :raises ConfigError: ``config.layout``: the text is of no layout.
    """
    read = read_layout(layout) if isinstance(layout, str) else layout
    if not isinstance(read, Layout):
        raise ConfigError(f"{layout!a:.80} is no layout, such as 'twitter'", code="config.layout")
    return read


def snowflakes(layout: Layout | str) -> Kind:
    """Return the kind of the snowflakes of a layout, which :func:`layout_of` reads."""
    made = replace(KINDS["snowflake"], layout=layout_of(layout))
    return replace(made, example=str(int(made.example) & made.max))
