"""Schemas of more than one resource."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, Field

from mintage.rules import MAX_COUNT, check_name
from mintage.server.operation import Limit


def check_int(value: object) -> int:
    """Return an integer of JSON or of decimal digits. Pydantic would accept ``1_000``, ``5.0`` and ``True`` as well.

    :raises ValueError: the value is anything else.
    """
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value):
        return int(value)
    if type(value) is not int:
        raise ValueError("is not a whole number")
    return value


def named(what: str) -> AfterValidator:
    """Return a validator that refuses malformed names; ``what`` is ``namespace`` or ``pool``."""

    def check(name: str) -> str:
        check_name(name, what)
        return name

    return AfterValidator(check)


NAME: Final = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$"}
LATEST_MS: Final = 2**53 - 1
Count = Annotated[
    int,
    Field(ge=1, le=MAX_COUNT, description="How many, at most the service's `max_count`.", examples=[3]),
    BeforeValidator(check_int),
    Limit("max_count"),
]
Ms = Annotated[
    int, Field(ge=0, le=LATEST_MS, description="Milliseconds since the Unix epoch.", examples=[1763719200000])
]
NAMED: Final = ("config.name",)
"""The error codes of operations with a name in their path."""
