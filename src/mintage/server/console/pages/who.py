"""The page that tells which process minted an ID, or reserved an integer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from starlette.routing import Route

from mintage.errors import MintError, ParseError
from mintage.formats import anatomy
from mintage.rules import is_number
from mintage.server.config.values import shown
from mintage.server.console.bit_picture import BitPicture, bit_picture
from mintage.server.console.frame import caller, page, read, store_of
from mintage.server.console.pages.pools import HOLDER, STATE
from mintage.server.console.query import Query, pool_url
from mintage.server.console.table import Column, Table
from mintage.who import who, who_reserved

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from mintage.formats.anatomy import Anatomy, Field
    from mintage.who import Finding, IntegerFinding

TITLE: Final = "Who"
PATH: Final = "/who"
_LONGEST: Final = 200
"""The most characters of an ID."""
_UNKNOWN: Final = "unknown pool"


class Reading(NamedTuple):
    """One reading of an ID, with the picture of its bits and the table of its fields."""

    anatomy: Anatomy
    word: str
    """Its likelihood in a word."""
    picture: BitPicture
    fields: Table


def readings(query: Query, text: str) -> list[Reading]:
    """Return the readings of an ID, the likeliest first.

    :raises ParseError: ``parse.unknown``: it is no ID of a known scheme.
    """
    found = anatomy.inspect(text)
    return [
        Reading(
            each,
            "the only reading" if len(found) == 1 else each.verdict,
            bit_picture(each),
            Table(query, f"Fields of the {each.name}", _FIELDS, [*enumerate(each.fields, 1)], name=f"fields{at}"),
        )
        for at, each in enumerate(found, 1)
    ]


def _place(row: tuple[int, Field]) -> str:
    high, low = row[1].bits
    return f"{high}" if high == low else f"{high}–{low}"


_FIELDS: Final = (
    Column("number", "No.", lambda row: row[0]),
    Column("field", "Field", lambda row: row[1].name),
    Column("bits", "Bits", _place),
    Column("value", "Value", lambda row: str(row[1].value), "code"),
    Column("meaning", "Meaning", lambda row: row[1].meaning),
)


def _link(each: Finding) -> str | None:
    if each.pool is None or each.node is None:
        return None
    at = {"at": int(each.time.timestamp() * 1000)} if each.time else {}
    return pool_url(each.pool, each.node, **at)


_FINDINGS: Final = (
    STATE,
    Column("format", "Format", lambda each: each.format),
    Column("time", "Time", lambda each: each.time, "time"),
    Column("pool", "Pool", lambda each: each.pool, "code"),
    Column("node", "Node", lambda each: each.node, "number", link=_link),
    *HOLDER,
    Column("granted", "Granted", lambda each: each.since_ms, "time"),
    Column("floor", "Window from", lambda each: each.floor_ms or None, "time"),
    Column("until", "Window until", lambda each: each.until_ms, "time"),
)


async def _who(request: Request) -> Response:
    """Answer with the readings of an ID and the process that held its node number, as far as the store knows.

    Two words, a namespace and an integer, are answered with the process that reserved the integer.
    """
    caller(request)
    query = Query.of(request)
    text = query.text("id").strip()
    findings: list[Finding] = []
    drawn: list[Reading] = []
    problems: list[MintError] = []
    reserved: IntegerFinding | None = None
    namespace, _, integer = text.partition(" ")
    if len(text) > _LONGEST:
        problems.append(ParseError(f"{shown(text, 40)} has more than {_LONGEST} characters", code="parse.unknown"))
    elif is_number(integer.strip(), 19):
        try:
            reserved = await read(
                request, "describe", namespace, who_reserved, namespace, int(integer), store_of(request)
            )
        except MintError as error:
            problems.append(error)
    elif text:
        try:
            drawn = readings(query, text)
        except ParseError as error:
            problems.append(error)
        try:
            findings = await read(request, "describe", "", who, text, store_of(request))
            problems.clear()
        except MintError as error:
            problems = problems or [error]
    tables = [Table(query, "Answers", _FINDINGS, findings, name="answers")] if findings else []
    shows_all = bool(query.one_of("all", ("1",)))
    chosen = [each for at, each in enumerate(drawn) if shows_all or at == 0 or each.anatomy.verdict != "unlikely"]
    return await page(
        request,
        "who.html",
        title="Who minted this ID?",
        tables=[*tables, *(each.fields for each in chosen)],
        id=text,
        reserved=reserved,
        findings=[each for at, each in enumerate(findings) if at == 0 or each.state != _UNKNOWN],
        without_pool=[each.format for each in findings[1:] if each.state == _UNKNOWN],
        answers=tables[0] if tables else None,
        readings=chosen,
        others=[each for each in drawn if each not in chosen],
        all_url=query.link(all=1),
        problems=problems,
        link=_link,
    )


ROUTES: Final = (Route(PATH, _who, methods=["GET"]),)
