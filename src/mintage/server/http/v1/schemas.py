"""Schemas of more than one resource."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, TypeVar, cast

import msgspec

from mintage.errors import FieldError
from mintage.rules import LATEST_MS, MAX_COUNT
from mintage.server.http.v1.operation import LAST_CHARACTER, Ask

T = TypeVar("T")
F = TypeVar("F")


def matching(pattern: str, **more: Any) -> msgspec.Meta:
    """Return the constraint that a text matches a pattern, to its last character."""
    return msgspec.Meta(pattern=pattern + LAST_CHARACTER, **more)


NAME: Final = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$"}
Count = Annotated[
    int,
    msgspec.Meta(ge=1, le=MAX_COUNT, description="How many, at most the service's `max_count`.", examples=[3]),
    msgspec.Meta(extra={"limit": "max_count"}),
]
LONGEST_PAGE: Final = 10_000
"""The most records in one answer."""
PageLimit = Annotated[
    int,
    msgspec.Meta(ge=1, le=LONGEST_PAGE, description="How many at most.", examples=[1000]),
]
Ms = Annotated[
    int, msgspec.Meta(ge=0, le=LATEST_MS, description="Milliseconds since the Unix epoch.", examples=[1763719200000])
]


async def page(
    ask: Ask, of: str, limit: int, facts: Callable[[T], F], verb: Callable[..., Sequence[T]], *where: object
) -> list[F]:
    """Return a page of the store's records; with a limit of 0, all of them.

    :param of: the name that the caller needs the right for; empty for all names.
    :raises FieldError: ``field.range``: all of them are more than :data:`LONGEST_PAGE`.
    """
    records = await ask.call(of, verb, *where, limit or LONGEST_PAGE + 1)
    if len(records) > LONGEST_PAGE:
        raise FieldError(
            f"there are more than {LONGEST_PAGE}: list pages, with limit=1000 and the last one of a page as after",
            code="field.range",
        )
    return await ask.each(records, facts)


def members_of(facts: type[F], record: object) -> F:
    """Return the members of an answer: the attributes of a record with their names."""
    return cast("F", {name: getattr(record, name) for name in facts.__annotations__})
