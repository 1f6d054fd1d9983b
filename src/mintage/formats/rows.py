"""The one list of schemes, which the command line, client, service, metrics, documentation and tests read.

To add a scheme, add a row. A scheme's module is imported at first use, so that the import of the list is fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

from mintage._core.formats import FORMATS, LAST_RESORTS
from mintage.errors import ParseError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import ModuleType


def listed(names: Iterable[str], conjunction: str) -> str:
    """Return names as part of a sentence: ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} {conjunction} {last}" if first else last


class Generator(Protocol):
    """The methods of a generator of any scheme."""

    def batch(self, n: int, /) -> Iterable[Any]:
        """Mint ``n`` IDs."""

    def close(self) -> None:
        """Release the lease. The generator mints no more."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a scheme's generator, as the command line takes it."""

    name: str
    help: str
    metavar: str | None = None
    choices: tuple[str, ...] | None = None
    """The accepted words; any text if this is empty, and an integer if it is ``None``."""


@cache
def _module(name: str) -> ModuleType:
    # Adapters call this for each ID that they read, and a call of the import system takes most of a microsecond.
    return import_module(f"mintage.{name}")


@dataclass(frozen=True, slots=True)
class Scheme:
    """A row of the list: a scheme, by its name."""

    name: str
    """The name in ``mintage.NAME``, ``mintage new NAME``, ``/v1/ids/NAME`` and ``MINT NAME``."""
    title: str
    """The beginning of class names, as in ``ULIDType`` and ``ULIDField``."""
    example: str
    """The text of an ID, for documentation."""
    options: tuple[Option, ...] = ()
    max_meta: int = 0
    """The largest metabyte that ``batch`` accepts, or 0 if IDs have none."""
    has_layouts: bool = False
    """True if IDs are plain integers of 63 bits at most, in a layout that the user chooses."""
    layouts: tuple[str, ...] = ()
    """The versions that the generators mint, the default one first; empty if the format has only one."""
    leases: bool = False
    """True if a generator without a number or a store leases a number from the machine-local registry. In other schemes
    it draws the bits at random."""
    is_text: bool = False
    """True if IDs are plain text without a node number, so that a generator leases nothing."""
    node: str = ""
    """The argument of generators for a node number, if every ID has one."""
    host: tuple[tuple[str, object], ...] = ()
    """Arguments of generators that replace properties of the host and the process, and a value for each."""

    @property
    def module(self) -> ModuleType:
        """The scheme's own module."""
        return _module(self.name)

    def generator(self, lease: Mapping[str, object], /, **options: object) -> Generator:
        """Return a new generator.

        :param lease: arguments for the lease of its node number; a scheme of text ignores them.
        :param options: the other arguments of the scheme's ``Generator``.
        :raises MintError: as the scheme's ``Generator``.
        """
        made: Generator = self.module.Generator(**({} if self.is_text else lease), **options)
        return made

    def mint(self, generator: Generator, count: int, meta: int = 0) -> Any:
        """Mint ``count`` IDs with a generator of this scheme, with a metabyte if they have one."""
        return generator.batch(count, meta) if self.max_meta else generator.batch(count)  # type: ignore[call-arg]

    def lines(self, minted: Any) -> bytes:
        """Return the text of IDs that :meth:`mint` returned, one a line."""
        if self.is_text:
            return "".join(f"{each}\n" for each in minted).encode("utf-8", "surrogateescape")
        written: bytes = minted.to_lines()
        return written

    def parse(self, text: str) -> Any:
        """Return the ID of a text.

        :raises ParseError: it is no ID of this scheme.
        """
        if self.is_text:
            if not any(each.read(text) for each in (*FORMATS, *LAST_RESORTS) if each.scheme == self.name):
                raise ParseError(f"{text[:40]!a} is no {self.name}", code="parse.unknown")
            return text
        if not self.has_layouts:
            return self.module.ID.parse(text)
        if not (text.isascii() and text.isdigit() and int(text[:20]) < 2**63):
            raise ParseError(f"{text[:40]!a} is no integer of 63 bits", code="parse.unknown")
        return int(text)


_NODE: Final = Option("node", "the node number", "N")

SCHEMES: Final = {
    each.name: each
    for each in (
        Scheme(
            "sno",
            "Sno",
            "brpk4q72xwf2m63l",
            (
                Option("meta", "the metabyte", "0..255"),
                Option("partition", "where they are minted", "0..65535"),
            ),
            max_meta=255,
            leases=True,
            node="partition",
        ),
        Scheme(
            "snowflake",
            "Snowflake",
            "454947766275222906",
            (
                _NODE,
                Option("layout", "one of 'mintage schemes', or name:bits pairs, high to low", "LAYOUT", ()),
                Option("epoch_ms", "of a declared layout: Unix time of its start", "MS"),
                Option("unit_ms", "of a declared layout: length of a tick (default: 1)", "MS"),
            ),
            has_layouts=True,
            leases=True,
            node="node",
        ),
        Scheme(
            "locality",
            "Locality",
            "54321000-1092-ba1b-2c3d-019b76daa800",
            (Option("mode", "how counters are written (default: variable)", None, ("variable", "sequential")),),
            leases=True,
            node="pid",
            host=(("mac", "0000000"),),
        ),
        Scheme(
            "uuid",
            "UUID",
            "017f22e2-79b0-7cc3-98c4-dc0c0c07398f",
            (_NODE, Option("version", "1, 4, 6 or 7 (default: 7)", "VERSION")),
            layouts=("v7", "v4", "v1", "v6"),
        ),
        Scheme("ulid", "ULID", "01ARZ3NDEKTSV4RRFFQ69G5FAV", (_NODE,)),
        Scheme("ksuid", "KSUID", "0ujtsYcgvSTl8PAuAdqWYSMnLOv", (_NODE,)),
        Scheme("ksuid_ms", "KSUIDMs", "0ujtsU1u9Ae0uKlDsA7IeGETNgN", (_NODE,)),
        Scheme("xid", "XID", "9m4e2mr0ui3e8a215n4g", (_NODE,), node="node"),
        Scheme(
            "objectid",
            "ObjectID",
            "507f1f77bcf86cd799439011",
            (Option("process", "what stands for the process", "N"),),
            node="process",
        ),
        Scheme(
            "sandflake",
            "Sandflake",
            "05E4ECYW2G0G40R40000A1G710",
            (Option("worker", "the worker's number", "N"),),
            node="worker",
        ),
        Scheme(
            "nanoid",
            "NanoID",
            "V1StGXR8_Z5jdHi6B-myT",
            (
                Option("size", "how many characters (default: 21)", "N"),
                Option("alphabet", "the characters, each once (default: the 64 of URLs)", "CHARACTERS", ()),
            ),
            is_text=True,
        ),
        Scheme("cuid", "CUID", "ch72gsb320000udocl363eofy", is_text=True, host=(("fingerprint", "0000"),)),
        Scheme(
            "cuid2",
            "CUID2",
            "tz4a98xxat96iws9zmbrgj3a",
            (Option("length", "how many characters, 2 to 32 (default: 24)", "N"),),
            is_text=True,
        ),
    )
}
NAMES: Final = tuple(SCHEMES)
