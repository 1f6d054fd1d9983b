"""The options of store URLs. A kind of store declares them as a dataclass, each a field that :func:`option` returns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mintage.errors import ConfigError
from mintage.rules import is_number

if TYPE_CHECKING:
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


def connections() -> Any:
    """Return the field of the option ``connections``."""
    return option(
        "keep", "`keep`, or `close` to end a connection after each verb: for more processes than the server has"
    )


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
    known = (*options, *passed)
    for name in url.option_names:
        if refused and name in refused:
            raise ConfigError(
                f"a store of kind {url.scheme} cannot have the option {name!r}: {refused[name]}", code="config.store"
            )
        if name not in known:
            from difflib import get_close_matches

            meant = get_close_matches(name, known, 1)
            has = f"it has {', '.join(known)}" if known else "it has none"
            has = f"did you mean {meant[0]}? {has[0].upper()}{has[1:]}" if meant else has
            raise ConfigError(f"a store of kind {url.scheme} has no option {name!r}: {has}", code="config.store")
    return kind(**{name: _value(options[name], url.options[name]) for name in options if name in url.options})


def _value(option: Field[Any], text: str) -> int | bool | str:
    least, most = option.metadata["least"], option.metadata["most"]
    if most and not (is_number(text, 10) and least <= int(text) <= most):
        wrong = f"is not a whole number in {least}..{most}"
    elif isinstance(option.default, bool) and text not in {"0", "1"}:
        wrong = "is neither 0 nor 1"
    else:
        return int(text) if most else text == "1" if isinstance(option.default, bool) else text
    raise ConfigError(f"option {option.name} of the store's URL {wrong}", code="config.store")


@dataclass(frozen=True, slots=True)
class NoOptions:
    """The options of a store that has none."""
