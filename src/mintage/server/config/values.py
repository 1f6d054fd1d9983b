"""The values of settings: which ones a setting accepts, and how an error shows a wrong one."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from typing import Any, Final, NamedTuple, get_args, get_type_hints

from mintage.errors import ConfigError
from mintage.formats import catalogue
from mintage.protocol.url import StoreUrl
from mintage.rules import node_ranges
from mintage.store import STORE_KINDS, kinds_like

OFF: Final = "off"


def wrong(message: str) -> ConfigError:
    """Return an error with the code ``config.setting``."""
    return ConfigError(message, code="config.setting")


def shown(value: object, longest: int = 80) -> str:
    """Return the text of a value for a message, at most ``longest`` characters of printable ASCII."""
    try:
        text = ascii(value)
    except ValueError:  # Python limits the digits of a number
        return "a number of thousands of digits"
    except RecursionError:
        return "a table of thousands of tables"
    return text if len(text) <= longest else f"{text[:longest]}..."


def shown_name(name: str) -> str:
    """Return the name of a setting or a key for a message; a key in the place of its name is masked."""
    return "mint_***" if name.startswith("mint_") else shown(name)[1:-1]


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a value, for messages: ``--name value``, ``NAME=value`` or ``name = value in 'file'``."""

    name: str
    between: str
    after: str = ""

    def below(self, name: str) -> Place:
        """Return the place of an entry of the table here."""
        return replace(self, name=f"{self.name}.{shown_name(name)}")

    def write(self, value: str) -> str:
        """Return the setting with the text of its value."""
        return f"{self.name}{self.between}{value}{self.after}"


@dataclass(frozen=True, slots=True)
class Values:
    """The values that a setting accepts."""

    text: str
    """The values, as the end of a sentence with "is not"."""
    accepts: Callable[[Any], bool]
    """Returns True for a value to accept. Raises ConfigError to refuse one with a message of its own, or ValueError."""
    metavar: str = ""
    """The placeholder of a value in the help; empty if the command line has no values."""
    limits: str = ""
    """The part of ``text`` that the help shows beside the placeholder."""
    unset: str = ""
    """The meaning of leaving the setting out, if its default does not show it."""
    read: Callable[[Any, Place], object] = lambda value, _: value
    """Converts a value of a source, such as the text of a number; returns it as it is if it cannot."""
    is_secret: bool = False

    def parse(self, value: object, place: Place) -> Any:
        """Return the value of a source as the service uses it.

        :raises ConfigError: ``config.setting``.
        """
        found = self.read(value, place)
        try:
            if self.accepts(found):
                return found
        except ConfigError as error:
            raise wrong(f"{place.write(self._shown(value))}: {error}") from None
        except ValueError:
            pass
        raise wrong(f"{place.write(self._shown(found))} is not {self.text}")

    def _shown(self, value: object) -> str:
        return "***" if self.is_secret else shown(value)


class Setting(NamedTuple):
    """The declaration of a setting, as the annotation of its field has it."""

    default: Any
    """Its default; ``MISSING`` if it must be there."""
    values: Values
    description: str
    heading: str = ""
    """A heading of the help, at the first setting below it."""

    @property
    def is_table(self) -> bool:
        """True if only the file can set it."""
        return isinstance(self.default, dict)


@cache
def settings_of(cls: Any) -> dict[str, Setting]:
    """Return the declarations of a dataclass of settings, by name."""
    types = get_type_hints(cls, include_extras=True)
    return {
        each.name: Setting(
            each.default if each.default_factory is MISSING else each.default_factory(), *types[each.name].__metadata__
        )
        for each in fields(cls)
    }


# --- kinds of values ------------------------------------------------------------------------------------------------

_INTEGERS: Final = {
    "N": "a whole number",
    "MS": "a whole number of milliseconds",
    "BYTES": "a whole number of bytes",
}


def integers(least: int, most: int, metavar: str = "N") -> Values:
    """Return the whole numbers from ``least`` to ``most``; ``1_000``, ``5.0`` and ``True`` are none."""
    limits = f"{least}..{most}"
    return Values(
        f"{_INTEGERS[metavar]} in {limits}",
        lambda value: type(value) is int and least <= value <= most,
        metavar,
        limits,
        read=_read_integer,
    )


def _read_integer(value: object, _: Place) -> object:
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value) else value


def _read_bool(value: object, _: Place) -> object:
    return {"true": True, "false": False}.get(value.lower(), value) if isinstance(value, str) else value


def one_of(literal: object) -> Values:
    """Return the words of a ``Literal``."""
    words = get_args(literal)
    return Values(f"one of {', '.join(words)}", words.__contains__, "WORD", ", ".join(words))


def _text(check: Callable[[str], object]) -> Callable[[object], bool]:
    """Return the function that accepts a text that passes ``check``."""

    def accepts(value: object) -> bool:
        if not isinstance(value, str):
            return False
        value.encode()  # raises ValueError for a text that UTF-8 cannot write
        return bool(check(value))

    return accepts


def _is_address(address: str) -> bool:
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|[A-Za-z0-9._-]+):([0-9]{1,5})", address)
    if match and match[1]:
        ipaddress.IPv6Address(match[1])
    return address == OFF or (match is not None and int(match[2]) <= 65_535)


def host_and_port(address: str) -> tuple[str, int]:
    """Split the address of a listener."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_store(url: str) -> bool:
    if (scheme := StoreUrl.parse(url).scheme) not in STORE_KINDS:
        # The message does not repeat the text before the colon, which may be a user's name or a password.
        raise wrong(f"there is no such kind of store: {kinds_like(scheme)}")
    return True


_RESERVED_HEADERS: Final = (
    "allow|authorization|cache-control|connection|content-(length|type)|cookie|date|expect|host|keep-alive|lease-token"
    "|origin|proxy-authorization|retry-after|te|trailer|transfer-encoding|upgrade|www-authenticate|x-mintage-fallback"
)
"""Headers that cannot carry the trace id, as requests or answers use them for something else, some of it secret."""


def _is_trace_header(name: str) -> bool:
    if re.fullmatch(_RESERVED_HEADERS, name, re.IGNORECASE):
        raise wrong(f"trace_header is {name}, which has another meaning: use a name such as X-Request-Id")
    return re.fullmatch("[A-Za-z0-9-]{1,64}", name) is not None


def read_nodes(text: str) -> list[range] | None:
    """Return node numbers that are typed as ``0..15,32..47,900``; ``None`` if they are malformed."""
    found = []
    for part in text.split(","):
        match = re.fullmatch(r" *([0-9]{1,19})(?:(?:\.\.|-)([0-9]{1,19}))? *", part)
        if match is None or int(match[1]) > int(match[2] or match[1]):
            return None
        found.append(range(int(match[1]), int(match[2] or match[1]) + 1))
    return node_ranges(found)


YES_OR_NO: Final = Values("true or false", lambda value: type(value) is bool, read=_read_bool)
RATE: Final = integers(0, 10**9)
BURST: Final = replace(RATE, unset="the rate")
ADDRESS: Final = Values("HOST:PORT, or off", _text(_is_address), "HOST:PORT")
FILE: Final = Values(
    "a file that can be read",
    _text(lambda path: os.path.isfile(path) and os.access(path, os.R_OK)),
    "FILE",
    unset="none",
)
STORE: Final = Values("a store's URL", _text(_is_store), "URL", unset="this machine's registry", is_secret=True)
LAYOUT: Final = Values(
    f"{', '.join(catalogue.LAYOUTS)}, or such as 'time:41 node:10 sequence:12 @1735689600000 1ms'",
    _text(lambda layout: catalogue.read_layout(layout) is not None),
    "LAYOUT",
)
NODES: Final = Values(
    "FIRST..LAST, such as 512..1023, or several, such as 0..15,32..47,900",
    _text(lambda nodes: read_nodes(nodes) is not None),
    "RANGES",
    unset="all",
)
TRACE_HEADER: Final = Values("1 to 64 letters, digits and -", _text(_is_trace_header), "NAME")
HASH: Final = Values(
    "sha256: and 64 hexadecimal digits in lower case",
    _text(lambda digest: re.fullmatch("sha256:[0-9a-f]{64}", digest)),
    is_secret=True,
)


def table(text: str, entry: Values, check: Callable[[dict[str, Any]], object], *, is_secret: bool = False) -> Values:
    """Return the tables with values of ``entry`` that pass a check, which raises ConfigError."""

    def read(value: object, place: Place) -> object:
        if not isinstance(value, dict):
            return value
        return {name: entry.parse(each, place.below(name)) for name, each in value.items()}

    def accepts(value: object) -> bool:
        if is_table := isinstance(value, dict):
            check(value)
        return is_table

    return Values(text, accepts, read=read, is_secret=is_secret)
