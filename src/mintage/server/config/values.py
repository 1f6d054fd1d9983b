"""The syntax of settings' values: how each is written, checked and explained."""

from __future__ import annotations

import ipaddress
import os
import re
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, get_args

from mintage.errors import ConfigError
from mintage.formats import catalogue
from mintage.protocol.url import StoreUrl
from mintage.store import STORE_KINDS, kinds_like

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OFF: Final = "off"
REQUIRED: Final = ...
"""The default of a setting that must be there."""


@dataclass(frozen=True, slots=True)
class ValueSyntax:
    """The syntax of a setting's value."""

    metavar: str = ""
    """The placeholder of the value in the help; empty for a setting without a value."""
    text: str = "true or false"
    """The accepted values."""
    unset: str = ""
    """The meaning of leaving the setting out, if its default does not show it."""
    is_table: bool = False
    """True for a table, which only the file can set."""

    @property
    def is_listed(self) -> bool:
        """True if the help must show ``text``, as ``metavar`` does not tell it."""
        return self.metavar in _SENTENCES

    @property
    def sentence(self) -> str:
        """The accepted values, as the end of a sentence with "is not"."""
        return _SENTENCES.get(self.metavar, "") + self.text


_SENTENCES: Final = {
    "N": "a whole number in ",
    "MS": "a whole number of milliseconds in ",
    "BYTES": "a whole number of bytes in ",
    "WORD": "one of ",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """The values of a setting: the function that checks one and returns it parsed, and their syntax."""

    check: Callable[[Any], Any]
    """Raises ValueError for a value of another syntax, ConfigError for one that is refused with its own message."""
    syntax: ValueSyntax


@dataclass(frozen=True, slots=True)
class Setting:
    """The declaration of a setting."""

    default: Any
    kind: Kind
    description: str
    heading: str
    """A heading of the help, at the first setting below it."""

    @property
    def syntax(self) -> ValueSyntax:
        """The syntax of its value."""
        return self.kind.syntax


def setting(
    default: Any, kind: Kind, description: str, *, unset: str = "", heading: str = "", is_shown: bool = True
) -> Any:
    """Return the field of a dataclass for a setting. ``is_shown=False`` keeps its value out of the repr."""
    if unset:
        kind = replace(kind, syntax=replace(kind.syntax, unset=unset))
    how: dict[str, Any] = {"repr": is_shown, "metadata": {Setting: Setting(default, kind, description, heading)}}
    if isinstance(default, dict):
        return field(default_factory=default.copy, **how)
    return field(**how) if default is REQUIRED else field(default=default, **how)


def settings_of(cls: Any) -> dict[str, Setting]:
    """Return the declarations of a dataclass of settings, by name."""
    return {each.name: each.metadata[Setting] for each in fields(cls)}


def headings(settings: Mapping[str, Setting]) -> dict[str, tuple[str, ...]]:
    """Return the names of the settings below each heading."""
    names: dict[str, tuple[str, ...]] = {}
    title = ""
    for name, each in settings.items():
        title = each.heading or title
        names[title] = (*names.get(title, ()), name)
    return names


class ValueFault(ValueError):  # noqa: N818 - a part of an error: the sources of settings know the rest
    """A wrong value. Its message does not show the value, which may be a secret."""

    def __init__(self, path: tuple[str, ...], value: object, cause: ConfigError | str) -> None:
        super().__init__(f"{'.'.join(path)}: {cause}")
        self.path = path
        """The name of the setting, and the names within its table."""
        self.value = value
        """The value there; :data:`REQUIRED` if it is missing."""
        self.cause = cause
        """The reason; or the sentence of the accepted values."""

    def below(self, *names: str) -> ValueFault:
        """Return this fault in a table that has its place under these names."""
        return ValueFault((*names, *self.path), self.value, self.cause)


def checked(name: str, value: object, kind: Kind) -> Any:
    """Return a value as its kind parses it.

    :raises ValueFault: the value is wrong.
    """
    try:
        return kind.check(value)
    except ValueFault as fault:
        raise fault.below(name) from None
    except ConfigError as error:
        raise ValueFault((name,), value, error) from None
    except ValueError:
        raise ValueFault((name,), value, kind.syntax.sentence) from None


# --- checks ---------------------------------------------------------------------------------------------------------


def check_int(value: object) -> int:
    """Return an integer of digits or of TOML; ``1_000``, ``5.0`` and ``True`` are none.

    :raises ValueError: the value is anything else.
    """
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value):
        return int(value)
    if type(value) is not int:
        raise ValueError
    return value


def check_bool(value: object) -> bool:
    """Return a boolean of ``true`` or ``false``; ``t``, ``1`` and ``off`` are none.

    :raises ValueError: the value is anything else.
    """
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    if type(value) is not bool:
        raise ValueError
    return value


def check_text(value: object) -> str:
    """Return a text that UTF-8 can write.

    :raises ValueError: it is anything else.
    """
    if not isinstance(value, str):
        raise ValueError
    value.encode()
    return value


def check_address(value: object) -> str:
    """Return the address of a listener, or ``off``.

    :raises ValueError: it is malformed.
    """
    address = check_text(value)
    if address != OFF:
        host_and_port(address)
    return address


def host_and_port(address: str) -> tuple[str, int]:
    """Split an address into host and port.

    :raises ValueError: the address is malformed.
    """
    match = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})", address)
    if match is None or int(match[3]) > 65_535:
        raise ValueError
    if match[1]:
        ipaddress.IPv6Address(match[1])
    return match[1] or match[2], int(match[3])


def is_loopback(host: str) -> bool:
    """Return True if only this machine can reach the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_file(value: object) -> str:
    """Return the path of a file that can be read.

    :raises ValueError: there is no such file.
    """
    path = check_text(value)
    if not (os.path.isfile(path) and os.access(path, os.R_OK)):
        raise ValueError
    return path


def check_store(value: object) -> str:
    """Return a store's URL.

    :raises ValueError: it is no text.
    :raises ConfigError: it is malformed, or of an unknown kind.
    """
    url = check_text(value)
    if (scheme := StoreUrl.parse(url).scheme) not in STORE_KINDS:
        # The message does not repeat the text before the colon, which may be a user's name or a password.
        raise wrong(f"there is no such kind of store: {kinds_like(scheme)}")
    return url


_RESERVED_HEADERS: Final = (
    "allow|authorization|cache-control|connection|content-(length|type)|cookie|date|expect|host|keep-alive|lease-token"
    "|origin|proxy-authorization|retry-after|te|trailer|transfer-encoding|upgrade|www-authenticate|x-mintage-fallback"
)
"""Headers that cannot carry the trace id, as requests or answers use them for something else, some of it secret."""


def check_trace_header(value: object) -> str:
    """Return the name of a header that can carry the trace id.

    :raises ValueError: it is no name of a header.
    :raises ConfigError: the header has another meaning.
    """
    name = check_text(value)
    if not re.fullmatch("[A-Za-z0-9-]{1,64}", name):
        raise ValueError
    if re.fullmatch(_RESERVED_HEADERS, name, re.IGNORECASE):
        raise wrong(f"trace_header is {name}, which has another meaning: use a name such as X-Request-Id")
    return name


def check_layout(value: object) -> str:
    """Return a layout of snowflakes.

    :raises ValueError: it is no layout.
    """
    layout = check_text(value)
    if catalogue.read_layout(layout) is None:
        raise ValueError
    return layout


def check_nodes(value: object) -> str:
    """Return a range of node numbers, such as ``512..1023``.

    :raises ValueError: it is malformed.
    """
    nodes = check_text(value)
    match = re.fullmatch(r"([0-9]{1,19})\.\.([0-9]{1,19})", nodes)
    if match is None or int(match[1]) > int(match[2]):
        raise ValueError
    return nodes


def check_hash(value: object) -> str:
    """Return the hash of a key.

    :raises ValueError: it is malformed.
    """
    digest = check_text(value)
    if not re.fullmatch("sha256:[0-9a-f]{64}", digest):
        raise ValueError
    return digest


def shown(value: object, longest: int = 80) -> str:
    """Return the text of a value for a message, at most ``longest`` characters of printable ASCII."""
    try:
        text = ascii(value)
    except ValueError:  # Python limits the digits of a number
        return "a number of thousands of digits"
    return text if len(text) <= longest else f"{text[:longest]}..."


def wrong(message: str) -> ConfigError:
    """Return an error with the code ``config.setting``."""
    return ConfigError(message, code="config.setting")


# --- kinds of values ------------------------------------------------------------------------------------------------


def integer(least: int, most: int, metavar: str = "N") -> Kind:
    """Return the kind of whole numbers from ``least`` to ``most``."""
    syntax = ValueSyntax(metavar, f"{least}..{most}")

    def check(value: object) -> int:
        number = check_int(value)
        if not least <= number <= most:
            raise ValueFault((), number, syntax.sentence)
        return number

    return Kind(check, syntax)


def word(literal: object) -> Kind:
    """Return the kind of the words of a ``Literal``."""
    words = get_args(literal)

    def check(value: object) -> str:
        if check_text(value) not in words:
            raise ValueError
        return str(value)

    return Kind(check, ValueSyntax("WORD", ", ".join(words)))


YES_OR_NO: Final = Kind(check_bool, ValueSyntax())
RATE: Final = integer(0, 10**9)
ADDRESS: Final = Kind(check_address, ValueSyntax("HOST:PORT", "HOST:PORT, or off"))
FILE: Final = Kind(check_file, ValueSyntax("FILE", "a file that can be read", unset="none"))
