"""The options of store URLs. A kind of store declares them as a dataclass, each a field that :func:`option` returns."""

from __future__ import annotations

from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from dataclasses import Field

    from mintage.protocol.url import StoreUrl

T = TypeVar("T")

AUTHORITIES: Final = "The file of the authorities to trust; the system's if left out"
CERTIFICATE: Final = "The file of the client's certificate"
CERTIFICATE_KEY: Final = "The file of the certificate's private key, unless the certificate's file has it"


def option(default: Any, about: str, *, least: int = 0, most: int = 0, schemes: Collection[str] = ()) -> Any:
    """Return the field of an option.

    With ``most``, its value is a whole number from ``least`` to ``most``. With a bool as its default, it is 0 or 1.
    Otherwise it is a text.

    :param about: what the option is, for the documentation.
    :param schemes: the schemes of the URLs that have it; all if empty.
    """
    return field(
        default=default, repr=False, metadata={"about": about, "least": least, "most": most, "schemes": schemes}
    )


def timeout(about: str = "The longest time of a verb, in milliseconds") -> Any:
    """Return the field of the option ``timeout_ms``."""
    return option(2000, about, least=1, most=60_000)


def declared(kind: type[Any], scheme: str) -> dict[str, Field[Any]]:
    """Return the fields of the options that a URL of a scheme may have, by name."""
    return {each.name: each for each in fields(kind) if scheme in (each.metadata["schemes"] or (scheme,))}


def read_options(
    url: StoreUrl, kind: type[T], passed: Collection[str] = (), refused: Mapping[str, str] | None = None
) -> T:
    """Return the options of a URL.

    :param kind: the dataclass that declares them.
    :param passed: the options that the store passes to its driver.
    :param refused: the options of the driver that mintage sets itself, each with the reason.
    :raises ConfigError: ``config.store``: an option is unknown, refused or outside its limits.
    """
    options = declared(kind, url.scheme)
    url.check_options(*options, *passed, refused=refused)
    return kind(**{name: _value(url, options[name]) for name in options if name in url.options})


def _value(url: StoreUrl, each: Field[Any]) -> int | bool | str:
    least, most = each.metadata["least"], each.metadata["most"]
    if most:
        return url.parse_int(each.name, 0, least, most)
    return url.flag(each.name) if isinstance(each.default, bool) else url.options[each.name]
