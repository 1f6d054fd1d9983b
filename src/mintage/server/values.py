"""The syntax of settings' values: how each is written, checked and explained."""

from __future__ import annotations

import ipaddress
import os
import re
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, get_args

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr

from mintage.errors import ConfigError
from mintage.formats import catalogue
from mintage.protocol.url import StoreUrl
from mintage.store import STORE_KINDS, kinds_like

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic.fields import FieldInfo

OFF: Final = "off"


class ValueSyntax(NamedTuple):
    """The syntax of a setting's value, part of the metadata of its field."""

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


def syntax_of(info: FieldInfo) -> ValueSyntax:
    """Return the syntax of a field's value, with its words or its range."""
    syntax = next(each for each in info.metadata if isinstance(each, ValueSyntax))
    if syntax.metavar == "WORD":
        return syntax._replace(text=", ".join(get_args(info.annotation)))
    if syntax.is_listed:
        least, most = (next(getattr(each, at) for each in info.metadata if hasattr(each, at)) for at in ("ge", "le"))
        return syntax._replace(text=f"{least}..{most}")
    return syntax


class Heading(NamedTuple):
    """A heading of the help, in the metadata of the first field below it."""

    title: str


def headings(fields: Mapping[str, FieldInfo]) -> dict[str, tuple[str, ...]]:
    """Return the names of the fields below each heading."""
    names: dict[str, tuple[str, ...]] = {}
    title = ""
    for name, info in fields.items():
        title = next((each.title for each in info.metadata if isinstance(each, Heading)), title)
        names[title] = (*names.get(title, ()), name)
    return names


def check_int(value: object) -> int:
    """Return an integer of digits or of TOML. Pydantic would accept ``1_000``, ``5.0`` and ``True`` as well."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value):
        return int(value)
    if type(value) is not int:
        raise ValueError
    return value


def check_bool(value: object) -> object:
    """Return a boolean of ``true`` or ``false``. Pydantic would accept more words, such as ``t`` and ``off``."""
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    if value is not None and type(value) is not bool:
        raise ValueError
    return value


def check_address(value: str) -> str:
    """Return the address of a listener, or ``off``.

    :raises ValueError: it is malformed.
    """
    if value != OFF:
        host_and_port(value)
    return value


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


def check_file(value: str) -> str:
    """Return the path of a file that can be read.

    :raises ValueError: there is no such file.
    """
    if not (os.path.isfile(value) and os.access(value, os.R_OK)):
        raise ValueError
    return value


def check_store(value: SecretStr) -> SecretStr:
    """Return a store's URL.

    :raises ConfigError: it is malformed, or of an unknown kind.
    """
    if (scheme := StoreUrl.parse(value.get_secret_value()).scheme) not in STORE_KINDS:
        # The message does not repeat the text before the colon, which may be a user's name or a password.
        raise wrong(f"there is no such kind of store: {kinds_like(scheme)}")
    return value


_RESERVED_HEADERS: Final = re.compile(
    "allow|authorization|cache-control|connection|content-(length|type)|cookie|date|expect|host|keep-alive|lease-token"
    "|origin|proxy-authorization|retry-after|te|trailer|transfer-encoding|upgrade|www-authenticate|x-mintage-fallback",
    re.IGNORECASE,
)
"""Headers that cannot carry the trace id, as requests or answers use them for something else, some of it secret."""


def check_trace_header(value: str) -> str:
    """Return the name of a header that can carry the trace id.

    :raises ConfigError: the header has another meaning.
    """
    if _RESERVED_HEADERS.fullmatch(value):
        raise wrong(f"trace_header is {value}, which has another meaning: use a name such as X-Request-Id")
    return value


def check_layout(value: str) -> str:
    """Return a layout of snowflakes.

    :raises ValueError: it is no layout.
    """
    if catalogue.read_layout(value) is None:
        raise ValueError
    return value


def check_nodes(value: str) -> str:
    """Return a range of node numbers, such as ``512..1023``.

    :raises ValueError: it is malformed.
    """
    match = re.fullmatch(r"([0-9]{1,19})\.\.([0-9]{1,19})", value)
    if match is None or int(match[1]) > int(match[2]):
        raise ValueError
    return value


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


Integer = Annotated[int, BeforeValidator(check_int)]
YesOrNo = Annotated[bool, BeforeValidator(check_bool)]
Count = Annotated[Integer, ValueSyntax("N")]
Milliseconds = Annotated[Integer, ValueSyntax("MS")]
Bytes = Annotated[Integer, ValueSyntax("BYTES")]
Rate = Annotated[Integer, Field(ge=0, le=10**9), ValueSyntax("N")]
Burst = Annotated[Integer, Field(ge=0, le=10**9), ValueSyntax("N", unset="the rate")]
Address = Annotated[str, AfterValidator(check_address), ValueSyntax("HOST:PORT", "HOST:PORT, or off")]
File = Annotated[str | None, AfterValidator(check_file), ValueSyntax("FILE", "a file that can be read", unset="none")]
